"""Turns records of a `__share_group_state` partition, in order, into share groups' deliveries.

Pure, as the fold of `__consumer_offsets`. A share group has, for each partition that it reads, a start
offset, and how often what lies after it was delivered, and how that ended (KIP-932). Acknowledgements are
reported in runs; releases and rejections, record by record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from kgroup.domain import NO_OFFSET, SHARE_STATE_TOPIC, TopicPartition, count_of, uuid_text
from kgroup.history.fold.events import SHOWN, Delivered, Event, Kind
from kgroup.history.fold.view import SHARE
from kgroup.protocol import share_state_records as r
from kgroup.share.batches import combine

AVAILABLE, ACKNOWLEDGED, ARCHIVING, ARCHIVED = r.DELIVERY_STATES
_DONE = frozenset({ACKNOWLEDGED, ARCHIVING, ARCHIVED})
_LONGEST_RUN = 10_000
"""Most pieces of a run of acknowledgements before it is reported."""


class StatePlace(NamedTuple):
    """A partition as one share group reads it."""

    group: str
    topic_id: bytes
    partition: int


@dataclass(frozen=True, slots=True)
class StateRecord:
    """A record of the topic; `value` None is a tombstone."""

    key: r.StateKey
    value: r.StateValue | None
    offset: int
    timestamp_ms: int

    @property
    def place(self) -> StatePlace:
        return StatePlace(self.key.group_id, self.key.topic_id, self.key.partition)


@dataclass(slots=True)
class _Run:
    """What was acknowledged since the last event of another kind, and how the start offset moved."""

    done: list[Delivered] = field(default_factory=list)
    start: int = NO_OFFSET
    end: int = NO_OFFSET
    moves: int = 0
    proven: bool = True
    acknowledged: list[StateRecord] = field(default_factory=list)
    """The first and the last record that acknowledged something; `moved` likewise for the start offset."""
    moved: list[StateRecord] = field(default_factory=list)


@dataclass(slots=True)
class DeliveryState:
    """The stored state of one partition for one group, and since when it is reported."""

    value: r.ShareSnapshotValue
    solid: bool
    """Whether nothing is missing since its newest snapshot."""
    run: _Run = field(default_factory=_Run)


class DeliveryFold:
    """Folds one partition of the topic. `apply` returns the complete events; `settle` those still open.

    `topic_names` maps topic ids to names; without a name, the id is shown.
    """

    def __init__(
        self, log_partition: int, topic_names: Mapping[bytes, str], *, whole: bool, runs: bool = True
    ) -> None:
        self.log_partition = log_partition
        self._names = topic_names
        self.states: dict[StatePlace, DeliveryState] = {}
        self.runs = runs
        self.whole = whole

    def gap(self) -> list[Event]:
        """Note that records are missing; return the events that were open."""
        events = self.settle()
        self.whole = False
        for state in self.states.values():
            state.solid = False
        return events

    def apply(self, record: StateRecord) -> list[Event]:
        """Process the next record; return the events that it completes, in order."""
        known = self.states.get(record.place)
        if record.value is None:
            # A tombstone of an update means nothing: state is deleted by that of its snapshot.
            if known is None or record.key.TYPE:
                return []
            events = self._close(record.place)
            del self.states[record.place]
            text = f"the delivery state is deleted, with {_start_text(known.value.start_offset)}"
            cause = "an admin deleted the group or its start offsets, or the topic was deleted"
            return [*events, replace(self._report(Kind.DELIVERY_STATE_DELETED, record, text), cause=cause)]
        if known is None:
            events = self._first(record, record.value)
        elif isinstance(record.value, r.ShareUpdateValue):
            events = self._updated(
                record, known, _merged(known.value, record.value), record.value.state_batches
            )
        elif record.value.state_epoch > known.value.state_epoch:
            # Only InitializeShareGroupState raises it (KIP-932); all deliveries are forgotten.
            events = self._close(record.place)
            was, known.value = known.value.start_offset, record.value
            known.solid = True
            moved = f"{_offset_text(was)} → {_offset_text(known.value.start_offset)}"
            text = f"start offset {moved}, deliveries begin again"
            cause = "set by an admin (kafka-share-groups or kgroup reset-offsets)"
            events.append(replace(self._report(Kind.START_OFFSET_SET, record, text), cause=cause))
        else:
            events = self._updated(record, known, record.value, record.value.state_batches)
        return events if self.runs else [*events, *self._close(record.place)]

    def settle(self) -> list[Event]:
        """Return the events still open. The fold can continue afterwards."""
        return [event for key in self.states for event in self._close(key)]

    def unreadable(self, group: str | None, offset: int, timestamp_ms: int, reason: str) -> Event:
        """Return the event of a record that does not decode."""
        event = self._event(Kind.RECORD_UNREADABLE, group or "", reason, offset, timestamp_ms)
        return replace(event, proven=False)

    def _first(self, record: StateRecord, value: r.StateValue) -> list[Event]:
        snapshot = value if isinstance(value, r.ShareSnapshotValue) else _merged(None, value)
        solid = isinstance(value, r.ShareSnapshotValue)
        begins = self.whole and solid and not value.snapshot_epoch
        state = self.states[record.place] = DeliveryState(snapshot, solid)
        start = snapshot.start_offset
        if not begins:
            text = f"first seen here, with {_start_text(start)}: earlier records are gone"
            made = replace(self._report(Kind.DELIVERY_STATE_CREATED, record, text), proven=False)
            # How these ended is on record, but not when.
            return [made, *self._ended(record, state, snapshot.state_batches, proven=False)]
        where = (
            "share.auto.offset.reset says where reading begins"
            if start == NO_OFFSET
            else f"reading begins at {start}"
        )
        return [self._report(Kind.DELIVERY_STATE_CREATED, record, where)]

    def _updated(
        self,
        record: StateRecord,
        known: DeliveryState,
        value: r.ShareSnapshotValue,
        batches: Iterable[r.StateBatch],
    ) -> list[Event]:
        """Return the events of a change of the stored state; `batches` are those in the record itself."""
        before, known.value = known.value, value
        events = []
        if value.leader_epoch > before.leader_epoch:
            text = f"leader epoch {before.leader_epoch} → {value.leader_epoch}: what members had acquired "
            events += self._close(record.place)
            events.append(self._report(Kind.PARTITION_LEADER_CHANGED, record, f"{text}is available again"))
        changed: list[r.StateBatch] = []
        for batch in batches:
            same = [b for b in before.state_batches if _ended_as(b) == _ended_as(batch)]
            changed += _uncovered(same, batch)
        # An update has what ended with it; after a gap, a snapshot also has what ended in the gap.
        proven = known.solid or isinstance(record.value, r.ShareUpdateValue)
        known.solid = known.solid or not isinstance(record.value, r.ShareUpdateValue)
        ended = self._ended(record, known, changed, proven=proven)
        if value.start_offset > before.start_offset:
            events += self._skipped(record, before, value)
            run = known.run
            run.start = before.start_offset if not run.moved else run.start
            run.end, run.moves = value.start_offset, run.moves + 1
            run.moved[1:] = [record]
        return [*events, *ended]

    def _ended(
        self, record: StateRecord, known: DeliveryState, batches: Iterable[r.StateBatch], *, proven: bool
    ) -> list[Event]:
        """Return the events of deliveries that ended in one record, by how they ended."""
        by_state: dict[int, list[Delivered]] = {}
        at = self.place_of(record.place)
        for b in batches:
            piece = Delivered(*at, b.first_offset, b.last_offset, b.delivery_count)
            by_state.setdefault(b.delivery_state, []).append(piece)
        events: list[Event] = []
        if done := by_state.pop(ACKNOWLEDGED, None):
            known.run.done += done
            known.run.proven = known.run.proven and proven
            known.run.acknowledged[1:] = [record]
            if len(known.run.done) > _LONGEST_RUN:
                events += self._close(record.place)
        if by_state:
            events += self._close(record.place)
        for state, pieces in sorted(by_state.items()):
            count = sum(piece.records for piece in pieces)
            what, times = count_of(count, "record"), _times(pieces)
            if state == AVAILABLE:
                kind, text = Kind.RECORDS_RELEASED, f"{what} released {times}: {_listed(pieces)}"
                cause = "released by a member, or its lock timed out: the records do not say"
            else:
                kind = Kind.RECORDS_ARCHIVED if state == ARCHIVED else Kind.RECORDS_ARCHIVING
                how = "given up" if state == ARCHIVED else "on the way to the dead letters"
                text = f"{what} {how} {times}: {_listed(pieces)}"
                # No delivery count limit is below 2 (ShareGroupConfig): after one delivery it was rejected.
                cause = "rejected by a member"
                if max(piece.deliveries for piece in pieces) > 1:
                    cause += ", or the delivery count limit was reached: the records do not say"
            event = self._report(kind, record, text)
            events.append(replace(event, cause=cause, records=tuple(pieces), count=count, proven=proven))
        return events

    def _skipped(
        self, record: StateRecord, before: r.ShareSnapshotValue, value: r.ShareSnapshotValue
    ) -> list[Event]:
        """Return what the start offset moved past without an end on record; nothing if it was not set."""
        if before.start_offset == NO_OFFSET:
            return []
        done = [b for b in (*before.state_batches, *value.state_batches) if b.delivery_state in _DONE]
        whole = r.StateBatch(first_offset=before.start_offset, last_offset=value.start_offset - 1)
        at = self.place_of(record.place)
        pieces = [Delivered(*at, p.first_offset, p.last_offset, 0) for p in _uncovered(done, whole)]
        if not pieces:
            return []
        count = sum(piece.records for piece in pieces)
        text = (
            f"start offset moved past {count_of(count, 'offset')} without an end on record: {_listed(pieces)}"
        )
        cause = "deleted by retention, or no records to deliver (aborted, compacted, markers)"
        events = self._close(record.place)
        event = self._report(Kind.RECORDS_SKIPPED, record, text)
        return [*events, replace(event, cause=cause, records=tuple(pieces), count=count, proven=False)]

    def _close(self, key: StatePlace) -> list[Event]:
        """Report the open run of a partition and close it."""
        state = self.states[key]
        run, state.run = state.run, _Run()
        events = []
        if run.acknowledged:
            # Neighbours that were delivered equally often become one piece.
            pieces: list[Delivered] = []
            for piece in sorted(run.done):
                last = pieces[-1] if pieces else None
                follows = (piece.first_offset, piece.deliveries)
                if last is not None and (last.last_offset + 1, last.deliveries) == follows:
                    pieces[-1] = last._replace(last_offset=piece.last_offset)
                else:
                    pieces.append(piece)
            count = sum(piece.records for piece in pieces)
            text = f"{count_of(count, 'record')} acknowledged {_times(pieces)}: {_listed(pieces)}"
            event = self._span(Kind.RECORDS_ACKNOWLEDGED, run.acknowledged, text)
            events.append(replace(event, records=tuple(pieces), count=count, proven=run.proven))
        if run.moved:
            moves = f" in {run.moves} moves" if run.moves > 1 else ""
            text = f"start offset {_offset_text(run.start)} → {run.end}{moves}"
            event = self._span(Kind.START_OFFSET_MOVED, run.moved, text)
            events.append(replace(event, count=run.moves))
        return sorted(events, key=lambda event: event.offset)

    def _span(self, kind: Kind, records: list[StateRecord], text: str) -> Event:
        last = records[-1]
        event = self._report(kind, records[0], text)
        return replace(event, end_offset=last.offset, end_timestamp_ms=last.timestamp_ms)

    def place_of(self, key: StatePlace) -> TopicPartition:
        """Return the partition by the name of its topic, or by its id if no name is known."""
        topic = self._names.get(key.topic_id) or uuid_text(key.topic_id)
        return TopicPartition(topic, key.partition)

    def _report(self, kind: Kind, record: StateRecord, text: str) -> Event:
        at = self.place_of(record.place)
        event = self._event(kind, record.place.group, f"{at}: {text}", record.offset, record.timestamp_ms)
        return replace(event, partitions=(at,))

    def _event(self, kind: Kind, group: str, text: str, offset: int, timestamp_ms: int) -> Event:
        return Event(
            kind=kind,
            group=group,
            protocol=SHARE,
            log_topic=SHARE_STATE_TOPIC,
            log_partition=self.log_partition,
            offset=offset,
            timestamp_ms=timestamp_ms,
            end_offset=offset,
            end_timestamp_ms=timestamp_ms,
            detail=text,
        )


def _merged(known: r.ShareSnapshotValue | None, value: r.ShareUpdateValue) -> r.ShareSnapshotValue:
    """Return the state after an update, as ShareCoordinatorShard replays it; omitted fields stay."""
    if known is None:
        known = r.ShareSnapshotValue(
            snapshot_epoch=value.snapshot_epoch,
            state_epoch=NO_OFFSET,
            leader_epoch=value.leader_epoch,
            start_offset=value.start_offset,
            create_timestamp=0,
            write_timestamp=0,
        )
    start = known.start_offset if value.start_offset == NO_OFFSET else value.start_offset
    return replace(
        known,
        leader_epoch=max(known.leader_epoch, value.leader_epoch),
        start_offset=start,
        delivery_complete_count=value.delivery_complete_count,
        state_batches=combine((*known.state_batches, *value.state_batches), start),
    )


def _ended_as(batch: r.StateBatch) -> tuple[int, int]:
    return batch.delivery_state, batch.delivery_count


def _uncovered(covering: Iterable[r.StateBatch], batch: r.StateBatch) -> Iterator[r.StateBatch]:
    """Yield the parts of a batch that none of the others covers, in order."""
    at = batch.first_offset
    for other in sorted(covering, key=lambda b: b.first_offset):
        if other.last_offset < at:
            continue
        if other.first_offset > batch.last_offset:
            break
        if other.first_offset > at:
            yield replace(batch, first_offset=at, last_offset=other.first_offset - 1)
        at = other.last_offset + 1
    if at <= batch.last_offset:
        yield replace(batch, first_offset=at)


def _times(pieces: Iterable[Delivered]) -> str:
    counts = sorted({piece.deliveries for piece in pieces})
    if len(counts) > 1:
        return f"after {counts[0]} to {counts[-1]} deliveries"
    return f"after {counts[0]} {'delivery' if counts[0] == 1 else 'deliveries'}"


def _listed(pieces: list[Delivered]) -> str:
    shown = ", ".join(
        f"{p.first_offset}" if p.first_offset == p.last_offset else f"{p.first_offset}-{p.last_offset}"
        for p in pieces[:SHOWN]
    )
    return f"{shown}, …" if len(pieces) > SHOWN else shown


def _offset_text(offset: int) -> str:
    return "not set" if offset == NO_OFFSET else f"{offset}"


def _start_text(offset: int) -> str:
    return "no start offset" if offset == NO_OFFSET else f"start offset {offset}"
