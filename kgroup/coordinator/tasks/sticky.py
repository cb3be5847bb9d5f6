"""Kafka's task assignor `sticky`: tasks stay where their state is, as far as balance allows (KIP-1071)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from kgroup.coordinator.tasks.java_order import PriorityQueue, hash_map_order
from kgroup.coordinator.tasks.process_load import ProcessLoad, Task
from kgroup.coordinator.tasks.values import NO_OFFSETS, Offsets, TaskSet

NAME = "sticky"
"""The only assignor there is; `streams.assignor.name` may name it (KIP-1357)."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A member as the assignor sees it: its process, its target's tasks, the state it reports."""

    process_id: str
    before: TaskSet
    offsets: Offsets = field(default_factory=lambda: NO_OFFSETS)


class TaskKind(NamedTuple):
    """A subtopology as the assignor sees it."""

    tasks: int
    is_stateful: bool


class NoAssignment(Exception):
    """Why tasks cannot be assigned, such as for lack of members."""


AssignTasks: TypeAlias = Callable[
    [Mapping[str, Placed], Mapping[str, TaskKind], int, bool], dict[str, TaskSet]
]
"""The signature of `assign`, for a host that brings another."""


def assign(
    members: Mapping[str, Placed],
    subtopologies: Mapping[str, TaskKind],
    standbys: int,
    by_offset: bool = True,
) -> dict[str, TaskSet]:
    """Return each member's tasks: every active task once, and up to `standbys` more of each with state.

    `members` in the order in which ties are to be broken. `by_offset` prefers the member with the most of
    a task's state among those that keep it, as Kafka 4.4 does. Raise NoAssignment.
    """
    return _Assignment(members, subtopologies, standbys, by_offset).made()


class _Quota:
    """The most tasks a member gets until the rest is spread; it falls as members are full."""

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks, self._members = tasks, members
        self.each = self._share()

    def took(self, count: int) -> None:
        """Note that a member has `count` tasks now."""
        if count == self.each:
            self._members -= 1
            self._tasks -= count
            self.each = self._share()

    def _share(self) -> int:
        return -(-self._tasks // self._members) if self._members else 0


class _Assignment:
    def __init__(
        self,
        members: Mapping[str, Placed],
        subtopologies: Mapping[str, TaskKind],
        standbys: int,
        by_offset: bool,
    ) -> None:
        self._members = members
        self._subtopologies = subtopologies
        self._standbys = standbys
        active = sum(kind.tasks for kind in subtopologies.values())
        kept = sum(kind.tasks for kind in subtopologies.values() if kind.is_stateful)
        self._active_quota = _Quota(active, len(members))
        self._quota = _Quota(active + kept * standbys, len(members))
        ids = [placed.process_id for placed in members.values()]
        self._processes = {
            name: ProcessLoad() for name in hash_map_order(ids, len(members), computed=by_offset)
        }
        self._active_before: dict[Task, str] = {}
        self._standby_before: dict[Task, list[str]] = {}
        for member_id, placed in members.items():
            self._processes[placed.process_id].add_member(member_id)
            for task in _listed(placed.before.active):
                self._active_before[task] = member_id
            for task in _listed(placed.before.standby):
                self._standby_before.setdefault(task, []).append(member_id)
        self._by_offset = by_offset
        if by_offset:
            self._rank_by_offset()

    def _rank_by_offset(self) -> None:
        """Rank standbys first, then members that reported a task's offset too; the furthest along first."""
        ranks: dict[Task, list[tuple[bool, int, str]]] = {}
        for member_id, placed in self._members.items():
            standby = set(_listed(placed.before.standby))
            for task in _listed(placed.before.standby):
                reached = placed.offsets.get(task.subtopology, {}).get(task.partition, 0)
                ranks.setdefault(task, []).append((False, -reached, member_id))
            for task in _listed(placed.offsets):
                if task not in standby:
                    reached = placed.offsets[task.subtopology][task.partition]
                    ranks.setdefault(task, []).append((True, -reached, member_id))
        self._standby_before = {
            task: [member_id for *_, member_id in sorted(ranked, key=lambda rank: rank[:2])]
            for task, ranked in ranks.items()
        }

    def made(self) -> dict[str, TaskSet]:
        self._assign_active()
        if self._standbys > 0:
            self._assign_standbys()
        return {
            member_id: TaskSet(process.active_of(member_id), process.standby_of(member_id))
            for member_id in self._members
            for process in (self._process_of(member_id),)
        }

    def _tasks(self, *, stateful: bool) -> list[Task]:
        return [
            Task(name, partition)
            for name, kind in self._subtopologies.items()
            if kind.is_stateful or not stateful
            for partition in range(kind.tasks)
        ]

    def _process_of(self, member_id: str) -> ProcessLoad:
        return self._processes[self._members[member_id].process_id]

    def _assign_active(self) -> None:
        """Assign to the last owner; else to a member with warm state; else to the least loaded process."""
        left = sorted(self._tasks(stateful=False), key=lambda task: (task.partition, task.subtopology))
        left = [task for task in left if not self._give_active(task, self._active_before.get(task))]
        left = [
            task
            for task in left
            if not self._give_active(task, self._least_loaded(self._standby_before.get(task, ()), None))
        ]
        by_load = PriorityQueue(self._processes.values(), lambda process: process.load)
        for task in sorted(left):
            process = by_load.poll()
            if process is None:
                raise NoAssignment(f"No process available to assign active task {task}.")
            self._count_active(process.give_to_least_loaded(task, active=True))
            by_load.add(process)

    def _give_active(self, task: Task, member_id: str | None) -> bool:
        if member_id is None:
            return False
        process = self._process_of(member_id)
        if process.count_of(member_id) >= self._active_quota.each:
            return False
        self._count_active(process.give(member_id, task, active=True))
        return True

    def _count_active(self, count: int) -> None:
        self._active_quota.took(count)
        self._quota.took(count)

    def _assign_standbys(self) -> None:
        """Assign first where the task was, active or standby; then to the least loaded processes."""
        tasks = sorted(
            self._tasks(stateful=True), key=lambda task: (task.partition, task.subtopology), reverse=True
        )
        left = [(task, missing) for task in tasks if (missing := self._missing_standbys(task))]
        by_load = PriorityQueue(self._processes.values(), lambda process: process.load)
        for task, missing in sorted(left, reverse=True):
            for _ in range(missing):
                # With fewer processes than copies some copies are not assigned: no process keeps a state
                # twice.
                if not self._give_standby(by_load, task):
                    break

    def _missing_standbys(self, task: Task) -> int:
        """Assign standbys to the task's earlier ones; return how many are missing."""
        for given in range(self._standbys):
            before = self._active_before.get(task)
            if before is not None and not self._process_of(before).has(task) and self._has_room(before):
                self._quota.took(self._process_of(before).give(before, task, active=False))
                continue
            keeper = self._least_loaded(self._standby_before.get(task, ()), task)
            if keeper is not None and self._has_room(keeper):
                self._quota.took(self._process_of(keeper).give(keeper, task, active=False))
                continue
            return self._standbys - given
        return 0

    def _has_room(self, member_id: str) -> bool:
        return self._process_of(member_id).count_of(member_id) < self._quota.each

    def _give_standby(self, by_load: PriorityQueue[ProcessLoad], task: Task) -> bool:
        passed: list[ProcessLoad] = []
        given = False
        while not given and (process := by_load.poll()) is not None:
            passed.append(process)
            if not process.has(task):
                self._quota.took(process.give_to_least_loaded(task, active=False))
                given = True
        for process in reversed(passed):
            by_load.add(process)
        return given

    def _least_loaded(self, members: Sequence[str], task: Task | None) -> str | None:
        """Return the least loaded member that had a task; None if its process has `task` now."""
        if self._by_offset and task is not None:
            members = [member_id for member_id in members if not self._process_of(member_id).has(task)]
        if not members:
            return None
        candidate = members[0]
        first = self._process_of(candidate)
        process_load, member_load = first.load, first.count_of(candidate)
        for member_id in members[1:]:
            process = self._process_of(member_id)
            if process.load < process_load and (task is None or not process.has(task)):
                count = process.count_of(member_id)
                if count < member_load:
                    process_load, member_load, candidate = process.load, count, member_id
        # Kafka 4.3 asks the first one's process, even if another has been chosen since.
        return candidate if task is None or not first.has(task) else None


def _listed(tasks: Mapping[str, Iterable[int]]) -> Iterable[Task]:
    for subtopology, partitions in tasks.items():
        for partition in partitions:
            yield Task(subtopology, partition)
