"""Which offsets a sweep takes where no row of tests/scenarios/offsets can say it, and with their topic."""

from __future__ import annotations

from typing import Any

import pytest

from kgroup.coordinator.config import GroupConfig
from kgroup.domain import ZERO_UUID, Topic, TopicImage
from kgroup.protocol import group_records as r
from kgroup.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgroup.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kgroup.runtime.shard import Shard
from tests.unit.coordinator.shards import IMAGE, NOW_MS, OTHER_ID, TOPIC_ID, Entry, ask, end, shard_over

HOUR_MS = 3_600_000
CONFIG = GroupConfig.of({"offsets.retention.minutes": "60", "offsets.retention.check.interval.ms": "1000"})


def offset(topic: str = "t1", committed_ms: int = NOW_MS, expires_ms: int = -1, partition: int = 0) -> Entry:
    topic_id = ZERO_UUID if expires_ms >= 0 else {"t1": TOPIC_ID, "t2": OTHER_ID}[topic]
    value = r.OffsetCommitValue(
        offset=5, metadata="", commit_timestamp=committed_ms, expire_timestamp=expires_ms, topic_id=topic_id
    )
    return r.OffsetCommitKey(group="g", topic=topic, partition=partition), value


def classic(protocol_type: str, *, members: bool, since_ms: int = NOW_MS) -> Entry:
    """A classic group, Stable on topic t1 or Empty since a time."""
    member = r.MemberMetadata(
        member_id="m",
        client_id="c",
        client_host="/h",
        rebalance_timeout=HOUR_MS * 9,
        session_timeout=HOUR_MS * 9,
        subscription=b"\0\0\0\0\0\1\0\2t1\xff\xff\xff\xff",
        assignment=b"",
    )
    value = r.GroupMetadataValue(
        protocol_type=protocol_type,
        generation=1,
        protocol="range" if members else None,
        leader="m" if members else None,
        current_state_timestamp=since_ms,
        members=(member,) if members else (),
    )
    return r.GroupMetadataKey(group="g"), value


CONSUMER = [
    (r.ConsumerGroupMetadataKey(group_id="g"), r.ConsumerGroupMetadataValue(epoch=3)),
    (
        r.ConsumerGroupTargetAssignmentMetadataKey(group_id="g"),
        r.ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=3),
    ),
]


def swept(shard: Shard, now_ms: int) -> str:
    """Topics with an offset after the sweeps up to now, "gone" if the group went as well."""
    shard.wake(now_ms)
    state = shard.coordinator.state
    found = " ".join(sorted(state.offsets.of_group("g")))
    return found if "g" in state.groups else "gone"


def just_around(shard: Shard, due_ms: int) -> tuple[str, str]:
    """What is there at the last sweep before a time, and at the first one after it."""
    return swept(shard, due_ms - 1), swept(shard, due_ms + 1000)


@pytest.mark.parametrize(
    ("group", "due_ms"),
    [
        ([classic("connect", members=False, since_ms=NOW_MS + 5000)], NOW_MS + 5000 + HOUR_MS),
        ([classic("consumer", members=False, since_ms=-1)], NOW_MS + HOUR_MS),
        (CONSUMER, NOW_MS + HOUR_MS),
    ],
    ids=["empty connect", "empty since nobody knows", "consumer"],
)
def test_groups_without_members_go_with_their_offsets(group: list[Entry], due_ms: int) -> None:
    """An Empty classic group counts from when it emptied, all others from the commit."""
    shard = shard_over([*group, offset()], config=CONFIG)
    assert just_around(shard, due_ms) == ("t1", "gone")


def test_a_group_that_emptied_at_the_first_moment_of_all_counts_from_then() -> None:
    """Only a negative time says that none was recorded."""
    assert (
        swept(
            shard_over([classic("consumer", members=False, since_ms=0), offset()], config=CONFIG),
            NOW_MS + 1000,
        )
        == "gone"
    )


def test_offsets_of_a_consumer_group_go_while_it_has_members_but_not_those_it_reads() -> None:
    shard = shard_over(CONSUMER, [offset("t1"), offset("t2")], config=CONFIG)
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=("t1",),
        topic_partitions=(),
    )
    for now_ms in range(NOW_MS, NOW_MS + HOUR_MS + 2000, 30_000):  # a beat before each session ends
        shard.wake(now_ms)
        answer: Any = ask(shard, request, now_ms=now_ms)
        assert answer.error_code == 0
    assert swept(shard, NOW_MS + HOUR_MS + 2000) == "t1"


def test_a_stable_group_of_another_type_keeps_all() -> None:
    """Its subscriptions cannot be read."""
    shard = shard_over([classic("connect", members=True), offset("t1"), offset("t2")], config=CONFIG)
    assert just_around(shard, NOW_MS + HOUR_MS) == ("t1 t2", "t1 t2")


def test_open_transaction_keeps_the_offset_it_replaces_and_the_group() -> None:
    shard = shard_over([offset("t1"), offset("t2")], config=CONFIG)
    pend(shard, "t1")
    assert just_around(shard, NOW_MS + HOUR_MS) == ("t1 t2", "t1")
    end(shard, 1, committed=False)
    assert swept(shard, NOW_MS + HOUR_MS + 3000) == "gone"


def test_group_of_an_open_transaction_alone_stays_until_it_ends() -> None:
    shard = shard_over(config=CONFIG)
    pend(shard, "t1")
    assert swept(shard, NOW_MS + 5000) == ""
    end(shard, 1, committed=False)
    assert swept(shard, NOW_MS + 7000) == "gone"


def pend(shard: Shard, topic: str) -> None:
    place = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=9)
    request = TxnOffsetCommitRequest(
        transactional_id="tx",
        group_id="g",
        producer_id=1,
        producer_epoch=0,
        topics=(
            TxnOffsetCommitRequestTopic(
                name=topic, topic_id={"t1": TOPIC_ID, "t2": OTHER_ID}[topic], partitions=(place,)
            ),
        ),
    )
    answer: Any = ask(shard, request)
    assert answer.topics[0].partitions[0].error_code == 0


@pytest.mark.parametrize(
    ("topics", "left"),
    [
        ([Topic("t2", OTHER_ID, 1)], "t2"),
        ([Topic("t1", b"x" * 16, 4), Topic("t2", OTHER_ID, 1)], "t2"),
        ([Topic("t1", TOPIC_ID, 4), Topic("t2", OTHER_ID, 1)], "t1 t2"),
    ],
    ids=["deleted", "deleted and made again", "still there"],
)
def test_offsets_go_with_their_topic(topics: list[Topic], left: str) -> None:
    shard = shard_over([offset("t1"), offset("t2")], config=CONFIG)
    pend(shard, "t1")
    shard.topics_changed(TopicImage.of(topics, IMAGE.version + 1), NOW_MS)
    end(shard, 1, committed=True)
    assert " ".join(sorted(shard.coordinator.state.offsets.of_group("g"))) == left


def test_offset_without_a_topic_id_goes_with_any_topic_of_the_name() -> None:
    shard = shard_over([offset("t1", expires_ms=NOW_MS * 2)], config=CONFIG)
    shard.topics_changed(TopicImage.of([Topic("t2", OTHER_ID, 1)], IMAGE.version + 1), NOW_MS)
    assert not shard.coordinator.state.offsets.of_group("g")
