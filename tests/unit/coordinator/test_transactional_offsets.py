"""Offsets that wait for the end of their transaction, as the log has them; tests/scenarios has the rules."""

from __future__ import annotations

from typing import Any

import pytest

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
from kgroup.runtime.shard import Shard
from tests.scenarios.hard_state import reloaded, same_hard_state
from tests.unit.coordinator.shards import NOW_MS, TOPIC_ID, ask, end, shard_over


def pending(shard: Shard, value: int, producer: int = 1) -> None:
    place = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=value)
    request = TxnOffsetCommitRequest(
        transactional_id="tx",
        group_id="g",
        producer_id=producer,
        producer_epoch=0,
        topics=(TxnOffsetCommitRequestTopic(name="t1", partitions=(place,)),),
    )
    response: Any = ask(shard, request)
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


def test_offsets_of_transactions_carry_no_topic_id(shard: Shard) -> None:
    pending(shard, 5)
    end(shard, 1, committed=True)
    assert stored(shard) == 5
    found = shard.coordinator.state.offsets.get("g", "t1", 0)
    assert found is not None and found.value.topic_id == bytes(16)
