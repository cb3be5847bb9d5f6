"""The records inside a batch (magic 2): varint-framed, timestamps and offsets relative to the batch."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kgroup.errors import DecodeError
from kgroup.protocol.primitives import append_varint, read_varint

NO_TIMESTAMP = -1
_MIN_RECORD_BYTES = 7
_NOT_UTF8 = "surrogateescape"
"""Kafka stores header names that are not UTF-8; written again, they have to be the same bytes."""


class LogRecord(NamedTuple):
    """One record of a log; a tuple because millions of them are made.

    `headers` are (name, value) pairs. `timestamp_ms` and `offset` are -1 until the record is appended.
    """

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int = NO_TIMESTAMP
    offset: int = -1


class EncodedRecords(NamedTuple):
    """So many records, encoded for one batch: of its time, their offsets counted from its base."""

    body: bytes
    records: int


def _varint(value: int) -> bytes:
    out = bytearray()
    append_varint(out, value)
    return bytes(out)


_VARINTS = tuple(_varint(n) for n in range(1024))


def varint(value: int) -> bytes:
    """Return a number that is not negative, as records have it."""
    return _VARINTS[value] if value < 1024 else _varint(value)


_ZIGZAG = tuple((n >> 1) ^ -(n & 1) for n in range(128))
_NULL = b"\x01"


def encode_records(
    records: Sequence[LogRecord], deltas: Iterable[int], first: int, default_timestamp: int
) -> tuple[bytes, int]:
    """Return the records' bytes and their largest timestamp."""
    out: list[bytes] = []
    latest = NO_TIMESTAMP
    for (key, value, headers, timestamp, _), delta in zip(records, deltas, strict=True):
        if timestamp < 0:
            timestamp = default_timestamp
        if timestamp > latest:
            latest = timestamp
        since = timestamp - first
        key_size = -1 if key is None else len(key)
        value_size = -1 if value is None else len(value)
        record = b"".join(
            (
                b"\x00",
                _VARINTS[since] if 0 <= since < 1024 else _varint(since),
                _VARINTS[delta] if delta < 1024 else _varint(delta),
                _VARINTS[key_size] if 0 <= key_size < 1024 else _varint(key_size),
                key or b"",
                _VARINTS[value_size] if 0 <= value_size < 1024 else _varint(value_size),
                value or b"",
                _encode_headers(headers) if headers else b"\x00",
            )
        )
        size = len(record)
        out.append(_VARINTS[size] if size < 1024 else _varint(size))
        out.append(record)
    return b"".join(out), latest


def _encode_headers(headers: tuple[tuple[str, bytes | None], ...]) -> bytes:
    parts = [_varint(len(headers))]
    for name, value in headers:
        text = name.encode("utf-8", _NOT_UTF8)
        parts += (_varint(len(text)), text)
        parts += (_NULL,) if value is None else (_varint(len(value)), value)
    return b"".join(parts)


class Promised(NamedTuple):
    """What a batch's header says of its records.

    Offsets count from `base` up to `base + last_delta`, timestamps from `first`, or are all `append_time`.
    """

    records: int
    base: int
    last_delta: int
    first: int
    append_time: int | None


def decode_records(body: bytes, promised: Promised, *, in_order: bool = True) -> list[LogRecord]:
    """Return the records in `body`; DecodeError, naming no position, if they are not the ones promised.

    Unless `in_order`, their offsets are not looked at.
    """
    count, base, last_delta, first, append_time = promised
    # Short varints, the usual case, are inlined: this loop is most of what reading a log costs.
    if not 0 <= count <= len(body) // _MIN_RECORD_BYTES:
        raise DecodeError(f"{count} records claimed in {len(body)} bytes")
    zigzag, new = _ZIGZAG, tuple.__new__
    out: list[LogRecord] = []
    position, total, previous = 0, len(body), -1
    for _ in range(count):
        if (size := body[position]) < 128:
            size, position = zigzag[size], position + 1
        elif (high := body[position + 1]) < 128:
            size = size & 127 | high << 7
            size, position = size >> 1 ^ -(size & 1), position + 2
        else:
            size, position = read_varint(body, position)
        end = position + size
        if size < 0 or end > total:
            raise DecodeError(f"record of {size} bytes at byte {position} of {total}")
        position += 1  # record attributes: unused in magic 2
        if (since := body[position]) < 128:
            since, position = zigzag[since], position + 1
        else:
            since, position = read_varint(body, position)
        if (delta := body[position]) < 128:
            delta, position = zigzag[delta], position + 1
        else:
            delta, position = read_varint(body, position)
        if in_order and not previous < delta <= last_delta:
            raise DecodeError(f"record offset {base + delta} after {base + previous}")
        previous = delta
        if (size := body[position]) < 128:
            size, position = zigzag[size], position + 1
        elif (high := body[position + 1]) < 128:
            size = size & 127 | high << 7
            size, position = size >> 1 ^ -(size & 1), position + 2
        else:
            size, position = read_varint(body, position)
        key = value = None
        if size >= 0:
            key = body[position : position + size]
            position += size
        if (size := body[position]) < 128:
            size, position = zigzag[size], position + 1
        elif (high := body[position + 1]) < 128:
            size = size & 127 | high << 7
            size, position = size >> 1 ^ -(size & 1), position + 2
        else:
            size, position = read_varint(body, position)
        if size >= 0:
            value = body[position : position + size]
            position += size
        headers: tuple[tuple[str, bytes | None], ...] = ()
        if body[position]:
            headers, position = _decode_headers(body, position)
        else:
            position += 1
        if position != end:
            raise DecodeError(f"record at offset {base + delta} is {position - end:+} bytes off its length")
        timestamp = first + since if append_time is None else append_time
        out.append(new(LogRecord, (key, value, headers, timestamp, base + delta)))
    if position != total:
        raise DecodeError(f"{total - position} bytes after the last record")
    return out


def _decode_headers(body: bytes, position: int) -> tuple[tuple[tuple[str, bytes | None], ...], int]:
    count, position = read_varint(body, position)
    if not 0 <= count <= len(body) - position:
        raise DecodeError(f"{count} record headers in {len(body) - position} bytes")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        size, position = read_varint(body, position)
        if not 0 <= size <= len(body) - position:
            raise DecodeError(f"record header name of {size} bytes at byte {position}")
        name = body[position : position + size].decode("utf-8", _NOT_UTF8)
        position += size
        size, position = read_varint(body, position)
        value = None if size < 0 else body[position : position + size]
        position += max(size, 0)
        headers.append((name, value))
    return tuple(headers), position
