"""What the records of streams groups do to the state (KIP-1071).

A tombstone for something that is not there is never an error: compaction may have removed the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from kgroup.coordinator.inconsistency import InconsistentLog
from kgroup.coordinator.state import State
from kgroup.coordinator.streams.group import StreamsGroup
from kgroup.coordinator.streams.member import REMOVED, REMOVED_EPOCH, Current, StreamsMember, target_of
from kgroup.protocol import streams_records as r

Apply: TypeAlias = Callable[[State, StreamsGroup, Any, Any], None]


def apply(state: State, group: StreamsGroup, key: r.StreamsKey, value: object) -> None:
    """Apply one record to its group; raises InconsistentLog for one that contradicts those before it."""
    _REPLAYS[type(key)](state, group, key, value)


def _metadata(
    state: State,
    group: StreamsGroup,
    key: r.StreamsGroupMetadataKey,
    value: r.StreamsGroupMetadataValue | None,
) -> None:
    if value is not None:
        group.epoch, group.metadata_hash = value.epoch, value.metadata_hash
        group.validated_topology_epoch = value.validated_topology_epoch
        group.assignment_configs = {c.key: c.value for c in value.last_assignment_configs or ()}
        return
    # The order in which Kafka deletes: anything left would be adopted by the next group of this name.
    if group.members or group.assignment_epoch != REMOVED_EPOCH:
        raise InconsistentLog(f"group {key.group_id} is deleted before its members and targets are")
    del state.groups[key.group_id]


def _member(
    _: State,
    group: StreamsGroup,
    key: r.StreamsGroupMemberMetadataKey,
    value: r.StreamsGroupMemberMetadataValue | None,
) -> None:
    member = group.members.get(key.member_id)
    if value is not None:
        before = member or StreamsMember(key.member_id, value)
        group.put_member(replace(before, metadata=value))
        return
    if member is None:
        return
    if member.epoch != REMOVED_EPOCH or key.member_id in group.targets:
        raise InconsistentLog(
            f"member {key.member_id} of group {key.group_id} is removed before its assignment and target are"
        )
    group.drop_member(key.member_id)


def _target_epoch(
    _: State,
    group: StreamsGroup,
    key: r.StreamsGroupTargetAssignmentMetadataKey,
    value: r.StreamsGroupTargetAssignmentMetadataValue | None,
) -> None:
    if value is not None:
        group.assignment_epoch = value.assignment_epoch
        group.assignment_timestamp_ms = value.assignment_timestamp
        return
    if group.targets:
        raise InconsistentLog(f"the target epoch of group {key.group_id} is removed before its targets are")
    group.assignment_epoch, group.assignment_timestamp_ms = REMOVED_EPOCH, 0


def _target(
    _: State,
    group: StreamsGroup,
    key: r.StreamsGroupTargetAssignmentMemberKey,
    value: r.StreamsGroupTargetAssignmentMemberValue | None,
) -> None:
    if value is None:
        group.targets.pop(key.member_id, None)
    else:
        group.targets[key.member_id] = target_of(value)


def _assignment(
    _: State,
    group: StreamsGroup,
    key: r.StreamsGroupCurrentMemberAssignmentKey,
    value: r.StreamsGroupCurrentMemberAssignmentValue | None,
) -> None:
    member = group.members.get(key.member_id)
    if value is not None:
        before = member or StreamsMember(key.member_id, r.StreamsGroupMemberMetadataValue())
        group.put_member(replace(before, current=Current.of(value)))
    elif member is not None:
        group.put_member(replace(member, current=REMOVED))


def _topology(
    _: State,
    group: StreamsGroup,
    key: r.StreamsGroupTopologyKey,
    value: r.StreamsGroupTopologyValue | None,
) -> None:
    group.topology = value


_REPLAYS: Mapping[type[r.StreamsKey], Apply] = {
    r.StreamsGroupMetadataKey: _metadata,
    r.StreamsGroupMemberMetadataKey: _member,
    r.StreamsGroupTargetAssignmentMetadataKey: _target_epoch,
    r.StreamsGroupTargetAssignmentMemberKey: _target,
    r.StreamsGroupCurrentMemberAssignmentKey: _assignment,
    r.StreamsGroupTopologyKey: _topology,
}
