"""The tasks assigned to a process of a streams application so far, by the threads it runs (KIP-1071)."""

from __future__ import annotations

from typing import NamedTuple

from kgroup.coordinator.tasks.java_order import PriorityQueue, hash_map_order
from kgroup.coordinator.tasks.values import Tasks


class Task(NamedTuple):
    """A task; ordered by subtopology, then partition."""

    subtopology: str
    partition: int

    def __str__(self) -> str:
        return f"{self.subtopology}_{self.partition}"


class ProcessLoad:
    """The members of one process and their tasks; `load` is tasks per member."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._active: dict[str, list[Task]] = {}
        self._standby: dict[str, list[Task]] = {}
        self._tasks: set[Task] = set()
        self._given = 0
        self._by_count: PriorityQueue[list[str | int]] | None = None

    @property
    def load(self) -> float:
        return self._given / len(self._counts)

    def add_member(self, member_id: str) -> None:
        self._counts[member_id] = 0

    def count_of(self, member_id: str) -> int:
        return self._counts[member_id]

    def has(self, task: Task) -> bool:
        return task in self._tasks

    def active_of(self, member_id: str) -> Tasks:
        return _by_subtopology(self._active.get(member_id, []))

    def standby_of(self, member_id: str) -> Tasks:
        return _by_subtopology(self._standby.get(member_id, []))

    def give(self, member_id: str, task: Task, *, active: bool) -> int:
        """Assign a task to a member; return its count."""
        self._by_count = None
        return self._give(member_id, task, active)

    def give_to_least_loaded(self, task: Task, *, active: bool) -> int:
        """Assign the task to the member with the fewest; return its count."""
        if len(self._counts) == 1:
            return self._give(next(iter(self._counts)), task, active)
        # Kept from task to task: earlier removals decide which is first among equals.
        if self._by_count is None:
            entries: list[list[str | int]] = [[m, self._counts[m]] for m in hash_map_order(self._counts)]
            self._by_count = PriorityQueue(entries, lambda entry: float(entry[1]))
        entry = self._by_count.poll()
        assert entry is not None
        entry[1] = count = self._give(str(entry[0]), task, active)
        self._by_count.add(entry)
        return count

    def _give(self, member_id: str, task: Task, active: bool) -> int:
        (self._active if active else self._standby).setdefault(member_id, []).append(task)
        self._tasks.add(task)
        self._given += 1
        self._counts[member_id] += 1
        return self._counts[member_id]


def _by_subtopology(tasks: list[Task]) -> Tasks:
    by_subtopology: dict[str, set[int]] = {}
    for task in tasks:
        by_subtopology.setdefault(task.subtopology, set()).add(task.partition)
    return {subtopology: frozenset(partitions) for subtopology, partitions in by_subtopology.items()}
