"""The tables that can be queried by name, stored and derived, and how a query selects from them."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as f

from kgroup.errors import ConfigError
from kgroup.pipeline import schemas
from kgroup.pipeline.ask import queries
from kgroup.pipeline.ask.spark_views import derived
from kgroup.pipeline.schemas import Row
from kgroup.pipeline.tables.store import Store

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

Make = Callable[["SparkSession", Store, int | None, str | None], "DataFrame"]


@dataclass(frozen=True, slots=True)
class Query:
    """A table by name: its columns, how it is made, and the order of its rows.

    `make` is None for what the manifest holds without Spark; it takes a moment, and a group if one is named.
    `timed` says whether the table supports moments.
    """

    schema: pa.Schema
    order: tuple[str, ...]
    make: Make | None = None
    timed: bool = False

    @property
    def grouped(self) -> bool:
        """Whether its rows belong to groups."""
        return "group_id" in self.schema.names


def _kept(name: str) -> Make:
    return lambda spark, store, _, group: queries.table(spark, store, name, (), group)


def _derived(name: str) -> Make:
    return lambda spark, store, _, group: derived(spark, store, name, group)


def _members(spark: SparkSession, store: Store, at_ms: int | None, group: str | None) -> DataFrame:
    """Return all sessions; with a moment those that it falls into."""
    found = derived(spark, store, "members", group)
    if at_ms is None:
        return found
    at = f.timestamp_millis(f.lit(at_ms))
    begun = f.col("joined").isNull() | (f.col("joined") <= at)
    return found.where(begun & (f.col("left").isNull() | (f.col("left") > at)))


_PLACE = ("part", "log_offset")
QUERIES: Mapping[str, Query] = {
    "state_at": Query(
        schemas.STATE_AT,
        ("group_id", "topic", "partition"),
        queries.state_at,
        True,
    ),
    "members": Query(schemas.MEMBERS, ("group_id", *_PLACE), _members, True),
    "rebalances": Query(schemas.REBALANCES, ("group_id", *_PLACE), _derived("rebalances")),
    "top_writers": Query(schemas.TOP_WRITERS, ("-bytes", "group_id"), _derived("top_writers")),
    "commit_rates": Query(schemas.COMMIT_RATES, ("group_id", "start"), _derived("commit_rates")),
    "suspicious_commits": Query(schemas.EVENTS, (*_PLACE, "seq"), _derived("suspicious_commits")),
    "coverage": Query(schemas.COVERAGE, ("log_topic", "part")),
    "bad_ranges": Query(schemas.BAD_RANGES, ("part", "source", "start")),
    "events": Query(schemas.EVENTS, (*_PLACE, "seq"), _kept("events")),
    "commits": Query(schemas.COMMITS, _PLACE, _kept("commits")),
    "control": Query(schemas.CONTROL, _PLACE, _kept("control")),
    "markers": Query(schemas.MARKERS, _PLACE, _kept("markers")),
    "batches": Query(schemas.BATCHES, _PLACE, _kept("batches")),
    "deliveries": Query(schemas.DELIVERIES, (*_PLACE, "seq"), _kept("deliveries")),
}


def query_named(name: str, groups: str | None, at_ms: int | None) -> Query:
    """Return the table of that name; ConfigError if there is none, or it has no groups or moments."""
    if name not in QUERIES:
        raise ConfigError(f"there is no table {name!r}", "one of " + ", ".join(QUERIES))
    query = QUERIES[name]
    if groups is not None and not query.grouped:
        raise ConfigError(f"the rows of {name} belong to no group", "omit --group")
    if at_ms is not None and not query.timed:
        timed = ", ".join(each for each, q in QUERIES.items() if q.timed)
        raise ConfigError(f"{name} is not a table of one moment", f"--at goes with {timed}")
    return query


def rows_of(
    spark: SparkSession, store: Store, query: Query, groups: str | None, at_ms: int | None, limit: int
) -> list[Row]:
    """Return at most `limit` rows (0: all), in the query's order, times in ms; `groups` is a glob."""
    assert query.make is not None
    named = groups if groups is not None and not set("*?[") & set(groups) else None
    found = query.make(spark, store, at_ms, named).select(*query.schema.names)
    if groups is not None and named is None:
        # The pattern's literal prefix is compared with the bounds in files; the rest is not.
        begins = re.split(r"[*?[]", groups, maxsplit=1)[0]
        found = found.where(f.col("group_id").startswith(begins) & _matches(groups))
    order = [f.desc(name[1:]) if name.startswith("-") else f.asc(name) for name in query.order]
    found = queries.in_ms(found.orderBy(*order))
    return [row.asDict(recursive=True) for row in (found.limit(limit) if limit else found).collect()]


def _matches(glob: str) -> Column:
    group = f.col("group_id")
    # As on any command line: a group whose id equals the pattern literally matches too. Java's \Z would let a
    # line end follow.
    return (group == glob) | group.rlike("^" + fnmatch.translate(glob).replace("\\Z", "\\z"))


def rows_in_manifest(store: Store, name: str) -> list[Row]:
    """Return the rows of `coverage` and `bad_ranges` from the manifest, without Spark. Times in ms."""
    bad = store.bad_ranges()
    if name == "bad_ranges":
        return [
            {"part": part, "source": b.source, "start": b.start, "end": b.end, "reason": b.reason}
            for part, b in bad
        ]
    return [
        {
            "log_topic": c.topic,
            "part": c.partition,
            "source": c.source,
            "first_offset": c.first_offset,
            "last_offset": c.last_offset,
            "records": c.records,
            "missing": c.missing,
            "complete_from_offset": c.complete_from,
            "complete_from": c.complete_from_ms,
            "last_ts": c.last_ms,
            "from_the_start": c.from_the_start,
            "bad_ranges": len(c.bad),
        }
        for c in (*store.manifest.coverage(bad), *store.manifest.delivery_coverage())
    ]
