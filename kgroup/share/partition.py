"""A partition as one share group reads it, on the broker that leads it: Kafka's SharePartition (KIP-932).

Durable changes go to `store` before the call returns, and are undone if that refuses them. Time is an
argument; `next_wake_ms` returns when the next lock ends and `wake` ends it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeAlias

from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.messages.share_fetch import AcknowledgementBatch
from kgroup.protocol.messages.write_share_group_state import PartitionState
from kgroup.protocol.share_state_records import StateBatch
from kgroup.share import acquire
from kgroup.share.acquire import Acquired, Extent, Terms, Wish
from kgroup.share.in_flight import DONE, NO_MEMBER, Batch, Delivery, Fate, Gap, InFlight
from kgroup.share.settle import REJECTED, TOO_OFTEN, Settling

Store: TypeAlias = Callable[[PartitionState], None]
"""Stores a change with the share coordinator; Refused if rejected."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What the share coordinator knew of the partition, with the start offset settled."""

    state_epoch: int
    start_offset: int
    batches: tuple[StateBatch, ...] = ()


@dataclass(slots=True)
class DeadLetters:
    """Archived records that are to be written to the group's dead-letter topic, before they are
    settled."""

    first: int
    last: int
    count: int
    cause: str
    fate: Fate = field(repr=False)


_SEEN = {
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
_AS_IT_IS = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


def seen_by_members(refused: Refused) -> Refused:
    """Return a member's error if the share coordinator refuses something."""
    code = refused.code if refused.code in _AS_IT_IS else _SEEN.get(refused.code)
    return Refused(code or ErrorCode.UNKNOWN_SERVER_ERROR, refused.message)


class SharePartition:
    """The machine. `terms` are the group's present settings; the host keeps them up to date."""

    def __init__(self, partition: int, leader_epoch: int, stored: Stored, terms: Terms, store: Store) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.terms = terms
        self.flight = InFlight(stored.start_offset)
        self.dead: list[DeadLetters] = []
        """Archived and to be written: the host takes them, and calls `dead_letters_done`."""
        self._state_epoch = stored.state_epoch
        self._store = store
        # Records between the batches may never have been seen.
        flight, gap, following = self.flight, None, self.flight.start
        for batch in stored.batches:
            if not flight.start <= batch.first_offset <= batch.last_offset:
                raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, "Failed to initialize the share partition")
            if gap is None and batch.first_offset > following:
                gap = following
            following = batch.last_offset + 1
            fate = Fate(Delivery(batch.delivery_state), batch.delivery_count, NO_MEMBER)
            flight.put(Batch(batch.first_offset, batch.last_offset, fate))
            if fate.state in DONE:
                flight.complete += batch.last_offset - batch.first_offset + 1
            elif fate.state is Delivery.ARCHIVING:
                cause = TOO_OFTEN if fate.count >= self.terms.most_deliveries else REJECTED
                self.dead.append(DeadLetters(batch.first_offset, batch.last_offset, fate.count, cause, fate))
        if not flight.batches:
            return
        flight.look_back = True
        flight.end = flight.batches[-1].last
        if gap is not None:
            flight.gap = Gap(flight.end, gap)
        flight.move_start()

    def next_offset(self) -> int:
        """Return where to read next."""
        return self.flight.next_offset()

    def can_acquire(self) -> bool:
        """Return whether anything is available, or there is room for more."""
        flight = self.flight
        return self.next_offset() != flight.end + 1 or flight.size < self.terms.most_in_flight

    def acquire(
        self,
        wish: Wish,
        fetch_offset: int,
        read: Sequence[Extent],
        now_ms: int,
        aborted: Sequence[Extent] = (),
    ) -> Acquired:
        """Give a member what is available of the batches that were read from `fetch_offset` on.

        `aborted` are those of them that a read_committed group never gets: they are archived.
        """
        got = acquire.acquire(self.flight, self.terms, wish, fetch_offset, read, now_ms)
        if not aborted or not got.records:
            return got
        for extent in aborted:
            low = self.flight.floor(extent.base)
            batches = self.flight.between(extent.base if low is None else low.first, extent.last)
            self.flight.archive(extent.base, extent.last, batches, Delivery.ACQUIRED, count=True)
        left = acquire.without(got.records, aborted)
        return Acquired(left, sum(batch.last_offset - batch.first_offset + 1 for batch in left))

    def acknowledge(self, member: str, batches: Iterable[AcknowledgementBatch], now_ms: int) -> None:
        """Acknowledge a member's records, all of them or none; Refused gives the reason."""
        settling = Settling(self.flight, self.terms, now_ms)
        try:
            for batch in batches:
                settling.acknowledge(member, batch)
        except Refused:
            settling.undo()
            raise
        self._settle(settling)

    def release(self, member: str, now_ms: int) -> None:
        """Release the records of a member that is gone."""
        settling = Settling(self.flight, self.terms, now_ms)
        settling.release(member)
        self._settle(settling)

    def next_wake_ms(self) -> int | None:
        """Return when the next lock ends, or None."""
        return self.flight.next_due_ms()

    def wake(self, now_ms: int) -> bool:
        """End the lock that fell due first; return whether records became available.

        They do even if that cannot be stored: the member is silent, whatever the disk does.
        """
        lock = self.flight.pop_due(now_ms)
        if lock is None:
            return False
        settling = Settling(self.flight, self.terms, now_ms)
        settling.expire(lock.first, lock.last)
        if not settling.settled:
            return False
        with suppress(Refused):
            self._write(settling.state_batches())
        self._stored(settling)
        return True

    def log_start_moved(self, offset: int) -> None:
        """Note that the log begins at `offset` now."""
        self.flight.log_start_moved(offset)

    def dead_letters_done(self, letters: DeadLetters) -> None:
        """Settle the records of dead letters that are written, or never will be."""
        letters.fate.archive()
        self.flight.complete += self.flight.counted(letters.first, letters.last)
        batch = StateBatch(
            first_offset=letters.first,
            last_offset=letters.last,
            delivery_state=Delivery.ARCHIVED,
            delivery_count=letters.count,
        )
        with suppress(Refused):
            self._write((batch,))
        self.flight.move_start()

    def _settle(self, settling: Settling) -> None:
        if not settling.settled:
            return
        try:
            self._write(settling.state_batches())
        except Refused:
            settling.undo()
            raise
        self._stored(settling)

    def _stored(self, settling: Settling) -> None:
        settling.stored()
        self.dead += [
            DeadLetters(settled.first, settled.last, settled.fate.count, settled.cause, settled.fate)
            for settled in settling.settled
            if settled.fate.state is Delivery.ARCHIVING
        ]
        self.flight.move_start()

    def _write(self, batches: tuple[StateBatch, ...]) -> None:
        change = PartitionState(
            partition=self.partition,
            state_epoch=self._state_epoch,
            leader_epoch=self.leader_epoch,
            start_offset=self.flight.start,
            delivery_complete_count=self.flight.complete,
            state_batches=batches,
        )
        try:
            self._store(change)
        except Refused as refused:
            raise seen_by_members(refused) from None
