"""What the records of share groups do to the state (KIP-932).

A tombstone for something that is not there is never an error: compaction may have removed the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

from kgroup.coordinator.share.group import ShareGroup
from kgroup.coordinator.share.member import NONE, ShareMember, partitions_of
from kgroup.coordinator.state import State
from kgroup.coordinator.tombstones import member_removed, refuse_if_not_last, target_epoch
from kgroup.domain import NO_EPOCH
from kgroup.protocol import share_records as r

Apply: TypeAlias = Callable[..., None]
"""Takes the state, the group, and a key and a value that belong together."""


def apply(state: State, group: ShareGroup, key: r.ShareKey, value: object) -> None:
    """Apply one record to its group; raises InconsistentLog for one that contradicts those before it."""
    _REPLAYS[type(key)](state, group, key, value)


def _group(
    state: State, group: ShareGroup, key: r.ShareGroupMetadataKey, value: r.ShareGroupMetadataValue | None
) -> None:
    if value is not None:
        group.epoch, group.metadata_hash = value.epoch, value.metadata_hash
        return
    refuse_if_not_last(group)
    del state.groups[key.group_id]


def _member(
    _: State,
    group: ShareGroup,
    key: r.ShareGroupMemberMetadataKey,
    value: r.ShareGroupMemberMetadataValue | None,
) -> None:
    if value is None:
        member_removed(group, key.member_id)
        return
    before = group.members.get(key.member_id) or ShareMember(key.member_id, value)
    group.put_member(replace(before, metadata=value))


def _target_epoch(
    _: State,
    group: ShareGroup,
    key: r.ShareGroupTargetAssignmentMetadataKey,
    value: r.ShareGroupTargetAssignmentMetadataValue | None,
) -> None:
    target_epoch(group, value)


def _target(
    _: State,
    group: ShareGroup,
    key: r.ShareGroupTargetAssignmentMemberKey,
    value: r.ShareGroupTargetAssignmentMemberValue | None,
) -> None:
    if value is None:
        group.targets.pop(key.member_id, None)
    else:
        group.targets[key.member_id] = partitions_of(value.topic_partitions)


def _assignment(
    _: State,
    group: ShareGroup,
    key: r.ShareGroupCurrentMemberAssignmentKey,
    value: r.ShareGroupCurrentMemberAssignmentValue | None,
) -> None:
    member = group.members.get(key.member_id)
    if value is not None:
        before = member or ShareMember(key.member_id, r.ShareGroupMemberMetadataValue())
        epochs = value.member_epoch, value.previous_member_epoch
        assigned = partitions_of(value.assigned_partitions)
        group.put_member(ShareMember(key.member_id, before.metadata, *epochs, assigned))
    elif member is not None:
        group.put_member(ShareMember(key.member_id, member.metadata, NO_EPOCH, NO_EPOCH, NONE))


def _kept(
    _: State,
    group: ShareGroup,
    key: r.ShareGroupStatePartitionMetadataKey,
    value: r.ShareGroupStatePartitionMetadataValue | None,
) -> None:
    group.kept = value


_REPLAYS: Mapping[type[r.ShareKey], Apply] = {
    r.ShareGroupMetadataKey: _group,
    r.ShareGroupMemberMetadataKey: _member,
    r.ShareGroupTargetAssignmentMetadataKey: _target_epoch,
    r.ShareGroupTargetAssignmentMemberKey: _target,
    r.ShareGroupCurrentMemberAssignmentKey: _assignment,
    r.ShareGroupStatePartitionMetadataKey: _kept,
}
