"""Turns chunks of a segment into headers of its batches, whatever the state of the bytes.

What `protocol.batches` rejects (a bad checksum, a torn tail, foreign bytes) a history has to survive: each
damaged range is reported with its position and reason, and reading continues after it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from google_crc32c import value as crc32c
from librt.strings import read_i16_be, read_i32_be, read_i64_be

from kgroup.history.legacy import SMALLEST, find_message, message_at
from kgroup.history.log_items import BadRange, Problem
from kgroup.protocol.batches import ATTRIBUTES_AT, HEADER_BYTES, LENGTH_OFFSET

if TYPE_CHECKING:
    from mypy_extensions import i64

CONTROL: Final = 0x20
TRANSACTIONAL: Final = 0x10
COMPRESSED: Final = 0x07
PACKED: Final = 0x107
"""COMPRESSED or LEGACY, as a number that the compiler inlines: the records do not lie in the chunk as those
of a plain batch do; `records.body_of` makes them so."""
APPEND_TIME: Final = 0x08
MAX_BATCH_BYTES: Final = 64 << 20
MOST: Final = 1 << 52
"""No offset, no time in ms and no difference of two is larger: sums, in microseconds too, fit 64 bits. A
header may exceed it: its offset is not under the checksum, and a producer sets any time."""
_HEADER: Final = struct.Struct(">qi4xbIhiqqqh4xi")
_CRC_START: Final = 21
_ATTRIBUTES_AT: Final = ATTRIBUTES_AT
_UNSOUND: Final = "an invalid message: its checksum, its lengths, or its codec"
_MAX_RESYNC_OFFSETS = 1 << 40
"""No batch after damage is further on: bytes that only look like one mostly have an offset beyond this."""
_KEPT_BYTES = 1 << 20
"""The end of a chunk without a batch that is scanned again: one may begin there."""


class BatchHeader:
    """Where a batch lies in its chunk, and its header's fields; offsets are Kafka's, times in ms."""

    __slots__ = (
        "attributes",
        "base_offset",
        "base_timestamp_ms",
        "end",
        "last_offset",
        "max_timestamp_ms",
        "position",
        "producer_epoch",
        "producer_id",
        "records",
    )

    def __init__(self, position: i64, end: i64, base_offset: i64, last_offset: i64, records: i64) -> None:
        self.position = position
        self.end = end
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.records = records
        self.attributes: i64 = 0
        self.base_timestamp_ms: i64 = -1
        self.max_timestamp_ms: i64 = -1
        self.producer_id: i64 = -1
        self.producer_epoch: i64 = -1


class Scanner:
    """Walks chunks of one file or stream in order; each `headers(chunk)` sets `consumed` to its progress.

    The caller keeps `chunk[consumed:]` and puts it before the next chunk. `bad` collects damaged ranges. A
    batch that reaches past a chunk may be whole in the next; in the last one it must not hide what follows.
    """

    def __init__(self, source: str, position: int = 0, check_crc: bool = True) -> None:
        self.source = source
        self.position = position
        self.check_crc = check_crc
        self.consumed = 0
        self.batches = 0
        self.last_offset = -1
        self.bad: list[BadRange] = []

    def headers(self, chunk: bytes, final: bool) -> Iterator[BatchHeader]:
        """Yield the whole batches of `chunk`; `final` says that nothing follows it."""
        pos: i64 = 0
        total, check = len(chunk), self.check_crc
        # The compiler looks a name of another module up each time.
        checksum, header_bytes, smallest, length_offset = crc32c, HEADER_BYTES, SMALLEST, LENGTH_OFFSET
        while total - pos >= header_bytes or total - pos >= smallest and chunk[pos + 16] < 2:
            length: int = read_i32_be(chunk, pos + length_offset - 4)
            magic = chunk[pos + 16]
            end = pos + length_offset + length
            last_delta: int = read_i32_be(chunk, pos + 23) if magic == 2 else 0
            count: int = read_i32_be(chunk, pos + 57) if magic == 2 else 0
            least = 49 if magic == 2 else smallest - length_offset
            if magic > 2 or not least <= length <= MAX_BATCH_BYTES or last_delta < 0 or count < 0:
                pos = self._skip(chunk, pos, f"no record batch here (magic {magic}, length {length})", final)
                if pos < 0:
                    return
                continue
            if end > total:
                if not final:
                    break
                if (resumed := self.resync(chunk, pos + 1)) < 0:
                    break
                self._damaged(
                    pos, resumed, f"a batch of {end - pos} bytes is cut short or its length is wrong"
                )
                pos = resumed
                continue
            if magic < 2:
                message = self._message(chunk, pos, end)
                if message is not None:
                    yield message
                    pos = end
                elif (pos := self._skip(chunk, pos, _UNSOUND, final)) < 0:
                    return
                continue
            base: i64 = read_i64_be(chunk, pos)
            crc: int = read_i32_be(chunk, pos + 17)
            computed_crc: int = checksum(chunk[pos + _CRC_START : end]) if check else crc & 0xFFFFFFFF
            if computed_crc != crc & 0xFFFFFFFF:
                pos = self._skip(chunk, pos, f"checksum of the batch at offset {base} is wrong", final)
                if pos < 0:
                    return
                continue
            first_ts: i64 = read_i64_be(chunk, pos + 27)
            max_ts: i64 = read_i64_be(chunk, pos + 35)
            if not (0 <= base <= MOST and -MOST <= first_ts <= MOST and -MOST <= max_ts <= MOST):
                reason = f"a batch at offset {base}, stamped {first_ts} to {max_ts}: no such offset or time"
                self._damaged(pos, end, reason)
                pos = end
                continue
            self.batches += 1
            last: i64 = base + last_delta
            self.last_offset = last
            header = BatchHeader(pos, end, base, last, count)
            header.attributes, header.producer_id = chunk[pos + _ATTRIBUTES_AT], read_i64_be(chunk, pos + 43)
            header.base_timestamp_ms, header.max_timestamp_ms = first_ts, max_ts
            producer_epoch: int = read_i16_be(chunk, pos + 51)
            header.producer_epoch = producer_epoch
            yield header
            pos = end
        self.consumed = pos
        self.position += pos
        if final and pos < total:
            self._tail(chunk, pos)

    def _message(self, chunk: bytes, pos: int, end: int) -> BatchHeader | None:
        """Return the header of a message of format 0 or 1, None if it is invalid."""
        message = message_at(chunk, pos, end, self.check_crc)
        if message is None:
            return None
        base, last, attributes, first_ts, max_ts, count = message
        if not (0 <= base <= last <= MOST and -MOST <= first_ts <= MOST and -MOST <= max_ts <= MOST):
            return None
        self.batches += 1
        self.last_offset = last
        header = BatchHeader(pos, end, base, last, count)
        header.attributes, header.base_timestamp_ms, header.max_timestamp_ms = attributes, first_ts, max_ts
        return header

    def _tail(self, chunk: bytes, pos: int) -> None:
        """Check the end of a file: it may be preallocated zeros or a truncated batch."""
        if chunk.count(0, pos) != len(chunk) - pos:
            start = self.position
            reason = "the last batch is cut short (a torn tail, or still being written)"
            end = start + len(chunk) - pos
            self.bad.append(BadRange(self.source, start, end, reason, Problem.CUT_SHORT))

    def _damaged(self, pos: int, end: int, reason: str) -> None:
        self.bad.append(BadRange(self.source, self.position + pos, self.position + end, reason))

    def _skip(self, chunk: bytes, pos: int, reason: str, final: bool) -> int:
        """Return where the next valid batch starts; -1 if the chunk holds none (then `consumed` is set)."""
        resumed = self.resync(chunk, pos + 1)
        if resumed >= 0:
            self._damaged(pos, resumed, reason)
            return resumed
        end = len(chunk)
        if not final and pos:
            end = pos  # scanned again, with more bytes after it
        elif not final:
            end = max(1, end - _KEPT_BYTES)
            self._damaged(pos, end, reason)
        elif chunk.count(0, pos) != end - pos:  # zeros are a preallocated file's unused end
            self._damaged(pos, end, reason)
        self.consumed = end
        self.position += end
        return -1

    def resync(self, chunk: bytes, start: int) -> int:
        """Return the first whole batch at or after `start` whose checksum is valid, -1 without one."""
        batch = self._resync(chunk, start)
        stop = len(chunk) if batch < 0 else batch
        furthest = self.last_offset + _MAX_RESYNC_OFFSETS
        message: int = find_message(chunk, start, stop, self.last_offset, furthest)
        return batch if message < 0 else message

    def _resync(self, chunk: bytes, start: int) -> int:
        total = len(chunk)
        hit = chunk.find(b"\x02", start + 16)
        while hit >= 0 and hit - 16 + HEADER_BYTES <= total:
            pos = hit - 16
            base, length, _, crc, _, last_delta, _, _, _, _, count = _HEADER.unpack_from(chunk, pos)
            end = pos + LENGTH_OFFSET + length
            plausible = length >= 49 and end <= total and 0 <= count <= last_delta + 1
            ahead = self.last_offset < base < self.last_offset + _MAX_RESYNC_OFFSETS
            if plausible and ahead and crc32c(chunk[pos + _CRC_START : end]) == crc:
                return pos
            hit = chunk.find(b"\x02", hit + 1)
        return -1
