"""Commits of a group between two of its other records, gathered by partition while a log is read."""

from __future__ import annotations

import struct
from typing import Final

from kgroup.domain import TopicPartition
from kgroup.errors import DecodeError
from kgroup.history.items import CommitRun, PartProgress, Rewind, Undecodable
from kgroup.history.records import decode_commit

_VERSION_AND_OFFSET = struct.Struct(">hq")
# One object a version for all slots: a log has more keys than a processor's cache has room.
_CEILINGS = {bytes((0, version)): bytes((0, version, 0x80)) for version in range(5)}
_NO_MARK: Final = 42
"""Bytes of the longest value (version 4, with a topic id) that has no metadata."""


class Slot:
    """One partition's part of its group's current run.

    A value from `value` up to `ceiling`, compared as bytes, is a commit of the same version, at or above the
    last one and not negative: the reader then only counts it and keeps it. Any other is for `take`.
    """

    __slots__ = (
        "ceiling", "count", "first", "first_offset", "first_ts", "first_value", "group", "offset", "place",
        "ts", "value",
    )  # fmt: skip

    def __init__(self, group: GroupRun, place: TopicPartition) -> None:
        self.group = group
        self.place = place
        self.count = 0
        self.first = 0
        self.first_offset = 0
        self.first_ts = 0
        self.first_value = b""
        self.offset = 0
        self.ts = 0
        self.value = b""
        self.ceiling = b""

    def take(self, value: bytes, offset: int, ts: int) -> None:
        """Take in any commit, with its log offset and time (ms); DecodeError if it is cut short."""
        committed = offset_in(value)
        if not self.count:
            self.group.dirty.append(self)
            self.first, self.first_offset, self.first_ts = committed, offset, ts
            self.first_value = value
        else:
            before = offset_in(self.value)
            if committed < before:
                topic, partition = self.place
                text = metadata_in(value)
                self.group.rewinds.append(Rewind(topic, partition, before, committed, offset, ts, text))
        self.count += 1
        self.value, self.offset, self.ts = value, offset, ts
        self.ceiling = _CEILINGS.get(value[:2], b"")

    def close(self) -> PartProgress:
        """What this slot gathered, DecodeError if its last commit makes no sense; it is empty afterwards."""
        count, self.count, self.ceiling = self.count, 0, b""
        last = decode_commit(self.value, self.offset, self.ts)
        first = (self.first, self.first_offset, self.first_ts, metadata_in(self.first_value))
        return PartProgress(self.place, count, *first, last)


class GroupRun:
    """One group's current run: the slots it touched, and its rewinds."""

    __slots__ = ("dirty", "name", "rewinds")

    def __init__(self, name: str) -> None:
        self.name = name
        self.dirty: list[Slot] = []
        self.rewinds: list[Rewind] = []

    def close(self) -> list[CommitRun | Undecodable]:
        """The run, unless it is empty, behind what of it does not decode; a new one begins."""
        found: list[CommitRun | Undecodable] = []
        parts: list[PartProgress] = []
        for slot in self.dirty:
            try:
                parts.append(slot.close())
            except DecodeError as error:
                found.append(Undecodable(self.name, 1, slot.offset, slot.ts, error.message, False))
        rewinds, self.dirty, self.rewinds = tuple(self.rewinds), [], []
        if parts:
            last = max([part.last.log_offset for part in parts])
            found.append(CommitRun(self.name, parts[0].first_log_offset, last, tuple(parts), rewinds))
        return found


def offset_in(value: bytes) -> int:
    """The committed offset in an OffsetCommit value of any version; DecodeError if it is cut short."""
    if len(value) < 10:
        raise DecodeError(f"an OffsetCommit value of {len(value)} bytes")
    offset: int = _VERSION_AND_OFFSET.unpack_from(value)[1]
    return offset


def metadata_in(value: bytes) -> str:
    """The metadata of a commit, where it can be long enough for a mark of kgroup's; else nothing."""
    if len(value) <= _NO_MARK:
        return ""
    try:
        return decode_commit(value, -1, -1).metadata
    except DecodeError:
        return ""
