"""What each record of `__consumer_offsets` does to the state: hard state changes by nothing else.

So a restart reads what was there (CP-55). A tombstone for something that is not there is never an error:
compaction may have removed the rest. Consumer, share and streams groups are deleted alike, and in Kafka's
order only: assignments, targets, the target epoch, members, the group. The next group of that name would
adopt anything left over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeAlias, TypeVar

from kgroup.coordinator.classic.group import ClassicGroup
from kgroup.coordinator.committed import CommittedOffsets
from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.epoch_group import AnyGroup, Part
from kgroup.coordinator.groups import type_of
from kgroup.coordinator.inconsistency import InconsistentLog
from kgroup.coordinator.outcome import Record
from kgroup.coordinator.share.group import ShareGroup
from kgroup.coordinator.state import State
from kgroup.coordinator.streams.group import StreamsGroup
from kgroup.domain import NO_EPOCH
from kgroup.protocol import group_records as r
from kgroup.protocol.record_kinds import RecordKey
from kgroup.protocol.share_records import ShareGroupStatePartitionMetadataKey
from kgroup.protocol.streams_records import StreamsGroupTopologyKey

G = TypeVar("G", ConsumerGroup, ShareGroup, StreamsGroup)
Replay: TypeAlias = Callable[[State, Part, Part, int, int], None]
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


def _group_value(group: AnyGroup, state: State, key: Part, value: Part) -> None:
    if value is not None:
        group.put_group(value)
        return
    if group.members or group.targets or group.assignment_epoch != NO_EPOCH:
        raise InconsistentLog(f"group {group.group_id} is deleted before its members and targets are")
    del state.groups[group.group_id]


def _member(group: AnyGroup, _: State, key: Part, value: Part) -> None:
    member = group.members.get(key.member_id)
    if value is not None:
        group.put_member(replace(member or group.KIND.new_member(key.member_id), metadata=value))
        return
    # Compaction may have removed what came before: a tombstone without a member is no error.
    if member is None:
        return
    if member.epoch != NO_EPOCH or key.member_id in group.targets:
        raise InconsistentLog(
            f"member {key.member_id} of group {group.group_id} is removed before its assignment and target "
            "are"
        )
    group.drop_member(key.member_id)


def _target_epoch(group: AnyGroup, _: State, key: Part, value: Part) -> None:
    if value is not None:
        group.assignment_epoch = value.assignment_epoch
        group.assignment_timestamp_ms = value.assignment_timestamp
        return
    if group.targets:
        raise InconsistentLog(f"the target epoch of group {group.group_id} is removed before its targets are")
    group.assignment_epoch, group.assignment_timestamp_ms = NO_EPOCH, 0


def _target(group: AnyGroup, _: State, key: Part, value: Part) -> None:
    group.put_target(key.member_id, value)


def _current(group: AnyGroup, _: State, key: Part, value: Part) -> None:
    member = group.members.get(key.member_id)
    if value is not None:
        member = member or group.KIND.new_member(key.member_id)
        group.put_member(replace(member, current=type(member.current).of(value)))
    elif member is not None:
        group.put_member(replace(member, current=type(member.current)(NO_EPOCH, NO_EPOCH)))


def _partition_metadata(group: ConsumerGroup, _: State, key: Part, value: Part) -> None:
    group.has_partition_metadata = value is not None


def _regex(group: ConsumerGroup, _: State, key: r.ConsumerGroupRegularExpressionKey, value: Part) -> None:
    if value is None:
        group.resolved.pop(key.regular_expression, None)
    else:
        group.resolved[key.regular_expression] = value


def _kept(group: ShareGroup, _: State, key: Part, value: Part) -> None:
    group.kept = value


def _topology(group: StreamsGroup, _: State, key: Part, value: Part) -> None:
    group.topology = value


def _in_group(kind: type[G], apply: Callable[[Part, State, Part, Part], None]) -> Replay:
    """Apply a record to its group; a tombstone about a missing group does nothing."""

    def replay_in_group(state: State, key: Part, value: Part, _: int, __: int) -> None:
        group = _group(state, key.group_id, kind, create=value is not None)
        if group is not None:
            apply(group, state, key, value)

    return replay_in_group


_SLOTS = {
    "group": _group_value,
    "member": _member,
    "target_epoch": _target_epoch,
    "target": _target,
    "current": _current,
}
_KINDS: tuple[Part, ...] = (ConsumerGroup, ShareGroup, StreamsGroup)
_REPLAYS: dict[type[RecordKey], Replay] = {
    r.OffsetCommitKey: _offset,
    r.LegacyOffsetCommitKey: _legacy_offset,
    r.GroupMetadataKey: _classic_group,
    **{key: _in_group(kind, _SLOTS[slot]) for kind in _KINDS for key, slot in kind.KIND.records.by_key()},
    r.ConsumerGroupPartitionMetadataKey: _in_group(ConsumerGroup, _partition_metadata),
    r.ConsumerGroupRegularExpressionKey: _in_group(ConsumerGroup, _regex),
    ShareGroupStatePartitionMetadataKey: _in_group(ShareGroup, _kept),
    StreamsGroupTopologyKey: _in_group(StreamsGroup, _topology),
}
