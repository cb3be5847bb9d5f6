"""The questions of `jobs` and the views of `views`, answered by Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kgroup.pipeline.ask.jobs import Question, moment_of
from kgroup.pipeline.ask.queries import in_ms, table
from kgroup.pipeline.ask.views import READS, STATE_AT, VIEWS
from kgroup.pipeline.schemas import TABLES, Row
from kgroup.pipeline.tables.store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SLOTS = {
    "longest": "array_max(unowned.ms)",
    "place": "struct(topic, c.partition)",
    "group": ":group",
    "matches": "group_id RLIKE :glob",
}


def answer(spark: SparkSession, store: Store, asked: Question) -> DataFrame:
    """Return what answers a question."""
    read = {name: table(spark, store, name, columns, asked.group) for name, columns in asked.reads.items()}
    text = asked.text.format(**_SLOTS, **{name: f"{{{name}}}" for name in read})
    return spark.sql(text, dict(asked.values) or None, **read)


def rows_of(spark: SparkSession, store: Store, asked: Question) -> list[Row]:
    """Return the rows that answer a question, times in ms."""
    return [row.asDict(recursive=True) for row in in_ms(answer(spark, store, asked)).collect()]


def derived(
    spark: SparkSession, store: Store, name: str, group: str | None = None, at_ms: int | None = None
) -> DataFrame:
    """Return a view of the store, for all groups or one; `state_at` is that at a moment, or at the end."""
    where = "" if group is None else " WHERE group_id = {group}"
    text = f"SELECT * FROM ({VIEWS[name].replace('{moment}', moment_of(at_ms))}){where}"
    return answer(spark, store, Question(text, READS[name], group, {"group": group} if group else {}))


def views_in_spark(spark: SparkSession, store: Store) -> None:
    """Make a store's tables and views temporary views of the session, with `state_at` as a function.

    They show the version at which the store was opened. The session's time zone must be UTC for times to be
    read as they are written here.
    """
    for name in TABLES:
        table(spark, store, name).createOrReplaceTempView(name)
    slots = {**_SLOTS, "moment": "moment", **{name: name for name in TABLES}}
    for name, query in VIEWS.items():
        if name != "state_at":
            spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS {query.format(**slots)}")
    returned = f"RETURNS TABLE RETURN {STATE_AT.format(**slots)}"
    spark.sql(f"CREATE OR REPLACE TEMPORARY FUNCTION state_at(moment TIMESTAMP) {returned}")
