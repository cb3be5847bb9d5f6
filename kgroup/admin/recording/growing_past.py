"""The history of groups that goes on from look to look: each record is read once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kgroup.admin.diagnose.group_records import Recorded, recorded_by
from kgroup.admin.diagnose.histories import Past
from kgroup.admin.discovery import ClusterView
from kgroup.domain import OFFSETS_TOPIC, grouped
from kgroup.errors import BrokerRefused, ErrorCode, KgroupError
from kgroup.history.fold.events import Event, Kind
from kgroup.history.replay import Reader, in_order
from kgroup.history.sources.live import LiveLog, LiveTopic

NEWEST = 20
"""The number of events of each kind that are kept however old they are."""


class GrowingPast(Past):
    """The history of all groups, read on at each look. `look_for` begins one."""

    def __init__(self, cluster: ClusterView) -> None:
        super().__init__(cluster, ())
        self._readers: dict[int, Reader] = {}
        self._events: dict[str, list[Event]] = {}
        self._ids: frozenset[bytes] = frozenset()
        self._since_ms = 0

    def look_for(
        self, names: Iterable[str], since_ms: int, topics: Mapping[bytes, str] | None = None
    ) -> None:
        """Begin a look at these groups; events before `since_ms` may be forgotten.

        `topics` are the names of all topics, where they are known already.
        """
        before = self._topic.topic_names if isinstance(self._topic, LiveTopic) else {}
        self._wanted, self._since_ms = list(dict.fromkeys(names)), since_ms
        self._read.clear()
        self._known.clear()
        self._deliveries = None
        topic = self._topic
        if isinstance(topic, LiveTopic):
            topic.try_again()
            try:
                topic.refresh(topics)
            except KgroupError:
                topic = None
        if not isinstance(topic, LiveTopic):
            self._topic = None  # opened again
            topic = self.topic()
        if isinstance(topic, LiveTopic):
            ids = frozenset(id_ for id_, name in topic.topic_names.items() if name == OFFSETS_TOPIC)
            if ids != self._ids or len(topic.partitions) < len(self._readers):
                self._readers.clear()  # another topic of this name
                self._events.clear()
            self._ids = ids
            self._by_partition = topic.by_partition(self._wanted)
            self._learn(
                topic, {id_: topic.topic_names[id_] for id_ in topic.topic_names.keys() - before.keys()}
            )

    def _learn(self, topic: LiveTopic, names: Mapping[bytes, str]) -> None:
        """Use these connections, and let what is read next name new topics."""
        for number, reader in list(self._readers.items()):
            assert isinstance(reader.log, LiveLog)
            reader.log.topic = topic
            # What was read has a topic without its name: it is read again.
            if reader.seen.records and [
                id_ for id_, name in names.items() if reader.fold.names.learn(id_, name)
            ]:
                self._forget(number)

    def _forget(self, number: int) -> None:
        """Let the next look read a partition from its start."""
        for group in self._readers.pop(number).fold.groups:
            self._events.pop(group, None)

    def _look_into(self, topic: LiveTopic, number: int) -> dict[str, Recorded]:
        reader = self._readers.get(number)
        if reader is None:
            log = LiveLog(topic, number, tolerant=True)
            reader = self._readers[number] = Reader(log, topic_names=topic.topic_names)
        # Commits that go on are one event, as where the log is read at once.
        for group, new in grouped((e.group, e) for e in in_order(reader.advance(spans=False))).items():
            self._events[group] = _recent([*self._events.get(group, ()), *new], self._since_ms)
        if (failure := reader.log.failure) is not None:
            if isinstance(failure, BrokerRefused) and failure.code == ErrorCode.OFFSET_OUT_OF_RANGE:
                self._forget(number)  # the log lost what was read
            raise failure
        names = self._by_partition[number]
        open_ = grouped((e.group, e) for e in reader.fold.commits_so_far())
        events = {name: [*self._events.get(name, ()), *open_.get(name, ())] for name in names}
        return recorded_by(topic, reader.fold, events, reader.coverage)


def _recent(events: Sequence[Event], since_ms: int) -> list[Event]:
    """Return the events that a check-up may use: the newest of each kind, and all others of the window."""
    left: dict[Kind, int] = {}
    kept = []
    for event in reversed(events):
        count = left[event.kind] = left.get(event.kind, 0) + 1
        if count <= NEWEST or event.last_ms >= since_ms:
            kept.append(event)
    return kept[::-1]
