"""Looks at a migration: what is bounded, what is waited for, when it is over."""

from dataclasses import replace

import pytest

from kgroup.admin.migrate.watch import DONE, STUCK, WATCHING, Tracker, Unowned
from kgroup.admin.models import GroupDescription, Member
from kgroup.admin.read.members import assignment_of
from kgroup.domain import TopicPartition
from kgroup.errors import Unreachable

ALL = {TopicPartition("t", n) for n in range(2)}


def parts(*numbers):
    return assignment_of(TopicPartition("t", n) for n in numbers)


def member(name, owns=(), protocol="consumer", target=None, state="stable", epoch=1):
    wanted = parts(*(owns if target is None else target))
    return Member(name, None, "c", "h", None, protocol, epoch, state, ("t",), None, parts(*owns), wanted)


def group(*members, kind="consumer", state="Stable"):
    return GroupDescription("g", kind, kind, state, None, None, 1, 1, None, None, members, (), None)


@pytest.fixture
def tracker():
    return Tracker("g", "upgrade", stuck_after_ms=1000, settle_ms=300)


def look(tracker, now_ms, *members, blockers=None, **options):
    return tracker.observe(now_ms, group(*members, **options), ALL, blockers or {})


def test_time_without_owner_is_bounded_by_the_looks_around_it(tracker):
    look(tracker, 0, member("a", (0, 1), "classic"))
    look(tracker, 100, member("a", (0,), "classic"), member("b"))  # t-1 was let go somewhere in 100 ms
    look(tracker, 250, member("a", (0,), "classic"), member("b"))  # and had nobody for these 150
    last = look(tracker, 300, member("a", (0,), "classic"), member("b", (1,)))  # nor for some of these 50
    assert last.unowned_partition_ms == Unowned(150, 300)
    assert last.unowned == ()


def test_an_owner_that_changed_between_two_looks_may_have_left_a_gap(tracker):
    look(tracker, 0, member("a", (0, 1), "classic"))
    assert look(tracker, 40, member("b", (0, 1))).unowned_partition_ms == Unowned(0, 80)


def test_same_owner_is_no_gap(tracker):
    look(tracker, 0, member("a", (0, 1)))
    assert look(tracker, 40, member("a", (0, 1))).unowned_partition_ms == Unowned(0, 0)


def test_what_a_member_that_left_for_now_keeps_has_no_reader(tracker):
    away = member("s", (0, 1), state="left", epoch=-2)
    look(tracker, 0, away, state="Reconciling")
    last = look(tracker, 40, away, state="Reconciling")
    assert (last.unowned, last.unowned_partition_ms) == (parts(0, 1), Unowned(80, 80))


def test_done_when_all_have_moved(tracker):
    assert look(tracker, 0, member("a", (0,), "classic"), member("b", (1,))).status == WATCHING
    done = look(tracker, 10, member("c", (0,)), member("b", (1,)))
    assert (done.status, done.moved, done.members) == (DONE, 2, 2)


def test_a_missing_successor_is_waited_for_up_to_the_settle_time(tracker):
    """SIZE at its boundary: the last classic member has gone and its successor is not there yet."""
    look(tracker, 0, member("a", (0,), "classic"), member("b", (1,)))
    alone = look(tracker, 10, member("b", (0, 1)))
    assert (alone.status, alone.waits[0].code) == (WATCHING, "fewer_members")
    assert look(tracker, 309, member("b", (0, 1))).status == WATCHING
    assert look(tracker, 310, member("b", (0, 1))).status == DONE


def test_not_done_while_reconciling(tracker):
    assert look(tracker, 0, member("b", (0,)), state="Reconciling").status == WATCHING


def test_stuck_exactly_when_nothing_has_changed_for_so_long(tracker):
    stays = member("a", (0, 1), "classic")
    look(tracker, 0, stays, kind="classic")
    assert look(tracker, 999, stays, kind="classic").status == WATCHING
    last = look(tracker, 1000, stays, kind="classic")
    assert (last.status, last.stalled_ms, last.remaining) == (STUCK, 1000, ("a",))


def test_any_movement_starts_the_time_again(tracker):
    look(tracker, 0, member("a", (0, 1), "classic"))
    look(tracker, 900, member("a", (0,), "classic"))
    assert look(tracker, 1800, member("a", (0,), "classic")).status == WATCHING


def test_causes_and_since_when(tracker):
    members = (
        member("a", (0, 1), target=(0,), state="revoking"),
        member("b", (), target=(1,), state="waiting"),
        member("s", (), state="left", epoch=-2),
        member("o", (), "classic", state="behind", epoch=0),
    )
    look(tracker, 0, *members, state="Reconciling")
    waits = {wait.code: wait for wait in look(tracker, 70, *members, state="Reconciling").waits}
    assert waits["revoking"].message == "a has not given up t-1"
    assert waits["waiting"].message == "b waits for t-1, held by a"
    assert waits["behind"].message == "o has not confirmed its assignment (epoch 0, the assignment's is 1)"
    assert waits["left"].hint.endswith("--instance-id s")
    assert {wait.since_ms for wait in waits.values()} == {0}


def test_what_the_plan_says_blocks_is_a_cause(tracker):
    told = {"assignment_user_data": ("carries user data", "convert offline")}
    (first, *_) = look(tracker, 0, member("a", (0, 1), "classic"), kind="classic", blockers=told).waits
    assert (first.code, first.hint) == ("blocked:assignment_user_data", "convert offline")


def test_looks_that_cannot_be_taken_end_stuck(tracker):
    look(tracker, 0, member("a", (0, 1), "classic"))
    assert tracker.failed(500, Unreachable("down")).status == WATCHING
    last = tracker.failed(1000, Unreachable("down"))
    assert (last.status, last.waits[0].code, last.type) == (STUCK, "unreachable", None)


def test_downgrade_is_done_in_a_classic_group():
    tracker = Tracker("g", "downgrade", stuck_after_ms=1000)
    classic = replace(group(member("a", (0, 1), "classic")), type="classic")
    assert tracker.observe(0, classic, ALL, {}).status == DONE


def test_what_lies_between_two_polls_with_a_failed_one_is_bounded_too(tracker):
    """The time of an outage counted for nothing; nor is it known that nobody owned what it was without."""
    look(tracker, 0, member("a", (0,)))
    tracker.failed(300, Unreachable("down"))
    last = look(tracker, 400, member("a", (0,)))
    assert last.unowned_partition_ms == Unowned(0, 400)
    assert look(tracker, 450, member("a", (0,))).unowned_partition_ms == Unowned(50, 450)


def test_members_of_before_the_watch_are_waited_for():
    before = Tracker("g", "upgrade", stuck_after_ms=1000, settle_ms=300, most=2)
    assert look(before, 0, member("a", (0, 1))).waits[0].code == "fewer_members"
    assert look(before, 300, member("a", (0, 1))).status == DONE
