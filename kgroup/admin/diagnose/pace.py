"""Readers that go on and fall behind: records come faster than they take them.

One look cannot tell them from readers that catch up, so two earlier commits are read from
`__consumer_offsets`: the first of the last ten minutes, and the first of the later half since then. A
partition falls behind if in both halves its oldest unread record grew older and more records waited.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from kgroup.admin.diagnose.commits import Key, Point, hand_over
from kgroup.admin.diagnose.facts import Facts
from kgroup.admin.diagnose.histories import Past
from kgroup.admin.diagnose.reading import At, Course, Times, with_statuses
from kgroup.admin.discovery import ClusterView
from kgroup.admin.models import OffsetRow
from kgroup.admin.read.offsets import ListedOffset, list_offsets
from kgroup.admin.read.readable import untimed
from kgroup.admin.read.record_times import Untimed, once_each, times_at
from kgroup.admin.refusals import code_name
from kgroup.admin.statuses import HISTORY, WARN, PartitionStatus, Status, Unseen, unknown
from kgroup.domain import TopicPartition
from kgroup.durations import utc
from kgroup.errors import KgroupError
from kgroup.history.fold.events import duration_text
from kgroup.history.sources.live import LiveTopic

BEHIND_MS = 60_000
"""The age of the oldest unread record from which a reader may fall behind."""
WINDOW_MS = 600_000
HALF_MS = 30_000
"""The shortest half in which growth shows: commits are seconds apart."""
PART = 20
"""Age grows if it does by this part of the time that passed: commits and records come unevenly."""
Ends: TypeAlias = Mapping[At, ListedOffset | KgroupError]


class Waiting(NamedTuple):
    """What waited at a commit: the age of the oldest record in ms, and how many records."""

    at_ms: int
    age_ms: int
    records: int


def judge_pace(
    cluster: ClusterView, facts: list[Facts], courses: Iterable[Course], past: Past
) -> list[Facts]:
    """Return the facts with the partitions that fall behind, of those whose readers go on.

    It costs two short reads of each offsets partition that has such a group, and a few requests per leader
    for all of them. Where one fails, the status is unknown.
    """
    going = [(course, [*course.going(BEHIND_MS)]) for course in courses]
    going = [(course, those) for course, those in going if those]
    topic = past.topic() if going else None
    if not isinstance(topic, LiveTopic):
        return facts
    statuses = _statuses(cluster, topic, going)
    return [with_statuses(f, statuses.get(f.group.group_id, {})) for f in facts]


def _statuses(
    cluster: ClusterView,
    topic: LiveTopic,
    going: Sequence[tuple[Course, Sequence[tuple[TopicPartition, OffsetRow, int]]]],
) -> dict[str, dict[TopicPartition, Status]]:
    """Return by group the partitions that fall behind, or why that is not known."""
    newest = {
        (course.facts.group.group_id, p): Point(row.committed_offset or 0, course.committed_ms[p])
        for course, those in going
        for p, row, _ in those
    }
    told = {
        (course.facts.group.group_id, p): known
        for course, those in going
        for p, _, _ in those
        if (known := course.points(p))
    }
    points, missing = _points(topic, newest, told)
    earlier = {(partition, point) for (_, partition), pair in points.items() for point in pair}
    times = times_at(cluster, {(partition, point.offset) for partition, point in earlier})
    ends = _ends_at(cluster, {(partition, point.at_ms) for partition, point in earlier})
    statuses: dict[str, dict[TopicPartition, Status]] = {}
    for course, those in going:
        name = course.facts.group.group_id
        if error := missing.get(name):
            failed = unknown(Unseen(HISTORY, code_name(error), f"whether it keeps up: {error.message}"))
            statuses[name] = {partition: failed for partition, _, _ in those}
            continue
        for partition, row, age_ms in those:
            offset, newest_ms = newest[name, partition]
            now = Waiting(newest_ms, age_ms, (row.log_end_offset or 0) - offset)
            if (name, partition) in points:
                said = _status(partition, row, points[name, partition], now, times, ends)
            elif (name, partition) in told:
                said = None  # what brokers deleted of that log is gone for all
            else:
                lost = course.facts.lost(newest_ms - WINDOW_MS, f"whether {partition} falls behind")
                said = None if lost is None else unknown(lost)
            if said is not None:
                statuses.setdefault(name, {})[partition] = said
    return statuses


def _points(
    topic: LiveTopic, newest: Mapping[Key, Point], told: Mapping[Key, Sequence[Point]]
) -> tuple[dict[Key, tuple[Point, Point]], dict[str, KgroupError]]:
    """Return two earlier commits of each, where they are far enough apart, and the groups not read.

    Those of `told` are known without reading.
    """
    since_ms = {key: point.at_ms - WINDOW_MS for key, point in newest.items()}
    first, missing = _first_from(topic, since_ms, told)
    later = {key: (point.at_ms + newest[key].at_ms) // 2 for key, point in first.items()}
    second, missed = _first_from(topic, later, told)
    pairs = ((key, (first[key], point)) for key, point in second.items())
    apart = {
        key: pair
        for key, pair in pairs
        if all(b.at_ms - a.at_ms >= HALF_MS for a, b in pairwise((*pair, newest[key])))
    }
    return apart, missing | missed


def _first_from(
    topic: LiveTopic, since_ms: Mapping[Key, int], told: Mapping[Key, Sequence[Point]]
) -> tuple[dict[Key, Point], dict[str, KgroupError]]:
    """Return the first commit of each from its time on, of those that have one, and the groups not read."""
    late = {key: [at for at in told[key] if at.at_ms >= since_ms[key]] for key in told.keys() & since_ms}
    points = {key: those[0] for key, those in late.items() if those}

    def first(key: Key, point: Point) -> bool:
        points[key] = point
        return True

    return points, hand_over(topic, {key: ms for key, ms in since_ms.items() if key not in told}, first)


def _ends_at(cluster: ClusterView, pairs: Iterable[At]) -> dict[At, ListedOffset | KgroupError]:
    """Return the first record of each partition from a time on."""
    ends: dict[At, ListedOffset | KgroupError] = {}
    for asked in once_each(pairs):
        ends |= {(partition, asked[partition]): at for partition, at in list_offsets(cluster, asked).items()}
    return ends


def _status(
    partition: TopicPartition, row: OffsetRow, points: Sequence[Point], now: Waiting, times: Times, ends: Ends
) -> Status | None:
    """Return that it falls behind, or why that is not known; None where it does not."""
    waiting = []
    for point in points:
        written, end = times[partition, point.offset], ends[partition, point.at_ms]
        if isinstance(written, Untimed):
            return None  # that record was deleted since
        if isinstance(written, KgroupError):
            return unknown(untimed(partition, written))
        if isinstance(end, KgroupError):
            return unknown(untimed(partition, end))
        last = end.offset if end.offset >= 0 else row.log_end_offset or 0
        waiting.append(Waiting(point.at_ms, max(point.at_ms - written, 0), max(last - point.offset, 0)))
    waiting.append(now)
    if not all(
        b.records > a.records and b.age_ms - a.age_ms >= (b.at_ms - a.at_ms) // PART
        for a, b in pairwise(waiting)
    ):
        return None
    aged = ", ".join(f"{duration_text(wait.age_ms)} at {utc(wait.at_ms)}" for wait in waiting)
    return Status(
        PartitionStatus.FALLING_BEHIND,
        WARN,
        f"records come faster than they are taken; the age of the oldest unread one was {aged}",
    )
