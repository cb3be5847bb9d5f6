"""StreamsGroupDescribe: what the coordinator shows of its streams groups (KIP-1071)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kgroup.coordinator.streams.group import StreamsGroup
from kgroup.coordinator.streams.member import StreamsMember
from kgroup.coordinator.tasks.sticky import NAME as STICKY
from kgroup.coordinator.tasks.values import Offsets, Tasks
from kgroup.protocol import streams_records as r
from kgroup.protocol.messages.streams_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    Subtopology,
    TaskIds,
    TaskOffset,
    Topology,
)
from kgroup.protocol.topology_description import DescriptionStatus


def described(group: StreamsGroup, operations: int, *, with_description: bool) -> DescribedGroup:
    """Return a group with its topology, members and tasks; internal topics have partitions once ready."""
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        topology=_topology(group),
        members=tuple(_member(group, member) for member in group.members.values()),
        authorized_operations=operations,
        # No description is ever stored: Kafka leaves that to a plugin (KIP-1331).
        topology_description_status=(
            DescriptionStatus.NOT_STORED if with_description else DescriptionStatus.NOT_REQUESTED
        ),
        assignor_name=STICKY,
    )


def _topology(group: StreamsGroup) -> Topology | None:
    configured = group.configured
    if configured is not None and configured.is_ready and configured.subtopologies is not None:
        parts: Iterable[r.Subtopology] = (s.subtopology for s in configured.subtopologies.values())
        return Topology(epoch=configured.epoch, subtopologies=_subtopologies(parts))
    if group.topology is None:
        return None
    return Topology(epoch=group.topology.epoch, subtopologies=_subtopologies(group.topology.subtopologies))


def _subtopologies(parts: Iterable[r.Subtopology]) -> tuple[Subtopology, ...]:
    return tuple(
        Subtopology(
            subtopology_id=part.subtopology_id,
            source_topics=tuple(sorted(part.source_topics)),
            repartition_sink_topics=tuple(sorted(part.repartition_sink_topics)),
            state_changelog_topics=_topics(part.state_changelog_topics),
            repartition_source_topics=_topics(part.repartition_source_topics),
        )
        for part in sorted(parts, key=lambda part: part.subtopology_id)
    )


def _topics(infos: Iterable[r.TopicInfo]) -> tuple[r.TopicInfo, ...]:
    return tuple(sorted(infos, key=lambda info: info.name))


def _member(group: StreamsGroup, member: StreamsMember) -> Member:
    metadata, held = member.metadata, member.current.assigned
    offsets, target = group.offsets_of(member.member_id), group.target_of(member.member_id)
    return Member(
        member_id=member.member_id,
        member_epoch=member.epoch,
        instance_id=metadata.instance_id,
        rack_id=metadata.rack_id,
        client_id=metadata.client_id,
        client_host=metadata.client_host,
        topology_epoch=metadata.topology_epoch,
        process_id=metadata.process_id,
        user_endpoint=metadata.user_endpoint,
        client_tags=metadata.client_tags,
        task_offsets=_offsets(offsets.reached),
        task_end_offsets=_offsets(offsets.ends),
        assignment=_assignment(held.active, held.standby, held.warmup),
        target_assignment=_assignment(target.active, target.standby, target.warmup),
    )


def _offsets(offsets: Offsets) -> tuple[TaskOffset, ...]:
    return tuple(
        TaskOffset(subtopology_id=subtopology, partition=partition, offset=offsets[subtopology][partition])
        for subtopology in sorted(offsets)
        for partition in sorted(offsets[subtopology])
    )


def _assignment(active: Mapping[str, Iterable[int]], standby: Tasks, warmup: Tasks) -> Assignment:
    return Assignment(active_tasks=_ids(active), standby_tasks=_ids(standby), warmup_tasks=_ids(warmup))


def _ids(tasks: Mapping[str, Iterable[int]]) -> tuple[TaskIds, ...]:
    return tuple(
        TaskIds(subtopology_id=subtopology, partitions=tuple(sorted(tasks[subtopology])))
        for subtopology in sorted(tasks)
    )
