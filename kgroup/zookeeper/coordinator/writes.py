"""Writes of groups: fenced, bounded and one behind the other; and those of offsets (era 3.2, 6.7, 7.6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
    from kgroup.zookeeper.coordinator.term import Term

OPERATION_BYTES = 64
"""What an operation takes on the wire beside its path and data, rounded up."""


class Writes:
    """Carries out the jobs of each group in turn: what is written last was also asked for last."""

    def __init__(self, term: Term) -> None:
        self._term = term

    def add(self, group: Group, job: Job) -> None:
        """Have the job done when those before it are; its `done` hears whether all of it was."""
        group.jobs.append(job)
        if len(group.jobs) == 1:
            self._begin(group)

    def multis(self, group: Group, puts: dict[str, bytes], deletes: Sequence[str]) -> Iterator[list[Write]]:
        """The writes, missing parents first, each multi with the fence in front."""
        config = self._term.core.config
        fence = Check(paths.EPOCH, self._term.epoch)
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

        self._term.ask([Exists(path) for path in asked], told)

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
                self._term.core.log(Level.ERROR, "a write was refused: another broker is the coordinator")
                self._term.fenced()
            else:
                self._end(group, failed)

        self._term.ask(multi, told)

    def _end(self, group: Group, failed: Failure | None) -> None:
        job = group.jobs.popleft()
        if failed is not None:
            # What is there now is unknown, or not what it was taken for: the next write looks first.
            group.there.clear()
            if failed not in UNCERTAIN:
                text = f"group {group.group_id} cannot be written: {failed.value}"
                self._term.core.log(Level.WARNING, text)
        job.done(failed is None)
        if group.jobs and not self._term.over:
            self._begin(group)


def _size(op: Write) -> int:
    data = op.data if isinstance(op, Create | SetData) else b""
    return len(op.path.encode()) + len(data) + OPERATION_BYTES


class Committer:
    """Writes the offsets that changed since they were written last; what fails stays to be written."""

    def __init__(self, term: Term) -> None:
        self._term = term

    def start(self) -> None:
        """Write at every interval from now on."""
        due = self._term.core.now_ms + self._term.core.config.commit_interval_ms
        self._term.timers.arm(due, self._run)

    def flush(
        self, group: Group, then: Callable[[bool], None], more: Callable[[], dict[str, bytes]] = dict
    ) -> None:
        """Write the group's changed offsets, and `more` with them."""
        written: dict[str, bytes] = {}

        def puts() -> dict[str, bytes]:
            written.clear()
            written.update(self.changed(group))
            return {**written, **more()}

        def done(all_of_it: bool) -> None:
            if all_of_it:
                self.written(group, written)
            then(all_of_it)

        self._term.writes.add(group, Job(puts, done))

    def changed(self, group: Group) -> dict[str, bytes]:
        """What is to be written of the group's offsets."""
        return {paths.offset(group.group_id, p): str(group.offsets[p]).encode() for p in group.changed}

    def written(self, group: Group, puts: dict[str, bytes]) -> None:
        """The bit is cleared for what was written, unless it has changed again since (era 6.7)."""
        for partition in list(group.changed):
            data = puts.get(paths.offset(group.group_id, partition))
            if data is not None and data == str(group.offsets[partition]).encode():
                del group.changed[partition]

    def _run(self) -> None:
        self.start()
        for group in self._term.groups.values():
            if group.changed and not group.jobs:
                self.flush(group, lambda _: None)
