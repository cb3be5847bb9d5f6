"""Commits one by one, as `__consumer_offsets` has them: when they came, and how long each let records wait.

A check-up knows the last commit of each partition. A reader that commits once a minute, as Kafka Connect
does, is silent for a minute again and again; only its commits before show that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from kgroup.admin.discovery import ClusterView
from kgroup.admin.read.record_times import Untimed, times_at
from kgroup.admin.statuses import SPAN_MS, Unseen
from kgroup.domain import TopicPartition, grouped
from kgroup.errors import KgroupError
from kgroup.history.decode.decoder import Decoder
from kgroup.history.log_items import CommitRun, Item, Marker, PendingCommit
from kgroup.history.sources.live import LiveLog, LiveTopic

KEPT = 5
"""The number of a partition's last commits that are compared each with the one before."""
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


def hand_over(
    topic: LiveTopic, since_ms: Mapping[Key, int], is_last: Callable[[Key, Point], bool]
) -> dict[str, KgroupError]:
    """Hand over the commits of each partition from its time on, in the order of the log, until the last one.

    Return by group why some of its commits may be missing.
    """
    missing: dict[str, KgroupError] = {}
    of_group = grouped((key[0], key) for key in since_ms)
    for number, names in topic.by_partition(of_group).items():
        wanted = {key for name in names for key in of_group[name]}
        try:
            for key, point in _commits_from(topic, number, names, min(since_ms[key] for key in wanted)):
                if key in wanted and point.at_ms >= since_ms[key] and is_last(key, point):
                    wanted.remove(key)
                if not wanted:
                    break
        except KgroupError as error:
            missing |= dict.fromkeys(names, error)
    return missing


def _commits_from(
    topic: LiveTopic, number: int, names: Sequence[str], from_ms: int
) -> Iterator[tuple[Key, Point]]:
    """Yield the commits of some groups in one partition from a time on."""
    begun: dict[int, dict[Key, Point]] = {}
    for item in items_from(topic, number, names, from_ms):
        yield from _in(item, begun, topic)


def items_from(topic: LiveTopic, number: int, names: Collection[str], from_ms: int) -> Iterator[Item]:
    """Yield what one partition has of some groups from a time on: the check-up read it, undamaged."""
    if (at := topic.offset_at(number, from_ms)) < 0:
        return
    decoder = Decoder(names=names, runs=False)
    for chunk, headers in LiveLog(topic, number, at).batches():
        yield from decoder.feed(chunk, headers)
    yield from decoder.flush()


def _in(item: Item, begun: dict[int, dict[Key, Point]], topic: LiveTopic) -> Iterator[tuple[Key, Point]]:
    """Yield the commits that count from here on, of topics that are there: offsets of others are of no log.

    `begun` are the last ones of transactions that have not ended: the others never count.
    """
    if isinstance(item, CommitRun):
        for part in item.parts:
            if topic.knows(part.last.topic_id):
                yield (item.group, part.place), Point(part.first, part.first_timestamp_ms)
    elif isinstance(item, PendingCommit):
        partition = TopicPartition(item.topic, item.partition)
        point = Point(item.commit.offset, item.commit.timestamp_ms)
        if topic.knows(item.commit.topic_id):
            begun.setdefault(item.producer_id, {})[item.group, partition] = point
    elif isinstance(item, Marker) and (ended := begun.pop(item.producer_id, {})) and item.committed:
        yield from ended.items()


def steps_of(
    cluster: ClusterView, topic: LiveTopic, newest_ms: Mapping[Key, int]
) -> tuple[dict[str, list[Step]], dict[str, KgroupError]]:
    """Return by group the last commits of its partitions, each with the one before, and why some are missing.

    `newest_ms` is when each was last committed: what is within SPAN_MS of a group's newest counts, and only
    commits that got on do.
    """
    of_group = grouped((name, ms) for (name, _), ms in newest_ms.items())
    since_ms = {name: max(those) - SPAN_MS for name, those in of_group.items()}
    kept = {key: deque[Point](maxlen=KEPT + 1) for key, ms in newest_ms.items() if ms >= since_ms[key[0]]}

    def keep(key: Key, point: Point) -> bool:
        if not kept[key] or kept[key][-1].offset != point.offset:
            kept[key].append(point)
        return point.at_ms >= newest_ms[key]

    missing = hand_over(topic, {key: since_ms[key[0]] for key in kept}, keep)
    pairs = ((key, pairwise(those)) for key, those in kept.items())
    steps = [(key, a, b) for key, those in pairs for a, b in those if b.offset > a.offset]
    times = times_at(cluster, {(p, a.offset) for (_, p), a, b in steps if b.at_ms - a.at_ms > SHORT_MS})
    written = {at: ms for at, ms in times.items() if not isinstance(ms, Untimed)}
    of_steps = grouped(
        (name, Step(partition, a.at_ms, b.at_ms, written.get((partition, a.offset))))
        for (name, partition), a, b in steps
    )
    return of_steps, missing
