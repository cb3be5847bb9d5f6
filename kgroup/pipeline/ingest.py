"""The job that fills a store: segments → tables, in parallel by split, then groups folded into events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgroup.domain import uuid_bytes, uuid_text
from kgroup.history.splits import Split
from kgroup.pipeline.folding import FoldBuckets
from kgroup.pipeline.inputs import Input, Segments
from kgroup.pipeline.rows import EVERY_BUCKET, ITEMS, SplitRows, SplitSummary, paused_collector
from kgroup.pipeline.schemas import ITEMS as ITEM_ROWS
from kgroup.pipeline.store import Run, Store, TableFile, TableWriter, adopt_fold

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MIN_SPLIT_BYTES = 16 << 20
_MAX_SPLIT_BYTES = 256 << 20
ROWS = frozenset({"commits", "control", "markers", "batches", "bad_ranges"})


@dataclass(frozen=True, slots=True)
class RunReport:
    """What a run added: rows by table, and the number of the run; `run` is None if there was nothing new."""

    run: int | None
    rows: Mapping[str, int]
    splits: int
    bytes_read: int
    bytes_written: int


@dataclass(frozen=True, slots=True)
class WriteSplit:
    """Reads one split and writes its rows; returns plain values. Runs on an executor."""

    root: str
    run: int
    tables: frozenset[str]
    buckets: int
    decoder: Mapping[str, Any]

    def __call__(self, split: Split) -> dict[str, Any]:
        with paused_collector():
            return self._written(split)

    def _written(self, split: Split) -> dict[str, Any]:
        rows = SplitRows(split, self.tables | {ITEMS}, self.buckets, **self.decoder)
        with TableWriter(self.root, self.run, split.part, f"{split.number:05d}") as writer:
            for name, table in rows.tables():
                writer.write(name, table)
        summary = rows.summary
        return {
            "files": [asdict(file) for file in writer.files],
            "bytes": rows.reader.bytes_read,
            "summary": None if summary is None else {"run": self.run, **_shallow(summary)},
        }


def _shallow(summary: SplitSummary) -> dict[str, Any]:
    """Its fields by name; `asdict` would copy each of very many topic names."""
    return {field.name: getattr(summary, field.name) for field in fields(summary)}


def ingest(
    spark: SparkSession,
    sources: Sequence[Path] | Input,
    store: Store,
    *,
    split_bytes: int | None = None,
    buckets: int | None = None,
    tables: frozenset[str] = ROWS,
    decoder: Mapping[str, Any] | None = None,
) -> RunReport:
    """Read what is new in `sources` into `store` as one run: all of it, or on failure nothing.

    `sources` are segments and folders, or any other input. Offsets that an earlier run has read are left out,
    so running again adds nothing. `decoder` are options of `history.decode.Decoder`: which groups. `buckets`
    (of the first run) is how many tasks may fold a partition. The size of the input decides on
    `split_bytes` if nobody else does.
    """
    origin = sources if isinstance(sources, Input) else Segments.of(sources)
    parts = origin.parts()
    with store.run() as run:
        manifest = run.manifest
        if store.empty:
            manifest.buckets = buckets or _buckets(parts, spark.sparkContext.defaultParallelism)
        after, cores = manifest.last_offsets(), spark.sparkContext.defaultParallelism
        split_bytes = split_bytes or _split_bytes(origin.plan(_MAX_SPLIT_BYTES, after), cores)
        splits = origin.plan(split_bytes, after)
        writer = WriteSplit(str(run.root), run.number, tables, manifest.buckets, decoder or {})
        results = _read(spark, splits, writer)
        if again := _overlapping(results):
            run.clear()
            splits = origin.plan(split_bytes, after, again)
            results = _read(spark, splits, writer)
        spans = [result["summary"] for result in results if result["summary"] is not None]
        files = [TableFile(**file) for result in results for file in result["files"]]
        kept = [file for file in files if file.table != ITEMS]
        size = sum(result["bytes"] for result in results)
        read = sorted({piece.path for split in splits for piece in split.pieces})
        if not spans and manifest.read_before(run.number).issuperset(read):
            return RunReport(None, {}, len(splits), size, 0)
        for span in spans:
            manifest.names |= span.pop("names")
        manifest.names |= {uuid_text(i): name for i, name in origin.topic_names().items()}
        manifest.spans += spans
        kept += _fold(spark, run, [file for file in files if file.table == ITEMS])
        about = {"sources": origin.labels, "files": read, "bytes_read": size}
        run.publish(kept, about)
    rows: dict[str, int] = {}
    for file in kept:
        rows[file.table] = rows.get(file.table, 0) + file.rows
    return RunReport(run.number, rows, len(splits), size, sum(file.bytes for file in kept))


def _split_bytes(whole: Sequence[Split], cores: int) -> int:
    """Two splits a core, within bounds: each split tells of every group in it, so fewer mean less to fold."""
    return min(_MAX_SPLIT_BYTES, max(_MIN_SPLIT_BYTES, -(-sum(split.size for split in whole) // (2 * cores))))


def _buckets(parts: int, parallelism: int) -> int:
    """Enough shares that no core idles, few enough that the rows all shares need stay few."""
    return max(1, min(16, -(-2 * parallelism // max(1, parts))))


def _read(spark: SparkSession, splits: Sequence[Split], writer: WriteSplit) -> list[dict[str, Any]]:
    if not splits:
        return []
    # The largest first, so that no task is left to run alone at the end.
    ordered = sorted(splits, key=lambda split: -split.size)
    return spark.sparkContext.parallelize(ordered, len(ordered)).map(writer).collect()


def _overlapping(results: Sequence[Mapping[str, Any]]) -> frozenset[int]:
    """Partitions of which two splits hold the same offsets: their files are copies that overlap."""
    last: dict[int, int] = {}
    found = set()
    spans = [result["summary"] for result in results if result["summary"] is not None]
    for span in sorted(spans, key=lambda span: (span["part"], span["number"])):
        if span["first_offset"] <= last.get(span["part"], -1):
            found.add(span["part"])
        last[span["part"]] = max(last.get(span["part"], -1), span["last_offset"])
    return frozenset(found)


def _fold(spark: SparkSession, run: Run, items: Sequence[TableFile]) -> list[TableFile]:
    """Fold the items of this run, each bucket of a partition in order, on from the run before."""
    if not items:
        return []
    from pyspark.sql import functions as f
    from pyspark.sql.pandas.types import from_arrow_schema

    manifest = run.manifest
    buckets = manifest.buckets
    # With the schema given no job has to look for it first.
    read = spark.read.schema(from_arrow_schema(ITEM_ROWS)).parquet(
        *(str(run.root / file.path) for file in items)
    )
    every = f.sequence(f.lit(0), f.lit(buckets - 1))
    shares = f.when(f.col("bucket") == EVERY_BUCKET, every).otherwise(f.array("bucket"))
    parts = len({file.part for file in items})
    tasks = min(parts * buckets, 4 * spark.sparkContext.defaultParallelism)
    names = {uuid_bytes(text): name for text, name in manifest.names.items()}
    fold = FoldBuckets(str(run.root), run.number, dict(manifest.folds), names)
    told = (
        read.withColumn("bucket", f.explode(shares))
        .repartition(tasks, "part", "bucket")
        .sortWithinPartitions("part", "bucket", "split", "seq")
        .mapInArrow(fold, "told string")
        .collect()
    )
    return [file for row in told for file in adopt_fold(manifest, row.told)]
