"""Assignment epochs when a group changes its protocol (KIP-1251)."""

from __future__ import annotations

import pytest

from kgroup.coordinator.config import GroupConfig
from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.domain import TopicPartition
from kgroup.errors import ErrorCode as E
from kgroup.protocol import group_records as r
from kgroup.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kgroup.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kgroup.protocol.subscription import Assignment, Subscription
from kgroup.runtime.shard import Shard
from tests.unit.coordinator.shards import TOPIC_ID, ask, shard_over

GENERATION = 7
NAMES_UNTIL = 9


@pytest.fixture
def shard() -> Shard:
    """A classic group of one member, at generation 7 with all four partitions, that somebody has upgraded."""
    held = tuple(TopicPartition("t1", number) for number in range(4))
    member = r.MemberMetadata(
        member_id="m",
        group_instance_id=None,
        client_id="c",
        client_host="/h",
        rebalance_timeout=20_000,
        session_timeout=10_000,
        subscription=Subscription(("t1",)).encode(),
        assignment=Assignment(held).encode(),
    )
    group = r.GroupMetadataValue(
        protocol_type="consumer", generation=GENERATION, protocol="range", leader="m", members=(member,)
    )
    made = shard_over([(r.GroupMetadataKey(group="g"), group)], config=GroupConfig(assignment_interval_ms=0))
    assert beat(made, 0).member_epoch == GENERATION + 1
    return made


def beat(shard: Shard, epoch: int) -> ConsumerGroupHeartbeatResponse:
    joins = epoch == 0
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="new",
        member_epoch=epoch,
        rebalance_timeout_ms=30_000 if joins else -1,
        subscribed_topic_names=("t1",) if joins else None,
        topic_partitions=() if joins else None,
    )
    answer = ask(shard, request)
    assert isinstance(answer, ConsumerGroupHeartbeatResponse)
    return answer


def commit(shard: Shard, generation: int) -> int:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    request = OffsetCommitRequest(
        group_id="g",
        member_id="m",
        generation_id_or_member_epoch=generation,
        topics=(OffsetCommitRequestTopic(name="t1", partitions=(partition,)),),
    )
    answer = ask(shard, request, NAMES_UNTIL)
    assert isinstance(answer, OffsetCommitResponse)
    return answer.topics[0].partitions[0].error_code


def test_an_upgrade_makes_the_generation_every_partitions_epoch(shard: Shard) -> None:
    """AE-26: also in the log, so that a coordinator loaded from it has the same."""
    for _ in range(2):
        group = shard.coordinator.state.groups["g"]
        assert isinstance(group, ConsumerGroup)
        assert group.members["m"].current.assigned == {TOPIC_ID: dict.fromkeys(range(4), GENERATION)}
        shard.load(0)
    assert commit(shard, GENERATION) == E.NONE
    assert commit(shard, GENERATION - 1) == E.ILLEGAL_GENERATION


def test_a_downgrade_drops_the_epochs(shard: Shard) -> None:
    """AE-27: only the group's generation is good, however long a partition has been the member's."""
    assert beat(shard, -1).error_code == E.NONE
    group = shard.coordinator.state.groups["g"]
    assert not isinstance(group, ConsumerGroup)
    assert group.generation > GENERATION
    assert commit(shard, GENERATION) == E.ILLEGAL_GENERATION
    assert commit(shard, group.generation) == E.NONE
