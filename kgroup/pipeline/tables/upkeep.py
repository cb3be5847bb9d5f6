"""Upkeep: small files made larger, by tasks; files that no kept version needs deleted, by Delta's vacuum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import pyarrow as pa

from kgroup.errors import ConfigError
from kgroup.pipeline.spark.workers import Move
from kgroup.pipeline.tables import delta
from kgroup.pipeline.tables.place import Place
from kgroup.pipeline.tables.record import COMPACTION, RUNS
from kgroup.pipeline.tables.store import BY_GROUP, KEPT, STATE, Store, number_in, read_rows
from kgroup.pipeline.tables.writing import TableFile, TableWriter

LEAST_HOURS = 1
"""What a run has written and not committed is younger."""
STATE_HOURS = 6
"""A run goes on from the newest states alone; older ones are there for a run that is on its way."""
_OFTEN = 10
_MANY = 500
"""Every tenth run counts the files that merging would spare; so many are worth it."""
_SMALL_BYTES = 64 << 20
_LARGE_BYTES = 256 << 20
_ROWS = 1 << 20


@dataclass(frozen=True, slots=True)
class Upkeep:
    """Files that were made into fewer, and how many of those no version needs any more."""

    before: int
    after: int
    deleted: int


@dataclass(frozen=True, slots=True)
class Merge:
    """Writes the rows of several files of a table, partition and day into one. Runs on an executor.

    Takes the number of one of `packs`, each of which are files by run; returns the new files.
    """

    place: Place
    run: int
    token: str
    packs: Sequence[Sequence[str]]

    def __call__(self, number: int) -> list[TableFile]:
        paths = self.packs[number]
        table, part = paths[0].split("/")[0], number_in(paths[0], "part")
        with TableWriter(self.place, self.run, self.token, part, f"{number:05d}") as writer:
            tables = (read_rows(self.place, path) for path in paths)
            if table in BY_GROUP:
                writer.write(table, newest(pa.concat_tables(tables)))
            else:
                # Larger tables: each becomes a row group.
                held: list[pa.Table] = []
                for rows in tables:
                    held.append(rows)
                    if sum(piece.num_rows for piece in held) >= _ROWS:
                        writer.write(table, pa.concat_tables(held).unify_dictionaries())
                        held = []
                if held:
                    writer.write(table, pa.concat_tables(held).unify_dictionaries())
        return writer.files


def compact(store: Store, move: Move, large: bool = True) -> tuple[int, int]:
    """Make one file of the small ones of a partition and day, whole or not at all; files before and after.

    A task writes each file, wherever `move` lets it run. Readers of earlier versions keep their files. Unless
    `large`, a file stays that has more bytes than all smaller ones of its folder: a byte is written again
    only once as many new ones have come.
    """
    with store.run(COMPACTION) as run:
        packs = _packs(store, large)
        merged = move.each(Merge(store.place, run.number, run.token, packs), len(packs))
        files = list(chain.from_iterable(merged))
        for path in chain.from_iterable(packs):
            run.gone.setdefault(path.split("/")[0], []).append(path)
        before = sum(len(store.sizes(table)) for table in KEPT)
        run.publish(files, {})
    return before, before - sum(map(len, packs)) + len(files)


def _packs(store: Store, large: bool) -> list[list[str]]:
    """Return the files that are to be one, by run: small ones of a folder, up to a size; of groups all."""
    packs = list[list[str]]()
    for table in KEPT:
        sizes, whole = store.sizes(table), table in BY_GROUP
        folders: dict[Path, list[str]] = {}
        for path in sorted(sizes, key=_by_run):
            if whole or sizes[path] < _SMALL_BYTES:
                folders.setdefault(Path(path).parent, []).append(path)
        for paths in folders.values():
            chosen = paths if large else _without_large(paths, sizes)
            pack, size = list[str](), 0
            for path in chosen:
                if not whole and pack and size + sizes[path] > _LARGE_BYTES:
                    packs.append(pack)
                    pack, size = [], 0
                pack.append(path)
                size += sizes[path]
            packs.append(pack)
    return [pack for pack in packs if len(pack) > 1]


def _without_large(paths: Sequence[str], sizes: Mapping[str, int]) -> list[str]:
    total, rest = sum(sizes[path] for path in paths), sorted(paths, key=lambda path: sizes[path])
    while rest and 2 * sizes[rest[-1]] > total:
        total -= sizes[rest.pop()]
    kept = set(rest)
    return [path for path in paths if path in kept]


def _by_run(path: str) -> tuple[int, str]:
    """A file's run, and its place among that run's."""
    run, _, rest = Path(path).name.partition("-")
    return int(run) if run.isdecimal() else 0, rest.partition("-")[2]


def vacuum(store: Store, keep_hours: int, move: Move) -> Upkeep:
    """Compact, then delete what no version of the last `keep_hours` needs; what is older can't be read then.

    ConfigError for less than an hour: a run that is on its way has files that no version names yet.
    """
    if keep_hours < LEAST_HOURS:
        raise ConfigError("--keep is less than an hour", "what a run is writing has to be kept: --keep 1h")
    before, after = compact(store, move)
    deleted = sum(_vacuumed(store, table, keep_hours) for table in (*KEPT, RUNS))
    return Upkeep(before, after, deleted)


def _vacuumed(store: Store, table: str, keep_hours: int) -> int:
    opened = delta.opened(store.place, table)
    hours = min(keep_hours, STATE_HOURS) if table == STATE else keep_hours
    return 0 if opened is None else delta.vacuumed(store.place, table, opened, hours)


def kept_small(store: Store, move: Move) -> None:
    """Compact where runs have left many small files; then delete states that no run goes on from.

    Where another run is writing by now it does nothing: the one before has ended well.
    """
    kinds = [entry["kind"] for entry in store.manifest.runs]
    since = len(kinds) - 1 - max((at for at, kind in enumerate(kinds) if kind == COMPACTION), default=-1)
    if since and since % _OFTEN == 0 and sum(len(pack) - 1 for pack in _packs(store, large=False)) >= _MANY:
        with suppress(delta.Overtaken):
            compact(store, move, large=False)
            _vacuumed(store, STATE, STATE_HOURS)


def newest(rows: pa.Table) -> pa.Table:
    """Return the rows of each group's newest run, of one partition, in the order of the groups."""
    order = ["group_id", "run"]
    keys = rows.select(order).append_column("at", pa.array(range(rows.num_rows), pa.int64()))
    last = rows.select(["group_id", "run"]).group_by("group_id").aggregate([("run", "max")])
    kept = keys.join(last.rename_columns({"run_max": "run"}), ["group_id", "run"], join_type="left semi")
    by_group = kept.sort_by([(name, "ascending") for name in (*order, "at")])
    return rows.take(by_group["at"])
