"""What `__consumer_offsets` consists of: bytes, records, tombstones and rates by group and record type."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from kgroup.errors import DecodeError, KgroupError
from kgroup.history.decode.records import group_of, raw_records
from kgroup.history.decode.scan import COMPRESSED, CONTROL
from kgroup.history.items import BadRange
from kgroup.history.sources.chunks import Progress
from kgroup.history.sources.logs import OffsetsLog

K = TypeVar("K")
COMMIT_TYPES = frozenset({0, 1})


@dataclass(slots=True)
class Tally:
    """Records of one sort. `bytes` are those of keys and values, before compression; times in ms."""

    records: int = 0
    bytes: int = 0
    tombstones: int = 0
    first_ms: int = -1
    last_ms: int = -1

    def add(self, size: int, tombstone: bool, timestamp_ms: int) -> None:
        self.records += 1
        self.bytes += size
        self.tombstones += tombstone
        if self.first_ms < 0:
            self.first_ms = timestamp_ms
        self.last_ms = max(self.last_ms, timestamp_ms)

    @property
    def per_minute(self) -> float | None:
        """Records a minute between the first and the last; None for a moment too short to tell."""
        span = self.last_ms - self.first_ms
        return self.records * 60_000 / span if self.records > 1 and span >= 1000 else None


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction whose end is not in the log: it holds up require-stable fetches and compaction."""

    producer_id: int
    partition: int
    first_offset: int
    since_ms: int
    records: int


@dataclass(slots=True)
class Statistics:
    """What a scan counted. `groups` is by (group id, record type); keys that name no group count under ""."""

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

    def by_group(self) -> dict[str, Tally]:
        """One tally a group, its commits and its own records together."""
        return self._merged(lambda key: key[0])

    def by_type(self) -> dict[int, Tally]:
        """One tally a record type."""
        return self._merged(lambda key: key[1])

    def commits(self, group: str) -> Tally:
        """The commits of a group."""
        return self._merged(lambda key: key[0] == group and key[1] in COMMIT_TYPES).get(True, Tally())

    def total(self) -> Tally:
        return self._merged(lambda key: 0).get(0, Tally())

    def _merged(self, of: Callable[[tuple[str, int]], K]) -> dict[K, Tally]:
        found: dict[K, Tally] = {}
        for key, tally in self.groups.items():
            into = found.setdefault(of(key), Tally())
            into.records += tally.records
            into.bytes += tally.bytes
            into.tombstones += tally.tombstones
            starts = [t for t in (into.first_ms, tally.first_ms) if t >= 0]
            into.first_ms = min(starts, default=-1)
            into.last_ms = max(into.last_ms, tally.last_ms)
        return found


def scan(logs: Iterable[OffsetsLog], progress: Progress | None = None) -> Statistics:
    """Count every record of the logs. Needs memory for one key of each group, topic and partition."""
    found = Statistics()
    for log in logs:
        # Of each key the bytes of its newest record, and where it is counted.
        newest: dict[bytes, tuple[int, Tally]] = {}
        pending: dict[int, OpenTransaction] = {}
        for chunk, headers in log.batches(progress):
            for header in headers:
                found.batches += 1
                found.compressed_batches += bool(header.attributes & COMPRESSED)
                size = header.end - header.position
                found.partitions[log.partition] = found.partitions.get(log.partition, 0) + size
                if header.attributes & CONTROL:
                    found.markers += 1
                    # A producer has one transaction at a time (KIP-98): the marker ends whatever it has open.
                    pending.pop(header.producer_id, None)
                    continue
                if header.producer_id >= 0:
                    at = pending.get(header.producer_id)
                    first, since = (header.base_offset, header.base_timestamp_ms)
                    if at is not None:
                        first, since = at.first_offset, at.since_ms
                    count = header.records + (at.records if at else 0)
                    opened = OpenTransaction(header.producer_id, log.partition, first, since, count)
                    pending[header.producer_id] = opened
                try:
                    for record in raw_records(chunk, header):
                        key = record.key or b""
                        bytes_ = len(key) + len(record.value or b"")
                        before = newest.get(key)
                        # Compaction may take a record as soon as its key has a newer one.
                        if before is not None:
                            found.superseded += 1
                            found.superseded_bytes += before[0]
                            tally = before[1]
                        else:
                            kind = int.from_bytes(key[:2], "big", signed=True) if len(key) >= 2 else -1
                            tally = found.groups.setdefault((group_of(key) or "", kind), Tally())
                        tally.add(bytes_, record.value is None, record.timestamp_ms)
                        newest[key] = bytes_, tally
                except DecodeError:
                    found.unreadable += 1
        found.open_transactions += pending.values()
        found.bad += log.bad
        if log.failure is not None:
            found.failures[log.source] = log.failure
    return found
