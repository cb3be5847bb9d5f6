"""Writes a task's rows to Parquet files, and reports to the driver what the table's log needs."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import TracebackType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kgroup.errors import StorageError
from kgroup.pipeline.read.commits import full
from kgroup.pipeline.schemas import Row
from kgroup.pipeline.tables.place import Place

DAY_MS = 86_400_000
DATED = {"batches": "max_ts"} | dict.fromkeys(("commits", "control", "markers", "events", "deliveries"), "ts")
_END_OF_TIME_MS = 253_402_300_800_000
"""The year 10000: a record may carry any number, and no folder is named after such a day."""
_BEGIN_OF_TIME_MS = -62_135_596_800_000
BOUNDED = ("log_offset", "ts", "max_ts", "key_hash")
"""Columns whose least and greatest value a log keeps, so that readers can skip files."""


@dataclass(frozen=True, slots=True)
class TableFile:
    """A file that was written; `path` is relative to the store, `stats` are as in Delta's protocol."""

    table: str
    path: str
    part: int
    rows: int
    bytes: int
    stats: Mapping[str, object] = field(default_factory=dict)


def folder_in(path: str, name: str) -> str | None:
    """Return the value in the folder `name=VALUE` of a table's file's path; None if there is none."""
    folders = reversed(Path(path).parent.parts)
    return next((folder.partition("=")[2] for folder in folders if folder.startswith(f"{name}=")), None)


@dataclass(slots=True)
class _Open:
    writer: pq.ParquetWriter
    placed: AbstractContextManager[Path]
    path: Path
    about: list[pq.FileMetaData]
    rows: int = 0


class TableWriter:
    """Writes one task's rows of several tables, a file per table and day; a context manager.

    A repeated task writes other files: only those that a task returned are published. Rows get the number of
    the run; every file's name begins with `token`.
    """

    def __init__(self, place: Place, run: int, token: str, part: int, label: str) -> None:
        self.place = place
        self.run = run
        self.part = part
        self.label = f"{token}-{label}-{uuid.uuid4().hex[:8]}"
        self.files: list[TableFile] = []
        self._open: dict[str, _Open] = {}

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name, opened in self._open.items():
            if error is not None:
                # What failed before says why; a file cut short may not even close.
                with suppress(OSError):
                    opened.writer.close()
                with suppress(type(error)):
                    opened.placed.__exit__(kind, error, trace)
                continue
            with _written(self.place.uri(name)):
                opened.writer.close()
                size = opened.path.stat().st_size
                opened.placed.__exit__(kind, error, trace)
            stats = _stats(opened.about[0], opened.rows) if opened.about else {}
            self.files.append(TableFile(name.split("/")[0], name, self.part, opened.rows, size, stats))
        self._open.clear()

    def write(self, table: str, rows: pa.Table) -> None:
        """Append rows, by day if the table has days."""
        if not rows.num_rows:
            return
        if "run" not in rows.column_names:
            rows = rows.append_column("run", full(self.run, rows.num_rows))
        column = DATED.get(table)
        if column is None:
            self._append(table, "", rows)
            return
        ms = rows[column].cast(pa.int64()).to_numpy()
        days = np.where((ms < 0) | (ms >= _END_OF_TIME_MS), 0, ms) // DAY_MS
        for day in np.unique(days).tolist():
            own = rows if (days == day).all() else rows.filter(pa.array(days == day))
            self._append(table, f"date={date(1970, 1, 1) + timedelta(days=day)}", own)

    def _append(self, table: str, day: str, rows: pa.Table) -> None:
        name = str(Path(table) / f"part={self.part}" / day / f"{self.label}.parquet")
        if "part" in rows.column_names:
            rows = rows.drop_columns("part")
        with _written(self.place.uri(name)):
            self._row_group(name, rows)

    def _row_group(self, name: str, rows: pa.Table) -> None:
        if name not in self._open:
            placed, about = self.place.written(name), list[pq.FileMetaData]()
            path = placed.__enter__()
            schema = rows.schema
            named = [f.name for f in schema if pa.types.is_dictionary(f.type)]
            texts = [f.name for f in schema if pa.types.is_string(f.type)]
            grow = [f.name for f in schema if pa.types.is_int64(f.type) or pa.types.is_timestamp(f.type)]
            writer = pq.ParquetWriter(
                path,
                schema,
                metadata_collector=about,
                compression="zstd",
                use_dictionary=named + texts,
                # Numbers that grow row by row are written as differences.
                column_encoding=dict.fromkeys(grow, "DELTA_BINARY_PACKED"),
                # A run writes many small files: what readers do not need is omitted from their footers.
                write_statistics=[column for column in (*BOUNDED, "group_id") if column in schema.names],
                store_schema=bool(named),
            )
            self._open[name] = _Open(writer, placed, path, about)
        self._open[name].writer.write_table(rows)
        self._open[name].rows += rows.num_rows


@contextmanager
def _written(uri: str) -> Iterator[None]:
    """Raise StorageError for a file that cannot be written, with its name: a task may run anywhere."""
    try:
        yield
    except OSError as error:
        hint = "the tables are as before: run again when it can be written"
        raise StorageError(f"cannot write {uri}: {error.strerror or error}", hint) from None


def _stats(about: pq.FileMetaData, rows: int) -> Row:
    """Return statistics by which readers skip files: rows, and the bounds of offsets and times."""
    least: dict[str, object] = {}
    greatest: dict[str, object] = {}
    columns = {about.schema.column(i).path: i for i in range(about.num_columns)}
    for name in BOUNDED:
        if name not in columns:
            continue
        groups = [about.row_group(n).column(columns[name]).statistics for n in range(about.num_row_groups)]
        if any(group is None or not group.has_min_max or group.null_count for group in groups):
            continue
        bounds = min(group.min_raw for group in groups), max(group.max_raw for group in groups)
        written = tuple(map(_stamp, bounds)) if name in ("ts", "max_ts") else bounds
        least[name], greatest[name] = written
    nulls = dict.fromkeys(least, 0)
    return {"numRecords": rows, "minValues": least, "maxValues": greatest, "nullCount": nulls}


def _stamp(ms: int) -> str:
    """Return a time, clipped to years that the protocol can write: a record may carry any number."""
    ms = min(max(ms, _BEGIN_OF_TIME_MS), _END_OF_TIME_MS - 1)
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)
    return at.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
