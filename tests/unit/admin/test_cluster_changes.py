"""Deleting groups, creating topics, reading offsets."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from kgroup.admin.change.delete import delete_groups, plan_deletion
from kgroup.admin.change.offset_plans import CommittedOffset
from kgroup.admin.change.undo import plan_undo
from kgroup.admin.discovery import ClusterView
from kgroup.admin.journal import Journal
from kgroup.admin.read.offsets import EARLIEST, LATEST, MAX_TIMESTAMP, ListedOffset, list_offsets
from kgroup.admin.settings import group_settings, number_of
from kgroup.admin.topics import cluster_status, create_topic, topics
from kgroup.client.retry import OutcomeUnknown
from kgroup.domain import TopicPartition
from kgroup.errors import BrokerRefused, ErrorCode
from kgroup.protocol.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kgroup.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from kgroup.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kgroup.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from tests.unit.admin.fake_cluster import FakeCluster
from tests.unit.admin.groups import Groups, classic_group, classic_member


@pytest.fixture
def fake() -> FakeCluster:
    return FakeCluster(topics={"orders": 4})


@pytest.fixture
def groups(fake: FakeCluster) -> Groups:
    return Groups(fake)


@pytest.fixture
def admin(fake: FakeCluster, tmp_path: Path) -> ClusterView:
    return ClusterView(fake, retry=fake.retry(), journal=Journal(tmp_path / "journal.jsonl"))


def test_groups_are_deleted_item_by_item_and_their_offsets_kept(
    fake: FakeCluster, admin: ClusterView, groups: Groups
) -> None:
    codes = {"busy": ErrorCode.NON_EMPTY_GROUP, "nope": ErrorCode.GROUP_ID_NOT_FOUND}
    fake.coordinator_of["busy"] = 2

    def delete(node: int, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
        return DeleteGroupsResponse(
            results=tuple(
                DeletableGroupResult(group_id=g, error_code=codes.get(g, ErrorCode.NONE))
                for g in request.groups_names
            )
        )

    fake.on(DeleteGroupsRequest, delete)
    groups.add(classic_group("idle", state="Empty"), classic_group("busy", classic_member("m")))
    groups.committed["idle"] = {"orders:1": 42}
    names = ["idle", "busy", "nope"]
    planned, _ = plan_deletion(admin, names)
    assert [(item.result, item.error_code) for item in planned] == [
        ("planned", None),
        ("failed", "NON_EMPTY_GROUP"),
        ("not_found", "GROUP_ID_NOT_FOUND"),
    ]
    assert fake.requests(DeleteGroupsRequest) == []
    done = delete_groups(admin, names)
    assert {item.group_id: item.result for item in done.items} == {
        "idle": "deleted",
        "busy": "failed",
        "nope": "not_found",
    }
    entry = admin.journal.find("LAST")
    assert entry is not None
    assert entry.before["offsets"]["idle"] == [["orders", 1, 42, -1, ""]]


def test_why_a_group_was_not_deleted_is_in_the_brokers_words(
    fake: FakeCluster, admin: ClusterView, groups: Groups
) -> None:
    """KIP-1331: DeleteGroups has a message since Kafka 4.4; before it the code alone is known."""
    groups.add(classic_group("new", state="Empty"), classic_group("old", state="Empty"))
    why = {"new": "The plugin could not delete the topology description."}

    def delete(node: int, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
        failed = ErrorCode.GROUP_DELETION_FAILED
        return DeleteGroupsResponse(
            results=tuple(
                DeletableGroupResult(group_id=g, error_code=failed, error_message=why.get(g))
                for g in request.groups_names
            )
        )

    fake.on(DeleteGroupsRequest, delete)
    new, old = delete_groups(admin, ["new", "old"]).items
    assert (new.result, new.error_code) == (old.result, old.error_code) == ("failed", "GROUP_DELETION_FAILED")
    assert new.effect == f"deleting group new: GROUP_DELETION_FAILED: {why['new']}"
    assert old.effect == "deleting group old: GROUP_DELETION_FAILED"


@pytest.mark.parametrize(
    ("broken", "code"),
    [(KeyboardInterrupt(), "INTERRUPTED"), (OutcomeUnknown("no reply"), "OUTCOME_UNKNOWN")],
)
def test_a_deletion_of_which_nobody_knows_whether_it_was_done_can_be_undone(
    fake: FakeCluster, admin: ClusterView, groups: Groups, broken: BaseException, code: str
) -> None:
    """Interrupted, its entry stayed at the beginning; without a reply it read as not done, for good."""
    groups.add(classic_group("idle", state="Empty"))
    groups.committed["idle"] = {"orders:1": 42}

    def delete(node: int, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
        groups.committed.clear()
        raise broken

    fake.on(DeleteGroupsRequest, delete)
    with contextlib.suppress(KeyboardInterrupt):
        (item,) = delete_groups(admin, ["idle"]).items
        assert (item.result, item.error_code) == ("failed", "OUTCOME_UNKNOWN")
    (entry,) = admin.journal.entries()
    assert entry.results is not None
    assert [(r["group_id"], r["result"], r["error_code"]) for r in entry.results] == [
        ("idle", "failed", code)
    ]
    (back,) = plan_undo(admin, "LAST").items
    assert (back.result, back.after) == ("planned", CommittedOffset(42))


def test_topics_are_created_once(fake: FakeCluster, admin: ClusterView) -> None:
    def create(node: int, request: CreateTopicsRequest) -> CreateTopicsResponse:
        (topic,) = request.topics
        code = ErrorCode.TOPIC_ALREADY_EXISTS if topic.name in fake.topics else ErrorCode.NONE
        fake.topics.setdefault(topic.name, topic.num_partitions)
        told = CreatableTopicResult(name=topic.name, error_code=code, error_message="it is there")
        return CreateTopicsResponse(topics=(told,))

    fake.on(CreateTopicsRequest, create)
    made = create_topic(admin, "new", 3, configs={"cleanup.policy": "compact"})
    assert (made.name, len(made.partitions)) == ("new", 3)
    (request,) = fake.requests(CreateTopicsRequest)
    assert (request.topics[0].replication_factor, request.topics[0].configs[0].value) == (-1, "compact")
    with pytest.raises(BrokerRefused, match="TOPIC_ALREADY_EXISTS: it is there"):
        create_topic(admin, "new")
    fake.served[CreateTopicsRequest.API] = range(2, 4)
    with pytest.raises(BrokerRefused):
        create_topic(admin, "other", 1)
    assert create_topic(admin, "other", 1, 1).name == "other"


def test_a_broker_without_settings_of_groups_is_too_old(fake: FakeCluster) -> None:
    """In Kafka 2.4's words."""

    def answer(node: int, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
        said = "Unexpected resource type UNKNOWN for resource g"
        result = DescribeConfigsResult(error_code=ErrorCode.INVALID_REQUEST, error_message=said)
        return DescribeConfigsResponse(results=(result,))

    fake.on(DescribeConfigsRequest, answer)
    with pytest.raises(BrokerRefused, match="the broker has no settings of groups") as refused:
        group_settings(fake.cluster(), "g")
    assert refused.value.code == ErrorCode.UNSUPPORTED_VERSION
    assert "and later" in str(refused.value.hint)


def test_topics_and_status(admin: ClusterView) -> None:
    assert [topic.name for topic in topics(admin)] == ["orders"]
    with pytest.raises(BrokerRefused, match="UNKNOWN_TOPIC_OR_PARTITION"):
        topics(admin, ["orders", "nope"])
    status = cluster_status(admin)
    assert (status.cluster_id, status.controller_id, status.topics, status.partitions) == ("fake", 1, 1, 4)
    assert [broker.id for broker in status.brokers] == [1, 2]


def test_offsets_come_from_the_leaders(fake: FakeCluster, admin: ClusterView, groups: Groups) -> None:
    groups.ends = {"orders:0": 7, "orders:1": 9}
    wanted = {TopicPartition("orders", p): LATEST for p in (0, 1, 8)} | {TopicPartition("no", 0): EARLIEST}
    found = list_offsets(admin, wanted)
    assert found[TopicPartition("orders", 0)] == ListedOffset(7, -1, -1)
    assert found[TopicPartition("orders", 1)] == ListedOffset(9, -1, -1)
    assert isinstance(found[TopicPartition("orders", 8)], BrokerRefused)
    assert isinstance(found[TopicPartition("no", 0)], BrokerRefused)
    assert [node for node, m, _ in fake.sent if isinstance(m, ListOffsetsRequest)] == [1, 2]


def test_a_leader_that_moved_is_looked_up_again(fake: FakeCluster, admin: ClusterView) -> None:
    codes = iter([ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NONE])

    def answer(node: int, request: ListOffsetsRequest) -> ListOffsetsResponse:
        told = ListOffsetsPartitionResponse(partition_index=0, error_code=next(codes), offset=3)
        return ListOffsetsResponse(topics=(ListOffsetsTopicResponse(name="orders", partitions=(told,)),))

    fake.on(ListOffsetsRequest, answer)
    partition = TopicPartition("orders", 0)
    assert list_offsets(admin, {partition: LATEST})[partition] == ListedOffset(3, -1, -1)


def test_a_special_time_needs_a_broker_that_knows_it(
    fake: FakeCluster, admin: ClusterView, groups: Groups
) -> None:
    fake.served[ListOffsetsRequest.API] = range(1, 7)
    partition = TopicPartition("orders", 0)
    answer = list_offsets(admin, {partition: MAX_TIMESTAMP})[partition]
    assert isinstance(answer, BrokerRefused)
    assert answer.name == "UNSUPPORTED_VERSION"


@pytest.mark.parametrize(
    ("reported", "number"),
    [("45000", 45_000), ("-1", -1), ("1_0", None), ("²", None), ("--1", None), ("", None), (None, None)],
)
def test_a_reported_setting_is_a_number_or_unknown(reported: str | None, number: int | None) -> None:
    assert number_of(reported) == number
