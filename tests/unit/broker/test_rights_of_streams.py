"""What an application of Kafka Streams needs, as KafkaApis of 4.3.1 checks it; codes, details are Kafka's."""

from __future__ import annotations

import pytest

from kgroup.broker.embedded import EmbeddedTransport
from kgroup.errors import ErrorCode
from kgroup.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from kgroup.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Topology,
)
from kgroup.protocol.streams_records import Subtopology, TopicInfo
from kgroup.runtime.clock import ManualClock
from kgroup.runtime.cluster import Cluster
from kgroup.runtime.settings import STANDARD_AUTHORIZER
from kgroup.security.acls import Acl, Operation, PatternType, Permission, ResourceType
from kgroup.security.principals import Principal
from tests.unit.broker.brokers import create_topic

BOB = Principal("User", "bob")
SETTINGS = {
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "super.users": "User:ANONYMOUS",
    "group.streams.initial.rebalance.delay.ms": "0",
}
CHANGELOG = "app-counts-changelog"
READ_GROUP = (Operation.READ, ResourceType.GROUP, "app")
SEE_SOURCE = (Operation.DESCRIBE, ResourceType.TOPIC, "orders")
SEE_CHANGELOG = (Operation.DESCRIBE, ResourceType.TOPIC, CHANGELOG)
CREATE = (Operation.CREATE, ResourceType.TOPIC, CHANGELOG)
CREATE_ANY = (Operation.CREATE, ResourceType.CLUSTER, "kafka-cluster")
Right = tuple[Operation, ResourceType, str]


def _cluster(*rights: Right) -> Cluster:
    cluster = Cluster(None, config=SETTINGS, clock=ManualClock(), seed=1, offsets_partitions=1)
    create_topic(EmbeddedTransport(cluster), "orders")
    assert cluster.acls is not None
    for operation, kind, name in rights:
        acl = Acl(kind, name, PatternType.LITERAL, str(BOB), "*", operation, Permission.ALLOW)
        cluster.acls.add([acl])
    return cluster


def _join(cluster: Cluster, source: str = "orders") -> StreamsGroupHeartbeatResponse:
    part = Subtopology(
        subtopology_id="0", source_topics=(source,), state_changelog_topics=(TopicInfo(name=CHANGELOG),)
    )
    request = StreamsGroupHeartbeatRequest(
        group_id="app",
        member_id="m",
        rebalance_timeout_ms=1000,
        process_id="p",
        topology=Topology(epoch=0, subtopologies=(part,)),
        active_tasks=(),
        standby_tasks=(),
        warmup_tasks=(),
    )
    answer = EmbeddedTransport(cluster, BOB).request(None, request)
    assert isinstance(answer, StreamsGroupHeartbeatResponse)
    return answer


@pytest.mark.parametrize(
    ("rights", "code"),
    [
        ((), ErrorCode.GROUP_AUTHORIZATION_FAILED),
        ((SEE_SOURCE, SEE_CHANGELOG), ErrorCode.GROUP_AUTHORIZATION_FAILED),
        ((READ_GROUP, SEE_SOURCE), ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ((READ_GROUP, SEE_SOURCE, SEE_CHANGELOG), ErrorCode.NONE),
    ],
)
def test_read_on_the_group_and_describe_on_every_topic(rights: tuple[Right, ...], code: ErrorCode) -> None:
    assert _join(_cluster(*rights)).error_code == code


def test_topics_that_may_not_be_created_are_told_and_not_created() -> None:
    cluster = _cluster(READ_GROUP, SEE_SOURCE, SEE_CHANGELOG)
    [status] = _join(cluster).status or ()
    assert status.status_detail == (
        f"Internal topics are missing: {CHANGELOG}; Unauthorized to CREATE on topics {CHANGELOG}."
    )
    assert CHANGELOG not in cluster.catalog.topics


@pytest.mark.parametrize("right", [CREATE, CREATE_ANY])
def test_who_may_create_them_has_them_created(right: Right) -> None:
    cluster = _cluster(READ_GROUP, SEE_SOURCE, SEE_CHANGELOG, right)
    [status] = _join(cluster).status or ()
    assert status.status_detail == f"Internal topics are missing: {CHANGELOG}"
    assert cluster.catalog.topics[CHANGELOG].partitions == cluster.catalog.topics["orders"].partitions


def test_internal_topics_of_kafka_are_no_sources() -> None:
    answer = _join(_cluster(READ_GROUP), "__consumer_offsets")
    assert answer.error_code == ErrorCode.STREAMS_INVALID_TOPOLOGY
    assert answer.error_message == (
        "Use of Kafka internal topics __consumer_offsets in a Kafka Streams topology is prohibited."
    )
    assert _join(_cluster(READ_GROUP), "no topic").error_message == (
        "Topic names no topic are not valid topic names."
    )


def test_a_group_is_described_to_who_may_see_all_its_topics() -> None:
    cluster = _cluster(READ_GROUP, SEE_SOURCE, SEE_CHANGELOG)
    _join(cluster)
    asked = StreamsGroupDescribeRequest(group_ids=("app", "other"), include_authorized_operations=True)

    def told(cluster: Cluster) -> list[tuple[str, int, bool]]:
        answer = EmbeddedTransport(cluster, BOB).request(None, asked)
        return sorted((g.group_id, g.error_code, g.topology is not None) for g in answer.groups)  # type: ignore[attr-defined]

    other = ("other", ErrorCode.GROUP_AUTHORIZATION_FAILED, False)
    assert told(cluster) == [("app", ErrorCode.NONE, True), other]
    assert cluster.acls is not None
    denied = Acl(
        ResourceType.TOPIC, CHANGELOG, PatternType.LITERAL, str(BOB), "*", Operation.ALL, Permission.DENY
    )
    cluster.acls.add([denied])
    assert told(cluster) == [("app", ErrorCode.TOPIC_AUTHORIZATION_FAILED, False), other]
