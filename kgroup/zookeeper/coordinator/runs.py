"""A rebalance of one group: attempts, each on a fixed snapshot of its members (era 7.3 to 7.10)."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING

from kgroup.zookeeper.coordinator.core import uncertain
from kgroup.zookeeper.coordinator.events import Level
from kgroup.zookeeper.coordinator.moves import Moves
from kgroup.zookeeper.coordinator.owners import Owners, OwnersReader
from kgroup.zookeeper.coordinator.purgatory import Watcher
from kgroup.zookeeper.coordinator.registries import Group, RegisteredConsumer
from kgroup.zookeeper.coordinator.target import target_of
from kgroup.zookeeper.coordinator.timers import Timer
from kgroup.zookeeper.coordinator.topics import Found, Partitions
from kgroup.zookeeper.store.operations import Failure
from kgroup.zookeeper.wire.messages import Partition

if TYPE_CHECKING:
    from kgroup.zookeeper.coordinator.reign import Reign


class Phase(Enum):
    """Where an attempt stands."""

    READ = "read"
    FREE = "free"
    MOVE = "move"
    BACKOFF = "backoff"


class Run:
    """One task of a rebalancer: attempts until one succeeds, or there have been too many; then `done`."""

    def __init__(self, reign: Reign, group: Group, done: Callable[[], None]) -> None:
        self._reign = reign
        self._group = group
        self._done = done
        self._reader = OwnersReader(reign)
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
        self._group.given_up = False
        self._attempt()

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

    def stopped(self, watcher: Watcher) -> None:
        """A Stop was answered in time."""
        if self._moves is not None:
            self._moves.answered(watcher)

    def started(self, watcher: Watcher) -> None:
        """A Start was answered in time."""
        if self._moves is not None:
            self._moves.answered(watcher)

    def fail(self, why: str) -> None:
        """The attempt has failed: wait, and try again (era 7.10)."""
        group, config = self._group, self._reign.core.config
        group.rebalance_failed = True
        self._end_attempt()
        self.attempts += 1
        if not group.members:
            self._finish()
            return
        text = f"group {group.group_id}: attempt {self.attempts} failed: {why}"
        self._reign.core.log(Level.INFO, text)
        self.phase = Phase.BACKOFF
        sessions = (member.session_ms for member in group.members.values())
        backoff = min(sessions) // 3 if config.retry_endless else config.rebalance_backoff_ms
        self._arm(self._reign.core.now_ms + backoff, self._try_again)

    def succeed(self) -> None:
        """Everybody has what is its own, and ZooKeeper knows."""
        self._end_attempt()
        self._finish()

    def _try_again(self) -> None:
        config = self._reign.core.config
        if self.attempts < config.max_rebalance_retries or config.retry_endless:
            self._attempt()
            return
        name = self._group.group_id
        text = f"ConsumerRebalanceFailedException: {name} after {self.attempts} attempts"
        self._reign.core.log(Level.ERROR, text)
        self._group.given_up = True
        self._finish()

    def _attempt(self) -> None:
        self._group.rebalance_failed = False
        self._read()

    def _read(self) -> None:
        self._end_attempt()
        self.phase = Phase.READ
        self.snapshot = [member for _, member in sorted(self._group.members.items())]
        if not self.snapshot:
            self._finish()
            return
        current = self._current
        # The owners' read begins with a sync, so what is asked behind it sees no less.
        self._reader.read(self._group, lambda owners: self._told(current, owners=owners))
        names = self._names()
        self._reign.reader.read(names, lambda topics: self._told(current, topics=topics))

    def _names(self) -> list[str]:
        names: dict[str, None] = {}
        for member in self.snapshot:
            names.update(dict.fromkeys(member.subscription.topics))
            if member.subscription.pattern is not None:
                known = self._reign.interests.known
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
            elif (
                partitions is not Failure.NO_NODE
            ):  # A topic that is not there yet has no partitions (LC-11).
                self._unread(f"topic {name}", partitions)
                return
        self._compare(self._owners, target_of(self.snapshot, found))

    def _unread(self, what: str, failure: Failure) -> None:
        if not uncertain((failure,)):
            text = f"group {self._group.group_id}: {what} cannot be read: {failure.value}"
            self._reign.core.log(Level.ERROR, text)
        self.fail(f"{what} could not be read")

    def _compare(self, owners: Owners, target: dict[Partition, str]) -> None:
        """Needed if anything in ZooKeeper differs, or somebody has not been started here (era 7.4)."""
        if owners.threads == target and all(member.started for member in self.snapshot):
            self.succeed()
        else:
            self._free(owners, target)

    def _free(self, owners: Owners, target: dict[Partition, str]) -> None:
        """Wait until former members must have stopped, while others read on; then stop all (era 7.5)."""
        now_ms = self._reign.core.now_ms
        blockers = self._group.blockers(iter(target), now_ms, self.snapshot)
        if blockers:
            self.phase = Phase.FREE
            until = max(member.lease_end_ms for member in blockers)
            self._arm(max(until, now_ms + 1), lambda: self._free(owners, target))
            return
        self.phase = Phase.MOVE
        self._moves = Moves(self._reign, self._group, self, owners, target)
        self._moves.stop()

    def _arm(self, due_ms: int, action: Callable[[], None]) -> None:
        self._timer = self._reign.timers.arm(due_ms, action)

    def _end_attempt(self) -> None:
        """Whatever the attempt still waits for comes too late (era 7.11)."""
        self._current += 1
        self._reign.timers.cancel(self._timer)
        self._owners = self._topics = None
        if self._moves is not None:
            self._moves.over = True
            self._moves = None

    def _finish(self) -> None:
        self._done()
