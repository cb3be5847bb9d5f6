"""What changed between two looks, as events: each difference once, and nothing that did not happen."""

from __future__ import annotations

from dataclasses import replace

from kgroup.admin.models import GroupDescription, ItemError, Member
from kgroup.admin.read.members import assignment_of
from kgroup.admin.read.watching import Change, differences, sight_changes
from kgroup.domain import TopicPartition


def member(member_id: str, *owns: int, instance: str | None = None, state: str = "stable") -> Member:
    held = assignment_of(TopicPartition("orders", number) for number in owns)
    return Member(member_id, instance, "c", "h", None, "consumer", 5, state, ("orders",), None, held, held)


def group(*members: Member, **changes: object) -> GroupDescription:
    base = GroupDescription(
        "g", "consumer", "consumer", "Stable", "uniform", None, 5, 5, None, None, members, (), 0
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def told(*changes: Change) -> list[tuple[str, str | None, dict[str, object]]]:
    return [(change.event, change.member_id, dict(change.detail)) for change in changes]


def test_nothing_changed() -> None:
    assert differences("g", None, None) == ()
    assert differences("g", group(member("a", 0)), group(member("a", 0)), lag=True) == ()


def test_a_group_that_comes_and_goes() -> None:
    detail = {"type": "consumer", "state": "Stable", "members": 1}
    one = group(member("a"))
    assert told(*differences("g", None, one)) == [("group_appeared", None, detail)]
    assert told(*differences("g", one, None)) == [("group_gone", None, detail)]


def test_members_that_are_not_told_are_not_none() -> None:
    (change,) = differences("g", None, group(members=None))
    assert change.detail["members"] is None


def test_the_group_s_own_changes_come_first() -> None:
    before = group(member("a", 0))
    after = group(member("a", 0, 1), state="Reconciling", group_epoch=6)
    assert told(*differences("g", before, after)) == [
        ("state_changed", None, {"before": "Stable", "after": "Reconciling"}),
        ("epoch_changed", None, {"before": 5, "after": 6}),
        ("assignment_changed", "a", {"gained": ["orders-1"], "lost": []}),
    ]


def test_a_lag_is_told_where_it_is_asked_for_and_may_become_unknown() -> None:
    before, after = group(total_lag=7), group(total_lag=None)
    assert differences("g", before, after) == ()
    assert told(*differences("g", before, after, lag=True)) == [
        ("lag_changed", None, {"before": 7, "after": None})
    ]


def test_members_that_join_and_leave() -> None:
    changes = told(*differences("g", group(member("a", 0)), group(member("b", 0))))
    assert changes == [
        ("member_joined", "b", {"client_id": "c", "host": "h"}),
        ("assignment_changed", "b", {"gained": ["orders-0"], "lost": []}),
        ("member_left", "a", {"held": ["orders-0"]}),
    ]


def test_a_static_member_s_successor_is_no_newcomer() -> None:
    before = group(member("a", 0, instance="i"), member("c", 1, instance="j"))
    after = group(member("b", 0, instance="i"), member("c", 1, instance="j"))
    assert told(*differences("g", before, after)) == [("member_replaced", "b", {"before": "a", "after": "b"})]


def test_a_member_s_state() -> None:
    before, after = group(member("a", 0)), group(member("a", 0, state="left"))
    assert told(*differences("g", before, after)) == [
        ("member_state_changed", "a", {"before": "stable", "after": "left"})
    ]


def test_what_gets_out_of_sight_and_is_seen_again() -> None:
    away = ItemError("g", "UNREACHABLE", "broker 1 is down")
    denied = ItemError("h", "GROUP_AUTHORIZATION_FAILED", "denied")
    assert [(c.event, c.group_id) for c in sight_changes({"g": away}, {"h": denied})] == [
        ("not_seen", "h"),
        ("seen_again", "g"),
    ]
    assert sight_changes({"g": away}, {"g": away}) == ()
