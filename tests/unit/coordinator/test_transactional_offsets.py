"""Offsets that wait for the end of their transaction, as the log has them; tests/scenarios has the rules."""

from __future__ import annotations

from typing import Any

import pytest

from kgroup.coordinator.config import GroupConfig
from kgroup.errors import ErrorCode
from kgroup.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgroup.protocol.messages.delete_groups import DeleteGroupsRequest
from kgroup.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kgroup.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kgroup.protocol.releases import Release
from kgroup.runtime.shard import Shard
from tests.scenarios.hard_state import reloaded, same_hard_state
from tests.unit.coordinator.shards import NOW_MS, TOPIC_ID, ask, end, shard_over


def pending(shard: Shard, value: int, producer: int = 1, version: int | None = None) -> None:
    place = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=value)
    request = TxnOffsetCommitRequest(
        transactional_id="tx",
        group_id="g",
        producer_id=producer,
        producer_epoch=0,
        topics=(TxnOffsetCommitRequestTopic(name="t1", topic_id=TOPIC_ID, partitions=(place,)),),
    )
    response: Any = ask(shard, request, version)
    assert response.topics[0].partitions[0].error_code == 0


def plain(shard: Shard, value: int) -> None:
    place = OffsetCommitRequestPartition(partition_index=0, committed_offset=value)
    topic = OffsetCommitRequestTopic(name="t1", topic_id=TOPIC_ID, partitions=(place,))
    response: Any = ask(shard, OffsetCommitRequest(group_id="g", member_id="", topics=(topic,)))
    assert response.topics[0].partitions[0].error_code == 0


def stored(shard: Shard) -> int | None:
    """The committed offset, which a shard loaded from the log has too."""
    same_hard_state(shard.coordinator, reloaded(shard, NOW_MS).coordinator)
    found = shard.coordinator.state.offsets.get("g", "t1", 0)
    return None if found is None else found.value.offset


@pytest.fixture
def shard() -> Shard:
    return shard_over()


def test_a_shard_loaded_from_the_log_knows_what_is_pending(shard: Shard) -> None:
    pending(shard, 5)
    assert stored(shard) is None
    pending(shard, 6, producer=2)
    end(shard, 1, committed=True)
    assert stored(shard) == 5
    plain(shard, 7)
    end(shard, 2, committed=True)
    assert stored(shard) == 7
    pending(shard, 8)
    end(shard, 1, committed=False)
    assert stored(shard) == 7


def test_the_end_of_an_unknown_transaction_does_nothing(shard: Shard) -> None:
    plain(shard, 3)
    end(shard, 77, committed=True)
    assert stored(shard) == 3


def test_an_end_brings_no_deleted_group_back(shard: Shard) -> None:
    pending(shard, 5)
    response: Any = ask(shard, DeleteGroupsRequest(groups_names=("g",)))
    assert response.results[0].error_code == 0
    end(shard, 1, committed=True)
    assert stored(shard) is None and "g" not in shard.coordinator.state.groups


@pytest.mark.parametrize(
    ("kafka", "version", "topic_id"),
    [(Release(4, 3), 5, bytes(16)), (Release(4, 4), 5, TOPIC_ID), (Release(4, 4), 6, TOPIC_ID)],
)
def test_offsets_of_transactions_carry_their_topics_id_since_4_4(
    kafka: Release, version: int, topic_id: bytes
) -> None:
    shard = shard_over(config=GroupConfig(kafka=kafka))
    pending(shard, 5, version=version)
    end(shard, 1, committed=True)
    assert stored(shard) == 5
    found = shard.coordinator.state.offsets.get("g", "t1", 0)
    assert found is not None and found.value.topic_id == topic_id


@pytest.mark.parametrize(
    ("version", "gone", "stale", "unknown"),
    [
        (5, "ILLEGAL_GENERATION", "ILLEGAL_GENERATION", "UNKNOWN_TOPIC_OR_PARTITION"),
        (6, "GROUP_ID_NOT_FOUND", "STALE_MEMBER_EPOCH", "UNKNOWN_TOPIC_ID"),
    ],
)
def test_version_6_says_what_is_wrong_in_the_consumer_protocols_words(
    shard: Shard, version: int, gone: str, stale: str, unknown: str
) -> None:
    def commit(epoch: int, name: str, topic_id: bytes) -> str:
        place = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)
        topic = TxnOffsetCommitRequestTopic(name=name, topic_id=topic_id, partitions=(place,))
        request = TxnOffsetCommitRequest(
            transactional_id="tx",
            group_id="g",
            producer_id=1,
            producer_epoch=0,
            generation_id=epoch,
            member_id="m",
            topics=(topic,),
        )
        answer: Any = ask(shard, request, version)
        return ErrorCode(answer.topics[0].partitions[0].error_code).name

    assert commit(3, "t1", TOPIC_ID) == gone
    assert commit(3, "none", b"n" * 16) == unknown
    joins = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=("t1",),
        topic_partitions=(),
    )
    joined: Any = ask(shard, joins)
    assert joined.error_code == 0
    assert commit(joined.member_epoch + 1, "t1", TOPIC_ID) == stale
    assert commit(joined.member_epoch, "t1", TOPIC_ID) == "NONE"
