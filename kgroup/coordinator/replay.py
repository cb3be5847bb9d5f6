"""What each record of `__consumer_offsets` does to the state: hard state changes by nothing else.

So a restart reads what was there (CP-55). A tombstone for something that is not there is never an error:
compaction may have removed the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

from kgroup.coordinator.classic.group import ClassicGroup
from kgroup.coordinator.committed import CommittedOffsets
from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.consumer.member import ConsumerMember, Current, no_metadata
from kgroup.coordinator.groups import type_of
from kgroup.coordinator.inconsistency import InconsistentLog
from kgroup.coordinator.outcome import Record
from kgroup.coordinator.share import replay as share
from kgroup.coordinator.share.group import ShareGroup
from kgroup.coordinator.state import State
from kgroup.coordinator.streams import replay as streams
from kgroup.coordinator.streams.group import StreamsGroup
from kgroup.coordinator.tombstones import member_removed, refuse_if_not_last, target_epoch
from kgroup.domain import NO_EPOCH
from kgroup.protocol import group_records as r
from kgroup.protocol.record_kinds import RecordKey, RecordValue
from kgroup.protocol.share_records import PAIRS as SHARE_PAIRS
from kgroup.protocol.share_records import ShareKey
from kgroup.protocol.streams_records import PAIRS as STREAMS_PAIRS
from kgroup.protocol.streams_records import StreamsKey

G = TypeVar("G", ConsumerGroup, ShareGroup, StreamsGroup)
Replay: TypeAlias = Callable[[State, Any, Any, int, int], None]
"""What a record does to the state: its key, its value or None, its offset, its producer id."""


def replay(state: State, records: Iterable[Record], base: int, producer_id: int) -> None:
    """Apply records whose offsets count from `base`.

    Raise InconsistentLog for a record that contradicts those before it.
    """
    if isinstance(records, CommittedOffsets) and producer_id < 0:
        _committed(state, records, base)
        return
    for offset, record in enumerate(records, base):
        key = record.key
        _REPLAYS[type(key)](state, key, record.value, offset, producer_id)


def _committed(state: State, committed: CommittedOffsets, base: int) -> None:
    """Apply `_offset` to each record of a commit."""
    group_id = committed.group_id
    if group_id not in state.groups:
        state.groups[group_id] = ClassicGroup(group_id)
    for topic, partitions, offsets in committed.topics:
        state.offsets.put_all(group_id, topic, partitions, offsets, base)
        base += len(partitions)


def _offset(
    state: State,
    key: r.OffsetCommitKey | r.LegacyOffsetCommitKey,
    value: r.OffsetCommitValue | None,
    offset: int,
    producer_id: int,
) -> None:
    group_id, topic, partition = key.group, key.topic, key.partition
    if value is None:
        state.offsets.remove(group_id, topic, partition)
        return
    # Offsets need no members: a group that only holds offsets is a classic one without a protocol.
    if group_id not in state.groups:
        state.groups[group_id] = ClassicGroup(group_id)
    if producer_id >= 0:
        state.offsets.put_pending(producer_id, group_id, topic, partition, value, offset)
    else:
        state.offsets.put(group_id, topic, partition, value, offset)


def _legacy_offset(
    state: State,
    key: r.LegacyOffsetCommitKey,
    value: r.LegacyOffsetCommitValue | None,
    offset: int,
    producer_id: int,
) -> None:
    modern = None
    if value is not None:
        modern = r.OffsetCommitValue(
            offset=value.offset, metadata=value.metadata, commit_timestamp=value.commit_timestamp
        )
    _offset(state, key, modern, offset, producer_id)


def _classic_group(
    state: State, key: r.GroupMetadataKey, value: r.GroupMetadataValue | None, _: int, __: int
) -> None:
    if value is None:
        state.groups.pop(key.group, None)
        return
    group = state.groups.get(key.group)
    # A downgrade wrote it: its timers and parked joins are those of the group that the step has made.
    if not isinstance(group, ClassicGroup):
        group = state.converted.pop(key.group, None) or ClassicGroup(key.group)
        state.groups[key.group] = group
    group.replay(value)


def _group(state: State, group_id: str, kind: type[G], *, create: bool) -> G | None:
    """Return the group of a record; it replaces a group that only holds offsets."""
    group = state.groups.get(group_id)
    if isinstance(group, kind):
        return group
    if not create:
        return None
    if group is not None and not (isinstance(group, ClassicGroup) and group.is_simple):
        raise InconsistentLog(
            f"group {group_id} is a {type_of(group)} group, but another type's record follows"
        )
    made = state.groups[group_id] = kind(group_id)
    return made


def _group_epoch(
    state: State, key: r.ConsumerGroupMetadataKey, value: r.ConsumerGroupMetadataValue | None, _: int, __: int
) -> None:
    group = _group(state, key.group_id, ConsumerGroup, create=value is not None)
    if group is None:
        return
    if value is not None:
        group.epoch, group.metadata_hash = value.epoch, value.metadata_hash
        return
    refuse_if_not_last(group)
    del state.groups[key.group_id]


def _partition_metadata(
    group: ConsumerGroup,
    key: r.ConsumerGroupPartitionMetadataKey,
    value: r.ConsumerGroupPartitionMetadataValue | None,
) -> None:
    group.has_partition_metadata = value is not None


def _member(
    group: ConsumerGroup,
    key: r.ConsumerGroupMemberMetadataKey,
    value: r.ConsumerGroupMemberMetadataValue | None,
) -> None:
    if value is None:
        member_removed(group, key.member_id)
        return
    before = group.members.get(key.member_id) or ConsumerMember(key.member_id, value)
    group.put_member(replace(before, metadata=value))


def _target_epoch(
    group: ConsumerGroup,
    key: r.ConsumerGroupTargetAssignmentMetadataKey,
    value: r.ConsumerGroupTargetAssignmentMetadataValue | None,
) -> None:
    target_epoch(group, value)


def _target(
    group: ConsumerGroup,
    key: r.ConsumerGroupTargetAssignmentMemberKey,
    value: r.ConsumerGroupTargetAssignmentMemberValue | None,
) -> None:
    if value is None:
        group.targets.pop(key.member_id, None)
        group.assignor_says.pop(key.member_id, None)
        return
    # Kafka writes a set in any order; a target that differs in that alone is unchanged.
    group.targets[key.member_id] = {t.topic_id: tuple(sorted(t.partitions)) for t in value.topic_partitions}
    if value.error or value.metadata_version or value.metadata_bytes:
        group.assignor_says[key.member_id] = value
    else:
        group.assignor_says.pop(key.member_id, None)


def _assignment(
    group: ConsumerGroup,
    key: r.ConsumerGroupCurrentMemberAssignmentKey,
    value: r.ConsumerGroupCurrentMemberAssignmentValue | None,
) -> None:
    member = group.members.get(key.member_id)
    if value is not None:
        before = member or ConsumerMember(key.member_id, no_metadata())
        group.put_member(replace(before, current=Current.of(value)))
    elif member is not None:
        group.put_member(replace(member, current=Current(NO_EPOCH, NO_EPOCH)))


def _regex(
    group: ConsumerGroup,
    key: r.ConsumerGroupRegularExpressionKey,
    value: r.ConsumerGroupRegularExpressionValue | None,
) -> None:
    if value is None:
        group.resolved.pop(key.regular_expression, None)
    else:
        group.resolved[key.regular_expression] = value


def _in_group(apply: Callable[[ConsumerGroup, Any, Any], None]) -> Replay:
    """Apply a record about a part of a consumer group; a tombstone of a missing one does nothing."""

    def replay_in_group(state: State, key: Any, value: Any, _: int, __: int) -> None:
        group = _group(state, key.group_id, ConsumerGroup, create=value is not None)
        if group is not None:
            apply(group, key, value)

    return replay_in_group


def _streams(state: State, key: StreamsKey, value: RecordValue | None, _: int, __: int) -> None:
    group = _group(state, r.group_of(key), StreamsGroup, create=value is not None)
    if group is not None:
        streams.apply(state, group, key, value)


def _share(state: State, key: ShareKey, value: RecordValue | None, _: int, __: int) -> None:
    group = _group(state, r.group_of(key), ShareGroup, create=value is not None)
    if group is not None:
        share.apply(state, group, key, value)


_REPLAYS: dict[type[RecordKey], Replay] = {
    r.OffsetCommitKey: _offset,
    r.LegacyOffsetCommitKey: _legacy_offset,
    r.GroupMetadataKey: _classic_group,
    r.ConsumerGroupMetadataKey: _group_epoch,
    r.ConsumerGroupPartitionMetadataKey: _in_group(_partition_metadata),
    r.ConsumerGroupMemberMetadataKey: _in_group(_member),
    r.ConsumerGroupTargetAssignmentMetadataKey: _in_group(_target_epoch),
    r.ConsumerGroupTargetAssignmentMemberKey: _in_group(_target),
    r.ConsumerGroupCurrentMemberAssignmentKey: _in_group(_assignment),
    r.ConsumerGroupRegularExpressionKey: _in_group(_regex),
    **dict.fromkeys((key for key, _ in SHARE_PAIRS), _share),
    **dict.fromkeys((key for key, _ in STREAMS_PAIRS), _streams),
}
