"""Questions to the tables of a store, as DataFrames: built-in functions only, commits never meet Python."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import DateType, IntegerType, StructField, StructType, TimestampType
from pyspark.sql.window import Window

from kgroup.pipeline.schemas import TABLES, in_micros, plain
from kgroup.pipeline.tables.place import Place
from kgroup.pipeline.tables.store import OPEN_EVENTS, Store, number_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FOLDERS = StructType([StructField("part", IntegerType()), StructField("date", DateType())])


def table(
    spark: SparkSession, store: Store, name: str, columns: Sequence[str] = (), group: str | None = None
) -> DataFrame:
    """A table of the store: some columns of `schemas.TABLES`, or all, and `run` that wrote the row.

    `events` include those that are open still: what the newest records began. With `group`, rows of that one.
    """
    found = [_read(spark, store, name, columns, group)]
    if name == "events":
        found.append(_read(spark, store, OPEN_EVENTS, columns, group))
    return reduce(lambda a, b: a.unionByName(b), found)


def _read(
    spark: SparkSession, store: Store, name: str, columns: Sequence[str], group: str | None
) -> DataFrame:
    own = plain(TABLES["events" if name == OPEN_EVENTS else name]).append(pa.field("run", pa.int32()))
    wanted = pa.schema([own.field(column) for column in columns or own.names])
    files = store.files(name)
    if not files:
        return spark.createDataFrame([], from_arrow_schema(wanted))
    if store.place.folder is None:
        # Tasks fetch the files: Spark would need Hadoop's jars to read there.
        names = store.names(name)
        rows = spark.createDataFrame([(each,) for each in names], "name string").repartition(len(names))
        return rows.mapInArrow(_Fetch(store.place, wanted, group), from_arrow_schema(wanted))
    dated = any("/date=" in path for path in files)
    folders = [field for field in _FOLDERS if dated or field.name != "date"]
    whole = StructType([field for field in from_arrow_schema(own) if field.name != "part"] + folders)
    read = spark.read.schema(whole).option("basePath", store.place.uri(name)).parquet(*files)
    return (read if group is None else read.where(f.col("group_id") == group)).select(*wanted.names)


@dataclass(frozen=True, slots=True)
class _Fetch:
    """Names of a table's files → some columns of their rows, as Spark has them. Runs on an executor.

    With `group`, row groups that cannot hold a row of it are passed over.
    """

    place: Place
    schema: pa.Schema
    group: str | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = in_micros(self.schema)
        needed = {*schema.names, *(() if self.group is None else ("group_id",))} - {"part"}
        for batch in batches:
            for name in batch.column(0).to_pylist():
                file = pq.ParquetFile(self.place.read(name), pre_buffer=True)
                chosen = [n for n in range(file.num_row_groups) if self._may_hold(file.metadata.row_group(n))]
                for found in file.iter_batches(row_groups=chosen, columns=sorted(needed)):
                    rows = pa.Table.from_batches([found])
                    if self.group is not None:
                        rows = rows.filter(pc.equal(rows.column("group_id"), self.group))
                    part = pa.repeat(pa.scalar(number_in(name, "part"), pa.int32()), rows.num_rows)
                    rows = rows.append_column("part", part).select(schema.names)
                    yield from rows.cast(schema, safe=False).to_batches()

    def _may_hold(self, about: pq.RowGroupMetaData) -> bool:
        """Whether a row group may hold a row of the group, by the bounds of its ids."""
        if self.group is None:
            return True
        columns = (about.column(at) for at in range(about.num_columns))
        known = next(column.statistics for column in columns if column.path_in_schema == "group_id")
        return known is None or not known.has_min_max or known.min <= self.group <= known.max


def in_ms(frame: DataFrame) -> DataFrame:
    """The same rows with timestamps as ms since 1970: what Spark collects as a datetime knows no zone."""
    return frame.select(
        *(
            f.unix_millis(c.name).alias(c.name) if isinstance(c.dataType, TimestampType) else c.name
            for c in frame.schema
        )
    )


def state_at(
    spark: SparkSession, store: Store, time_ms: int | None = None, group: str | None = None
) -> DataFrame:
    """The committed offset of every group, topic and partition at a moment; at the end without one.

    A moment is behind the last whole batch before the first that is stamped later, as in `replay-log --at`.
    Offsets of a transaction count once its marker says so. Columns: `part`, `group_id`, `topic`, `partition`,
    `offset`, `leader_epoch`, `metadata`, `commit_ts`, `log_offset`.
    """
    keys = ("part", "group_id", "topic", "partition")
    fields = ("offset", "leader_epoch", "metadata", "commit_ts", "log_offset")
    commits = table(spark, store, "commits", (*keys, *fields, "producer_id", "is_tombstone"), group)
    markers = table(spark, store, "markers")
    if time_ms is not None:
        late = f.col("max_ts") > f.timestamp_millis(f.lit(time_ms))
        batches = table(spark, store, "batches", ("part", "log_offset", "max_ts")).where(late)
        cuts = f.broadcast(batches.groupBy("part").agg(f.min("log_offset").alias("cut")))
        before = f.col("cut").isNull() | (f.col("log_offset") < f.col("cut"))
        commits = commits.join(cuts, "part", "left").where(before)
        markers = markers.join(cuts, "part", "left").where(before)
    counted = commits.where("producer_id is null")
    if store.files("markers"):
        counted = counted.select(*keys, "log_offset").unionByName(
            _committed(commits, markers).select(*keys, "log_offset")
        )
    # Two steps: the largest number of a group is found in place, the last row would have to be sorted for.
    last = f.broadcast(counted.groupBy(*keys).agg(f.max("log_offset").alias("log_offset")))
    found = commits.where("not is_tombstone").join(last.select("part", "log_offset"), ["part", "log_offset"])
    return found.select(*keys, *fields)


def _committed(commits: DataFrame, markers: DataFrame) -> DataFrame:
    """The commits of transactions that were committed: those whose next marker says so."""
    ends = markers.select("part", "producer_id", f.col("log_offset").alias("end"), "committed")
    pending = commits.where("producer_id is not null")
    joined = pending.join(ends, ["part", "producer_id"]).where("end > log_offset")
    first = Window.partitionBy("part", "log_offset").orderBy("end")
    return joined.withColumn("nth", f.row_number().over(first)).where("nth = 1 and committed")


def progress(spark: SparkSession, store: Store, group: str, seconds: int = 60) -> DataFrame:
    """A group's commits by span of time and partition: `start`, `topic`, `partition`, `commits`, `offset`.

    `offset` is the last one committed in the span; commits of transactions that were aborted are left out.
    """
    columns = ("part", "ts", "log_offset", "topic", "partition", "offset", "is_tombstone", "producer_id")
    commits = table(spark, store, "commits", columns, group).where("not is_tombstone")
    plain_ones = commits.where("producer_id is null")
    counted = plain_ones.unionByName(
        _committed(commits, table(spark, store, "markers")).select(*plain_ones.columns)
    )
    found = counted.groupBy(f.window("ts", f"{seconds} seconds").alias("span"), "topic", "partition").agg(
        f.count("*").alias("commits"), f.max_by("offset", "log_offset").alias("offset")
    )
    return found.select(f.col("span.start").alias("start"), "topic", "partition", "commits", "offset")
