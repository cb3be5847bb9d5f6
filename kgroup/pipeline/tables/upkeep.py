"""Upkeep: small files made larger, files that no kept version needs deleted."""

from __future__ import annotations

from dataclasses import dataclass

from kgroup.errors import ConfigError
from kgroup.pipeline.tables import delta
from kgroup.pipeline.tables.record import COMPACTION, RUN, RUNS
from kgroup.pipeline.tables.store import KEPT, REPLACED, Store

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


def due(store: Store) -> bool:
    """Whether many runs have left many small files since they were last made into larger ones."""
    compactions = [entry["run"] for entry in store.manifest.runs if entry["kind"] == COMPACTION]
    runs = [entry["run"] for entry in store.manifest.runs if entry["kind"] == RUN]
    return bool(runs) and runs[-1] - max(compactions, default=0) >= _OFTEN


_OFTEN = 100
