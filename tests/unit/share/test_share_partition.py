"""A partition as a share group reads it: what is acquired, how it ends, and what is stored of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.messages.share_fetch import AcknowledgementBatch
from kgroup.protocol.messages.write_share_group_state import PartitionState
from kgroup.protocol.share_state_records import StateBatch
from kgroup.share.acquire import Extent, Terms, Wish
from kgroup.share.batches import combine
from kgroup.share.in_flight import Delivery
from kgroup.share.partition import SharePartition, Stored
from kgroup.share.settle import REJECTED, TOO_OFTEN, Acknowledge

TERMS = Terms(lock_ms=1000, most_deliveries=5, most_in_flight=100)


class Shared:
    """A share partition with a store that notes what is written, or refuses it."""

    def __init__(self, start: int = 0, batches: Sequence[StateBatch] = (), **terms: object) -> None:
        self.written: list[PartitionState] = []
        self.refusal: Refused | None = None
        stored = Stored(0, start, tuple(batches))
        self.at = SharePartition(0, 0, stored, replace(TERMS, **terms), self._store)  # type: ignore[arg-type]

    def _store(self, change: PartitionState) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.written.append(change)

    def acquire(
        self, *read: tuple[int, int], member: str = "a", most: int = 100, now_ms: int = 0, **how: object
    ) -> list[tuple[int, int, int]]:
        """Acquire from batches of the log, and return first and last offset and delivery count."""
        aborted = [Extent(*each) for each in how.pop("aborted", ())]  # type: ignore[attr-defined]
        wish = Wish(member, most, **how)  # type: ignore[arg-type]
        extents = [Extent(*each) for each in read]
        got = self.at.acquire(wish, self.at.next_offset(), extents, now_ms, aborted)
        return [(each.first_offset, each.last_offset, each.delivery_count) for each in got.records]

    def say(self, first: int, last: int, *types: Acknowledge, member: str = "a", now_ms: int = 0) -> None:
        batch = AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=types)
        self.at.acknowledge(member, [batch], now_ms)

    def last_written(self) -> tuple[int, int, list[tuple[int, int, int, int]]]:
        """Start, number of settled records behind it, and the batches that were stored last."""
        state = self.written[-1]
        batches = [
            (b.first_offset, b.last_offset, b.delivery_state, b.delivery_count) for b in state.state_batches
        ]
        return state.start_offset, state.delivery_complete_count, batches


def test_what_is_archived_has_no_lock_any_more() -> None:
    """Records of an aborted transaction are archived as they are acquired: nothing falls due."""
    shared = Shared()
    assert shared.acquire((0, 9), aborted=[(0, 9)]) == []
    assert shared.at.next_wake_ms() is None
    assert shared.acquire((10, 19), aborted=[(10, 14)]) == [(15, 19, 1)]
    # Each record has a lock of its own by now.
    for offset in range(15, 20):
        assert shared.at.next_wake_ms() == 1000
        assert shared.at.wake(1000)
        assert shared.last_written()[2] == [(offset, offset, Delivery.AVAILABLE, 1)]
    assert shared.at.next_wake_ms() is None
    assert shared.acquire((10, 19)) == [(15, 19, 2)]


def test_a_lock_ends_at_its_time_and_not_before() -> None:
    shared = Shared()
    shared.acquire((0, 4))
    shared.acquire((5, 9), now_ms=10)
    assert not shared.at.wake(999)
    assert shared.acquire((0, 9), now_ms=999) == []
    assert shared.at.wake(1000)
    assert shared.at.next_wake_ms() == 1010
    assert shared.acquire((0, 9), now_ms=1000) == [(0, 4, 2)]
    shared.say(0, 4, Acknowledge.ACCEPT, now_ms=1001)
    assert shared.at.next_wake_ms() == 1010


def test_a_renewed_lock_runs_from_then() -> None:
    shared = Shared()
    shared.acquire((0, 0))
    shared.say(0, 0, Acknowledge.RENEW, now_ms=600)
    assert shared.at.next_wake_ms() == 1600
    assert shared.written == []
    refusing = Shared(may_renew=False)
    refusing.acquire((0, 0))
    with pytest.raises(Refused, match="not enabled"):
        refusing.say(0, 0, Acknowledge.RENEW)


def test_the_start_passes_what_is_settled_in_order() -> None:
    shared = Shared()
    shared.acquire((0, 9))
    shared.say(2, 3, Acknowledge.ACCEPT)
    assert shared.last_written() == (0, 2, [(2, 3, Delivery.ACKNOWLEDGED, 1)])
    assert (shared.at.flight.start, shared.at.flight.size) == (0, 10)
    shared.say(0, 1, Acknowledge.ACCEPT, Acknowledge.REJECT)
    assert (shared.at.flight.start, shared.at.flight.complete) == (4, 0)
    shared.say(4, 9, Acknowledge.GAP)
    assert (shared.at.flight.start, shared.at.next_offset()) == (10, 10)
    assert shared.at.flight.batches == []


def test_released_records_come_again_and_are_given_up_at_the_limit() -> None:
    shared = Shared(most_deliveries=3)
    for count in (1, 2):
        assert shared.acquire((0, 1)) == [(0, 1, count)]
        shared.say(0, 1, Acknowledge.RELEASE)
        assert shared.last_written() == (0, 0, [(0, 1, Delivery.AVAILABLE, count)])
        assert shared.at.next_wake_ms() is None
    # At last one at a time: each may be what kills its reader.
    assert shared.acquire((0, 1), member="b") == [(0, 0, 3)]
    shared.at.release("b", 0)
    assert shared.last_written()[2] == [(0, 0, Delivery.ARCHIVED, 3)]
    assert shared.at.flight.start == 1


def test_only_the_member_with_a_record_settles_it() -> None:
    shared = Shared()
    shared.acquire((0, 4))
    for first, last, why in ((0, 4, "not the owner"), (1, 2, "not the owner")):
        with pytest.raises(Refused, match=why) as refused:
            shared.say(first, last, Acknowledge.ACCEPT, member="b")
        assert refused.value.code is ErrorCode.INVALID_RECORD_STATE
    with pytest.raises(Refused, match="past acquired"):
        shared.say(3, 5, Acknowledge.ACCEPT)
    shared.say(0, 4, Acknowledge.RELEASE)
    with pytest.raises(Refused, match="not in the acquired state"):
        shared.say(0, 4, Acknowledge.ACCEPT)
    shared.at.release("b", 0)
    assert len(shared.written) == 1


def test_a_request_that_is_refused_in_its_middle_changes_nothing() -> None:
    shared = Shared()
    shared.acquire((0, 4))
    shared.acquire((5, 9), member="b")
    batches = [
        AcknowledgementBatch(first_offset=at, last_offset=at + 4, acknowledge_types=(Acknowledge.ACCEPT,))
        for at in (0, 5)
    ]
    with pytest.raises(Refused):
        shared.at.acknowledge("a", batches, 0)
    assert (shared.written, shared.at.flight.complete, shared.at.flight.start) == ([], 0, 0)
    shared.say(0, 4, Acknowledge.ACCEPT)
    assert shared.at.flight.start == 5


@pytest.mark.parametrize(
    ("code", "seen"),
    [
        (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.FENCED_STATE_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.GROUP_ID_NOT_FOUND),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_what_cannot_be_stored_is_as_before(code: ErrorCode, seen: ErrorCode) -> None:
    shared = Shared()
    shared.acquire((0, 4))
    shared.refusal = Refused(code, "no")
    with pytest.raises(Refused) as refused:
        shared.say(0, 4, Acknowledge.ACCEPT)
    assert refused.value.code is seen
    assert (shared.at.flight.complete, shared.at.next_wake_ms()) == (0, 1000)
    # But a lock ends whatever the disk does: its member is silent.
    assert shared.at.wake(1000)
    assert shared.acquire((0, 4), member="b") == [(0, 4, 2)]


def test_no_more_is_in_flight_than_allowed() -> None:
    shared = Shared(most_in_flight=5)
    assert shared.acquire((0, 9), by_record=True) == [(0, 4, 1)]
    assert shared.at.can_acquire()  # the rest of the batch is available
    whole = Shared(most_in_flight=5)
    assert whole.acquire((0, 9)) == [(0, 9, 1)]
    assert not whole.at.can_acquire()
    assert whole.acquire((10, 19)) == []
    whole.say(0, 9, Acknowledge.ACCEPT)
    assert whole.at.can_acquire()


def test_records_are_acquired_by_number_or_in_whole_batches() -> None:
    by_record = Shared()
    assert by_record.acquire((0, 9), most=3, by_record=True) == [(0, 2, 1)]
    assert by_record.at.next_offset() == 3
    assert by_record.acquire((0, 9), most=3, by_record=True, member="b") == [(3, 5, 1)]
    batches = Shared()
    assert batches.acquire((0, 4), (5, 9), (10, 14), most=7) == [(0, 9, 1)]
    assert batches.acquire((10, 14), most=0) == []
    assert batches.acquire((10, 14), (15, 19), (20, 24), batch_size=5) == [
        (10, 14, 1),
        (15, 19, 1),
        (20, 24, 1),
    ]


def test_records_that_are_gone_from_the_log_are_passed() -> None:
    shared = Shared()
    shared.acquire((0, 9))
    shared.say(0, 9, Acknowledge.RELEASE)
    shared.acquire((0, 9), most=4, by_record=True)
    shared.say(1, 1, Acknowledge.ACCEPT)
    assert shared.at.flight.complete == 1
    shared.at.log_start_moved(6)
    assert (shared.at.flight.start, shared.at.flight.complete) == (6, 0)
    assert shared.acquire((6, 9), member="b") == [(6, 9, 2)]
    # Those that a member has are settled without effect when their lock ends.
    assert shared.at.wake(1000)
    shared.at.log_start_moved(3)
    assert shared.at.flight.start == 6
    empty = Shared()
    empty.at.log_start_moved(7)
    assert (empty.at.flight.start, empty.at.next_offset()) == (7, 7)


def test_what_was_stored_is_loaded_with_its_gaps() -> None:
    shared = Shared(
        10,
        [
            StateBatch(
                first_offset=12, last_offset=13, delivery_state=Delivery.ACKNOWLEDGED, delivery_count=1
            ),
            StateBatch(first_offset=14, last_offset=19, delivery_state=Delivery.AVAILABLE, delivery_count=2),
        ],
    )
    assert (shared.at.flight.complete, shared.at.flight.size) == (2, 10)
    assert shared.at.next_offset() == 10
    assert shared.acquire((10, 19)) == [(10, 11, 1), (14, 19, 3)]
    assert shared.at.next_offset() == 20
    with pytest.raises(Refused):
        Shared(10, [StateBatch(first_offset=9, last_offset=13, delivery_state=0, delivery_count=1)])


def test_dead_letters_are_settled_when_they_are_written() -> None:
    shared = Shared(dead_letters=True, most_deliveries=1)
    shared.acquire((0, 1))
    shared.say(0, 1, Acknowledge.REJECT)
    shared.acquire((2, 2))
    assert shared.at.wake(1000)
    assert [(each.first, each.last, each.cause) for each in shared.at.dead] == [
        (0, 1, REJECTED),
        (2, 2, TOO_OFTEN),
    ]
    assert shared.last_written()[2] == [(2, 2, Delivery.ARCHIVING, 1)]
    assert shared.at.flight.start == 0
    for letters in shared.at.dead:
        shared.at.dead_letters_done(letters)
    assert shared.last_written() == (2, 1, [(2, 2, Delivery.ARCHIVED, 1)])
    assert shared.at.flight.start == 3


def test_of_overlapping_state_the_later_delivery_counts() -> None:
    def state(first: int, last: int, state: int, count: int) -> StateBatch:
        return StateBatch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)

    assert combine([state(0, 9, 0, 1), state(3, 5, 2, 2)], -1) == (
        state(0, 2, 0, 1),
        state(3, 5, 2, 2),
        state(6, 9, 0, 1),
    )
    assert combine([state(0, 9, 0, 2), state(5, 14, 2, 1)], 4) == (state(4, 9, 0, 2), state(10, 14, 2, 1))
    assert combine([state(0, 4, 2, 1), state(5, 9, 2, 1)], -1) == (state(0, 9, 2, 1),)
    assert combine([state(0, 4, 2, 1)], 5) == ()
