"""What proves that all groups are seen, and what is said where nothing could be found out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kgroup.admin.read.listing import list_groups
from kgroup.admin.read.visibility import GROUP_PROBES, GroupSight
from kgroup.client.retry import OutcomeUnknown
from kgroup.domain import OFFSETS_TOPIC, offsets_partition_of
from kgroup.errors import ErrorCode
from kgroup.protocol.codec import Message
from kgroup.protocol.messages import describe_groups as dg
from kgroup.protocol.messages.describe_cluster import DescribeClusterRequest
from kgroup.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from kgroup.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.unit.admin.fake_cluster import FakeCluster
from tests.unit.admin.groups import Groups


@pytest.fixture
def fake() -> FakeCluster:
    fake = FakeCluster(topics={OFFSETS_TOPIC: 4})
    Groups(fake)
    return fake


def broken_off(node: int, request: Message) -> Message:
    raise OutcomeUnknown("b1:9092 broke off")


def denied(node: int, request: dg.DescribeGroupsRequest) -> dg.DescribeGroupsResponse:
    code = ErrorCode.GROUP_AUTHORIZATION_FAILED
    return dg.DescribeGroupsResponse(
        groups=tuple(dg.DescribedGroup(group_id=name, error_code=code) for name in request.groups)
    )


def told(fake: FakeCluster) -> list[tuple[str, str]]:
    return [(error.item, error.code) for error in GroupSight(fake.cluster()).unseen([1, 2], [])]


def test_a_right_to_the_cluster_or_to_any_group_proves_that_all_are_seen(fake: FakeCluster) -> None:
    assert told(fake) == []
    fake.cluster_operations = 0
    assert told(fake) == []
    fake.on(dg.DescribeGroupsRequest, denied)
    assert told(fake) == [("groups", "CLUSTER_AUTHORIZATION_FAILED")]


def test_a_question_without_an_answer_is_no_missing_right(fake: FakeCluster) -> None:
    """It was told as CLUSTER_AUTHORIZATION_FAILED, with a hint to ask for rights."""
    fake.cluster_operations = 0
    fake.on(dg.DescribeGroupsRequest, broken_off)
    assert told(fake) == [("groups", "UNREACHABLE")]
    (error,) = GroupSight(fake.cluster()).unseen([1, 2], [])
    assert "not known: b1:9092 broke off" in error.message


def test_the_right_to_the_cluster_may_be_there_although_nobody_could_tell(fake: FakeCluster) -> None:
    fake.on(DescribeClusterRequest, broken_off)
    assert told(fake) == []
    fake.on(dg.DescribeGroupsRequest, denied)
    assert told(fake) == [("groups", "UNREACHABLE")]


@pytest.mark.parametrize("newest", [8, 10])
def test_a_broker_without_describe_cluster_tells_the_right_in_its_metadata(
    newest: int, fake: FakeCluster
) -> None:
    """Kafka 2.3 to 2.7; `DescribeCluster` came with 2.8 (KIP-700)."""
    fake.served = {DescribeClusterRequest.API: None, MetadataRequest.API: range(newest + 1)}
    fake.on(dg.DescribeGroupsRequest, denied)
    metadata = fake.handlers[MetadataRequest]

    def with_bits(node: int, request: Message) -> Message:
        assert isinstance(request, MetadataRequest)
        asked = request.include_cluster_authorized_operations
        answer = metadata(node, request)
        assert isinstance(answer, MetadataResponse)
        return replace(answer, cluster_authorized_operations=0xFF8) if asked else answer

    fake.on(MetadataRequest, with_bits)
    assert told(fake) == []


def test_a_question_that_broke_off_is_asked_again(fake: FakeCluster) -> None:
    """One lost connection leaves nothing unknown: to ask for rights changes nothing."""
    answer = fake.handlers[DescribeClusterRequest]

    def broken_once(node: int, request: Message) -> Message:
        return (answer if len(fake.requests(DescribeClusterRequest)) > 1 else broken_off)(node, request)

    fake.on(DescribeClusterRequest, broken_once).on(dg.DescribeGroupsRequest, denied)
    assert told(fake) == []


def loaded_by(fake: FakeCluster, *nodes: int) -> FakeCluster:
    """Have the brokers list no groups, and only `nodes` have loaded what they lead."""
    describe = fake.handlers[dg.DescribeGroupsRequest]

    def answer(node: int, request: dg.DescribeGroupsRequest) -> Message:
        if node in nodes or request.groups == GROUP_PROBES:
            return describe(node, request)
        code = ErrorCode.NOT_COORDINATOR
        return dg.DescribeGroupsResponse(
            groups=tuple(dg.DescribedGroup(group_id=name, error_code=code) for name in request.groups)
        )

    fake.on(ListGroupsRequest, lambda node, request: ListGroupsResponse())
    return fake.on(dg.DescribeGroupsRequest, answer)


def test_a_broker_that_has_not_loaded_what_it_leads_hides_groups(fake: FakeCluster) -> None:
    """It lists nothing and reports no error: `wait` ended with 0 while groups were unseen."""
    assert list_groups(loaded_by(fake, 1, 2).cluster()).errors == ()
    (error,) = list_groups(loaded_by(fake, 1).cluster()).errors
    assert error.code == "COORDINATOR_NOT_AVAILABLE"
    assert (
        error.message
        == "groups of __consumer_offsets 1, 3 are not seen: a broker has just begun to lead them"
    )


def test_a_broker_that_leads_only_after_it_listed_hides_groups(fake: FakeCluster) -> None:
    """The leaders are those of the time when brokers listed, and not of the time after."""
    fake = loaded_by(fake, 1, 2)
    fake.leaders = {OFFSETS_TOPIC: {2: -1}}

    def elected(node: int, request: Message) -> Message:
        fake.leaders = {}
        return ListGroupsResponse()

    (error,) = list_groups(fake.on(ListGroupsRequest, elected).cluster()).errors
    assert error.message == "groups of __consumer_offsets 2 are not seen: a broker has just begun to lead it"


@pytest.mark.parametrize("partitions", [1, 2, 50, 337])
def test_each_partition_is_asked_for(partitions: int, fake: FakeCluster) -> None:
    fake.topics[OFFSETS_TOPIC] = partitions
    list_groups(loaded_by(fake, 1, 2).cluster())
    asked = [request.groups for request in fake.requests(dg.DescribeGroupsRequest)]
    held = [offsets_partition_of(name, partitions) for names in asked for name in names]
    assert sorted(held) == list(range(partitions))
