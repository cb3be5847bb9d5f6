"""What `__consumer_offsets` consists of: bytes, records, tombstones and rates by group and record type."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from kgroup.errors import KgroupError
from kgroup.history.decode.counting import Counter, KeyCount
from kgroup.history.decode.records import group_of
from kgroup.history.log_items import BadRange
from kgroup.history.sources.chunks import Progress
from kgroup.history.sources.logs import OffsetsLog

K = TypeVar("K")
COMMIT_TYPES = frozenset({0, 1})


@dataclass(slots=True)
class Tally:
    """Records of one kind. `size` is the bytes of keys and values, before compression; times in ms."""

    records: int = 0
    size: int = 0
    tombstones: int = 0
    first_ms: int = -1
    last_ms: int = -1

    def add(self, other: Tally | KeyCount) -> None:
        """Add the records of another."""
        self.records += other.records
        self.size += other.size
        self.tombstones += other.tombstones
        if other.first_ms >= 0:
            self.first_ms = other.first_ms if self.first_ms < 0 else min(self.first_ms, other.first_ms)
        self.last_ms = max(self.last_ms, other.last_ms)

    @property
    def per_minute(self) -> float | None:
        """Records per minute between the first and the last; None if too short to calculate."""
        span = self.last_ms - self.first_ms
        return self.records * 60_000 / span if self.records > 1 and span >= 1000 else None


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction whose end is not in the log: it blocks require-stable fetches and compaction."""

    producer_id: int
    partition: int
    first_offset: int
    since_ms: int
    records: int


@dataclass(slots=True)
class Statistics:
    """The result of a scan. `groups` is by (group id, record type); keys without a group count under ""."""

    groups: dict[tuple[str, int], Tally] = field(default_factory=dict)
    superseded: int = 0
    superseded_bytes: int = 0
    partitions: dict[int, int] = field(default_factory=dict)
    compressed_batches: int = 0
    batches: int = 0
    markers: int = 0
    unreadable: int = 0
    open_transactions: list[OpenTransaction] = field(default_factory=list)
    bad: list[BadRange] = field(default_factory=list)
    failures: dict[str, KgroupError] = field(default_factory=dict)
    """Partitions that were not read to their end, by name, and why."""

    def add(self, partition: int, counter: Counter) -> None:
        """Add the counts of a partition."""
        self.batches += counter.batches
        self.compressed_batches += counter.compressed
        self.markers += counter.markers
        self.unreadable += counter.unreadable
        if counter.batches:
            self.partitions[partition] = self.partitions.get(partition, 0) + counter.size
        for key, count in counter.keys.items():
            kind = int.from_bytes(key[:2], "big", signed=True) if len(key) >= 2 else -1
            self.groups.setdefault((group_of(key) or "", kind), Tally()).add(count)
            # Compaction may remove a record as soon as its key has a newer one.
            self.superseded += count.records - 1
            self.superseded_bytes += count.size - count.newest
        self.open_transactions += [
            OpenTransaction(producer, partition, *pending) for producer, pending in counter.open.items()
        ]

    def by_group(self) -> dict[str, Tally]:
        """Return one tally per group, its commits and its own records together."""
        return self._merged(lambda key: key[0])

    def by_type(self) -> dict[int, Tally]:
        """Return one tally per record type."""
        return self._merged(lambda key: key[1])

    def commits(self, group: str) -> Tally:
        """Return the tally of a group's commits."""
        return self._merged(lambda key: key[0] == group and key[1] in COMMIT_TYPES).get(True, Tally())

    def total(self) -> Tally:
        return self._merged(lambda key: 0).get(0, Tally())

    def _merged(self, of: Callable[[tuple[str, int]], K]) -> dict[K, Tally]:
        tallies: dict[K, Tally] = {}
        for key, tally in self.groups.items():
            tallies.setdefault(of(key), Tally()).add(tally)
        return tallies


def scan(logs: Iterable[OffsetsLog], progress: Progress | None = None) -> Statistics:
    """Count every record of the logs. Needs memory for one key of each group, topic and partition."""
    statistics = Statistics()
    for log in logs:
        counter = Counter()
        for chunk, headers in log.batches(progress):
            counter.feed(chunk, headers)
        statistics.add(log.partition, counter)
        statistics.bad += log.bad
        if log.failure is not None:
            statistics.failures[log.source] = log.failure
    return statistics
