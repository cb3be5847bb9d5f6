"""Acquiring: which records a member gets of those that were read, and how they are tracked afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kgroup.protocol.messages.share_fetch import AcquiredRecords
from kgroup.share.in_flight import NO_MEMBER, Batch, Delivery, Fate, InFlight


class Extent(NamedTuple):
    """Base and last offset of a record batch in the log."""

    base: int
    last: int


@dataclass(frozen=True, slots=True)
class Terms:
    """A group's settings for its partitions: times in ms, the others numbers of records or
    deliveries."""

    lock_ms: int = 30_000
    most_deliveries: int = 5
    most_in_flight: int = 2000
    may_renew: bool = True
    dead_letters: bool = False

    @property
    def throttled_from(self) -> int:
        """From this delivery count on, portions get ever smaller: one record may be what kills its reader."""
        return max(2, -(-self.most_deliveries // 2))


@dataclass(frozen=True, slots=True)
class Wish:
    """A member's request: whole batches, or with `by_record` no more than `most` records."""

    member: str
    most: int
    batch_size: int = 1 << 30
    by_record: bool = False


class Acquired(NamedTuple):
    """The acquired records, and how many of the member's `most` they use."""

    records: list[AcquiredRecords]
    size: int


NOTHING = Acquired([], 0)


def acquire(
    flight: InFlight, terms: Terms, wish: Wish, fetch_offset: int, read: Sequence[Extent], now_ms: int
) -> Acquired:
    """Lock what is available of the batches that were read from `fetch_offset` on."""
    if wish.most <= 0 or not read or read[-1].last < flight.start:
        return NOTHING
    most, last = min(wish.most, terms.most_in_flight - flight.size), read[-1].last
    # What is in flight already may be taken again, however much there is.
    if most <= 0 and fetch_offset <= flight.end:
        most, last = min(wish.most, flight.end - fetch_offset + 1), min(last, flight.end)
    if most <= 0:
        return NOTHING
    first = read[0].base
    if flight.batches and fetch_offset < first:
        # The log lacks records that were asked for: what was read begins behind them.
        low = flight.floor(fetch_offset)
        begin = low.first if low is not None and low.last >= fetch_offset else fetch_offset
        lacking = flight.between(begin, first - 1)
        flight.look_back |= flight.archive(fetch_offset, first - 1, lacking, Delivery.AVAILABLE, count=True)
    if first > last:  # there was room for records the log lacks, and is none for what follows
        flight.move_start()
        return NOTHING
    # A batch in flight that has the first record is the first one concerned.
    low = flight.floor(first)
    if low is None:
        begin = max(first, flight.start)
    else:
        begin = low.first if low.last >= first else first
    known = flight.between(min(first, begin), last)
    work = _Acquiring(flight, terms, wish, read, most, last, now_ms)
    if not known:
        work.take_new(begin, last)
    else:
        work.take_known(known, begin)
        if work.count < work.most and known[-1].last < last:
            work.take_new(known[-1].last + 1, last)
        if work.records:
            flight.seen_up_to(work.records[-1].last_offset + 1)
    return Acquired(work.records, work.count)


class _Acquiring:
    """One acquisition under way."""

    def __init__(
        self,
        flight: InFlight,
        terms: Terms,
        wish: Wish,
        read: Sequence[Extent],
        most: int,
        last: int,
        now_ms: int,
    ) -> None:
        self.flight = flight
        self.terms = terms
        self.wish = wish
        self.read = read
        self.most = most
        self.first, self.last = read[0].base, last
        self.due_ms = now_ms + terms.lock_ms
        self.records: list[AcquiredRecords] = []
        self.count = 0

    def take_known(self, batches: Iterable[Batch], begin: int) -> None:
        """Take what is available of batches in flight, and what lies unseen between them."""
        unseen = begin
        for batch in batches:
            if self.count >= self.most:
                return
            if self.flight.has_gap():
                if unseen < batch.first:
                    self.take_new(unseen, batch.first - 1)
                unseen = batch.last + 1
                if self.count >= self.most:
                    return
            # Whether an available record of the batch has been delivered often.
            fates = (
                [batch.whole]
                if batch.whole is not None
                else [fate for _, fate in batch.fates(self.first, self.last)]
            )
            most = max((fate.count for fate in fates if fate.state is Delivery.AVAILABLE), default=0)
            throttled = most >= self.terms.throttled_from
            if throttled and self.count > 0:
                self.most = 0
                return
            got = self._take(batch, throttled)
            if throttled and got:
                self.most = 0
                return

    def _take(self, batch: Batch, throttled: bool) -> int:
        left = self.most - self.count
        inside = batch.first >= self.first and batch.last <= self.last
        whole = batch.whole
        too_many = self.wish.by_record and len(batch) > left
        if whole is not None:
            if whole.state is not Delivery.AVAILABLE:
                return 0
            if inside and not too_many and not throttled:
                self._lock(whole, batch.first, batch.last)
                self.records.append(_acquired(batch.first, batch.last, whole.count))
                self.count += len(batch)
                return 0
            self.flight.split(batch)
        got = self._take_records(batch, left)
        self.count += got
        return got

    def _take_records(self, batch: Batch, left: int) -> int:
        """Take records of a split batch; one on its last delivery goes alone."""
        limit, portion, got = self.terms.most_deliveries, 0, 0
        runs: list[tuple[int, int, int]] = []
        for offset, fate in batch.fates(self.first, self.last):
            if fate.state is not Delivery.AVAILABLE:
                continue
            if limit > 2 and fate.count == limit - 1 and got:
                break
            excess = fate.count - self.terms.throttled_from
            if excess >= 0 and not portion:
                portion = max(1, len(batch) >> (excess + 1))
            self._lock(fate, offset, offset)
            first = runs.pop()[0] if runs and runs[-1][1:] == (offset - 1, fate.count) else offset
            runs.append((first, offset, fate.count))
            got += 1
            last_chance = fate.count == limit and limit > 2
            if last_chance or got == portion or (self.wish.by_record and got == left):
                break
        self.records += [_acquired(*run) for run in runs]
        return got

    def _lock(self, fate: Fate, first: int, last: int) -> None:
        fate.state, fate.member = Delivery.ACQUIRED, self.wish.member
        fate.count += 1
        fate.lock = self.flight.lock(first, last, self.due_ms)

    def take_new(self, first: int, last: int) -> None:
        """Take records never seen before, as whole batches of the log if that is asked for."""
        flight, most = self.flight, self.most - self.count
        if not flight.batches and flight.end > first:
            first = flight.end
        end = last
        if most < last - first + 1:
            end = first + most - 1
            end = next((extent.last for extent in self.read if extent.base <= end <= extent.last), end)
            if flight.has_gap():
                end = min(end, last)
        made = self._in_order(first, end)
        if flight.batches[0].first == first:
            flight.start = first
        flight.end = max(flight.end, end)
        if self.wish.by_record:
            end = made[0].last_offset
        flight.seen_up_to(end + 1)
        self.records += made
        self.count += end - first + 1

    def _in_order(self, first: int, last: int) -> list[AcquiredRecords]:
        """Add new batches of some `batch_size` records, cut where batches of the log begin."""
        made: list[AcquiredRecords] = []
        if self.wish.by_record:
            end = min(last, first + self.most - self.count - 1)
            self._put(first, end, last)
            return [_acquired(first, end, 1)]
        begin = first
        if last - first + 1 > self.wish.batch_size:
            for extent in self.read:
                if extent.base > last:
                    break
                if extent.base - begin >= self.wish.batch_size:
                    made.append(_acquired(begin, extent.base - 1, 1))
                    begin = extent.base
        made.append(_acquired(begin, last, 1))
        for batch in made:
            self._put(batch.first_offset, batch.last_offset, batch.last_offset)
        return made

    def _put(self, first: int, end: int, last: int) -> None:
        """Add a batch up to `last`, of which the records up to `end` are acquired."""
        flight, member = self.flight, self.wish.member
        if end == last:
            lock = flight.lock(first, last, self.due_ms)
            flight.put(Batch(first, last, Fate(Delivery.ACQUIRED, 1, member, lock)))
            return
        batch = Batch(first, last, Fate(Delivery.AVAILABLE, 0, NO_MEMBER))
        flight.split(batch)
        for offset, fate in batch.fates(first, end):
            self._lock(fate, offset, offset)
        flight.put(batch)
        flight.look_back = True


def _acquired(first: int, last: int, count: int) -> AcquiredRecords:
    return AcquiredRecords(first_offset=first, last_offset=last, delivery_count=count)


def without(records: Iterable[AcquiredRecords], gone: Sequence[Extent]) -> list[AcquiredRecords]:
    """Return the records outside of some batches, both in order."""
    left: list[AcquiredRecords] = []
    for batch in records:
        first = batch.first_offset
        for extent in gone:
            if extent.last < first or extent.base > batch.last_offset:
                continue
            if extent.base > first:
                left.append(_acquired(first, extent.base - 1, batch.delivery_count))
            first = extent.last + 1
        if first <= batch.last_offset:
            left.append(_acquired(first, batch.last_offset, batch.delivery_count))
    return left
