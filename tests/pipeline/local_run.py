"""A run without Spark: the same tasks, one after the other; for many cuts in little time."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from kgroup.pipeline.read.inputs import Segments
from kgroup.pipeline.tables.ingest import fill
from kgroup.pipeline.tables.store import Store


def run(paths: Sequence[Path], store: Store, split_bytes: int, buckets: int) -> None:
    """What `ingest` does, in this process."""
    fill(lambda task, work: [task(one) for one in work], Segments.of(paths), store, split_bytes, buckets)


class Tasks:
    """Work handed out; what is asked of Spark's RDD."""

    def __init__(self, results: Iterable[Any]) -> None:
        self.results = results

    def map(self, task: Callable[[Any], Any]) -> "Tasks":
        return Tasks(map(task, self.results))

    def collect(self) -> list[Any]:
        return list(self.results)


class Context:
    """What `ingest` asks of a SparkContext, in this process."""

    defaultParallelism = 2

    def parallelize(self, work: Sequence[Any], slices: int) -> Tasks:
        return Tasks(work)
