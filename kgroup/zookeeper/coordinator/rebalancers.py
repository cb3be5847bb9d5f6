"""Rebalances: attempts of one group at a time, and the queues that groups wait in (era 7.1 to 7.10)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING

from kgroup.zookeeper.coordinator.core import uncertain
from kgroup.zookeeper.coordinator.events import Level
from kgroup.zookeeper.coordinator.moves import Moves
from kgroup.zookeeper.coordinator.owners import Owners, read_owners
from kgroup.zookeeper.coordinator.registries import Group, RegisteredConsumer, Stage
from kgroup.zookeeper.coordinator.requests import Watcher
from kgroup.zookeeper.coordinator.target import target_of
from kgroup.zookeeper.coordinator.timers import Timer
from kgroup.zookeeper.coordinator.topics import Found, Partitions
from kgroup.zookeeper.store.operations import Failure
from kgroup.zookeeper.wire.messages import Partition

if TYPE_CHECKING:
    from kgroup.zookeeper.coordinator.term import Term


class Phase(Enum):
    """Where an attempt stands."""

    READ = "read"
    FREE = "free"
    MOVE = "move"
    BACKOFF = "backoff"


class Run:
    """One task of a rebalancer: attempts until one succeeds, or there have been too many; then `done`."""

    def __init__(self, term: Term, group: Group, done: Callable[[], None]) -> None:
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
        """The first attempt."""
        self._group.given_up = self._group.rebalance_failed = False
        self._read()

    def joined(self) -> None:
        """Somebody has joined: the next run takes it in, or this one if it only waits yet (era 7.5, 7.8)."""
        if self.phase is Phase.FREE:
            self._read()

    def member_failed(self) -> None:
        """A member is gone: the attempt fails at once, unless it only waits yet (era 5.5, 7.5)."""
        if self.phase is Phase.FREE:
            self._read()
        elif self.phase is not Phase.BACKOFF:
            self.fail("a member failed")

    def answered(self, watcher: Watcher) -> None:
        """A Stop or a Start was answered in time."""
        if self._moves is not None:
            self._moves.answered(watcher)

    def fail(self, why: str) -> None:
        """The attempt has failed: wait, and try again (era 7.10)."""
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
        """Everybody has what is its own, and ZooKeeper knows."""
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
        # The owners' read begins with a sync, so what is asked behind it sees no less.
        read_owners(self._term, self._group, lambda owners: self._told(current, owners=owners))
        names = self._names()
        self._term.reader.read(names, lambda topics: self._told(current, topics=topics))

    def _names(self) -> list[str]:
        names: dict[str, None] = {}
        for member in self.snapshot:
            names.update(dict.fromkeys(member.subscription.topics))
            if member.subscription.pattern is not None:
                known = self._term.interests.known
                names.update({name: None for name in known if member.subscription.streams_of(name)})
        return sorted(names)

    def _told(
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
        found: dict[str, Partitions] = {}
        for name, partitions in self._topics.items():
            if not isinstance(partitions, Failure):
                found[name] = partitions
            elif partitions is not Failure.NO_NODE:  # One that is not there yet has no partitions (LC-11).
                self._unread(f"topic {name}", partitions)
                return
        owners, target = self._owners, target_of(self.snapshot, found)
        # Needed if anything in ZooKeeper differs, or somebody has not been started here (era 7.4).
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
        """Wait until former members must have stopped, while others read on; then stop all (era 7.5)."""
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
        """Whatever the attempt still waits for comes too late (era 7.11)."""
        self._current += 1
        self._term.timers.cancel(self._timer)
        self._owners = self._topics = None
        if self._moves is not None:
            self._moves.over = True
            self._moves = None


class Rebalancer:
    """A queue of groups, and the run of the one that was taken last."""

    def __init__(self, term: Term) -> None:
        self._term = term
        self.queue: deque[Group] = deque()
        self.overflow: deque[Group] = deque()
        self.run: Run | None = None

    def push(self, group: Group) -> None:
        """Queue the group; one too many waits outside, and is not dropped (OC-37)."""
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
        """Take the next group, if there is one and nothing else is being done."""
        while self.run is None and self.queue:
            group = self.queue.popleft()
            if self.overflow:
                self.queue.append(self.overflow.popleft())
            group.rebalance_initiated = False
            if group.dropped or not group.members:
                group.rebalancer = None
                continue
            group.rebalancer = self
            self.run = group.run = Run(self._term, group, partial(self._done, group))
            self.run.begin()

    def _done(self, group: Group) -> None:
        self.run = group.run = group.rebalancer = None
        self.take()


class Rebalancers:
    """All rebalancers; a group goes to the one that has it, or else to each in turn."""

    def __init__(self, term: Term) -> None:
        self._term = term
        self.all = [Rebalancer(term) for _ in range(term.core.config.rebalancers)]
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
            group.rebalancer = self.all[self._next]
            self._next = (self._next + 1) % len(self.all)
        group.rebalancer.push(group)
