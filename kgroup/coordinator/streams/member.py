"""A member of a streams group, as the records 19 and 22 describe it (KIP-1071, KIP-1251)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import Protocol, TypeAlias

from kgroup.coordinator.epoch_group import EpochMember
from kgroup.coordinator.tasks.values import NO_OFFSETS, NO_TASKS, Offsets, Tasks, TaskSet
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.record_kinds import epochs_in
from kgroup.protocol.streams_records import (
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataValue,
    StreamsGroupTargetAssignmentMemberValue,
    TargetTaskIds,
    TaskIds,
)

TaskEpochs: TypeAlias = Mapping[str, Mapping[int, int]]
"""Subtopology id → partition → assignment epoch; never changed in place, none without partitions."""

NO_TASK_EPOCHS: TaskEpochs = MappingProxyType({})


class MemberState(IntEnum):
    """The distance of a member's tasks from its target, with the numbers of record 22."""

    STABLE = 1
    UNREVOKED_TASKS = 2
    UNRELEASED_TASKS = 3
    UNKNOWN = 127


@dataclass(frozen=True, slots=True)
class HeldTasks:
    """Tasks a member has, with the epoch in which it got each active one (KIP-1251)."""

    active: TaskEpochs = field(default_factory=lambda: NO_TASK_EPOCHS)
    standby: Tasks = field(default_factory=lambda: NO_TASKS)
    warmup: Tasks = field(default_factory=lambda: NO_TASKS)

    def __bool__(self) -> bool:
        return bool(self.active or self.standby or self.warmup)

    @property
    def tasks(self) -> TaskSet:
        """The same without epochs."""
        active = {subtopology: frozenset(numbers) for subtopology, numbers in self.active.items()}
        return TaskSet(active, self.standby, self.warmup)

    def any_of(self, owned: TaskSet) -> bool:
        """Return whether any of these tasks is among `owned`, in the same role."""
        pairs = ((self.active, owned.active), (self.standby, owned.standby), (self.warmup, owned.warmup))
        return any(
            not theirs.get(subtopology, frozenset()).isdisjoint(partitions)
            for ours, theirs in pairs
            for subtopology, partitions in ours.items()
        )


NOTHING_HELD = HeldTasks()


@dataclass(frozen=True, slots=True)
class Current:
    """Epochs and tasks of a member; one without a record 22 is at epoch 0."""

    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: HeldTasks = NOTHING_HELD
    revoking: HeldTasks = NOTHING_HELD

    @property
    def must_revoke(self) -> bool:
        return self.state is MemberState.UNREVOKED_TASKS

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == epoch

    def value(self) -> StreamsGroupCurrentMemberAssignmentValue:
        """Return record 22's value; assignment epochs of active tasks are always written."""
        return StreamsGroupCurrentMemberAssignmentValue(
            member_epoch=self.epoch,
            previous_member_epoch=self.previous_epoch,
            state=self.state,
            active_tasks=_ids_with_epochs(self.assigned.active),
            standby_tasks=_ids(self.assigned.standby),
            warmup_tasks=_ids(self.assigned.warmup),
            active_tasks_pending_revocation=_ids_with_epochs(self.revoking.active),
            standby_tasks_pending_revocation=_ids(self.revoking.standby),
            warmup_tasks_pending_revocation=_ids(self.revoking.warmup),
        )

    @classmethod
    def of(cls, value: StreamsGroupCurrentMemberAssignmentValue) -> Current:
        """Return what record 22 says; active tasks without epochs (before 4.3) take the member epoch."""
        known = value.state in MemberState.__members__.values()
        return cls(
            value.member_epoch,
            value.previous_member_epoch,
            MemberState(value.state) if known else MemberState.UNKNOWN,
            HeldTasks(
                _epochs(value.active_tasks, value.member_epoch),
                tasks_of(value.standby_tasks),
                tasks_of(value.warmup_tasks),
            ),
            HeldTasks(
                _epochs(value.active_tasks_pending_revocation, value.member_epoch),
                tasks_of(value.standby_tasks_pending_revocation),
                tasks_of(value.warmup_tasks_pending_revocation),
            ),
        )


@dataclass(frozen=True, slots=True)
class StreamsMember(EpochMember[StreamsGroupMemberMetadataValue, Current]):
    """A member: `metadata` is its record 19 as it was written, `current` its record 22."""

    current: Current = field(default_factory=Current)

    @property
    def process_id(self) -> str:
        return self.metadata.process_id


def new_member(member_id: str) -> StreamsMember:
    """Return a member of which nothing is known yet."""
    return StreamsMember(member_id, StreamsGroupMemberMetadataValue())


def target_value(target: TaskSet) -> StreamsGroupTargetAssignmentMemberValue:
    """Return record 21's value."""
    return StreamsGroupTargetAssignmentMemberValue(
        active_tasks=_target_ids(target.active),
        standby_tasks=_target_ids(target.standby),
        warmup_tasks=_target_ids(target.warmup),
    )


def target_in(value: StreamsGroupTargetAssignmentMemberValue) -> TaskSet:
    """Return what record 21 says."""
    return TaskSet(tasks_of(value.active_tasks), tasks_of(value.standby_tasks), tasks_of(value.warmup_tasks))


@dataclass(frozen=True, slots=True)
class TaskOffsets:
    """A member's report on its tasks' changelogs: how far each has come, and where each ends."""

    reached: Offsets = field(default_factory=lambda: NO_OFFSETS)
    ends: Offsets = field(default_factory=lambda: NO_OFFSETS)


NO_TASK_OFFSETS = TaskOffsets()


def offsets_of(listed: Iterable[ListedOffset]) -> Offsets:
    """Return offsets by subtopology and partition; INVALID_REQUEST for a task that is listed twice."""
    offsets: dict[str, dict[int, int]] = {}
    for one in listed:
        by_partition = offsets.setdefault(one.subtopology_id, {})
        if one.partition in by_partition:
            raise Refused(
                ErrorCode.INVALID_REQUEST,
                f"Task offsets contain a duplicate entry for subtopology {one.subtopology_id} and "
                f"partition {one.partition}.",
            )
        by_partition[one.partition] = one.offset
    return offsets


class ListedOffset(Protocol):
    """The offset of a task, as requests list it."""

    @property
    def subtopology_id(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...


class ListedTasks(Protocol):
    """Tasks of one subtopology, as records and requests list them."""

    @property
    def subtopology_id(self) -> str: ...
    @property
    def partitions(self) -> tuple[int, ...]: ...


def tasks_of(listed: Iterable[ListedTasks]) -> Tasks:
    """Return tasks by their subtopologies."""
    return {ids.subtopology_id: frozenset(ids.partitions) for ids in listed if ids.partitions}


def _epochs(listed: Iterable[TaskIds], default: int) -> TaskEpochs:
    return {ids.subtopology_id: dict(epochs_in(ids, default)) for ids in listed if ids.partitions}


def _target_ids(tasks: Tasks) -> tuple[TargetTaskIds, ...]:
    return tuple(
        TargetTaskIds(subtopology_id=subtopology, partitions=tuple(sorted(tasks[subtopology])))
        for subtopology in sorted(tasks)
    )


def _ids(tasks: Tasks) -> tuple[TaskIds, ...]:
    return tuple(
        TaskIds(subtopology_id=subtopology, partitions=tuple(sorted(tasks[subtopology])))
        for subtopology in sorted(tasks)
    )


def _ids_with_epochs(tasks: TaskEpochs) -> tuple[TaskIds, ...]:
    listed = []
    for subtopology in sorted(tasks):
        partitions = tuple(sorted(tasks[subtopology]))
        epochs = tuple(tasks[subtopology][n] for n in partitions)
        listed.append(TaskIds(subtopology_id=subtopology, partitions=partitions, assignment_epochs=epochs))
    return tuple(listed)
