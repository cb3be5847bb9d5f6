"""A folder of tables: every run writes files of its own, and one manifest says which of them count.

    OUT/manifest.json
    OUT/commits/run=3/part=7/date=2026-03-01/0004-9f2c.parquet
    OUT/state/run=3/7-0.fold                                    what the next run folds on from

The manifest is replaced as a whole when a run is complete: readers see all of a run or nothing of it.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import kgroup
from kgroup.errors import ConfigError, StorageError
from kgroup.history.items import BadRange, Seen
from kgroup.history.replay import Coverage, coverage_of
from kgroup.pipeline.schemas import ITEMS, TABLES, Row

MANIFEST = "manifest.json"
FORMAT = 2
STATE = "state"
OPEN_EVENTS = "events_open"
DAY_MS = 86_400_000
_DATED = {"commits": "ts", "control": "ts", "markers": "ts", "events": "ts", "batches": "max_ts"}
_END_OF_TIME_MS = 253_402_300_800_000
"""The year 10000: a record may carry any number, and no folder is named after such a day."""


@dataclass(frozen=True, slots=True)
class TableFile:
    """A published file; `path` is relative to the store."""

    table: str
    path: str
    part: int
    rows: int
    bytes: int


@dataclass(slots=True)
class Manifest:
    """What the store holds. `spans` are summaries of splits (`rows.SplitSummary`), in log order.

    `folds` and `open_events` are by "part-bucket": where the newest run left off.
    """

    format: int = FORMAT
    kgroup_version: str = kgroup.__version__
    buckets: int = 1
    runs: list[Row] = field(default_factory=list)
    files: list[TableFile] = field(default_factory=list)
    spans: list[Row] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    folds: dict[str, str] = field(default_factory=dict)
    open_events: dict[str, str] = field(default_factory=dict)

    def last_offsets(self) -> dict[int, int]:
        """The last log offset that was read, by partition."""
        found: dict[int, int] = {}
        for span in self.spans:
            found[span["part"]] = max(found.get(span["part"], -1), span["last_offset"])
        return found

    def check_cluster(self, cluster: str | None) -> None:
        """ConfigError if what is to be read is of another cluster than what was read before."""
        known = {run.get("cluster_id") for run in self.runs} - {None}
        if cluster is not None and known and cluster not in known:
            text = (
                f"the tables are of cluster {', '.join(sorted(map(str, known)))}, the source is of {cluster}"
            )
            raise ConfigError(text, "write each cluster into a folder of its own")

    def read_before(self, run: int) -> set[str]:
        """The files that runs before `run` have read."""
        return {path for entry in self.runs if entry["run"] < run for path in entry["files"]}

    def coverage(self, bad: list[tuple[int, BadRange]] | None = None) -> list[Coverage]:
        """What is complete from where, of each partition, as a replay in process says it."""
        parts = sorted({span["part"] for span in self.spans})
        return [self._covered(part, [b for p, b in bad or () if p == part]) for part in parts]

    def _covered(self, part: int, bad: list[BadRange]) -> Coverage:
        spans = sorted((s for s in self.spans if s["part"] == part), key=lambda s: s["first_offset"])
        seen = Seen()
        for span in spans:
            counts = {name: span[name] for name in _SPAN_COUNTS}
            seen.follow(Seen(next_offset=span["last_offset"] + 1, **counts))
        return coverage_of(part, spans[0]["source"], seen, bad)


_SPAN_COUNTS = ("first_offset", "records", "missing", "complete_from", "complete_from_ms", "last_ms")


class Store:
    """The tables in a folder; StorageError if it cannot be used, ConfigError if another version wrote it."""

    def __init__(self, root: Path) -> None:
        # Of its own working directory, wherever Spark looks from.
        self.root = root.resolve()
        self.manifest = _load(root / MANIFEST)

    @property
    def empty(self) -> bool:
        return not self.manifest.runs

    def files(self, table: str) -> list[str]:
        """The paths of a table's published files; of `events_open` those of the newest folds."""
        found = [f.path for f in self.manifest.files if f.table == table]
        if table == OPEN_EVENTS:
            found = [path for path in self.manifest.open_events.values() if path]
        return [str(self.root / path) for path in found]

    def bad_ranges(self) -> list[tuple[int, BadRange]]:
        """Damage with its partition, as the newest run that read a file found it."""
        newest = {path: entry["run"] for entry in self.manifest.runs for path in entry["files"]}
        found = []
        for file in self.manifest.files:
            if file.table != "bad_ranges":
                continue
            run = number_in(file.path, "run")
            for row in pq.ParquetFile(self.root / file.path).read().to_pylist():
                if newest.get(row["source"], run) == run:
                    bad = BadRange(row["source"], row["start"], row["end"], row["reason"])
                    found.append((file.part, bad))
        return sorted(found, key=lambda entry: (entry[0], entry[1].source, entry[1].start))

    @contextmanager
    def run(self) -> Iterator[Run]:
        """A new run, published when the block ends well; else the store is as before.

        ConfigError while another run writes.
        """
        self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise ConfigError(f"another run writes into {self.root}", "wait for it to end") from None
            self.manifest = _load(self.root / MANIFEST)
            number = 1 + max((run["run"] for run in self.manifest.runs), default=0)
            run = Run(self.root, number, self.manifest)
            run.clear()
            try:
                yield run
                run.drop(ITEMS)
                if run.published:
                    _write(self.root / MANIFEST, self.manifest)
            except BaseException:
                run.clear()
                self.manifest = _load(self.root / MANIFEST)
                raise


@dataclass(slots=True)
class Run:
    """One run's place in a store. Its files are invisible until the run is published."""

    root: Path
    number: int
    manifest: Manifest
    published: bool = False

    def folder(self, table: str) -> Path:
        return self.root / table / f"run={self.number}"

    def drop(self, table: str) -> None:
        shutil.rmtree(self.folder(table), ignore_errors=True)

    def clear(self) -> None:
        """Remove whatever this run, or one cut short under its number, has written."""
        for table in (*TABLES, OPEN_EVENTS, ITEMS, STATE):
            self.drop(table)

    def publish(self, files: list[TableFile], about: Row) -> None:
        """Make the run's files part of the store once the block of `Store.run` ends."""
        self.manifest.files += files
        self.manifest.runs.append({"run": self.number, "ended_ms": int(time.time() * 1000), **about})
        self.manifest.kgroup_version = kgroup.__version__
        self.published = True


def number_in(path: str, name: str) -> int:
    """The number in the folder `name=NUMBER` on the way to a file of a table."""
    folders = reversed(Path(path).parent.parts)
    return int(next(part for part in folders if part.startswith(f"{name}=")).partition("=")[2])


def adopt_fold(manifest: Manifest, told: Row) -> list[TableFile]:
    """Note what `folding.FoldShare` said of one share; the files that become part of the tables."""
    files = [TableFile(**file) for file in told["files"]]
    manifest.folds[told["key"]] = told["fold"]
    manifest.open_events[told["key"]] = "".join(f.path for f in files if f.table == OPEN_EVENTS)
    return [file for file in files if file.table != OPEN_EVENTS]


def _load(path: Path) -> Manifest:
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        if told["format"] != FORMAT:
            hint = "write into a new folder; the segments are read again"
            raise ConfigError(f"{path.parent} was written by kgroup {told['kgroup_version']}", hint)
        told["files"] = [TableFile(**entry) for entry in told["files"]]
        return Manifest(**told)
    except FileNotFoundError:
        return Manifest()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StorageError(f"{path} cannot be read: {error}") from None


def _write(path: Path, manifest: Manifest) -> None:
    # Not `asdict`, which copies everything: names alone may be a hundred thousand.
    told = {field.name: getattr(manifest, field.name) for field in fields(manifest)}
    told["files"] = [asdict(file) for file in manifest.files]
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(json.dumps(told))
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


class TableWriter:
    """Writes one task's rows of several tables, a file for each table and day; for `with`.

    A task that is tried again writes other files: only those that a task returned are published.
    """

    def __init__(self, root: str, run: int, part: int, label: str) -> None:
        self.root = Path(root)
        self.run = run
        self.part = part
        self.label = f"{label}-{uuid.uuid4().hex[:8]}"
        self.files: list[TableFile] = []
        self._open: dict[str, pq.ParquetWriter] = {}
        self._rows: dict[str, int] = {}

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(self, *failure: object) -> None:
        for name, writer in self._open.items():
            writer.close()
            path = Path(name)
            size = (self.root / path).stat().st_size
            self.files.append(TableFile(path.parts[0], name, self.part, self._rows[name], size))
        self._open.clear()

    def write(self, table: str, rows: pa.Table) -> None:
        """Append rows, day by day where the table has days; items by the share that folds them."""
        if not rows.num_rows:
            return
        if table == ITEMS:
            self._append(table, f"bucket={rows['bucket'][0]}", rows.drop_columns("bucket"))
            return
        column = _DATED.get(table)
        if column is None:
            self._append(table, "", rows)
            return
        ms = rows[column].cast(pa.int64()).to_numpy()
        days = np.where((ms < 0) | (ms >= _END_OF_TIME_MS), 0, ms) // DAY_MS
        for day in np.unique(days).tolist():
            own = rows if (days == day).all() else rows.filter(pa.array(days == day))
            self._append(table, f"date={date(1970, 1, 1) + timedelta(days=day)}", own)

    def _append(self, table: str, day: str, rows: pa.Table) -> None:
        name = str(Path(table) / f"run={self.run}" / f"part={self.part}" / day / f"{self.label}.parquet")
        if "part" in rows.column_names:
            rows = rows.drop_columns("part")
        if name not in self._open:
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            self._open[name] = pq.ParquetWriter(path, rows.schema, **_encodings(rows.schema))
            self._rows[name] = 0
        self._open[name].write_table(rows)
        self._rows[name] += rows.num_rows


def _encodings(schema: pa.Schema) -> Row:
    """How columns are written: names once each, numbers that grow row by row as differences."""
    names = [f.name for f in schema if pa.types.is_dictionary(f.type) or pa.types.is_string(f.type)]
    grow = [f.name for f in schema if pa.types.is_int64(f.type) or pa.types.is_timestamp(f.type)]
    delta = dict.fromkeys(grow, "DELTA_BINARY_PACKED")
    return {"compression": "zstd", "use_dictionary": names, "column_encoding": delta}
