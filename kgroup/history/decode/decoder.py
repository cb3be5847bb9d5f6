"""Turns batches of `__consumer_offsets` into items: commits in runs, group records one by one, markers.

One decoder, written for speed. Commits are most of any log (99 % of a real one), so their loop reads in place
and gathers consecutive commits of a group into one `CommitRun`; everything else goes through
`protocol.group_records`. A test holds the loop equal to `protocol.group_records`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from heapq import heapreplace
from typing import TYPE_CHECKING, Final

from librt.strings import read_i32_be, read_i64_le

from kgroup.domain import TopicPartition, place_of
from kgroup.errors import DecodeError
from kgroup.history.decode.places import Places
from kgroup.history.decode.records import (
    body_of,
    decode_commit,
    decode_commit_key,
    group_of,
    length,
    optional_bytes,
    raw_records,
    read_delta,
    type_name,
)
from kgroup.history.decode.scan import APPEND_TIME, CONTROL, PACKED, BatchHeader
from kgroup.history.decode.slots import GroupRun, Slot
from kgroup.history.log_items import (
    RUN_OFFSETS,
    Gap,
    GroupRecord,
    Item,
    Marker,
    OffsetRemoved,
    PendingCommit,
    RawRecord,
    Undecodable,
)
from kgroup.protocol.batches import HEADER_BYTES
from kgroup.protocol.group_records import UnknownKey, decode_key, decode_value

if TYPE_CHECKING:
    from mypy_extensions import i64

MAX_KEYS: Final = 400_000
_COMMIT_TYPES = (0, 1)
_COMMIT_KEYS: Final = (b"\0\0", b"\0\1")
_I16 = struct.Struct(">h")
_LENGTHS: Final = 0x8080_8000_8081
_USUAL: Final = 0x80
"""Nearly all commits begin with numbers of 2, 1, 1, 1 and 1 bytes: the record's length, its attributes, the
distances of its time and its offset, its key's length. The highest bit of a byte says that a number goes on,
the lowest of the first one that a length is below 0."""
_BODY_AT: Final = HEADER_BYTES  # the compiler looks a name of another module up each time


class Decoder:
    """Decodes the batches of one partition, in order, into items.

    `wanted` keeps groups (None: all); `names`, if given, are the only group ids wanted, and let whole batches
    be skipped unread. `runs=False` makes each commit a run of its own. `places` receives the position of
    everything that is read. Memory is bounded by the distinct keys of commits: once they are more than
    `max_keys`, the next chunk begins with none.
    """

    def __init__(
        self,
        wanted: Callable[[str], bool] | None = None,
        names: Iterable[str] | None = None,
        runs: bool = True,
        places: Places | None = None,
        max_keys: int = MAX_KEYS,
    ) -> None:
        exact = None if names is None else frozenset(names)
        self.needles = None if exact is None else [_I16.pack(len(n.encode())) + n.encode() for n in exact]
        self.wanted: Callable[[str], bool] = wanted or (lambda group: exact is None or group in exact)
        self.runs = runs
        self.places = places
        self.max_keys = max_keys
        self.next_offset: i64 = -1
        self.first_offset: i64 = -1
        self.records: i64 = 0
        self.missing: i64 = 0
        self.complete_from: i64 = -1
        self.complete_from_ms: i64 = -1
        self.last_ms: i64 = -1
        self.stopped = False
        self._block: i64 = -1
        # None: a group that is not wanted.
        self._slots: dict[bytes, Slot | None] = {}
        self._groups: dict[str, GroupRun] = {}
        # The slots by number. They refer to each other by number too, which avoids reference cycles. The
        # first stands for keys that have none.
        self._unseen = Slot(GroupRun(""), TopicPartition("", -1), b"", 0)
        self._order = [self._unseen]
        self._last = self._began = self._unseen
        # What the key of the newest slot has before its partition.
        self._near = b""
        # The batch that `_take` reads, its position in it, and how many records are left.
        self._data = b""
        self._at: i64 = 0
        self._end: i64 = 0
        self._left: i64 = 0
        self._base: i64 = 0
        self._base_ts: i64 = 0
        self._producer: i64 = -1
        # The difference between positions in `_data` and in `places`, and the value `_take` stopped at.
        self._shift: i64 = 0
        self._value_at: i64 = 0
        self._stamped = self._gather = True

    def feed(self, chunk: bytes, headers: Iterable[BatchHeader]) -> Iterator[Item]:
        """Yield the items of these batches of `chunk`; runs of commits stay open until one must close.

        Batches that were seen already are skipped.
        """
        hit = -1
        hits = None if self.needles is None else [(-1, needle) for needle in self.needles]
        if len(self._slots) > self.max_keys:
            yield from self.flush()
            self._forget()
        if self.places is not None:
            self.places.begin(len(chunk))
        for header in headers:
            position, end, attributes = header.position, header.end, header.attributes
            base, last, records = header.base_offset, header.last_offset, header.records
            # Copies of a partition overlap, and a Fetch begins with the whole batch that holds its offset.
            if last < self.next_offset:
                continue
            # Compaction keeps the bounds of a batch and removes records from it: a gap may be inside, too.
            if base != self.next_offset or records != last - base + 1:
                yield from self.flush()
                yield from self._gap(header)
            self.next_offset = last + 1
            self.records += records
            self.last_ms = header.max_timestamp_ms
            if base // RUN_OFFSETS != self._block:
                yield from self.flush()
                self._block = base // RUN_OFFSETS
            try:
                # A marker belongs to a producer, not to a group: the runs of all groups end at it (KIP-98).
                if attributes & CONTROL:
                    yield from self.flush()
                    yield from self._control(chunk, header)
                    continue
                # Keys contain a group's name literally: a plain batch without it need not be decoded.
                if hits is not None and not attributes & PACKED:
                    if hit < position:
                        hit = _next(chunk, hits, position)
                    if hit >= end:
                        continue
                record = self._open(chunk, header)
                while record is not None:
                    yield from self._one(record)
                    record = self._take()
            except DecodeError as error:
                yield Undecodable(None, -1, base, header.base_timestamp_ms, error.message)
        self._data = b""

    def flush(self, group: str | None = None) -> Iterator[Item]:
        """Close the open run of one group, or of all; call once more when nothing follows."""
        if group is not None:
            run = self._groups.get(group)
            if run is not None and run.dirty:
                yield from run.close()
            return
        for run in self._groups.values():
            if run.dirty:
                yield from run.close()

    def _forget(self) -> None:
        """Forget every key; no run may be open."""
        self._slots.clear()
        self._groups.clear()
        self._last = self._began = unseen = self._unseen
        self._order, unseen.next, unseen.after = [unseen], 0, 0
        if self.places is not None:
            self.places.forget()

    def _gap(self, header: BatchHeader) -> Iterator[Gap]:
        """Note missing offsets, before the batch or inside it; the first batch is the start."""
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

    def _open(self, chunk: bytes, header: BatchHeader) -> RawRecord | None:
        """Begin a batch: return its first record that `_take` leaves, None if it takes all."""
        attributes = header.attributes
        self._base, self._producer, self._left = header.base_offset, header.producer_id, header.records
        self._base_ts = header.max_timestamp_ms if attributes & APPEND_TIME else header.base_timestamp_ms
        self._stamped = not attributes & APPEND_TIME
        self._gather = self.runs and self._producer == -1
        self._shift = 0
        if attributes & PACKED:
            self._data, self._at, self._end = body_of(chunk, header)
            if self.places is not None:
                self._shift = self.places.body(self._data)
        else:
            self._data, self._at, self._end = chunk, header.position + _BODY_AT, header.end
        # What began the batch before follows its last record only by chance.
        unseen = self._unseen
        self._began.after, self._began = unseen.next, self._order[unseen.next]
        unseen.next, self._last = self._began.after, unseen
        return self._take()

    def _take(self) -> RawRecord | None:
        """Take commits on keys seen before, in the hot loop; return the next other record."""
        data, base, base_ts, gather = self._data, self._base, self._base_ts, self._gather
        stamped = self._stamped
        order, last, unseen = self._order, self._last, self._unseen
        pos, end, left = self._at, self._end, self._left
        places, shift, producer = self.places, self._shift, self._producer
        try:
            while left:
                left -= 1
                word: i64 = 0
                if pos + 8 <= end:
                    word = read_i64_le(data, pos)
                stop = pos + 2 + ((word & 127) >> 1 | (word >> 2 & 127 << 6))
                if word & _LENGTHS == _USUAL and stop <= end:
                    start = pos + 5
                    delta = (word >> 25 & 63) ^ -(word >> 24 & 1)
                    index, key_size, pos = word >> 32 & 127, word >> 40 & 127, pos + 6
                else:
                    size, pos = length(data, pos)
                    stop = pos + (size >> 1)
                    if stop > end or size & 1:
                        raise DecodeError(f"a record of the batch at offset {base} does not fit into it")
                    delta, pos = read_delta(data, pos + 1, base)
                    index, start = length(data, pos)
                    key_size, pos = length(data, start)
                offset, ts = base + (index >> 1), base_ts + delta if stamped else base_ts
                after = pos + (key_size >> 1)
                slot = order[last.next]
                # Clients commit in the same order each time: most keys are the expected one.
                if not slot.is_at(data, pos, after):
                    if (other := self._found(data[pos:after])) is None:
                        pos = stop
                        continue
                    slot, last.next = other, other.number
                last = slot
                size, pos = length(data, after)
                value_end = pos + (size >> 1)
                null = (key_size | size) & 1
                if not gather or slot is unseen or null or not pos + 10 <= value_end < stop:
                    self._at, self._left, self._last = stop, left, last
                    return self._whole(offset, ts, start, stop)
                if places is not None:
                    places.commit(slot.number, value_end - pos, offset, ts, producer, pos + shift)
                slot.take(data, pos, value_end, offset, ts)
                pos = stop
        except IndexError:
            raise DecodeError(f"the batch at offset {base} ends inside a record") from None
        self._last = last
        return None

    def _whole(self, offset: i64, ts: i64, start: i64, stop: i64) -> RawRecord:
        """Return a record of this batch, its key at `start`, as it is."""
        key, after = optional_bytes(self._data, start, stop)
        value, after = optional_bytes(self._data, after, stop)
        self._value_at = self._shift + after - len(value or b"")
        return RawRecord(offset, ts, key, value, self._base, self._producer)

    def _one(self, record: RawRecord) -> Iterator[Item]:
        """Yield the items of one record, of any kind."""
        offset, ts, key, value, batch, producer = record
        if key is None or len(key) < 2:
            yield Undecodable(None, -1, offset, ts, "a record without a key")
            return
        (kind,) = _I16.unpack_from(key)
        try:
            if kind in _COMMIT_TYPES:
                yield from self._commit(record, key)
                return
            group = group_of(key)
            if group is not None and not self.wanted(group):
                return
            if self.places is not None:
                self.places.others.append(record)
            # A future type, with a key that names no group: not ours.
            if group is None:
                return
            yield from self.flush(group)
            decoded = decode_key(key)
            if isinstance(decoded, UnknownKey):
                reason = f"a record of type {kind} ({type_name(kind)}), unknown to kgroup"
                yield Undecodable(group, kind, offset, ts, reason)
                return
            content = decode_value(decoded, value)
            yield GroupRecord(group, kind, offset, ts, batch, decoded, content)
        except DecodeError as error:
            yield Undecodable(group_of(key), kind, offset, ts, error.message)

    def _commit(self, record: RawRecord, key: bytes) -> Iterator[Item]:
        """Yield a tombstone of a commit, or a commit that the hot loop leaves alone."""
        offset, ts, _, value, batch, producer = record
        slot = self._slots[key] if key in self._slots else self._new_slot(key)
        if slot is None:
            return
        if self.places is not None:
            size = -1 if value is None else len(value)
            self.places.commit(slot.number, size, offset, ts, producer, self._value_at)
        group = slot.group.name
        if value is None:
            yield from self.flush(group)
            yield OffsetRemoved(group, *slot.place, offset, ts, batch)
        elif producer != -1:
            yield from self.flush(group)
            yield PendingCommit(group, *slot.place, producer, decode_commit(value, offset, ts))
        else:
            # Nothing of a value that does not decode may be used.
            decode_commit(value, offset, ts)
            slot.take(value, 0, len(value), offset, ts)
            if not self.runs:
                yield from self.flush(group)

    def _found(self, key: bytes) -> Slot | None:
        """Return the slot of a key, a new one if need be; None if its group is not wanted.

        A key that is not a commit's, does not decode or is no part of a run has the slot that stands for
        none.
        """
        slot = self._slots.get(key, self._unseen)
        if slot is not self._unseen or not self._gather or key[:2] not in _COMMIT_KEYS:
            return slot
        try:
            return self._new_slot(key)
        except DecodeError:
            return self._unseen

    def _new_slot(self, key: bytes) -> Slot | None:
        """Return the slot of a key seen for the first time; None if its group is not wanted."""
        slot, near = None, self._order[-1]
        if key.startswith(self._near) and near.key_bytes == len(key):
            # Most often one more partition of the group and the topic before.
            run: GroupRun | None = near.group
            group, topic, partition = near.group.name, near.place.topic, read_i32_be(key, len(key) - 4)
        else:
            group, topic, partition = decode_commit_key(key)
            run = self._groups.get(group)
            if run is None and self.wanted(group):
                run = self._groups[group] = GroupRun(group)
        if run is not None:
            self._near = key[:-4]
            slot = Slot(run, place_of(topic, partition), key, len(self._order))
            self._order.append(slot)
            if self.places is not None:
                self.places.key(group, topic, partition, len(key))
        self._slots[key] = slot
        return slot


def _next(chunk: bytes, hits: list[tuple[int, bytes]], start: int) -> int:
    """Return where the next of the needles is, from `start` on; the chunk's length if there is none.

    `hits` is a heap of the needles, each after where it was last found: those that lie ahead, or nowhere in
    the chunk, are not searched for again.
    """
    if not hits:
        return len(chunk)
    while hits[0][0] < start:
        needle = hits[0][1]
        at = chunk.find(needle, start)
        heapreplace(hits, (len(chunk) if at < 0 else at, needle))
    return hits[0][0]
