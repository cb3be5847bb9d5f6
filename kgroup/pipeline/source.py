"""`kafka_offsets_log`: segments of `__consumer_offsets` as a Spark data source, batch and streaming.

    spark.dataSource.register(OffsetsLogSource)
    spark.read.format("kafka_offsets_log").option("table", "commits").load("/backup")
    spark.readStream.format("kafka_offsets_log").load("/capture")

Options: `path` (a folder or segment; `paths`, a JSON list, for several), `table` (commits, control, markers,
batches or bad_ranges; commits by default), `splitBytes` (64 MB by default).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from kgroup.errors import ConfigError, StorageError
from kgroup.history.sources import segment_logs
from kgroup.pipeline.rows import SplitRows
from kgroup.pipeline.schemas import TABLES, plain
from kgroup.pipeline.splits import SPLIT_BYTES, Piece, Split, SplitReader, plan_splits

NAME = "kafka_offsets_log"
READABLE = tuple(name for name in TABLES if name != "events")


@dataclass
class SplitPartition(InputPartition):
    """One split as Spark's unit of work."""

    split: Split


class OffsetsLogSource(DataSource):
    """The data source `kafka_offsets_log`; see the module. Bad options raise ConfigError."""

    @classmethod
    def name(cls) -> str:
        return NAME

    @property
    def _table(self) -> str:
        table = str(self.options.get("table", "commits"))
        if table not in READABLE:
            raise ConfigError(f"{NAME} has no table {table!r}", "one of " + ", ".join(READABLE))
        return table

    def _paths(self) -> list[Path]:
        if "paths" in self.options:
            return [Path(path) for path in json.loads(self.options["paths"])]
        if "path" not in self.options:
            raise ConfigError(f"{NAME} needs a path", 'load("/folder/of/segments")')
        return [Path(self.options["path"])]

    def schema(self) -> StructType:
        return from_arrow_schema(plain(TABLES[self._table]))

    def reader(self, schema: StructType) -> DataSourceReader:
        return _BatchReader(
            self._paths(), self._table, int(self.options.get("splitBytes", SPLIT_BYTES)), schema
        )

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return _StreamReader(self._paths(), self._table, schema)


def rows_of(split: Split, table: str, schema: StructType) -> Iterator[pa.RecordBatch]:
    """The rows of one table in a split, as Spark wants them."""
    wanted = to_arrow_schema(schema, timezone="UTC")
    for name, rows in SplitRows(split, frozenset({table})).tables():
        if name == table and rows.num_rows:
            yield from rows.cast(wanted).to_batches()


class _BatchReader(DataSourceReader):
    def __init__(self, paths: list[Path], table: str, split_bytes: int, schema: StructType) -> None:
        self.paths = paths
        self.table = table
        self.split_bytes = split_bytes
        self.schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        logs = segment_logs([path.resolve() for path in self.paths])
        return [SplitPartition(split) for split in plan_splits(logs, self.split_bytes)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, SplitPartition)
        return rows_of(partition.split, self.table, self.schema)


class _StreamReader(DataSourceStreamReader):
    """Stream offsets are {file: bytes up to the end of a whole batch}: what is half written waits.

    Files may grow and new ones may come; one that shrinks (compaction) ends the stream with StorageError.
    """

    def __init__(self, paths: list[Path], table: str, schema: StructType) -> None:
        self.paths = [path.resolve() for path in paths]
        self.table = table
        self.schema = schema
        self._ends: dict[str, int] = {}

    def initialOffset(self) -> dict[str, int]:
        return {}

    def latestOffset(self, *_: Any) -> dict[str, int]:
        for log in segment_logs(self.paths):
            for file in log.files:
                path, size = str(file), file.stat().st_size
                begun = self._ends.get(path, 0)
                if size < begun:
                    raise StorageError(f"{path} has shrunk: it was compacted, so the stream cannot go on")
                if size > begun:
                    piece = Piece(path, begun, size)
                    reader = SplitReader(Split(log.partition, 0, (piece,)))
                    for _ in reader.chunks():
                        pass
                    self._ends[path] = reader.positions.get(path, begun)
        return {path: end for path, end in self._ends.items() if end}

    def partitions(self, start: Mapping[str, int], end: Mapping[str, int]) -> Sequence[InputPartition]:
        found: list[InputPartition] = []
        for log in segment_logs(self.paths):
            for file in log.files:
                path = str(file)
                begun, ended = start.get(path, 0), end.get(path, 0)
                if ended > begun:
                    piece = Piece(path, begun, ended)
                    found.append(SplitPartition(Split(log.partition, 0, (piece,))))
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, SplitPartition)
        return rows_of(partition.split, self.table, self.schema)
