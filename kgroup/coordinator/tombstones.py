"""Records that groups with targets have in common; their tombstones are accepted in Kafka's order only.

Consumer, share and streams groups are deleted alike: assignments, targets, the target epoch, members, the
group. The next group of that name would adopt anything left over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from kgroup.coordinator.inconsistency import InconsistentLog
from kgroup.domain import NO_EPOCH


class Epoched(Protocol):
    """A member, as far as its own removal goes."""

    @property
    def epoch(self) -> int: ...


class TargetEpoch(Protocol):
    """The record of a target epoch."""

    @property
    def assignment_epoch(self) -> int: ...
    @property
    def assignment_timestamp(self) -> int: ...


class Targeted(Protocol):
    """A group, as far as its removal goes."""

    group_id: str
    assignment_epoch: int
    assignment_timestamp_ms: int

    @property
    def members(self) -> Mapping[str, Epoched]: ...
    @property
    def targets(self) -> Mapping[str, object]: ...
    def drop_member(self, member_id: str) -> None: ...


def member_removed(group: Targeted, member_id: str) -> None:
    """Remove a member; raise InconsistentLog while its assignment or its target is there."""
    member = group.members.get(member_id)
    # Compaction may have removed what came before: a tombstone without a member is no error.
    if member is None:
        return
    if member.epoch != NO_EPOCH or member_id in group.targets:
        raise InconsistentLog(
            f"member {member_id} of group {group.group_id} is removed before its assignment and target are"
        )
    group.drop_member(member_id)


def target_epoch(group: Targeted, value: TargetEpoch | None) -> None:
    """Apply or remove the target epoch; raise InconsistentLog while there are targets of it."""
    if value is not None:
        group.assignment_epoch = value.assignment_epoch
        group.assignment_timestamp_ms = value.assignment_timestamp
        return
    if group.targets:
        raise InconsistentLog(f"the target epoch of group {group.group_id} is removed before its targets are")
    group.assignment_epoch, group.assignment_timestamp_ms = NO_EPOCH, 0


def refuse_if_not_last(group: Targeted) -> None:
    """Raise InconsistentLog for the group's own tombstone while anything of it is left."""
    if group.members or group.targets or group.assignment_epoch != NO_EPOCH:
        raise InconsistentLog(f"group {group.group_id} is deleted before its members and targets are")
