"""Commits one by one, as `__consumer_offsets` has them: when they came, and how long each let records wait.

A check-up knows the last commit of each partition. A reader that commits once a minute, as Kafka Connect
does, is silent for a minute again and again; only its commits before show that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from kgroup.admin.discovery import ClusterView
from kgroup.admin.read.record_times import Untimed, times_at
from kgroup.admin.statuses import Unseen
from kgroup.domain import TopicPartition, grouped
from kgroup.errors import KgroupError
from kgroup.history.log_items import CommitRun, Item, Marker, PendingCommit
from kgroup.history.sources.live import LiveLog, LiveTopic

KEPT = 5
"""The number of a partition's last commits that are compared each with the one before."""
SPAN_MS = 3_600_000
"""So long before the newest commit of a group its others count."""
SHORT_MS = 5_000
"""What is shorter changes no bound."""
Key: TypeAlias = tuple[str, TopicPartition]
"""A group, and one of its partitions."""


class Point(NamedTuple):
    """A committed offset, and when it was committed in ms."""

    offset: int
    at_ms: int


class Step(NamedTuple):
    """Two commits of a partition in a row, and when the first record between was written, in ms.

    None where it has no time, or where the commits follow each other so soon that no bound depends on it.
    """

    partition: TopicPartition
    before_ms: int
    at_ms: int
    written_ms: int | KgroupError | None

    def waited_ms(self, late_ms: int) -> int:
        """Return how long it waited, at most, if records are stamped so late."""
        came_ms = self.written_ms + late_ms if isinstance(self.written_ms, int) else self.before_ms
        # One that was committed before it came is stamped wrongly, and may have come at once.
        return self.at_ms - (self.before_ms if came_ms > self.at_ms else max(self.before_ms, came_ms))


Learned: TypeAlias = tuple[Mapping[TopicPartition, int], Sequence[Step], Unseen | None]
"""When the partitions of a group that may stand still were committed, its steps, and why some are missing."""


def commits_from(
    topic: LiveTopic, number: int, names: Sequence[str], from_ms: int
) -> Iterator[tuple[Key, Point]]:
    """Yield the commits of some groups in one partition from a time on, in the order of the log."""
    from kgroup.history.decode.decoder import Decoder

    if (at := topic.offset_at(number, from_ms)) < 0:
        return
    decoder = Decoder(names=names, runs=False)
    begun: dict[int, list[tuple[Key, Point]]] = {}
    for chunk, headers in LiveLog(topic, number, at).batches():
        for item in decoder.feed(chunk, headers):
            yield from _in(item, begun)
    for item in decoder.flush():
        yield from _in(item, begun)


def _in(item: Item, begun: dict[int, list[tuple[Key, Point]]]) -> Iterator[tuple[Key, Point]]:
    """Yield the commits that count from here on; `begun` are those of transactions that have not ended."""
    if isinstance(item, CommitRun):
        for part in item.parts:
            yield (item.group, part.place), Point(part.first, part.first_timestamp_ms)
    elif isinstance(item, PendingCommit):
        partition = TopicPartition(item.topic, item.partition)
        point = Point(item.commit.offset, item.commit.timestamp_ms)
        begun.setdefault(item.producer_id, []).append(((item.group, partition), point))
    elif isinstance(item, Marker) and (ended := begun.pop(item.producer_id, [])) and item.committed:
        yield from ended


def steps_of(cluster: ClusterView, topic: LiveTopic, newest_ms: Mapping[Key, int]) -> dict[str, list[Step]]:
    """Return by group the last commits of its partitions, each with the one before.

    `newest_ms` is when each was last committed: what is within SPAN_MS of a group's newest counts, and only
    commits that got on do. Raise KgroupError where they cannot be read.
    """
    steps: list[tuple[Key, Point, Point]] = []
    of_group = grouped((name, ((name, p), ms)) for (name, p), ms in newest_ms.items())
    since_ms = {name: max(ms for _, ms in those) - SPAN_MS for name, those in of_group.items()}
    for number, names in topic.by_partition(of_group).items():
        missing = {key: ms for name in names for key, ms in of_group[name] if ms >= since_ms[name]}
        kept = {key: deque[Point](maxlen=KEPT + 1) for key in missing}
        for key, point in commits_from(topic, number, names, min(since_ms[name] for name in names)):
            if key in kept and point.at_ms >= since_ms[key[0]]:
                kept[key].append(point)
            if key in missing and point.at_ms >= missing[key]:
                del missing[key]
            if not missing:
                break
        pairs = ((key, pairwise(those)) for key, those in kept.items())
        steps += [(key, a, b) for key, those in pairs for a, b in those if b.offset > a.offset]
    times = times_at(cluster, {(p, a.offset) for (_, p), a, b in steps if b.at_ms - a.at_ms > SHORT_MS})
    written = {at: ms for at, ms in times.items() if not isinstance(ms, Untimed)}
    return grouped(
        (name, Step(partition, a.at_ms, b.at_ms, written.get((partition, a.offset))))
        for (name, partition), a, b in steps
    )
