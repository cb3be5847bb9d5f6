"""One Delta table at a place: its versions, and commits of exactly the next version.

A commit creates the next file of the table's log only if it does not exist; object stores do that by
themselves (a conditional put), without a lock. Delta's protocol defines what the log holds.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from kgroup.errors import ConfigError, KgroupError, StorageError
from kgroup.pipeline.comments import TABLES, comment_of
from kgroup.pipeline.schemas import plain
from kgroup.pipeline.tables.place import Place
from kgroup.pipeline.tables.writing import BOUNDED, DATED, TableFile, folder_in
from kgroup.storage.failures import COLOURS
from kgroup.storage.failures import failure as of_storage

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties

_OURS = "kgroup"
_KEPT_LOG = {"delta.enableExpiredLogCleanup": "false"}


class Overtaken(KgroupError):
    """Another program has committed the version that was to be ours."""


def opened(place: Place, table: str, version: int | None = None) -> DeltaTable | None:
    """Return the table, in its newest version or an older one; None if there is none."""
    from deltalake import DeltaTable
    from deltalake.exceptions import TableNotFoundError

    with failures(place, table):
        try:
            return DeltaTable(place.uri(table), version=version, storage_options=_options(place))
        except TableNotFoundError:
            return None


def created(place: Place, table: str, schema: pa.Schema) -> DeltaTable:
    """Return the table, created if necessary."""
    from deltalake import DeltaTable

    existing = opened(place, table)
    if existing is not None:
        return existing
    days = ["date"] if table in DATED else []
    folders = [name for name in ("part",) if name in schema.names]
    with failures(place, table):
        return DeltaTable.create(
            place.uri(table),
            pa.schema(_fields(table, [*schema, *(pa.field(name, pa.date32()) for name in days)])),
            mode="ignore",
            partition_by=folders + days,
            name=f"{_OURS} {table}",
            description=TABLES[table],
            # Set explicitly, or a reader takes missing bounds of other columns for bounds that hold nothing.
            configuration=_KEPT_LOG
            | {"delta.dataSkippingStatsColumns": ",".join(n for n in BOUNDED if n in schema.names)},
            storage_options=_options(place),
            commit_properties=_said("made"),
        )


def _fields(table: str, columns: Sequence[pa.Field]) -> list[pa.Field]:
    """Return the columns as a table has them, with their comments."""
    shown = plain(pa.schema(columns))
    return [field.with_metadata({"comment": comment_of(table, field.name)}) for field in shown]


def widened(place: Place, name: str, table: DeltaTable, schema: pa.Schema) -> int:
    """Add the columns that an older kgroup did not write, empty in its rows; return the table's version."""
    from deltalake.schema import Schema

    known = {field.name for field in table.schema().fields}
    if new := [field for field in schema if field.name not in known]:
        with failures(place, name):
            table.alter.add_columns(
                Schema.from_arrow(pa.schema(_fields(name, new))).fields,
                commit_properties=_said("columns added"),
                post_commithook_properties=_log_kept(),
            )
    return table.version()


def is_ours(table: DeltaTable) -> bool:
    """Return whether kgroup made the table."""
    return str(table.metadata().name).startswith(f"{_OURS} ")


def rolled_back(place: Place, name: str, table: DeltaTable, version: int) -> int:
    """Restore the table to `version`, undoing commits of runs that did not finish; return the new version.

    StorageError if a program other than kgroup committed, or the log is shorter than it was.
    """
    newest = table.version()
    if newest == version:
        return version
    if newest < version:
        raise StorageError(
            f"the log of {place.uri(name)} ends at version {newest}, and {version} was committed",
            "bring back what was deleted, or read the segments into a new folder",
        )
    with failures(place, name):
        for commit in table.history(newest - version):
            if _OURS not in commit:
                raise StorageError(
                    f"{place.uri(name)} was changed by {commit.get('engineInfo') or 'another program'}",
                    "write into tables of your own; kgroup changes none that others change",
                )
        table.restore(version, commit_properties=_said("rolled back"))
        return table.version()


def committed(
    place: Place,
    name: str,
    table: DeltaTable,
    files: Sequence[TableFile],
    gone: Sequence[str] = (),
    about: str = "",
    changes: bool = True,
) -> int:
    """Add and remove files as one version, the one after the table's; Overtaken if it is taken.

    Without `changes` they hold the same rows, so that a stream of the table skips them.
    """
    from deltalake.transaction import AddAction, RemoveAction

    now, days = int(time.time() * 1000), name in DATED

    def values(path: str) -> dict[str, str | None]:
        part = folder_in(path, "part")
        return ({"part": part} if part else {}) | ({"date": folder_in(path, "date")} if days else {})

    below = len(name) + 1
    actions: list[AddAction | RemoveAction] = [
        AddAction(f.path[below:], f.bytes, values(f.path), now, changes, json.dumps(dict(f.stats)))
        for f in files
    ]
    actions += [
        RemoveAction(path[below:], changes, now, partition_values=values(path) or None) for path in gone
    ]
    partitions = table.metadata().partition_columns
    with failures(place, name):
        table.create_write_transaction(
            actions,
            "append",
            table.schema(),
            partitions,
            commit_properties=_said(about),
            post_commithook_properties=_log_kept(),
        )
    return table.version() + 1


def vacuumed(place: Place, name: str, table: DeltaTable, keep_hours: int) -> int:
    """Delete files that no version of the last hours needs and no run is writing; return how many."""
    with failures(place, name):
        gone = table.vacuum(
            keep_hours,
            dry_run=False,
            enforce_retention_duration=False,
            full=True,
            commit_properties=_said("vacuum"),
            post_commithook_properties=_log_kept(),
        )
        return len(gone)


def files_of(place: Place, name: str, version: int) -> dict[str, int]:
    """Return the paths of a version's files, relative to the store, with their bytes."""
    table = opened(place, name, version)
    if table is None:
        raise StorageError(f"{place.uri(name)} is gone", "bring it back, or read the segments again")
    with failures(place, name):
        files = pa.table(table.get_add_actions()).select(["path", "size_bytes"]).to_pylist()
    return {f"{name}/{file['path']}": file["size_bytes"] for file in files}


def bounds_of(place: Place, name: str, version: int, column: str) -> dict[str, tuple[int, int]]:
    """Return the same with the least and greatest value of a column; StorageError for a file without them."""
    table = opened(place, name, version)
    if table is None:
        raise StorageError(f"{place.uri(name)} is gone", "bring it back, or read the segments again")
    with failures(place, name):
        files = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    by_path = {}
    for file in files:
        path, bounds = f"{name}/{file['path']}", (file.get(f"min.{column}"), file.get(f"max.{column}"))
        if None in bounds:
            raise StorageError(f"{place.uri(path)} has no bounds of {column} in its table's log", _AGAIN)
        by_path[path] = bounds
    return by_path


_AGAIN = "read the segments into a new folder"


def _log_kept() -> PostCommitHookProperties:
    """Make checkpoints, and delete nothing of the log: versions are read as long as files exist."""
    from deltalake import PostCommitHookProperties

    return PostCommitHookProperties(cleanup_expired_logs=False)


def _said(about: str) -> CommitProperties:
    from deltalake import CommitProperties

    return CommitProperties(custom_metadata={_OURS: about}, max_commit_retries=0)


def _options(place: Place) -> dict[str, str] | None:
    """Return delta-rs's options for a place that is not on this machine."""
    if place.folder is not None:
        return None
    given = place.options.for_tables(place.root)
    plain = any(value.startswith("http://") for value in given.values())
    return {"timeout": f"{place.options.timeout_s:g}s"} | ({"allow_http": "true"} if plain else {}) | given


@contextmanager
def failures(place: Place, name: str) -> Iterator[None]:
    """Raise the library's errors as one sentence."""
    from deltalake.exceptions import CommitFailedError, DeltaError, DeltaProtocolError

    try:
        yield
    except CommitFailedError:
        raise Overtaken(f"another run wrote into {place.uri()} meanwhile", "run again") from None
    except DeltaProtocolError as error:
        hint = "use the kgroup that wrote it, or a newer one"
        raise ConfigError(f"{place.uri(name)} needs a newer reader: {_first(error)}", hint) from None
    except (DeltaError, OSError) as error:
        if place.folder is None:
            raise of_storage(error, place.root / name, place.options) from None
        raise StorageError(f"{place.uri(name)} cannot be used: {_first(error)}") from None


def _first(error: Exception) -> str:
    """Return the first line, which has the reason: the library draws causes as a coloured tree."""
    lines = [line.strip(" ↳\t") for line in COLOURS.sub("", str(error)).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
