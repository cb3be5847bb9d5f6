"""The table `runs`: one row per run, its commit record; read as a manifest."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

import kgroup
from kgroup.errors import ConfigError, StorageError
from kgroup.pipeline.schemas import ADDED, Row
from kgroup.pipeline.schemas import RUNS as SCHEMA
from kgroup.pipeline.tables import delta
from kgroup.pipeline.tables.manifest import FORMATS, OLDEST, Manifest, merged
from kgroup.pipeline.tables.place import Place
from kgroup.pipeline.tables.writing import TableFile

RUNS = "runs"
RUN, COMPACTION = "run", "compaction"
_MANY = 32
_SMALL_BYTES = 4 << 20
_NULLABLE = ("cluster_id",)
_KEPT = ("run", "kind", "token", "cluster_id", "files", "names", "resumed")
"""The columns read of every row; the others are read only of the newest."""


def recorded(place: Place) -> Manifest | None:
    """Return the newest record; None if there is none. `versions` includes that of the record itself.

    ConfigError if another program or another version of kgroup wrote it, StorageError if it cannot be read.
    """
    table = delta.opened(place, RUNS)
    if table is None:
        return None
    if not delta.is_ours(table):
        raise ConfigError(f"{place.uri(RUNS)} is a table of another program", "write into another folder")
    with delta.failures(place, RUNS):
        paths = [f"{RUNS}/{f['path']}" for f in pa.table(table.get_add_actions()).to_pylist()]
    rows: list[Row] = []
    newest: Row | None = None
    try:
        for path in paths:
            whole = _read(place, path)
            for name in SCHEMA.names:
                if name not in _NULLABLE and not _filled(whole.column(name).combine_chunks()):
                    raise ValueError(f"column {name} has no value")
            rows += whole.select(_KEPT).to_pylist()
            last = whole.sort_by("run").slice(whole.num_rows - 1).to_pylist()[0]
            newest = last if newest is None or last["run"] > newest["run"] else newest
        if newest is not None:
            for entry in newest["formats"]:
                if entry["table"] in FORMATS:
                    _check_format(place, entry["table"], entry["format"], newest["kgroup_version"])
        return _manifest(rows, newest, table.version())
    except (OSError, LookupError, TypeError, ValueError, pa.ArrowException) as error:
        text = f"{place.uri(RUNS)} cannot be read: {error}"
        raise StorageError(text, "read the segments into a new folder") from None


def _read(place: Place, path: str) -> pa.Table:
    """Return rows of `runs`, with the columns that older formats lack; ConfigError if they are not ours."""
    read = pq.ParquetFile(place.read(path))
    known = read.read(columns=["format", "kgroup_version"])
    for number, version in zip(*(column.to_pylist() for column in known.columns), strict=True):
        _check_format(place, RUNS, number, version)
    there = read.schema_arrow
    if any(f not in there for f in SCHEMA if f.name not in ADDED or f.name in there.names):
        raise ConfigError(f"{place.uri(RUNS)} is a table of another program", "write elsewhere")
    whole = read.read()
    for name in ADDED:
        if name not in there.names:
            none = pa.array([[]] * whole.num_rows, SCHEMA.field(name).type)
            whole = whole.append_column(SCHEMA.field(name), none)
    return whole.select(SCHEMA.names)


def _check_format(place: Place, table: str, number: int, version: str) -> None:
    """Raise ConfigError for a format of a table that is not read here: what writes it, and what to do."""
    if number < OLDEST:
        hint = "read the segments into a new folder, or go on with that version"
    elif number > FORMATS[table]:
        hint = "use that version, or a newer one"
    else:
        return
    text = f"{place.uri()} was written by another version, kgroup {version} (format {number} of {table})"
    raise ConfigError(text, hint)


def _filled(values: pa.Array) -> bool:
    """Return whether no value is null, nor one inside it."""
    if pa.types.is_list(values.type):
        return not values.null_count and _filled(values.flatten())
    inside = values.flatten() if pa.types.is_struct(values.type) else []
    return not values.null_count and all(map(_filled, inside))


def _manifest(rows: list[Row], newest: Row | None, version: int) -> Manifest:
    if newest is None:
        return Manifest(versions={RUNS: version})
    rows.sort(key=lambda row: row["run"])
    # Rows of format 9 have no formats: all tables were of that one.
    number: int = newest["format"]
    formats = dict.fromkeys(FORMATS, number)
    formats.update((entry["table"], entry["format"]) for entry in newest["formats"])
    usable = formats["deliveries"] == FORMATS["deliveries"]
    formats["deliveries"] = FORMATS["deliveries"]
    return Manifest(
        kgroup_version=newest["kgroup_version"],
        runs=rows,
        spans=newest["spans"],
        share_groups=newest["share_groups"],
        # A state of another layout: the next run reads that topic from its start, and adds what is new.
        deliveries={entry["part"]: entry for entry in newest["deliveries"] if usable},
        names={entry["id"]: entry["name"] for row in rows for entry in row["names"]},
        versions={entry["table"]: entry["version"] for entry in newest["versions"]} | {RUNS: version},
        formats=formats,
        places={entry["part"]: (entry["segment"], entry["position"]) for entry in newest["places"]},
    )


def row_of(manifest: Manifest, about: Row, names: dict[str, str]) -> Row:
    """Return the record of a run: `about` are its own columns, `names` what it learned."""
    versions = [{"table": t, "version": v} for t, v in sorted(manifest.versions.items()) if t != RUNS]
    return {
        **about,
        "format": FORMATS[RUNS],
        "kgroup_version": kgroup.__version__,
        "versions": versions,
        "formats": [
            {"table": t, "format": number} for t, number in sorted(manifest.formats.items()) if t != RUNS
        ],
        "places": [
            {"part": part, "segment": segment, "position": position}
            for part, (segment, position) in sorted(manifest.places.items())
        ],
        "spans": merged(manifest.spans),
        "share_groups": manifest.share_groups,
        "deliveries": [row for _, row in sorted(manifest.deliveries.items())],
        "names": [{"id": uid, "name": name} for uid, name in sorted(names.items())],
    }


def record(place: Place, row: Row, version: int) -> int:
    """Commit a record as the version after `version`; return the new one. Overtaken if there is one.

    Very many small files are merged on the way.
    """
    table = delta.opened(place, RUNS)
    if table is None or table.version() != version:
        raise delta.Overtaken(f"another run wrote into {place.uri()} meanwhile", "run again")
    with delta.failures(place, RUNS):
        known = pa.table(table.get_add_actions()).to_pylist()
    small = [f"{RUNS}/{f['path']}" for f in known if f["size_bytes"] < _SMALL_BYTES]
    gone = small if len(small) >= _MANY else []
    parts = [_read(place, path).cast(SCHEMA) for path in gone]
    whole = pa.concat_tables([*parts, pa.Table.from_pylist([row], schema=SCHEMA)])
    name = f"{RUNS}/{row['token']}.parquet"
    with place.written(name) as path:
        pq.write_table(whole, path, compression="zstd")
        size = path.stat().st_size
    file = TableFile(RUNS, name, -1, whole.num_rows, size, {"numRecords": whole.num_rows})
    return delta.committed(place, RUNS, table, [file], gone, f"run {row['run']}")
