"""A streams group: hard state that only records change, and its soft fields (KIP-1071)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from operator import attrgetter

from kgroup.coordinator.epoch_group import EpochGroup, GroupKind, Part
from kgroup.coordinator.streams.member import (
    NO_TASK_OFFSETS,
    HeldTasks,
    StreamsMember,
    TaskOffsets,
    new_member,
    target_in,
    target_value,
)
from kgroup.coordinator.streams.topology import ConfiguredTopology, required_topics
from kgroup.coordinator.tasks.values import NO_TASK_SET, TaskSet
from kgroup.coordinator.timer_kinds import STREAMS_MEMBERS
from kgroup.domain import STREAMS
from kgroup.protocol import record_slots
from kgroup.protocol.streams_records import StreamsGroupTopologyValue, Subtopology, sources_of

NO_TOPOLOGY_EPOCH = -1


class StreamsState(StrEnum):
    """The states ListGroups and StreamsGroupDescribe show."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


@dataclass(slots=True)
class Owners:
    """The processes that have a task now; a process keeps the state of a task once, in any role."""

    active: dict[str, dict[int, str]] = field(default_factory=dict)
    standby: dict[str, dict[int, set[str]]] = field(default_factory=dict)
    warmup: dict[str, dict[int, set[str]]] = field(default_factory=dict)

    def active_process(self, subtopology: str, partition: int) -> str | None:
        return self.active.get(subtopology, {}).get(partition)

    def stands_by(self, process_id: str, subtopology: str, partition: int) -> bool:
        """Return whether the process has the task as a standby."""
        return process_id in self.standby.get(subtopology, {}).get(partition, ())

    def warms_up(self, process_id: str, subtopology: str, partition: int) -> bool:
        """Return whether the process has the task to warm it up."""
        return process_id in self.warmup.get(subtopology, {}).get(partition, ())

    def keeps(self, process_id: str, subtopology: str, partition: int) -> bool:
        """Return whether the process has the task as a standby or to warm it up."""
        return any(has(process_id, subtopology, partition) for has in (self.stands_by, self.warms_up))

    def add(self, process_id: str, tasks: HeldTasks) -> None:
        for subtopology, partitions in tasks.active.items():
            self.active.setdefault(subtopology, {}).update(dict.fromkeys(partitions, process_id))
        for by_task, held in ((self.standby, tasks.standby), (self.warmup, tasks.warmup)):
            for subtopology, numbers in held.items():
                for number in numbers:
                    by_task.setdefault(subtopology, {}).setdefault(number, set()).add(process_id)

    def remove(self, process_id: str, tasks: HeldTasks) -> None:
        for subtopology, partitions in tasks.active.items():
            owners = self.active.get(subtopology, {})
            for number in partitions:
                # Assigned to another process meanwhile: that one keeps it.
                if owners.get(number) == process_id:
                    del owners[number]
        for by_task, held in ((self.standby, tasks.standby), (self.warmup, tasks.warmup)):
            for subtopology, numbers in held.items():
                for number in numbers:
                    by_task.get(subtopology, {}).get(number, set()).discard(process_id)


@dataclass(slots=True)
class StreamsGroup(EpochGroup[StreamsMember, TaskSet]):
    """One streams group; `static` are member ids by instance id.

    Soft: `configured` (the topology over the existing topics), `endpoint_epoch` (of the endpoints last sent),
    `shutdown_by` (the member that asked for the whole application to end), `task_offsets` (what each member
    reported), and `copied` (where the copy of the target that Kafka 4.4 made when `copied_epoch` was first
    sent, to be refined by warm-up tasks one day, differs from `targets` by now; None: the copy has nothing of
    a member).
    """

    KIND = GroupKind(
        STREAMS,
        record_slots.STREAMS,
        STREAMS_MEMBERS,
        attrgetter("streams_session_timeout_ms"),
        new_member,
        target_in,
        target_value,
        NO_TASK_SET,
    )

    validated_topology_epoch: int = 0
    assignment_configs: Mapping[str, str] = field(default_factory=dict)
    topology: StreamsGroupTopologyValue | None = None
    static: dict[str, str] = field(default_factory=dict)
    owners: Owners = field(default_factory=Owners)
    configured: ConfiguredTopology | None = None
    endpoint_epoch: int = 0
    shutdown_by: str | None = None
    task_offsets: dict[str, TaskOffsets] = field(default_factory=dict)
    copied_epoch: int = -1
    copied: dict[str, TaskSet | None] = field(default_factory=dict)
    stored_description_epoch: int = NO_TOPOLOGY_EPOCH
    failed_description_epoch: int = NO_TOPOLOGY_EPOCH

    @property
    def state(self) -> StreamsState:
        if self.is_empty:
            return StreamsState.EMPTY
        # Topics are missing, or do not go together: no member can be assigned a task (KIP-1071).
        if self.topology is None or self.topology.epoch != self.validated_topology_epoch:
            return StreamsState.NOT_READY
        if self.epoch > self.assignment_epoch:
            return StreamsState.ASSIGNING
        if all(m.current.is_reconciled_to(self.assignment_epoch) for m in self.members.values()):
            return StreamsState.STABLE
        return StreamsState.RECONCILING

    def subscribed_topics(self) -> frozenset[str]:
        """Return topics that the topology reads; none while it has no members."""
        if self.is_empty or self.topology is None:
            return frozenset()
        return frozenset(readers_of(self.topology))

    def looked_at_topics(self) -> frozenset[str]:
        """Return topics whose changes matter: all that the topology needs, internal ones too."""
        return frozenset() if self.topology is None else frozenset(required_topics(self.topology))

    def copy_target(self, epoch: int) -> None:
        """Copy the target of an epoch as it is now."""
        self.copied_epoch = epoch
        self.copied.clear()

    def relabel_copied(self, before: str, after: str) -> None:
        """Give a member's place in the copy to another member id."""
        if self.copied_epoch != self.assignment_epoch:
            return
        tasks = self.copied.get(before, self.targets.get(before))
        if tasks is not None:
            self.copied[before], self.copied[after] = None, tasks
        elif after not in self.targets:
            self.copied.setdefault(after, None)

    def offsets_of(self, member_id: str) -> TaskOffsets:
        return self.task_offsets.get(member_id, NO_TASK_OFFSETS)

    def put_group(self, value: Part) -> None:
        """Apply record 17."""
        EpochGroup.put_group(self, value)
        self.validated_topology_epoch = value.validated_topology_epoch
        self.stored_description_epoch = value.stored_description_topology_epoch
        self.failed_description_epoch = value.failed_description_topology_epoch
        self.assignment_configs = {c.key: c.value for c in value.last_assignment_configs or ()}

    def put_member(self, member: StreamsMember) -> None:
        """Apply a member's metadata or tasks."""
        before = self.members.get(member.member_id)
        if before is not None:
            self._release(before)
            self.static.pop(before.metadata.instance_id or "", None)
        self.members[member.member_id] = member
        if member.metadata.instance_id is not None:
            self.static[member.metadata.instance_id] = member.member_id
        self.owners.add(member.process_id, member.current.assigned)
        self.owners.add(member.process_id, member.current.revoking)

    def drop_member(self, member_id: str) -> None:
        """Remove a member; its tasks are free. A request to shut down ends with the last one."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._release(member)
            self.static.pop(member.metadata.instance_id or "", None)
        self.task_offsets.pop(member_id, None)
        if not self.members:
            self.shutdown_by = None

    def _release(self, member: StreamsMember) -> None:
        self.owners.remove(member.process_id, member.current.assigned)
        self.owners.remove(member.process_id, member.current.revoking)


def readers_of(topology: StreamsGroupTopologyValue) -> dict[str, Subtopology]:
    """Return the topics that are read, repartition topics too, each with the subtopology that reads it."""
    readers: dict[str, Subtopology] = {}
    for subtopology in topology.subtopologies:
        readers.update((name, subtopology) for name in sources_of(subtopology))
    return readers
