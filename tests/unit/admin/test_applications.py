"""Groups whose members commit nothing: when that is said, and what may be changed of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kgroup.admin.change.offset_plans import look, refusal_of
from kgroup.admin.discovery import ClusterView
from kgroup.admin.read.describe import describe
from kgroup.protocol.messages import describe_groups as dg
from tests.embedded_written import connect_assignment, connect_metadata
from tests.unit.admin.fake_cluster import FakeCluster
from tests.unit.admin.groups import Groups, classic_group

WORKER = dg.DescribedGroupMember(
    member_id="w",
    client_id="c",
    client_host="/h",
    member_metadata=connect_metadata(2, "http://h:1/", 3, (("s", -1),)),
    member_assignment=connect_assignment(2),
)


@pytest.fixture
def fake() -> FakeCluster:
    return FakeCluster(topics={"orders": 4, "__consumer_offsets": 50})


@pytest.fixture
def groups(fake: FakeCluster) -> Groups:
    made = Groups(fake).add(classic_group("connect", WORKER, protocol_type="connect"))
    made.committed["connect"] = {}
    return made


def test_that_there_are_none_is_said_only_where_all_can_be_seen(fake: FakeCluster, groups: Groups) -> None:
    """Others may have committed in its name, for a topic that this principal may not see."""
    admin = ClusterView(fake, retry=fake.retry())
    (group,) = describe(admin, ["connect"]).groups
    assert (group.errors, group.no_offsets is not None) == ((), True)
    fake.allowed_topics = {"__consumer_offsets"}
    (group,) = describe(admin, ["connect"]).groups
    assert ([error.code for error in group.errors], group.no_offsets) == (
        ["TOPIC_AUTHORIZATION_FAILED"],
        None,
    )
    now = look(admin, ["connect"])["connect"]
    assert now.unseen is not None
    refusal = refusal_of(now)
    assert refusal is not None and refusal[0].startswith("connect is no group to commit in: Connect workers")


def test_offsets_that_are_there_all_the_same_are_shown_and_may_be_changed(
    fake: FakeCluster, groups: Groups
) -> None:
    """Left by somebody who used the name for consumers before."""
    groups.committed["connect"] = {"orders:0": 4}
    groups.ends = {"orders:0": 9}
    admin = ClusterView(fake, retry=fake.retry())
    (group,) = describe(admin, ["connect"]).groups
    assert ([row.lag for row in group.offsets], group.no_offsets) == ([5], None)
    refusal = refusal_of(look(admin, ["connect"])["connect"])
    assert refusal is not None and "its members own the offsets" in refusal[0]


@pytest.mark.parametrize("delay_ms", [0, 60_000])
def test_work_that_connect_holds_back_and_states_that_are_not_seen(
    fake: FakeCluster, groups: Groups, delay_ms: int
) -> None:
    """A worker died, its connector ran nowhere, and doctor was silent."""
    worker = replace(WORKER, member_assignment=connect_assignment(2, delay_ms=delay_ms))
    groups.add(classic_group("connect", worker, protocol_type="connect"))
    (group,) = describe(ClusterView(fake, retry=fake.retry()), ["connect"]).groups
    told = {each.code: each for each in group.findings}
    assert (told["KG116"].severity, told["KG116"].hint) == (
        "info",
        "ask Connect itself: http://h:1/connectors?expand=status",
    )
    assert ("KG109" in told) == bool(delay_ms)
    if delay_ms:
        assert "run nowhere: the leader holds them back for up to 60 s" in told["KG109"].message
