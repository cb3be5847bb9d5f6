"""Commits of a group between two of its other records, gathered by partition while a log is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter, read_i16_be, read_i32_be, read_i64_be, read_i64_le, write_i64_be

from kgroup.domain import ZERO_UUID, TopicPartition
from kgroup.errors import DecodeError
from kgroup.history.decode.records import decode_commit
from kgroup.history.log_items import CommitRun, Committed, PartProgress, Rewind, Undecodable, other_topic

if TYPE_CHECKING:
    from mypy_extensions import i64

_NO_MARK: Final = 42
"""Bytes of the longest value (version 4, with a topic id) that has no metadata."""
_PLAIN: Final = 24
"""Bytes of a value of version 3 without metadata."""
_KINDS: Final = b"\1\0\x10"
"""One tagged field, the topic id, of 16 bytes."""
_WORD: Final = 8
_make: Final = tuple.__new__  # a named tuple's own constructor is Python


class Slot:
    """One partition's part of its group's current run.

    `last` is the offset that the newest commit has. Its value is kept as numbers where it has no metadata and
    is of `version` 3 or 4, which brokers write; else whole in `value`, and `version` is 0. `next` is the
    number of the slot whose `key` last followed this one's in a batch, and `after` that of the one that began
    the next batch, if this one begins a batch.
    """

    __slots__ = (
        "after",
        "count",
        "first",
        "first_offset",
        "first_ts",
        "first_value",
        "group",
        "id_high",
        "id_low",
        "key",
        "key_bytes",
        "last",
        "leader_epoch",
        "next",
        "number",
        "offset",
        "place",
        "since",
        "stamp",
        "ts",
        "value",
        "version",
    )

    def __init__(self, group: GroupRun, partition: TopicPartition, key: bytes, number: int) -> None:
        # What each commit changes comes first, to lie together.
        self.next: i64 = 0
        self.key = key
        # No key that is looked for is as long as that of the slot that stands for none.
        self.key_bytes: i64 = len(key) or -1
        self.count: i64 = 0
        self.last: i64 = 0
        self.offset: i64 = 0
        self.ts: i64 = 0
        self.since: i64 = 0
        self.version: i64 = 0
        self.leader_epoch = 0
        self.stamp: i64 = 0
        self.id_high: i64 = 0
        self.id_low: i64 = 0
        self.value = b""
        self.after: i64 = 0
        self.number: i64 = number
        self.group = group
        self.place = partition
        self.first: i64 = 0
        self.first_offset: i64 = 0
        self.first_ts: i64 = 0
        self.first_value = b""

    def is_at(self, data: bytes, start: i64, end: i64) -> bool:
        """Return whether the key is what `data` has from `start` to `end`; IndexError if it ends before."""
        if end - start != self.key_bytes:
            return False
        # Its end has the partition, which differs most often. A commit's key has ten bytes at least.
        key = self.key
        at: i64 = self.key_bytes - _WORD
        while at > 0:
            if read_i64_le(data, start + at) != read_i64_le(key, at):
                return False
            at -= _WORD
        return read_i64_le(data, start) == read_i64_le(key, 0)

    def take(self, data: bytes, start: i64, end: i64, offset: i64, ts: i64) -> None:
        """Take a commit with its log offset and time (ms); its value, of 10 bytes at least, is in `data`."""
        committed = read_i64_be(data, start + 2)
        if not self.count:
            self.group.dirty.append(self)
            self.first, self.first_offset, self.first_ts = committed, offset, ts
            self.first_value = data[start:end] if end - start > _NO_MARK else b""
            self.since = ts
        elif committed != self.last:
            self.since = ts
            if committed < self.last:
                self._rewound(data[start:end], committed, offset, ts)
        self.count += 1
        self.last, self.offset, self.ts = committed, offset, ts
        size = end - start
        if size == _PLAIN and read_i16_be(data, start) == 3 and not read_i16_be(data, start + 14):
            self.version, self.leader_epoch = 3, read_i32_be(data, start + 10)
            self.stamp = read_i64_be(data, start + 16)
        elif size == _NO_MARK and self._has_topic_id(data, start):
            self.version, self.leader_epoch = 4, read_i32_be(data, start + 10)
            self.stamp = read_i64_be(data, start + 15)
            self.id_high, self.id_low = read_i64_be(data, start + 26), read_i64_be(data, start + 34)
        else:
            self.version, self.value = 0, data[start:end]

    def _has_topic_id(self, data: bytes, start: i64) -> bool:
        """Return whether a value of that length is of version 4, and its only field besides is a topic id."""
        alone = data[start + 14] == 1 and data[start + 23 : start + 26] == _KINDS
        return alone and read_i16_be(data, start) == 4

    def _rewound(self, value: bytes, committed: i64, offset: i64, ts: i64) -> None:
        """Note a commit below the newest one."""
        topic, partition = self.place
        try:
            ids = other_topic(self._newest().topic_id, decode_commit(value, -1, -1).topic_id)
        except DecodeError:
            ids = None
        text = metadata_in(value)
        self.group.rewinds.append(Rewind(topic, partition, self.last, committed, offset, ts, text, ids))

    def _newest(self) -> Committed:
        """Return the newest commit; DecodeError if it does not decode."""
        if not self.version:
            return decode_commit(self.value, self.offset, self.ts)
        topic_id = self.group.topic_id(self.id_high, self.id_low) if self.version == 4 else ZERO_UUID
        epoch, version, offset = self.leader_epoch, self.version, self.offset
        ts: object = self.ts
        # Both are mostly the broker's time as it wrote the record.
        stamp: object = ts if self.stamp == self.ts else self.stamp
        return _make(Committed, (self.last, epoch, "", stamp, -1, topic_id, version, offset, ts))

    def close(self) -> PartProgress:
        """Return and reset what this slot gathered; DecodeError if its last commit does not decode."""
        count, self.count = self.count, 0
        last, text = self._newest(), metadata_in(self.first_value)
        if count == 1:
            newest: tuple[object, ...] = last
            return _make(
                PartProgress, (self.place, count, newest[0], newest[7], newest[8], text, newest[8], last)
            )
        parts = (self.place, count, self.first, self.first_offset, self.first_ts, text, self.since, last)
        return _make(PartProgress, parts)


class GroupRun:
    """One group's current run: the slots it touched, and its rewinds."""

    __slots__ = ("_id", "_id_high", "_id_low", "dirty", "name", "rewinds")

    def __init__(self, name: str) -> None:
        self.name = name
        self.dirty: list[Slot] = []
        self.rewinds: list[Rewind] = []
        self._id_high: i64 = 0
        self._id_low: i64 = 0
        self._id = ZERO_UUID

    def topic_id(self, high: i64, low: i64) -> bytes:
        """Return a topic's id: one object for commits of one topic that follow each other."""
        if high != self._id_high or low != self._id_low:
            words = BytesWriter()
            write_i64_be(words, high)
            write_i64_be(words, low)
            self._id, self._id_high, self._id_low = words.getvalue(), high, low
        return self._id

    def close(self) -> list[CommitRun | Undecodable]:
        """Return the run, unless it is empty, after its parts that do not decode; a new one begins."""
        items: list[CommitRun | Undecodable] = []
        parts: list[PartProgress] = []
        for slot in self.dirty:
            try:
                parts.append(slot.close())
            except DecodeError as error:
                items.append(Undecodable(self.name, 1, slot.offset, slot.ts, error.message))
        rewinds, self.dirty, self.rewinds = tuple(self.rewinds), [], []
        if parts:
            last = max([part.last.log_offset for part in parts])
            items.append(CommitRun(self.name, parts[0].first_log_offset, last, tuple(parts), rewinds))
        return items


def metadata_in(value: bytes) -> str:
    """Return the metadata of a commit if it can be long enough for a mark of kgroup's; else nothing."""
    if len(value) <= _NO_MARK:
        return ""
    try:
        return decode_commit(value, -1, -1).metadata
    except DecodeError:
        return ""
