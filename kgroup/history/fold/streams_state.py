"""The records of a streams group, the newest of each key, and the members they make (KIP-1071)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from kgroup.domain import MemberStatus, TopicPartition
from kgroup.history.fold.latest_records import EpochRecords, Part, known, places_of
from kgroup.history.fold.tasks import NO_TASKS, StreamsClient, Task, read_by, tasks_of
from kgroup.history.fold.topic_names import TopicNames
from kgroup.history.fold.view import LEFT_FOR_NOW, STREAMS, RecordedMember, StreamsView
from kgroup.protocol import record_slots
from kgroup.protocol import streams_records as r
from kgroup.protocol.record_kinds import RecordKey, epochs_in

_STATES = {1: MemberStatus.STABLE, 2: MemberStatus.REVOKING, 3: MemberStatus.WAITING}


@dataclass(slots=True)
class StreamsRecords(EpochRecords):
    """Those of the types 17 to 23."""

    KIND = STREAMS
    PLACES = places_of(record_slots.STREAMS)

    group: r.StreamsGroupMetadataValue | None = None
    target_epoch: r.StreamsGroupTargetAssignmentMetadataValue | None = None
    clients: dict[str, r.StreamsGroupMemberMetadataValue] = field(default_factory=dict)
    targets: dict[str, r.StreamsGroupTargetAssignmentMemberValue] = field(default_factory=dict)
    currents: dict[str, r.StreamsGroupCurrentMemberAssignmentValue] = field(default_factory=dict)
    topology: r.StreamsGroupTopologyValue | None = None

    def replay_own(self, key: RecordKey, value: Part, names: TopicNames) -> tuple[Collection[str], bool]:
        """Apply the topology: what each member's tasks read."""
        self.topology = known(r.StreamsGroupTopologyValue, value)
        return self.ids, False

    def member(self, member_id: str, names: TopicNames) -> RecordedMember | None:
        """Return a member as its records make it; None if none of it is left."""
        metadata, now = self.clients.get(member_id), self.currents.get(member_id)
        if metadata is None and now is None:
            return None
        state = MemberStatus.JOINING
        if now is not None:
            coded = _STATES.get(now.state, MemberStatus.UNKNOWN)
            state = MemberStatus.LEFT if now.member_epoch == LEFT_FOR_NOW else coded
        target = self.targets.get(member_id)
        at = metadata.user_endpoint if metadata is not None else None
        client = StreamsClient(
            process_id=metadata.process_id if metadata is not None else "",
            topology_epoch=metadata.topology_epoch if metadata is not None else -1,
            endpoint=f"{at.host}:{at.port}" if at is not None else None,
            tags=tuple((tag.key, tag.value) for tag in metadata.client_tags) if metadata is not None else (),
            has=NO_TASKS if now is None else tasks_of(now.active_tasks, now.standby_tasks, now.warmup_tasks),
            revoking=NO_TASKS
            if now is None
            else tasks_of(
                now.active_tasks_pending_revocation,
                now.standby_tasks_pending_revocation,
                now.warmup_tasks_pending_revocation,
            ),
            target=NO_TASKS
            if target is None
            else tasks_of(target.active_tasks, target.standby_tasks, target.warmup_tasks),
        )
        return RecordedMember(
            member_id=member_id,
            instance_id=metadata.instance_id if metadata is not None else None,
            client_id=metadata.client_id if metadata is not None else "",
            host=metadata.client_host if metadata is not None else "",
            protocol=STREAMS,
            epoch=now.member_epoch if now is not None else -1,
            state=state,
            rack_id=metadata.rack_id if metadata is not None else None,
            previous_epoch=now.previous_member_epoch if now is not None else -1,
            rebalance_timeout_ms=metadata.rebalance_timeout_ms if metadata is not None else -1,
            assigned=read_by(self.topology, client.has.active),
            revoking=read_by(self.topology, client.revoking.active),
            target=read_by(self.topology, client.target.active),
            assignment_epochs=self._epochs(now),
            streams=client,
        )

    def _epochs(self, now: r.StreamsGroupCurrentMemberAssignmentValue | None) -> dict[TopicPartition, int]:
        """Return the assignment epoch of each partition that an active task reads, else the member's."""
        epochs: dict[TopicPartition, int] = {}
        if now is None:
            return epochs
        for entry in (*now.active_tasks, *now.active_tasks_pending_revocation):
            for number, epoch in epochs_in(entry, max(now.member_epoch, 0)):
                places = read_by(self.topology, [Task(entry.subtopology_id, number)])
                epochs |= dict.fromkeys(places, epoch)
        return epochs

    @property
    def view(self) -> StreamsView:
        """The group's state apart from epochs and members."""
        group, has_target = self.group, self.target_epoch is not None
        if group is None:
            return StreamsView(topology=self.topology, has_target=has_target)
        return StreamsView(
            topology=self.topology,
            validated_epoch=group.validated_topology_epoch,
            configs=tuple((config.key, config.value) for config in group.last_assignment_configs or ()),
            has_target=has_target,
            stored_description=group.stored_description_topology_epoch,
            refused_description=group.failed_description_topology_epoch,
        )
