"""The tables that can be queried by name, stored and derived, and the SELECT that a query is.

The same text is asked of DuckDB (`sql`) and of Spark (`spark_views`): what differs is in braces, as in
`views`.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime

import pyarrow as pa

from kgroup.errors import ConfigError
from kgroup.pipeline import schemas
from kgroup.pipeline.ask.views import PROGRESS, READS, VIEWS
from kgroup.pipeline.schemas import Row
from kgroup.pipeline.tables.store import Store


@dataclass(frozen=True, slots=True)
class Query:
    """A table by name: its columns, and the order of its rows; `timed` says whether it supports moments."""

    schema: pa.Schema
    order: tuple[str, ...]
    timed: bool = False

    @property
    def grouped(self) -> bool:
        """Whether its rows belong to groups."""
        return "group_id" in self.schema.names


@dataclass(frozen=True, slots=True)
class Question:
    """A SELECT, the columns it reads of each table (() is all), and the values of its parameters.

    With `group`, it needs only the partitions that may hold that one.
    """

    text: str
    reads: Mapping[str, tuple[str, ...]]
    group: str | None = None
    values: Mapping[str, str] = field(default_factory=dict)


_PLACE = ("part", "log_offset")
QUERIES: Mapping[str, Query] = {
    "state_at": Query(schemas.STATE_AT, ("group_id", "topic", "partition", "part"), timed=True),
    "members": Query(schemas.MEMBERS, ("group_id", *_PLACE, "member_id"), timed=True),
    "rebalances": Query(schemas.REBALANCES, ("group_id", *_PLACE)),
    "top_writers": Query(schemas.TOP_WRITERS, ("-bytes", "group_id")),
    "commit_rates": Query(schemas.COMMIT_RATES, ("group_id", "start")),
    "suspicious_commits": Query(schemas.EVENTS, (*_PLACE, "group_id", "seq")),
    "coverage": Query(schemas.COVERAGE, ("log_topic", "part")),
    "bad_ranges": Query(schemas.BAD_RANGES, ("part", "source", "start")),
    "events": Query(schemas.EVENTS, (*_PLACE, "group_id", "seq")),
    "commits": Query(schemas.COMMITS, _PLACE),
    "control": Query(schemas.CONTROL, _PLACE),
    "markers": Query(schemas.MARKERS, _PLACE),
    "batches": Query(schemas.BATCHES, _PLACE),
    "deliveries": Query(schemas.DELIVERIES, (*_PLACE, "seq")),
}
IN_MANIFEST = ("coverage", "bad_ranges")
"""Those whose rows the newest record of a run has."""


def query_named(name: str, groups: str | None, at_ms: int | None) -> Query:
    """Return the table of that name; ConfigError if there is none, or it has no groups or moments."""
    if name not in QUERIES:
        raise ConfigError(f"there is no table {name!r}", "one of " + ", ".join(QUERIES))
    query = QUERIES[name]
    if groups is not None and not query.grouped:
        raise ConfigError(f"the rows of {name} belong to no group", "omit --group")
    if at_ms is not None and not query.timed:
        timed = ", ".join(table for table, q in QUERIES.items() if q.timed)
        raise ConfigError(f"{name} is not a table of one moment", f"--at goes with {timed}")
    return query


def question(name: str, groups: str | None, at_ms: int | None, limit: int) -> Question:
    """Return the question for at most `limit` rows of a table (0: all), in its order; `groups` is a glob.

    A group whose id equals the glob literally matches too, as on any command line.
    """
    query, moment = QUERIES[name], moment_of(at_ms)
    conditions, values = [], dict[str, str]()
    named = only_group(groups)
    if groups is not None:
        values["group"] = groups
        conditions.append("group_id = {group}" if named else "(group_id = {group} OR {matches})")
        if named is None:
            values["glob"] = regex_of(groups)
    if name == "members" and at_ms is not None:
        conditions += [
            f"(t.joined IS NULL OR t.joined <= {moment})",
            f"(t.left IS NULL OR t.left > {moment})",
        ]
    source = f"({VIEWS[name].replace('{moment}', moment)})" if name in VIEWS else f"{{{name}}}"
    order = ", ".join(
        f"{n[1:]} DESC NULLS LAST" if n[:1] == "-" else f"t.{n} NULLS FIRST" for n in query.order
    )
    columns = ", ".join(f"t.{column}" for column in query.schema.names)
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    text = f"SELECT {columns} FROM {source} t{where} ORDER BY {order}{f' LIMIT {limit}' if limit else ''}"
    return Question(text, READS[name] if name in VIEWS else {name: ()}, named, values)


def only_group(groups: str | None) -> str | None:
    """Return the one group that a glob can match; None if it may match others."""
    return None if groups is None or set("*?[") & set(groups) else groups


def progress(group: str, span_ms: int) -> Question:
    """Return the question for a group's commits by span and partition, as `views.PROGRESS` has them."""
    mine = "(SELECT * FROM {commits} WHERE group_id = {group})"
    text = PROGRESS.replace("{span_ms}", str(span_ms)).replace("{commits}", mine)
    return Question(text, READS["progress"], group, {"group": group})


def moment_of(at_ms: int | None) -> str:
    """Return a moment as both engines write one, null for none."""
    if at_ms is None:
        return "CAST(NULL AS TIMESTAMP)"
    return f"timestamp '{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M:%S.%f}'"


def regex_of(glob: str) -> str:
    """Return the glob as an expression that Java and RE2 take: without atomic groups and lookaheads."""
    text = fnmatch.translate(glob).removesuffix("\\Z").removesuffix("\\z")
    # Outside brackets a literal one is escaped.
    if "(?>" not in glob or "[" not in glob:
        text = text.replace("(?>", "(?:")
    return "^" + text.replace("(?!)", "[^\\x00-\\x{10FFFF}]") + "\\z"


def rows_in_manifest(store: Store, name: str) -> list[Row]:
    """Return the rows of `coverage` and `bad_ranges` from the manifest. Times in ms."""
    bad = store.bad_ranges()
    if name == "bad_ranges":
        return [{"part": part, **asdict(bad_range)} for part, bad_range in bad]
    return [
        {name: read(covered) for name, (_, read) in schemas.COVERED.items()}
        for covered in (*store.manifest.coverage(bad), *store.manifest.delivery_coverage())
    ]
