"""KG309: offsets that a transaction holds open, of readers whose transactions take their time."""

from __future__ import annotations

import pytest

from kgroup.admin.diagnose.commits import _in
from kgroup.domain import ZERO_UUID, TopicPartition
from kgroup.history.log_items import Committed, Marker, PendingCommit
from tests.unit.admin.doctor_logs import (
    Held,
    Record,
    commits,
    described,
    generation,
    in_transactions,
    remembering,
    written,
)
from tests.unit.admin.test_doctor_checks import _held, codes, examine

A = Held("a", "orders:0,1")
NOW_S = 1_000


def transaction(begun_s: int, ended_s: int | None) -> list[tuple[int, list[Record]]]:
    """One that held the offset of orders-1 open so long, or does."""
    (_, offsets), (_, end) = in_transactions(commits(begun_s, {1: begun_s // 100}))
    return [(begun_s, offsets), *([] if ended_s is None else [(ended_s, end)])]


@pytest.mark.parametrize(
    ("took_s", "open_s", "found"),
    [(30, 40, False), (30, 70, True), (1, 40, True), (1, 5, False)],
    ids=["as they are", "longer than they are", "longer than short ones are", "it has just begun"],
)
def test_a_transaction_may_hold_offsets_open_as_long_as_those_before(
    took_s: int, open_s: int, found: bool
) -> None:
    """A reader that added offsets as it read and committed once a minute was in error at each look."""
    ended = [lot for at in range(100, 900, 100) for lot in transaction(at, at + took_s)]
    fake = remembering(
        described(A),
        {"orders:0": 4, "orders:1": 8},
        (0, [generation(1, [A])]),
        *ended,
        *transaction(NOW_S - open_s, None),
    )
    fake = _held(written(fake, {}), 99)
    checkup = examine(fake.cluster(), "g", now_ms=NOW_S * 1000, patience_s=0)
    assert ("KG309" in codes(checkup)) == found


def test_of_a_transaction_the_last_offset_counts() -> None:
    """What it added before looked like commits a second apart, and its reader like one that is late."""

    class Topic:
        def knows(self, topic_id: bytes) -> bool:
            return True

    def added(second: int) -> PendingCommit:
        at = Committed(second, -1, "", 1000 * second, -1, ZERO_UUID, 3, second, 1000 * second)
        return PendingCommit("g", "orders", 0, 7, at)

    begun: dict[int, dict[tuple[str, TopicPartition], object]] = {}
    items = [added(1), added(2), Marker(7, True, 9, 3_000), added(4), Marker(7, False, 9, 5_000)]
    counted = [each for item in items for each in _in(item, begun, Topic())]  # type: ignore[arg-type]
    assert counted == [(("g", TopicPartition("orders", 0)), (2, 2_000))]
