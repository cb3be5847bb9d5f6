"""What the records of streams groups do to the state (KIP-1071).

A tombstone for something that is not there is never an error: compaction may have removed the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from kgroup.coordinator.state import State
from kgroup.coordinator.streams.group import StreamsGroup
from kgroup.coordinator.streams.member import REMOVED, Current, StreamsMember, target_of
from kgroup.coordinator.tombstones import member_removed, refuse_if_not_last, target_epoch
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
        group.stored_description_epoch = value.stored_description_topology_epoch
        group.failed_description_epoch = value.failed_description_topology_epoch
        group.assignment_configs = {c.key: c.value for c in value.last_assignment_configs or ()}
        return
    refuse_if_not_last(group)
    del state.groups[key.group_id]


def _member(
    _: State,
    group: StreamsGroup,
    key: r.StreamsGroupMemberMetadataKey,
    value: r.StreamsGroupMemberMetadataValue | None,
) -> None:
    if value is None:
        member_removed(group, key.member_id)
        return
    before = group.members.get(key.member_id) or StreamsMember(key.member_id, value)
    group.put_member(replace(before, metadata=value))


def _target_epoch(
    _: State,
    group: StreamsGroup,
    key: r.StreamsGroupTargetAssignmentMetadataKey,
    value: r.StreamsGroupTargetAssignmentMetadataValue | None,
) -> None:
    target_epoch(group, value)


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
