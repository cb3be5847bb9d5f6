"""The views of `views` in a Spark session, so that a question in SQL is asked there as of DuckDB."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kgroup.pipeline.ask.queries import table
from kgroup.pipeline.ask.views import MOMENT, STATE_AT, VIEWS
from kgroup.pipeline.schemas import TABLES
from kgroup.pipeline.tables.store import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SLOTS = {"longest": "array_max(unowned.ms)", "place": "struct(topic, c.partition)"}


def views_in_spark(spark: SparkSession, store: Store) -> None:
    """Make the tables and views of a store temporary views of the session, and `state_at` a function of it.

    They show the version that the store was opened at. The session's time zone must be UTC for times to be
    read as they are written here.
    """
    for name in TABLES:
        table(spark, store, name).createOrReplaceTempView(name)
    for name, query in VIEWS.items():
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS {query.format(**_SLOTS)}")
    returned = f"RETURNS TABLE RETURN {STATE_AT}"
    spark.sql(f"CREATE OR REPLACE TEMPORARY FUNCTION state_at({MOMENT} TIMESTAMP) {returned}")
