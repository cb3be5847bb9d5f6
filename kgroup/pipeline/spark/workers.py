"""Tasks handed to executors; what comes back says, beside each result, which kgroup has made it."""

from __future__ import annotations

import gc
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

import kgroup
from kgroup.history.built import COMPILED, LOOPS, runs_as

if TYPE_CHECKING:
    from pyspark import SparkContext

W = TypeVar("W")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, order=True)
class Worker:
    """A host that has run tasks, and its kgroup: `home` is where that lies, `loops` how it is built."""

    host: str
    home: str
    loops: str

    @property
    def compiled(self) -> bool:
        return self.loops == COMPILED


def this_worker() -> Worker:
    """Of the process that asks."""
    built = [runs_as(package) for package in LOOPS.values()]
    loops = COMPILED if all(one == COMPILED for one in built) else ", ".join(built)
    # In a zip the first folder to look in is not the package that was asked for.
    return Worker(socket.gethostname(), str(Path(next(iter(kgroup.__path__)))), loops)


class Workers:
    """Calls a task with each piece of work on a context's executors; results are in the order of the work.

    `ran` are the workers that have answered.
    """

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self.ran: set[Worker] = set()

    def __call__(self, task: Callable[[W], T], work: Sequence[W], /) -> list[T]:
        if not work:
            return []
        told = self._context.parallelize(work, len(work)).map(_Told(task)).collect()
        self.ran.update(worker for worker, _ in told)
        return [result for _, result in told]


@dataclass(frozen=True, slots=True)
class _Told(Generic[W, T]):
    """A task without Python's collector: it makes very many objects and no cycles, a fifth of its time."""

    task: Callable[[W], T]

    def __call__(self, work: W) -> tuple[Worker, T]:
        gc.disable()
        try:
            return this_worker(), self.task(work)
        finally:
            gc.enable()
