"""The records that streams groups alone have, and the removal of all their records (KIP-1071)."""

from __future__ import annotations

from collections.abc import Mapping

from kgroup.coordinator.records import forget_members
from kgroup.coordinator.state import Step
from kgroup.coordinator.streams.group import StreamsGroup
from kgroup.coordinator.timer_kinds import TimerKind
from kgroup.protocol import streams_records as r
from kgroup.timers import TimerKey


def initial_delay(group_id: str) -> TimerKey:
    """Return the timer that makes a new group's first assignment."""
    return TimerKey(TimerKind.STREAMS_INITIAL, group_id)


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


def forget_streams_group(step: Step, group: StreamsGroup) -> None:
    """Write tombstones of all its records, in replay's order; no first assignment is due any more."""
    group_id = group.group_id
    step.cancel(initial_delay(group_id))
    forget_members(step, group, group.members, group.members)
    step.write(r.StreamsGroupMetadataKey(group_id=group_id), None)
    step.write(r.StreamsGroupTopologyKey(group_id=group_id), None)
