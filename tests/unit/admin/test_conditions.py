"""Waiting: what a condition holds for, when looking ends, and what an outage leaves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kgroup.admin.models import GroupDescription, ItemError
from kgroup.admin.read.conditions import Condition, is_passing, look_until, wait_for
from kgroup.client.retry import OutcomeUnknown
from kgroup.errors import BrokerRefused, ConfigError, DecodeError, ErrorCode, KgroupError, Unreachable
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.describe_groups import DescribeGroupsRequest
from tests.unit.admin.fake_cluster import FakeCluster
from tests.unit.admin.groups import Groups, classic_group, classic_member

EMPTY = GroupDescription("g", "classic", "consumer", "Empty", None, None, None, None, None, None, (), (), 0)
STABLE = replace(EMPTY, state="Stable", members=None, total_lag=None, lag_at_least=3)


@pytest.fixture
def fake() -> FakeCluster:
    return FakeCluster(topics={"orders": 2})


@pytest.fixture
def groups(fake: FakeCluster) -> Groups:
    return Groups(fake).add(classic_group("g", classic_member("m1", "orders:0", "a")))


@pytest.mark.parametrize(
    ("text", "absent", "empty", "unknown"),
    [
        ("stable", False, False, True),
        ("empty", True, True, False),
        ("gone", True, False, False),
        ("lag=5", False, True, False),
        ("members=0", False, True, False),
        ("member=a", False, False, False),
    ],
)
def test_what_is_not_known_is_not_so(text: str, absent: bool, empty: bool, unknown: bool) -> None:
    """A lag of at least 3 may be more than 5, and members that are not told are not none."""
    condition = Condition.parse(text)
    assert [condition.holds(group) for group in (None, EMPTY, STABLE)] == [absent, empty, unknown]


@pytest.mark.parametrize("text", ["", "lag", "lag=x", "members=-1", "member=", "stable=1", "Stable!"])
def test_what_is_nothing_to_wait_for(text: str) -> None:
    with pytest.raises(ConfigError, match="not a condition to wait for|not a whole number|below 0"):
        Condition.parse(text)


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (Unreachable("away"), True),
        (OutcomeUnknown("no reply"), True),
        (OutcomeUnknown("wants SASL", futile=True), False),
        (BrokerRefused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "loading"), True),
        (BrokerRefused(ErrorCode.REQUEST_TIMED_OUT, "slow"), True),
        (BrokerRefused(ErrorCode.GROUP_AUTHORIZATION_FAILED, "denied"), False),
        (DecodeError("garbage"), False),
    ],
)
def test_what_another_look_may_change(error: KgroupError, passes: bool) -> None:
    assert is_passing(error) == passes


def test_looks_are_taken_at_once_every_so_often_and_when_time_is_up(
    fake: FakeCluster, groups: Groups
) -> None:
    moments = []
    for looks in look_until(fake.cluster(), lambda: (["g"], ()), 2.5, 1.0, offsets=False):
        assert looks.complete and looks.seen.keys() == {"g"}
        moments.append(looks.passed_s)
    assert moments == [0, 1, 2, 2.5]


def test_waiting_ends_with_the_look_at_which_the_condition_holds(fake: FakeCluster, groups: Groups) -> None:
    sleep = fake.time.sleep

    def pass_time(seconds: float) -> None:
        sleep(seconds)
        if fake.time.now >= 3:
            groups.add(classic_group("g", state="Empty"))

    fake.time.sleep = pass_time  # type: ignore[method-assign]
    ((waited, other), unseen) = wait_for(fake.cluster(), ["g", "absent"], Condition("empty"), 10, 1)
    assert (waited.held, waited.state, waited.members, waited.waited_s) == (True, "Empty", 0, 3)
    assert (other.held, other.state, other.waited_s) == (True, "absent", 0), "held at the first look"
    assert unseen == ()


def test_a_group_that_held_before_an_outage_has_held(fake: FakeCluster, groups: Groups) -> None:
    """Groups that are as wanted are not looked at again, so what happens later to them does not count."""
    groups.add(classic_group("h", state="Empty"))
    fake.coordinator_of["h"] = 2
    sleep = fake.time.sleep

    def pass_time(seconds: float) -> None:
        sleep(seconds)
        fake.down.add(2)

    fake.time.sleep = pass_time  # type: ignore[method-assign]
    ((g, h), _) = wait_for(fake.cluster(), ["g", "h"], Condition("empty"), 5, 1)
    assert (g.held, g.state, h.held, h.unseen) == (False, "Stable", True, None)


def test_a_cluster_that_comes_back_tells_which_groups_are_meant(fake: FakeCluster, groups: Groups) -> None:
    groups.add(classic_group("g", state="Empty"))
    away = iter([Unreachable("nobody answers"), Unreachable("nobody answers")])
    said: list[str] = []

    def find() -> tuple[list[str], tuple[ItemError, ...]]:
        for error in away:
            raise error
        return ["g"], ()

    ((waited,), unseen) = wait_for(fake.cluster(), find, Condition("empty"), 10, 1, said.append)
    assert (waited.held, waited.waited_s, unseen) == (True, 2, ())
    assert said == ["not all can be seen now: nobody answers"], "said once"


def test_what_does_not_pass_is_raised_at_once(fake: FakeCluster, groups: Groups) -> None:
    def denied() -> tuple[list[str], tuple[ItemError, ...]]:
        raise BrokerRefused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "denied")

    with pytest.raises(BrokerRefused, match="denied"):
        wait_for(fake.cluster(), denied, Condition("empty"), 10, 1)
    assert fake.time.now == 0


@pytest.mark.parametrize(("late_from_s", "seen"), [(9.5, True), (4, False)])
def test_a_last_look_that_the_limit_cuts_short_is_no_outage(
    fake: FakeCluster, groups: Groups, late_from_s: float, seen: bool
) -> None:
    """Five of ten commands called a healthy broker unreachable; one that was mute before is."""
    answer = fake.handlers[DescribeGroupsRequest]

    def describe(node: int, request: DescribeGroupsRequest) -> Message:
        if fake.time.now >= late_from_s:
            fake.time.sleep(1.0)
            raise OutcomeUnknown("broker 1 did not answer in time")
        return answer(node, request)

    fake.on(DescribeGroupsRequest, describe)
    ((waited,), unseen) = wait_for(fake.cluster(30), ["g"], Condition("empty"), 10, 1)
    assert (waited.held, waited.state, unseen) == (False, "Stable", ())
    assert (waited.unseen is None) == seen


def test_a_lag_that_is_not_known_has_a_reason(fake: FakeCluster, groups: Groups) -> None:
    """Its member owns orders-0 and has committed nothing: what it has read is not known."""
    groups.ends, groups.starts = {"orders:0": 5}, {"orders:0": 0}
    ((waited,), _) = wait_for(fake.cluster(), ["g"], Condition("lag", 0), 1, 1)
    assert (waited.held, waited.total_lag) == (False, None)
    assert waited.unseen is not None and "orders-0" in waited.unseen.message
