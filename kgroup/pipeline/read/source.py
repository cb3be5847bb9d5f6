"""`kafka_offsets_log`: `__consumer_offsets` as a Spark data source, batch and streaming; segments or live.

    spark.dataSource.register(OffsetsLogSource)
    spark.read.format("kafka_offsets_log").option("table", "commits").load("/backup")
    spark.readStream.format("kafka_offsets_log").load("/capture")
    spark.readStream.format("kafka_offsets_log").option("bootstrap.servers", "broker:9092").load()

Options: `path` (a folder or segment; `paths`, a JSON list, for several) or `bootstrap.servers` (with
confluent-kafka's names for security settings), `table` (commits, control, markers, batches or bad_ranges;
commits by default), `splitBytes` (64 MB by default), `since` (an offset, or a time in ISO 8601). For paths at
a URL, the keys of `storage.options`, such as `AWS_REGION`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from kgroup.errors import ConfigError, StorageError
from kgroup.history.sources.layout import AnyFile, size_of
from kgroup.history.sources.logs import SegmentLog
from kgroup.history.sources.splits import SPLIT_BYTES, Piece, Split, SplitReader
from kgroup.pipeline.read.inputs import (
    RECORD_BYTES,
    Input,
    LiveCluster,
    Segments,
    Since,
    connection_of,
    live_topic,
)
from kgroup.pipeline.read.rows import SplitRows
from kgroup.pipeline.schemas import TABLES, plain
from kgroup.storage.location import Location
from kgroup.storage.options import KEYS, StorageOptions

NAME = "kafka_offsets_log"
READABLE = tuple(name for name in TABLES if name not in ("events", "deliveries"))


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

    @property
    def _storage(self) -> StorageOptions:
        return StorageOptions.of({n: v for n, v in self.options.items() if n.upper() in KEYS})

    def _input(self) -> Input:
        since = _since(self.options.get("since"))
        if "bootstrap.servers" in self.options:
            return LiveCluster(connection_of(self.options), since)
        if "paths" in self.options:
            return Segments.of(
                list(map(Location.parse, json.loads(self.options["paths"]))), since, self._storage
            )
        if "path" not in self.options:
            hint = 'load("/folder/of/segments"), or option("bootstrap.servers", "host:9092")'
            raise ConfigError(f"{NAME} needs a path or a cluster", hint)
        return Segments.of([Location.parse(self.options["path"])], since, self._storage)

    def _split_bytes(self) -> int:
        return int(self.options.get("splitBytes", SPLIT_BYTES))

    def schema(self) -> StructType:
        return from_arrow_schema(plain(TABLES[self._table]))

    def reader(self, schema: StructType) -> DataSourceReader:
        return _BatchReader(self._input(), self._table, self._split_bytes(), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        origin = self._input()
        if isinstance(origin, LiveCluster):
            return _LiveStreamReader(origin, self._table, self._split_bytes(), schema)
        assert isinstance(origin, Segments)
        if origin.since is not None:
            raise ConfigError("a stream of segments has no `since`", "filter its rows by log_offset or ts")
        return _StreamReader(origin, self._table, schema)


def _since(text: str | None) -> Since | None:
    if text is None:
        return None
    if text.isdigit():
        return Since(offset=int(text))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(
            f"since {text!r} is neither an offset nor a time", "as in 2026-03-01T03:00"
        ) from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return Since(time_ms=int(moment.timestamp() * 1000))


def rows_of(split: Split, table: str, schema: StructType) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one table in a split, as Spark wants them."""
    arrow_schema = to_arrow_schema(schema, timezone="UTC")
    for name, rows in SplitRows(split, frozenset({table})).tables():
        if name == table and rows.num_rows:
            yield from rows.cast(arrow_schema).to_batches()


class _BatchReader(DataSourceReader):
    def __init__(self, origin: Input, table: str, split_bytes: int, schema: StructType) -> None:
        self.origin = origin
        self.table = table
        self.split_bytes = split_bytes
        self.schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        return [SplitPartition(split) for split in self.origin.plan(self.split_bytes, {})]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, SplitPartition)
        return rows_of(partition.split, self.table, self.schema)


class _LiveStreamReader(DataSourceStreamReader):
    """Stream offsets are {partition: next Kafka offset}; rereading a checkpoint returns the same.

    Except for what compaction has removed meanwhile: that is gone for every reader.
    """

    def __init__(self, origin: LiveCluster, table: str, split_bytes: int, schema: StructType) -> None:
        self.origin = origin
        self.table = table
        self.split_bytes = split_bytes
        self.schema = schema

    def initialOffset(self) -> dict[str, int]:
        with live_topic(self.origin.connection) as topic:
            return {str(part): self.origin.bounds(topic, part)[0] for part in topic.partitions}

    def latestOffset(self, *_: Any) -> dict[str, int]:
        with live_topic(self.origin.connection) as topic:
            return {str(part): topic.bounds(part)[1] for part in topic.partitions}

    def partitions(self, start: Mapping[str, int], end: Mapping[str, int]) -> Sequence[InputPartition]:
        step = max(1, self.split_bytes // RECORD_BYTES)
        splits = [
            split
            for part, stop in end.items()
            for split in self.origin.shares(int(part), start.get(part, 0), stop, step)
        ]
        return [SplitPartition(split) for split in splits]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, SplitPartition)
        return rows_of(partition.split, self.table, self.schema)


class _StreamReader(DataSourceStreamReader):
    """Stream offsets are {file: bytes up to the end of a whole batch}: incomplete batches wait.

    Files may grow and new ones may appear; one that shrinks (compaction), or disappears before it was read
    completely, ends the stream with StorageError.
    """

    def __init__(self, origin: Segments, table: str, schema: StructType) -> None:
        self.origin = origin
        self.table = table
        self.schema = schema
        self._ends: dict[str, int] = {}
        self._parts: dict[str, tuple[int, AnyFile]] = {}

    def initialOffset(self) -> dict[str, int]:
        return {}

    def latestOffset(self, *_: Any) -> dict[str, int]:
        for log in self._look():
            for file in log.files:
                path, size = str(file), size_of(file)
                begun = self._ends.get(path, 0)
                if size < begun:
                    raise StorageError(f"{path} has shrunk: it was compacted, so the stream cannot go on")
                if size > begun:
                    piece = Piece(file, begun, size)
                    reader = SplitReader(Split(log.partition, 0, (piece,)))
                    for _ in reader.chunks():
                        pass
                    self._ends[path] = reader.positions.get(path, begun)
        return {path: end for path, end in self._ends.items() if end}

    def partitions(self, start: Mapping[str, int], end: Mapping[str, int]) -> Sequence[InputPartition]:
        new = {path: (start.get(path, 0), to) for path, to in end.items() if to > start.get(path, 0)}
        if not new.keys() <= self._parts.keys():
            self._look()  # the batch was planned before a restart
        if gone := new.keys() - self._parts.keys():
            raise StorageError(f"{min(gone)} is gone before all of it was read, so the stream cannot go on")
        files = ((part, file, new[path]) for path, (part, file) in self._parts.items() if path in new)
        pieces = ((part, Piece(file, *span)) for part, file, span in files)
        return [SplitPartition(Split(part, 0, (piece,))) for part, piece in pieces]

    def _look(self) -> list[SegmentLog]:
        """Return the current partitions; called once per batch, since it compares copies of a partition."""
        logs = self.origin.logs
        if merged := next((log for log in logs if log.stretches), None):
            text = f"partition {merged.partition} has several copies, which a stream does not merge"
            raise ConfigError(text, "name one broker's folder, or read them as a batch")
        self._parts = {str(file): (log.partition, file) for log in logs for file in log.files}
        return logs

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, SplitPartition)
        return rows_of(partition.split, self.table, self.schema)
