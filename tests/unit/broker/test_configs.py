"""Settings of topics and groups, told and changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgroup.broker.embedded import EmbeddedTransport
from kgroup.domain import OFFSETS_TOPIC, TRANSACTION_TOPIC, offsets_partition_of
from kgroup.errors import ErrorCode
from kgroup.log.partition import PartitionLog
from kgroup.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kgroup.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kgroup.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from kgroup.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kgroup.runtime.clock import ManualClock
from kgroup.runtime.cluster import Cluster
from tests.unit.broker.brokers import create_topic

TOPIC, BROKER, GROUP = 2, 4, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
HEARTBEAT, SESSION = "consumer.heartbeat.interval.ms", "consumer.session.timeout.ms"


def alter(
    transport: EmbeddedTransport,
    kind: int,
    name: str,
    *changes: tuple[int, str, str | None],
    check: bool = False,
) -> int:
    configs = tuple(AlterableConfig(name=k, config_operation=op, value=v) for op, k, v in changes)
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=check)
    answer = transport.request(None, request)
    assert isinstance(answer, IncrementalAlterConfigsResponse)
    return answer.responses[0].error_code


def told(transport: EmbeddedTransport, kind: int, name: str) -> dict[str, tuple[str | None, int]]:
    """Setting → value and source."""
    wanted = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
    answer = transport.request(None, DescribeConfigsRequest(resources=(wanted,)))
    assert isinstance(answer, DescribeConfigsResponse)
    return {entry.name: (entry.value, entry.config_source) for entry in answer.results[0].configs}


def heartbeat_interval(transport: EmbeddedTransport) -> int:
    """What a member that joins is told."""
    joining = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=("t",),
        topic_partitions=(),
    )
    cluster = transport.cluster
    node = offsets_partition_of("g", len(cluster.shards)) % cluster.brokers
    answer = transport.request(node, joining)
    assert isinstance(answer, ConsumerGroupHeartbeatResponse)
    assert answer.error_code == 0
    return answer.heartbeat_interval_ms


def test_a_groups_settings_act_and_last(tmp_path: Path) -> None:
    def opened() -> EmbeddedTransport:
        return EmbeddedTransport(Cluster(tmp_path, clock=ManualClock(), offsets_partitions=2))

    transport = opened()
    assert told(transport, GROUP, "g")[HEARTBEAT] == ("5000", 5)
    assert alter(transport, GROUP, "g", (SET, HEARTBEAT, "7000")) == 0
    assert heartbeat_interval(transport) == 7000
    transport.close()

    transport = opened()
    assert told(transport, GROUP, "g")[HEARTBEAT] == ("7000", 8)
    assert heartbeat_interval(transport) == 7000
    assert alter(transport, GROUP, "g", (DELETE, HEARTBEAT, None)) == 0
    assert heartbeat_interval(transport) == 5000
    transport.close()


def test_a_groups_settings_are_apart_from_the_group(transport: EmbeddedTransport) -> None:
    """CP-07, CP-09: set before the group is there, in force again after its deletion, not in its log."""
    cluster = transport.cluster
    partition = offsets_partition_of("g", len(cluster.shards))
    log = cluster.log(OFFSETS_TOPIC, partition)
    assert log is not None
    assert alter(transport, GROUP, "g", (SET, HEARTBEAT, "7000")) == 0
    assert log.end_offset == 0
    assert heartbeat_interval(transport) == 7000
    transport.run_until(cluster.clock.now_ms() + 60_000)
    deleted = transport.request(
        cluster.leader_of(OFFSETS_TOPIC, partition), DeleteGroupsRequest(groups_names=("g",))
    )
    assert isinstance(deleted, DeleteGroupsResponse)
    assert deleted.results[0].error_code == 0
    assert heartbeat_interval(transport) == 7000


@pytest.mark.parametrize(
    ("change", "code"),
    [
        pytest.param((SET, HEARTBEAT, "100"), ErrorCode.INVALID_CONFIG, id="below-the-brokers-bounds"),
        pytest.param((SET, "consumer.nonsense", "1"), ErrorCode.INVALID_CONFIG, id="unknown"),
        pytest.param((SET, HEARTBEAT, None), ErrorCode.INVALID_REQUEST, id="null"),
        pytest.param((APPEND, HEARTBEAT, "1"), ErrorCode.INVALID_CONFIG, id="append"),
        pytest.param((SET, SESSION, "50000"), ErrorCode.NONE, id="fine"),
    ],
)
def test_a_groups_settings_are_checked(
    transport: EmbeddedTransport, change: tuple[int, str, str | None], code: ErrorCode
) -> None:
    before = told(transport, GROUP, "g")
    assert alter(transport, GROUP, "g", change, check=True) == code
    assert told(transport, GROUP, "g") == before
    assert alter(transport, GROUP, "g", change) == code
    assert (told(transport, GROUP, "g") == before) == (code != ErrorCode.NONE)


def test_a_topics_settings(transport: EmbeddedTransport) -> None:
    create_topic(transport, "t")
    assert alter(transport, TOPIC, "t", (SET, "cleanup.policy", "compact")) == 0
    assert told(transport, TOPIC, "t")["cleanup.policy"] == ("compact", 1)
    assert alter(transport, TOPIC, "t", (SET, "cleanup.policy", "shred")) == ErrorCode.INVALID_CONFIG
    assert alter(transport, TOPIC, "t", (DELETE, "cleanup.policy", None)) == 0
    assert told(transport, TOPIC, "t")["cleanup.policy"] == ("delete", 5)
    gone = alter(transport, TOPIC, "nope", (SET, "cleanup.policy", "compact"))
    assert gone == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_brokers_settings_are_fixed(transport: EmbeddedTransport) -> None:
    assert alter(transport, BROKER, "0", (SET, "num.partitions", "2")) == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("changes", "then"),
    [
        ([(APPEND, "compact")], "delete,compact"),
        ([(APPEND, "delete")], "delete"),
        ([(SET, "compact"), (APPEND, "delete,compact")], "compact,delete"),
        ([(APPEND, "compact"), (SUBTRACT, "delete")], "compact"),
        ([(SUBTRACT, "delete,compact")], ""),
        ([(SUBTRACT, "nothing")], "delete"),
    ],
)
def test_lists_are_added_to_and_taken_from(
    transport: EmbeddedTransport, changes: list[tuple[int, str]], then: str
) -> None:
    create_topic(transport, "t")
    for operation, value in changes:
        assert alter(transport, TOPIC, "t", (operation, "cleanup.policy", value)) == 0
    assert told(transport, TOPIC, "t")["cleanup.policy"] == (then, 1)


def test_what_cannot_be_added_to(transport: EmbeddedTransport) -> None:
    create_topic(transport, "t")
    for change, code in [
        ((APPEND, "retention.ms", "1"), ErrorCode.INVALID_CONFIG),
        ((SUBTRACT, "nonsense", "1"), ErrorCode.INVALID_CONFIG),
        ((APPEND, "cleanup.policy", "shred"), ErrorCode.INVALID_CONFIG),
        ((APPEND, "cleanup.policy", None), ErrorCode.INVALID_REQUEST),
        ((7, "cleanup.policy", "delete"), ErrorCode.INVALID_REQUEST),
    ]:
        assert alter(transport, TOPIC, "t", change) == code
    assert told(transport, TOPIC, "t")["cleanup.policy"] == ("delete", 5)


def test_settings_of_brokers_act_at_once_and_survive_a_restart(tmp_path: Path) -> None:
    transport = EmbeddedTransport(Cluster(tmp_path, offsets_partitions=1, config={"max.connections": "9"}))
    create_topic(transport, "t")
    largest, most = "message.max.bytes", "max.connections"
    assert alter(transport, BROKER, "", (SET, largest, "500"), (SET, most, "7"), check=True) == 0
    assert told(transport, BROKER, "") == {}
    assert alter(transport, BROKER, "", (SET, largest, "500"), (SET, most, "7")) == 0
    assert alter(transport, BROKER, "0", (SET, largest, "400")) == 0
    for _ in range(2):
        cluster = transport.cluster
        assert told(transport, BROKER, "") == {largest: ("500", 3), most: ("7", 3)}
        assert told(transport, BROKER, "0")[largest] == ("400", 2)
        assert told(transport, TOPIC, "t")["max.message.bytes"] == ("400", 2)
        assert (cluster.topic_settings("t").max_message_bytes, cluster.settings.connections_max) == (400, 7)
        transport.close()
        transport = EmbeddedTransport(Cluster(tmp_path, config={most: "9"}))
    assert alter(transport, BROKER, "0", (DELETE, largest, None)) == 0
    assert told(transport, TOPIC, "t")["max.message.bytes"] == ("500", 3)
    assert alter(transport, BROKER, "", (DELETE, largest, None), (DELETE, most, None)) == 0
    assert told(transport, TOPIC, "t")["max.message.bytes"] == ("1048588", 5)
    assert transport.cluster.settings.connections_max == 9
    transport.close()


def test_brokers_take_only_what_can_change_while_they_run(transport: EmbeddedTransport) -> None:
    for entity, change, code in [
        ("0", (SET, "broker.id", "1"), ErrorCode.INVALID_REQUEST),
        ("0", (SET, "log.cleanup.policy", "shred"), ErrorCode.INVALID_REQUEST),
        ("0", (APPEND, "log.cleanup.policy", "compact"), ErrorCode.NONE),
        ("0", (APPEND, "message.max.bytes", "1"), ErrorCode.INVALID_CONFIG),
        ("0", (APPEND, "nonsense", "1"), ErrorCode.INVALID_CONFIG),
        ("1", (SET, "message.max.bytes", "1"), ErrorCode.INVALID_REQUEST),  # another broker was asked
        ("one", (SET, "message.max.bytes", "1"), ErrorCode.INVALID_REQUEST),
        ("0_0", (SET, "message.max.bytes", "1"), ErrorCode.INVALID_REQUEST),
        (" 0", (SET, "message.max.bytes", "1"), ErrorCode.INVALID_REQUEST),
        ("0", (SET, "max.connections", "5"), ErrorCode.INVALID_REQUEST),  # one process for all three
        ("", (SET, "max.connections", "5"), ErrorCode.NONE),
        ("", (SET, "log.cleaner.backoff.ms", "0"), ErrorCode.INVALID_REQUEST),
    ]:
        assert alter(transport, BROKER, entity, change) == code, (entity, change)


def test_a_brokers_own_settings_hold_for_the_partitions_it_leads(transport: EmbeddedTransport) -> None:
    create_topic(transport, "t", 2)
    assert alter(transport, BROKER, "0", (SET, "message.max.bytes", "5")) == 0
    cluster = transport.cluster
    assert [cluster.topic_settings("t", node).max_message_bytes for node in (0, 1)] == [5, 1048588]


def test_segments_take_a_new_size_at_once(tmp_path: Path) -> None:
    transport = EmbeddedTransport(Cluster(tmp_path, offsets_partitions=1))
    create_topic(transport, "t")
    log = transport.cluster.log("t", 0)
    assert isinstance(log, PartitionLog)
    assert alter(transport, TOPIC, "t", (SET, "segment.bytes", "2000000")) == 0
    assert log.segment_bytes == 2_000_000
    transport.close()


@pytest.mark.parametrize("topic", [OFFSETS_TOPIC, TRANSACTION_TOPIC])
def test_topics_of_state_tell_segments_shorter_than_others_may_have(topic: str) -> None:
    small = {"offsets.topic.segment.bytes": "65536", "transaction.state.log.segment.bytes": "65536"}
    transport = EmbeddedTransport(Cluster(None, offsets_partitions=1, config=small))
    transport.dispatcher.transactions.ready()
    assert told(transport, TOPIC, topic)["segment.bytes"] == ("65536", 1)
    transport.close()
