"""Writes of groups: fenced, in multis of a bounded size, one write of a group after the other (era 3.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kgroup.zookeeper.coordinator import paths
from kgroup.zookeeper.coordinator.core import UNCERTAIN
from kgroup.zookeeper.coordinator.events import Level
from kgroup.zookeeper.coordinator.registries import Group, Job
from kgroup.zookeeper.store.operations import (
    Check,
    Create,
    Delete,
    Exists,
    Failure,
    Result,
    SetData,
    Stat,
    Write,
)

if TYPE_CHECKING:
    from kgroup.zookeeper.coordinator.reign import Reign

OPERATION_BYTES = 64
"""What an operation takes on the wire beside its path and data, rounded up."""


class Writes:
    """Carries out the jobs of each group in turn: what is written last was also asked for last."""

    def __init__(self, reign: Reign) -> None:
        self._reign = reign

    def add(self, group: Group, job: Job) -> None:
        """Have the job done when those before it are; its `done` hears whether all of it was."""
        group.jobs.append(job)
        if len(group.jobs) == 1:
            self._begin(group)

    def multis(self, group: Group, puts: dict[str, bytes], deletes: Sequence[str]) -> Iterator[list[Write]]:
        """The writes, missing parents first, each multi with the fence in front."""
        config = self._reign.core.config
        fence = Check(paths.EPOCH, self._reign.epoch)
        batch, size = [fence], _size(fence)
        writes: list[Write] = []
        for op in self._operations(group, puts, deletes):
            if len(writes) + 1 >= config.max_multi_ops or size + _size(op) > config.max_multi_bytes:
                yield [*batch, *writes]
                writes, size = [], _size(fence)
            writes.append(op)
            size += _size(op)
        if writes:
            yield [*batch, *writes]

    def _operations(self, group: Group, puts: dict[str, bytes], deletes: Sequence[str]) -> Iterator[Write]:
        there = set(group.there)
        for path, data in puts.items():
            for parent in paths.above(path):
                if parent not in there:
                    there.add(parent)
                    yield Create(parent, b"")
            yield SetData(path, data) if path in there else Create(path, data)
            there.add(path)
        for path in deletes:
            yield Delete(path)

    def _begin(self, group: Group) -> None:
        job = group.jobs[0]
        puts = job.puts()
        unknown = {parent: None for path in puts for parent in (*paths.above(path), path)}
        asked = [path for path in unknown if path not in group.there]
        if not asked:
            self._write(group, puts)
            return

        def told(results: Sequence[Result]) -> None:
            group.there.update(p for p, r in zip(asked, results, strict=True) if isinstance(r, Stat))
            failed = [r for r in results if isinstance(r, Failure) and r is not Failure.NO_NODE]
            if failed:
                self._end(group, failed[0])
            else:
                self._write(group, puts)

        self._reign.ask([Exists(path) for path in asked], told)

    def _write(self, group: Group, puts: dict[str, bytes]) -> None:
        self._next(group, self.multis(group, puts, group.jobs[0].deletes))

    def _next(self, group: Group, multis: Iterator[list[Write]]) -> None:
        multi = next(multis, None)
        if multi is None:
            self._end(group, None)
            return

        def told(results: Sequence[Result]) -> None:
            failed = next(
                (r for r in results if isinstance(r, Failure) and r is not Failure.ROLLED_BACK), None
            )
            if failed is None:
                for op in multi:
                    if isinstance(op, Create):
                        group.there.add(op.path)
                    elif isinstance(op, Delete):
                        group.there.discard(op.path)
                self._next(group, multis)
            elif results[0] in (Failure.BAD_VERSION, Failure.NO_NODE):
                # The fence: somebody else has been elected, whatever this broker believes.
                self._reign.core.log(Level.ERROR, "a write was refused: another broker is the coordinator")
                self._reign.fenced()
            else:
                self._end(group, failed)

        self._reign.ask(multi, told)

    def _end(self, group: Group, failed: Failure | None) -> None:
        job = group.jobs.popleft()
        if failed is not None:
            # What is there now is unknown, or not what it was taken for: the next write looks first.
            group.there.clear()
            if failed not in UNCERTAIN:
                text = f"group {group.group_id} cannot be written: {failed.value}"
                self._reign.core.log(Level.WARNING, text)
        job.done(failed is None)
        if group.jobs and not self._reign.over:
            self._begin(group)


def _size(op: Write) -> int:
    data = op.data if isinstance(op, Create | SetData) else b""
    return len(op.path.encode()) + len(data) + OPERATION_BYTES
