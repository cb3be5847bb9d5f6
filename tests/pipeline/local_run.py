"""A run without Spark: the same tasks, one after the other; for many cuts in little time."""

from collections.abc import Sequence
from pathlib import Path

from kgroup.pipeline.ingest import fill
from kgroup.pipeline.inputs import Segments
from kgroup.pipeline.store import Store


def run(paths: Sequence[Path], store: Store, split_bytes: int, buckets: int) -> None:
    """What `ingest` does, in this process."""
    fill(lambda task, work: [task(one) for one in work], Segments.of(paths), store, split_bytes, buckets)
