"""Turns logs into the whole story: events of all partitions in one order, states, and coverage."""

import heapq
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from dataclasses import dataclass, field
from typing import Unpack

from kgroup.domain import OFFSETS_TOPIC, TopicPartition
from kgroup.errors import KgroupError
from kgroup.history.decode.decoder import Decoder
from kgroup.history.decode.scan import BatchHeader
from kgroup.history.fold.deliveries import DeliveryState
from kgroup.history.fold.events import Event, Kind
from kgroup.history.fold.folding import NO_EXTRAS, Extras, Fold
from kgroup.history.fold.state import GroupState
from kgroup.history.fold.view import SHARE
from kgroup.history.log_items import BadRange, CommitRun, Item, Seen
from kgroup.history.parallel import Workers
from kgroup.history.selection import Choice
from kgroup.history.sources.chunks import Progress
from kgroup.history.sources.logs import OffsetsLog, SegmentLog


@dataclass(frozen=True, slots=True)
class Coverage:
    """What was read of one partition, and from where on nothing is missing. Offsets; times in ms.

    `complete_from` is the first offset after the last gap, so also the first offset if there is none.
    `from_the_start`: the log begins at offset 0 and has no gap.
    """

    partition: int
    source: str
    first_offset: int
    last_offset: int
    records: int
    missing: int
    complete_from: int
    complete_from_ms: int
    last_ms: int
    bad: tuple[BadRange, ...] = ()
    failure: KgroupError | None = None
    """Why what follows `last_offset`, or the whole partition, was not read."""
    topic: str = OFFSETS_TOPIC
    gaps: tuple[str, ...] = ()
    """What the recorder of a copy knows to be missing, and why."""

    @property
    def from_the_start(self) -> bool:
        return self.complete_from == 0 and not self.bad and not self.gaps and self.failure is None


Counts = Decoder | Seen
MIN_PARALLEL_BYTES = 256 << 20
"""Shorter logs are read before other processes have started."""


@dataclass(frozen=True, slots=True)
class At:
    """A moment: after the last batch that does not pass `offset`, or is not stamped later than `time_ms`.

    The order of the log decides: a batch before that one counts, whatever its time.
    """

    offset: int | None = None
    time_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a moment lies in a log: after the offset `last`; -1: before everything that is there.

    `first` is the first offset that is there, and `first_ms` its batch's time. `later` are the first offset
    of an earlier batch that is stamped later than the moment, its time, and how many of these there are.
    """

    first: int = -1
    first_ms: int = -1
    last: int = -1
    later: tuple[int, int, int] | None = None

    @property
    def is_unknown(self) -> bool:
        """Whether what there was then is in no record that is left."""
        return self.last < 0 < self.first


def cut_at(log: OffsetsLog, at: At) -> Cut:
    """Return where a moment lies in a log; reads the headers of a copy of it, and leaves it where it is."""
    again = copy(log)
    again.bad = []
    first, first_ms, last = -1, -1, -1
    later, waiting = None, None
    for header in (header for _, headers in again.batches() for header in headers):
        if first < 0:
            first, first_ms = header.base_offset, header.max_timestamp_ms
        if at.offset is not None:
            if header.last_offset > at.offset:
                break
            last = header.last_offset
        elif at.time_ms is not None and header.max_timestamp_ms > at.time_ms:
            begun = waiting or later or (header.base_offset, header.max_timestamp_ms, 0)
            waiting = (*begun[:2], begun[2] + 1)
        else:
            last, later, waiting = header.last_offset, waiting or later, None
    return Cut(first, first_ms, last, later)


@dataclass(slots=True)
class Story:
    """The result of a replay."""

    events: list[Event] = field(default_factory=list)
    folds: dict[int, Fold] = field(default_factory=dict)
    coverage: list[Coverage] = field(default_factory=list)
    state_coverage: list[Coverage] = field(default_factory=list)
    """Coverage of `__share_group_state`; a partition of -1 stands for all, if none could be looked up."""
    deliveries: dict[str, dict[TopicPartition, DeliveryState]] | None = None
    """The stored state of each partition that a share group reads; None if that was not read."""
    cuts: dict[int, Cut] = field(default_factory=dict)
    """Where the moment of the replay lies in each partition, if it ends at one."""

    @property
    def states(self) -> Iterator[tuple[int, GroupState]]:
        """Each group of which something is left, with its partition in `__consumer_offsets`, by id."""
        states = [(p, state) for p, fold in self.folds.items() for state in fold.states.values()]
        return iter(sorted(states, key=lambda entry: entry[1].group_id))

    @property
    def bad(self) -> list[BadRange]:
        return [bad for covered in (*self.coverage, *self.state_coverage) for bad in covered.bad]

    @property
    def shared(self) -> set[str]:
        """The groups that are or were share groups."""
        groups = {event.group for event in self.events if event.protocol == SHARE}
        return groups | {
            name
            for fold in self.folds.values()
            for name, group in fold.groups.items()
            if group.state.share.newest >= 0
        }

    def stored(self, group: str) -> dict[TopicPartition, DeliveryState] | None:
        """Return the stored state of a share group's partitions; None if it may not have been read."""
        stored = (self.deliveries or {}).get(group, {})
        if self.deliveries is None or not stored and any(c.failure for c in self.state_coverage):
            return None
        return stored

    def complete_from(self, group: str) -> Coverage | None:
        """Return the coverage of a group's partition, None for a group that was not seen."""
        for covered in self.coverage:
            if group in self.folds[covered.partition].groups:
                return covered
        return None


def replay(
    logs: Iterable[OffsetsLog],
    *,
    topic_names: Mapping[bytes, str] | None = None,
    at: At | None = None,
    extras: Extras = NO_EXTRAS,
    progress: Progress | None = None,
    jobs: int = 1,
    **choice: Unpack[Choice],
) -> Story:
    """Read the logs and fold them. `names` (exact) or `wanted` choose groups; `at` stops there.

    `runs=False` gives each commit an event of its own. Nothing is raised for damaged logs: see `Story.bad`; a
    partition that cannot be read is named in its coverage. With `jobs`, that many processes decode segments
    that are long enough (`wanted` is pickled), unless `at` is given.
    """
    story, per_partition, logs = Story(), [], list(logs)
    # Topic ids in one partition also name the topics of later ones.
    known = dict(topic_names or {})
    several: AbstractContextManager[Workers | None] = nullcontext()
    segments = [log for log in logs if isinstance(log, SegmentLog)]
    if (
        jobs > 1
        and at is None
        and len(segments) == len(logs)
        and sum(log.size for log in segments) >= MIN_PARALLEL_BYTES
        # A share that cannot be read would end its process; one reader names the file and continues.
        and all(log.readable for log in segments)
    ):
        several = Workers(segments, jobs, choice)
    with several as workers:
        for log in logs:
            reader = Reader(log, topic_names=known, extras=extras, **choice)
            if at is not None:
                story.cuts[log.partition] = cut_at(log, at)
            upto = story.cuts[log.partition].last if at is not None else None
            events = reader.advance(upto, progress, workers) + reader.fold.finish()
            story.folds[log.partition] = reader.fold
            story.coverage.append(reader.coverage)
            known |= reader.fold.names.names
            per_partition.append(in_order(events))
    story.events = list(heapq.merge(*per_partition, key=lambda event: event.timestamp_ms))
    return story


class Reader:
    """Reads one log and folds it, as far as it goes now; `advance` continues where a log has grown."""

    def __init__(
        self,
        log: OffsetsLog,
        *,
        topic_names: Mapping[bytes, str] | None = None,
        extras: Extras = NO_EXTRAS,
        **choice: Unpack[Choice],
    ) -> None:
        self.log = log
        self.extras = extras
        self.decoder = Decoder(**choice)
        self.seen: Counts = self.decoder
        self._names = topic_names
        self._fold: Fold | None = None

    @property
    def fold(self) -> Fold:
        """The fold of what was read so far."""
        if self._fold is None:
            start = max(self.seen.first_offset, 0)
            self._fold = Fold(self.log.partition, self._names, start, self.extras)
        return self._fold

    @property
    def coverage(self) -> Coverage:
        return coverage_of(self.log.partition, self.log.source, self.seen, self.log.bad, self.log.failure)

    def advance(
        self,
        upto: int | None = None,
        progress: Progress | None = None,
        workers: Workers | None = None,
        *,
        spans: bool = True,
    ) -> list[Event]:
        """Return the new events since the last call, complete as far as the log goes, or up to an offset.

        `workers`, if given, have decoded the log, all of it. Without `spans` commits stay open in the fold.
        """
        if workers is None:
            items = items_of(self.log, self.decoder, upto, progress)
        else:
            assert isinstance(self.log, SegmentLog)
            self.seen = seen = Seen()
            items = workers.items_of(self.log, seen, progress)
        events: list[Event] = []
        for item in items:
            events += self.fold.apply(item)
            if not self.decoder.runs and isinstance(item, CommitRun):
                events += self.fold.settle()
        return events + self.fold.settle(spans=spans)


def in_order(events: Iterable[Event]) -> list[Event]:
    """Return one partition's events by first offset; those of one group at one offset keep their order.

    Missing records are reported last. Groups meet at one offset where a transaction ends, and where copies of
    a partition disagree: then the first by name comes first, so the order does not depend on which task
    folded which group.
    """
    return sorted(events, key=lambda event: (event.offset, event.kind is Kind.LOG_COMPACTED, event.group))


def items_of(
    log: OffsetsLog, decoder: Decoder, upto: int | None = None, progress: Progress | None = None
) -> Iterator[Item]:
    """Yield the items of a whole log, or of its whole batches up to an offset."""
    for chunk, headers in log.batches(progress):
        if upto is None:
            yield from decoder.feed(chunk, headers)
            continue
        # A batch is written as one, so it is never cut.
        before: list[BatchHeader] = []
        for header in headers:
            if header.last_offset > upto:
                decoder.stopped = True
                break
            before.append(header)
        yield from decoder.feed(chunk, before)
        if decoder.stopped:
            break
    yield from decoder.flush()


def coverage_of(
    partition: int,
    source: str,
    seen: Counts,
    bad: Iterable[BadRange] = (),
    failure: KgroupError | None = None,
    topic: str = OFFSETS_TOPIC,
) -> Coverage:
    """Return what one or more decoders have seen of a log so far."""
    return Coverage(
        partition=partition,
        source=source,
        first_offset=seen.first_offset,
        last_offset=seen.next_offset - 1,
        records=seen.records,
        missing=seen.missing,
        complete_from=seen.complete_from,
        complete_from_ms=seen.complete_from_ms,
        last_ms=seen.last_ms,
        bad=tuple(bad),
        failure=failure,
        topic=topic,
    )


def chosen(
    events: Iterable[Event],
    *,
    since_ms: int | None = None,
    until_ms: int | None = None,
    instances: frozenset[str] = frozenset(),
    kinds: frozenset[Kind] = frozenset(),
) -> list[Event]:
    """Return the events in a time range (ms, both ends included), about given instance ids, of given kinds.

    An event without a time (message format 0 has none) is in no range.
    """
    if since_ms is None and until_ms is not None:
        since_ms = 0
    return [
        event
        for event in events
        if (since_ms is None or event.last_ms >= max(since_ms, 0))
        and (until_ms is None or event.timestamp_ms <= until_ms)
        and (not instances or event.instance_id in instances)
        and (not kinds or event.kind in kinds)
    ]
