"""Record batches, magic 2: what Produce and Fetch carry and what a log segment holds (KIP-98).

A batch is 61 bytes of header and the records, which may be compressed. The CRC-32C covers
everything from the attributes on, so base offset and leader epoch can be set without it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias, TypedDict, Unpack

from google_crc32c import value as crc32c

from kgroup.domain import NO_PRODUCER_ID
from kgroup.errors import DamagedBatch, DecodeError
from kgroup.protocol.compression import Compression, compress, decompress
from kgroup.protocol.log_records import NO_TIMESTAMP as NO_TIMESTAMP
from kgroup.protocol.log_records import EncodedRecords, Promised, decode_records, encode_records
from kgroup.protocol.log_records import LogRecord as LogRecord

HEADER_BYTES = 61
LENGTH_OFFSET = 12
"""Bytes before those that the batch's length field counts."""
MAGIC_AT = 16
CRC_START = 21
"""Bytes before those that the checksum covers."""
ATTRIBUTES_AT = 22
"""Where the lower byte of the attributes is."""
EXTENT = struct.Struct(">qi11xi")
"""Base offset, length and last offset delta, from which the next batch's start follows."""
LATEST = struct.Struct(">23xi8xq")
"""Last offset delta and largest timestamp, by which a log indexes a batch."""
COMPRESSION_MASK = 0x07
TRANSACTIONAL = 0x10

_MAGIC = 2
_LOG_APPEND_TIME = 0x08
_CONTROL = 0x20
_DELETE_HORIZON = 0x40

_HEADER = struct.Struct(">qiibIhiqqqhii")
_PREFIX = struct.Struct(">qiibI")
_CHECKED = struct.Struct(">hiqqqhii")
_OFFSET_AND_LENGTH = struct.Struct(">qi")
_EPOCH = struct.Struct(">i")
_MARKER_KEY = struct.Struct(">hh")
_MARKER_VALUE = struct.Struct(">hi")


Appended: TypeAlias = Sequence[LogRecord] | EncodedRecords
"""What becomes one batch."""


class TransactionEnd(NamedTuple):
    """The end of a transaction, as the one record of a control batch says it."""

    committed: bool
    coordinator_epoch: int


class ProducerHead(TypedDict, total=False):
    """A batch's producer fields; `encode_batch` has the values for omitted ones."""

    producer_id: int
    producer_epoch: int
    base_sequence: int
    transactional: bool
    control: bool


class BatchHead(ProducerHead, total=False):
    """A batch's fields about its records, except their place."""

    timestamp_ms: int
    leader_epoch: int
    compression: Compression


class Batch:
    """The header of one whole, checksummed batch in `data`; records are decoded on first use."""

    __slots__ = (
        "_records",
        "attributes",
        "base_offset",
        "base_sequence",
        "count",
        "data",
        "first_timestamp",
        "last_offset_delta",
        "max_timestamp",
        "partition_leader_epoch",
        "position",
        "producer_epoch",
        "producer_id",
        "size",
    )

    def __init__(self, data: bytes, position: int = 0) -> None:
        self.data = data
        self.position = position
        (
            self.base_offset,
            length,
            self.partition_leader_epoch,
            _,
            _,
            self.attributes,
            self.last_offset_delta,
            self.first_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.count,
        ) = _HEADER.unpack_from(data, position)
        self.size: int = length + LENGTH_OFFSET
        self._records: list[LogRecord] | None = None

    @property
    def raw(self) -> bytes:
        """The batch's own bytes."""
        return self.data[self.position : self.position + self.size]

    @property
    def last_offset(self) -> int:
        return int(self.base_offset) + int(self.last_offset_delta)

    @property
    def compression(self) -> int:
        """The codec's number: a `Compression`, or one that is not defined yet."""
        return int(self.attributes) & COMPRESSION_MASK

    @property
    def log_append_time(self) -> bool:
        """Whether the broker set the records' timestamps (to `max_timestamp`), not the producer."""
        return bool(self.attributes & _LOG_APPEND_TIME)

    @property
    def transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def control(self) -> bool:
        return bool(self.attributes & _CONTROL)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When compaction may drop this batch's tombstones, if a first pass has already seen them."""
        return int(self.first_timestamp) if self.attributes & _DELETE_HORIZON else None

    @property
    def records(self) -> list[LogRecord]:
        """The batch's records; DecodeError if they are not what the header says."""
        if self._records is None:
            body = self.data[self.position + HEADER_BYTES : self.position + self.size]
            if self.compression:
                try:
                    body = decompress(body, self.compression)
                except DecodeError as error:
                    raise self._undecodable(error.message) from None
            self._records = self.decoded(body)
        return self._records

    def decoded(self, body: bytes, *, in_order: bool = True) -> list[LogRecord]:
        """Return the records in `body`, this batch's own once decompressed; DecodeError if they are not its.

        Unless `in_order`, their offsets may be any.
        """
        try:
            promised = Promised(
                self.count,
                self.base_offset,
                self.last_offset_delta,
                self.first_timestamp,
                self.max_timestamp if self.log_append_time else None,
            )
            return decode_records(body, promised, in_order=in_order)
        except IndexError:
            what = "a record ends outside the batch"
        except DecodeError as error:
            what = error.message
        raise self._undecodable(what)

    def _undecodable(self, what: str) -> DecodeError:
        return DecodeError(f"batch at byte {self.position} (offset {self.base_offset}): {what}")

    @property
    def end_marker(self) -> TransactionEnd | None:
        """The end-of-transaction marker this batch is, None for data and other control batches."""
        if not self.attributes & _CONTROL:
            return None
        if not self.records:
            return None
        record = self.records[0]
        try:
            version, kind = _MARKER_KEY.unpack_from(record.key or b"")
            if version < 0 or kind not in (0, 1):
                return None
            _, epoch = _MARKER_VALUE.unpack_from(record.value or b"")
        except struct.error:
            raise DecodeError(f"control record at offset {record.offset} is too short") from None
        return TransactionEnd(kind == 1, epoch)

    def __repr__(self) -> str:
        return f"Batch(offsets {self.base_offset}..{self.last_offset}, {self.size} bytes)"


class BatchReader:
    """Iterates over the whole batches of `data`; the bytes of a partial last one are counted, not read.

    `position` is where the next batch starts. After the last batch, `trailing_bytes` is the number of
    bytes of a partial one (a Fetch response may end in one); 0 if the data ends with a batch.
    """

    __slots__ = ("data", "origin", "position")

    def __init__(self, data: bytes, start: int = 0, origin: int = 0) -> None:
        self.data = data
        self.position = start
        self.origin = origin

    @property
    def trailing_bytes(self) -> int:
        return len(self.data) - self.position

    def __iter__(self) -> BatchReader:
        return self

    def __next__(self) -> Batch:
        data, position = self.data, self.position
        left = len(data) - position
        if left < HEADER_BYTES:
            raise StopIteration
        base, length, _, magic, crc = _PREFIX.unpack_from(data, position)
        if magic != _MAGIC:
            raise DecodeError(
                f"batch at byte {self.origin + position} has magic {magic}, not 2",
                hint="message formats 0 and 1 ended with Kafka 4.0; other values mean corrupt data",
            )
        size = length + LENGTH_OFFSET
        if size < HEADER_BYTES:
            raise DecodeError(f"batch at byte {self.origin + position} claims a length of {length} bytes")
        if size > left:
            raise StopIteration
        end = position + size
        if crc32c(data[position + CRC_START : end]) != crc:
            where = f"batch at byte {self.origin + position}"
            raise DamagedBatch(f"{where} fails its checksum (CRC-32C)", base)
        self.position = end
        return Batch(data, position)


def batches_in(data: bytes, start: int = 0, *, origin: int = 0) -> BatchReader:
    """Return the whole batches of `data` from byte `start` on, each with length, magic and checksum verified.

    Raise DecodeError, naming the position, at the first corrupt batch: DamagedBatch if only its checksum
    shows that. A partial last batch is no
    error: see `BatchReader.trailing_bytes`. `origin` is where `data` lies in its file, for messages.
    """
    return BatchReader(data, start, origin)


def encode_batch(
    records: Appended,
    *,
    base_offset: int = 0,
    leader_epoch: int = 0,
    timestamp_ms: int = NO_TIMESTAMP,
    compression: Compression = Compression.NONE,
    **producer: Unpack[ProducerHead],
) -> bytes:
    """Return one batch with these records from `base_offset` on; their own offsets are ignored.

    `timestamp_ms` stands in for records that have none. Omitted producer fields are -1, or False.
    """
    if isinstance(records, EncodedRecords):
        body, count = records
        first = latest = timestamp_ms
    else:
        count = len(records)
        first = records[0].timestamp_ms if records else timestamp_ms
        if first < 0:
            first = timestamp_ms
        body, latest = encode_records(records, range(count), first, timestamp_ms)
    if not count:
        raise ValueError("a batch holds at least one record")
    attributes = int(compression)
    producer_id = epoch = sequence = -1
    if producer:  # the coordinator's records have none, and are most of what is encoded
        if producer.get("transactional"):
            attributes |= TRANSACTIONAL
        if producer.get("control"):
            attributes |= _CONTROL
        producer_id = producer.get("producer_id", NO_PRODUCER_ID)
        epoch = producer.get("producer_epoch", -1)
        sequence = producer.get("base_sequence", -1)
    if compression:
        body = compress(body, compression)
    checked = _CHECKED.pack(attributes, count - 1, first, latest, producer_id, epoch, sequence, count) + body
    length = len(checked) + CRC_START - LENGTH_OFFSET
    return _PREFIX.pack(base_offset, length, leader_epoch, _MAGIC, crc32c(checked)) + checked


def rebuild_batch(batch: Batch, kept: Sequence[LogRecord], delete_horizon_ms: int | None = None) -> bytes:
    """Return `batch` with only the records `kept`, at their own offsets, all else unchanged.

    Base and last offset stay, so that offsets and sequence numbers keep their meaning (as in Kafka's
    log cleaner). With `delete_horizon_ms`, the batch records from when on its tombstones may be deleted.
    """
    attributes = int(batch.attributes)
    first, latest = int(batch.first_timestamp), int(batch.max_timestamp)
    if delete_horizon_ms is not None:
        attributes |= _DELETE_HORIZON
        first = delete_horizon_ms
    base = batch.base_offset
    body, newest = encode_records(kept, [r.offset - base for r in kept], first, NO_TIMESTAMP)
    if kept and not batch.log_append_time:
        latest = newest
    codec = batch.compression
    checked = _CHECKED.pack(
        attributes,
        batch.last_offset_delta,
        first,
        latest,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        len(kept),
    ) + (compress(body, Compression(codec)) if codec else body)
    length = len(checked) + CRC_START - LENGTH_OFFSET
    return _PREFIX.pack(base, length, batch.partition_leader_epoch, _MAGIC, crc32c(checked)) + checked


def with_base_offset(raw_batch: bytes, offset: int, leader_epoch: int) -> bytes:
    """Return a produced batch at its place in the log; neither field is under the checksum."""
    return b"".join(
        (
            _OFFSET_AND_LENGTH.pack(offset, len(raw_batch) - LENGTH_OFFSET),
            _EPOCH.pack(leader_epoch),
            raw_batch[MAGIC_AT:],
        )
    )


def with_append_time(raw_batch: bytes, timestamp_ms: int) -> bytes:
    """Return a produced batch whose records carry the broker's time (LogAppendTime)."""
    return _with(raw_batch, _LOG_APPEND_TIME, timestamp_ms)


def with_max_timestamp(raw_batch: bytes, timestamp_ms: int) -> bytes:
    """Return a produced batch with the producer's times, of which `timestamp_ms` is the latest."""
    return _with(raw_batch, 0, timestamp_ms)


def _with(raw_batch: bytes, append_time: int, max_timestamp: int) -> bytes:
    fields = list(_CHECKED.unpack_from(raw_batch, CRC_START))
    fields[0] = fields[0] & ~_LOG_APPEND_TIME | append_time
    fields[3] = max_timestamp
    return _resealed(raw_batch, _CHECKED.pack(*fields) + raw_batch[HEADER_BYTES:])


def with_consecutive_offsets(batch: Batch, records: Sequence[LogRecord]) -> bytes:
    """Return an uncompressed batch of its own records, offsets counted up from its base offset."""
    body, _ = encode_records(records, range(len(records)), batch.first_timestamp, NO_TIMESTAMP)
    return _resealed(batch.raw, batch.raw[CRC_START:HEADER_BYTES] + body)


def _resealed(raw_batch: bytes, checked: bytes) -> bytes:
    base_offset, _, epoch, magic, _ = _PREFIX.unpack_from(raw_batch)
    length = len(checked) + CRC_START - LENGTH_OFFSET
    return _PREFIX.pack(base_offset, length, epoch, magic, crc32c(checked)) + checked


def end_marker_record(committed: bool, coordinator_epoch: int = 0) -> LogRecord:
    """Return the record of a marker; append it alone, with `transactional` and `control` set."""
    return LogRecord(_MARKER_KEY.pack(0, 1 if committed else 0), _MARKER_VALUE.pack(0, coordinator_epoch))


def records_in(batches: Iterable[Batch]) -> Iterator[LogRecord]:
    """Yield the records of all data batches, in order; omit control records."""
    for batch in batches:
        if not batch.attributes & _CONTROL:
            yield from batch.records
