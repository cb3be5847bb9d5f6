"""Offsets that are committed by no member of their group: only `__consumer_offsets` shows it.

A reader that assigns its partitions itself commits so. It notices no reset, and no deletion.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kgroup.admin.discovery import Answers, ClusterView
from kgroup.admin.read.broker_clock import clock_of
from kgroup.admin.read.history import read_each, whole_story
from kgroup.domain import count_of, first_of, grouped
from kgroup.durations import utc
from kgroup.errors import KgroupError

if TYPE_CHECKING:
    from kgroup.history.fold.events import Event
    from kgroup.history.sources.live import LiveLog

WINDOW_MS = 600_000
"""Who commits that rarely is no reader at work."""
REPEATED_MS = 10_000
"""Commits over so long are no single change."""


def commits_in(events: Sequence[Event], *, empty: bool) -> Iterator[Event]:
    """Yield the commits; those in transactions as one until members come or go, and as members' or others'.

    `empty`: the group has no members now. A commit in a transaction of one whose member is not known counts
    as a member's.
    """
    from kgroup.history.fold.events import OF_COMMITS, OF_OFFSETS, Kind

    begun: Event | None = None
    alone = False
    left = max((n for n, event in enumerate(events) if event.kind not in OF_OFFSETS), default=-1)
    for number, event in enumerate(events):
        if event.kind in OF_COMMITS:
            yield event
        elif event.kind == Kind.TRANSACTION_COMMITTED:
            kind = Kind.COMMITTED_OUTSIDE if alone or (empty and number > left) else Kind.COMMITTED
            begun = _joined(begun, replace(event, kind=kind))
        elif event.kind not in OF_OFFSETS:
            if begun is not None:
                yield begun
            begun = None
            alone = event.kind == Kind.GROUP_EMPTIED or (alone and event.kind != Kind.MEMBER_JOINED)
    if begun is not None:
        yield begun


def _joined(begun: Event | None, event: Event) -> Event:
    if begun is None:
        return event
    partitions = tuple(sorted({*begun.partitions, *event.partitions}))
    detail = f"transactions committed {count_of(begun.count + event.count, 'offset')}"
    return replace(
        begun,
        partitions=partitions,
        count=begun.count + event.count,
        end_timestamp_ms=event.last_ms,
        detail=detail,
    )


def from_outside(
    events: Sequence[Event], since_ms: int, memberless: bool, *, empty: bool = True
) -> list[Event]:
    """Return the commits since a time that no member made, again and again.

    A single change of an admin is none. In a `memberless` group all commits are from outside, in one that is
    `empty` those since its last member went.
    """
    from kgroup.history.fold.events import Kind

    kinds = {Kind.COMMITTED_OUTSIDE, Kind.COMMITTED_UNOWNED, *([Kind.COMMITTED] if memberless else ())}
    return [
        event
        for event in commits_in(events, empty=empty)
        if event.last_ms >= since_ms
        and event.kind in kinds
        and event.last_ms - event.timestamp_ms >= REPEATED_MS
    ]


def outside_commits(cluster: ClusterView, group_ids: Sequence[str]) -> Answers[str | None]:
    """Return in words who commits of late in each of these groups, which have no members now.

    None where nobody does, and a failure where the records cannot be read.
    """
    from kgroup.history.fold.events import OF_OFFSETS
    from kgroup.history.sources.live import LiveTopic

    if not group_ids:
        return {}
    since_ms = clock_of(cluster, cluster.now_ms()).least_ms - WINDOW_MS

    def recent(log: LiveLog, names: list[str]) -> Mapping[str, str | KgroupError | None]:
        begins = log.topic.offset_at(log.partition, since_ms)
        if begins < 0:
            return dict.fromkeys(names)
        # With the record before, it shows whether any is missing in between.
        log.position = first = max(begins - 1, 0)
        story = whole_story(log, names, log.topic.topic_names)
        missing: KgroupError | None = None
        if any(read.missing or read.first_offset > first for read in story.coverage):
            missing = KgroupError(f"{log.source} has only what compaction left since {utc(since_ms)}")
        events = grouped((event.group, event) for event in story.events)
        words = dict[str, str | KgroupError | None]()
        for name in names:
            mine = events.get(name, ())
            # Without members now, it had none since the last of its records about them.
            left_ms = max((e.timestamp_ms for e in mine if e.kind not in OF_OFFSETS), default=-1)
            after = [event for event in mine if event.timestamp_ms >= left_ms]
            words[name] = _words(from_outside(after, since_ms, memberless=True)) or missing
        return words

    try:
        topic = LiveTopic(cluster.transport, cluster.retry.timeout_s)
    except KgroupError as error:
        return dict.fromkeys(group_ids, error)
    return read_each(topic, group_ids, recent)


def _words(events: Sequence[Event]) -> str | None:
    if not events:
        return None
    partitions = sorted({str(partition) for event in events for partition in event.partitions})
    last = max(event.last_ms for event in events)
    who = "a reader that assigns its partitions itself does not notice this change: stop it first"
    return f"offsets of {first_of(partitions, 3)} were committed by no member until {utc(last)}; {who}"
