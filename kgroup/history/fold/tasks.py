"""Tasks of a streams group as its records list them, as text, and by the partitions they read (KIP-1071)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from kgroup.domain import TopicPartition, ranges
from kgroup.protocol.streams_records import (
    StreamsGroupTopologyValue,
    Subtopology,
    sources_of,
)


class Task(NamedTuple):
    """One task: Kafka Streams writes it as `0_3`."""

    subtopology: str
    number: int


@dataclass(frozen=True, slots=True)
class TaskSets:
    """Tasks by kind."""

    active: frozenset[Task] = frozenset()
    standby: frozenset[Task] = frozenset()
    warmup: frozenset[Task] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.active or self.standby or self.warmup)

    def __or__(self, other: TaskSets) -> TaskSets:
        return TaskSets(self.active | other.active, self.standby | other.standby, self.warmup | other.warmup)

    def __sub__(self, other: TaskSets) -> TaskSets:
        return TaskSets(self.active - other.active, self.standby - other.standby, self.warmup - other.warmup)

    @property
    def text(self) -> str:
        """As `describe` writes them: `active 0:0-2, standby 1:0`; `no tasks` for none."""
        roles = (("active", self.active), ("standby", self.standby), ("warm-up", self.warmup))
        words = []
        for role, tasks in roles:
            parts: dict[str, list[int]] = {}
            for task in sorted(tasks):
                parts.setdefault(task.subtopology, []).append(task.number)
            if parts:
                listed = (f"{name}:{ranges(numbers)}" for name, numbers in parts.items())
                words.append(f"{role} {' '.join(listed)}")
        return ", ".join(words) or "no tasks"


NO_TASKS = TaskSets()


@dataclass(frozen=True, slots=True)
class StreamsClient:
    """What only members of a streams group have: record 19's fields, their tasks, their target.

    `endpoint` is `host:port`, None without one. `has` excludes `revoking` (still owned, to be given up).
    """

    process_id: str = ""
    topology_epoch: int = -1
    endpoint: str | None = None
    tags: tuple[tuple[str, str], ...] = ()
    has: TaskSets = NO_TASKS
    revoking: TaskSets = NO_TASKS
    target: TaskSets = NO_TASKS

    @property
    def holds(self) -> TaskSets:
        """What it may still work on: what it has, and what it has not yet given up."""
        return self.has | self.revoking


class Listed(Protocol):
    """Tasks of one subtopology, as records list them."""

    @property
    def subtopology_id(self) -> str: ...
    @property
    def partitions(self) -> tuple[int, ...]: ...


def tasks_of(*lists: Iterable[Listed]) -> TaskSets:
    """Return a record's lists, in the order active, standby, warm-up."""
    return TaskSets(
        *(frozenset(Task(e.subtopology_id, n) for e in entries for n in e.partitions) for entries in lists)
    )


def read_by(topology: StreamsGroupTopologyValue | None, tasks: Iterable[Task]) -> frozenset[TopicPartition]:
    """Return the partitions that these tasks read for certain: task n reads partition n of each source topic.

    If a subtopology reads topics whose sizes may differ, as to be merged, some of them may have fewer
    partitions than there are tasks, and no record has the number: what is unknown is omitted.
    """
    if topology is None:
        return frozenset()
    parts = {part.subtopology_id: part for part in topology.subtopologies}
    return frozenset(
        TopicPartition(name, task.number)
        for task in tasks
        if (part := parts.get(task.subtopology)) is not None
        for name in sources_of(part)
        if _is_certain(part, name, task.number)
    )


def all_read_by(
    topology: StreamsGroupTopologyValue | None, tasks: Iterable[Task]
) -> frozenset[TopicPartition] | None:
    """Return the partitions that these tasks read; None if some of them are unknown."""
    all_tasks = list(tasks)
    readable = read_by(topology, all_tasks)
    if topology is None:
        return None if all_tasks else readable
    parts = {part.subtopology_id: part for part in topology.subtopologies}
    known = all(
        (part := parts.get(task.subtopology)) is not None
        and not part.source_topic_regex
        and all(TopicPartition(name, task.number) in readable for name in sources_of(part))
        for task in all_tasks
    )
    return readable if known else None


def may_read(
    topology: StreamsGroupTopologyValue | None, tasks: Iterable[Task], partition: TopicPartition
) -> bool:
    """Return whether one of these tasks may read a partition; True if no topology says what is read."""
    if topology is None:
        return True
    readers = {p.subtopology_id for p in topology.subtopologies if partition.topic in sources_of(p)}
    patterns = {p.subtopology_id for p in topology.subtopologies if p.source_topic_regex}
    return any(t.number == partition.partition and t.subtopology in readers | patterns for t in tasks)


def _is_certain(part: Subtopology, name: str, number: int) -> bool:
    declared = {topic.name: topic.partitions for topic in part.repartition_source_topics}
    if number < declared.get(name, 0):
        return True
    if part.source_topic_regex:
        return False
    names = set(sources_of(part))
    source, again = part.source_topics, part.repartition_source_topics
    # The topics of one copartition group are all of one size, else no task is assigned (KIP-1071).
    together = (
        {source[i] for i in group.source_topics if 0 <= i < len(source)}
        | {again[i].name for i in group.repartition_source_topics if 0 <= i < len(again)}
        for group in part.copartition_groups
    )
    return len(names) == 1 or names in together
