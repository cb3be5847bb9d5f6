"""Tables at a place, each a Delta table; one of them, `runs`, names the versions that belong together.

    OUT/runs/_delta_log/…                                       one row per run: its commit record
    OUT/commits/_delta_log/…
    OUT/commits/part=7/date=2026-03-01/3-9f2c41aa-00004-….parquet

A run commits its files to every table, then its record. Readers take the versions in the newest record: they
see all of a run or nothing of it. The next run rolls back what an unfinished one has committed.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kgroup.errors import ConfigError, StorageError
from kgroup.history.log_items import BadRange
from kgroup.pipeline.schemas import EVENTS, FOLDS, TABLES, Row
from kgroup.pipeline.schemas import RUNS as RUNS_SCHEMA
from kgroup.pipeline.tables import delta
from kgroup.pipeline.tables.lease import Occupied, leased
from kgroup.pipeline.tables.manifest import FOLDED, FORMATS, Manifest, range_of
from kgroup.pipeline.tables.place import Place
from kgroup.pipeline.tables.record import COMPACTION, RUN, RUNS, record, recorded, row_of
from kgroup.pipeline.tables.writing import TableFile, folder_in
from kgroup.portable import lock
from kgroup.storage.location import Location
from kgroup.storage.options import StorageOptions

if TYPE_CHECKING:
    from deltalake import DeltaTable

DELIVERIES = "deliveries"
"""The table whose `part` is of `__share_group_state`: which of its partitions has a group is unknown."""
OPEN_EVENTS = "events_open"
STATE = "folds"
KEPT: dict[str, pa.Schema] = {**TABLES, OPEN_EVENTS: EVENTS, STATE: FOLDS}
"""The tables that runs write, with their columns; `run` follows them."""
BY_GROUP = (OPEN_EVENTS, STATE)
"""Of these only the rows of a group's newest `run` are valid; a run adds those of changed groups."""
V = TypeVar("V")


class Store:
    """The tables at a place; StorageError if it cannot be used, ConfigError if another version wrote it."""

    def __init__(self, root: Path | str | Location, options: StorageOptions | None = None) -> None:
        self.place = Place.of(root, options)
        self.manifest = self._load()
        self._files: dict[str, dict[str, int]] = {}

    @property
    def root(self) -> Location:
        return self.place.root

    @property
    def empty(self) -> bool:
        return not self.manifest.runs

    def names(self, table: str, group: str | None = None) -> list[str]:
        """Return the valid files of a table, relative to the place; with `group`, those that may hold it."""
        parts = self.parts_with(table, group)
        return [
            name for name in sorted(self.sizes(table)) if parts is None or number_in(name, "part") in parts
        ]

    def parts_with(self, table: str, group: str | None) -> set[int] | None:
        """Return the partitions of a table that may hold a group; None for all of them."""
        return None if group is None or table == DELIVERIES else self.manifest.parts_of(group)

    def sizes(self, table: str) -> dict[str, int]:
        """Return the valid files of a table, with their bytes."""
        if table not in self.manifest.versions:
            return {}
        if table not in self._files:
            self._files[table] = delta.files_of(self.place, table, self.manifest.versions[table])
        return self._files[table]

    def bounds(self, table: str, column: str) -> dict[str, tuple[int, int]]:
        """Return the same files with the least and the greatest value of a column."""
        if table not in self.manifest.versions:
            return {}
        return delta.bounds_of(self.place, table, self.manifest.versions[table], column)

    def files(self, table: str, group: str | None = None) -> list[str]:
        """Return the same as paths or URLs."""
        return [self.place.uri(name) for name in self.names(table, group)]

    def read(self, name: str, groups: Sequence[str] | None = None) -> pa.Table:
        """Return a file as `read_rows` does."""
        return read_rows(self.place, name, groups)

    def bad_ranges(self) -> list[tuple[int, BadRange]]:
        """Return damage with its partition, from the newest run that read those bytes of the file.

        A record that does not decode has no bytes: it is read once, as its offset is.
        """
        reads: dict[str, list[tuple[int, int]]] = {}
        for entry in self.manifest.runs:
            starts = {file["file"]: file["start"] for file in entry["resumed"]}
            for path in entry["files"]:
                reads.setdefault(path, []).append((entry["run"], starts.get(path, 0)))
        ranges: list[tuple[int, BadRange]] = []
        for name in self.names("bad_ranges"):
            part = number_in(name, "part")
            for row in self.read(name).to_pylist():
                later = (start for run, start in reads.get(row["source"], ()) if run > row["run"])
                if row["start"] < 0 or all(start > row["start"] for start in later):
                    ranges.append((part, range_of(row)))
        # What is known of a file before it is read is noted by each run.
        return sorted(set(ranges), key=lambda entry: (entry[0], entry[1].source, entry[1].start))

    @contextmanager
    def run(self, kind: str = RUN) -> Iterator[Run]:
        """Yield a new run, published when the block ends well; else the store stays as it was.

        Occupied while another run writes.
        """
        with _alone(self.place) as last:
            self.manifest, self._files = self._load(), {}
            number = 1 + max((run["run"] for run in self.manifest.runs), default=0)
            run = Run(self.place, number, self.manifest, kind=kind)
            run.begin(last.left(run.token))
            try:
                yield run
                if run.published:
                    run.commit()
                else:
                    run.clear()
                last.done()
            except BaseException:
                run.clear()
                last.done()
                self.manifest = self._load()
                raise
            finally:
                self._files = {}

    def check_free(self) -> None:
        """Raise Occupied while another run writes: before anything is started for one."""
        if self.place.folder is None or (self.place.folder / "lock").exists():
            with _alone(self.place):
                pass

    def _load(self) -> Manifest:
        manifest = recorded(self.place)
        if manifest is None:
            names = ("_delta_log", *(f"{table}/_delta_log" for table in KEPT))
            if self.place.folder is not None and any(self.place.has(name) for name in names):
                text = f"{self.place.uri()} holds a Delta table of another program"
                raise ConfigError(text, "name another folder")
        return manifest or Manifest()


@dataclass(slots=True)
class Run:
    """One run's files in a store, invisible until the run is committed."""

    place: Place
    number: int
    manifest: Manifest
    published: bool = False
    kind: str = RUN
    token: str = ""
    tables: dict[str, DeltaTable] = field(default_factory=dict)
    adds: dict[str, list[TableFile]] = field(default_factory=dict)
    gone: dict[str, list[str]] = field(default_factory=dict)
    about: Row = field(default_factory=dict)
    known: frozenset[str] = frozenset()
    committing: bool = False
    widened: bool = False
    """Whether a table got columns: then its version has to be in a record."""

    def __post_init__(self) -> None:
        self.token = f"{self.number}-{uuid.uuid4().hex[:8]}"
        self.known = frozenset(self.manifest.names)

    def begin(self, leftover: str) -> None:
        """Open the tables, roll back what an unfinished run left, remove its files."""
        versions = self.manifest.versions
        runs = delta.created(self.place, RUNS, RUNS_SCHEMA)
        versions.setdefault(RUNS, 0)
        if runs.version() != versions[RUNS]:
            raise delta.Overtaken(f"another run writes into {self.place.uri()}", "wait for it to end")
        versions[RUNS] = delta.widened(self.place, RUNS, runs, RUNS_SCHEMA)
        before = dict(versions)

        def ready(table: str) -> tuple[str, DeltaTable]:
            schema = KEPT[table].append(pa.field("run", pa.int32()))
            opened = delta.created(self.place, table, schema)
            known = delta.rolled_back(self.place, table, opened, versions.setdefault(table, 0))
            versions[table] = delta.widened(self.place, table, opened, schema)
            self.widened = self.widened or versions[table] != known
            return table, opened

        self.tables = dict(_each(self.place, ready, list(KEPT)))
        formats = self.manifest.formats
        formats |= {table: number for table, number in FORMATS.items() if table not in FOLDED}
        # If killed after its last commit, a run still has its token in `lock`, and its files are valid.
        ended = {run.get("token") for run in self.manifest.runs}
        untouched = all(before.get(table, 0) == v for table, v in self.manifest.versions.items())
        if leftover and leftover not in ended and untouched:
            self._remove(leftover)

    def commit(self) -> None:
        """Make the run's files part of the store: every table, then the record that names them."""
        self.committing = True

        def commit(table: str) -> tuple[str, int]:
            adds, gone = self.adds.get(table, []), self.gone.get(table, [])
            said = f"run {self.number}"
            changes = self.kind != COMPACTION
            return table, delta.committed(self.place, table, self.tables[table], adds, gone, said, changes)

        changed = [t for t in self.tables if self.adds.get(t) or self.gone.get(t)]
        versions = self.manifest.versions
        versions |= dict(_each(self.place, commit, changed))
        learned = {uid: name for uid, name in self.manifest.names.items() if uid not in self.known}
        about = {"run": self.number, "kind": self.kind, "token": self.token, "sources": [], "files": []}
        about["resumed"] = []
        about |= {"ended": int(time.time() * 1000), "bytes_read": 0, "cluster_id": None, **self.about}
        try:
            versions[RUNS] = record(self.place, row_of(self.manifest, about, learned), versions[RUNS])
        except delta.Overtaken:
            # The answer to a successful commit may have been lost, and its repetition rejected.
            now = recorded(self.place)
            if now is None or not now.runs or now.runs[-1]["token"] != self.token:
                raise
            versions[RUNS] = now.versions[RUNS]
        self.manifest.runs.append(about)

    def publish(self, files: list[TableFile], about: Row) -> None:
        """Publish files once the block of `Store.run` ends, and remove those in `gone`."""
        for file in files:
            self.adds.setdefault(file.table, []).append(file)
        self.about, self.published = about, True

    def clear(self) -> None:
        """Remove what this run has written, unless some is committed: then the next run does it."""
        if not self.committing:
            self._remove(self.token)

    def _remove(self, token: str) -> None:
        own = f"/{token}-"
        for table in KEPT:
            self.place.delete([name for name in self.place.names(table) if own in name])


def _each(place: Place, call: Callable[[str], V], work: Sequence[str]) -> list[V]:
    """Return the results of calls, made in parallel where each is a trip over a network."""
    if place.folder is not None:
        return [call(one) for one in work]
    with ThreadPoolExecutor(len(work) or 1) as pool:
        return list(pool.map(call, work))


@dataclass(slots=True)
class _Last:
    """The file `lock`: the token of a run in progress, or of one that was killed."""

    file: IO[str] | None

    def left(self, token: str) -> str:
        """Return the token in it and replace it with `token`."""
        if self.file is None:
            return ""
        self.file.seek(0)
        text = self.file.read().strip()
        self._write(token)
        return text

    def done(self) -> None:
        if self.file is not None:
            self._write("")

    def _write(self, text: str) -> None:
        assert self.file is not None
        self.file.seek(0)
        self.file.truncate()
        self.file.write(text)
        self.file.flush()


@contextmanager
def _alone(place: Place) -> Iterator[_Last]:
    """Keep other runs out: of this machine by a lock, at a URL by a lease. The second commit is rejected."""
    if place.folder is None:
        with leased(place):
            yield _Last(None)
        return
    place.folder.mkdir(parents=True, exist_ok=True)
    with (place.folder / "lock").open("a+", encoding="utf-8") as file:
        try:
            lock(file.fileno())
        except OSError:
            raise Occupied(f"another run writes into {place.folder}", "wait for it to end") from None
        yield _Last(file)


def read_rows(place: Place, name: str, groups: Sequence[str] | None = None) -> pa.Table:
    """Return a file as it was written, or its rows of `groups`; StorageError if it cannot be read.

    Row groups that cannot hold one of these are not read.
    """
    try:
        file = pq.ParquetFile(place.read(name))
        if groups is None:
            return with_all_columns(name, file.read())
        about = (file.metadata.row_group(number) for number in range(file.num_row_groups))
        chosen = [number for number, row_group in enumerate(about) if may_hold(row_group, groups)]
        rows = with_all_columns(name, file.read_row_groups(chosen))
        return rows.filter(pc.is_in(rows["group_id"], pa.array(groups, pa.string())))
    except (OSError, pa.ArrowException) as error:
        raise unreadable(place, name, error) from None


def with_all_columns(name: str, rows: pa.Table) -> pa.Table:
    """Return the rows of a table's file with the columns that an older kgroup did not write, as nulls."""
    for column in KEPT[name.partition("/")[0]]:
        if column.name not in rows.column_names and column.name != "part":
            rows = rows.append_column(column, pa.nulls(rows.num_rows, column.type))
    return rows


def unreadable(place: Place, name: str, error: Exception) -> StorageError:
    """Return the error for a file of a table that cannot be read."""
    text = f"{place.uri(name)} cannot be read: {error}"
    return StorageError(text, "bring it back, or read the segments into a new folder")


def may_hold(about: pq.RowGroupMetaData, groups: Sequence[str]) -> bool:
    """Return whether a row group may hold rows of these groups, by the bounds of its ids."""
    columns = (about.column(at) for at in range(about.num_columns))
    known = next(column.statistics for column in columns if column.path_in_schema == "group_id")
    return known is None or not known.has_min_max or any(known.min <= g <= known.max for g in groups)


def number_in(path: str, name: str) -> int:
    """Return the number in the folder `name=NUMBER` of a table's file's path; StorageError without one."""
    text = folder_in(path, name) or ""
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        hint = "take out what another program added, or read the segments into a new folder"
        raise StorageError(f"{path} is not named as kgroup names the files of its tables", hint)
    return int(text)
