"""The records of a share partition that are in flight: acquired, available again, or settled out of order.

Kafka's SharePartition, InFlightBatch and InFlightState are the source, down to when a batch is split into its
records: that shows in what members receive.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from enum import IntEnum
from heapq import heappop, heappush
from typing import NamedTuple

NO_MEMBER = ""


class Delivery(IntEnum):
    """The states of records; the numbers are those of `__share_group_state`."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    """On its way to the dead letters."""
    ARCHIVED = 4
    """Rejected, delivered too often, aborted, deleted, or a gap in the log."""


DONE = frozenset({Delivery.ACKNOWLEDGED, Delivery.ARCHIVED})


class Lock:
    """Until when a member has records, in ms; `first` to `last` fall due together."""

    __slots__ = ("due_ms", "ended", "first", "last")

    def __init__(self, due_ms: int, first: int, last: int) -> None:
        self.due_ms = due_ms
        self.first = first
        self.last = last
        self.ended = False


class Fate:
    """The state of records: one for a whole batch, or one for each record of a split batch."""

    __slots__ = ("count", "lock", "member", "state")

    def __init__(self, state: Delivery, count: int, member: str, lock: Lock | None = None) -> None:
        self.state = state
        self.count = count
        self.member = member
        self.lock = lock

    def unlock(self) -> None:
        if self.lock is not None:
            self.lock.ended = True
            self.lock = None

    def archive(self) -> None:
        """Archive the records, whatever they were."""
        self.state, self.member = Delivery.ARCHIVED, NO_MEMBER
        self.unlock()


class Batch:
    """Records acquired together; `each` has a fate per offset once they differ."""

    __slots__ = ("each", "first", "last", "whole")

    def __init__(self, first: int, last: int, whole: Fate) -> None:
        self.first = first
        self.last = last
        self.whole: Fate | None = whole
        self.each: list[Fate] = []

    def __len__(self) -> int:
        return self.last - self.first + 1

    def fates(self, first: int, last: int) -> Iterator[tuple[int, Fate]]:
        """Return offset and fate of the records of a split batch within a range."""
        begin = max(first, self.first)
        for at in range(begin, min(last, self.last) + 1):
            yield at, self.each[at - self.first]


class Gap(NamedTuple):
    """Between batches that were loaded, offsets from `start` on may not have been seen yet.

    It is valid while `end` is the end of what is in flight.
    """

    end: int
    start: int


class InFlight:
    """The batches of a share partition in order, and the offsets around them.

    `start` is the first record not settled; `end` the last that was seen, or the first to see while there
    are no batches; `complete` the number of records behind `start` that are settled.
    """

    def __init__(self, start: int) -> None:
        self.start = self.end = start
        self.complete = 0
        self.gap: Gap | None = None
        self.look_back = False
        """Whether records before the end may be available."""
        self.batches: list[Batch] = []
        self._firsts: list[int] = []
        self._locks: list[tuple[int, int, Lock]] = []
        self._locked = 0

    @property
    def size(self) -> int:
        """How many records there are from the start to the end."""
        return self.end - self.start + 1 if self.batches else 0

    def put(self, batch: Batch) -> None:
        """Add a batch, in the place of one that begins at the same offset."""
        at = bisect_left(self._firsts, batch.first)
        if at < len(self._firsts) and self._firsts[at] == batch.first:
            self.batches[at] = batch
        else:
            self._firsts.insert(at, batch.first)
            self.batches.insert(at, batch)

    def floor(self, offset: int) -> Batch | None:
        """Return the last batch that begins at or before an offset."""
        at = bisect_right(self._firsts, offset)
        return self.batches[at - 1] if at else None

    def between(self, first: int, last: int) -> list[Batch]:
        """Return the batches that begin within a range."""
        return self.batches[bisect_left(self._firsts, first) : bisect_right(self._firsts, last)]

    def lock(self, first: int, last: int, due_ms: int) -> Lock:
        """Return a new lock, which falls due behind earlier ones for the same time."""
        lock = Lock(due_ms, first, last)
        self._locked += 1
        heappush(self._locks, (due_ms, self._locked, lock))
        # Those that ended early stay until they fall due; without a bound a fast reader would have millions.
        if len(self._locks) > 2 * self.size + 1000:
            self._locks = sorted(entry for entry in self._locks if not entry[2].ended)
        return lock

    def next_due_ms(self) -> int | None:
        """Return when the next lock falls due, or None."""
        while self._locks and self._locks[0][2].ended:
            heappop(self._locks)
        return self._locks[0][0] if self._locks else None

    def pop_due(self, now_ms: int) -> Lock | None:
        """Remove the lock that fell due first."""
        due = self.next_due_ms()
        if due is None or due > now_ms:
            return None
        lock = heappop(self._locks)[2]
        lock.ended = True
        return lock

    def split(self, batch: Batch) -> None:
        """Give each record its own fate, which is that of the batch; the locks keep their time."""
        whole = batch.whole
        if whole is None:
            return
        lock = whole.lock
        batch.each = [
            Fate(
                whole.state,
                whole.count,
                whole.member,
                None if lock is None else self.lock(offset, offset, lock.due_ms),
            )
            for offset in range(batch.first, batch.last + 1)
        ]
        whole.unlock()
        batch.whole = None

    def has_gap(self) -> bool:
        """Return whether there may be unseen offsets between the batches."""
        return self.gap is not None and self.gap.end == self.end

    def seen_up_to(self, offset: int) -> None:
        """Note that everything before an offset has been seen."""
        if self.gap is None:
            return
        if self.has_gap() and offset <= self.gap.end:
            self.gap = Gap(self.gap.end, offset)
        else:
            self.gap = None

    def is_behind(self) -> bool:
        """Return whether the start has passed every batch, or there is none."""
        return not self.batches or self.start > self.batches[-1].last

    def next_offset(self) -> int:
        """Return the offset to read from: the first available record or unseen gap, else the end."""
        if not self.look_back:
            return self.end if self.is_behind() else self.end + 1
        if self.is_behind():
            self.look_back = False
            return self.end
        offset = self._first_available()
        if offset is None:
            self.look_back = False
            return self.end + 1
        return offset

    def _first_available(self) -> int | None:
        unseen = self.gap.start if self.gap is not None and self.has_gap() else None
        for batch in self.batches:
            if unseen is not None:
                if batch.first > unseen:
                    return unseen
                unseen = max(batch.last + 1, unseen)
            if batch.whole is not None:
                if batch.whole.state is Delivery.AVAILABLE:
                    return batch.first
                continue
            for offset, fate in enumerate(batch.each, batch.first):
                if fate.state is Delivery.AVAILABLE:
                    return offset
        return None

    def counted(self, first: int, last: int) -> int:
        """Return how many records of a range lie behind the start."""
        return max(0, last - max(self.start, first) + 1)

    def starts_within(self, first: int, last: int) -> bool:
        """Return whether the start lies in a range, behind its first offset."""
        return first < self.start <= last

    def archive(
        self, first: int, last: int, batches: Iterable[Batch], state: Delivery, *, count: bool
    ) -> bool:
        """Archive the records of a range that are in a state; return whether there were any.

        `count` is whether they count as settled from now on.
        """
        any_archived = False
        for batch in batches:
            if batch.first > last:
                break
            whole = batch.whole
            if whole is not None and batch.first >= first and batch.last <= last:
                fates = [(batch.first, whole)]
                size = len(batch)
            else:
                if whole is not None:
                    if whole.state is not state:
                        continue
                    self.split(batch)
                fates, size = list(batch.fates(first, last)), 1
            for _, fate in fates:
                if fate.state is state:
                    fate.archive()
                    self.complete += size if count else 0
                    any_archived = True
        return any_archived

    def log_start_moved(self, offset: int) -> None:
        """Note that records before `offset` are gone from the log; acquired ones stay with their members."""
        if offset <= self.start:
            return
        if not self.batches:
            self.start = self.end = offset
            self.complete = 0
            return
        done = 0
        for batch in self.batches:
            if batch.first >= offset:
                break
            if batch.whole is None:
                done += sum(fate.state in DONE for _, fate in batch.fates(self.start, offset - 1))
            elif batch.whole.state in DONE:
                done += max(0, min(offset - 1, batch.last) - max(self.start, batch.first) + 1)
        if self.archive(self.start, offset - 1, self.batches, Delivery.AVAILABLE, count=False):
            self.look_back = True
        self.start = offset
        self.complete -= done
        self.end = max(self.end, offset)

    def move_start(self) -> bool:
        """Move the start past the settled records, and drop those; return whether it moved."""
        batch = self.floor(self.start)
        if batch is None:  # there is a gap at the beginning, which has not been seen
            return False
        if batch.whole is not None:
            settled = batch.whole.state in DONE
        else:
            settled = self.start <= batch.last and batch.each[self.start - batch.first].state in DONE
        if not settled:
            return False
        last, count = self._last_done()
        if last is None:
            return False
        if last == self.batches[-1].last:
            self.start = self.end = last + 1
            self.batches.clear()
            self._firsts.clear()
            self.complete = 0
            return True
        at = bisect_right(self._firsts, last) - 1
        if last == self.batches[at].last:
            at += 1
            self.start = max(self.start, self._firsts[at])
            if self.gap is not None and self.has_gap():
                self.start = min(self.gap.start, self.start)
        else:
            self.start = max(self.start, last + 1)
        self.complete -= count
        del self.batches[:at], self._firsts[:at]
        return True

    def _last_done(self) -> tuple[int | None, int]:
        """Return the last settled record of the beginning, and how many lie behind the start."""
        last, count = None, 0
        for batch in self.batches:
            if self.gap is not None and self.has_gap() and batch.last >= self.gap.start:
                break
            if batch.whole is not None:
                if batch.whole.state not in DONE:
                    break
                last = batch.last
                count += self.counted(batch.first, batch.last)
                continue
            for offset, fate in enumerate(batch.each, batch.first):
                if fate.state not in DONE:
                    return last, count
                last = offset
                count += offset >= self.start
        return last, count
