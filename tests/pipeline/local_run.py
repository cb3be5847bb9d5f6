"""A run without Spark: the same tasks, one after the other; for many cuts in little time."""

from collections.abc import Sequence
from pathlib import Path

from kgroup.pipeline.read.inputs import Segments
from kgroup.pipeline.spark.workers import InProcess
from kgroup.pipeline.tables.ingest import fill
from kgroup.pipeline.tables.store import Store


def run(paths: Sequence[Path], store: Store, split_bytes: int, shares: int) -> None:
    """What `ingest` does, in this process."""
    fill(InProcess(2), Segments.of(paths), store, split_bytes, shares)
