"""Turns a store into the events of a replay in process, in the same order.

Acknowledgements of share groups are single events, as `replay-log --all-commits` shows them.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from kgroup.domain import SHARE_STATE_TOPIC, TopicPartition
from kgroup.history.deliveries import with_deliveries
from kgroup.history.fold.events import Delivered, Event, Kind
from kgroup.history.fold.view import SHARE
from kgroup.history.replay import Coverage, in_order
from kgroup.pipeline.schemas import STAMP, Row
from kgroup.pipeline.tables.folding import event_of
from kgroup.pipeline.tables.store import DELIVERIES, OPEN_EVENTS, Store, number_in


@dataclass(slots=True)
class StoredStory:
    """Events of all partitions in one order, and the coverage of each partition of both topics."""

    events: list[Event] = field(default_factory=list)
    coverage: list[Coverage] = field(default_factory=list)
    state_coverage: list[Coverage] = field(default_factory=list)


def story_in(store: Store, group: str | None = None) -> StoredStory:
    """Return the store's events, of one group or of all; events of no group are always included."""
    parts: dict[int, list[Row]] = {}
    for row in _read(store, "events", group):
        parts.setdefault(row["part"], []).append(row)
    still = list(_read(store, OPEN_EVENTS, group))
    newest: dict[tuple[int, str], int] = {}
    for row in still:
        key = row["part"], row["group_id"]
        newest[key] = max(newest.get(key, 0), row["run"])
    for row in still:
        if row["event"] is not None and row["run"] == newest[row["part"], row["group_id"]]:
            parts.setdefault(row["part"], []).append(row)
    # As `history.replay` merges: by offset within a partition, by time between partitions.
    partitions = (sorted(rows, key=lambda row: row["seq"]) for _, rows in sorted(parts.items()))
    ordered = (in_order(map(event_of, rows)) for rows in partitions)
    events = heapq.merge(*ordered, key=lambda event: event.timestamp_ms)
    delivered: dict[int, list[Row]] = {}
    for row in _read(store, DELIVERIES, group):
        delivered.setdefault(row["part"], []).append(row)
    states = [
        map(_delivery_of, sorted(rows, key=lambda row: (row["log_offset"], row["seq"])))
        for _, rows in sorted(delivered.items())
    ]
    manifest = store.manifest
    return StoredStory(
        with_deliveries(events, states), manifest.coverage(store.bad_ranges()), manifest.delivery_coverage()
    )


def _delivery_of(row: Row) -> Event:
    """Return the event of a row of `deliveries` whose times are in ms."""
    partition = None if row["topic"] is None else TopicPartition(row["topic"], row["partition"])
    return Event(
        kind=Kind(row["event"]),
        group=row["group_id"],
        protocol=SHARE,
        log_topic=SHARE_STATE_TOPIC,
        log_partition=row["part"],
        offset=row["log_offset"],
        end_offset=row["log_offset"],
        timestamp_ms=row["ts"],
        end_timestamp_ms=row["ts"],
        detail=row["detail"],
        cause=row["cause"],
        proven=row["proven"],
        partitions=() if partition is None else (partition,),
        count=row["count"],
        records=()
        if partition is None
        else tuple(
            Delivered(*partition, piece["first_offset"], piece["last_offset"], piece["deliveries"])
            for piece in row["delivered"]
        ),
    )


def _read(store: Store, table: str, group: str | None) -> Iterator[Row]:
    for path in store.names(table):
        rows = store.read(path, None if group is None else (group, ""))
        part = number_in(path, "part")
        for name in {"ts", "end_ts"}.intersection(rows.column_names):
            at = rows.column_names.index(name)
            rows = rows.set_column(at, name, rows[name].cast(STAMP).cast(pa.int64()))
        yield from ({"part": part, **row} for row in rows.to_pylist())
