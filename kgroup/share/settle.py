"""Acknowledging, releasing and expiring the records that a member has acquired."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.messages.share_fetch import AcknowledgementBatch
from kgroup.protocol.share_state_records import StateBatch
from kgroup.share.acquire import Terms
from kgroup.share.in_flight import DONE, NO_MEMBER, Batch, Delivery, Fate, InFlight


class Acknowledge(IntEnum):
    """A member's acknowledgement of a record."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


_BECOMES = {
    Acknowledge.GAP: Delivery.ARCHIVED,
    Acknowledge.ACCEPT: Delivery.ACKNOWLEDGED,
    Acknowledge.RELEASE: Delivery.AVAILABLE,
    Acknowledge.REJECT: Delivery.ARCHIVED,
}
REJECTED = "Offset rejected by client."
TOO_OFTEN = "Offset delivery count exceeded the threshold."


@dataclass(slots=True)
class Settled:
    """Records that are about to change, with their old state in case it cannot be stored."""

    fate: Fate
    first: int
    last: int
    before: Delivery
    member: str
    cause: str = ""
    """Why they go to the dead letters, if they do."""


class Settling:
    """One request or deadline under way: its changes, to be stored or undone as one."""

    def __init__(self, flight: InFlight, terms: Terms, now_ms: int) -> None:
        self.flight = flight
        self.terms = terms
        self.now_ms = now_ms
        self.settled: list[Settled] = []

    def state_batches(self) -> tuple[StateBatch, ...]:
        """Return what is to be stored; equal neighbours are merged."""
        state_batches: list[tuple[int, int, Delivery, int]] = []
        for settled in self.settled:
            alike = (settled.fate.state, settled.fate.count)
            if state_batches and state_batches[-1][1] == settled.first - 1 and state_batches[-1][2:] == alike:
                state_batches[-1] = (state_batches[-1][0], settled.last, *alike)
            else:
                state_batches.append((settled.first, settled.last, *alike))
        return tuple(
            StateBatch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)
            for first, last, state, count in state_batches
        )

    def stored(self) -> None:
        """Complete a stored change: the locks end."""
        for settled in self.settled:
            settled.fate.unlock()
            if settled.fate.state is Delivery.AVAILABLE:
                self.flight.look_back = True

    def undo(self) -> None:
        """Undo a change that was refused or not stored: the members have what they had."""
        for settled in self.settled:
            if settled.fate.state in DONE:
                self.flight.complete -= self.flight.counted(settled.first, settled.last)
            settled.fate.state, settled.fate.member = settled.before, settled.member

    def acknowledge(self, member: str, batch: AcknowledgementBatch) -> None:
        """Acknowledge a member's batch; Refused leaves what came before it to `undo`."""
        if batch.last_offset < self.flight.start:
            return
        for in_flight in self._named(batch):
            if in_flight.last < self.flight.start:
                continue
            if in_flight.whole is not None:
                if in_flight.whole.member == NO_MEMBER:
                    raise _invalid_state(
                        "The batch cannot be acknowledged. The batch is not in the acquired state."
                    )
                if in_flight.whole.member != member:
                    raise _invalid_state("Member is not the owner of batch record")
            inside = in_flight.first >= batch.first_offset and in_flight.last <= batch.last_offset
            split = len(batch.acknowledge_types) > 1 or self.flight.starts_within(
                in_flight.first, in_flight.last
            )
            if in_flight.whole is not None and inside and not split:
                self._acknowledge(
                    in_flight.whole, in_flight.first, in_flight.last, batch.acknowledge_types[0]
                )
            else:
                self._each(member, in_flight, batch)

    def _named(self, batch: AcknowledgementBatch) -> list[Batch]:
        """Return the batches in flight that have the records; Refused unless they have all of them."""
        first, last = batch.first_offset, batch.last_offset
        low = self.flight.floor(first)
        if low is None and self.flight.starts_within(first, last):
            low = self.flight.floor(self.flight.start)
        if low is None:
            raise _invalid_state(
                "Batch record not found. The request batch offsets are not found in the cache."
            )
        batches = self.flight.between(low.first, last)
        for bound, which in ((first, "first"), (last, "last")):
            if batches[-1].last < bound:
                raise Refused(
                    ErrorCode.INVALID_REQUEST,
                    f"Batch record not found. The {which} offset in request is past acquired records.",
                )
        return batches

    def _each(self, member: str, in_flight: Batch, batch: AcknowledgementBatch) -> None:
        if in_flight.whole is not None and in_flight.whole.state is not Delivery.ACQUIRED:
            raise _invalid_state(
                "The batch cannot be acknowledged. The subset batch is not in the acquired state."
            )
        self.flight.split(in_flight)
        types = batch.acknowledge_types
        first = max(batch.first_offset, self.flight.start)
        for offset, fate in in_flight.fates(first, batch.last_offset):
            if fate.state is not Delivery.ACQUIRED:
                raise _invalid_state("The offset cannot be acknowledged. The offset is not acquired.")
            if fate.member != member:
                raise _invalid_state("Member is not the owner of offset")
            said = types[offset - batch.first_offset] if len(types) > 1 else types[0]
            self._acknowledge(fate, offset, offset, said)

    def _acknowledge(self, fate: Fate, first: int, last: int, said: int) -> None:
        if fate.state is not Delivery.ACQUIRED:
            raise _invalid_state("The batch cannot be acknowledged. The batch is not in the acquired state.")
        if said == Acknowledge.RENEW:
            if not self.terms.may_renew:
                raise _invalid_state("Renewing acquisition locks is not enabled for the group.")
            fate.unlock()
            fate.lock = self.flight.lock(first, last, self.now_ms + self.terms.lock_ms)
            return
        state, cause = _BECOMES[Acknowledge(said)], ""
        if said == Acknowledge.REJECT and self.terms.dead_letters:
            state, cause = Delivery.ARCHIVING, REJECTED
        self._settle(fate, first, last, state, cause)

    def release(self, member: str) -> None:
        """Release a member's records; those gone from the log are archived."""
        for batch in self.flight.batches:
            self._release(batch, batch.first, batch.last, member)

    def expire(self, first: int, last: int) -> None:
        """Release the records of a lock whose time is over."""
        low = self.flight.floor(first)
        if low is None:
            return
        for batch in self.flight.between(low.first, last):
            self._release(batch, first, last)

    def _release(self, batch: Batch, first: int, last: int, member: str | None = None) -> None:
        """Release the acquired records of a batch, or of a range of a split one, by `member` if named."""
        whole = batch.whole
        acquired = whole is not None and whole.state is Delivery.ACQUIRED and member in (None, whole.member)
        if acquired and self.flight.starts_within(batch.first, batch.last):
            self.flight.split(batch)
        parts = (
            [(batch.first, batch.last, batch.whole)]
            if batch.whole is not None
            else [(offset, offset, fate) for offset, fate in batch.fates(first, last)]
        )
        for begin, end, fate in parts:
            if fate.state is Delivery.ACQUIRED and member in (None, fate.member):
                gone = end < self.flight.start
                self._settle(fate, begin, end, Delivery.ARCHIVED if gone else Delivery.AVAILABLE)

    def _settle(self, fate: Fate, first: int, last: int, state: Delivery, cause: str = "") -> None:
        if state is Delivery.AVAILABLE and fate.count >= self.terms.most_deliveries:
            dead = self.terms.dead_letters
            state, cause = (Delivery.ARCHIVING, TOO_OFTEN) if dead else (Delivery.ARCHIVED, "")
        self.settled.append(Settled(fate, first, last, fate.state, fate.member, cause))
        fate.state, fate.member = state, NO_MEMBER
        if state in DONE:
            self.flight.complete += self.flight.counted(first, last)


def _invalid_state(message: str) -> Refused:
    return Refused(ErrorCode.INVALID_RECORD_STATE, message)
