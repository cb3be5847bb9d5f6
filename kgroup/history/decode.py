"""Batches of `__consumer_offsets` → what a fold reads: commits in runs, group records one by one, markers.

One decoder, written for speed. Commits are most of any log (99 % of a real one), so their loop reads straight
from the batch with struct and gathers consecutive commits of a group into one `CommitRun`; everything else
goes through `protocol.group_records`. A test holds the loop equal to `protocol.group_records`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kgroup.errors import DecodeError
from kgroup.history.items import (
    CommitRun,
    Gap,
    GroupRecord,
    Item,
    Marker,
    OffsetRemoved,
    PartProgress,
    PendingCommit,
    RawRecord,
    Rewind,
    Undecodable,
)  # fmt: skip
from kgroup.history.records import (
    body_of,
    decode_commit,
    decode_commit_key,
    group_of,
    optional_bytes,
    raw_records,
    type_name,
)  # fmt: skip
from kgroup.history.scan import APPEND_TIME, COMPRESSED, CONTROL, BatchHeader
from kgroup.protocol.group_records import TYPE_NAMES, UnknownKey, decode_key, decode_value
from kgroup.protocol.primitives import read_uvarint, read_varint

RUN_OFFSETS = 1_000_000
"""No run of commits crosses a multiple of this log offset: what a reader holds open stays bounded."""
MAX_SLOTS = 400_000
_COMMIT_TYPES = (0, 1)
_I16 = struct.Struct(">h")
_VERSION_AND_OFFSET = struct.Struct(">hq")
_UNSEEN: Any = object()


class _Slot:
    """One partition's part of its group's current run."""

    __slots__ = (
        "count", "first", "first_offset", "first_ts", "group", "last", "offset", "partition", "topic", "ts",
        "value",
    )  # fmt: skip

    def __init__(self, group: _GroupRun, topic: str, partition: int) -> None:
        self.group = group
        self.topic = topic
        self.partition = partition
        self.count = self.first = self.first_offset = self.first_ts = self.last = self.offset = self.ts = 0
        self.value = b""

    def add(self, committed: int, offset: int, ts: int, value: bytes) -> None:
        """Take in one commit; what the hot loop does inline for the second commit and on."""
        if not self.count:
            self.group.dirty.append(self)
            self.first, self.first_offset, self.first_ts = committed, offset, ts
        elif committed < self.last:
            self.rewound(committed, offset, ts)
        self.count += 1
        self.last, self.offset, self.ts, self.value = committed, offset, ts, value

    def rewound(self, committed: int, offset: int, ts: int) -> None:
        self.group.rewinds.append(Rewind(self.topic, self.partition, self.last, committed, offset, ts))

    def close(self) -> PartProgress:
        """What this slot gathered; the slot is empty afterwards."""
        last = decode_commit(self.value, self.offset, self.ts)
        count, self.count = self.count, 0
        first = (self.first, self.first_offset, self.first_ts)
        return PartProgress(self.topic, self.partition, count, *first, last)


class _GroupRun:
    """One group's current run: the slots it touched, and its rewinds."""

    __slots__ = ("dirty", "name", "rewinds")

    def __init__(self, name: str) -> None:
        self.name = name
        self.dirty: list[_Slot] = []
        self.rewinds: list[Rewind] = []


class Decoder:
    """Decodes the batches of one partition, in order, into items.

    `wanted` keeps groups (None: all); `names`, if given, are the only group ids wanted, and lets whole
    batches be passed over unread. `runs=False` makes each commit a run of its own. Memory is bounded by
    the distinct commit keys since the last flush (`MAX_SLOTS`).
    """

    def __init__(
        self,
        wanted: Callable[[str], bool] | None = None,
        names: Iterable[str] | None = None,
        runs: bool = True,
    ) -> None:
        exact = None if names is None else frozenset(names)
        self.needles = None if exact is None else [_I16.pack(len(n.encode())) + n.encode() for n in exact]
        self.wanted: Callable[[str], bool] = wanted or (lambda group: exact is None or group in exact)
        self.runs = runs
        self.next_offset = -1
        self.first_offset = -1
        self.records = self.missing = 0
        self.complete_from = self.complete_from_ms = self.last_ms = -1
        self.stopped = False
        self._block = -1
        self._slots: dict[bytes, _Slot | None] = {}
        self._groups: dict[str, _GroupRun] = {}

    def feed(self, chunk: bytes, headers: Iterable[BatchHeader], up_to: int | None = None) -> Iterator[Item]:
        """The items of these batches of `chunk`; runs of commits stay open until there is a reason to close.

        Batches that were seen already are passed over. Records with an offset above `up_to` are left out.
        """
        needles, hit = self.needles, -1
        for header in headers:
            position, end, base, last, attributes, _, max_ts, _, _, records = header
            if last < self.next_offset:
                continue
            if base != self.next_offset or records != last - base + 1:
                yield from self.flush()
                yield from self._gap(header)
            self.next_offset = last + 1
            self.records += records
            self.last_ms = max_ts
            if base // RUN_OFFSETS != self._block:
                yield from self.flush()
                self._block = base // RUN_OFFSETS
            try:
                if attributes & CONTROL:
                    yield from self.flush()
                    yield from self._control(chunk, header)
                    continue
                if needles is not None and not attributes & COMPRESSED:
                    if hit < position:
                        hit = _next(chunk, needles, position)
                    if hit >= end:
                        continue
                yield from self._data(chunk, header)
            except DecodeError as error:
                yield Undecodable(None, -1, base, header.base_timestamp_ms, error.message, False)

    def flush(self, group: str | None = None) -> Iterator[Item]:
        """Close the open run of one group, or of all; to be called once more when nothing follows."""
        if group is None:
            for name in [run.name for run in self._groups.values() if run.dirty]:
                yield from self.flush(name)
            if len(self._slots) > MAX_SLOTS:
                self._slots.clear()
                self._groups.clear()
            return
        run = self._groups.get(group)
        if run is None or not run.dirty:
            return
        parts: list[PartProgress] = []
        for slot in run.dirty:
            try:
                parts.append(slot.close())
            except DecodeError as error:
                slot.count = 0
                yield Undecodable(group, 1, slot.offset, slot.ts, error.message, False)
        rewinds, run.dirty, run.rewinds = tuple(run.rewinds), [], []
        if parts:
            first = min(part.first_log_offset for part in parts)
            last = max(part.last.log_offset for part in parts)
            yield CommitRun(group, first, last, tuple(parts), rewinds)

    def _gap(self, header: BatchHeader) -> Iterator[Gap]:
        """Note offsets that are not there, before the batch or inside it; the first batch is the start."""
        base, last, ts = header.base_offset, header.last_offset, header.base_timestamp_ms
        if self.first_offset < 0:
            self.first_offset = self.complete_from = base
            self.complete_from_ms = ts
        elif base > self.next_offset:
            self.missing += base - self.next_offset
            self.complete_from, self.complete_from_ms = base, ts
            yield Gap(self.next_offset, base - 1, ts, base - self.next_offset)
        inside = last - base + 1 - header.records
        if inside > 0:
            self.missing += inside
            self.complete_from, self.complete_from_ms = last + 1, header.max_timestamp_ms
            yield Gap(base, last, ts, inside)

    def _control(self, chunk: bytes, header: BatchHeader) -> Iterator[Item]:
        for record in raw_records(chunk, header):
            key = record.key or b""
            if len(key) >= 4 and (kind := _I16.unpack_from(key, 2)[0]) in (0, 1):
                yield Marker(header.producer_id, kind == 1, record.offset, record.timestamp_ms)

    def _data(self, chunk: bytes, header: BatchHeader) -> Iterator[Item]:
        """The items of one data batch: commits go into their runs, everything else comes out."""
        if header.producer_id != -1 or header.attributes & APPEND_TIME or not self.runs:
            for record in raw_records(chunk, header):
                yield from self._one(record)
            return
        data, pos, end = body_of(chunk, header)
        base, base_ts, count = header.base_offset, header.base_timestamp_ms, header.records
        try:
            for record in self._commits(data, pos, end, base, base_ts, count):
                yield from self._one(record)
        except (IndexError, struct.error):
            raise DecodeError(f"the batch at offset {base} ends inside a record") from None

    def _commits(
        self, data: bytes, pos: int, end: int, base: int, base_ts: int, count: int
    ) -> Iterator[RawRecord]:
        """The hot loop: commits on keys seen before are taken in here; every other record is yielded.

        Varints of one byte, and of two where that is usual, are read in place.
        """
        slots, unpack = self._slots, _VERSION_AND_OFFSET.unpack_from
        for _ in range(count):
            size = data[pos]
            pos += 1
            if size > 127:
                if (more := data[pos]) < 128:
                    size += (more << 7) - 128
                    pos += 1
                else:
                    size, pos = read_uvarint(data, pos - 1)
            stop = pos + (size >> 1)
            if stop > end or size & 1:
                raise DecodeError(f"a record of the batch at offset {base} does not fit into it")
            delta = data[pos + 1]
            pos += 2
            if delta > 127:
                delta, pos = read_varint(data, pos - 1)
            else:
                delta = (delta >> 1) ^ -(delta & 1)
            index = data[pos]
            pos += 1
            if index > 127:
                index, pos = read_uvarint(data, pos - 1)
            start, size = pos, data[pos]
            pos += 1
            if size > 127:
                if (more := data[pos]) < 128:
                    size += (more << 7) - 128
                    pos += 1
                else:
                    size, pos = read_uvarint(data, pos - 1)
            key_end = pos + (size >> 1)
            key = data[pos:key_end]
            slot = slots.get(key, _UNSEEN)
            if slot is None:
                pos = stop
                continue
            size = data[key_end]
            pos = key_end + 1
            if slot is _UNSEEN or size & 1 or size > 127 or pos + (size >> 1) >= stop:
                whole, after = optional_bytes(data, start, stop)
                value, _ = optional_bytes(data, after, stop)
                yield RawRecord(base + (index >> 1), base_ts + delta, whole, value, base, -1)
                pos = stop
                continue
            version, committed = unpack(data, pos)
            if not slot.count:
                value = data[pos : pos + (size >> 1)]
                slot.add(committed, base + (index >> 1), base_ts + delta, value)
                pos = stop
                continue
            if committed < slot.last:
                slot.rewound(committed, base + (index >> 1), base_ts + delta)
            slot.count += 1
            slot.last = committed
            slot.offset = base + (index >> 1)
            slot.ts = base_ts + delta
            slot.value = data[pos : pos + (size >> 1)]
            pos = stop

    def _one(self, record: RawRecord) -> Iterator[Item]:
        """The items that one record makes, whatever it is."""
        offset, ts, key, value, batch, producer = record
        if key is None or len(key) < 2:
            yield Undecodable(None, -1, offset, ts, "a record without a key", False)
            return
        (kind,) = _I16.unpack_from(key)
        try:
            if kind in _COMMIT_TYPES:
                yield from self._commit(record, key)
                return
            group = group_of(key)
            if group is None or not self.wanted(group):
                return
            yield from self.flush(group)
            decoded = decode_key(key)
            if isinstance(decoded, UnknownKey):
                reason = f"a record of type {kind} ({type_name(kind)}), which kgroup does not interpret"
                yield Undecodable(group, kind, offset, ts, reason, kind in TYPE_NAMES)
                return
            content = decode_value(decoded, value)
            yield GroupRecord(group, kind, offset, ts, batch, decoded, content)
        except DecodeError as error:
            yield Undecodable(group_of(key), kind, offset, ts, error.message, False)

    def _commit(self, record: RawRecord, key: bytes) -> Iterator[Item]:
        """A tombstone of a commit, or a commit that the hot loop leaves alone."""
        offset, ts, _, value, batch, producer = record
        slot = self._slots.get(key, _UNSEEN)
        if slot is _UNSEEN:
            group, topic, partition = decode_commit_key(key)
            if self.wanted(group):
                run = self._groups.setdefault(group, _GroupRun(group))
                slot = _Slot(run, topic, partition)
            else:
                slot = None
            self._slots[key] = slot
        if slot is None:
            return
        group = slot.group.name
        if value is None:
            yield from self.flush(group)
            yield OffsetRemoved(group, slot.topic, slot.partition, offset, ts, batch)
        elif producer != -1:
            yield from self.flush(group)
            yield PendingCommit(group, slot.topic, slot.partition, producer, decode_commit(value, offset, ts))
        else:
            slot.add(decode_commit(value, offset, ts).offset, offset, ts, value)
            if not self.runs:
                yield from self.flush(group)


def _next(chunk: bytes, needles: list[bytes], start: int) -> int:
    """Where the next of the needles is, from `start` on; the chunk's length when there is none."""
    hits = [hit for needle in needles if (hit := chunk.find(needle, start)) >= 0]
    return min(hits, default=len(chunk))
