"""What each record of `__consumer_offsets` does to the state, and which contradict others (spec 1.5)."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgroup.coordinator.classic.group import ClassicGroup
from kgroup.coordinator.committed import CommitReader, CommittedOffsets, OfTopic
from kgroup.coordinator.config import GroupConfig
from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.consumer.member import MemberState
from kgroup.coordinator.inconsistency import InconsistentLog
from kgroup.coordinator.offset_store import StoredOffset
from kgroup.coordinator.outcome import Record
from kgroup.coordinator.state import Group
from kgroup.domain import ZERO_UUID
from kgroup.errors import DecodeError
from kgroup.log.memory import MemoryLog
from kgroup.protocol import group_records as r
from kgroup.protocol.batches import Batch, LogRecord, encode_batch
from kgroup.runtime.shard import Shard
from tests.unit.coordinator.shards import IMAGE, NOW_MS, TOPIC_ID, Entry, shard_over

OFFSET = r.OffsetCommitKey(group="g", topic="t1", partition=0)
CLASSIC = r.GroupMetadataKey(group="g")
EPOCH = r.ConsumerGroupMetadataKey(group_id="g")
LEGACY_TOPICS = r.ConsumerGroupPartitionMetadataKey(group_id="g")
MEMBER = r.ConsumerGroupMemberMetadataKey(group_id="g", member_id="m")
TARGET_EPOCH = r.ConsumerGroupTargetAssignmentMetadataKey(group_id="g")
TARGET = r.ConsumerGroupTargetAssignmentMemberKey(group_id="g", member_id="m")
CURRENT = r.ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="m")
REGEX = r.ConsumerGroupRegularExpressionKey(group_id="g", regular_expression="t.*")


def offset(value: int = 5, **fields: object) -> r.OffsetCommitValue:
    return r.OffsetCommitValue(offset=value, metadata="", commit_timestamp=1, **fields)  # type: ignore[arg-type]


def classic(*members: r.MemberMetadata, generation: int = 3, **fields: object) -> r.GroupMetadataValue:
    return r.GroupMetadataValue(
        **{
            "protocol_type": "consumer",
            "generation": generation,
            "protocol": "range" if members else None,
            "leader": members[0].member_id if members else None,
            "members": members,
            **fields,
        }  # type: ignore[arg-type]
    )


def classic_member(member_id: str = "m", **fields: object) -> r.MemberMetadata:
    return r.MemberMetadata(
        **{
            "member_id": member_id,
            "client_id": "c",
            "client_host": "/h",
            "rebalance_timeout": 2000,
            "session_timeout": 1000,
            "subscription": b"s",
            "assignment": b"a",
            **fields,
        }  # type: ignore[arg-type]
    )


def member(**fields: object) -> r.ConsumerGroupMemberMetadataValue:
    return r.ConsumerGroupMemberMetadataValue(
        **{
            "client_id": "c",
            "client_host": "/h",
            "subscribed_topic_names": ("t1",),
            "rebalance_timeout_ms": 1000,
            "classic_member_metadata": None,
            **fields,
        }  # type: ignore[arg-type]
    )


def current(epoch: int, *partitions: int, state: int = 0, epochs: tuple[int, ...] | None = None):  # type: ignore[no-untyped-def]
    held = r.TopicPartitions(topic_id=TOPIC_ID, partitions=partitions, assignment_epochs=epochs)
    return r.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=epoch,
        previous_member_epoch=epoch - 1,
        state=state,
        assigned_partitions=(held,) if partitions else (),
    )


def target(*partitions: int) -> r.ConsumerGroupTargetAssignmentMemberValue:
    held = r.TargetTopicPartitions(topic_id=TOPIC_ID, partitions=partitions)
    return r.ConsumerGroupTargetAssignmentMemberValue(topic_partitions=(held,))


def epoch(value: int = 4) -> r.ConsumerGroupMetadataValue:
    return r.ConsumerGroupMetadataValue(epoch=value, metadata_hash=9)


def target_epoch(value: int = 4) -> r.ConsumerGroupTargetAssignmentMetadataValue:
    return r.ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=value, assignment_timestamp=8)


WHOLE: list[Entry] = [
    (MEMBER, member()),
    (EPOCH, epoch()),
    (TARGET, target(0, 1)),
    (TARGET_EPOCH, target_epoch()),
    (CURRENT, current(4, 0, 1, epochs=(2, 4))),
]


def group_after(*entries: Entry) -> Group | None:
    return shard_over(entries).coordinator.state.groups.get("g") if entries else None


def consumer_after(*entries: Entry) -> ConsumerGroup:
    group = group_after(*entries)
    assert isinstance(group, ConsumerGroup)
    return group


def test_an_offset_makes_a_group_that_only_holds_offsets() -> None:
    shard = shard_over([(OFFSET, offset())])
    group = shard.coordinator.state.groups["g"]
    assert isinstance(group, ClassicGroup)
    assert group.is_simple
    stored = shard.coordinator.state.offsets.get("g", "t1", 0)
    assert stored is not None
    assert (stored.value.offset, stored.log_offset) == (5, 0)


def test_a_commit_replayed_whole_is_that_of_its_records() -> None:
    topics = [
        OfTopic("t1", [2, 0], [StoredOffset(n, 1, "m", 9, -1, TOPIC_ID) for n in (7, 8)]),
        OfTopic("t2", [1], [StoredOffset(5, -1, "", 9, 99, ZERO_UUID)]),
    ]
    committed = CommittedOffsets("g", topics)
    whole, single = shard_over([(OFFSET, offset())]), shard_over([(OFFSET, offset())])
    records = list(committed)
    single.coordinator.replay_all(records, 4)
    whole.coordinator.replay_all(committed, 4)
    assert whole.coordinator.state.offsets.of_group("g") == single.coordinator.state.offsets.of_group("g")
    stored = whole.coordinator.state.offsets.get("g", "t2", 1)
    assert stored is not None
    assert (stored.offset, stored.expire_timestamp, stored.log_offset) == (5, 99, 6)


def test_a_commit_is_the_sequence_of_its_records() -> None:
    topics = [OfTopic(name, [0], [StoredOffset(5, -1, "", 9, -1, TOPIC_ID)]) for name in ("t1", "t2")]
    committed = CommittedOffsets("g", topics)
    value = r.OffsetCommitValue(offset=5, commit_timestamp=9, topic_id=TOPIC_ID)
    alone = [Record(r.OffsetCommitKey(group="g", topic=name, partition=0), value) for name in ("t1", "t2")]
    assert committed == alone
    assert (len(committed), committed[1], list(committed[:1])) == (2, alone[1], alone[:1])
    assert not CommittedOffsets("g", [])


def test_a_commit_of_a_transaction_is_held_back() -> None:
    shard = shard_over([(EPOCH, r.ConsumerGroupMetadataValue(epoch=1))])
    committed = CommittedOffsets("g", [OfTopic("t1", [0], [StoredOffset(5, -1, "", 9, -1, ZERO_UUID)])])
    shard.coordinator.replay_all(committed, 4, producer_id=7)
    offsets = shard.coordinator.state.offsets
    assert (offsets.count(), offsets.pending_partitions("g")) == (0, [("t1", 0)])
    shard.coordinator.end_transaction(7, committed=True)
    stored = offsets.get("g", "t1", 0)
    assert stored is not None
    assert (stored.offset, stored.log_offset) == (5, 4)


KEYS = st.builds(
    lambda group, topic, partition, behind: (
        r.encode_key(r.OffsetCommitKey(group=group, topic=topic, partition=partition)) + behind
    ),
    st.sampled_from(["g", "grüße"]),
    st.sampled_from(["t1", "t2", ""]),
    st.integers(0, 2),
    st.sampled_from([b"", b"", b"", b"\0\0\0\1"]),
)
VALUES = st.builds(
    lambda version, offset, epoch, metadata, time, topic_id: (
        struct.pack(">h", version)
        + r.OffsetCommitValue(
            offset=offset, leader_epoch=epoch, metadata=metadata, commit_timestamp=time, topic_id=topic_id
        ).encode(version)
    ),
    *(st.sampled_from([4, 4, 4, 3, 2, 1, 0]), st.integers(0, 1 << 60), st.integers(-1, 9)),
    *(st.sampled_from(["", "mütze"]), st.sampled_from([1, 1 << 40]), st.sampled_from([ZERO_UUID, TOPIC_ID])),
)
OTHERS = st.sampled_from(
    [
        (r.encode_key(CLASSIC), r.encode_value(classic())),
        (r.encode_key(OFFSET), None),
        (b"\0\x63another kind", b"\0\0"),
        (b"\0\1", b"\0\4cut"),
        (b"", b""),
        (r.encode_key(OFFSET), b"\0\4cut"),
        (r.encode_key(OFFSET), b"\0\5newer than all known"),
    ]
)
COMMITS = st.lists(st.tuples(st.just(1), st.tuples(KEYS, VALUES)), min_size=1, max_size=3)
MIXED = st.lists(st.tuples(st.sampled_from([1, 1, 2]), st.tuples(KEYS, VALUES) | OTHERS), max_size=3)
WRITTEN = st.lists(st.one_of(COMMITS, COMMITS, COMMITS, MIXED), max_size=4)


def loaded(batches: Sequence[Sequence[LogRecord]], *, at_once: bool) -> object:
    """What a shard holds after these batches, or why it holds nothing."""

    class Records(MemoryLog):
        def batches(self, start_offset: int) -> Iterator[Batch]:
            for records in batches:
                head = Batch(encode_batch([LogRecord(b"", b"")], base_offset=1 << 40))
                head._records = list(records)
                yield head

    shard = Shard(0, Records(), GroupConfig(), 1, IMAGE)
    with pytest.MonkeyPatch.context() as patched:
        if not at_once:
            patched.setattr(CommitReader, "read", lambda *_: None)
        try:
            shard.load(NOW_MS)
        except DecodeError as error:
            return error.message
    state = shard.coordinator.state
    return {group: (type(state.groups[group]), state.offsets.of_group(group)) for group in state.groups}


@settings(max_examples=150)
@given(WRITTEN)
def test_a_log_is_loaded_as_its_records_say_one_by_one(
    written: list[list[tuple[int, tuple[bytes, bytes | None]]]],
) -> None:
    """Commits are read by what they share with those before, and nothing that a log may hold wrongly."""
    at, batches = 0, []
    for entries in written:
        batch = []
        for step, (key, value) in entries:
            at += step  # compaction leaves gaps
            batch.append(LogRecord(key, value, (), 1, at))
        batches.append(batch)
    assert loaded(batches, at_once=True) == loaded(batches, at_once=False)


def test_a_commit_in_the_log_is_read_at_once() -> None:
    values = [offset(n, topic_id=TOPIC_ID) for n in range(3)]
    keys = [r.OffsetCommitKey(group="g", topic=topic, partition=n) for n, topic in enumerate(("a", "a", "b"))]
    records = [
        LogRecord(r.encode_key(key), r.encode_value(value), (), 1, at)
        for at, (key, value) in enumerate(zip(keys, values, strict=True), 7)
    ]
    read = CommitReader().read(records)
    assert isinstance(read, CommittedOffsets)
    assert list(read) == [Record(key, value) for key, value in zip(keys, values, strict=True)]
    assert [(topic.topic, topic.partitions) for topic in read.topics] == [("a", [0, 1]), ("b", [2])]


def test_a_tombstone_takes_the_offset_but_not_the_group() -> None:
    shard = shard_over([(OFFSET, offset())], [(OFFSET, None)])
    assert shard.coordinator.state.offsets.count() == 0
    assert "g" in shard.coordinator.state.groups


def test_an_offset_of_type_0_counts_like_one_of_type_1() -> None:
    legacy = r.LegacyOffsetCommitKey(group="g", topic="t1", partition=0)
    value = r.LegacyOffsetCommitValue(offset=7, metadata="note", commit_timestamp=3)
    shard = shard_over([(legacy, value)])
    stored = shard.coordinator.state.offsets.get("g", "t1", 0)
    assert stored is not None
    assert (stored.value.offset, stored.value.metadata, stored.value.topic_id) == (7, "note", ZERO_UUID)


def test_a_classic_record_replaces_the_group_whole() -> None:
    """SM-19, SM-71: the map of static members comes from the member records."""
    group = group_after(
        (CLASSIC, classic(classic_member(), classic_member("n", group_instance_id="N"))),
        (CLASSIC, classic(classic_member("o", group_instance_id="O"), generation=4)),
    )
    assert isinstance(group, ClassicGroup)
    assert (group.state, group.generation, list(group.members)) == ("Stable", 4, ["o"])
    assert group.static == {"O": "o"}


def test_a_member_is_the_one_of_the_latest_record() -> None:
    group = group_after(
        (CLASSIC, classic(classic_member())),
        (CLASSIC, classic(classic_member(session_timeout=9000, subscription=b"new"), generation=4)),
    )
    assert isinstance(group, ClassicGroup)
    loaded = group.members["m"]
    assert (loaded.session_timeout_ms, loaded.metadata("range")) == (9000, b"new")


def test_a_classic_record_without_members_is_an_empty_group() -> None:
    group = group_after((CLASSIC, classic(protocol_type="", generation=0)))
    assert isinstance(group, ClassicGroup)
    assert (group.state, group.protocol_type, group.generation) == ("Empty", None, 0)


def test_a_rebalance_timeout_of_minus_one_is_the_session_timeout() -> None:
    group = group_after((CLASSIC, classic(classic_member(rebalance_timeout=-1))))
    assert isinstance(group, ClassicGroup)
    assert group.members["m"].rebalance_timeout_ms == 1000


@pytest.mark.parametrize("before", [[], [(CLASSIC, classic(classic_member()))], WHOLE])
def test_a_classic_tombstone_takes_the_group_whatever_it_is(before: list[Entry]) -> None:
    shard = shard_over([*before, (CLASSIC, None)])
    assert "g" not in shard.coordinator.state.groups


def test_a_consumer_group_known_in_part_starts_at_epoch_one() -> None:
    group = consumer_after((MEMBER, member()))
    assert (group.epoch, group.assignment_epoch, group.assignment_timestamp_ms) == (1, 1, 0)


def test_a_whole_consumer_group() -> None:
    group = consumer_after(*WHOLE)
    assert (group.epoch, group.metadata_hash) == (4, 9)
    assert (group.assignment_epoch, group.assignment_timestamp_ms) == (4, 8)
    assert group.targets == {"m": {TOPIC_ID: (0, 1)}}
    held = group.members["m"].current
    assert (held.epoch, held.previous_epoch, held.state) == (4, 3, MemberState.STABLE)
    assert held.assigned == {TOPIC_ID: {0: 2, 1: 4}}
    assert [group.owner_epoch(TOPIC_ID, n) for n in range(3)] == [4, 4, -1]


def test_a_target_has_no_order() -> None:
    """Kafka writes a set: in its order the next target, the same, was written once more."""
    assert consumer_after(*WHOLE, (TARGET, target(1, 0))).targets == {"m": {TOPIC_ID: (0, 1)}}


@pytest.mark.parametrize("epochs", [None, (), (1,), (1, 2, 3)])
def test_assignment_epochs_that_do_not_fit_are_the_member_epoch(epochs: tuple[int, ...] | None) -> None:
    """OC-22: absent, null, empty and of another length all read as a record from before KIP-1251."""
    group = consumer_after((CURRENT, current(6, 0, 1, epochs=epochs)))
    assert group.members["m"].current.assigned == {TOPIC_ID: {0: 6, 1: 6}}


def test_assignment_epochs_of_a_member_that_is_away_are_never_negative() -> None:
    group = consumer_after((CURRENT, current(-2, 0)))
    assert group.members["m"].current.assigned == {TOPIC_ID: {0: 0}}


def test_a_consumer_record_takes_the_place_of_a_group_that_only_holds_offsets() -> None:
    shard = shard_over([(OFFSET, offset()), *WHOLE])
    assert isinstance(shard.coordinator.state.groups["g"], ConsumerGroup)
    assert shard.coordinator.state.offsets.count() == 1


@pytest.mark.parametrize("entry", WHOLE)
def test_a_consumer_record_for_a_real_classic_group_is_a_contradiction(entry: Entry) -> None:
    with pytest.raises(InconsistentLog):
        shard_over([(CLASSIC, classic(classic_member())), entry])


@pytest.mark.parametrize("key", [EPOCH, LEGACY_TOPICS, MEMBER, TARGET_EPOCH, TARGET, CURRENT, REGEX, OFFSET])
def test_a_tombstone_for_what_is_not_there_does_nothing(key: r.RecordKey) -> None:
    assert "g" not in shard_over([(key, None)]).coordinator.state.groups


@pytest.mark.parametrize("key", [MEMBER, TARGET, CURRENT, REGEX])
def test_a_tombstone_for_a_part_that_is_not_there_leaves_the_group(key: r.RecordKey) -> None:
    assert consumer_after((EPOCH, epoch()), (key, None)).epoch == 4


def test_tombstones_in_kafkas_order_take_the_group() -> None:
    """CP-55: a null value deletes."""
    order = (CURRENT, TARGET, TARGET_EPOCH, MEMBER, LEGACY_TOPICS, EPOCH)
    shard = shard_over([*WHOLE, *((key, None) for key in order)])
    assert "g" not in shard.coordinator.state.groups


@pytest.mark.parametrize(
    "tombstones",
    [
        (EPOCH,),
        (CURRENT, TARGET, MEMBER, EPOCH),
        (MEMBER,),
        (CURRENT, MEMBER),
        (TARGET, MEMBER),
        (TARGET_EPOCH,),
    ],
)
def test_tombstones_out_of_order_are_a_contradiction(tombstones: tuple[r.RecordKey, ...]) -> None:
    with pytest.raises(InconsistentLog):
        shard_over([*WHOLE, *((key, None) for key in tombstones)])


def test_a_tombstone_of_the_assignment_frees_the_partitions() -> None:
    group = consumer_after(*WHOLE, (CURRENT, None))
    held = group.members["m"].current
    assert (held.epoch, held.previous_epoch, held.assigned) == (-1, -1, {})
    assert group.owner_epoch(TOPIC_ID, 0) == -1


def test_a_partition_may_change_hands_at_a_larger_epoch_only() -> None:
    """Compaction may keep the old owner's record; a later owner at the same epoch is another matter."""
    other = r.ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="n")
    group = consumer_after((CURRENT, current(4, 0)), (other, current(5, 0)))
    assert group.owner_epoch(TOPIC_ID, 0) == 5
    with pytest.raises(InconsistentLog):
        shard_over([(CURRENT, current(4, 0)), (other, current(4, 0))])


def test_topic_metadata_of_older_versions_is_remembered_until_its_tombstone() -> None:
    value = r.ConsumerGroupPartitionMetadataValue(topics=())
    assert consumer_after((LEGACY_TOPICS, value)).has_partition_metadata
    assert not consumer_after((LEGACY_TOPICS, value), (LEGACY_TOPICS, None)).has_partition_metadata


def test_resolved_patterns_come_and_go() -> None:
    value = r.ConsumerGroupRegularExpressionValue(topics=("t1",), version=3, timestamp=4)
    assert consumer_after((REGEX, value)).resolved == {"t.*": value}
    assert consumer_after((REGEX, value), (REGEX, None)).resolved == {}


def _loading(key: bytes, value: bytes | None) -> Shard:
    log = MemoryLog()
    log.append([LogRecord(key, value)])
    shard = Shard(0, log, shard_over().coordinator.state.config, 1, IMAGE)
    shard.load(NOW_MS)
    return shard


@pytest.mark.parametrize("kind", [9, 18, 99])
def test_records_of_unknown_types_are_skipped(kind: int) -> None:
    assert not _loading(kind.to_bytes(2) + b"whatever", b"\0\0").coordinator.state.groups


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"", b"\0\0"),
        (b"\0\x01\0\x05ab", b"\0\0"),
        (r.encode_key(CLASSIC), b"\0\x63"),
        (r.encode_key(EPOCH), b"\0\0\0"),
    ],
)
def test_bytes_that_are_no_record_fail_the_load(key: bytes, value: bytes) -> None:
    with pytest.raises(DecodeError):
        _loading(key, value)
