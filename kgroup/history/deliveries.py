"""Turns logs of `__share_group_state` into events of share groups' deliveries, and the stored state.

Read record by record: compared with `__consumer_offsets` the topic is short, as brokers delete what lies
before the newest snapshots.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

from kgroup.domain import SHARE_STATE_TOPIC, TopicPartition
from kgroup.errors import DecodeError
from kgroup.history.decode.records import group_of, raw_records
from kgroup.history.decode.scan import CONTROL, BatchHeader
from kgroup.history.fold.deliveries import DeliveryFold, DeliveryState, StatePlace, StateRecord
from kgroup.history.fold.events import Event, Kind
from kgroup.history.log_items import Seen, gap_between
from kgroup.history.replay import At, Coverage, Story, coverage_of, cut_at, in_order
from kgroup.history.sources.chunks import Progress
from kgroup.history.sources.logs import OffsetsLog
from kgroup.history.typed_json import Codec
from kgroup.protocol import share_state_records as r


def add_deliveries(
    story: Story,
    logs: Iterable[OffsetsLog],
    topic_names: Mapping[bytes, str],
    *,
    names: Iterable[str] | None = None,
    wanted: Callable[[str], bool] | None = None,
    runs: bool = True,
    at: At | None = None,
) -> None:
    """Add share groups' deliveries to the story of their members, in time order.

    `names` (exact) or `wanted` choose groups. A moment that is an offset refers to `__consumer_offsets`: here
    it is the time of the last batch read there.
    """
    known = dict(topic_names)
    for fold in story.folds.values():
        known |= fold.names.names
    if at is not None and at.time_ms is None:
        shared = story.shared
        last_read = (c.last_ms for c in story.coverage if shared & story.folds[c.partition].groups.keys())
        at = At(time_ms=max(last_read, default=-1))
    story.deliveries = {}
    events = []
    for log in logs:
        reader = DeliveryReader(log, known, names=names, wanted=wanted, runs=runs)
        upto = None if at is None else cut_at(log, at).last
        events.append(in_order(reader.advance(upto)))
        story.state_coverage.append(reader.coverage)
        for group, partition, state in reader.states:
            story.deliveries.setdefault(group, {})[partition] = state
    story.events = with_deliveries(story.events, events)


def with_deliveries(events: Iterable[Event], deliveries: Iterable[Iterable[Event]]) -> list[Event]:
    """Return events of groups, and of deliveries by partition, in time order."""
    return list(heapq.merge(events, *deliveries, key=_moment))


def _moment(event: Event) -> tuple[int, bool]:
    # Within one millisecond: the coordinator writes both records after the share coordinator's part.
    return event.timestamp_ms, event.kind in (Kind.GROUP_DELETED, Kind.DELIVERY_STATE_INITIALIZED)


@dataclass(frozen=True, slots=True)
class KeptDeliveries:
    """Where a reader without runs stopped in a log: what it has seen, and the stored state of each partition.

    `whole`: nothing is missing so far. A state is solid if nothing is missing since its newest snapshot.
    """

    whole: bool
    seen: Seen
    states: dict[StatePlace, tuple[r.ShareSnapshotValue, bool]]


@cache
def kept_deliveries() -> Codec[KeptDeliveries]:
    """Return the codec for its stored form."""
    return Codec(KeptDeliveries)


class DeliveryReader:
    """Reads one log and folds it, as far as it goes now; `advance` continues where a log has grown.

    `names` (exact) or `wanted` choose groups; without `runs` each acknowledgement is an event of its own.
    With `kept` it continues where another reader without runs stopped.
    """

    def __init__(
        self,
        log: OffsetsLog,
        topic_names: Mapping[bytes, str],
        *,
        names: Iterable[str] | None = None,
        wanted: Callable[[str], bool] | None = None,
        runs: bool = True,
        kept: KeptDeliveries | None = None,
    ) -> None:
        self.log = log
        self.seen = Seen() if kept is None else replace(kept.seen)
        self._names, self._runs = topic_names, runs
        exact = None if names is None else frozenset(names)
        self._wanted = wanted or (lambda group: exact is None or group in exact)
        self._fold: DeliveryFold | None = None
        if kept is not None:
            self._fold = DeliveryFold(log.partition, topic_names, whole=kept.whole, runs=runs)
            for key, (value, solid) in kept.states.items():
                self._fold.states[key] = DeliveryState(value, solid)

    @property
    def kept(self) -> KeptDeliveries | None:
        """What another reader needs to continue here; None if nothing was read."""
        if self._fold is None:
            return None
        states = {key: (state.value, state.solid) for key, state in self._fold.states.items()}
        return KeptDeliveries(self._fold.whole, replace(self.seen), states)

    @property
    def states(self) -> Iterator[tuple[str, TopicPartition, DeliveryState]]:
        """The stored state of each partition that a share group reads, by group and partition."""
        if self._fold is None:
            return
        for key, state in self._fold.states.items():
            yield key.group, self._fold.place_of(key), state

    @property
    def coverage(self) -> Coverage:
        log = self.log
        return coverage_of(log.partition, log.source, self.seen, log.bad, log.failure, SHARE_STATE_TOPIC)

    def advance(self, upto: int | None = None, progress: Progress | None = None) -> list[Event]:
        """Return the new events since the last call, up to an offset if one is given."""
        events: list[Event] = []
        for chunk, headers in self.log.batches(progress):
            for header in headers:
                if header.last_offset < self.seen.next_offset:
                    continue
                if upto is not None and header.last_offset > upto:
                    return events + self._settle()
                events += self._batch(chunk, header)
        return events + self._settle()

    def _settle(self) -> list[Event]:
        return [] if self._fold is None else self._fold.settle()

    def _batch(self, chunk: bytes, header: BatchHeader) -> Iterator[Event]:
        seen, base, last = self.seen, header.base_offset, header.last_offset
        if self._fold is None:
            self._fold = DeliveryFold(self.log.partition, self._names, whole=base == 0, runs=self._runs)
        gap = gap_between(seen.next_offset, base, header.base_timestamp_ms)
        here = Seen(base, last + 1, header.records, last - base + 1 - header.records)
        here.complete_from, here.complete_from_ms = base, header.base_timestamp_ms
        if here.missing:
            here.complete_from, here.complete_from_ms = last + 1, header.max_timestamp_ms
        here.last_ms = header.max_timestamp_ms
        seen.follow(here)
        if gap is not None or here.missing:
            yield from self._fold.gap()
        if header.attributes & CONTROL:
            return
        try:
            for record in raw_records(chunk, header):
                group = group_of(record.key or b"")
                if group is not None and not self._wanted(group):
                    continue
                offset, ts = record.offset, record.timestamp_ms
                try:
                    decoded = r.decode_key(record.key or b"")
                    value = r.decode_value(decoded, record.value)
                except DecodeError as error:
                    yield self._fold.unreadable(group, offset, ts, error.message)
                    continue
                yield from self._fold.apply(StateRecord(decoded, value, offset, ts))
        except DecodeError as error:
            yield self._fold.unreadable(None, base, header.base_timestamp_ms, error.message)
