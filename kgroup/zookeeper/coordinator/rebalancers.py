"""Rebalances: attempts of one group at a time, and the queues in which groups wait (era 7.1 to 7.10)."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial

from kgroup.zookeeper.coordinator import paths
from kgroup.zookeeper.coordinator.core import UNCERTAIN, Asks, Then, Timer, uncertain
from kgroup.zookeeper.coordinator.directory import Found, Partitions
from kgroup.zookeeper.coordinator.registries import Group, Job, RegisteredConsumer, Registries, Stage, Watcher
from kgroup.zookeeper.events import Level
from kgroup.zookeeper.store.operations import Children, Failure, Get, Node, Read, Result, Sync
from kgroup.zookeeper.wire.messages import (
    Ownership,
    Partition,
    PartitionAndOffset,
    RequestKey,
    StartFetcherRequest,
    StopFetcherRequest,
)


class Phase(Enum):
    """The states of an attempt."""

    READ = "read"
    FREE = "free"
    MOVE = "move"
    BACKOFF = "backoff"


class Run:
    """One task of a rebalancer: attempts until one succeeds or the limit is reached; then `done`."""

    def __init__(self, term: Registries, group: Group, done: Callable[[], None]) -> None:
        self._term = term
        self._group = group
        self._done = done
        self._timer: Timer | None = None
        self._moves: Moves | None = None
        self._owners: Owners | None = None
        self._topics: Found | None = None
        self._current = 0
        self.attempts = 0
        self.phase = Phase.READ
        self.snapshot: list[RegisteredConsumer] = []

    def begin(self) -> None:
        """Begin the first attempt."""
        self._group.given_up = self._group.rebalance_failed = False
        self._read()

    def joined(self) -> None:
        """Note a join: the next run includes it, or this one if it has not begun yet (era 7.5, 7.8)."""
        if self.phase is Phase.FREE:
            self._read()

    def member_failed(self) -> None:
        """Fail the attempt because a member is gone, unless it has not begun yet (era 5.5, 7.5)."""
        if self.phase is Phase.FREE:
            self._read()
        elif self.phase is not Phase.BACKOFF:
            self.fail("a member failed")

    def answered(self, watcher: Watcher) -> None:
        """Note that a Stop or a Start was answered in time."""
        if self._moves is not None:
            self._moves.answered(watcher)

    def fail(self, why: str) -> None:
        """End a failed attempt: wait, then retry (era 7.10)."""
        group, config = self._group, self._term.core.config
        group.rebalance_failed = True
        self._end_attempt()
        self.attempts += 1
        if not group.members:
            self._done()
            return
        text = f"group {group.group_id}: attempt {self.attempts} failed: {why}"
        self._term.core.log(Level.INFO, text)
        self.phase = Phase.BACKOFF
        sessions = (member.session_ms for member in group.members.values())
        backoff = min(sessions) // 3 if config.retry_endless else config.rebalance_backoff_ms
        self._arm(self._term.core.now_ms + backoff, self._try_again)

    def succeed(self) -> None:
        """End the run: every member has its partitions, and ZooKeeper has the owners."""
        self._end_attempt()
        self._done()

    def _try_again(self) -> None:
        config = self._term.core.config
        if self.attempts < config.max_rebalance_retries or config.retry_endless:
            self._group.rebalance_failed = False
            self._read()
            return
        name = self._group.group_id
        text = f"ConsumerRebalanceFailedException: {name} after {self.attempts} attempts"
        self._term.core.log(Level.ERROR, text)
        self._group.given_up = True
        self._done()

    def _read(self) -> None:
        self._end_attempt()
        self.phase = Phase.READ
        self.snapshot = [member for _, member in sorted(self._group.members.items())]
        if not self.snapshot:
            self._done()
            return
        current = self._current
        # The owners' read begins with a sync, so what is asked after it is at least as recent.
        read_owners(self._term, self._group, lambda owners: self._topics_read(current, owners=owners))
        names = self._names()
        self._term.reader.read(names, lambda topics: self._topics_read(current, topics=topics))

    def _names(self) -> list[str]:
        names: dict[str, None] = {}
        for member in self.snapshot:
            names.update(dict.fromkeys(member.subscription.topics))
            if member.subscription.pattern is not None:
                known = self._term.topics
                names.update({name: None for name in known if member.subscription.streams_of(name)})
        return sorted(names)

    def _topics_read(
        self, current: int, *, owners: Owners | Failure | None = None, topics: Found | None = None
    ) -> None:
        if current != self._current:
            return
        if isinstance(owners, Failure):
            self._unread("the owners", owners)
            return
        self._owners = owners or self._owners
        self._topics = topics if topics is not None else self._topics
        if self._owners is None or self._topics is None:
            return
        partitions_of: dict[str, Partitions] = {}
        for name, partitions in self._topics.items():
            if not isinstance(partitions, Failure):
                partitions_of[name] = partitions
            elif partitions is not Failure.NO_NODE:  # A missing topic has no partitions yet (LC-11).
                self._unread(f"topic {name}", partitions)
                return
        owners, target = self._owners, target_of(self.snapshot, partitions_of)
        # Needed if anything in ZooKeeper differs, or a member has not been started here (era 7.4).
        if owners.threads == target and all(member.started for member in self.snapshot):
            self.succeed()
        else:
            self._free(owners, target)

    def _unread(self, what: str, failure: Failure) -> None:
        if not uncertain((failure,)):
            text = f"group {self._group.group_id}: {what} cannot be read: {failure.value}"
            self._term.core.log(Level.ERROR, text)
        self.fail(f"{what} could not be read")

    def _free(self, owners: Owners, target: dict[Partition, str]) -> None:
        """Wait until former members must have stopped while others read on; then stop all (era 7.5)."""
        now_ms = self._term.core.now_ms
        blockers = self._group.blockers(iter(target), now_ms, self.snapshot)
        if blockers:
            self.phase = Phase.FREE
            until = max(member.lease_end_ms for member in blockers)
            self._arm(max(until, now_ms + 1), lambda: self._free(owners, target))
            return
        self.phase = Phase.MOVE
        self._moves = Moves(self._term, self._group, self, owners, target)
        self._moves.stop()

    def _arm(self, due_ms: int, action: Callable[[], None]) -> None:
        self._timer = self._term.timers.arm(due_ms, action)

    def _end_attempt(self) -> None:
        """Ignore whatever the attempt still waits for (era 7.11)."""
        self._current += 1
        self._term.timers.cancel(self._timer)
        self._owners = self._topics = None
        if self._moves is not None:
            self._moves.over = True
            self._moves = None


class Rebalancer:
    """A queue of groups, and the run of the group taken last."""

    def __init__(self, term: Registries, number: int) -> None:
        self._term = term
        self.number = number
        self.queue: deque[Group] = deque()
        self.overflow: deque[Group] = deque()
        self.run: Run | None = None

    def push(self, group: Group) -> None:
        """Queue the group; beyond the queue's limit it waits outside and is not dropped (OC-37)."""
        size = self._term.core.config.queue_size
        if len(self.queue) < size:
            self.queue.append(group)
        else:
            if not self.overflow:
                text = f"a rebalancer's queue is full with {size} groups: more wait"
                self._term.core.log(Level.WARNING, text)
            self.overflow.append(group)
        self.take()

    def take(self) -> None:
        """Take the next group, if there is one and no other runs."""
        while self.run is None and self.queue:
            group = self.queue.popleft()
            if self.overflow:
                self.queue.append(self.overflow.popleft())
            group.rebalance_initiated = False
            if group.dropped or not group.members:
                group.rebalancer = None
                continue
            group.rebalancer = self.number
            self.run = group.run = Run(self._term, group, partial(self._done, group))
            self.run.begin()

    def _done(self, group: Group) -> None:
        self.run = group.run = group.rebalancer = None
        self.take()


class Rebalancers:
    """All rebalancers; a group goes to the one that has it, else to each in turn."""

    def __init__(self, term: Registries) -> None:
        self._term = term
        self.all = [Rebalancer(term, number) for number in range(term.core.config.rebalancers)]
        self._next = 0

    def add(self, group: Group) -> None:
        """Queue the group for a rebalance, unless it is queued already (era 7.1)."""
        if group.rebalance_initiated or group.stage is not Stage.NORMAL:
            return
        group.rebalance_initiated = True
        window = self._term.core.config.join_window_ms
        if window:
            due = self._term.core.now_ms + window
            self._term.timers.arm(due, lambda: self._push(group))
        else:
            self._push(group)

    def _push(self, group: Group) -> None:
        if group.rebalancer is None:
            group.rebalancer = self._next
            self._next = (self._next + 1) % len(self.all)
        self.all[group.rebalancer].push(group)


NOTHING_STORED = -1
_MAX_OFFSET = 2**63 - 1


class Moves:
    """STOP, FLUSH, START and OWN of one attempt; once it is `over`, answers change nothing."""

    def __init__(
        self, term: Registries, group: Group, run: Run, owners: Owners, target: dict[Partition, str]
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
        """Ask every member of the snapshot to stop, including those without partitions."""
        core = self._term.core
        for member in self._run.snapshot:
            member.started = False
            watcher = self._expect(member, RequestKey.STOP_FETCHER)
            core.send(member.conn, StopFetcherRequest(member.consumer_id), watcher.correlation)

    def answered(self, watcher: Watcher) -> None:
        """Note that one more has stopped or started; when all have, continue (LC-59)."""
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
        """Return the owners node for a new coordinator: how long to wait, if others may have started."""
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
            elif isinstance(node, Node) and (
                node.data.isdigit() and len(node.data) < 20 and int(node.data) <= _MAX_OFFSET
            ):
                offsets[partition] = int(node.data)
                path = paths.offset(self._group.group_id, partition)
                self._group.there.update(paths.above(path), (path,))
            else:
                self._unreadable(partition, node)
                return
        self._remember(offsets)
        self._start(offsets)

    def _remember(self, offsets: dict[Partition, int]) -> None:
        """Keep offsets an operator wrote or deleted as starting points: a report is compared with them."""
        known = self._group.offsets
        for partition, offset in offsets.items():
            if partition in self._group.changed:
                continue
            if offset == NOTHING_STORED:
                known.pop(partition, None)
            else:
                known[partition] = offset

    def _unreadable(self, partition: Partition, node: Result) -> None:
        """Fail for an offset that makes no sense: taken for none, the reset word would lose it."""
        path = paths.offset(self._group.group_id, partition)
        if node not in UNCERTAIN:
            why = node.value if isinstance(node, Failure) else "it is no number"
            self._term.core.log(Level.ERROR, f"offset {path} cannot be used: {why}; mend or delete it")
        self._run.fail(f"offset {path} could not be read")

    def _start(self, offsets: dict[Partition, int]) -> None:
        """Send Start to every member, even without partitions; from now on they own them (era 7.7)."""
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


_INT32 = 2**31


@dataclass(slots=True)
class Owners:
    """Threads by partition; `session_timeout_ms` None if unknown, `data` None if there is no node.

    `starting`: consumers that do not own anything yet may have been started, so waiting for owners is not
    enough.
    """

    threads: dict[Partition, str] = field(default_factory=dict)
    topics: tuple[str, ...] = ()
    data: bytes | None = None
    session_timeout_ms: int | None = None
    starting: bool = False


def data_of(session_timeout_ms: int, *, starting: bool) -> bytes:
    """Return the owners node's data: the group's largest session, and whether others are starting."""
    data: dict[str, int | bool] = {"version": 1, "session_timeout_ms": session_timeout_ms}
    if starting:
        data["starting"] = True
    return json.dumps(data, separators=(",", ":")).encode()


def _timing_of(data: bytes) -> tuple[int | None, bool]:
    """Return the session timeout, None if unknown, and whether others may have been started."""
    if not data:
        return None, False
    try:
        content = json.loads(data)
        session, starting = content.get("session_timeout_ms"), content.get("starting", False)
    except (ValueError, AttributeError, RecursionError):
        return None, False
    valid = type(session) is int and 0 < session < _INT32
    return session if valid else None, starting is not False


def read_owners(asks: Asks, group: Group, then: Callable[[Owners | Failure], None]) -> None:
    """Call `then` with a group's owners, after all earlier writes; note which nodes exist."""
    _Reading(asks, group, then).begin()


class _Reading:
    """Three rounds of reads: the group and its topics, their partitions, and the owner of each."""

    def __init__(self, asks: Asks, group: Group, then: Callable[[Owners | Failure], None]) -> None:
        self._asks, self._group, self._then = asks, group, then
        self._path = paths.owners(group.group_id)
        self._owners = Owners()
        self._partitions: list[Partition] = []

    def begin(self) -> None:
        group_path = paths.group(self._group.group_id)
        self._ask((Sync(self._path), Get(group_path), Get(self._path), Children(self._path)), self._whole)

    def _ask(self, ops: Sequence[Read], then: Then) -> None:
        """Continue with `then`, or end with a failure or, if there is nothing to ask, with the owners."""

        def answered(results: Sequence[Result]) -> None:
            failures = (result for result in results if isinstance(result, Failure))
            failed = next((failure for failure in failures if failure is not Failure.NO_NODE), None)
            if failed is None:
                then(results)
            else:
                self._then(failed)

        if ops:
            self._asks.ask(ops, answered)
        else:
            self._then(self._owners)

    def _whole(self, results: Sequence[Result]) -> None:
        _, whole, node, topics = results
        group, owners = self._group, self._owners
        # Nodes that were deleted by hand meanwhile are skipped.
        group.there = {known for known in group.there if not known.startswith(self._path)}
        if isinstance(whole, Node):
            group.there.add(paths.group(group.group_id))
        if isinstance(node, Node):
            group.there.add(self._path)
            owners.data = node.data
            owners.session_timeout_ms, owners.starting = _timing_of(node.data)
        owners.topics = topics if isinstance(topics, tuple) else ()
        self._ask([Children(paths.owners_of(group.group_id, topic)) for topic in owners.topics], self._listed)

    def _listed(self, results: Sequence[Result]) -> None:
        group_id = self._group.group_id
        for topic, names in zip(self._owners.topics, results, strict=True):
            if isinstance(names, tuple):
                self._group.there.add(paths.owners_of(group_id, topic))
                self._partitions += [Partition(topic, name) for name in names]
        self._ask([Get(paths.owner(group_id, partition)) for partition in self._partitions], self._owned)

    def _owned(self, nodes: Sequence[Result]) -> None:
        for partition, node in zip(self._partitions, nodes, strict=True):
            if isinstance(node, Node):
                self._group.there.add(paths.owner(self._group.group_id, partition))
                self._owners.threads[partition] = node.data.decode("utf-8", "replace")
        self._then(self._owners)


def target_of(
    members: Iterable[RegisteredConsumer], topics: Mapping[str, Sequence[str]]
) -> dict[Partition, str]:
    """Return the thread of each partition: P div T each, and one more for the first P mod T threads."""
    members = list(members)
    owners: dict[Partition, str] = {}
    for topic in sorted(topics):
        threads = sorted(
            thread_id(member.consumer_id, stream)
            for member in members
            for stream in range(member.subscription.streams_of(topic))
        )
        if threads:
            owners.update(_ranges(topic, sorted(topics[topic], key=by_broker_and_number), threads))
    return owners


def thread_id(consumer_id: str, stream: int) -> str:
    """Return a thread's id: a consumer's streams are threads, numbered from 0 (era 4.5)."""
    return f"{consumer_id}-{stream}"


def consumer_of(thread: str) -> str:
    """Return the consumer a thread id belongs to, "" if it is not a thread id."""
    consumer_id, dash, stream = thread.rpartition("-")
    return consumer_id if dash and stream.isdecimal() else ""


def by_broker_and_number(name: str) -> tuple[int, int, str]:
    """Return a sort key that puts "10" after "9" and, in 0.7's form, "1-0" after "0-3"."""
    broker, _, number = name.rpartition("-")
    numeric = number.isdecimal() and (not broker or broker.isdecimal())
    return (int(broker or 0), int(number), "") if numeric else (0, 0, name)


def _ranges(topic: str, names: list[str], threads: list[str]) -> dict[Partition, str]:
    quota, extra = divmod(len(names), len(threads))
    owners, start = {}, 0
    for position, thread in enumerate(threads):
        end = start + quota + (position < extra)
        owners.update(dict.fromkeys((Partition(topic, name) for name in names[start:end]), thread))
        start = end
    return owners
