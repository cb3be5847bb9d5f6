"""Commits of a group between two of its other records, gathered by partition while a log is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import read_i64_be

from kgroup.domain import TopicPartition
from kgroup.errors import DecodeError
from kgroup.history.decode.records import decode_commit
from kgroup.history.log_items import CommitRun, PartProgress, Rewind, Undecodable, other_topic

if TYPE_CHECKING:
    from mypy_extensions import i64

_NO_MARK: Final = 42
"""Bytes of the longest value (version 4, with a topic id) that has no metadata."""


class Slot:
    """One partition's part of its group's current run.

    The newest value lies in `data` from `start` to `end`; `last` is the offset it commits. While `count` is
    not 0, a commit at or above `last` is for `advance`; any other is for `take`. `next` is the number of the
    slot whose `key` last followed this one's.
    """

    __slots__ = (
        "count",
        "data",
        "end",
        "first",
        "first_offset",
        "first_ts",
        "first_value",
        "group",
        "key",
        "last",
        "next",
        "number",
        "offset",
        "place",
        "start",
        "ts",
    )

    def __init__(self, group: GroupRun, place: TopicPartition, key: bytes, number: int) -> None:
        self.group = group
        self.place = place
        self.key = key
        self.number: i64 = number
        self.next: i64 = 0
        self.count: i64 = 0
        self.first: i64 = 0
        self.first_offset: i64 = 0
        self.first_ts: i64 = 0
        self.first_value = b""
        self.last: i64 = 0
        self.offset: i64 = 0
        self.ts: i64 = 0
        self.data = b""
        self.start: i64 = 0
        self.end: i64 = 0

    def advance(self, committed: i64, offset: i64, ts: i64, data: bytes, start: i64, end: i64) -> bool:
        """Count a commit at or above the last, its value at `start` to `end` of `data`; is `data` new?"""
        self.count += 1
        self.last, self.offset, self.ts = committed, offset, ts
        self.start, self.end = start, end
        fresh = self.data is not data
        if fresh:
            self.data = data
        return fresh

    def take(self, value: bytes, offset: i64, ts: i64) -> None:
        """Take any commit, with its log offset and time (ms); DecodeError if it is cut short."""
        if len(value) < 10:
            raise DecodeError(f"an OffsetCommit value of {len(value)} bytes")
        committed = read_i64_be(value, 2)
        if not self.count:
            self.group.dirty.append(self)
            self.first, self.first_offset, self.first_ts = committed, offset, ts
            self.first_value = value
        elif committed < self.last:
            topic, partition = self.place
            text = metadata_in(value)
            try:
                before = decode_commit(self.data[self.start : self.end], -1, -1)
                ids = other_topic(before.topic_id, decode_commit(value, -1, -1).topic_id)
            except DecodeError:
                ids = None
            self.group.rewinds.append(Rewind(topic, partition, self.last, committed, offset, ts, text, ids))
        self.count += 1
        self.last, self.offset, self.ts = committed, offset, ts
        self.data, self.start, self.end = value, 0, len(value)

    def keep(self) -> None:
        """Keep only the newest value, and drop all that it was read from."""
        self.data = self.data[self.start : self.end]
        self.start, self.end = 0, len(self.data)

    def close(self) -> PartProgress:
        """Return and reset what this slot gathered; DecodeError if its last commit does not decode."""
        count, self.count = self.count, 0
        last = decode_commit(self.data[self.start : self.end], self.offset, self.ts)
        text = metadata_in(self.first_value)
        return tuple.__new__(
            PartProgress,
            (self.place, count, self.first, self.first_offset, self.first_ts, text, last),
        )


class GroupRun:
    """One group's current run: the slots it touched, and its rewinds."""

    __slots__ = ("dirty", "name", "rewinds")

    def __init__(self, name: str) -> None:
        self.name = name
        self.dirty: list[Slot] = []
        self.rewinds: list[Rewind] = []

    def close(self) -> list[CommitRun | Undecodable]:
        """Return the run, unless it is empty, after its parts that do not decode; a new one begins."""
        found: list[CommitRun | Undecodable] = []
        parts: list[PartProgress] = []
        for slot in self.dirty:
            try:
                parts.append(slot.close())
            except DecodeError as error:
                found.append(Undecodable(self.name, 1, slot.offset, slot.ts, error.message))
        rewinds, self.dirty, self.rewinds = tuple(self.rewinds), [], []
        if parts:
            last = max([part.last.log_offset for part in parts])
            found.append(CommitRun(self.name, parts[0].first_log_offset, last, tuple(parts), rewinds))
        return found


def metadata_in(value: bytes) -> str:
    """Return the metadata of a commit if it can be long enough for a mark of kgroup's; else nothing."""
    if len(value) <= _NO_MARK:
        return ""
    try:
        return decode_commit(value, -1, -1).metadata
    except DecodeError:
        return ""
