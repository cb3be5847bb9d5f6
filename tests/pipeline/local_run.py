"""A run without Spark: the same tasks, one after the other; for many cuts in little time."""

from collections.abc import Sequence
from pathlib import Path

from kgroup.pipeline.read.inputs import Segments
from kgroup.pipeline.schemas import Row
from kgroup.pipeline.spark.workers import Fold, Read
from kgroup.pipeline.tables.ingest import fill
from kgroup.pipeline.tables.store import Store


class Here:
    """What Spark does with the tasks, in this process: by default one that folds."""

    def __init__(self, tasks: int = 1) -> None:
        self._tasks = tasks

    def tasks(self, size: int) -> int:
        return self._tasks

    def __call__(self, read: Read, fold: Fold, pieces: int, tasks: int, /) -> list[Row]:
        moved = sorted(read(iter(range(pieces))), key=lambda row: row[0])
        of_tasks = ([row for row in moved if row[0][0] == task] for task in range(tasks))
        return [told for own in of_tasks for told in fold(iter(own))]


def run(paths: Sequence[Path], store: Store, split_bytes: int, shares: int) -> None:
    """What `ingest` does, in this process."""
    fill(Here(2), Segments.of(paths), store, split_bytes, shares)
