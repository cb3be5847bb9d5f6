"""Tasks on executors: some read and yield rows, Spark moves each row to the task that folds it."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

import kgroup
from kgroup.history.compiled import COMPILED, LOOPS, runs_as
from kgroup.pipeline.read.posting import Posted

if TYPE_CHECKING:
    from pyspark import SparkContext

R = TypeVar("R")
Read: TypeAlias = Callable[[Iterator[int]], Iterator[Posted]]
Fold: TypeAlias = Callable[[Iterator[Posted]], Iterator[R]]
Work: TypeAlias = Callable[[int], R]
Pieces: TypeAlias = Sequence[Sequence[int]]
"""What is read, by number: one task per piece."""
_SHARE_BYTES = 8 << 20
"""Less than this is not worth a task of its own."""


@dataclass(frozen=True, slots=True, order=True)
class Worker:
    """A host that has run tasks, and its kgroup: `home` is its folder, `loops` how it is built."""

    host: str
    home: str
    loops: str

    @property
    def compiled(self) -> bool:
        return self.loops == COMPILED


def this_worker() -> Worker:
    """Return the worker of this process."""
    built = [runs_as(package) for package in LOOPS.values()]
    loops = COMPILED if all(one == COMPILED for one in built) else ", ".join(built)
    # In a zip the first folder to look in is not the package that was asked for.
    return Worker(socket.gethostname(), str(Path(next(iter(kgroup.__path__)))), loops)


class Move(Protocol):
    """Runs tasks, anywhere."""

    def tasks(self, size: int) -> int:
        """Return how many tasks may fold that many bytes of the log."""
        ...

    def __call__(self, read: Read, fold: Fold[R], pieces: Pieces, tasks: int, /) -> list[R]:
        """Return what the folds yield, in any order.

        `read` receives the numbers of a piece; `fold` receives the rows of its task, by address.
        """
        ...

    def each(self, work: Work[R], count: int) -> list[R]:
        """Return what `work` returns of each number below `count`, in their order."""
        ...


class Shuffle:
    """`Move` by one Spark job: a shuffle by task, in which Spark sorts each task's rows."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context

    def tasks(self, size: int) -> int:
        return max(1, min(2 * self._context.defaultParallelism, -(-size // _SHARE_BYTES)))

    def __call__(self, read: Read, fold: Fold[R], pieces: Pieces, tasks: int, /) -> list[R]:
        numbers = self._context.parallelize(pieces, len(pieces))
        rows = numbers.mapPartitions(lambda own: read(chain.from_iterable(own)))
        moved = rows.repartitionAndSortWithinPartitions(tasks, lambda address: address[0])
        return moved.mapPartitions(lambda own: fold(iter(own))).collect()

    def each(self, work: Work[R], count: int) -> list[R]:
        return self._context.parallelize(range(count), count).map(work).collect() if count else []


class InProcess:
    """`Move` without Spark: one task after another, `tasks` of which fold."""

    def __init__(self, tasks: int = 1) -> None:
        self._tasks = tasks

    def tasks(self, size: int) -> int:
        return self._tasks

    def __call__(self, read: Read, fold: Fold[R], pieces: Pieces, tasks: int, /) -> list[R]:
        moved = sorted(chain.from_iterable(map(read, map(iter, pieces))), key=lambda row: row[0])
        of_tasks = ([row for row in moved if row[0][0] == task] for task in range(tasks))
        return [row for own in of_tasks for row in fold(iter(own))]

    def each(self, work: Work[R], count: int) -> list[R]:
        return list(map(work, range(count)))
