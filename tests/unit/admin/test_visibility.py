"""What proves that all groups are seen, and what is said where nothing could be found out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kgroup.admin.read.visibility import unseen_groups
from kgroup.client.retry import OutcomeUnknown
from kgroup.domain import OFFSETS_TOPIC
from kgroup.errors import ErrorCode
from kgroup.protocol.codec import Message
from kgroup.protocol.messages import describe_groups as dg
from kgroup.protocol.messages.describe_cluster import DescribeClusterRequest
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
    return [(error.item, error.code) for error in unseen_groups(fake.cluster(), [1, 2], [])]


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
    (error,) = unseen_groups(fake.cluster(), [1, 2], [])
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
