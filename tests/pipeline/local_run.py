"""A run without Spark: the same tasks, one after the other; for many cuts in little time."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from kgroup.domain import uuid_bytes
from kgroup.history.sources import segment_logs, topic_names_near
from kgroup.history.splits import plan_splits
from kgroup.pipeline.folding import FoldBuckets
from kgroup.pipeline.ingest import ROWS, WriteSplit
from kgroup.pipeline.rows import EVERY_BUCKET
from kgroup.pipeline.schemas import ITEMS
from kgroup.pipeline.store import Store, TableFile, adopt_fold


def run(paths: Sequence[Path], store: Store, split_bytes: int, buckets: int) -> None:
    """What `ingest` does, in this process."""
    with store.run() as made:
        manifest = made.manifest
        manifest.buckets = buckets
        splits = plan_splits(segment_logs(paths), split_bytes, manifest.last_offsets())
        write = WriteSplit(str(made.root), made.number, ROWS, buckets, {})
        results = [write(split) for split in splits]
        spans = [r["summary"] for r in results if r["summary"]]
        for span in spans:
            manifest.names |= span.pop("names")
        manifest.spans += spans
        files = [TableFile(**f) for r in results for f in r["files"]]
        items = [pq.ParquetFile(made.root / f.path).read() for f in files if f.table == "items"]
        rows = [row for table in items for row in table.to_pylist()]
        spread = [
            {**row, "bucket": bucket}
            for row in rows
            for bucket in (range(buckets) if row["bucket"] == EVERY_BUCKET else (row["bucket"],))
        ]
        spread.sort(key=lambda row: (row["part"], row["bucket"], row["split"], row["seq"]))
        names = topic_names_near(paths) | {uuid_bytes(i): name for i, name in manifest.names.items()}
        fold = FoldBuckets(str(made.root), made.number, dict(manifest.folds), names)
        kept = [f for f in files if f.table != "items"]
        for batch in fold(pa.Table.from_pylist(spread, schema=ITEMS).to_batches(max_chunksize=7)):
            kept += adopt_fold(manifest, batch["told"][0].as_py())
        read = sorted({piece.path for split in splits for piece in split.pieces})
        made.publish(kept, {"files": read})
