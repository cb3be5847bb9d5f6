"""A group's timeline from its tables, and the ends of logs from its cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from kgroup.admin.discovery import ClusterView
from kgroup.admin.read.offsets import LATEST, ListedOffset, list_offsets
from kgroup.domain import TopicPartition
from kgroup.errors import ErrorCode, GroupNotFound
from kgroup.history.replay import Coverage
from kgroup.pipeline.ask.jobs import Question, progress
from kgroup.pipeline.ask.story import story_in
from kgroup.pipeline.ask.timeline import Ends, Span, Timeline, span_seconds, timeline
from kgroup.pipeline.schemas import Row
from kgroup.pipeline.tables.store import Store


def log_ends(cluster: ClusterView, places: Iterable[TopicPartition]) -> Ends:
    """Return the ends of these partitions' logs now, of those that can be seen."""
    found = list_offsets(cluster, dict.fromkeys(places, LATEST))
    known = {place: end.offset for place, end in found.items() if isinstance(end, ListedOffset)}
    return Ends(int(time.time() * 1000), known)


def timeline_in(
    store: Store,
    group: str,
    ask: Callable[[Question], list[Row]],
    ends_of: Callable[[Iterable[TopicPartition]], Ends] | None = None,
) -> tuple[Timeline, list[Coverage]]:
    """Return the timeline of a group, and what the tables have of its partition; raise GroupNotFound.

    `ask` answers questions about the tables, `ends_of` finds the ends of logs, which the tables lack.
    """
    story = story_in(store, group)
    events = [event for event in story.events if event.group == group]
    if not events:
        text = f"there is no record of group {group} in {store.root}"
        raise GroupNotFound(ErrorCode.GROUP_ID_NOT_FOUND, text)
    seconds = span_seconds(events)
    rows = ask(progress(group, seconds * 1000))
    spans = [
        Span(r["start"], TopicPartition(r["topic"], r["partition"]), r["commits"], r["offset"]) for r in rows
    ]
    ends = ends_of({span.place for span in spans}) if ends_of is not None else None
    own = {event.log_partition for event in events}
    covered = [c for c in story.coverage if c.partition in own]
    read_ms = max(c.last_ms for c in covered)
    return timeline(group, events, spans, seconds, ends, read_ms=read_ms), covered
