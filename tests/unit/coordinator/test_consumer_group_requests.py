"""Requests about consumer groups besides what their members say, and whether they are served at all."""

from __future__ import annotations

import pytest

from kgroup.coordinator.config import GroupConfig
from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.errors import ConfigError
from kgroup.errors import ErrorCode as E
from kgroup.protocol import group_records as r
from kgroup.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from kgroup.protocol.messages.consumer_group_heartbeat import (
    Assignor,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kgroup.runtime.shard import Shard
from tests.unit.coordinator.shards import NOW_MS, ask, shard_over

SHIPPED = {
    "group.consumer.session.timeout.ms": "45000",
    "group.consumer.min.session.timeout.ms": "45000",
    "group.consumer.max.session.timeout.ms": "60000",
    "group.consumer.heartbeat.interval.ms": "5000",
    "group.consumer.min.heartbeat.interval.ms": "5000",
    "group.consumer.max.heartbeat.interval.ms": "15000",
    "group.consumer.max.size": "2147483647",
    "group.consumer.assignors": "uniform,range",
    "group.consumer.migration.policy": "bidirectional",
    "group.consumer.assignment.interval.ms": "1000",
}


def join(shard: Shard, group: str = "g") -> ConsumerGroupHeartbeatResponse:
    request = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=("t1",),
        topic_partitions=(),
    )
    answer = ask(shard, request)
    assert isinstance(answer, ConsumerGroupHeartbeatResponse)
    return answer


def test_what_a_member_says_of_itself_is_kept() -> None:
    """CP-01, CP-02: the group's epoch and each of the member's fields, in memory and through the log."""
    shard = shard_over(config=GroupConfig(client_assignors=True))
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        member_epoch=0,
        instance_id="i",
        rack_id="r",
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=("t1",),
        subscribed_topic_regex="t2",
        server_assignor="range",
        topic_partitions=(),
        client_assignors=(Assignor(name="mine", reason=2), Assignor(name="other")),
    )
    ask(shard, request)
    for _ in range(2):
        group = shard.coordinator.state.groups["g"]
        assert isinstance(group, ConsumerGroup)
        said = group.members["m"].metadata
        assert (said.instance_id, said.rack_id, said.client_id, said.client_host) == (
            "i",
            "r",
            "client",
            "/127.0.0.1",
        )
        assert (said.subscribed_topic_names, said.subscribed_topic_regex) == (("t1",), "t2")
        assert (said.rebalance_timeout_ms, said.server_assignor) == (30_000, "range")
        assert [(a.name, a.reason) for a in said.client_assignors] == [("mine", 2), ("other", 0)]
        assert group.epoch == 2
        shard.load(NOW_MS)


def test_groups_are_described_side_by_side_with_those_that_are_not_there() -> None:
    """CP-41: in the order asked; unknown groups and groups of another type are GROUP_ID_NOT_FOUND."""
    classic = r.GroupMetadataValue(protocol_type="consumer", generation=1, protocol=None, leader=None)
    shard = shard_over([(r.GroupMetadataKey(group="classic"), classic)])
    join(shard)
    answer = ask(shard, ConsumerGroupDescribeRequest(group_ids=("nope", "g", "classic")))
    assert isinstance(answer, ConsumerGroupDescribeResponse)
    assert [(g.group_id, g.error_code) for g in answer.groups] == [
        ("nope", E.GROUP_ID_NOT_FOUND),
        ("g", E.NONE),
        ("classic", E.GROUP_ID_NOT_FOUND),
    ]
    assert [(m.member_id, m.subscribed_topic_names) for m in answer.groups[1].members] == [("m", ("t1",))]


@pytest.mark.parametrize(
    ("protocols", "code"), [("classic", E.UNSUPPORTED_VERSION), ("classic,consumer", E.NONE)]
)
def test_the_protocol_can_be_switched_off(protocols: str, code: E) -> None:
    """CP-65: heartbeats are told UNSUPPORTED_VERSION, and no group comes of them."""
    config = GroupConfig.of({"group.coordinator.rebalance.protocols": protocols})
    shard = shard_over(config=config)
    assert join(shard).error_code == code
    assert ("g" in shard.coordinator.state.groups) == (code == E.NONE)


def test_settings_have_kafkas_names_and_defaults() -> None:
    """CP-64."""
    told = GroupConfig().as_text()
    assert {name: told[name] for name in SHIPPED} == SHIPPED
    assert GroupConfig.of(SHIPPED) == GroupConfig()


def test_assignors_may_be_given_by_kafkas_class_names() -> None:
    classes = "org.apache.kafka.coordinator.group.assignor."
    given = {"group.consumer.assignors": f"{classes}RangeAssignor, {classes}UniformAssignor"}
    assert GroupConfig.of(given).consumer_assignors == ("range", "uniform")


@pytest.mark.parametrize(
    ("name", "value", "bound"),
    [
        ("group.consumer.assignors", "com.example.Own", "use uniform, range"),
        ("group.streams.session.timeout.ms", "44999", "at least group.streams.min.session.timeout.ms=45000"),
        ("group.streams.session.timeout.ms", "60001", "group.streams.max.session.timeout.ms=60000 must be"),
        ("group.streams.heartbeat.interval.ms", "15001", "group.streams.max.heartbeat.interval.ms=15000"),
        ("group.streams.num.standby.replicas", "3", "group.streams.max.standby.replicas=2"),
        ("group.streams.min.assignment.interval.ms", "15001", "must be at least"),
        ("group.max.size", "0", "must be at least 1"),
        ("group.max.size", "1_0", "Not a number of type INT"),
        ("offsets.retention.minutes", "2147483648", "Not a number of type INT"),
    ],
)
def test_a_setting_kafka_refuses_is_refused_with_its_bound(name: str, value: str, bound: str) -> None:
    with pytest.raises(ConfigError) as refused:
        GroupConfig.of({name: value})
    assert name in str(refused.value)
    assert bound in str(refused.value)
