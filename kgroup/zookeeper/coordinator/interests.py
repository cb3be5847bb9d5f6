"""Which groups a topic is of interest to, and what happens to them when topics change (era 6.1 to 6.6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kgroup.zookeeper.coordinator import paths
from kgroup.zookeeper.coordinator.core import UNCERTAIN, reason, uncertain
from kgroup.zookeeper.coordinator.events import Level
from kgroup.zookeeper.coordinator.registries import Group, RegisteredConsumer
from kgroup.zookeeper.coordinator.topics import Found, Partitions
from kgroup.zookeeper.store.operations import Children, Exists, Failure, Result

if TYPE_CHECKING:
    from kgroup.zookeeper.coordinator.term import Term


class Interests:
    """The draft's consumerGroupsPerTopic and groupsWithWildcardTopics, and the watches on topics.

    Whatever a watch says, everything it stood for is read again under a new watch and compared with what was
    read last: so no change is lost between, and none is acted upon twice (era 6.3).
    """

    def __init__(self, term: Term) -> None:
        self._term = term
        self.known: dict[str, Partitions | None] = {}
        self.groups_of: dict[str, dict[str, Group]] = {}
        self.wildcards: dict[str, Group] = {}
        self._started: Callable[[], None] | None = None
        self._listings = 0

    @property
    def starting(self) -> bool:
        """Whether the topics are being read for the first time."""
        return self._started is not None

    def start(self, then: Callable[[], None]) -> None:
        """Read all topics, with empty sets, under watches."""
        self._started = then
        self._list()

    def fired(self, path: str) -> None:
        """A watch saw something, or was lost."""
        if path == paths.TOPICS:
            self._list()
        elif path.startswith(paths.TOPICS + "/"):
            name = path[len(paths.TOPICS) + 1 :].partition("/")[0]
            if name in self.known:
                self._read([name])

    def add(self, group: Group, member: RegisteredConsumer) -> None:
        """The group is interested in what the member reads."""
        for topic in member.subscription.topics:
            self._interest(group, topic)
        if member.subscription.pattern is not None:
            self.wildcards[group.group_id] = group
            for topic in self.known:
                if member.subscription.streams_of(topic):
                    self._interest(group, topic)

    def drop(self, group: Group) -> None:
        """The group is no more."""
        self.wildcards.pop(group.group_id, None)
        for topic in group.topics:
            groups = self.groups_of.get(topic, {})
            groups.pop(group.group_id, None)
            if not groups:
                self.groups_of.pop(topic, None)
        group.topics.clear()

    def _interest(self, group: Group, topic: str) -> None:
        self.groups_of.setdefault(topic, {})[group.group_id] = group
        group.topics[topic] = None

    def _list(self) -> None:
        self._listings += 1
        listing = self._listings
        self._term.ask((Children(paths.TOPICS),), lambda results: self._listed(listing, results), watch=True)

    def _listed(self, listing: int, results: Sequence[Result]) -> None:
        (names,) = results
        if listing != self._listings:
            return
        if names is Failure.NO_NODE:
            # No broker has been here yet: there are no topics, until the node is made.
            self._term.ask((Exists(paths.TOPICS),), self._found_after_all, watch=True)
            names = ()
        if not isinstance(names, tuple):
            if not uncertain(results):
                self._term.core.log(Level.ERROR, f"{paths.TOPICS} cannot be read: {reason(names)}")
            self._term.when_connected(lambda: self._list() if listing == self._listings else None)
            return
        for gone in [name for name in self.known if name not in set(names)]:
            self._gone(gone)
        self._read([name for name in names if name not in self.known])

    def _found_after_all(self, results: Sequence[Result]) -> None:
        if not isinstance(results[0], Failure):
            self._list()

    def _read(self, names: list[str]) -> None:
        self._term.reader.read(names, lambda found: self._told(names, found), watch=True)

    def _told(self, names: list[str], found: Found) -> None:
        if any(partitions in UNCERTAIN for partitions in found.values()):
            # New ones are not known yet, so listing again would find them; known ones have to be read.
            self._term.when_connected(lambda: self._read(names))
            return
        for name, partitions in found.items():
            self._learnt(name, partitions)
        if self._started is not None:
            started, self._started = self._started, None
            started()

    def _learnt(self, name: str, partitions: Partitions | Failure) -> None:
        if partitions is Failure.NO_NODE:
            if name in self.known:
                self._gone(name)
            return
        if isinstance(partitions, Failure):
            self._term.core.log(Level.ERROR, f"topic {name} cannot be read: {partitions.value}")
        new = name not in self.known
        told = None if isinstance(partitions, Failure) else partitions
        if not new and self.known[name] == told:
            return
        self.known[name] = told
        if new:
            self._match(name)
        self._trigger(name)

    def _gone(self, name: str) -> None:
        """The next attempt of each group drops its owners (era 6.6)."""
        del self.known[name]
        self._trigger(name)

    def _trigger(self, name: str) -> None:
        for group in self.groups_of.get(name, {}).values():
            self._term.rebalancers.add(group)

    def _match(self, name: str) -> None:
        for group in self.wildcards.values():
            members = group.members.values()
            if any(
                member.subscription.pattern and member.subscription.streams_of(name) for member in members
            ):
                self._interest(group, name)
