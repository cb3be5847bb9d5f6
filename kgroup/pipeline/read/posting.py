"""Turns items of a split into rows for the tasks that fold them, with task and order.

A group's items go to the task that folds it. What belongs to a partition goes once per split to each of its
tasks: what is missing, the ends of transactions that may have begun before the split, names of topics. So a
marker or a gap costs no row per group.
"""

from __future__ import annotations

import heapq
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd
from typing import NamedTuple, TypeAlias

from kgroup.domain import ZERO_UUID, offsets_partition_of, uuid_text
from kgroup.history.fold.topic_names import MAX_NAMES
from kgroup.history.log_items import CommitRun, Gap, GroupRecord, Item, Marker, Packed, PendingCommit, packed
from kgroup.pipeline.read.course import Course
from kgroup.protocol.group_records import ConsumerGroupPartitionMetadataValue
from kgroup.protocol.share_records import ShareKey

REPORT, EDGE, ITEM = range(3)
"""Kinds of rows, in the order in which a task gets them: for the driver, of a partition, of a group."""
_HASH_BITS = 31
_PLACES = 1 << 32
Address: TypeAlias = tuple[int, int, int, int, str, int]
"""Task, kind, partition, its share, group, place: what rows are moved and sorted by."""


def hash_of(group: str) -> int:
    """Return a group's hash, the same in every run: 0 to 2**31 - 1."""
    return zlib.crc32(group.encode()) >> 1


def modulus_with(modulus: int, part: int, group: str) -> int:
    """Return the modulus of a partition that also holds this group; 0 is that of an empty one.

    A broker puts a group into the partition of its id's hash modulo the number of partitions. No segment
    stores that number, so the common divisor of all its groups is kept, for `may_hold`.
    """
    return gcd(modulus, offsets_partition_of(group, 1 << 31) - part)


def may_hold(modulus: int, part: int, group: str) -> bool:
    """Return whether a partition may hold a group, judging by its other groups' common divisor."""
    distance = offsets_partition_of(group, 1 << 31) - part
    return distance == 0 if modulus == 0 else distance % modulus == 0


def first_place(number: int) -> int:
    """Return the place of a split before that of its first item; places grow along a partition."""
    return number * _PLACES


@dataclass(frozen=True, slots=True)
class Shares:
    """The assignment of folds: each partition's tasks (a power of two), by ranges of the groups' hashes.

    One task may have several shares of several partitions.
    """

    tasks: int
    of: Mapping[int, tuple[int, ...]]

    def share(self, part: int, key_hash: int) -> int:
        """Return the share of a partition that groups with that hash are in."""
        return key_hash * len(self.of[part]) >> _HASH_BITS

    def range(self, part: int, share: int) -> tuple[int, int]:
        """Return the least and the greatest hash of a share."""
        width = (1 << _HASH_BITS) // len(self.of[part])
        return share * width, (share + 1) * width - 1


def planned(sizes: Mapping[int, int], tasks: int, shares: int | None = None) -> Shares:
    """Return shares for partitions of these sizes: the larger a partition, the more shares.

    None is larger than half of a task's average, so that tasks get about the same; `shares` is how many every
    partition has instead.
    """
    most = sum(sizes.values()) / tasks / 2
    counts = {part: max(1, shares or (-(-size // max(1, int(most))))) for part, size in sizes.items()}
    rounded = {part: 1 << (count - 1).bit_length() for part, count in counts.items()}
    loads = [(0.0, task) for task in range(tasks)]
    of: dict[int, tuple[int, ...]] = {}
    for part in sorted(sizes, key=lambda part: (-sizes[part] / rounded[part], part)):
        mine = []
        for _ in range(rounded[part]):
            load, task = loads[0]
            heapq.heapreplace(loads, (load + sizes[part] / rounded[part], task))
            mine.append(task)
        of[part] = tuple(mine)
    return Shares(tasks, of)


class Ended(NamedTuple):
    """The first end of a producer's transactions in a split: its place, and the gaps before it."""

    place: int
    gaps: int
    marker: Marker


class Edge(NamedTuple):
    """A split as the folds of its partition see it; `first_ms` is when its first batch was written."""

    number: int
    course: Course
    first_ms: int
    ends: tuple[Ended, ...] = ()


class SplitNames(NamedTuple):
    """Topics of a split by the text of their ids, which no run before has learned."""

    names: Mapping[str, str]


class Report:
    """What a task reports to the driver."""

    __slots__ = ()


Said: TypeAlias = Packed | Edge | SplitNames | Report
Posted: TypeAlias = tuple[Address, tuple[int, Said]]
"""A row: its address, how many gaps of the split lie before it, and its content."""


@dataclass(slots=True)
class Post:
    """Makes the rows of one split's items, which `rows` takes in order."""

    part: int
    number: int
    shares: Shares
    gaps: int = 0
    gap: Gap | None = None
    modulus: int = 0
    """The modulus of the groups, for `may_hold`."""
    names: dict[str, str] = field(default_factory=dict)
    """Topics by the text of their ids, from the items."""
    has_share_groups: bool = False
    _ids: set[bytes] = field(default_factory=lambda: {ZERO_UUID})
    _place: int = 0
    _ends: dict[int, Ended] = field(default_factory=dict)
    _pending: dict[int, dict[str, None]] = field(default_factory=dict)
    _tasks: dict[str, tuple[int, int]] = field(default_factory=dict)

    def rows(self, items: Iterator[Item]) -> Iterator[Posted]:
        """Yield the rows of the next items."""
        for item in items:
            self._place += 1
            if isinstance(item, Gap):
                self.gaps, self.gap = self.gaps + 1, item
                continue
            said = packed(item)
            for group in self._meant(item):
                if group not in self._tasks:
                    share = self.shares.share(self.part, hash_of(group))
                    self._tasks[group] = self.shares.of[self.part][share], share
                    if group:
                        self.modulus = modulus_with(self.modulus, self.part, group)
                task, share = self._tasks[group]
                yield (task, ITEM, self.part, share, group, self.place), (self.gaps, said)

    @property
    def place(self) -> int:
        return first_place(self.number) + self._place

    @property
    def ends(self) -> tuple[Ended, ...]:
        """The first end of each producer's transactions, which may have begun before the split."""
        return tuple(self._ends.values())

    def _meant(self, item: Item) -> Sequence[str]:
        """Return the groups that an item is about; for a marker those that wait for it here."""
        if isinstance(item, Marker):
            if item.producer_id not in self._ends:
                self._ends[item.producer_id] = Ended(self.place, self.gaps, item)
            return list(self._pending.pop(item.producer_id, ()))
        if isinstance(item, PendingCommit):
            self._pending.setdefault(item.producer_id, {})[item.group] = None
        elif isinstance(item, CommitRun):
            for part in item.parts:
                if part.last.topic_id not in self._ids and len(self._ids) < MAX_NAMES:
                    self._ids.add(part.last.topic_id)
                    self.names[uuid_text(part.last.topic_id)] = part.place.topic
        elif isinstance(item, GroupRecord):
            self.has_share_groups = self.has_share_groups or isinstance(item.key, ShareKey)
            if isinstance(item.value, ConsumerGroupPartitionMetadataValue):
                self.names |= {uuid_text(topic.topic_id): topic.topic_name for topic in item.value.topics}
        return (getattr(item, "group", None) or "",)


def to_tasks(tasks: Iterable[int], kind: int, part: int, number: int, content: Said) -> Iterator[Posted]:
    """Yield rows that pass the same content to several tasks."""
    for task in tasks:
        yield (task, kind, part, -1, "", first_place(number)), (0, content)
