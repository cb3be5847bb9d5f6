"""Rows that wait to be made: equal to those made at once, and only where none shows a fault."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pytest

from kgroup.admin.as_json import document
from kgroup.admin.models import (
    CLASSIC,
    CONSUMER,
    EMPTY,
    STABLE,
    Commits,
    GroupDescription,
    Member,
    TopicAssignment,
)
from kgroup.admin.read.lag import Sight, rows, rows_to_make, total
from kgroup.admin.read.leader_epochs import EpochEnds
from kgroup.admin.read.offsets import ListedOffset
from kgroup.admin.read.readable import LogView
from kgroup.admin.statuses import ERROR, READ, Unseen
from kgroup.domain import MemberStatus, OffsetAndMetadata, TopicPartition, grouped
from kgroup.errors import KgroupError, Unreachable

END = 100
PLACES = (TopicPartition("orders", 0), TopicPartition("orders", 1), TopicPartition("pay", 0))
OWNED = (TopicAssignment("orders", (0, 1)), TopicAssignment("pay", (0,)))
MEMBER = Member(
    "m1", "i1", "c", "h", None, CLASSIC, None, MemberStatus.STABLE, ("orders", "pay"), assignment=OWNED
)
COMMITTED = (0, 40, 99, END, 130)
VIEWS = (
    None,
    LogView(0, END, readable_at=99),
    LogView(50, END, readable_at=99),
    LogView(0, END, readable_at=60, nothing_from=61, nothing_to=END),
    LogView(0, 70, readable_at=69, opened=0, recent_from=-1),
    LogView(None, None, readable_at=99),
    LogView(0, 150, readable_at=140),
)
EPOCHS: tuple[EpochEnds, ...] = (
    {},
    {PLACES[0]: {3: 30}},
    {PLACES[0]: {3: 200}},
    {PLACES[0]: {3: Unseen("leader epochs", "NOT_TOLD", "why")}, PLACES[1]: {3: 30}},
)


def group_of(*members: Member) -> GroupDescription:
    return GroupDescription("g", CLASSIC, CONSUMER, STABLE if members else EMPTY, members=members)


def cases() -> Iterator[tuple[GroupDescription, Commits, Sight]]:
    """Groups with and without a member, at all offsets of one log while another is read or not."""
    ends: tuple[ListedOffset | KgroupError, ...] = (ListedOffset(END, -1, 3), Unreachable("no answer", ""))
    for group, at, other, view, end, epochs in product(
        (group_of(), group_of(MEMBER)), COMMITTED, (END, 99), VIEWS, ends, EPOCHS
    ):
        stored = {
            PLACES[0]: OffsetAndMetadata(at, 3, "note"),
            PLACES[1]: OffsetAndMetadata(other),
            PLACES[2]: OffsetAndMetadata(END),
        }
        last = {PLACES[0]: end, PLACES[1]: ListedOffset(END, -1, 3), PLACES[2]: ListedOffset(END, -1, 3)}
        views = {PLACES[1]: LogView(0, END, readable_at=99, recent_from=-1)}
        views |= {} if view is None else {PLACES[0]: replace(view)}
        yield group, Commits.of(stored), Sight(last, {}, views, epochs=epochs)


def described(group: GroupDescription, stored: Commits, sight: Sight) -> GroupDescription | None:
    """The group with rows to make, if they can wait."""
    to_make = rows_to_make(group, stored, sight, ())
    if to_make is None:
        return None
    lazy = replace(group)
    lazy.make_later(to_make)
    return lazy


def test_rows_made_later_are_those_made_at_once() -> None:
    later = 0
    for group, stored, sight in cases():
        at_once = rows(group, stored, sight)
        lazy = described(group, stored, sight)
        if lazy is None:
            continue
        later += 1
        assert lazy.to_make is not None and lazy.notable == ()
        counts = (lazy.row_count, lazy.committed_count, list(lazy.places))
        known, by_status = lazy.to_make, lazy.to_make.by_status
        assert total((), lags=known.lags) == total(at_once)
        assert lazy.offsets == at_once
        assert lazy.to_make is None and lazy.notable == at_once
        assert counts == (lazy.row_count, lazy.committed_count, list(lazy.places))
        placed = grouped((row.status, TopicPartition(row.topic, row.partition)) for row in at_once)
        assert {status: [*places] for status, places in by_status.items()} == placed
        assert known.behind == {
            TopicPartition(row.topic, row.partition): row.committed_offset for row in at_once if row.lag
        }
    assert later == 84


def test_rows_wait_only_where_none_shows_a_fault() -> None:
    for group, stored, sight in cases():
        at_once = rows(group, stored, sight)
        wrong = [
            row
            for row in at_once
            if row.lag is None
            or row.unreadable
            or row.error is not None
            or (row.last_stable_offset is not None and row.last_stable_offset != row.log_end_offset)
            or row.status is None
            or row.status.weight == ERROR
            or (group.members and row.status != READ)
        ]
        if wrong:
            assert rows_to_make(group, stored, sight, ()) is None
    group, stored, sight = next(cases())
    assert rows_to_make(group, Commits(), sight, ()) is None
    read = Commits.of(dict.fromkeys(PLACES, OffsetAndMetadata(END)))
    assert rows_to_make(group, read, sight, ()) is not None
    assert rows_to_make(group, read, sight, {TopicPartition("pay", 1)}) is None


def test_rows_are_those_of_the_look_though_the_logs_moved_on() -> None:
    view = LogView(0, END, readable_at=99)
    ends = {PLACES[0]: ListedOffset(END, -1, 3)}
    group, stored = group_of(), Commits.of({PLACES[0]: OffsetAndMetadata(40)})
    at_once = rows(group, stored, Sight(ends, {}, {PLACES[0]: replace(view)}))
    lazy = described(group, stored, Sight(ends, {}, {PLACES[0]: view}))
    assert lazy is not None
    view.start, view.stable = 90, None
    assert lazy.offsets == at_once


@pytest.mark.parametrize(
    "use", [document, repr, replace, hash, lambda group: pickle.loads(pickle.dumps(group))]
)
def test_a_group_with_rows_to_make_is_used_as_one_that_has_them(use: object) -> None:
    assert callable(use)
    ends = dict.fromkeys(PLACES, ListedOffset(END, -1, 3))
    stored = Commits.of(dict.fromkeys(PLACES, OffsetAndMetadata(END)))
    sight = Sight(ends, {})
    lazy = described(group_of(MEMBER), stored, sight)
    assert lazy is not None
    assert use(lazy) == use(replace(group_of(MEMBER), offsets=rows(group_of(MEMBER), stored, sight)))


def test_no_other_field_is_found_missing_as_if_it_were_to_be_made() -> None:
    with pytest.raises(AttributeError, match="'GroupDescription' has no attribute 'lags'"):
        _ = group_of().lags  # type: ignore[attr-defined]
