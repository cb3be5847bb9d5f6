"""Upkeep: small files made larger, files that no kept version needs deleted, an earlier folder converted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from kgroup.errors import ConfigError
from kgroup.pipeline.schemas import FOLDS, Row
from kgroup.pipeline.tables import delta
from kgroup.pipeline.tables.record import COMPACTION, RUN, RUNS
from kgroup.pipeline.tables.store import KEPT, REPLACED, STATE, Run, Store, number_in
from kgroup.pipeline.tables.writing import TableFile, TableWriter

LEAST_HOURS = 1
"""What a run has written and not committed is younger."""


@dataclass(frozen=True, slots=True)
class Upkeep:
    """Files that were made into fewer, and how many of those no version needs any more."""

    before: int
    after: int
    deleted: int


def compact(store: Store) -> tuple[int, int]:
    """Make one file of the many of a partition and day, whole or not at all; files before and after.

    Readers of earlier versions keep their files.
    """
    before = after = 0
    with store.run(COMPACTION) as run:
        for table in KEPT:
            if table in REPLACED:
                continue
            opened = run.tables[table]
            known = len(opened.file_uris())
            run.manifest.versions[table] = delta.compacted(store.place, table, opened)
            before, after = before + known, after + len(opened.file_uris())
        run.publish([], {})
    return before, after


def vacuum(store: Store, keep_hours: int) -> Upkeep:
    """Compact, then delete what no version of the last `keep_hours` needs; what is older can't be read then.

    ConfigError for less than an hour: a run that is on its way has files that no version names yet.
    """
    if keep_hours < LEAST_HOURS:
        raise ConfigError("--keep is less than an hour", "what a run is writing has to be kept: --keep 1h")
    before, after = compact(store)
    deleted = 0
    for table in (*KEPT, RUNS):
        opened = delta.opened(store.place, table)
        if opened is not None:
            deleted += delta.vacuumed(store.place, table, opened, keep_hours)
    return Upkeep(before, after, deleted)


def convert(earlier: Store, new: Store) -> dict[str, int]:
    """Tables of an earlier version → new ones, as one run; rows by table.

    ConfigError if there is nothing to convert, or something where the new ones shall be. The next run goes
    on where the earlier ones stopped.
    """
    if not earlier.is_earlier:
        raise ConfigError(
            f"{earlier.place.uri()} holds no tables of an earlier kgroup", "there is nothing to do"
        )
    if not new.empty:
        raise ConfigError(f"{new.place.uri()} holds tables already", "name a new folder")
    old = earlier.manifest
    with new.run() as run:
        manifest = run.manifest
        manifest.buckets, manifest.names, manifest.spans = old.buckets, dict(old.names), old.spans
        files = [file for table in KEPT if table != STATE for file in _moved(earlier, run, table)]
        files += _folds(earlier, run)
        *before, newest = [
            {
                "run": entry["run"],
                "kind": RUN,
                "token": run.token,
                "ended": entry["ended_ms"],
                **{name: entry.get(name) for name in ("sources", "files", "bytes_read", "cluster_id")},
            }
            for entry in old.runs
        ]
        run.number, run.before = newest["run"], before
        run.publish(files, newest)
    rows: dict[str, int] = {}
    for file in files:
        if file.table not in REPLACED:
            rows[file.table] = rows.get(file.table, 0) + file.rows
    return rows


def _moved(earlier: Store, run: Run, table: str) -> list[TableFile]:
    """A table's rows, file by file, with the run that wrote them."""
    found: list[TableFile] = []
    for name in earlier.names(table):
        part, number = number_in(name, "part"), number_in(name, "run")
        writer = TableWriter(run.place, number, run.token, part, f"{number:05d}")
        with pq.ParquetFile(earlier.place.read(name)) as file, writer:
            for batch in file.iter_batches():
                writer.write(table, pa.Table.from_batches([batch]))
        found += writer.files
    return found


def _folds(earlier: Store, run: Run) -> Sequence[TableFile]:
    found: list[TableFile] = []
    assert earlier.place.folder is not None
    for key, path in earlier.manifest.folds.items():
        part, bucket = map(int, key.split("-"))
        state = (earlier.place.folder / path).read_bytes()
        row: Row = {"part": part, "bucket": bucket, "state": state}
        with TableWriter(run.place, run.number, run.token, part, f"{bucket:03d}") as writer:
            writer.write(STATE, pa.Table.from_pylist([row], schema=FOLDS))
        found += writer.files
    return found


def due(store: Store) -> bool:
    """Whether many runs have left many small files since they were last made into larger ones."""
    compactions = [entry["run"] for entry in store.manifest.runs if entry["kind"] == COMPACTION]
    runs = [entry["run"] for entry in store.manifest.runs if entry["kind"] == RUN]
    return bool(runs) and runs[-1] - max(compactions, default=0) >= _OFTEN


_OFTEN = 100
