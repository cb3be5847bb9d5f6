"""Counts records and bytes of `__consumer_offsets` by key, without decoding values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kgroup.errors import DecodeError
from kgroup.history.decode.records import body_of, length, varint
from kgroup.history.decode.scan import APPEND_TIME, COMPRESSED, CONTROL, MOST, BatchHeader

if TYPE_CHECKING:
    from mypy_extensions import i64


class KeyCount:
    """The records of one key. `size` is the bytes of their keys and values, uncompressed.

    `newest` is that of the last one; times in ms, -1 if there was none.
    """

    __slots__ = ("first_ms", "key", "last_ms", "newest", "next", "number", "records", "size", "tombstones")

    def __init__(self, key: bytes, number: int) -> None:
        self.key = key
        self.number: i64 = number
        self.next: i64 = 0
        self.records: i64 = 0
        self.tombstones: i64 = 0
        self.size: i64 = 0
        self.newest: i64 = 0
        self.first_ms: i64 = -1
        self.last_ms: i64 = -1

    def add(self, size: i64, tombstone: i64, ts: i64) -> None:
        """Count a record."""
        self.records += 1
        self.tombstones += tombstone
        self.size += size
        self.newest = size
        if ts >= 0 and (self.first_ms < 0 or ts < self.first_ms):
            self.first_ms = ts
        if ts > self.last_ms:
            self.last_ms = ts


class Counter:
    """Counts the batches of one partition, in order. Needs memory for each key.

    `unreadable` batches stop decoding somewhere: what comes before that is counted. `open` has, for each
    producer whose transaction has no end yet: its first offset, that batch's time (ms), and its records.
    """

    def __init__(self) -> None:
        self.batches = self.compressed = self.markers = self.unreadable = 0
        self.size: i64 = 0
        self.keys: dict[bytes, KeyCount] = {}
        self.open: dict[int, tuple[int, int, int]] = {}
        # Keys by number; the first stands before the first record.
        self._last = KeyCount(b"", 0)
        self._order = [self._last]

    def feed(self, chunk: bytes, headers: Iterable[BatchHeader]) -> None:
        """Count these batches of `chunk`."""
        for header in headers:
            producer = header.producer_id
            self.batches += 1
            self.size += header.end - header.position
            if header.attributes & COMPRESSED:
                self.compressed += 1
            if header.attributes & CONTROL:
                self.markers += 1
                # A producer has one transaction at a time (KIP-98): the marker ends whichever it has open.
                self.open.pop(producer, None)
                continue
            if producer >= 0:
                begun = (header.base_offset, header.base_timestamp_ms, 0)
                first, since, before = self.open.get(producer, begun)
                self.open[producer] = (first, since, before + header.records)
            try:
                self._count(chunk, header)
            except DecodeError:
                self.unreadable += 1

    def _count(self, chunk: bytes, header: BatchHeader) -> None:
        """Count, in the hot loop; DecodeError where the records stop decoding."""
        data, start, last_byte = body_of(chunk, header)
        stamped = not header.attributes & APPEND_TIME
        base_ts: i64 = header.base_timestamp_ms if stamped else header.max_timestamp_ms
        left: i64 = header.records
        pos: i64 = start
        end: i64 = last_byte
        most: i64 = MOST << 1
        try:
            while left:
                left -= 1
                size, pos = length(data, pos)
                stop = pos + (size >> 1)
                delta, pos = varint(data, pos + 1)
                _, pos = length(data, pos)
                if size & 1 or stop > end or delta > most:
                    raise DecodeError(f"a record of the batch at offset {header.base_offset} makes no sense")
                size, pos = length(data, pos)
                after = pos if size & 1 else pos + (size >> 1)
                key = data[pos:after]
                size, pos = length(data, after)
                null = size & 1
                value_size = 0 if null else size >> 1
                if after > stop or pos + value_size > stop:
                    raise DecodeError(f"a key or value at byte {pos} is longer than its record")
                count = self._order[self._last.next]
                # Clients commit in the same order each time: most keys are the expected one.
                if count.key != key or not count.number:
                    count = self._counted(key)
                    self._last.next = count.number
                self._last = count
                ts = base_ts + ((delta >> 1) ^ -(delta & 1)) if stamped else base_ts
                count.add(len(key) + value_size, null, ts)
                pos = stop
        except IndexError:
            raise DecodeError(f"the batch at offset {header.base_offset} ends inside a record") from None

    def _counted(self, key: bytes) -> KeyCount:
        """Return the count of a key."""
        count = self.keys.get(key)
        if count is None:
            count = self.keys[key] = KeyCount(key, len(self._order))
            self._order.append(count)
        return count
