"""Removing members: who is chosen, what is sent, what is answered, and when it is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kgroup.admin.change.remove_members import (
    Selection,
    execute_removal,
    plan_document,
    plan_from,
    plan_removal,
)
from kgroup.admin.discovery import ClusterView
from kgroup.admin.journal import Journal
from kgroup.client.retry import OutcomeUnknown
from kgroup.errors import BrokerRefused, ConfigError, ErrorCode, SafetyRefused, StorageError
from kgroup.protocol.messages import describe_groups as dg
from kgroup.protocol.messages.describe_groups import DescribedGroupMember
from kgroup.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse
from tests.unit.admin.fake_cluster import FakeCluster
from tests.unit.admin.groups import Groups, classic_group, classic_member, consumer_group, consumer_member

CLASSIC = classic_group(
    "g",
    classic_member("m1", "orders:0", "a", host="/10.0.9.1"),
    classic_member("m2", "orders:1,2", "b", host="/10.0.9.2"),
    classic_member("m3", host="/10.0.8.1"),
)
CONSUMER = consumer_group(
    "co",
    consumer_member("c1", "orders:0", instance="x", epoch=-2),
    consumer_member("c2", "orders:1", instance="y"),
)


class Leaving:
    """A coordinator that answers LeaveGroup with the codes given for instance or member ids."""

    def __init__(self, fake: FakeCluster, codes: dict[str, ErrorCode] | None = None) -> None:
        self.codes = codes or {}
        self.whole = ErrorCode.NONE
        fake.on(LeaveGroupRequest, self.answer)

    def answer(self, node: int, request: LeaveGroupRequest) -> LeaveGroupResponse:
        members = tuple(
            MemberResponse(
                member_id=m.member_id,
                group_instance_id=m.group_instance_id,
                error_code=self.codes.get(m.group_instance_id or m.member_id, ErrorCode.NONE),
            )
            for m in request.members
        )
        return LeaveGroupResponse(error_code=self.whole, members=members)


@pytest.fixture
def fake() -> FakeCluster:
    return FakeCluster()


@pytest.fixture
def groups(fake: FakeCluster) -> Groups:
    return Groups(fake).add(CLASSIC, CONSUMER)


@pytest.fixture
def leaving(fake: FakeCluster) -> Leaving:
    return Leaving(fake)


@pytest.fixture
def admin(fake: FakeCluster, groups: Groups, leaving: Leaving, tmp_path: Path) -> ClusterView:
    return ClusterView(fake, retry=fake.retry(), journal=Journal(tmp_path / "state" / "journal.jsonl"))


def sent(fake: FakeCluster) -> list[tuple[str, str | None, str | None]]:
    return [
        (m.member_id, m.group_instance_id, m.reason)
        for request in fake.requests(LeaveGroupRequest)
        for m in request.members
    ]


@pytest.mark.parametrize(
    ("group", "selection", "chosen"),
    [
        ("g", Selection(instance_ids=("b", "a")), ["a", "b"]),
        ("g", Selection(member_ids=("m3", "m1")), ["a", "m3"]),
        ("g", Selection(hosts=("10.0.9.*",)), ["a", "b"]),
        ("g", Selection(instance_ids=("a",), hosts=("10.0.8.*",)), ["a", "m3"]),
        ("g", Selection(all=True), ["a", "b", "m3"]),
        ("g", Selection(left_only=True), []),
        ("co", Selection(left_only=True), ["x"]),
        ("co", Selection(left_only=True, all=True), ["x"]),
        ("co", Selection(left_only=True, instance_ids=("y",)), []),
    ],
)
def test_who_is_chosen(
    admin: ClusterView, fake: FakeCluster, group: str, selection: Selection, chosen: list[str]
) -> None:
    """SM-78: all instance ids of a host at once, among other ways to say it."""
    plan = plan_removal(admin, group, selection)
    assert [item.instance_id or item.member_id for item in plan.items] == chosen
    assert {item.result for item in plan.items} <= {"planned"}
    assert sent(fake) == []


def test_sm_61_and_62_a_batch_has_an_outcome_for_each_member(
    admin: ClusterView, fake: FakeCluster, leaving: Leaving
) -> None:
    """SM-54, SM-55, SM-58, SM-61, SM-62: one request; removed, unknown and fenced told apart."""
    leaving.codes = {"b": ErrorCode.FENCED_INSTANCE_ID, "nobody": ErrorCode.UNKNOWN_MEMBER_ID}
    plan = plan_removal(admin, "g", Selection(instance_ids=("a", "b", "nobody")), "drain INC-1")
    done = execute_removal(admin, plan)
    assert [(i.instance_id, i.result, i.error_code) for i in done.items] == [
        ("a", "removed", None),
        ("b", "failed", "FENCED_INSTANCE_ID"),
        ("nobody", "not_found", "UNKNOWN_MEMBER_ID"),
    ]
    assert sent(fake) == [
        ("m1", "a", "drain INC-1"),
        ("m2", "b", "drain INC-1"),
        ("", "nobody", "drain INC-1"),
    ]
    assert len(fake.requests(LeaveGroupRequest)) == 1


def test_consumer_groups_go_the_same_way_and_are_bound_to_the_group_epoch(
    admin: ClusterView, fake: FakeCluster
) -> None:
    plan = plan_removal(admin, "co", Selection(instance_ids=("x",)))
    assert plan.valid_while == {"group_epoch": 5}
    assert "removed for good" in plan.items[0].effect
    assert execute_removal(admin, plan).items[0].result == "removed"
    assert sent(fake) == [("c1", "x", "removed by an administrator with kgroup")]


@pytest.mark.parametrize(
    ("group", "who", "served", "told"),
    [
        ("co", "y", 5, ("failed", "UNSUPPORTED_VERSION")),
        ("co", "y", 6, ("not_found", "UNKNOWN_MEMBER_ID")),
        ("g", "a", 5, ("not_found", "UNKNOWN_MEMBER_ID")),
    ],
)
def test_a_member_that_the_broker_does_not_remove_was_in_the_group(
    admin: ClusterView, fake: FakeCluster, leaving: Leaving, group: str, who: str, served: int, told: object
) -> None:
    """Kafka 3.9 does not know members of the consumer protocol here: they "were not in the group"."""
    fake.served[dg.DescribeGroupsRequest.API] = range(served + 1)
    leaving.codes[who] = ErrorCode.UNKNOWN_MEMBER_ID
    plan = plan_removal(admin, group, Selection(instance_ids=(who,)))
    assert ("brokers before 4.0" in plan.items[0].effect) == (told == ("failed", "UNSUPPORTED_VERSION"))
    (item,) = execute_removal(admin, plan).items
    assert (item.result, item.error_code) == told


def test_the_reason_is_cut_to_what_brokers_take(admin: ClusterView, fake: FakeCluster) -> None:
    execute_removal(admin, plan_removal(admin, "g", Selection(instance_ids=("a",)), "x" * 300))
    assert sent(fake)[0][2] == "x" * 255


def test_a_plan_is_stale_once_the_group_has_changed(
    admin: ClusterView, fake: FakeCluster, groups: Groups
) -> None:
    classic = plan_removal(admin, "g", Selection(all=True))
    consumer = plan_removal(admin, "co", Selection(all=True))
    groups.add(
        classic_group("g", classic_member("m1", "orders:0", "a")),
        consumer_group("co", consumer_member("c1"), epoch=6, assignment_epoch=6),
    )
    for plan in (classic, consumer):
        with pytest.raises(SafetyRefused, match="stale"):
            execute_removal(admin, plan)
    assert sent(fake) == []
    assert admin.journal.entries() == ()


def test_a_plan_survives_a_file_and_its_id_depends_on_nothing_but_its_content(admin: ClusterView) -> None:
    plan = plan_removal(admin, "g", Selection(all=True))
    read = plan_from(json.loads(json.dumps(plan_document(plan))))
    assert (read.id, read.items, read.valid_while) == (plan.id, plan.items, plan.valid_while)
    assert plan_removal(admin, "g", Selection(all=True)).id == plan.id
    assert plan_removal(admin, "g", Selection(instance_ids=("a",))).id != plan.id
    assert [item.result for item in execute_removal(admin, read).items] == ["removed"] * 3
    with pytest.raises(ConfigError):
        plan_from({"id": "x"})


@pytest.mark.parametrize(
    ("selection", "words"),
    [
        (Selection(instance_ids=("a",)), "serves LeaveGroup 0-2, removing by instance id needs 3+"),
        (Selection(member_ids=("m3", "m4")), "serves LeaveGroup 0-2, removing several members needs 3+"),
    ],
)
def test_sm_60_a_broker_without_batches_is_told_apart(
    admin: ClusterView, fake: FakeCluster, selection: Selection, words: str
) -> None:
    """SM-60, SM-63: UNSUPPORTED_VERSION with the gap in words."""
    fake.served[LeaveGroupRequest.API] = range(3)
    with pytest.raises(BrokerRefused, match="needs 3") as caught:
        execute_removal(admin, plan_removal(admin, "g", selection))
    assert words in caught.value.message
    assert caught.value.name == "UNSUPPORTED_VERSION"
    failure = {"result": "failed", "error_code": "UNSUPPORTED_VERSION", "effect": caught.value.message}
    results = admin.journal.entries()[0].results
    assert results and all(failure.items() <= result.items() for result in results)


@pytest.mark.parametrize(("code", "result"), [("NONE", "removed"), ("UNKNOWN_MEMBER_ID", "not_found")])
def test_sm_60_one_dynamic_member_can_leave_an_old_broker(
    admin: ClusterView, fake: FakeCluster, leaving: Leaving, code: str, result: str
) -> None:
    fake.served[LeaveGroupRequest.API] = range(3)
    leaving.whole = ErrorCode[code]
    done = execute_removal(admin, plan_removal(admin, "g", Selection(member_ids=("m3",))))
    assert [item.result for item in done.items] == [result]
    assert [request.member_id for request in fake.requests(LeaveGroupRequest)] == ["m3"]


@pytest.mark.parametrize("versions", [range(6), range(3)])
def test_sm_63_the_whole_request_may_be_refused(
    admin: ClusterView, fake: FakeCluster, leaving: Leaving, versions: range
) -> None:
    fake.served[LeaveGroupRequest.API] = versions
    leaving.whole = ErrorCode.GROUP_AUTHORIZATION_FAILED
    with pytest.raises(BrokerRefused) as caught:
        execute_removal(admin, plan_removal(admin, "g", Selection(member_ids=("m3",))))
    assert caught.value.name == "GROUP_AUTHORIZATION_FAILED"


def test_sm_64_only_what_read_on_the_group_allows_is_asked(
    admin: ClusterView, fake: FakeCluster, leaving: Leaving
) -> None:
    """SM-64: READ implies DESCRIBE; nothing that needs ALTER or rights on the cluster is sent."""
    execute_removal(admin, plan_removal(admin, "g", Selection(instance_ids=("a",))))
    asked = {type(message).__name__ for _, message, _ in fake.sent}
    allowed = {"Metadata", "FindCoordinator", "ListGroups", "DescribeGroups", "ConsumerGroupDescribe"}
    assert asked <= {f"{name}Request" for name in (*allowed, "LeaveGroup")}


def test_without_an_answer_nothing_is_sent_again(admin: ClusterView, fake: FakeCluster) -> None:
    def lose(node: int, request: LeaveGroupRequest) -> LeaveGroupResponse:
        raise OutcomeUnknown("b1:9092 broke off")

    fake.on(LeaveGroupRequest, lose)
    done = execute_removal(admin, plan_removal(admin, "g", Selection(instance_ids=("a",))))
    assert [(item.result, item.error_code) for item in done.items] == [("failed", "OUTCOME_UNKNOWN")]
    assert len(fake.requests(LeaveGroupRequest)) == 1


def test_a_removal_that_is_interrupted_leaves_an_entry_that_ended(
    admin: ClusterView, fake: FakeCluster
) -> None:
    """It stayed at its beginning, as after a crash."""

    def interrupt(node: int, request: LeaveGroupRequest) -> LeaveGroupResponse:
        raise KeyboardInterrupt

    fake.on(LeaveGroupRequest, interrupt)
    plan = plan_removal(admin, "g", Selection(instance_ids=("a", "b")))
    with pytest.raises(KeyboardInterrupt):
        execute_removal(admin, plan)
    (entry,) = admin.journal.entries()
    assert entry.results is not None
    assert [(r["instance_id"], r["result"], r["error_code"]) for r in entry.results] == [
        ("a", "failed", "INTERRUPTED"),
        ("b", "failed", "INTERRUPTED"),
    ]


def test_a_coordinator_that_moved_is_followed(
    admin: ClusterView, fake: FakeCluster, leaving: Leaving
) -> None:
    """SM-62, for the change itself: NOT_COORDINATOR proves that nothing was done."""
    plan = plan_removal(admin, "g", Selection(instance_ids=("a",)))
    nodes = []

    def answer(node: int, request: LeaveGroupRequest) -> LeaveGroupResponse:
        nodes.append(node)
        leaving.whole = ErrorCode.NOT_COORDINATOR if node == 1 else ErrorCode.NONE
        fake.coordinator_of["g"] = 2
        return leaving.answer(node, request)

    fake.on(LeaveGroupRequest, answer)
    assert execute_removal(admin, plan).items[0].result == "removed"
    assert nodes == [1, 2]


def test_a_worker_whose_assignment_cannot_be_read_does_not_own_nothing(
    admin: ClusterView, groups: Groups
) -> None:
    worker = DescribedGroupMember(member_id="w1", member_metadata=b"\1\2", member_assignment=b"\3" * 312)
    groups.add(classic_group("connect", worker, protocol_type="connect"))
    (item,) = plan_removal(admin, "connect", Selection(all=True)).items
    assert "what it runs is unknown (312 bytes that are not the consumer protocol's)" in item.effect


def test_a_broker_that_tells_no_instance_ids_is_not_taken_for_a_group_without(
    admin: ClusterView, fake: FakeCluster, groups: Groups
) -> None:
    """Kafka 2.3: DescribeGroups 0-3, LeaveGroup 0-2."""
    fake.served |= {15: range(4), 13: range(3), 69: None}
    with pytest.raises(BrokerRefused, match="neither reports instance ids nor removes") as refused:
        plan_removal(admin, "g", Selection(instance_ids=("a",)))
    assert "Kafka 2.4" in str(refused.value.hint)
    assert [i.result for i in plan_removal(admin, "g", Selection(member_ids=("m3",))).items] == ["planned"]


def test_what_is_no_plan(admin: ClusterView, groups: Groups, fake: FakeCluster) -> None:
    groups.listed, fake.served[89] = {"st": "Streams"}, None
    with pytest.raises(SafetyRefused, match="no member is selected"):
        plan_removal(admin, "g", Selection())
    with pytest.raises(SafetyRefused, match="streams group"):
        plan_removal(admin, "st", Selection(all=True))
    with pytest.raises(BrokerRefused, match="GROUP_ID_NOT_FOUND"):
        plan_removal(admin, "nope", Selection(all=True))


def test_the_journal_has_the_plan_the_results_and_what_was_before(admin: ClusterView) -> None:
    done = execute_removal(admin, plan_removal(admin, "g", Selection(instance_ids=("a",)), "why"))
    entry = admin.journal.find("LAST")
    assert entry is not None
    assert entry.id == done.journal_id == "j-0001"
    assert (entry.command, entry.cluster_id, entry.plan["reason"]) == ("remove-members", "fake", "why")
    assert [member["member_id"] for member in entry.before["members"]] == ["m1", "m2", "m3"]
    assert entry.results is not None
    assert entry.results[0]["result"] == "removed"


def test_nothing_is_changed_when_the_journal_cannot_be_written(
    admin: ClusterView, fake: FakeCluster, tmp_path: Path
) -> None:
    (tmp_path / "state").write_text("a file where the folder should be")
    with pytest.raises(StorageError, match="cannot be written"):
        execute_removal(admin, plan_removal(admin, "g", Selection(all=True)))
    assert sent(fake) == []
