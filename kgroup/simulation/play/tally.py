"""The cost of a scenario: partitions without a reader, moved partitions, records read twice."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from kgroup.domain import TopicPartition


class Stage(Protocol):
    """The time, and the current ends of the logs."""

    @property
    def now_ms(self) -> int: ...

    def end_of(self, partition: TopicPartition) -> int: ...


class Reader(Protocol):
    """A process: the partitions it holds, and its known positions in them."""

    @property
    def name(self) -> str: ...

    @property
    def holding(self) -> frozenset[TopicPartition]: ...

    @property
    def positions(self) -> Mapping[TopicPartition, int]: ...


class Tally:
    """Observes a group's processes. Counts from `begin` to `end`; times in ms.

    A partition is unowned while no process holds it; the world stands still while none of them is held. It
    moved when another process holds it than before. Duplicates are records that were processed by one owner
    and lie behind the offset at which the next one starts.
    """

    def __init__(self, world: Stage, partitions: int) -> None:
        self._world = world
        self._partitions = partitions
        self._holding: dict[str, frozenset[TopicPartition]] = {}
        self._holders: dict[TopicPartition, int] = {}
        self._last: dict[TopicPartition, str] = {}
        self._unowned_since: dict[TopicPartition, int] = {}
        self._read_to: dict[TopicPartition, int] = {}
        self._still_since: int | None = None
        self._counting = False
        self.unowned_ms = 0
        self.stop_the_world_ms = 0
        self.moved = 0
        self.duplicates = 0
        self.history: list[tuple[int, int]] = []

    def begin(self, never_read: Iterable[TopicPartition] = ()) -> None:
        """Count from now on, from zero; `never_read` names partitions that never had an owner."""
        now = self._world.now_ms
        self._counting = True
        self._unowned_since = dict.fromkeys((*self._unowned_since, *never_read), now)
        self._still_since = None if self._holders else now
        self.history = [(now, len(self._holders))]

    def end(self) -> None:
        """Stop counting; partitions without an owner count up to now."""
        now = self._world.now_ms
        self.unowned_ms += sum(now - since for since in self._unowned_since.values())
        if self._still_since is not None:
            self.stop_the_world_ms += now - self._still_since
        self.history.append((now, len(self._holders)))
        self._counting = False

    def owners_changed(self, process: Reader) -> None:
        """Note that a process holds other partitions than before."""
        now = self._world.now_ms
        before = self._holding.get(process.name, frozenset())
        self._holding[process.name] = process.holding
        for partition in before - process.holding:
            if partition in process.positions:
                self._read_to[partition] = self._world.end_of(partition)
            left = self._holders.get(partition, 0) - 1
            if left > 0:
                self._holders[partition] = left
            else:
                self._holders.pop(partition, None)
                self._unowned_since[partition] = now
        for partition in process.holding - before:
            self._holders[partition] = self._holders.get(partition, 0) + 1
            since = self._unowned_since.pop(partition, None)
            if self._counting and since is not None:
                self.unowned_ms += now - since
            if self._counting and self._last.get(partition, process.name) != process.name:
                self.moved += 1
            self._last[partition] = process.name
        if not self._counting:
            return
        if self._holders and self._still_since is not None:
            self.stop_the_world_ms += now - self._still_since
            self._still_since = None
        elif not self._holders and self._still_since is None:
            self._still_since = now
        self.history.append((now, len(self._holders)))

    def position_known(self, process: Reader, partition: TopicPartition, committed: int) -> None:
        """Note that a process begins to read a partition from its committed offset."""
        if self._counting:
            self.duplicates += max(self._read_to.get(partition, 0) - committed, 0)
