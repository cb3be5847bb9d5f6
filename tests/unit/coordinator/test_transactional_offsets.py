"""Offsets that wait for the end of their transaction (spec 6.6)."""

from __future__ import annotations

from typing import Any

import pytest

from kgroup.errors import ErrorCode as E
from kgroup.protocol.messages.delete_groups import DeleteGroupsRequest
from kgroup.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kgroup.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kgroup.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kgroup.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kgroup.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kgroup.runtime.shard import Shard
from tests.scenarios.hard_state import reloaded, same_hard_state
from tests.unit.coordinator.shards import NOW_MS, TOPIC_ID, ask, end, shard_over


def pending(
    shard: Shard, value: int, producer: int = 1, partition: int = 0, topic: str = "t1", **who: Any
) -> int:
    """Commit within a transaction; the partition's error."""
    place = TxnOffsetCommitRequestPartition(partition_index=partition, committed_offset=value)
    request = TxnOffsetCommitRequest(
        transactional_id="tx",
        group_id=who.pop("group_id", "g"),
        producer_id=producer,
        producer_epoch=0,
        topics=(TxnOffsetCommitRequestTopic(name=topic, partitions=(place,)),),
        **who,
    )
    response: Any = ask(shard, request)
    return int(response.topics[0].partitions[0].error_code)


def plain(shard: Shard, value: int, partition: int = 0) -> int:
    place = OffsetCommitRequestPartition(partition_index=partition, committed_offset=value)
    topic = OffsetCommitRequestTopic(name="t1", topic_id=TOPIC_ID, partitions=(place,))
    response: Any = ask(shard, OffsetCommitRequest(group_id="g", member_id="", topics=(topic,)))
    return int(response.topics[0].partitions[0].error_code)


def fetched(shard: Shard, *, stable: bool = False, partition: int = 0) -> tuple[int, int]:
    """The committed offset and its error."""
    topic = OffsetFetchRequestTopics(name="t1", topic_id=TOPIC_ID, partition_indexes=(partition,))
    group = OffsetFetchRequestGroup(group_id="g", topics=(topic,))
    response: Any = ask(shard, OffsetFetchRequest(groups=(group,), require_stable=stable))
    found = response.groups[0].topics[0].partitions[0]
    return found.committed_offset, found.error_code


@pytest.fixture(autouse=True)
def reload_agrees(shard: Shard) -> Any:
    """After every test, a shard loaded from the log holds the same."""
    yield
    same_hard_state(shard.coordinator, reloaded(shard, NOW_MS).coordinator)


@pytest.fixture
def shard() -> Shard:
    return shard_over()


def test_a_commit_takes_effect_when_the_transaction_commits(shard: Shard) -> None:
    assert pending(shard, 5) == E.NONE
    assert fetched(shard) == (-1, E.NONE)
    assert fetched(shard, stable=True) == (-1, E.UNSTABLE_OFFSET_COMMIT)
    assert fetched(shard, stable=True, partition=1) == (-1, E.NONE)
    end(shard, 1, committed=True)
    assert fetched(shard, stable=True) == (5, E.NONE)


def test_an_abort_leaves_what_was_there(shard: Shard) -> None:
    plain(shard, 3)
    pending(shard, 5)
    assert fetched(shard) == (3, E.NONE)
    end(shard, 1, committed=False)
    assert fetched(shard, stable=True) == (3, E.NONE)


def test_the_last_commit_of_a_transaction_counts(shard: Shard) -> None:
    pending(shard, 5)
    pending(shard, 6)
    end(shard, 1, committed=True)
    assert fetched(shard) == (6, E.NONE)


def test_a_plain_commit_made_after_the_transactional_one_stays(shard: Shard) -> None:
    pending(shard, 5)
    plain(shard, 7)
    assert fetched(shard, stable=True)[1] == E.UNSTABLE_OFFSET_COMMIT
    end(shard, 1, committed=True)
    assert fetched(shard) == (7, E.NONE)


def test_producers_do_not_know_of_each_other(shard: Shard) -> None:
    pending(shard, 5, producer=1)
    pending(shard, 6, producer=2)
    end(shard, 2, committed=True)
    assert fetched(shard) == (6, E.NONE)
    assert fetched(shard, stable=True)[1] == E.UNSTABLE_OFFSET_COMMIT
    end(shard, 1, committed=True)
    assert fetched(shard, stable=True) == (6, E.NONE)


def test_the_end_of_an_unknown_transaction_does_nothing(shard: Shard) -> None:
    plain(shard, 3)
    end(shard, 77, committed=True)
    assert fetched(shard, stable=True) == (3, E.NONE)


def test_deleting_the_offset_takes_pending_ones_too(shard: Shard) -> None:
    pending(shard, 5)
    topic = OffsetDeleteRequestTopic(name="t1", partitions=(OffsetDeleteRequestPartition(partition_index=0),))
    ask(shard, OffsetDeleteRequest(group_id="g", topics=(topic,)))
    end(shard, 1, committed=True)
    assert fetched(shard, stable=True) == (-1, E.NONE)


def test_a_group_is_deleted_in_spite_of_an_open_transaction(shard: Shard) -> None:
    pending(shard, 5)
    response: Any = ask(shard, DeleteGroupsRequest(groups_names=("g",)))
    assert response.results[0].error_code == E.NONE
    end(shard, 1, committed=True)
    assert fetched(shard) == (-1, E.NONE)
    assert "g" not in shard.coordinator.state.groups


def test_an_aborted_commit_leaves_its_group_behind(shard: Shard) -> None:
    pending(shard, 5)
    end(shard, 1, committed=False)
    assert shard.coordinator.state.groups["g"].state == "Empty"


def test_who_may_commit_within_a_transaction(shard: Shard) -> None:
    assert pending(shard, 5, group_id="") == E.INVALID_GROUP_ID
    assert pending(shard, 5, generation_id=0) == E.ILLEGAL_GENERATION
    assert pending(shard, 5, topic="t9") == E.UNKNOWN_TOPIC_OR_PARTITION
    assert pending(shard, 5, partition=4) == E.UNKNOWN_TOPIC_OR_PARTITION
    assert pending(shard, 5, partition=4, generation_id=0) == E.UNKNOWN_TOPIC_OR_PARTITION
    assert pending(shard, 5, topic="t9", generation_id=0) == E.UNKNOWN_TOPIC_OR_PARTITION
    assert "g" not in shard.coordinator.state.groups or not shard.coordinator.state.offsets.count()


def test_offsets_of_transactions_carry_no_topic_id(shard: Shard) -> None:
    pending(shard, 5)
    end(shard, 1, committed=True)
    stored = shard.coordinator.state.offsets.get("g", "t1", 0)
    assert stored is not None
    assert stored.value.topic_id == bytes(16)


def test_a_classic_group_in_any_state_takes_transactional_commits_of_its_members_and_of_nobody(
    shard: Shard,
) -> None:
    """Section 9, 60: Completing is no obstacle, unlike for plain commits."""
    member_id = joined(shard)
    assert pending(shard, 5) == E.NONE
    assert pending(shard, 5, member_id=member_id, generation_id=1) == E.NONE
    assert pending(shard, 5, member_id=member_id, generation_id=0) == E.ILLEGAL_GENERATION
    assert pending(shard, 5, member_id="ghost", generation_id=1) == E.UNKNOWN_MEMBER_ID
    assert (
        pending(shard, 5, member_id="ghost", generation_id=1, group_instance_id="A") == E.FENCED_INSTANCE_ID
    )
    assert plain(shard, 5) == E.UNKNOWN_MEMBER_ID


def joined(shard: Shard) -> str:
    """Make a classic group in Completing, of one static member at generation 1; its id."""
    ask(
        shard,
        JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            member_id="",
            group_instance_id="A",
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
        ),
    )
    shard.wake(NOW_MS + 3000)
    group = shard.coordinator.state.groups["g"]
    assert group.state == "CompletingRebalance"
    return next(iter(group.members))
