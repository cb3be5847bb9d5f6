"""What an active coordinator has, from election to resignation: registries and all that works on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kgroup.zookeeper.coordinator.answers import Answers
from kgroup.zookeeper.coordinator.core import Core, Then
from kgroup.zookeeper.coordinator.directory import Directory
from kgroup.zookeeper.coordinator.events import Level
from kgroup.zookeeper.coordinator.interests import Interests
from kgroup.zookeeper.coordinator.rebalancers import Rebalancers
from kgroup.zookeeper.coordinator.recovery import Recovery
from kgroup.zookeeper.coordinator.registration import Registration
from kgroup.zookeeper.coordinator.registries import Group, RegisteredConsumer
from kgroup.zookeeper.coordinator.requests import Pings, Purgatory
from kgroup.zookeeper.coordinator.timers import Timers
from kgroup.zookeeper.coordinator.topics import TopicReader
from kgroup.zookeeper.coordinator.writes import Committer, Writes
from kgroup.zookeeper.store.operations import Read, Result, Write


class Term:
    """One time of being the coordinator; `end` is for good, and nothing it asked for is heard of any more."""

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
        self.writes = Writes(self)
        self.interests = Interests(self)
        self.pings = Pings(self)
        self.rebalancers = Rebalancers(self)
        self.recovery = Recovery(self)
        self.committer = Committer(self)
        self.registration = Registration(self)
        self.answers = Answers(self)

    def start(self, ready: Callable[[], None]) -> None:
        """Start in the draft's order, and call `ready` then (era 3.4).

        The session's end is an event that always comes, the rebalancers are there: reading takes time.
        """

        def read() -> None:
            self.committer.start()
            ready()

        self.interests.start(lambda: self.directory.once_known(lambda: None if self.over else read()))

    def end(self) -> None:
        """Close every consumer's connection and forget everything, writing nothing (era 3.5)."""
        self.over = True
        for conn in self.members:
            self.core.close(conn)
        self.members.clear()
        self.groups.clear()

    def ask(self, ops: Sequence[Read] | Sequence[Write], then: Then, *, watch: bool = False) -> None:
        """As `Core.ask`; answers that come after the end change nothing (era 7.11)."""

        def answered(results: Sequence[Result]) -> None:
            if not self.over:
                then(results)

        self.core.ask(ops, answered, watch=watch)

    def when_connected(self, action: Callable[[], None]) -> None:
        """As `Core.when_connected`, until the end."""
        self.core.when_connected(lambda: None if self.over else action())

    def fail(self, member: RegisteredConsumer, why: str, *, closed: bool = False) -> None:
        """The member is no more, in the draft's order (era 5.5)."""
        group = self.groups[member.registration.group_id]
        self.core.log(Level.INFO, f"consumer {member.consumer_id} of group {group.group_id}: {why}")
        self.pings.stop(member)
        if not closed:
            self.core.close(member.conn)
        del self.members[member.conn]
        del group.members[member.consumer_id]
        member.gone = True
        self.purgatory.drop(member)
        if member.holds:
            group.departed[member.consumer_id] = member
        if group.run is not None:
            group.run.member_failed()
        if group.members:
            self.rebalancers.add(group)
        else:
            self.recovery.idle(group)
