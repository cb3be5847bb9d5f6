"""The records that consumer, share and streams groups have alike; their orders are Kafka's."""

from __future__ import annotations

from collections.abc import Iterable

from kgroup.coordinator.epoch_group import AnyGroup, AnyMember
from kgroup.coordinator.state import Step


def write_metadata(step: Step, group: AnyGroup, member: AnyMember) -> None:
    """Write what the member reported: its identity, its subscriptions or its topology."""
    key = group.KIND.records.member(group_id=group.group_id, member_id=member.member_id)
    step.write(key, member.metadata)


def write_current(step: Step, group: AnyGroup, member: AnyMember) -> None:
    """Write the member's epoch, and what it has now."""
    key = group.KIND.records.current(group_id=group.group_id, member_id=member.member_id)
    step.write(key, member.current.value())


def write_epoch(step: Step, group: AnyGroup, epoch: int, metadata_hash: int) -> None:
    """Write the group epoch, and the hash of the topics subscribed to."""
    records = group.KIND.records
    value = records.group_value(epoch=epoch, metadata_hash=metadata_hash)
    step.write(records.group(group_id=group.group_id), value)


def write_target(step: Step, group: AnyGroup, member_id: str, target: object) -> None:
    """Write the member's target."""
    key = group.KIND.records.target(group_id=group.group_id, member_id=member_id)
    step.write(key, group.KIND.target_value(target))


def write_target_epoch(step: Step, group: AnyGroup, epoch: int, timestamp_ms: int) -> None:
    """Write the epoch of all targets, and the time; it follows them."""
    records = group.KIND.records
    value = records.target_epoch_value(assignment_epoch=epoch, assignment_timestamp=timestamp_ms)
    step.write(records.target_epoch(group_id=group.group_id), value)


def remove_member(step: Step, group: AnyGroup, member_id: str) -> None:
    """Write tombstones of a member: assignment, target, metadata."""
    records = group.KIND.records
    for key in (records.current, records.target, records.member):
        step.write(key(group_id=group.group_id, member_id=member_id), None)


def replace_member(step: Step, group: AnyGroup, old: AnyMember, new: AnyMember) -> None:
    """Give a static member's place to a new member id, with its target: tombstones, then all of it again."""
    remove_member(step, group, old.member_id)
    write_metadata(step, group, new)
    write_target(step, group, new.member_id, group.target_of(old.member_id))
    write_current(step, group, new)


def forget_members(step: Step, group: AnyGroup, members: Iterable[str], targets: Iterable[str]) -> None:
    """Write tombstones of assignments, targets, target epoch and members, in the order replay asks for."""
    records, group_id, members = group.KIND.records, group.group_id, list(members)
    for member_id in members:
        step.write(records.current(group_id=group_id, member_id=member_id), None)
    for member_id in targets:
        step.write(records.target(group_id=group_id, member_id=member_id), None)
    step.write(records.target_epoch(group_id=group_id), None)
    for member_id in members:
        step.write(records.member(group_id=group_id, member_id=member_id), None)
