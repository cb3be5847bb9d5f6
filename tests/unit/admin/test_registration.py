"""Whom a group expects, as describe and doctor see it: ids registered, held and missing; who stands by."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kgroup.admin.diagnose.checks import diagnoses
from kgroup.admin.diagnose.facts import Facts
from kgroup.admin.diagnose.group_records import Recorded
from kgroup.admin.discovery import ClusterView
from kgroup.admin.models import GroupDescription, Registration
from kgroup.admin.read.describe import describe
from kgroup.cli.views.expected import lines
from kgroup.coordinator.roster import REGISTERED, TARGET_SIZE, WAIT
from kgroup.errors import ErrorCode
from kgroup.history.fold.events import Event, Kind
from kgroup.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kgroup.protocol.subscription import Assignment
from tests.unit.admin.fake_cluster import FakeCluster
from tests.unit.admin.groups import Groups, classic_group, classic_member, consumer_group, consumer_member

NOW_MS = 1_700_000_000_000
NOTHING = Assignment().encode(1)


def described(
    group: Any, settings: dict[str, str] | None = None, code: ErrorCode = ErrorCode.NONE
) -> GroupDescription:
    """The group as it is described by a cluster that has these settings for it, or refuses to tell them."""
    fake = FakeCluster(topics={"orders": 6})
    Groups(fake).add(group)

    def answer(node: int, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
        told = tuple(
            DescribeConfigsResourceResult(name=name, value=value, config_source=8)
            for name, value in (settings or {}).items()
        )
        results = tuple(
            DescribeConfigsResult(
                resource_type=each.resource_type,
                resource_name=each.resource_name,
                error_code=code,
                configs=() if code else told,
            )
            for each in request.resources
        )
        return DescribeConfigsResponse(results=results)

    fake.on(DescribeConfigsRequest, answer)
    (found,) = describe(ClusterView(fake, retry=fake.retry()), ["g"]).groups
    return found


def held(name: str) -> Any:
    """A join that waits, as a coordinator of ours lists it: without any assignment."""
    return replace(classic_member(f"{name}-id", instance=name), member_assignment=b"")


def standby(name: str) -> Any:
    return replace(classic_member(f"{name}-id", instance=name), member_assignment=NOTHING)


def active(name: str, owns: str = "orders:0,1") -> Any:
    return classic_member(f"{name}-id", owns, instance=name)


def test_a_group_that_expects_nobody() -> None:
    group = described(classic_group("g", active("a")))
    assert (group.registration, group.registration_known) == (None, True)


@pytest.mark.parametrize(
    ("code", "known"),
    [
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, False),
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, False),
        (ErrorCode.INVALID_REQUEST, True),
        (ErrorCode.UNSUPPORTED_VERSION, True),
    ],
)
def test_what_may_not_be_read_is_not_taken_for_nothing(code: ErrorCode, known: bool) -> None:
    """A broker that has no settings of groups cannot have these; one that refuses may."""
    group = described(classic_group("g", active("a")), code=code)
    assert (group.registration, group.registration_known, group.errors) == (None, known, ())


def test_who_is_registered_who_is_held_and_who_is_missing() -> None:
    settings = {REGISTERED: "a, b,c,a", WAIT: "60000"}
    group = described(classic_group("g", active("a"), held("b")), settings)
    assert group.registration == Registration(("a", "b", "c"), ("c",), ("b",), 60_000, None, None, None)
    assert list(lines(group.registration)) == ["registered 3 · missing c · waits up to 60 s · held b"]
    assert "KG105" not in {finding.code for finding in group.findings}


def test_who_is_active_and_who_stands_by() -> None:
    group = described(classic_group("g", active("a"), standby("b"), active("c")), {TARGET_SIZE: "2"})
    assert group.registration == Registration(None, None, None, None, 2, ("a", "c"), ("b",))
    assert list(lines(group.registration)) == ["target size 2 · active 2 · standby b"]
    assert "KG105" not in {finding.code for finding in group.findings}


def test_a_standby_is_not_held_and_whose_join_is_held_is_no_standby() -> None:
    settings = {TARGET_SIZE: "1", REGISTERED: "a,b,c,d"}
    group = described(classic_group("g", active("a"), standby("b"), held("c")), settings)
    assert group.registration is not None
    assert (group.registration.held, group.registration.standby) == (("c",), ("b",))


def test_while_a_classic_group_rebalances_nobody_tells_who_has_what() -> None:
    settings = {TARGET_SIZE: "1", REGISTERED: "a,b"}
    group = described(classic_group("g", held("a"), state="PreparingRebalance"), settings)
    told = group.registration
    assert told is not None
    assert (told.missing, told.held, told.active, told.standby) == (("b",), None, None, None)
    assert list(lines(told))[1] == "target size 1 · active ? · standby ?"


def test_members_of_a_consumer_group_are_held_while_the_target_is_behind() -> None:
    settings = {REGISTERED: "a,b,c"}
    members = (consumer_member("a-id", "orders:0,1", instance="a"), consumer_member("b-id", instance="b"))
    behind = replace(consumer_group("g", *members), group_epoch=8, assignment_epoch=7)
    group = described(behind, settings)
    assert group.registration is not None
    assert (group.registration.missing, group.registration.held) == (("c",), ("b",))
    group = described(replace(behind, assignment_epoch=8), settings)
    assert group.registration is not None
    assert group.registration.held == ()


def test_many_names_are_cut() -> None:
    ids = tuple(f"i-{n:02}" for n in range(12))
    told = Registration(ids, ids, (), None, None, None, None)
    (line,) = lines(told)
    assert (
        line == f"registered 12 · missing {', '.join(ids[:8])} and 4 more · waits up to its rebalance timeout"
    )


def facts(told: Registration, *history: Event, members: tuple[Any, ...] = ()) -> Facts:
    group = replace(described(classic_group("g", *(members or (active("a"),)))), registration=told)
    return Facts(group, NOW_MS, NOW_MS - 3_600_000, 0.0, recorded=Recorded([*history]))


def event(kind: Kind, ago_ms: int, instance_id: str | None = None) -> Event:
    return Event(
        group="g",
        kind=kind,
        timestamp_ms=NOW_MS - ago_ms,
        protocol="classic",
        log_partition=0,
        offset=1,
        end_offset=1,
        end_timestamp_ms=NOW_MS - ago_ms,
        detail="",
        instance_id=instance_id,
    )


def codes(facts: Facts) -> list[str]:
    return [found.code for found in diagnoses(facts) if found.code in ("KG114", "KG115")]


def missing(*names: str, wait_ms: int | None = 60_000, held: tuple[str, ...] = ()) -> Registration:
    return Registration(("a", *names), names, held, wait_ms, None, None, None)


def test_a_group_that_waits_for_registered_members_says_for_whom_and_how_long() -> None:
    """No record shows whom it waits for, and the one that is there did nothing wrong."""
    waiting = facts(missing("b", "c c", held=()))
    waiting.group = replace(waiting.group, state="PreparingRebalance")
    waiting.patience_s = waiting.seen_for_s = 10
    found = {each.code: each for each in diagnoses(waiting)}
    told = found["KG112"]
    assert told.message.endswith("it waits for b, c c, registered and missing, for at most 60 s")
    assert told.hint is not None
    assert told.hint.endswith("kgroup member unregister g --instance-id b,'c c'")
    assert "KG114" not in found


def test_an_id_that_is_missing_for_longer_than_the_group_waits() -> None:
    left = event(Kind.MEMBER_LEFT_OR_EXPIRED, 61_000, "b")
    (found,) = (d for d in diagnoses(facts(missing("b"), left)) if d.code == "KG114")
    assert found.message == "b is registered and missing for longer than the group waits"
    assert found.evidence == (
        "the group waits 60 s (kgroup.registration.wait.ms)",
        "nothing of b since 2023-11-14T22:12:19Z",
    )
    assert found.hint is not None
    assert found.hint.endswith("kgroup member unregister g --instance-id b")


@pytest.mark.parametrize(
    ("told", "ago_ms", "expected"),
    [
        (missing("b"), 59_000, []),
        (missing("b", held=("c",)), 600_000, []),
        (missing("b", wait_ms=None), 1, ["KG114"]),
        (missing(), 600_000, []),
    ],
)
def test_what_is_waited_for_still_is_nothing_to_speak_of(
    told: Registration, ago_ms: int, expected: list[str]
) -> None:
    """Of an id that the log never saw, the group's last change is what there is to go by."""
    assert codes(facts(told, event(Kind.REBALANCE_COMPLETED, ago_ms))) == expected


def test_without_history_nobody_knows_for_how_long() -> None:
    unseen = replace(facts(missing("b")), recorded=None)
    assert codes(unseen) == []


def test_fewer_members_than_shall_be_active() -> None:
    few = Registration(None, None, None, None, 3, ("a",), ())
    (found,) = (d for d in diagnoses(facts(few)) if d.code == "KG115")
    assert found.message == "1 of the 3 members that should be active are there, and no standby"
    assert codes(facts(replace(few, target_size=1))) == []
