"""Upkeep: small files made larger, files that no kept version needs deleted."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from kgroup.errors import ConfigError
from kgroup.pipeline.tables import delta
from kgroup.pipeline.tables.record import COMPACTION, RUN, RUNS
from kgroup.pipeline.tables.store import BY_GROUP, KEPT, Run, Store, number_in
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
            if table in BY_GROUP:
                continue
            opened = run.tables[table]
            known = len(opened.file_uris())
            run.manifest.versions[table] = delta.compacted(store.place, table, opened)
            before, after = before + known, after + len(opened.file_uris())
        merged: list[TableFile] = []
        for table in BY_GROUP:
            known, files = len(store.names(table)), _merged(store, run, table)
            before, after = before + known, after + known - len(run.gone[table]) + len(files)
            merged += files
        run.publish(merged, {})
    return before, after


def _merged(store: Store, run: Run, table: str) -> list[TableFile]:
    """Put the newest rows of each group into one file a partition, where there are several."""
    parts: dict[int, list[str]] = {}
    for path in store.names(table):
        parts.setdefault(number_in(path, "part"), []).append(path)
    several = {part: paths for part, paths in parts.items() if len(paths) > 1}
    run.gone[table] = [path for paths in several.values() for path in paths]
    files: list[TableFile] = []
    for part, paths in several.items():
        with TableWriter(store.place, run.number, run.token, part, "merged") as writer:
            writer.write(table, newest(pa.concat_tables(map(store.read, paths))))
        files += writer.files
    return files


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


def newest(rows: pa.Table) -> pa.Table:
    """Return the rows of each group's newest run, of one partition, in the order of the groups."""
    order = ["group_id", "run"]
    keys = rows.select(order).append_column("at", pa.array(range(rows.num_rows), pa.int64()))
    last = rows.select(["group_id", "run"]).group_by("group_id").aggregate([("run", "max")])
    kept = keys.join(last.rename_columns({"run_max": "run"}), ["group_id", "run"], join_type="left semi")
    by_group = kept.sort_by([(name, "ascending") for name in (*order, "at")])
    return rows.take(by_group["at"])


def due(store: Store) -> bool:
    """Whether many runs have left many small files since they were last made into larger ones."""
    compactions = [entry["run"] for entry in store.manifest.runs if entry["kind"] == COMPACTION]
    runs = [entry["run"] for entry in store.manifest.runs if entry["kind"] == RUN]
    return bool(runs) and runs[-1] - max(compactions, default=0) >= _OFTEN


_OFTEN = 100
