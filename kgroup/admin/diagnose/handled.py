"""What members of share groups made of the records that they got, by the log of their deliveries.

The share coordinator writes a record when one was accepted, rejected, released or given up, or its lock timed
out, and none when a member gets one or renews its lock (KIP-932). So its log shows when a partition last got
on. Brokers delete what is before the newest snapshot of each partition, which they write after five minutes
at the latest: what was finished before, but not when, is in that.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kgroup.admin.diagnose.commits import KEPT, Point
from kgroup.domain import TopicPartition, grouped
from kgroup.history.fold.deliveries import DeliveryState
from kgroup.history.fold.events import Event, Kind
from kgroup.history.log_items import not_read
from kgroup.history.sources.live import LiveLog, LiveTopic

REJECTED_AFTER = 1
"""After one delivery only a rejection gives up a record: no broker's limit is below 2 (ShareGroupConfig)."""
APART_MS, POINTS = 10_000, 100
"""How far apart the moments are by which a group's pace is judged, and how many there are."""
MOST_FAILED = 1_000
"""The number of deliveries kept that were not finished."""
_UNFINISHED = (Kind.RECORDS_RELEASED, Kind.RECORDS_ARCHIVED, Kind.RECORDS_ARCHIVING)
_ENDED = (Kind.RECORDS_ACKNOWLEDGED, *_UNFINISHED)
_BEGUN = (Kind.DELIVERY_STATE_CREATED, Kind.START_OFFSET_SET)


class Done(NamedTuple):
    """Records that were accepted or rejected at once, first to last offset, and when in ms."""

    first: int
    last: int
    at_ms: int


class Failed(NamedTuple):
    """Deliveries of neighbouring records that ended otherwise, first to last offset."""

    first: int
    last: int
    deliveries: int
    at_ms: int
    given_up: bool


@dataclass(slots=True)
class Handled:
    """How a share group got on with one partition.

    `since_ms` is when a record was last accepted, or rejected at its first delivery, or where reading began
    anew; `whole` is False where that is only when the log begins: it may be long before. `complete`: the log
    has all of the partition. `done` are the last records that were finished, `points` some of them seconds
    apart, `failed` what ended otherwise since, and from `open_from` on a record is not done.
    """

    since_ms: int
    whole: bool
    complete: bool
    open_from: int = 0
    points: deque[Point] = field(default_factory=lambda: deque(maxlen=POINTS))
    done: deque[Done] = field(default_factory=lambda: deque(maxlen=KEPT + 1))
    failed: deque[Failed] = field(default_factory=lambda: deque(maxlen=MOST_FAILED))

    def finished_ms(self, limit: int | None) -> int:
        """Return when a record was last finished: what was delivered `limit` times was given up."""
        late = (end for end in self.failed if end.given_up and (limit is None or end.deliveries < limit))
        return max([self.since_ms, *(end.at_ms for end in late)])

    def rounds(self, since_ms: int) -> int:
        """Return how often the same record came back, or was given up, since this moment."""
        by_record = Counter(end.first for end in self.failed if end.at_ms > since_ms)
        return max(by_record.values(), default=0)

    def given_up(self, limit: int | None) -> int:
        """Return how many records were given up since one was finished; 0 where the limit is not known."""
        since_ms = self.finished_ms(limit)
        late = (end for end in self.failed if end.given_up and end.at_ms > since_ms)
        return sum(end.last - end.first + 1 for end in late)

    @property
    def delivered_ms(self) -> int | None:
        """By when the first record that is not done had been delivered, as it came back."""
        those = (end.at_ms for end in self.failed if end.first <= self.open_from <= end.last)
        return min(those, default=None)

    def take(self, event: Event) -> None:
        """Note how deliveries ended."""
        at_ms, released = event.timestamp_ms, event.kind == Kind.RECORDS_RELEASED
        rejected = not released and min(piece.deliveries for piece in event.records) <= REJECTED_AFTER
        if not event.proven and (self.whole or at_ms > self.since_ms):
            # What ended, but not when: records before it are missing.
            self._begin(at_ms, whole=False)
            self.complete = False
        if event.proven and (event.kind == Kind.RECORDS_ACKNOWLEDGED or rejected):
            self._begin(at_ms, whole=True)
            first, last = event.records[0].first_offset, event.records[-1].last_offset
            self.done.append(Done(first, last, at_ms))
            if not self.points or at_ms - self.points[-1].at_ms >= APART_MS:
                self.points.append(Point(last + 1, at_ms))
        elif released or event.proven:
            # What was on the way to the dead letters has been counted.
            sent = {end.first for end in self.failed if end.given_up} if not released else set()
            self.failed += [
                Failed(each.first_offset, each.last_offset, each.deliveries, at_ms, not released)
                for each in event.records
                if each.first_offset not in sent
            ]

    def _begin(self, since_ms: int, *, whole: bool) -> None:
        self.since_ms, self.whole = since_ms, whole
        self.failed.clear()


@dataclass(slots=True)
class DeliveryLog:
    """A share group's released or given-up deliveries in the log, and how it got on with each partition.

    `complete_from_ms` is the time from which nothing is missing; -1 if nothing ever was.
    """

    events: list[Event] = field(default_factory=list)
    handled: dict[TopicPartition, Handled] = field(default_factory=dict)
    complete_from_ms: int = -1
    damaged: str | None = None

    def take(self, events: Iterable[Event]) -> None:
        """Add what happened, in the order of the log."""
        for event in events:
            if event.kind in _UNFINISHED:
                self.events.append(event)
            for at in event.partitions:
                if event.kind == Kind.DELIVERY_STATE_DELETED:
                    self.handled.pop(at, None)
                elif event.kind in _BEGUN:
                    self.handled[at] = Handled(event.timestamp_ms, event.proven, event.proven)
                elif event.kind in _ENDED and at in self.handled:
                    self.handled[at].take(event)


def look_into_deliveries(
    topic: LiveTopic, topic_names: Mapping[bytes, str], group_ids: Collection[str]
) -> dict[str, DeliveryLog]:
    """Return these groups' records in `__share_group_state`; raise KgroupError if one is unreadable.

    Nothing shows which partition has a group, so all are read. Brokers delete records before the newest
    snapshots: then the log begins later than the group.
    """
    from kgroup.history.deliveries import DeliveryReader

    by_group: defaultdict[str, DeliveryLog] = defaultdict(DeliveryLog)
    for number in topic.partitions:
        log = LiveLog(topic, number)
        reader = DeliveryReader(log, topic_names, names=group_ids, runs=False)
        events = grouped((event.group, event) for event in reader.advance())
        states = grouped((group, (at, state)) for group, at, state in reader.states)
        for group in {*group_ids} & {*events, *states}:
            deliveries = by_group[group]
            deliveries.take(events.get(group, ()))
            for at, state in states.get(group, ()):
                deliveries.handled[at].open_from = _open_from(state)
            if reader.coverage.complete_from > 0:
                deliveries.complete_from_ms = max(
                    deliveries.complete_from_ms, reader.coverage.complete_from_ms
                )
            if log.bad:
                deliveries.damaged = not_read(log.source, log.bad)
    return by_group


def _open_from(state: DeliveryState) -> int:
    """Return the first offset that is neither accepted nor given up."""
    at = state.value.start_offset
    for batch in sorted(state.value.state_batches, key=lambda batch: batch.first_offset):
        if batch.last_offset >= at and (batch.first_offset > at or not batch.delivery_state):
            break
        at = max(at, batch.last_offset + 1)
    return at
