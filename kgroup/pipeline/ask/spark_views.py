"""The views of `views` on Spark: as DataFrames, and in a session, for the same SQL as in DuckDB."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kgroup.pipeline.ask.queries import table
from kgroup.pipeline.ask.views import MOMENT, READS, STATE_AT, VIEWS
from kgroup.pipeline.schemas import TABLES
from kgroup.pipeline.tables.store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SLOTS = {"longest": "array_max(unowned.ms)", "place": "struct(topic, c.partition)"}


def derived(spark: SparkSession, store: Store, name: str, group: str | None = None) -> DataFrame:
    """Return a view of the store, for all groups or one; its columns are those of its schema."""
    read = {each: table(spark, store, each, columns, group) for each, columns in READS[name].items()}
    query = VIEWS[name].format(**_SLOTS, **{each: f"{{{each}}}" for each in read})
    return spark.sql(query, **read)  # type: ignore[arg-type]


def views_in_spark(spark: SparkSession, store: Store) -> None:
    """Make a store's tables and views temporary views of the session, with `state_at` as a function.

    They show the version at which the store was opened. The session's time zone must be UTC for times to be
    read as they are written here.
    """
    for name in TABLES:
        table(spark, store, name).createOrReplaceTempView(name)
    for name, query in VIEWS.items():
        made = query.format(**_SLOTS, **{each: each for each in TABLES})
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS {made}")
    returned = f"RETURNS TABLE RETURN {STATE_AT}"
    spark.sql(f"CREATE OR REPLACE TEMPORARY FUNCTION state_at({MOMENT} TIMESTAMP) {returned}")
