"""What an active coordinator knows of consumers and groups (era 3.10); it ends with the term."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from kgroup.domain import OFFSETS_TOPIC
from kgroup.errors import Refused
from kgroup.patterns import Pattern, compile_regex
from kgroup.zookeeper.coordinator import paths
from kgroup.zookeeper.coordinator.core import EXPIRY, UNCERTAIN, Core, Then, Timer, Timers
from kgroup.zookeeper.coordinator.directory import Directory, Partitions, TopicReader
from kgroup.zookeeper.events import Level
from kgroup.zookeeper.store.names import is_name
from kgroup.zookeeper.store.operations import (
    Check,
    Create,
    Delete,
    Exists,
    Failure,
    Read,
    Result,
    SetData,
    Stat,
    Write,
)
from kgroup.zookeeper.wire.codec import MAX_CORRELATION
from kgroup.zookeeper.wire.messages import Partition, RegisterConsumerRequest, RequestKey

MAX_STREAMS = 32_767
_WILDCARD = re.compile(r"([*!])([0-9]{1,9})\1(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a consumer reads: `topics` with their streams, or the topics a `pattern` matches (or does not)."""

    topics: dict[str, int]
    pattern: Pattern | None = None
    streams: int = 0
    wanted: bool = True

    def streams_of(self, topic: str) -> int:
        """Return how many of the consumer's streams read this topic."""
        if self.pattern is None:
            return self.topics.get(topic, 0)
        # The broker's own topic is not for consumers, whatever the pattern says.
        matches = topic != OFFSETS_TOPIC and bool(self.pattern.fullmatch(topic)) == self.wanted
        return self.streams if matches else 0


def parse(topic_count: str) -> Subscription | None:
    """Return the subscription, or None if the text is not one."""
    wildcard = _WILDCARD.fullmatch(topic_count)
    return _static(topic_count) if wildcard is None else _wildcard(*wildcard.groups())


def _wildcard(mark: str, streams: str, pattern: str) -> Subscription | None:
    if not 1 <= int(streams) <= MAX_STREAMS:
        return None
    # As 0.8's TopicFilter reads it: commas are alternatives, quotes come with properties files.
    text = pattern.strip().replace(",", "|").replace(" ", "").strip("\"'")
    # RE2, not Java's: a client's pattern must not block the coordinator.
    try:
        return Subscription({}, compile_regex(text), int(streams), mark == "*")
    except Refused:
        return None


def _static(topic_count: str) -> Subscription | None:
    try:
        given = json.loads(topic_count)
    except (ValueError, RecursionError):
        return None
    if not isinstance(given, dict) or not given:
        return None
    for topic, streams in given.items():
        if not is_name(topic) or type(streams) is not int or not 1 <= streams <= MAX_STREAMS:
            return None
    return Subscription(given)


class Stage(Enum):
    """How much of a group's past is known: nothing yet, which members are missing, or enough (8)."""

    LOADING = "loading"
    RECOVERING = "recovering"
    NORMAL = "normal"


@dataclass(slots=True, eq=False)
class RegisteredConsumer:
    """A registered consumer: its registration, its connection, and what it has answered.

    `holds` are the partitions of its last Start that it has not released; `answered_at_ms` is the time of its
    newest ping answer in time, or of its registration.
    """

    registration: RegisterConsumerRequest
    subscription: Subscription
    conn: int
    registered_at_ms: int
    answered_at_ms: int
    failed: int = 0
    started: bool = False
    start_serial: int = 0
    start_answered: bool = False
    serial: int = 0
    pings: int = 0
    ping_timer: Timer | None = None
    unanswered: dict[RequestKey, deque[Watcher]] = field(default_factory=dict)
    holds: dict[Partition, None] = field(default_factory=dict)
    gone: bool = False

    @property
    def consumer_id(self) -> str:
        return self.registration.consumer_id

    @property
    def session_ms(self) -> int:
        return self.registration.session_timeout_ms

    @property
    def answer_ms(self) -> int:
        """How long it may take to answer."""
        return 2 * self.session_ms // 3

    @property
    def lease_end_ms(self) -> int:
        """When it has stopped delivering, whatever became of it (era 5.6, 9.6)."""
        return self.answered_at_ms + self.session_ms


class Rebalance(Protocol):
    """A rebalance of the group in progress."""

    def joined(self) -> None: ...
    def member_failed(self) -> None: ...
    def answered(self, watcher: Watcher) -> None: ...


@dataclass(slots=True, eq=False)
class Job:
    """Pending writes of one group; their content is decided when their turn comes."""

    puts: Callable[[], dict[str, bytes]]
    done: Callable[[bool], None]
    deletes: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class Group:
    """A group: its members in the order they registered, and what is known of its partitions.

    `changed` are the partitions whose offset ZooKeeper does not have yet (the draft's offsetUpdated),
    `there` the nodes known to exist, `departed` the members that left with what others may not have yet.
    """

    group_id: str
    members: dict[str, RegisteredConsumer] = field(default_factory=dict)
    offsets: dict[Partition, int] = field(default_factory=dict)
    changed: dict[Partition, None] = field(default_factory=dict)
    rebalance_initiated: bool = False
    rebalancer: int | None = None
    rebalance_failed: bool = False
    given_up: bool = False
    run: Rebalance | None = None
    holders: dict[Partition, RegisteredConsumer] = field(default_factory=dict)
    departed: dict[str, RegisteredConsumer] = field(default_factory=dict)
    stage: Stage = Stage.LOADING
    awaited: set[str] = field(default_factory=set)
    all_awaited: bool = True
    topics: dict[str, None] = field(default_factory=dict)
    there: set[str] = field(default_factory=set)
    jobs: deque[Job] = field(default_factory=deque)
    idle_timer: Timer | None = None
    dropped: bool = False

    def give(self, partition: Partition, member: RegisteredConsumer) -> None:
        """Make the member the owner from now on."""
        before = self.holders.get(partition)
        if before is not None:
            before.holds.pop(partition, None)
            self._forget_if_empty(before)
        self.holders[partition] = member
        member.holds[partition] = None

    def release(self, member: RegisteredConsumer) -> None:
        """Free everything the member held."""
        for partition in member.holds:
            self.holders.pop(partition, None)
        member.holds.clear()
        self._forget_if_empty(member)

    def blockers(
        self, partitions: Iterator[Partition], now_ms: int, snapshot: list[RegisteredConsumer]
    ) -> list[RegisteredConsumer]:
        """Return members outside the snapshot that may still deliver these partitions (era 5.6)."""
        inside = set(map(id, snapshot))
        blockers: dict[int, RegisteredConsumer] = {}
        for partition in partitions:
            holder = self.holders.get(partition)
            if holder is not None and id(holder) not in inside and not has_let_go(holder, now_ms):
                blockers[id(holder)] = holder
        return list(blockers.values())

    def _forget_if_empty(self, member: RegisteredConsumer) -> None:
        if member.gone and not member.holds and self.departed.get(member.consumer_id) is member:
            del self.departed[member.consumer_id]


def has_let_go(holder: RegisteredConsumer, now_ms: int) -> bool:
    """Return whether others may own what this member held: it is gone and its lease has ended (era 5.6)."""
    return holder.gone and now_ms >= holder.lease_end_ms


class Watcher:
    """One request sent to a member; `serial` counts the requests on its connection."""

    __slots__ = ("expired", "kind", "member", "serial", "settled", "timer")

    def __init__(
        self, member: RegisteredConsumer, kind: RequestKey, serial: int, expired: Callable[[Watcher], None]
    ) -> None:
        self.member = member
        self.kind = kind
        self.serial = serial
        self.settled = False
        self.timer: Timer | None = None
        self.expired = expired

    @property
    def correlation(self) -> int:
        """Its correlation in header mode; 16 bits outlast any unanswered request."""
        return self.serial % (MAX_CORRELATION + 1)


class Purgatory:
    """The watchers of all members, by kind; `ended` counts how they ended."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self.ended = {"satisfied": 0, "expired": 0, "dropped": 0}
        self.started = 0

    def watch(
        self, member: RegisteredConsumer, kind: RequestKey, now_ms: int, expired: Callable[[Watcher], None]
    ) -> Watcher:
        """Call `expired` unless an answer comes within two thirds of the session (era 5.1, 7.5)."""
        member.serial += 1
        self.started += 1
        watcher = Watcher(member, kind, member.serial, expired)
        watcher.timer = self._timers.arm(now_ms + member.answer_ms, lambda: self._expire(watcher), EXPIRY)
        member.unanswered.setdefault(kind, deque()).append(watcher)
        return watcher

    def pending(self, member: RegisteredConsumer, kind: RequestKey) -> bool:
        """Return whether a request of this kind waits for an answer that can still arrive."""
        waiting = member.unanswered.get(kind)
        return waiting is not None and len(waiting) > 0 and not waiting[-1].settled

    def answer(self, member: RegisteredConsumer, kind: RequestKey, correlation: int | None) -> Watcher | None:
        """Return the request this answers, or None; it is `settled` already if the answer came too late.

        Answers of one kind arrive in the order of their requests. An expired watcher stays until its answer
        has arrived; otherwise the late answer would count for the next request (era 5.3).
        """
        waiting = member.unanswered.get(kind)
        if not waiting:
            return None
        watcher = waiting.popleft()
        while correlation is not None and watcher.correlation != correlation and waiting:
            watcher = waiting.popleft()
        if correlation is not None and watcher.correlation != correlation:
            return None
        return watcher

    def satisfy(self, watcher: Watcher) -> None:
        """Note that the answer came in time."""
        assert not watcher.settled
        self._settle(watcher, "satisfied")

    def drop(self, member: RegisteredConsumer) -> None:
        """Stop waiting for answers of a member that is gone."""
        for waiting in member.unanswered.values():
            for watcher in waiting:
                if not watcher.settled:
                    self._settle(watcher, "dropped")
        member.unanswered.clear()

    def _settle(self, watcher: Watcher, how: str) -> None:
        watcher.settled = True
        self._timers.cancel(watcher.timer)
        self.ended[how] += 1

    def _expire(self, watcher: Watcher) -> None:
        self.ended["expired"] += 1
        watcher.settled = True
        watcher.expired(watcher)


class Registries:
    """What the parts of a term share; once it is `over`, answers are ignored.

    `topics` are those of the tree, None where their partitions cannot be read.
    """

    def __init__(self, core: Core, directory: Directory, epoch: int, fenced: Callable[[], None]) -> None:
        self.core = core
        self.directory = directory
        self.epoch = epoch
        self.fenced = fenced
        self.elected_at_ms = core.now_ms
        self.over = False
        self.timers = Timers()
        self.groups: dict[str, Group] = {}
        self.members: dict[int, RegisteredConsumer] = {}
        self.purgatory = Purgatory(self.timers)
        self.reader = TopicReader(self)
        self.topics: dict[str, Partitions | None] = {}
        self.writes = Writes(self)
        self.committer = Committer(self)

    def ask(self, ops: Sequence[Read] | Sequence[Write], then: Then, *, watch: bool = False) -> None:
        """As `Core.ask`; answers after the end change nothing (era 7.11)."""

        def answered(results: Sequence[Result]) -> None:
            if not self.over:
                then(results)

        self.core.ask(ops, answered, watch=watch)

    def when_connected(self, action: Callable[[], None]) -> None:
        """As `Core.when_connected`, until the end."""
        self.core.when_connected(lambda: None if self.over else action())


OPERATION_BYTES = 64
"""Bytes of an operation on the wire besides its path and data, rounded up."""


class Writes:
    """Runs each group's jobs one after another: what was requested last is written last."""

    def __init__(self, term: Registries) -> None:
        self._term = term

    def add(self, group: Group, job: Job) -> None:
        """Run the job after those before it; `done` is called with whether all of it was written."""
        group.jobs.append(job)
        if len(group.jobs) == 1:
            self._begin(group)

    def multis(self, group: Group, puts: dict[str, bytes], deletes: Sequence[str]) -> Iterator[list[Write]]:
        """Yield the writes, missing parents first; each multi begins with the fence."""
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

        def checked(results: Sequence[Result]) -> None:
            group.there.update(p for p, r in zip(asked, results, strict=True) if isinstance(r, Stat))
            failed = [r for r in results if isinstance(r, Failure) and r is not Failure.NO_NODE]
            if failed:
                self._end(group, failed[0])
            else:
                self._write(group, puts)

        self._term.ask([Exists(path) for path in asked], checked)

    def _write(self, group: Group, puts: dict[str, bytes]) -> None:
        self._next(group, self.multis(group, puts, group.jobs[0].deletes))

    def _next(self, group: Group, multis: Iterator[list[Write]]) -> None:
        multi = next(multis, None)
        if multi is None:
            self._end(group, None)
            return

        def written(results: Sequence[Result]) -> None:
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
                # The fence: another broker has been elected, whatever this one believes.
                self._term.core.log(Level.ERROR, "a write was refused: another broker is the coordinator")
                self._term.fenced()
            else:
                self._end(group, failed)

        self._term.ask(multi, written)

    def _end(self, group: Group, failed: Failure | None) -> None:
        job = group.jobs.popleft()
        if failed is not None:
            # What is there now is unknown, or unexpected: the next write reads first.
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
    """Writes the offsets changed since the last write; those that fail stay to be written."""

    def __init__(self, term: Registries) -> None:
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
        """Return the group's offsets to be written."""
        return {paths.offset(group.group_id, p): str(group.offsets[p]).encode() for p in group.changed}

    def written(self, group: Group, puts: dict[str, bytes]) -> None:
        """Mark offsets as written, except those that changed since (era 6.7)."""
        for partition in list(group.changed):
            data = puts.get(paths.offset(group.group_id, partition))
            if data is not None and data == str(group.offsets[partition]).encode():
                del group.changed[partition]

    def _run(self) -> None:
        self.start()
        for group in self._term.groups.values():
            if group.changed and not group.jobs:
                self.flush(group, lambda _: None)
