"""Records of a batch as they lie in the log, and commits without the cost of the general decoder."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from librt.strings import read_i16_be, read_i32_be, read_i64_be

from kgroup.domain import ZERO_UUID
from kgroup.errors import DecodeError
from kgroup.history.decode.scan import APPEND_TIME, COMPRESSED, MOST, BatchHeader
from kgroup.history.legacy import LEGACY, body_of_message
from kgroup.history.log_items import Committed, RawRecord
from kgroup.protocol.batches import HEADER_BYTES
from kgroup.protocol.compression import decompress
from kgroup.protocol.group_records import TYPE_NAMES

if TYPE_CHECKING:
    from mypy_extensions import i64

_I16 = struct.Struct(">h")
_LONGEST: Final = 0xFFFFFFFF


def type_name(number: int) -> str:
    """Return the record type's name in Kafka 4.3.1, also for types kgroup does not interpret."""
    return TYPE_NAMES.get(number, f"Type{number}")


def body_of(chunk: bytes, header: BatchHeader) -> tuple[bytes, int, int]:
    """Return the bytes that hold a batch's records, uncompressed, their start and end; or DecodeError.

    Messages of older formats come out as records of a batch.
    """
    if header.attributes & LEGACY:
        body = body_of_message(chunk, header.position, header.end)
        return body, 0, len(body)
    start = header.position + HEADER_BYTES
    codec = header.attributes & COMPRESSED
    if not codec:
        return chunk, start, header.end
    body = decompress(chunk[start : header.end], codec)
    return body, 0, len(body)


def raw_records(chunk: bytes, header: BatchHeader) -> Iterator[RawRecord]:
    """Yield every record of a batch, control batches included; DecodeError where they stop decoding."""
    data, pos, end = body_of(chunk, header)
    base, ts_base = header.base_offset, header.base_timestamp_ms
    try:
        for _ in range(header.records):
            size, pos = signed_varint(data, pos)
            stop = pos + size
            if size < 0 or stop > end:
                raise DecodeError(f"a record at byte {pos} is longer than its batch")
            delta, pos = read_delta(data, pos + 1, base)
            offset, pos = read_delta(data, pos, base)
            key, pos = optional_bytes(data, pos, stop)
            value, pos = optional_bytes(data, pos, stop)
            ts = header.max_timestamp_ms if header.attributes & APPEND_TIME else ts_base + delta
            yield RawRecord(base + offset, ts, key, value, base, header.producer_id)
            pos = stop
    except IndexError:
        raise DecodeError(f"the batch at offset {base} ends inside a record") from None


def varint(data: bytes, pos: i64) -> tuple[i64, i64]:
    """Return the varint at `pos`, zigzag not undone, and the position after it.

    IndexError where the data ends, DecodeError past 63 bits.
    """
    byte: i64 = data[pos]
    pos += 1
    if byte < 128:
        return byte, pos
    value: i64 = byte & 127
    shift: i64 = 7
    while shift < 63:
        byte = data[pos]
        pos += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, pos
        shift += 7
    raise DecodeError(f"a varint before byte {pos} is longer than any value it could hold")


def length(data: bytes, pos: i64) -> tuple[i64, i64]:
    """As `varint`, for a length or a count, zigzag not undone: DecodeError for one that does not fit 32 bits.

    Whatever is added to one fits 64 bits.
    """
    value, pos = varint(data, pos)
    if value > _LONGEST:
        raise DecodeError(f"a length before byte {pos} does not fit 32 bits")
    return value, pos


def signed_varint(data: bytes, pos: i64) -> tuple[i64, i64]:
    """Return the varint at `pos`, zigzag undone, and the position after it; raises what `varint` does."""
    value, pos = varint(data, pos)
    return (value >> 1) ^ -(value & 1), pos


def read_delta(data: bytes, pos: i64, base: i64) -> tuple[i64, i64]:
    """Return the distance of a record's time or offset from its batch's `base`, and the position after it.

    DecodeError for an impossible distance.
    """
    delta, pos = signed_varint(data, pos)
    if not -MOST <= delta <= MOST:
        raise DecodeError(f"a record of the batch at offset {base} has no possible time or offset")
    return delta, pos


def optional_bytes(data: bytes, pos: i64, stop: i64) -> tuple[bytes | None, i64]:
    size, pos = signed_varint(data, pos)
    if size < 0:
        return None, pos
    if pos + size > stop:
        raise DecodeError(f"a key or value at byte {pos} is longer than its record")
    return data[pos : pos + size], pos + size


def decode_commit(value: bytes, log_offset: int, timestamp_ms: int) -> Committed:
    """Return the commit in an OffsetCommit value, versions 0 to 4; raises only DecodeError."""
    try:
        version: int = read_i16_be(value, 0)
        offset: int = read_i64_be(value, 2)
        if not 0 <= version <= 4:
            raise DecodeError(f"an OffsetCommit value of version {version}; 0 to 4 are known")
        # Versions: 1 says when the commit expires, 3 on has the leader epoch (KIP-320), 4 is flexible.
        pos: i64 = 10
        epoch, expire, topic_id = -1, -1, ZERO_UUID
        if version >= 3:
            epoch = read_i32_be(value, pos)
            pos += 4
        if version == 4:
            size, pos = length(value, pos)
            size -= 1
        else:
            length_read: int = read_i16_be(value, pos)
            size, pos = length_read, pos + 2
        end = pos + size
        if size < 0 or end > len(value):
            raise DecodeError(f"commit metadata of {size} bytes in a value of {len(value)}")
        metadata = value[pos:end].decode()
        commit_ts: int = read_i64_be(value, end)
        if version == 1:
            expire = read_i64_be(value, end + 8)
        elif version == 4:
            topic_id = _topic_id(value, end + 8)
    except (IndexError, UnicodeDecodeError):
        raise DecodeError(
            f"an OffsetCommit value of {len(value)} bytes that is cut short or garbled"
        ) from None
    # One for each partition of a group: what a NamedTuple calls takes three times as long.
    return tuple.__new__(
        Committed,
        (offset, epoch, metadata, commit_ts, expire, topic_id, version, log_offset, timestamp_ms),
    )


def _topic_id(value: bytes, pos: i64) -> bytes:
    """Return the topic id among the tagged fields that start at `pos` (tag 0)."""
    count, pos = length(value, pos)
    for _ in range(count):
        tag, pos = length(value, pos)
        size, pos = length(value, pos)
        if pos + size > len(value):
            raise DecodeError("a tagged field longer than its value")
        if tag == 0 and size == 16:
            return value[pos : pos + 16]
        pos += size
    return ZERO_UUID


def decode_commit_key(key: bytes) -> tuple[str, str, int]:
    """Return group, topic and partition of a key of type 0 or 1; raises only DecodeError."""
    try:
        size: int = read_i16_be(key, 2)
        pos = 4 + size
        topic_size: int = read_i16_be(key, pos) if size >= 0 else -1
        if topic_size < 0 or pos + topic_size + 6 != len(key):
            raise DecodeError(f"an OffsetCommit key of {len(key)} bytes with lengths that do not fit")
        group, topic = key[4:pos].decode(), key[pos + 2 : -4].decode()
        partition = read_i32_be(key, len(key) - 4)
    except (IndexError, ValueError):  # including text that is not UTF-8
        raise DecodeError(f"an OffsetCommit key of {len(key)} bytes, cut short or garbled") from None
    return group, topic, partition


def group_of(key: bytes) -> str | None:
    """Return the group that a key of any known type names: the first string of every key in the topic."""
    if len(key) < 4:
        return None
    (size,) = _I16.unpack_from(key, 2)
    if size < 0 or 4 + size > len(key):
        return None
    return key[4 : 4 + size].decode(errors="replace")
