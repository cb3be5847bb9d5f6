"""Queries of a store's tables, as DataFrames: built-in functions only, no Python for commits."""

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
from kgroup.pipeline.tables.store import OPEN_EVENTS, Store, may_hold, number_in, with_all_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MOST_TASKS = 200
_FOLDERS = StructType([StructField("part", IntegerType()), StructField("date", DateType())])


def table(
    spark: SparkSession,
    store: Store,
    name: str,
    columns: Sequence[str] = (),
    group: str | None = None,
) -> DataFrame:
    """Return a table of the store: some columns of `schemas.TABLES`, or all, and the `run` of each row.

    `events` include open ones: what the newest records began. With `group`, the rows of that one, or of
    tables without groups those of the partitions that may hold it.
    """
    tables = [_read(spark, store, name, columns, group)]
    if name == "events":
        names = list(columns or (*TABLES[name].names, "run"))
        needed = dict.fromkeys((*names, "part", "group_id", "event", "run"))
        of_group = Window.partitionBy("part", "group_id")
        still = _read(spark, store, OPEN_EVENTS, list(needed), group).withColumn(
            "newest", f.max("run").over(of_group)
        )
        tables.append(still.where("run = newest and event is not null").select(*names))
    return reduce(lambda a, b: a.unionByName(b), tables)


def _read(
    spark: SparkSession, store: Store, name: str, columns: Sequence[str], group: str | None
) -> DataFrame:
    own = plain(TABLES["events" if name == OPEN_EVENTS else name]).append(pa.field("run", pa.int32()))
    schema = pa.schema([own.field(column) for column in columns or own.names])
    names = store.names(name, group)
    if not names:
        return spark.createDataFrame([], from_arrow_schema(schema))
    chosen = group if "group_id" in own.names else None
    if store.place.folder is None:
        # Tasks fetch the files: Spark would need Hadoop's jars to read there.
        rows = spark.createDataFrame([(file,) for file in names], "name string")
        rows = rows.repartition(min(len(names), _MOST_TASKS))
        return rows.mapInArrow(_Fetch(store.place, schema, chosen), from_arrow_schema(schema))
    # On YARN a bare path is one in HDFS.
    files = [f"file:{store.place.uri(file)}" for file in names]
    dated = any("/date=" in path for path in files)
    folders = [field for field in _FOLDERS if dated or field.name != "date"]
    whole = StructType([field for field in from_arrow_schema(own) if field.name != "part"] + folders)
    read = spark.read.schema(whole).option("basePath", f"file:{store.place.uri(name)}").parquet(*files)
    return (read if chosen is None else read.where(f.col("group_id") == chosen)).select(*schema.names)


@dataclass(frozen=True, slots=True)
class _Fetch:
    """Maps names of a table's files to some columns of their rows, as Spark has them. Runs on an executor.

    With `group`, row groups that cannot hold a row of it are skipped.
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
                about = (file.metadata.row_group(number) for number in range(file.num_row_groups))
                chosen = [
                    number
                    for number, row_group in enumerate(about)
                    if self.group is None or may_hold(row_group, (self.group,))
                ]
                for row_batch in file.iter_batches(row_groups=chosen, columns=sorted(needed)):
                    rows = with_all_columns(name, pa.Table.from_batches([row_batch]))
                    if self.group is not None:
                        rows = rows.filter(pc.equal(rows.column("group_id"), self.group))
                    part = pa.repeat(pa.scalar(number_in(name, "part"), pa.int32()), rows.num_rows)
                    rows = rows.append_column("part", part).select(schema.names)
                    yield from rows.cast(schema, safe=False).to_batches()


def in_ms(frame: DataFrame) -> DataFrame:
    """Return the same rows with timestamps as ms since 1970: Spark's collected datetimes have no zone."""
    return frame.select(
        *(
            f.unix_millis(c.name).alias(c.name) if isinstance(c.dataType, TimestampType) else c.name
            for c in frame.schema
        )
    )
