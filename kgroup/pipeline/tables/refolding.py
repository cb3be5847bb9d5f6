"""The log of a partition made again from its rows, for a fold that tables of an older format need.

The topic is compacted: what the tables hold of it is nowhere else. `batches` has the bounds of each batch,
`commits`, `control` and `markers` have its records; put together they are read as segments are. A commit that
did not decode is in `bad_ranges` alone, and counts as missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from kgroup.domain import ZERO_UUID, uuid_bytes
from kgroup.history.decode.scan import BatchHeader, Scanner
from kgroup.history.sources.splits import Split, SplitReader
from kgroup.pipeline.read.inputs import RECORD_BYTES
from kgroup.pipeline.schemas import Row
from kgroup.pipeline.tables.place import Place
from kgroup.pipeline.tables.store import Store, number_in, unreadable
from kgroup.protocol.batches import Batch, LogRecord, encode_batch, end_marker_record, rebuild_batch
from kgroup.protocol.group_records import OffsetCommitKey, OffsetCommitValue, encode_key, encode_value

SPLIT_BYTES = 64 << 20
_RECORDS_AT_ONCE = 50_000
_RECORDS = ("commits", "control", "markers")


class RowFile(NamedTuple):
    """A file of a table, and the bounds of the log offsets in it."""

    name: str
    least: int
    greatest: int


@dataclass(frozen=True, slots=True)
class StoredSplit(Split):
    """The batches in the tables that begin at or after the log offset `start`, and before `end`."""

    place: Place | None = None
    label: str = ""
    files: Mapping[str, tuple[RowFile, ...]] | None = None
    start: int = 0
    end: int = 0

    @property
    def size(self) -> int:
        return (self.end - self.start) * RECORD_BYTES

    @property
    def source(self) -> str:
        return self.label

    def reader(self) -> SplitReader:
        return StoredReader(self)


def stored_splits(store: Store) -> list[Split]:
    """Return the splits with everything that the store has read of `__consumer_offsets`, in order."""
    files: dict[int, dict[str, list[RowFile]]] = {}
    for table in ("batches", *_RECORDS):
        for name, bounds in store.bounds(table, "log_offset").items():
            of_part = files.setdefault(number_in(name, "part"), {})
            of_part.setdefault(table, []).append(RowFile(name, *bounds))
    splits: list[Split] = []
    step = max(1, SPLIT_BYTES // RECORD_BYTES)
    for covered in store.manifest.coverage():
        part = covered.partition
        own = {table: tuple(row_files) for table, row_files in files.get(part, {}).items()}
        for number, start in enumerate(range(covered.first_offset, covered.last_offset + 1, step)):
            end = min(start + step, covered.last_offset + 1)
            splits.append(
                StoredSplit(
                    part, number, (), place=store.place, label=covered.source, files=own, start=start, end=end
                )
            )
    return splits


@dataclass(slots=True)
class StoredReader(SplitReader):
    """Reads a stored split, so many records at once, as batches of a segment; no byte of a log is read."""

    @property
    def bytes_read(self) -> int:
        return 0

    @property
    def files_read(self) -> list[str]:
        return []

    def chunks(self) -> Iterator[tuple[bytes, list[BatchHeader]]]:
        split = self.split
        assert isinstance(split, StoredSplit)
        self.source = split.source
        batches = sorted(_rows(split, "batches", split.start, split.end - 1), key=itemgetter("log_offset"))
        at = 0
        while at < len(batches):
            begun, records = at, 0
            while at < len(batches) and records < _RECORDS_AT_ONCE:
                records += batches[at]["records"]
                at += 1
            chunk = _chunk(split, batches[begun:at])
            headers = list(Scanner(self.source, check_crc=False).headers(chunk, True))
            self.next_offset = headers[-1].last_offset + 1
            yield chunk, headers


def _chunk(split: StoredSplit, batches: list[Row]) -> bytes:
    """Return these batches, next to each other in the log, as bytes."""
    first, last = batches[0]["log_offset"], max(batch["last_offset"] for batch in batches)
    records = [(*_commit(row), False) for row in _rows(split, "commits", first, last)]
    records += [(*_control(row), False) for row in _rows(split, "control", first, last)]
    records += [(*_marker(row), True) for row in _rows(split, "markers", first, last)]
    records.sort(key=lambda pair: pair[0].offset)
    remaining, made = iter(records), list[bytes]()
    ahead = next(remaining, None)
    for batch in batches:
        own, producer, control = list[LogRecord](), -1, False
        while ahead is not None and ahead[0].offset <= batch["last_offset"]:
            record, producer, control = ahead
            own.append(record)
            ahead = next(remaining, None)
        base = batch["log_offset"]
        head = Batch(
            encode_batch(
                own or [LogRecord(None, None, timestamp_ms=batch["max_ts"])],
                base_offset=base,
                producer_id=producer,
                transactional=producer >= 0,
                control=control,
            )
        )
        head.last_offset_delta = batch["last_offset"] - base
        made.append(rebuild_batch(head, own))
    return b"".join(made)


def _rows(split: StoredSplit, table: str, first: int, last: int) -> Iterator[Row]:
    """Yield the rows of a table from one log offset to another, times in ms."""
    assert split.place is not None and split.files is not None
    for file in split.files.get(table, ()):
        if file.least > last or file.greatest < first:
            continue
        bounds = [("log_offset", ">=", first), ("log_offset", "<=", last)]
        try:
            rows = pq.read_table(split.place.read(file.name), filters=bounds, partitioning=None)
        except (OSError, pa.ArrowException) as error:
            raise unreadable(split.place, file.name, error) from None
        for at, column in enumerate(rows.schema):
            if pa.types.is_timestamp(column.type):
                ms = rows.column(at).cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
                rows = rows.set_column(at, column.name, ms)
        yield from rows.to_pylist()


@cache
def _topic_id(text: str) -> bytes:
    return uuid_bytes(text)


def _commit(row: Row) -> tuple[LogRecord, int]:
    key = encode_key(OffsetCommitKey(group=row["group_id"], topic=row["topic"], partition=row["partition"]))
    value = None
    if not row["is_tombstone"]:
        committed = OffsetCommitValue(
            offset=row["offset"],
            leader_epoch=_number(row["leader_epoch"]),
            metadata=row["metadata"] or "",
            commit_timestamp=_number(row["commit_ts"]),
            expire_timestamp=_number(row["expire_ts"]),
            topic_id=_topic_id(row["topic_id"]) if row["topic_id"] else ZERO_UUID,
        )
        value = encode_value(committed, row["value_version"])
    record = LogRecord(key, value, timestamp_ms=row["ts"], offset=row["log_offset"])
    return record, _number(row["producer_id"])


def _control(row: Row) -> tuple[LogRecord, int]:
    return LogRecord(row["key"], row["value"], timestamp_ms=row["ts"], offset=row["log_offset"]), -1


def _marker(row: Row) -> tuple[LogRecord, int]:
    made = end_marker_record(row["committed"])
    return made._replace(timestamp_ms=row["ts"], offset=row["log_offset"]), row["producer_id"]


def _number(value: int | None) -> int:
    return -1 if value is None else value
