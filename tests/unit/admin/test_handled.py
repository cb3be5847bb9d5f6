"""What members made of their records, by events of the log of deliveries; and what follows from how long."""

from __future__ import annotations

import pytest

from kgroup.admin.diagnose.handled import Handled
from kgroup.admin.statuses import PartitionFacts, Progress, Unseen, status_of
from kgroup.history.fold.events import Delivered, Event, Kind

NOW_MS = 10_000_000
LIMIT = 5


def ended(kind: Kind, at_ms: int, first: int, last: int, times: int, *, proven: bool = True) -> Event:
    return Event(
        log_partition=0,
        offset=at_ms,
        timestamp_ms=at_ms,
        group="g",
        protocol="share",
        kind=kind,
        end_offset=at_ms,
        end_timestamp_ms=at_ms,
        detail="",
        records=(Delivered("t", 0, first, last, times),),
        proven=proven,
    )


def handled(*events: Event) -> Handled:
    found = Handled(0, whole=True, complete=True)
    for event in events:
        found.take(event)
    return found


def test_what_comes_back_or_is_given_up_is_not_finished() -> None:
    found = handled(
        ended(Kind.RECORDS_ACKNOWLEDGED, 100, 0, 6, 1),
        *(ended(Kind.RECORDS_RELEASED, 100 + n, 7, 9, n) for n in range(1, LIMIT)),
        ended(Kind.RECORDS_ARCHIVED, 200, 7, 7, LIMIT),
    )
    assert found.finished_ms(LIMIT) == 100
    assert (found.rounds(100), found.rounds(103), found.given_up(LIMIT)) == (5, 2, 1)
    # At a higher limit it was rejected, and so it may have been where the limit is not known.
    assert found.finished_ms(LIMIT + 1) == found.finished_ms(None) == 200
    assert found.given_up(None) == 0


def test_a_rejection_at_the_first_delivery_finishes_a_record() -> None:
    found = handled(
        ended(Kind.RECORDS_RELEASED, 50, 3, 3, 1),
        ended(Kind.RECORDS_ARCHIVED, 100, 4, 4, 1),
    )
    assert (found.finished_ms(LIMIT), found.rounds(0)) == (100, 0)


def test_dead_letters_are_counted_once() -> None:
    found = handled(
        *(
            ended(kind, at_ms, offset, offset, LIMIT)
            for offset in (7, 8)
            for kind, at_ms in ((Kind.RECORDS_ARCHIVING, 100), (Kind.RECORDS_ARCHIVED, 101))
        )
    )
    assert found.given_up(LIMIT) == 2


def test_what_the_log_begins_with_ended_at_some_time_before() -> None:
    found = handled(ended(Kind.RECORDS_RELEASED, 500, 3, 9, 2, proven=False))
    assert (found.since_ms, found.whole, found.complete) == (500, False, False)
    found.open_from = 4
    assert (found.delivered_ms, found.rounds(500)) == (500, 0)
    found.take(ended(Kind.RECORDS_ACKNOWLEDGED, 600, 4, 4, 3))
    assert (found.since_ms, found.whole, found.complete) == (600, True, False)


@pytest.mark.parametrize(
    ("silent_s", "lock_s", "usual_s", "rounds", "said"),
    [
        (29, 30, 0, 0, ("reading", "ok")),
        (31, 30, 0, 0, ("stalled", "warn")),
        (59, 60, 0, 0, ("reading", "ok")),
        (110, 30, 60, 0, ("reading", "ok")),
        (121, 30, 60, 0, ("stalled", "warn")),
        (301, 30, 60, 0, ("stalled", "error")),
        (301, 30, 200, 0, ("reading", "ok")),
        (599, 600, 0, 0, ("reading", "ok")),
        (601, 600, 0, 0, ("stalled", "error")),
        (20, 30, 60, 3, ("stalled", "error")),
        (20, 30, 60, 2, ("reading", "ok")),
        (14, 30, 0, 3, ("reading", "ok")),
        (31, 30, None, 0, ("unknown", "unknown")),
        (599, 30, None, 0, ("unknown", "unknown")),
        (601, 30, None, 0, ("stalled", "error")),
    ],
)
def test_a_share_group_is_judged_by_how_long_nothing_was_finished(
    silent_s: int, lock_s: int, usual_s: int | None, rounds: int, said: tuple[str, str]
) -> None:
    untold = Unseen("history", "DELETED", "how long its records take")
    made = Progress(
        NOW_MS - silent_s * 1000,
        generations=rounds,
        waits_ms=untold if usual_s is None else usual_s * 1000,
        lock_ms=lock_s * 1000,
    )
    facts = PartitionFacts(9, committed=4, waited_ms=700_000, shared=True, progress=made, now_ms=NOW_MS)
    status = status_of(facts)
    assert (status.name, status.weight) == said
