"""Kafka's checks of produced records, in its order and with its codes, before they reach a log.

Source: ProduceRequest.validateRecords, UnifiedLog.analyzeAndValidateRecords and LogValidator of 4.3.1.
Where Kafka stores what no reader could use, a batch is put right (offsets of records that do not count up)
or refused (compressed records of another length than they say): docs/decisions/0016.
"""

from __future__ import annotations

import struct

from kgroup.errors import DecodeError, ErrorCode, Refused
from kgroup.protocol.batches import (
    ATTRIBUTES_AT,
    COMPRESSION_MASK,
    HEADER_BYTES,
    LENGTH_OFFSET,
    MAGIC_AT,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    Batch,
    LogRecord,
    batches_in,
    with_consecutive_offsets,
    with_max_timestamp,
)
from kgroup.protocol.compression import Compression, decompress
from kgroup.runtime.topic_settings import TopicSettings

ZSTD_SINCE = 7
_ERRORS_SHOWN = 3

_LENGTH = struct.Struct(">i")
_LEAST_LENGTH = 14  # of a message of magic 0, the shortest there was


class InvalidRecords(Refused):
    """Some records of a batch cannot be stored; `records` names them by index, each with the reason."""

    def __init__(self, code: ErrorCode, records: list[tuple[int, str]]) -> None:
        shown = ", ".join(f"record {index}: {reason}" for index, reason in records[:_ERRORS_SHOWN])
        super().__init__(code, f"{len(records)} records have been rejected: {shown}")
        self.records = records


def transactional(records: bytes | None) -> bool:
    """Return whether the first batch belongs to a transaction; Refused unless it is certain."""
    size = _batch_size(records or b"", 0)
    return bool(records and size and records[MAGIC_AT] == 2 and records[ATTRIBUTES_AT] & TRANSACTIONAL)


def sole_batch(records: bytes | None, version: int) -> bytes:
    """Return the required single batch, not parsed; an incomplete one behind it is dropped."""
    data = records or b""
    size = _batch_size(data, 0)
    many = f"Produce requests with version {version}"
    if size is None:
        raise Refused(ErrorCode.INVALID_RECORD, f"{many} must have at least one record batch per partition")
    if data[MAGIC_AT] != 2:
        raise Refused(
            ErrorCode.INVALID_RECORD,
            f"{many} may only contain record batches with magic version 2",
        )
    if version < ZSTD_SINCE and data[ATTRIBUTES_AT] & COMPRESSION_MASK == Compression.ZSTD:
        raise Refused(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"{many} are not allowed to use ZStandard compression"
        )
    if _batch_size(data, size) is not None:
        raise Refused(
            ErrorCode.INVALID_RECORD,
            f"{many} are only allowed to contain exactly one record batch per partition",
        )
    return data[:size]


def _batch_size(data: bytes, at: int) -> int | None:
    """Return the size of the batch that starts there, None if incomplete; CORRUPT_MESSAGE if invalid."""
    left = len(data) - at
    if left < LENGTH_OFFSET:
        return None
    (length,) = _LENGTH.unpack_from(data, at + 8)
    if length < _LEAST_LENGTH:
        raise Refused(ErrorCode.CORRUPT_MESSAGE, f"a record batch of {length} bytes is claimed")
    if left <= MAGIC_AT:
        return None
    if data[at + MAGIC_AT] > 2:
        raise Refused(ErrorCode.CORRUPT_MESSAGE, f"a record batch has magic {data[at + MAGIC_AT]}")
    size: int = length + LENGTH_OFFSET
    return size if size <= left else None


def header_of(raw: bytes) -> Batch:
    """Return the header of a batch that was not checked yet."""
    if len(raw) < HEADER_BYTES:
        raise Refused(ErrorCode.CORRUPT_MESSAGE, f"the record batch has only {len(raw)} bytes")
    return Batch(raw)


def checked(batch: Batch, topic: TopicSettings, now_ms: int) -> Batch:
    """Return the batch as it may be stored; Refused with the code and the reason if it may not."""
    _check_header(batch, topic)
    records, in_order = _records(batch)
    earliest, latest = now_ms - topic.timestamp_before_max_ms, now_ms + topic.timestamp_after_max_ms
    late: dict[int, str] = {}
    for index, record in enumerate(records):
        at = record.timestamp_ms
        if not topic.append_time and at != NO_TIMESTAMP:
            if not earliest <= at <= latest:
                late[index] = f"Timestamp {at} is out of range [{earliest}, {latest}]"
        elif batch.log_append_time:
            late[index] = "Producer should not set timestamp type to LogAppendTime"
    keyless = {
        index: "Compacted topic cannot accept message without key"
        for index, record in enumerate(records if topic.compact else ())
        if record.key is None
    }
    if late or keyless:
        code = ErrorCode.INVALID_TIMESTAMP if late else ErrorCode.INVALID_RECORD
        raise InvalidRecords(code, sorted({**late, **keyless}.items()))
    stored = batch.raw
    raw = stored if in_order else with_consecutive_offsets(batch, records)
    newest = max(NO_TIMESTAMP, max(record.timestamp_ms for record in records))
    if not topic.append_time and (batch.log_append_time or batch.max_timestamp != newest):
        raw = with_max_timestamp(raw, newest)
    if len(raw) > topic.segment_bytes:
        raise Refused(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"The batch of {len(raw)} bytes exceeds the maximum segment size of {topic.segment_bytes}",
        )
    return batch if raw is stored else Batch(raw)


def _check_header(batch: Batch, topic: TopicSettings) -> None:
    if batch.base_offset != 0:
        raise _invalid(f"The baseOffset of the record batch should be 0, but it is {batch.base_offset}")
    if batch.size > topic.max_message_bytes:
        raise Refused(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"The record batch size is {batch.size} bytes, the maximum is {topic.max_message_bytes}",
        )
    try:
        list(batches_in(batch.raw))
    except DecodeError as error:
        raise Refused(ErrorCode.CORRUPT_MESSAGE, error.message) from None
    if batch.compression > Compression.ZSTD:
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, f"Unknown compression type id: {batch.compression}")
    if batch.last_offset_delta < 0:
        raise _invalid(f"Batch has an invalid offset range: [0, {batch.last_offset_delta}]")
    if batch.count <= 0:
        raise _invalid(f"Invalid reported count for record batch: {batch.count}")
    if batch.last_offset_delta + 1 != batch.count:
        raise _invalid(f"Inconsistent offset range [0, {batch.last_offset_delta}] and count {batch.count}")
    if batch.control:
        raise _invalid("Clients are not allowed to write control records")
    if batch.producer_id >= 0 and batch.base_sequence < 0:
        raise _invalid(f"Invalid sequence number {batch.base_sequence} of producer {batch.producer_id}")


def _records(batch: Batch) -> tuple[list[LogRecord], bool]:
    """Return the records, and whether their offsets count up from the first to the last.

    Kafka, too, fails with UNKNOWN_SERVER_ERROR for those it cannot decompress or would have to recompress.
    """
    body = batch.raw[HEADER_BYTES:]
    if batch.compression:
        try:
            body = decompress(body, batch.compression)
        except DecodeError as error:
            raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, error.message) from None
    try:
        return batch.decoded(body), True
    except DecodeError:
        pass
    try:
        records = batch.decoded(body, in_order=False)
    except DecodeError as error:
        raise _invalid(error.message) from None
    if batch.compression:
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, "offsets of compressed records do not count up")
    return records, False


def _invalid(reason: str) -> Refused:
    return Refused(ErrorCode.INVALID_RECORD, reason)
