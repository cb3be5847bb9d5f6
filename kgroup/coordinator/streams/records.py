"""The records of streams groups, by what they say; the orders are Kafka's (KIP-1071)."""

from __future__ import annotations

from collections.abc import Mapping

from kgroup.coordinator.state import Step
from kgroup.coordinator.streams.group import StreamsGroup
from kgroup.coordinator.streams.member import StreamsMember, target_value
from kgroup.coordinator.streams.timers import initial_delay
from kgroup.coordinator.tasks.values import TaskSet
from kgroup.protocol import streams_records as r


def write_metadata(step: Step, group_id: str, member: StreamsMember) -> None:
    """Write record 19: the member's identity and its topology."""
    key = r.StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id)
    step.write(key, member.metadata)


def write_current(step: Step, group_id: str, member: StreamsMember) -> None:
    """Write record 22: the member's epoch and tasks."""
    key = r.StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    step.write(key, member.current.value())


def write_target(step: Step, group_id: str, member_id: str, target: TaskSet) -> None:
    """Write record 21: the member's target tasks."""
    key = r.StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    step.write(key, target_value(target))


def write_target_epoch(step: Step, group_id: str, epoch: int, timestamp_ms: int) -> None:
    """Write record 20: the epoch of all targets, and the time; it follows them."""
    value = r.StreamsGroupTargetAssignmentMetadataValue(
        assignment_epoch=epoch, assignment_timestamp=timestamp_ms
    )
    step.write(r.StreamsGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def write_topology(step: Step, group_id: str, topology: r.StreamsGroupTopologyValue) -> None:
    """Write record 23: what the application reads, keeps and writes."""
    step.write(r.StreamsGroupTopologyKey(group_id=group_id), topology)


def write_epoch(step: Step, group: StreamsGroup, epoch: int) -> None:
    """Write record 17: the group epoch, all else unchanged."""
    write_group(
        step,
        group,
        epoch,
        group.metadata_hash,
        group.validated_topology_epoch,
        group.assignment_configs,
    )


def write_group(
    step: Step,
    group: StreamsGroup,
    epoch: int,
    metadata_hash: int,
    validated_topology_epoch: int,
    configs: Mapping[str, str],
) -> None:
    """Write record 17: the group epoch, a hash of its topics, and the settings that targets are made with."""
    value = r.StreamsGroupMetadataValue(
        epoch=epoch,
        metadata_hash=metadata_hash,
        validated_topology_epoch=validated_topology_epoch,
        last_assignment_configs=tuple(r.KeyValue(key=key, value=configs[key]) for key in sorted(configs)),
        stored_description_topology_epoch=group.stored_description_epoch,
        failed_description_topology_epoch=group.failed_description_epoch,
    )
    step.write(r.StreamsGroupMetadataKey(group_id=group.group_id), value)


def remove_member(step: Step, group_id: str, member_id: str) -> None:
    """Write tombstones of a member: assignment, target, metadata."""
    step.write(r.StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None)
    step.write(r.StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None)
    step.write(r.StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None)


def replace_member(
    step: Step, group_id: str, before: StreamsMember, after: StreamsMember, target: TaskSet
) -> None:
    """Write a static member under a new id: the old one's tombstones, then all of it with the new id."""
    remove_member(step, group_id, before.member_id)
    write_metadata(step, group_id, after)
    write_target(step, group_id, after.member_id, target)
    write_current(step, group_id, after)


def forget_streams_group(step: Step, group: StreamsGroup) -> None:
    """Write tombstones of all its records, in replay's order; no first assignment is due any more."""
    group_id = group.group_id
    step.cancel(initial_delay(group_id))
    for member_id in group.members:
        step.write(r.StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None)
    for member_id in group.members:
        step.write(r.StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None)
    step.write(r.StreamsGroupTargetAssignmentMetadataKey(group_id=group_id), None)
    for member_id in group.members:
        step.write(r.StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None)
    step.write(r.StreamsGroupMetadataKey(group_id=group_id), None)
    step.write(r.StreamsGroupTopologyKey(group_id=group_id), None)
