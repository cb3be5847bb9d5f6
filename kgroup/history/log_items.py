"""What the decoder passes to a fold: one frozen value for each kind of content of a log. Times in ms, UTC."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kgroup.domain import TopicPartition, count_of

if TYPE_CHECKING:
    from kgroup.protocol.record_kinds import RecordKey, RecordValue

RUN_OFFSETS: Final = 10_000_000
"""No run of commits crosses a multiple of this log offset, however a log is cut: so the events of a group
that only commits have the same bounds for every reader."""


class RawRecord(NamedTuple):
    """One record as it lies in the log; `batch` is the base offset of its batch."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    batch: int
    producer_id: int


class Committed(NamedTuple):
    """A commit as its value has it; times in ms, `log_offset` is where the record lies."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int
    topic_id: bytes
    version: int
    log_offset: int
    timestamp_ms: int


class Rewind(NamedTuple):
    """A commit below the one before it on the same partition."""

    topic: str
    partition: int
    before: int
    after: int
    log_offset: int
    timestamp_ms: int
    metadata: str = ""
    """Metadata of the lower commit, if it is long enough to be a mark."""
    topic_ids: tuple[bytes, bytes] | None = None
    """Topic ids of the commit before and of the lower one; None if they are known and the same.

    If they differ the topic was created again; zeros are unknown.
    """


def other_topic(before: bytes, after: bytes) -> tuple[bytes, bytes] | None:
    """Return the topic ids of two commits of one name, unless they are proven to be of one topic."""
    return None if before == after and any(before) else (before, after)


class PartProgress(NamedTuple):
    """A run's effect on one partition: the commit count, the first committed offset, the last commit.

    `since_ms` is the time of the commit from which on the run repeats the last one's offset.
    """

    place: TopicPartition
    commits: int
    first: int
    first_log_offset: int
    first_timestamp_ms: int
    first_metadata: str
    """Metadata of the last commit, if it is long enough to be a mark."""
    since_ms: int
    last: Committed


@dataclass(frozen=True, slots=True)
class CommitRun:
    """Commits of one group with no other record of that group between them, in log order.

    `rewinds` are those inside the run; the reader has to detect one against an earlier run.
    """

    group: str
    first_offset: int
    last_offset: int
    parts: tuple[PartProgress, ...]
    rewinds: tuple[Rewind, ...]


@dataclass(frozen=True, slots=True)
class PendingCommit:
    """A commit inside a transaction: without effect until the producer's marker."""

    group: str
    topic: str
    partition: int
    producer_id: int
    commit: Committed


@dataclass(frozen=True, slots=True)
class OffsetRemoved:
    """A tombstone of a commit; `batch` is the base offset of its batch."""

    group: str
    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    batch: int


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """A record of a group's own state; `key` and `value` as in `protocol.group_records`."""

    group: str
    type: int
    offset: int
    timestamp_ms: int
    batch: int
    key: RecordKey
    value: RecordValue | None


@dataclass(frozen=True, slots=True)
class Marker:
    """The end of a producer's transaction on this partition."""

    producer_id: int
    committed: bool
    offset: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class Gap:
    """Offsets `first` to `last` are missing from the log: compacted away, or in a missing segment."""

    first: int
    last: int
    timestamp_ms: int
    """The time of the next record that is there."""
    missing: int


@dataclass(frozen=True, slots=True)
class Undecodable:
    """A record that was skipped: its type is unknown or it does not decode."""

    group: str | None
    type: int
    offset: int
    timestamp_ms: int
    reason: str


def gap_between(next_offset: int, first_offset: int, timestamp_ms: int) -> Gap | None:
    """Return the gap between two parts of a log, if there is one.

    The first ends before `next_offset` (-1: nothing was read yet), the other begins at `first_offset`.
    """
    if not 0 <= next_offset < first_offset:
        return None
    return Gap(next_offset, first_offset - 1, timestamp_ms, first_offset - next_offset)


_MOST_PLACES = 400_000
Item = CommitRun | PendingCommit | OffsetRemoved | GroupRecord | Marker | Gap | Undecodable
Packed = tuple[Any, ...] | Item
"""The result of `packed`: a run of commits as plain tuples, anything else as it is."""


def packed(item: Item) -> Packed:
    """Return the item for pickling: plain tuples take a third of the time, and nearly all items are runs."""
    if not isinstance(item, CommitRun):
        return item
    parts = [(*part.place, *part[1:7], *part.last) for part in item.parts]
    return item.group, item.first_offset, item.last_offset, parts, [tuple(back) for back in item.rewinds]


Places = dict[TopicPartition, TopicPartition]
"""Partitions seen before: millions of events may be about a few of them."""


def unpacked(value: Packed, places: Places) -> Item:
    """Return the inverse of `packed`; equal partitions become one object, which `places` holds."""
    if type(value) is not tuple:
        return value  # type: ignore[return-value]
    group, first, last, flat, backs = value
    if len(places) > _MOST_PLACES:
        places.clear()
    make, known = tuple.__new__, places.setdefault  # `_make` does the same with a check that takes longer
    parts = tuple(
        [
            make(
                PartProgress, (known(at := make(TopicPartition, p[:2]), at), *p[2:8], make(Committed, p[8:]))
            )
            for p in flat
        ]
    )
    return CommitRun(group, first, last, parts, tuple([Rewind(*back) for back in backs]))


@dataclass(slots=True)
class Seen:
    """What was read of a log so far, counted as `Decoder` counts it; offsets, times in ms."""

    first_offset: int = -1
    next_offset: int = -1
    records: int = 0
    missing: int = 0
    complete_from: int = -1
    complete_from_ms: int = -1
    last_ms: int = -1

    def follow(self, share: Seen) -> None:
        """Add what was seen after it; what is missing in between counts as missing too."""
        if share.first_offset < 0:
            return
        lost = share.first_offset - self.next_offset if self.first_offset >= 0 else 0
        if self.first_offset < 0:
            self.first_offset = share.first_offset
        if self.complete_from < 0 or lost > 0 or share.missing:
            self.complete_from, self.complete_from_ms = share.complete_from, share.complete_from_ms
        self.next_offset, self.last_ms = share.next_offset, share.last_ms
        self.records += share.records
        self.missing += share.missing + max(0, lost)


class Problem(StrEnum):
    """The kind of problem with a range of bytes."""

    CORRUPT = "corrupt"
    CUT_SHORT = "cut_short"
    """A batch at the end that is torn, or still being written: nothing in it was acknowledged."""
    NOT_READ = "not_read"
    """Whole batches that a merge of copies leaves out."""


NOT_READ = "not read: "
"""How the reason of a range that was not read begins: where a table has no problem, this says it."""


@dataclass(frozen=True, slots=True)
class BadRange:
    """Bytes of a source that give no batch: `start` to `end` (exclusive) are positions in the source."""

    source: str
    start: int
    end: int
    reason: str
    problem: Problem = Problem.CORRUPT

    @property
    def code(self) -> str:
        """The name of its error."""
        return "NOT_SEEN" if self.problem is Problem.NOT_READ else "CORRUPT_MESSAGE"

    def __str__(self) -> str:
        return f"{self.source}: bytes {self.start} to {self.end}: {self.reason}"


def not_read(source: str, ranges: Sequence[BadRange]) -> str:
    """Return in words how much of a log is damaged."""
    return f"{count_of(len(ranges), 'damaged range')} of {source} could not be read"
