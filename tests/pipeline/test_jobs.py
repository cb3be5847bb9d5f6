"""Tables by name: their columns are as written down, and sessions of members are what events tell."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

pytest.importorskip("duckdb")

import duckdb
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from kgroup.cli.inputs.group_names import matches
from kgroup.cli.views.pipeline_rows import query_result
from kgroup.errors import ConfigError
from kgroup.history.fold.events import Event, Kind
from kgroup.pipeline.ask import spark_views, sql
from kgroup.pipeline.ask.jobs import (
    IN_MANIFEST,
    QUERIES,
    query_named,
    question,
    regex_of,
    rows_in_manifest,
)
from kgroup.pipeline.ask.spark_views import rows_of
from kgroup.pipeline.ask.story import story_in
from kgroup.pipeline.schemas import plain
from kgroup.pipeline.tables.ingest import ingest
from kgroup.pipeline.tables.store import Store
from tests.pipeline.made_logs import START_MS
from tests.sampled import FULL

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def store(spark, made, incidents, tmp_path_factory):
    """Made-up logs and real ones."""
    store = Store(tmp_path_factory.mktemp("store"))
    ingest(spark.sparkContext, [made, *incidents], store)
    return store


def sessions_told(events: Sequence[Event]) -> list[tuple[object, ...]]:
    """Sessions one event after the other: an independent way to the table `members`."""
    found: list[dict[str, object]] = []
    latest: dict[tuple[object, ...], dict[str, object]] = {}
    for event in events:
        if event.kind is Kind.GROUP_DELETED:
            for key, session in latest.items():
                if key[:2] == (event.log_partition, event.group) and session["ended"] is None:
                    session |= {"left": event.timestamp_ms, "ended": str(event.kind)}
        if event.member_id is None:
            continue
        key = (event.log_partition, event.group, event.instance_id or event.member_id)
        starts = event.kind in (Kind.MEMBER_JOINED, Kind.MEMBER_REPLACED)
        if starts and key in latest and latest[key]["ended"] is None:
            latest[key] |= {"left": event.timestamp_ms, "ended": str(Kind.MEMBER_REPLACED)}
        if starts or key not in latest:
            latest[key] = {"at": event.offset, "joined": event.timestamp_ms if starts else None}
            latest[key] |= {"key": key, "ended": None, "left": None}
            found.append(latest[key])
        latest[key]["member"] = event.member_id
        ends = event.kind in (Kind.MEMBER_LEFT_FOR_NOW, Kind.MEMBER_LEFT_OR_EXPIRED)
        if ends and latest[key]["ended"] is None:
            latest[key] |= {"left": event.timestamp_ms, "ended": str(event.kind)}
    fields = ("key", "at", "member", "joined", "left", "ended")
    return sorted((tuple(s[f] for f in fields) for s in found), key=str)


def test_sessions_of_members(spark, store):
    by_part: dict[int, list[Event]] = {}
    for event in story_in(store).events:
        by_part.setdefault(event.log_partition, []).append(event)
    expected = sorted((s for events in by_part.values() for s in sessions_told(events)), key=str)
    found = [
        (
            (r["part"], r["group_id"], r["instance_id"] or r["member_id"]),
            *(r[name] for name in ("log_offset", "member_id", "joined", "left", "ended")),
        )
        for r in rows_of(spark, store, question("members", None, None, 0))
    ]
    assert sorted(found, key=str) == expected
    assert {s[-1] for s in expected} >= {
        None,
        "member-left-for-now",
        "member-replaced",
        "member-left-or-expired",
    }


def test_members_at_a_moment(spark, store):
    every = rows_of(spark, store, question("members", "*bounce*", None, 0))
    assert every and all("bounce" in row["group_id"] for row in every)
    moment = sorted(row["joined"] for row in every if row["joined"])[len(every) // 2]
    there = rows_of(spark, store, question("members", "*bounce*", moment, 0))
    alive = [r for r in every if (r["joined"] or 0) <= moment and (r["left"] is None or r["left"] > moment)]
    assert there == alive and 0 < len(there) < len(every)


@pytest.mark.parametrize("name", QUERIES)
def test_a_table_is_as_written_down(spark, store, name):
    query = QUERIES[name]
    if name in IN_MANIFEST:
        rows = rows_in_manifest(store, name)
        assert all(list(row) == query.schema.names for row in rows)
    else:
        made = spark_views.answer(spark, store, question(name, None, None, 0))
        wanted = from_arrow_schema(plain(query.schema))
        assert [(c.name, c.dataType) for c in made.schema] == [(c.name, c.dataType) for c in wanted]
        rows = rows_of(spark, store, question(name, None, None, 3))
        # No group of this log is a share group.
        assert len(rows) == (0 if name == "deliveries" else 3)
    result = query_result(name, query.schema, rows, None, False)
    assert [set(query.schema.names) <= set(row) for row in result.data["rows"]] == [True] * len(rows)
    page = (ROOT / "docs" / "pipeline.md").read_text()
    (line,) = re.findall(rf"^\| `{name}` \|.*$", page, flags=re.M)
    told = set(re.findall(r"`(\w+)(?:\[\])?`", line))
    assert "as `events`" in line or set(query.schema.names) - {"part", "log_offset", "ts"} <= told


def test_rows_of_some_groups(spark, store):
    rows = rows_of(spark, store, question("rebalances", "c[lo][an]s*", None, 0))
    assert rows and all(re.match("c[lo][an]s", row["group_id"]) for row in rows)
    (writer,) = rows_of(spark, store, question("top_writers", "duplicate-instance-classic.4", None, 0))
    assert writer["bytes"] > 0


GLOBS = ["tmp[1]", "tmp?", "tmp*", "[*]", "*", "tmp1", "t[!m]*", "*m*1*", "[z-a]*", "*(?>a*", "a.b", "[]]?"]


@pytest.mark.parametrize("glob", GLOBS)
def test_a_pattern_means_what_it_means_to_every_command(spark, glob):
    """A group whose id is the pattern, letter by letter, is meant too: the question adds that."""
    groups = ["tmp[1]", "tmp1", "tmp?", "*", "tmp\n", "tim", "other", "xmy1", "a(?>ab", "a.b", "axb", "]1"]
    frame, pattern = spark.createDataFrame([(group,) for group in groups], "group_id string"), regex_of(glob)
    found = {row.group_id for row in frame.where(f.col("group_id").rlike(pattern)).collect()}
    assert found | ({glob} & {*groups}) == {group for group in groups if matches(glob, group)}
    kept = duckdb.execute(
        "select g from (select unnest(?) as g) where regexp_matches(g, ?)", [groups, pattern]
    )
    assert {group for (group,) in kept.fetchall()} == found


@pytest.mark.parametrize("name", [name for name in QUERIES if name not in IN_MANIFEST])
def test_both_engines_answer_the_same(spark, store, name):
    """In the same order, of all groups, of one and of some; at the end and at a moment.

    Each with each in the full run; in CI one is asked at a moment, and all and some at the end.
    """
    query, busy = QUERIES[name], "duplicate-instance-classic.4"
    for groups in (None, busy, "*-c*") if query.grouped else (None,):
        for at in (None, START_MS + 1_500_000) if query.timed else (None,):
            if not FULL and query.timed and query.grouped and (at is None) != (groups != busy):
                continue
            asked = question(name, groups, at, 200)
            found = [{**row} for row in sql.rows_of(store, asked)]
            assert found == [_as_json(row) for row in rows_of(spark, store, asked)], asked


@pytest.mark.parametrize("name", [name for name in QUERIES if name not in IN_MANIFEST])
def test_the_order_of_rows_leaves_no_choice(store, name):
    """A marker ends the transactions of many groups, each with an event of the same number."""
    rows = sql.rows_of(store, question(name, None, None, 0))
    places = [repr([row[column.lstrip("-")] for column in QUERIES[name].order]) for row in rows]
    assert len({*places}) == len(rows)


def _as_json(row: dict) -> dict:
    return {name: bytes(value) if isinstance(value, bytearray) else value for name, value in row.items()}


@pytest.mark.parametrize(
    ("name", "group", "at", "message"),
    [
        ("nonsense", None, None, "no table 'nonsense'"),
        ("coverage", "g", None, "belong to no group"),
        ("rebalances", None, 5, "not a table of one moment"),
    ],
)
def test_questions_that_make_no_sense(name, group, at, message):
    with pytest.raises(ConfigError, match=message):
        query_named(name, group, at)
