"""Tasks as assignors and groups pass them around (KIP-1071)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

Tasks: TypeAlias = Mapping[str, frozenset[int]]
"""Subtopology id → partitions; never changed in place, no subtopology without partitions."""

Offsets: TypeAlias = Mapping[str, Mapping[int, int]]
"""Subtopology id → partition → offset of its changelog; never changed in place."""

NO_OFFSETS: Offsets = MappingProxyType({})
NO_TASKS: Tasks = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class TaskSet:
    """Tasks by role: a target, or what a member reports to own."""

    active: Tasks = field(default_factory=lambda: NO_TASKS)
    standby: Tasks = field(default_factory=lambda: NO_TASKS)
    warmup: Tasks = field(default_factory=lambda: NO_TASKS)

    def __bool__(self) -> bool:
        return bool(self.active or self.standby or self.warmup)


NO_TASK_SET = TaskSet()


def union(one: Tasks, other: Tasks) -> Tasks:
    """Return the tasks of either."""
    return {s: one.get(s, frozenset()) | other.get(s, frozenset()) for s in dict.fromkeys((*one, *other))}
