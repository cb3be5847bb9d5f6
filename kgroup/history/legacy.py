"""Messages of formats 0 and 1, which brokers wrote before 0.11, and later under an old message format.

Their log is a sequence of messages, each with its offset; a compressed one wraps a set of others. A history
treats every message as its own batch, and reads its records as those of a batch (format 2). Kafka calls the
formats magic 0 and 1; 1 has timestamps. Wrapped offsets are relative in format 1 (KIP-31).
"""

import re
import struct
import zlib
from itertools import pairwise
from typing import Final, NamedTuple

from kgroup.errors import DecodeError
from kgroup.protocol.compression import decompress
from kgroup.protocol.log_records import NO_TIMESTAMP, LogRecord, encode_records

LEGACY: Final = 0x100
"""Marks a message of format 0 or 1 in a header's attributes; no batch has this bit."""
SMALLEST: Final = 26
"""Bytes of the shortest message, including its offset and size."""
_CODEC = 0x07
_MOST = 1 << 52
_APPEND_TIME = 0x08
_ENTRY = struct.Struct(">qiIbb")
_ENTRY_CRC_START = 16
_TIMED = struct.Struct(">q")
_SIZE = struct.Struct(">i")
_LIKELY = re.compile(rb"(?=\x00\x00\x00.{5}[\x00-\x03].{7}[\x00\x01][\x00-\x0f])", re.DOTALL)


class Message(NamedTuple):
    """The header of a message and those it wraps: offsets, times in ms (-1: none), number of messages."""

    base_offset: int
    last_offset: int
    attributes: int
    first_ms: int
    last_ms: int
    records: int


def message_at(chunk: bytes, position: int, end: int, check_crc: bool = True) -> Message | None:
    """Return the whole message from `position` to `end`; None if it is invalid (checksum, order …)."""
    offset, _, crc, _, attributes = _ENTRY.unpack_from(chunk, position)
    if check_crc and zlib.crc32(memoryview(chunk)[position + _ENTRY_CRC_START : end]) != crc:
        return None
    try:
        records = _records(chunk, position, end)
    except (DecodeError, struct.error):
        return None
    if not records:
        return None
    stamps = [record.timestamp_ms for record in records]
    attributes = LEGACY | attributes & (_CODEC | _APPEND_TIME)
    return Message(records[0].offset, offset, attributes, stamps[0], max(stamps), len(records))


def body_of_message(chunk: bytes, position: int, end: int) -> bytes:
    """Return a message's records, unwrapped, as the body of an uncompressed batch; DecodeError."""
    try:
        records = _records(chunk, position, end)
    except struct.error:
        raise DecodeError(f"a message at byte {position} is cut short") from None
    base, first = records[0].offset, records[0].timestamp_ms
    return encode_records(records, [r.offset - base for r in records], first, NO_TIMESTAMP)[0]


def find_message(chunk: bytes, start: int, stop: int, after: int, furthest: int) -> int:
    """Return where the first whole message begins, its offset in `after`+1 to `furthest`, -1 without one.

    It begins between `start` and `stop`. Its checksum is valid.
    """
    total = len(chunk)
    for hit in _LIKELY.finditer(chunk, start, min(total, stop + _ENTRY.size)):
        position = hit.start()
        if position >= stop:
            break
        offset, size, crc, _, _ = _ENTRY.unpack_from(chunk, position)
        end = position + 12 + size
        sound = size + 12 >= SMALLEST and end <= total and after < offset < furthest
        if sound and zlib.crc32(memoryview(chunk)[position + _ENTRY_CRC_START : end]) == crc:
            return position
    return -1


def _records(chunk: bytes, position: int, end: int) -> list[LogRecord]:
    """Return a message's record, or those it wraps, with their offsets; DecodeError or struct.error."""
    offset, _, _, magic, attributes = _ENTRY.unpack_from(chunk, position)
    stamp, key, value = _content(chunk, position, end, magic)
    if not attributes & _CODEC:
        return [LogRecord(key, value, (), stamp, offset)]
    records: list[LogRecord] = []
    data, at = decompress(value or b"", attributes & _CODEC), 0
    while at < len(data):
        inner_offset, size, _, inner, inner_attributes = _ENTRY.unpack_from(data, at)
        inner_end = at + 12 + size
        if inner != magic or inner_attributes & _CODEC or size + 12 < SMALLEST or inner_end > len(data):
            raise DecodeError(f"a compressed message holds no messages at its byte {at}")
        own_stamp, key, value = _content(data, at, inner_end, inner)
        records.append(LogRecord(key, value, (), own_stamp, inner_offset))
        at = inner_end
    if not records:
        return []
    if any(a.offset >= b.offset for a, b in pairwise(records)):
        raise DecodeError(f"the messages in the one at byte {position} are not in order")
    # The wrapper has the offset of its last message; in format 1 those inside count from the first (KIP-31,
    # "Proposed Changes"). Under log append time the wrapper's timestamp is that of all (KIP-32).
    shift = offset - records[-1].offset if magic else 0
    appended = magic and attributes & _APPEND_TIME
    return [
        record._replace(offset=record.offset + shift, timestamp_ms=stamp if appended else record.timestamp_ms)
        for record in records
    ]


def _content(data: bytes, position: int, end: int, magic: int) -> tuple[int, bytes | None, bytes | None]:
    """Return timestamp (ms), key and value of one message."""
    position += _ENTRY.size
    stamp = NO_TIMESTAMP
    if magic:
        (stamp,) = _TIMED.unpack_from(data, position)
        if not -_MOST <= stamp <= _MOST:
            raise DecodeError(f"a message at byte {position} has no possible time")
        position += _TIMED.size
    key, position = _optional(data, position, end)
    value, position = _optional(data, position, end)
    if position != end:
        raise DecodeError(f"a message ends {end - position} bytes after its value")
    return stamp, key, value


def _optional(data: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    (size,) = _SIZE.unpack_from(data, position)
    position += _SIZE.size
    if size < 0:
        return None, position
    if position + size > end:
        raise DecodeError(f"a key or value at byte {position} is longer than its message")
    return data[position : position + size], position + size
