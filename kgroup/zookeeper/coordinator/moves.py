"""The steps of an attempt: all stop, offsets are written, all start, owners are written (era 7.5 to 7.9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kgroup.zookeeper.coordinator import paths
from kgroup.zookeeper.coordinator.core import UNCERTAIN
from kgroup.zookeeper.coordinator.events import Level
from kgroup.zookeeper.coordinator.owners import Owners, data_of
from kgroup.zookeeper.coordinator.registries import Group, Job, RegisteredConsumer
from kgroup.zookeeper.coordinator.requests import Watcher
from kgroup.zookeeper.coordinator.target import by_broker_and_number, consumer_of
from kgroup.zookeeper.store.operations import Failure, Get, Node, Result
from kgroup.zookeeper.wire.messages import (
    Ownership,
    Partition,
    PartitionAndOffset,
    RequestKey,
    StartFetcherRequest,
    StopFetcherRequest,
)

if TYPE_CHECKING:
    from kgroup.zookeeper.coordinator.rebalancers import Run
    from kgroup.zookeeper.coordinator.term import Term

NOTHING_STORED = -1
_MAX_OFFSET = 2**63 - 1


class Moves:
    """STOP, FLUSH, START and OWN of one attempt; once it is `over`, answers change nothing."""

    def __init__(
        self, term: Term, group: Group, run: Run, owners: Owners, target: dict[Partition, str]
    ) -> None:
        self._term = term
        self._group = group
        self._run = run
        self._owners = owners
        self._target = target
        self._waiting: dict[int, Watcher] = {}
        self._starting = False
        self.over = False

    def stop(self) -> None:
        """Ask every member of the snapshot to stop, also those that have nothing."""
        core = self._term.core
        for member in self._run.snapshot:
            member.started = False
            watcher = self._expect(member, RequestKey.STOP_FETCHER)
            core.send(member.conn, StopFetcherRequest(member.consumer_id), watcher.correlation)

    def answered(self, watcher: Watcher) -> None:
        """One more has stopped or started; when all have, go on (LC-59)."""
        if self._waiting.get(watcher.member.conn) is not watcher:
            return
        del self._waiting[watcher.member.conn]
        if not self._waiting:
            if self._starting:
                self._own()
            else:
                self._term.committer.flush(self._group, self._flushed, self.owners_before_start)

    def _expect(self, member: RegisteredConsumer, kind: RequestKey) -> Watcher:
        now_ms = self._term.core.now_ms
        watcher = self._term.purgatory.watch(member, kind, now_ms, self._expired)
        self._waiting[member.conn] = watcher
        return watcher

    def _expired(self, watcher: Watcher) -> None:
        if not self.over and self._waiting.get(watcher.member.conn) is watcher:
            what = watcher.kind.name.replace("_", " ").lower()
            self._run.fail(f"consumer {watcher.member.consumer_id} has not answered {what}")

    def owners_before_start(self) -> dict[str, bytes]:
        """For who takes over from here on: how long to wait, and that others than owners may have started."""
        session = max(self._largest_session(), self._owners.session_timeout_ms or 0)
        data = data_of(session, starting=self._owners.threads != self._target)
        return {} if data == self._owners.data else {paths.owners(self._group.group_id): data}

    def _flushed(self, done: bool) -> None:
        if self.over:
            return
        if not done:
            self._run.fail("offsets could not be written")
            return
        if not self._target:
            self._start({})
            return
        partitions = list(self._target)
        ops = [Get(paths.offset(self._group.group_id, partition)) for partition in partitions]
        self._term.ask(ops, lambda results: self._stored(partitions, results))

    def _stored(self, partitions: list[Partition], results: Sequence[Result]) -> None:
        if self.over:
            return
        offsets: dict[Partition, int] = {}
        for partition, node in zip(partitions, results, strict=True):
            if node is Failure.NO_NODE:
                offsets[partition] = NOTHING_STORED
                path = paths.offset(self._group.group_id, partition)
                self._group.there.difference_update(paths.above(path)[1:], (path,))
            elif isinstance(node, Node) and _is_offset(node.data):
                offsets[partition] = int(node.data)
                path = paths.offset(self._group.group_id, partition)
                self._group.there.update(paths.above(path), (path,))
            else:
                self._unreadable(partition, node)
                return
        self._remember(offsets)
        self._start(offsets)

    def _remember(self, offsets: dict[Partition, int]) -> None:
        """What an operator wrote or deleted is where members begin: a report is new against that."""
        known = self._group.offsets
        for partition, offset in offsets.items():
            if partition in self._group.changed:
                continue
            if offset == NOTHING_STORED:
                known.pop(partition, None)
            else:
                known[partition] = offset

    def _unreadable(self, partition: Partition, node: Result) -> None:
        """A position that is there but makes no sense is not taken for none: the reset word would lose it."""
        path = paths.offset(self._group.group_id, partition)
        if node not in UNCERTAIN:
            why = node.value if isinstance(node, Failure) else "it is no number"
            self._term.core.log(Level.ERROR, f"offset {path} cannot be used: {why}; mend or delete it")
        self._run.fail(f"offset {path} could not be read")

    def _start(self, offsets: dict[Partition, int]) -> None:
        """Send Start to every member, also without partitions; from now on they hold them (era 7.7)."""
        self._starting = True
        parts: dict[str, dict[str, list[Partition]]] = {}
        for partition, thread in self._target.items():
            parts.setdefault(consumer_of(thread), {}).setdefault(thread, []).append(partition)
        for member in self._run.snapshot:
            threads = parts.get(member.consumer_id, {})
            watcher = self._expect(member, RequestKey.START_FETCHER)
            member.start_serial, member.start_answered = watcher.serial, False
            for partitions in threads.values():
                for partition in partitions:
                    self._group.give(partition, member)
            ownership = tuple(_ownership(thread, threads[thread], offsets) for thread in sorted(threads))
            request = StartFetcherRequest(member.consumer_id, ownership, self._term.directory.brokers)
            self._term.core.send(member.conn, request, watcher.correlation)

    def _own(self) -> None:
        group, target = self._group, self._target
        puts = {
            paths.owner(group.group_id, partition): thread.encode()
            for partition, thread in target.items()
            if self._owners.threads.get(partition) != thread
        }
        vanished = tuple(
            paths.owner(group.group_id, partition)
            for partition in self._owners.threads
            if partition not in target
        )
        # Last, because of what it says while the others are being written.
        puts[paths.owners(group.group_id)] = data_of(self._largest_session(), starting=False)
        self._term.writes.add(group, Job(lambda: puts, self._owned, vanished))

    def _owned(self, done: bool) -> None:
        if self.over:
            return
        if done:
            self._run.succeed()
        else:
            self._run.fail("owners could not be written")

    def _largest_session(self) -> int:
        return max(member.session_ms for member in self._run.snapshot)


def _ownership(thread: str, partitions: list[Partition], offsets: dict[Partition, int]) -> Ownership:
    ordered = sorted(partitions, key=lambda p: (p.topic, by_broker_and_number(p.name)))
    return Ownership(thread, tuple(PartitionAndOffset(p.topic, p.name, offsets[p]) for p in ordered))


def _is_offset(data: bytes) -> bool:
    return data.isdigit() and len(data) < 20 and int(data) <= _MAX_OFFSET
