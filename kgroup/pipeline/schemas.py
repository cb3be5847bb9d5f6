"""The tables of the pipeline, column by column, as Arrow schemas; docs/pipeline.md explains each column.

`part` is the partition of `__consumer_offsets` (in `deliveries` of `__share_group_state`), `log_offset` the
place of the record in it: together the key of every row. Timestamps are UTC with milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from types import NoneType
from typing import Any, TypeAlias, get_args

import pyarrow as pa

from kgroup.domain import TopicPartition
from kgroup.history.fold.events import Kind, Unowned, stored_fields
from kgroup.history.replay import Coverage

Row: TypeAlias = dict[str, Any]
"""Plain values by column or field name, as Arrow, Spark and JSON take and return them."""

STAMP = pa.timestamp("ms", tz="UTC")
_MICROS = pa.timestamp("us", tz="UTC")
_NAME = pa.dictionary(pa.int32(), pa.string())
_PLACE = pa.struct([pa.field("topic", pa.string()), pa.field("partition", pa.int32())])
_UNOWNED = pa.struct([*_PLACE, pa.field("ms", pa.int64())])


def _schema(**columns: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field(name, kind) for name, kind in columns.items()])


_SPAN = pa.struct(
    [
        pa.field("part", pa.int32()),
        pa.field("source", pa.string()),
        *(
            pa.field(name, pa.int64())
            for name in (
                "first_offset",
                "last_offset",
                "records",
                "missing",
                "complete_from",
                "complete_from_ms",
                "first_ms",
                "last_ms",
                "gaps",
                "gap_end",
                "gap_ms",
                "modulus",
            )
        ),
    ]
)

_BAD = {
    "source": pa.string(),
    "start": pa.int64(),
    "end": pa.int64(),
    "reason": pa.string(),
}
_KEY = {"part": pa.int32(), "log_offset": pa.int64(), "ts": STAMP}


def _events() -> pa.Schema:
    """Return the columns that the fields of an event declare, and the one that orders its rows."""
    columns = {stored.column: _type_of(kind, stored.number) for kind, stored in stored_fields().values()}
    return _schema(**{**_KEY, "seq": pa.int64(), **columns})


def _type_of(kind: object, number: str) -> pa.DataType:
    inner = [arg for arg in get_args(kind) if arg not in (NoneType, ...)]
    only = inner[0] if inner else kind
    return _NUMBERS[number] if only is int else _OF_EVENTS[only]


_NUMBERS = {"int32": pa.int32(), "int64": pa.int64(), "moment": STAMP}
_OF_EVENTS: Mapping[object, pa.DataType] = {
    str: pa.string(),
    Kind: pa.string(),
    bool: pa.bool_(),
    TopicPartition: pa.list_(_PLACE),
    Unowned: pa.list_(_UNOWNED),
}

COMMITS = _schema(
    **_KEY,
    group_id=_NAME,
    topic=_NAME,
    partition=pa.int32(),
    offset=pa.int64(),
    leader_epoch=pa.int32(),
    metadata=pa.string(),
    commit_ts=STAMP,
    expire_ts=STAMP,
    topic_id=_NAME,
    value_version=pa.int16(),
    is_tombstone=pa.bool_(),
    producer_id=pa.int64(),
    bytes=pa.int32(),
)
"""One row per commit or tombstone. `producer_id` is null outside transactions; `bytes` is key and value."""

CONTROL = _schema(
    **_KEY,
    group_id=pa.string(),
    key_type=pa.int16(),
    is_tombstone=pa.bool_(),
    key=pa.binary(),
    value=pa.binary(),
    bytes=pa.int32(),
)
"""One row per record of a group's own state: key types 2 to 8 and 16, and those kgroup does not interpret."""

MARKERS = _schema(**_KEY, producer_id=pa.int64(), committed=pa.bool_())
"""One row per end of a transaction: earlier commits of that producer count from here on, or never."""

BATCHES = _schema(
    part=pa.int32(),
    log_offset=pa.int64(),
    last_offset=pa.int64(),
    records=pa.int32(),
    max_ts=STAMP,
    bytes=pa.int32(),
)
"""One row per batch: `log_offset` is its first offset. A moment lies after a whole batch, never inside."""

BAD_RANGES = _schema(part=pa.int32(), **_BAD, problem=pa.string())
"""Bytes `start` to `end` of a file that are no whole batch, or (`start` -1) a record that does not decode."""

EVENTS = _events()
"""The events of `kgroup replay-log`, one row each; `seq` orders those of one group at one offset."""

DELIVERIES = _schema(
    **_KEY,
    seq=pa.int64(),
    group_id=pa.string(),
    event=pa.string(),
    topic=pa.string(),
    partition=pa.int32(),
    delivered=pa.list_(
        pa.struct(
            [
                pa.field("first_offset", pa.int64()),
                pa.field("last_offset", pa.int64()),
                pa.field("deliveries", pa.int32()),
            ]
        )
    ),
    count=pa.int64(),
    detail=pa.string(),
    cause=pa.string(),
    proven=pa.bool_(),
)
"""The events of `__share_group_state`, one row each, as `kgroup replay-log --all-commits` reports them.

`delivered` are the records that an event is about, with how often they were delivered.
"""

STATE_AT = _schema(
    part=pa.int32(),
    log_offset=pa.int64(),
    group_id=pa.string(),
    topic=pa.string(),
    partition=pa.int32(),
    offset=pa.int64(),
    leader_epoch=pa.int32(),
    metadata=pa.string(),
    commit_ts=STAMP,
)
"""Derived: the committed offset of each partition at a moment; `log_offset` is the commit's record."""

MEMBERS = _schema(
    part=pa.int32(),
    log_offset=pa.int64(),
    group_id=pa.string(),
    member_id=pa.string(),
    instance_id=pa.string(),
    protocol=pa.string(),
    joined=STAMP,
    left=STAMP,
    ended=pa.string(),
    cause=pa.string(),
    joined_epoch=pa.int32(),
    left_epoch=pa.int32(),
    duration_ms=pa.int64(),
)
"""Derived: one row per session of a member; `ended` is the kind of its last event, null while it lasts."""

REBALANCES = _schema(
    part=pa.int32(),
    log_offset=pa.int64(),
    group_id=pa.string(),
    started=STAMP,
    completed=STAMP,
    epoch=pa.int32(),
    cause=pa.string(),
    unowned_ms=pa.int64(),
    unowned=pa.list_(_UNOWNED),
)
"""Derived: one row per completed rebalance. `started` is null in a classic group: it has no record."""

COMMIT_RATES = _schema(group_id=pa.string(), start=STAMP, commits=pa.int64(), partitions=pa.int64())
"""Derived: commits of a group in the minute from `start`, and the number of partitions."""

TOP_WRITERS = _schema(
    group_id=pa.string(),
    bytes=pa.int64(),
    records=pa.int64(),
    commits=pa.int64(),
    tombstones=pa.int64(),
    first_ts=STAMP,
    last_ts=STAMP,
    commits_per_minute=pa.float64(),
)
"""Derived: what each group writes; the rate is null for a span of less than a second."""

COVERED: Mapping[str, tuple[pa.DataType, Callable[[Coverage], object]]] = {
    "log_topic": (pa.string(), attrgetter("topic")),
    "part": (pa.int32(), attrgetter("partition")),
    "source": (pa.string(), attrgetter("source")),
    "first_offset": (pa.int64(), attrgetter("first_offset")),
    "last_offset": (pa.int64(), attrgetter("last_offset")),
    "records": (pa.int64(), attrgetter("records")),
    "missing": (pa.int64(), attrgetter("missing")),
    "complete_from_offset": (pa.int64(), attrgetter("complete_from")),
    "complete_from": (STAMP, attrgetter("complete_from_ms")),
    "last_ts": (STAMP, attrgetter("last_ms")),
    "from_the_start": (pa.bool_(), attrgetter("from_the_start")),
    "bad_ranges": (pa.int64(), lambda covered: len(covered.bad)),
}
"""The columns of `coverage`: their types, and what they are of a partition's coverage."""
COVERAGE = _schema(**{name: kind for name, (kind, _) in COVERED.items()})
"""Derived: what was read of a partition, and from where on nothing is missing."""

RUNS = _schema(
    run=pa.int64(),
    kind=pa.string(),
    token=pa.string(),
    ended=STAMP,
    format=pa.int32(),
    kgroup_version=pa.string(),
    cluster_id=pa.string(),
    bytes_read=pa.int64(),
    sources=pa.list_(pa.string()),
    files=pa.list_(pa.string()),
    versions=pa.list_(pa.struct([pa.field("table", pa.string()), pa.field("version", pa.int64())])),
    spans=pa.list_(_SPAN),
    share_groups=pa.bool_(),
    deliveries=pa.list_(
        pa.struct(
            [
                pa.field("part", pa.int32()),
                pa.field("source", pa.string()),
                pa.field("state", pa.binary()),
                pa.field("bad", pa.list_(pa.struct([pa.field(*column) for column in _BAD.items()]))),
            ]
        )
    ),
    names=pa.list_(pa.struct([pa.field("id", pa.string()), pa.field("name", pa.string())])),
    formats=pa.list_(pa.struct([pa.field("table", pa.string()), pa.field("format", pa.int32())])),
    places=pa.list_(
        pa.struct(
            [pa.field("part", pa.int32()), pa.field("segment", pa.string()), pa.field("position", pa.int64())]
        )
    ),
    resumed=pa.list_(pa.struct([pa.field("file", pa.string()), pa.field("start", pa.int64())])),
)
"""One row a run: its commit record. `versions` of the other tables belong together, `spans` say what was read
of each partition up to here, `share_groups` whether share groups were among that, `deliveries` where the fold
of each of `__share_group_state` stopped and what is damaged; `names` which topic ids the run learned; `kind`
is run or compaction. `formats` are those of the other tables, `format` that of this one. `places` say where
the batch begins that was read last of each partition, `resumed` which files were not read from the start."""
ADDED = ("formats", "places", "resumed")
"""Columns of `runs` that rows of format 9 lack."""

FOLDS = _schema(
    part=pa.int32(), key_hash=pa.int32(), group_id=pa.string(), pending=pa.bool_(), state=pa.binary()
)
"""Where the fold of a group stopped; the row of the newest `run` counts. `state` is JSON, as
`history.fold.snapshot` declares it; `pending`: a transaction that had not ended is in it."""

TABLES: dict[str, pa.Schema] = {
    "commits": COMMITS,
    "control": CONTROL,
    "markers": MARKERS,
    "batches": BATCHES,
    "bad_ranges": BAD_RANGES,
    "events": EVENTS,
    "deliveries": DELIVERIES,
}


def in_micros(schema: pa.Schema) -> pa.Schema:
    """Return the schema with times in microseconds, as Spark and DuckDB take them from Arrow."""
    fields = [f.with_type(_MICROS) if pa.types.is_timestamp(f.type) else f for f in schema]
    return pa.schema(fields)


def plain(schema: pa.Schema) -> pa.Schema:
    """Return the schema with strings for dictionaries, as Spark shows and takes them."""
    return pa.schema(
        [pa.field(f.name, pa.string() if pa.types.is_dictionary(f.type) else f.type) for f in schema]
    )
