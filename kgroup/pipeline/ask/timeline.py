"""One group over time, as numbers for its pictures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from kgroup.domain import TopicPartition
from kgroup.history.fold.events import Event, Kind, duration_text

LANES: Mapping[str, frozenset[Kind]] = {
    "rebalances": frozenset(
        {Kind.REBALANCE_STARTED, Kind.REBALANCE_COMPLETED, Kind.UPGRADED, Kind.DOWNGRADED}
    ),
    "members": frozenset(
        {Kind.MEMBER_JOINED, Kind.MEMBER_LEFT_FOR_NOW, Kind.MEMBER_LEFT_OR_EXPIRED, Kind.MEMBER_REPLACED}
    ),
    "suspicious": frozenset({Kind.REWOUND, Kind.COMMITTED_UNOWNED, Kind.EPOCH_REGRESSED}),
}
COLOURS = {"rebalances": "#2563eb", "members": "#64748b", "suspicious": "#dc2626"}
WIDEST = 1000
"""Approximate number of points of a curve."""


class Span(NamedTuple):
    """What happened to one partition in a time span from `start_ms`."""

    start_ms: int
    place: TopicPartition
    commits: int
    offset: int


class Ends(NamedTuple):
    """The ends of the topics' logs at `at_ms`, as their brokers reported them."""

    at_ms: int
    offsets: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class Timeline:
    """A group's events, commits by span of `span_ms`, and distance from the logs' ends; times in ms.

    `behind` counts, span by span, the records between the last commit and the end of the log at `ends_ms`,
    over all partitions committed so far: an upper bound of the lag. `read_ms` is when the last record was
    written that the tables hold: they know no commit after it.
    """

    group: str
    events: Sequence[Event]
    span_ms: int
    rates: Sequence[tuple[int, int]]
    behind: Sequence[tuple[int, int]]
    ends_ms: int | None
    remark: str
    read_ms: int

    @property
    def bounds(self) -> tuple[int, int]:
        """The first and the last moment."""
        times = [t for e in self.events for t in (e.timestamp_ms, e.end_timestamp_ms) if t >= 0]
        times += [t for start, _ in self.rates for t in (start, start + self.span_ms)]
        if self.behind and self.ends_ms is not None:
            times.append(self.ends_ms)
        return min(times, default=0), max(times, default=1)

    @property
    def distance_text(self) -> str:
        """What the curve of distances shows, or why there is none."""
        if self.ends_ms is None:
            return "the ends of the logs are not in this topic: name the cluster with -b for the distance"
        when = datetime.fromtimestamp(self.ends_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        if not self.behind:
            return f"no partition of the group had a log at {when}"
        text = f"upper bound of the lag: records from each commit to the end of its log at {when}"
        if (age := self.ends_ms - self.read_ms) >= 1000 and self.read_ms >= 0:
            text += f"; the tables know no commit of the last {duration_text(age)} before it"
        return text


def span_seconds(events: Iterable[Event]) -> int:
    """Return the width of spans for these events: whole minutes, about a thousand spans at most."""
    times = [t for e in events for t in (e.timestamp_ms, e.end_timestamp_ms) if t >= 0]
    minutes = (max(times, default=0) - min(times, default=0)) / 60_000
    return 60 * max(1, -(-int(minutes) // WIDEST))


def timeline(
    group: str,
    events: Iterable[Event],
    spans: Iterable[Span],
    seconds: int,
    ends: Ends | None = None,
    remark: str = "",
    read_ms: int = -1,
) -> Timeline:
    """Return the data of the pictures; `spans` in any order, `events` of other groups are omitted."""
    own = [event for event in events if event.group == group]
    rates: dict[int, int] = {}
    moves: dict[int, dict[TopicPartition, int]] = {}
    for span in spans:
        rates[span.start_ms] = rates.get(span.start_ms, 0) + span.commits
        moves.setdefault(span.start_ms, {})[span.place] = span.offset
    behind: list[tuple[int, int]] = []
    at: dict[TopicPartition, int] = {}
    for start in sorted(moves):
        at |= {p: offset for p, offset in moves[start].items() if ends and p in ends.offsets}
        if at and ends is not None:
            behind.append((start, sum(max(0, ends.offsets[p] - offset) for p, offset in at.items())))
    ends_ms = None if ends is None else ends.at_ms
    return Timeline(group, own, seconds * 1000, sorted(rates.items()), behind, ends_ms, remark, read_ms)


def line_of(event: Event) -> str:
    """Return an event in one line."""
    span = event.end_timestamp_ms - event.timestamp_ms
    took = f"took {duration_text(span)}" if span > 0 else ""
    return " · ".join(text for text in (str(event.kind), event.detail, event.cause or "", took) if text)
