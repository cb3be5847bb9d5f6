"""From dynamic to static members: who has no id, what a good one is, which session fits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kgroup.admin.migrate.models import Logged
from kgroup.admin.migrate.static import dips, plan_of_static
from kgroup.admin.models import Member
from kgroup.admin.read.conditions import Condition
from kgroup.domain import MemberStatus
from kgroup.errors import BrokerRefused
from kgroup.history.fold.folding import Holdings
from kgroup.history.fold.view import RecordedMember
from kgroup.protocol.subscription import Subscription
from tests.unit.admin.test_migrate_plan import SETTINGS, evidence, group

S = 1_000


def member(name: str, instance: str | None = None, host: str = "10.0.0.1", known: bool = True) -> Member:
    made = Member(
        name, instance, "c", host, None, "classic", None, MemberStatus.STABLE, ("orders",), None, (), ()
    )
    return replace(made, instance_id_known=known)


def found(*members: Member, **changes):
    return evidence(settings=SETTINGS, group=group(members=members, **changes))


def statuses(plan) -> dict[str, str]:
    return {check.code: check.status for check in plan.checks}


def test_members_without_an_id_are_named() -> None:
    plan = plan_of_static(found(member("a"), member("b", "orders-1", "10.0.0.2")), True, None)
    assert plan.verdict == "ready"
    (check,) = [check for check in plan.checks if check.code == "static_ids"]
    assert check.message.startswith("without an instance id: 1 of 2 members: c on 10.0.0.1")
    assert statuses(plan)["session_timeout"] == "info"


def test_all_static_is_already() -> None:
    assert plan_of_static(found(member("a", "orders-0")), True, None).verdict == "already"


def test_several_consumers_of_one_host_need_more_than_its_name() -> None:
    assert statuses(plan_of_static(found(member("a"), member("b")), True, None))["instance_ids"] == "warn"
    apart = plan_of_static(found(member("a"), member("b", host="10.0.0.2")), True, None)
    assert statuses(apart)["instance_ids"] == "info"


def test_what_is_not_reported_is_unknown_and_an_old_broker_blocks() -> None:
    assert plan_of_static(found(member("a", known=False)), True, None).verdict == "unknown"
    assert plan_of_static(found(member("a")), False, None).verdict == "blocked"
    assert plan_of_static(found(member("a"), protocol_type="connect"), True, None).verdict == "blocked"


@pytest.mark.parametrize(
    ("restarts", "status", "said"),
    [
        ((), "info", "the records show none"),
        ((4 * S, 9 * S), "ok", "2 restarts in the records, the longest 9 s: 45 s fits"),
        ((61 * S,), "ok", "95 s fits"),
        ((25 * 60 * S,), "warn", "2250 s would fit, and group.max.session.timeout.ms is 1800 s"),
    ],
)
def test_the_session_fits_the_restarts(restarts: tuple[int, ...], status: str, said: str) -> None:
    plan = plan_of_static(found(member("a")), True, restarts)
    (check,) = [check for check in plan.checks if check.code == "session_timeout"]
    assert check.status == status and said in check.message


@pytest.mark.parametrize(
    ("changes", "now", "status"),
    [
        ({"logged": None}, None, "ok"),
        ({"logged": Logged(3, None, {"a": 10 * S})}, None, "ok"),
        ({"logged": Logged(3, None, {"a": 10 * S, "b": 60 * S})}, [10 * S, 60 * S], "warn"),
        ({"logged": Logged(3, None, {"a": 45 * S, "b": 45 * S})}, [45 * S], "ok"),
    ],
)
def test_the_session_in_use_is_compared_where_all_are_known(changes, now, status: str) -> None:
    made = replace(found(member("a"), member("b")), **changes)
    (check,) = [c for c in plan_of_static(made, True, (9 * S,)).checks if c.code == "session_timeout"]
    assert (check.status, check.evidence["members_ms"]) == (status, now)
    assert ("unknown what the members use now" in check.message) == (now is None)


def test_the_session_of_a_consumer_group_is_its_setting() -> None:
    newer, older = replace(member("a"), protocol="consumer"), member("b")
    made = evidence(settings=SETTINGS, group=group(members=(newer,), type="consumer"))
    made = replace(made, own_settings={"consumer.session.timeout.ms": "20000"})
    made = replace(made, settings=SETTINGS | {"group.consumer.max.session.timeout.ms": "60000"})
    (check,) = [c for c in plan_of_static(made, True, (9 * S,)).checks if c.code == "session_timeout"]
    assert (check.status, check.evidence["members_ms"]) == ("warn", [20 * S])
    assert "the members use 20 s now" in check.message
    # A classic member of it has its own.
    half_way = replace(made, group=group(members=(newer, older), type="consumer"))
    for logged, now in ((None, None), (Logged(3, None, {"b": 45 * S}), [20 * S, 45 * S])):
        plan = plan_of_static(replace(half_way, logged=logged), True, (9 * S,))
        (check,) = [c for c in plan.checks if c.code == "session_timeout"]
        assert check.evidence["members_ms"] == now


def held(at_s: int, count: int) -> Holdings:
    members = (
        RecordedMember(f"m{n}", None, "c", "h", "classic", 1, MemberStatus.STABLE) for n in range(count)
    )
    return Holdings(at_s * S, tuple(members))


@pytest.mark.parametrize(
    ("history", "lengths"),
    [
        ([(0, 3), (10, 2), (14, 3), (20, 2), (29, 3)], (4 * S, 9 * S)),
        ([(0, 3), (10, 2), (11, 1), (20, 3)], (10 * S,)),
        ([(0, 1), (5, 2), (9, 3)], ()),
        ([(0, 3), (10, 2)], ()),
        ([(0, 3), (10, 2), (5_000, 2), (5_010, 1), (5_014, 2), (5_020, 3)], (4 * S,)),
        ([(0, 3), (10, 2), (5_000, 3)], ()),
        ([], ()),
    ],
)
def test_restarts_in_the_records(history: list[tuple[int, int]], lengths: tuple[int, ...]) -> None:
    assert dips([held(*each) for each in history]) == lengths


@pytest.mark.parametrize(
    "converts",
    [
        {"protocol": "consumer"},
        {"protocol": "classic", "joined_with": Subscription(())},
    ],
)
def test_what_converts_an_empty_group_is_no_restart(converts: dict[str, Any]) -> None:
    """kgroup joined 20 minutes after the last member had left: a restart of 1,200 s, it said."""
    (reader,) = held(0, 1).members
    own = replace(reader, member_id="own", **converts)
    history = [
        Holdings(0, (reader,)),
        Holdings(10 * S, ()),
        Holdings(1_210 * S, (own,)),
        Holdings(1_211 * S, ()),
    ]
    assert dips(history) == ()
    assert dips([*history, Holdings(1_300 * S, (reader,))]) == (1_290 * S,)


def test_waiting_for_static_members() -> None:
    condition = Condition.parse("static")
    assert condition.holds(group(members=(member("a", "i"), member("b", "j"))))
    assert not condition.holds(group(members=(member("a", "i"), member("b"))))
    assert not condition.holds(group(members=()))
    assert not condition.holds(None)
    with pytest.raises(BrokerRefused, match="g may be static"):
        condition.holds(group(members=(member("a", known=False),)))
