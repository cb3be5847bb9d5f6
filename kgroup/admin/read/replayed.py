"""A replayed group as `describe` returns one."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from kgroup.admin.models import (
    EMPTY,
    Assignment,
    ClientTag,
    Described,
    GroupDescription,
    Member,
    OffsetRow,
    StoredDelivery,
    StreamsProcess,
    SubtopologyTasks,
    Tasks,
)
from kgroup.admin.read.applications import of_application, with_content
from kgroup.admin.read.members import assignment_of, streams_topology, text_of
from kgroup.admin.refusals import unread_deliveries
from kgroup.domain import EPOCH_TYPES, NO_OFFSET, TopicPartition, grouped
from kgroup.history.fold.deliveries import DeliveryState
from kgroup.history.fold.state import GroupState
from kgroup.history.fold.tasks import Task, TaskSets, all_read_by
from kgroup.history.fold.view import CLASSIC, INTERRUPTED, KINDS, SHARE, RecordedMember
from kgroup.protocol.embedded.member import Application, application_of, embedded
from kgroup.protocol.share_state_records import DELIVERY_STATES
from kgroup.protocol.streams_records import sources_of

NOT_SET = "no start offset is stored: share.auto.offset.reset decides where reading begins"


def description(
    state: GroupState,
    partition: int,
    deliveries: Mapping[TopicPartition, DeliveryState] | None = None,
) -> GroupDescription:
    """Return the group as `describe` shows one; values only a live cluster has (lag, log ends) are None.

    `deliveries` are the stored ones of a share group; None where they may not have been read.
    """
    view = state.view()
    epochs = view.kind in EPOCH_TYPES
    application = application_of(state.group_id, view.protocol_type, view.assignor)
    unread = unread_deliveries(state.group_id, "offsets")
    topology = None
    if view.streams is not None and (stored := view.streams.topology) is not None:
        if view.streams.stored_description == stored.epoch:
            described = Described.STORED
        elif view.streams.refused_description == stored.epoch:
            described = Described.REFUSED
        elif view.streams.stored_description == INTERRUPTED:
            described = Described.UNKNOWN
        else:
            described = Described.NOT_STORED
        topology = streams_topology(stored.epoch, stored.subtopologies, described)
    group = GroupDescription(
        group_id=state.group_id,
        type=view.kind if view.kind in KINDS else CLASSIC,
        protocol_type=view.protocol_type,
        state=view.state if view.kind in KINDS else EMPTY,
        assignor=view.assignor,
        generation=view.epoch if view.kind == CLASSIC else None,
        group_epoch=view.epoch if epochs else None,
        assignment_epoch=view.assignment_epoch if epochs else None,
        offsets_partition=partition,
        members=_members(state, application),
        offsets=_starts(deliveries or {}) if view.kind == SHARE else _committed(state),
        errors=(unread,) if view.kind == SHARE and deliveries is None else (),
        topology=topology,
    )
    decoded = of_application(group, application)
    return replace(decoded, no_offsets=None) if decoded.offsets else decoded


def _committed(state: GroupState) -> tuple[OffsetRow, ...]:
    holders = {partition: m for m in state.members.values() for partition in m.holds}
    return tuple(
        OffsetRow(
            topic=partition.topic,
            partition=partition.partition,
            committed_offset=commit.offset,
            log_end_offset=None,
            lag=None,
            leader_epoch=None if commit.leader_epoch < 0 else commit.leader_epoch,
            metadata=commit.metadata,
            member_id=holders[partition].member_id if partition in holders else None,
            instance_id=holders[partition].instance_id if partition in holders else None,
            assigned_epoch=holders[partition].assignment_epochs.get(partition)
            if partition in holders
            else None,
        )
        for partition, commit in sorted(state.offsets.items())
    )


def _starts(deliveries: Mapping[TopicPartition, DeliveryState]) -> tuple[OffsetRow, ...]:
    """Return the rows of a share group: start offsets, and what is stored of later records."""
    return tuple(
        OffsetRow(
            topic=partition.topic,
            partition=partition.partition,
            committed_offset=None if stored.value.start_offset == NO_OFFSET else stored.value.start_offset,
            log_end_offset=None,
            lag=None,
            leader_epoch=stored.value.leader_epoch,
            metadata=None,
            member_id=None,
            instance_id=None,
            reason=NOT_SET if stored.value.start_offset == NO_OFFSET else None,
            deliveries=tuple(
                StoredDelivery(
                    b.first_offset,
                    b.last_offset,
                    DELIVERY_STATES.get(b.delivery_state, f"state {b.delivery_state}"),
                    b.delivery_count,
                )
                for b in stored.value.state_batches
            ),
        )
        for partition, stored in sorted(deliveries.items())
    )


def _members(state: GroupState, application: Application | None) -> tuple[Member, ...]:
    epochs, leader = state.kind in EPOCH_TYPES, state.view().leader
    members = []
    for m in sorted(state.members.values(), key=lambda m: (m.label, m.member_id)):
        assignment: Assignment | None
        target: Assignment | None
        process = None
        if m.streams is None:
            assignment = assignment_of(m.holds) if m.given is None else None
            target = None if m.target is None else assignment_of(m.target)
            subscribed = None if m.protocol == CLASSIC and _opaque(m) else m.topics
        else:
            assignment, target = _read(state, m.streams.has), _read(state, m.streams.target)
            topology = state.streams.topology
            parts = () if topology is None else topology.subtopologies
            sources = sorted({name for part in parts for name in sources_of(part)})
            subscribed = None if topology is None else tuple(sources)
            tags = tuple(ClientTag(key, value) for key, value in sorted(m.streams.tags))
            client = m.streams
            process = StreamsProcess(client.process_id, client.topology_epoch, client.endpoint, tags)
        member = Member(
            member_id=m.member_id,
            instance_id=m.instance_id,
            client_id=m.client_id,
            host=m.host.removeprefix("/"),
            rack_id=m.rack_id,
            protocol=m.protocol,
            member_epoch=m.epoch,
            state=m.state,
            subscribed_topics=subscribed,
            subscribed_regex=m.regex,
            assignment=assignment,
            target_assignment=target,
            is_leader=None if epochs else m.member_id == leader,
            user_data_bytes=None if epochs or m.given is not None else m.user_data,
            raw_metadata=text_of(m.metadata) if _opaque(m) else None,
            raw_assignment=None if m.given is None else text_of(m.given),
            tasks=None if m.streams is None else _tasks(m.streams.has),
            target_tasks=None if m.streams is None else _tasks(m.streams.target),
            process=process,
        )
        content = embedded(application, m.client_id, m.metadata, m.assignment)
        members.append(with_content(member, content))
    return tuple(members)


def _read(state: GroupState, tasks: TaskSets) -> Assignment | None:
    """Return the source partitions of active tasks; None when those of one are unknown."""
    places = all_read_by(state.streams.topology, tasks.active)
    return None if places is None else assignment_of(places)


def _tasks(tasks: TaskSets) -> Tasks:
    def of(listed: Iterable[Task]) -> tuple[SubtopologyTasks, ...]:
        numbers = grouped((task.subtopology, task.number) for task in sorted(listed))
        return tuple(SubtopologyTasks(name, tuple(partitions)) for name, partitions in numbers.items())

    return Tasks(of(tasks.active), of(tasks.standby), of(tasks.warmup))


def _opaque(member: RecordedMember) -> bool:
    """Return whether a classic member joined without a subscription of the consumer protocol."""
    return member.joined_with is None and bool(member.metadata)
