"""The status of a partition is total, and seeing less never makes it another one."""

from __future__ import annotations

from dataclasses import fields, replace
from random import Random
from typing import Any

import pytest

from kgroup.admin import statuses
from kgroup.admin.statuses import (
    ERROR,
    NO_EPOCHS,
    OK,
    SPAN_MS,
    UNSEEN,
    Epochs,
    Owner,
    PartitionFacts,
    PartitionStatus,
    Progress,
    Status,
    Unseen,
    status_of,
)

HIDDEN = Unseen("a look", "NOT_SEEN", "nobody looked")
NO_LEADER = Unseen("log ends", "LEADER_NOT_AVAILABLE", "no leader")
TIMES = (0, 14_999, 15_000, 30_001, 300_001, 3_600_000)
NOW_MS = 1_000_000


def progress(by: Random) -> Progress:
    return Progress(
        by.choice([0, 900_000, NOW_MS]),
        by.choice([-1, 0, 950_000, NOW_MS]),
        by.choice([-1, 0, NOW_MS]),
        by.choice([0, 1_000, 60_000]),
        by.randrange(4),
        by.choice(["", "", "orders-1"]),
        by.choice([0, 1_000, 60_000, 200_000, SPAN_MS]),
    )


def owner(by: Random) -> Owner:
    return Owner("a", by.random() < 0.2, by.choice([10_000, 300_000]))


def made(by: Random) -> PartitionFacts:
    """Facts of a partition, some of them hidden; nothing says that they agree with each other."""
    seen: dict[str, Any] = {
        "end": by.randrange(7),
        "exists": by.random() < 0.95,
        "rebuilt": by.random() < 0.05,
        "epochs": by.choice([NO_EPOCHS] * 18 + [Epochs(5, 3), Epochs(2, 3, by.randrange(7))]),
        "committed": by.choice([None, *range(7)]),
        "start": by.choice([0, 0, *range(7)]),
        "stable": by.choice([7, 7, *range(7)]),
        "readable": by.random() < 0.8,
        "damaged": by.choice([None] * 9 + [5]),
        "waited_ms": by.choice(TIMES),
        "open_ms": by.choice(TIMES),
        "settled": by.random() < 0.9,
        "subscribed": by.random() < 0.6,
        "members": by.randrange(3),
        "owner": by.choice([None, owner(by), owner(by), owner(by)]),
        "progress": by.choice([None, progress(by), progress(by), progress(by)]),
    }
    hidden = {look: HIDDEN for look in LOOKS if by.random() < 0.04}
    if by.random() < 0.03:
        hidden["end"] = NO_LEADER
    return PartitionFacts(**{**seen, **hidden}, shared=by.random() < 0.1, now_ms=NOW_MS)


LOOKS = [field.name for field in fields(PartitionFacts) if field.name not in ("shared", "now_ms")]
STATES = 30_000


def test_every_combination_of_facts_has_a_status_that_says_why() -> None:
    by = Random(45)
    seen = set()
    for _ in range(STATES):
        found = status_of(made(by))
        seen.add(found.name)
        assert found.weight in statuses.WEIGHTS
        assert (found.weight == UNSEEN) == (found.unseen is not None)
        assert found.good or found.why
    assert seen == set(PartitionStatus)


def test_hiding_a_fact_leaves_the_status_or_makes_it_unknown() -> None:
    by = Random(48)
    for _ in range(STATES):
        facts, look = made(by), by.choice(LOOKS)
        before, after = status_of(facts), status_of(replace(facts, **{look: HIDDEN}))
        assert after.weight == UNSEEN or after == before, (look, facts, before, after)


@pytest.mark.parametrize("part", ["waits_ms", "lost"])
def test_hiding_a_part_of_the_progress_does_so_too(part: str) -> None:
    """Where no commit showed how long records may wait a partition was an error that may wait as long."""
    by, told = Random(51), 0
    for _ in range(STATES):
        facts = replace(made(by), progress=progress(by))
        less = replace(facts, progress=replace(facts.progress, **{part: HIDDEN}))  # type: ignore[type-var]
        before, after = status_of(facts), status_of(less)
        told += after == before
        assert after.weight == UNSEEN or (after.name, after.weight) == (before.name, before.weight)
    assert told > STATES // 2


def caught(**facts: Any) -> Status:
    """The status of a partition with ten records whose reader has read five, but for these facts."""
    usual: dict[str, Any] = {
        "end": 10,
        "committed": 5,
        "stable": 10,
        "owner": Owner("a"),
        "waited_ms": 20_000,
        "progress": Progress(995_000),
        "now_ms": 1_000_000,
    }
    return status_of(PartitionFacts(**{**usual, **facts}))


def test_each_status_has_a_partition() -> None:
    silent = Progress(900_000, others_ms=995_000)
    seen = {
        caught(exists=False).name,
        caught(end=NO_LEADER).name,
        caught(rebuilt=True).name,
        caught(committed=11).name,
        caught(start=7).name,
        caught(damaged=5).name,
        caught(committed=10).name,
        caught(readable=False, stable=8, open_ms=20_000).name,
        caught(settled=False).name,
        caught(owner=None, subscribed=False).name,
        caught(owner=None).name,
        caught(owner=Owner("a", left=True)).name,
        caught(committed=None).name,
        caught(waited_ms=80_000, progress=silent).name,
        caught(waited_ms=80_000, progress=Progress(0, 995_000, 995_000, busy="orders-1")).name,
        caught().name,
        caught(readable=HIDDEN).name,
    }
    assert seen == set(PartitionStatus)


def test_a_reader_that_leaves_records_which_others_would_have_read_is_stalled() -> None:
    """Bursts, a steady feed, one batch an hour: what decides is how long a record waits."""
    began = 1_000_000 - 16_000
    assert caught(waited_ms=16_000, progress=Progress(0, others_ms=1_000_000)).weight == ERROR
    assert caught(waited_ms=14_000, progress=Progress(0, others_ms=1_000_000)).weight == OK
    # Nobody else had anything to read: suspected after half a minute, certain at its poll limit.
    assert caught(waited_ms=16_000, progress=Progress(0)).weight == OK
    busy = Progress(0, owner_ms=1_000_000)
    assert caught(waited_ms=31_000, progress=Progress(0)).weight == "warn"
    assert caught(waited_ms=61_000, progress=Progress(0)).weight == ERROR
    assert caught(waited_ms=61_000, progress=busy).weight == "warn"
    assert caught(waited_ms=301_000, progress=busy).weight == ERROR
    # It reads an older record first only while it reads.
    first = Progress(0, 995_000, 995_000, busy="orders-1")
    assert caught(waited_ms=80_000, progress=first).name == PartitionStatus.FALLING_BEHIND
    assert caught(waited_ms=80_000, progress=replace(first, owner_ms=960_000)).name == PartitionStatus.STALLED
    # A group that takes a minute for everything is given ten.
    slow = Progress(0, others_ms=1_000_000, usual_ms=60_000)
    assert caught(waited_ms=16_000, progress=slow).weight == OK
    assert caught(waited_ms=16_000, progress=Progress(began, generations=3)).weight == ERROR


def test_what_cannot_be_read_is_no_work() -> None:
    assert caught(readable=False).name == PartitionStatus.IDLE
    assert caught(readable=False, stable=8, open_ms=1_000).weight == "info"
    assert caught(start=10, readable=False).weight == "warn"
    assert caught(start=7).weight == ERROR
