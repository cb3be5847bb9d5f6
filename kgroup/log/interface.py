"""The interface of every log, whether it lives in memory or in a folder."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol, Unpack

from kgroup.errors import DecodeError, StorageError
from kgroup.protocol.batches import (
    LATEST,
    Appended,
    Batch,
    BatchHead,
    batches_in,
    encode_batch,
    with_append_time,
    with_base_offset,
)


class DamagedLog(StorageError):
    """Stored data is missing or changed; no file was touched."""


class OffsetOutOfRange(StorageError):
    """An offset before the log's start or behind its end was asked for."""


class TornTail(NamedTuple):
    """What opening a file cut off: the rest of an append that a kill or power loss interrupted.

    `kept` is the file the bytes are in now.
    """

    path: Path
    position: int
    bytes_cut: int
    reason: str
    kept: Path

    def __str__(self) -> str:
        return (
            f"{self.path} ended in {self.bytes_cut} bytes that are no whole append ({self.reason});"
            f" they were cut at byte {self.position} and are kept in {self.kept}"
        )


class Log(Protocol):
    """An append-only sequence of record batches, addressed by offset.

    An append that raises StorageError has left the log as it was.
    """

    leader_epoch: int
    """The epoch of batches that are appended without an epoch of their own."""

    @property
    def start_offset(self) -> int:
        """The first offset that may be read."""
        ...

    @property
    def end_offset(self) -> int:
        """The offset the next record will get."""
        ...

    def append(self, records: Appended, **head: Unpack[BatchHead]) -> int:
        """Append the records as one batch, durable on return; return the base offset."""
        ...

    def append_batches(
        self, raw: bytes, *, leader_epoch: int | None = None, append_time_ms: int | None = None
    ) -> tuple[int, int]:
        """Append produced batches whole, giving them offsets; return the first and last offset.

        With `append_time_ms`, the records take that time (message.timestamp.type=LogAppendTime).
        Raise DecodeError if `raw` is not one or more intact batches, nothing appended.
        """
        ...

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Return whole batches from the one that has `offset` (or the next, if compacted away) on.

        At most `max_bytes` but at least one batch; empty at the end. Raise OffsetOutOfRange.
        """
        ...

    def batches(self, start: int = 0) -> Iterator[Batch]:
        """Yield every batch that has `start` or a later offset, checksums verified, up to the current end."""
        ...

    def offset_for_timestamp(self, timestamp_ms: int) -> tuple[int, int] | None:
        """Return offset and timestamp of the first record not older than `timestamp_ms`, None if all are."""
        ...

    def delete_before(self, offset: int) -> None:
        """Make `offset` the start of the log; raise OffsetOutOfRange past its end."""
        ...

    def configure(self, *, segment_bytes: int, fsync: bool) -> None:
        """Set the size of segments from now on, and whether every append is synced."""
        ...

    def close(self, *, gone: bool = False) -> None:
        """Release files; safe to call twice. Of a log that is `gone`, nothing is synced first."""
        ...


class Placed(NamedTuple):
    """One batch and the facts a log indexes it by."""

    raw: bytes
    base_offset: int
    last_offset: int
    max_timestamp: int


def place_records(records: Appended, offset: int, leader_epoch: int, head: BatchHead) -> Placed:
    """Return the records as one batch at `offset`, of this leader epoch unless the head says another."""
    head.setdefault("leader_epoch", leader_epoch)
    raw = encode_batch(records, base_offset=offset, **head)
    last_delta, latest = LATEST.unpack_from(raw)
    return Placed(raw, offset, offset + last_delta, latest)


def place_batches(raw: bytes, offset: int, leader_epoch: int, append_time_ms: int | None) -> list[Placed]:
    """Return the produced batches of `raw` with offsets from `offset` on.

    Raises DecodeError for corrupt data, gaps in a batch's offsets, a partial batch, or none.
    """
    placed: list[Placed] = []
    reader = batches_in(raw)
    for batch in reader:
        if batch.count < 1 or batch.last_offset_delta != batch.count - 1:
            raise DecodeError(
                f"batch at byte {batch.position} has {batch.count} records"
                f" and a last offset delta of {batch.last_offset_delta}"
            )
        data, newest = batch.raw, batch.max_timestamp
        if append_time_ms is not None:
            data, newest = with_append_time(data, append_time_ms), append_time_ms
        data = with_base_offset(data, offset, leader_epoch)
        placed.append(Placed(data, offset, offset + batch.last_offset_delta, newest))
        offset += batch.count
    if reader.trailing_bytes or not placed:
        raise DecodeError(f"{reader.trailing_bytes} bytes of a partial batch at byte {reader.position}")
    return placed


def out_of_range(offset: int, start: int, end: int) -> OffsetOutOfRange:
    return OffsetOutOfRange(f"offset {offset} is outside the log's {start} to {end}")


def first_at_or_after(batch: Batch, timestamp_ms: int, start_offset: int) -> tuple[int, int] | None:
    """Return the first record of the batch at or behind `start_offset` that is not older than `timestamp_ms`.

    Raises DamagedLog for records that do not decode.
    """
    try:
        records = batch.records
    except DecodeError as error:
        raise DamagedLog(error.message, hint="restore the partition's segments from a backup") from None
    for record in records:
        # A batch's first timestamp and a record's delta may add up to more than 64 bits; in Kafka
        # they wrap.
        record_ms = (record.timestamp_ms + (1 << 63)) % (1 << 64) - (1 << 63)
        if record_ms >= timestamp_ms and record.offset >= start_offset:
            return record.offset, record_ms
    return None
