"""KG117: a group with as many members as its broker allows; KG112: a member that keeps a deleted topic."""

from __future__ import annotations

import pytest

from kgroup.admin.diagnose.checks import diagnoses
from kgroup.admin.diagnose.facts import Facts
from kgroup.admin.diagnose.group_records import Recorded
from kgroup.admin.models import GroupDescription
from kgroup.admin.read.describe import groups_only
from kgroup.admin.settings import BROKER
from kgroup.domain import MemberStatus, TopicPartition
from kgroup.errors import ErrorCode
from kgroup.history.fold.consumer_state import ConsumerRecords
from kgroup.history.fold.events import Kind
from kgroup.history.fold.state import GroupState
from kgroup.history.fold.view import RecordedMember
from kgroup.protocol.group_records import ConsumerGroupMetadataValue
from kgroup.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from tests.unit.admin.doctor_logs import Held, described, generation, remembering
from tests.unit.admin.fake_cluster import FakeCluster
from tests.unit.admin.groups import Groups, consumer_group, consumer_member
from tests.unit.admin.test_doctor_checks import cluster, codes, examine
from tests.unit.history.events import event

A, B = Held("a", "orders:0"), Held("b", "orders:1")


def allowing(limit: str | None, error: ErrorCode = ErrorCode.NONE) -> FakeCluster:
    """A group of two whose broker reports this limit, or that error."""

    def answer(node: int, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
        told = tuple(
            DescribeConfigsResourceResult(name=name, value=limit)
            for name in request.resources[0].configuration_keys or ()
            if name == "group.max.size"
        )
        return DescribeConfigsResponse(results=(DescribeConfigsResult(error_code=error, configs=told),))

    fake = remembering(described(A, B), {"orders:0": 4, "orders:1": 4}, (0, [generation(1, (A, B))]))
    return fake.on(DescribeConfigsRequest, answer)


def test_a_full_group_is_named_with_the_setting() -> None:
    """A fourth member was refused for an hour, and nothing said why."""
    found = examine(allowing("2").cluster(), "g")
    (told,) = [each for each in found.findings if each.code == "KG117"]
    assert told.message == "2 members of group.max.size 2: the coordinator refuses any other"
    assert (told.severity, found.verdict) == ("info", "healthy")
    assert told.evidence == ("whether one was rejected is unknown, because a rejected join leaves no record",)


@pytest.mark.parametrize("limit", ["3", "2147483647", None])
def test_one_with_room_is_not(limit: str | None) -> None:
    found = examine(allowing(limit).cluster(), "g")
    assert (found.verdict, "KG117" in codes(found)) == ("healthy", False)


def test_a_limit_that_may_not_be_read_is_said_and_decides_nothing() -> None:
    found = examine(allowing("2", ErrorCode.CLUSTER_AUTHORIZATION_FAILED).cluster(), "g")
    (told,) = [each for each in found.findings if each.code == "KG117"]
    assert told.message.startswith("whether more than its 2 members may join is not known: ")
    assert (told.severity, found.verdict) == ("info", "healthy")


def test_a_member_that_keeps_a_deleted_topic_is_the_one_that_is_waited_for() -> None:
    """Brokers describe what it has of a topic that is gone as nothing: it seemed to wait for others."""
    place, member_id = TopicPartition("orders", 0), "p9mtlR+YSmy6KN7PQ1IpKw"
    fake = cluster()
    waits = consumer_member(member_id, "", "orders:0", epoch=6)
    Groups(fake).add(consumer_group("g", waits, state="Reconciling", epoch=7, assignment_epoch=7))
    group = groups_only(fake.cluster(), ["g"])["g"]
    assert isinstance(group, GroupDescription)
    recorded = RecordedMember(
        member_id,
        None,
        "stock-a",
        "/10.0.0.1",
        "consumer",
        6,
        MemberStatus.REVOKING,
        revoking=frozenset({place}),
    )
    state = GroupState(
        "g",
        consumer=ConsumerRecords(group=ConsumerGroupMetadataValue(epoch=7)),
        members={member_id: recorded},
    )
    began = event(Kind.REBALANCE_STARTED, offset=1, timestamp_ms=900_000, epoch=7)
    seen = Recorded([began], state.view(), gone={member_id: frozenset({place})})
    facts = Facts(group, now_ms=1_000_000, since_ms=0, patience_s=10, recorded=seen)
    (told,) = [each for each in diagnoses(facts) if each.code == "KG112"]
    assert told.message == f"Reconciling for 100 s: it waits for {member_id} of client stock-a (revoking)"
    assert told.evidence[1].startswith(
        f"{member_id} (client stock-a) on 10.0.0.1 has to give up partition orders-0 of a topic that was "
        "deleted or recreated"
    )


def test_where_groups_have_no_settings_the_brokers_session_counts() -> None:
    """Of a member that had left for now the session was unknown on Kafka 3.9, and so the verdict."""

    def answer(node: int, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
        if request.resources[0].resource_type != BROKER:
            refused = DescribeConfigsResult(error_code=ErrorCode.INVALID_REQUEST)
            return DescribeConfigsResponse(results=(refused,))
        known = DescribeConfigsResourceResult(name="group.consumer.session.timeout.ms", value="10000")
        return DescribeConfigsResponse(results=(DescribeConfigsResult(configs=(known,)),))

    fake = cluster()
    away = consumer_member("a", "orders:0", "orders:0", "a", epoch=-2)
    Groups(fake).add(consumer_group("g", away, epoch=7, assignment_epoch=7))
    found = examine(fake.on(DescribeConfigsRequest, answer).cluster(), "g")
    assert "consumer.session.timeout.ms" not in {each.look for each in found.unseen}
    (told,) = [each for each in found.findings if each.code == "KG103"]
    assert told.evidence == ("a's session ends within 10 s (consumer.session.timeout.ms)",)


@pytest.mark.parametrize("waits", [False, True])
def test_a_group_is_not_stuck_by_one_that_has_left_for_now(waits: bool) -> None:
    """An epoch that begins meanwhile is one it cannot confirm; its partitions wait for its session's end."""
    away = consumer_member("a", "orders:0", "orders:0", "a", epoch=-2)
    here = consumer_member("b", "orders:1", "orders:1", epoch=7)
    waiting = consumer_member("b", "", "orders:0", epoch=7)
    fake = cluster()
    members = (away, waiting if waits else here)
    Groups(fake).add(consumer_group("g", *members, state="Reconciling", epoch=7, assignment_epoch=7))
    group = groups_only(fake.cluster(), ["g"])["g"]
    assert isinstance(group, GroupDescription)
    began = event(Kind.REBALANCE_STARTED, offset=1, timestamp_ms=900_000, epoch=7)
    facts = Facts(group, now_ms=1_000_000, since_ms=0, patience_s=10, recorded=Recorded([began]))
    assert "KG112" not in {each.code for each in diagnoses(facts)}


@pytest.mark.parametrize(("epoch", "since_s"), [(6, 100), (7, 70), (0, None)])
def test_a_member_is_late_since_the_first_epoch_that_it_did_not_confirm(
    epoch: int, since_s: int | None
) -> None:
    """Another epoch begins meanwhile: 5 s ago. Whoever has just come missed none; whoever left is not due."""
    away = consumer_member("a", "orders:0", "", "a", epoch=-2)
    late = consumer_member("b", "orders:1", "", epoch=epoch)
    fake = cluster()
    Groups(fake).add(consumer_group("g", away, late, state="Reconciling", epoch=9, assignment_epoch=9))
    group = groups_only(fake.cluster(), ["g"])["g"]
    assert isinstance(group, GroupDescription)
    times = {7: 900_000, 8: 930_000, 9: 995_000}
    began = [
        event(Kind.REBALANCE_STARTED, offset=number, timestamp_ms=ms, epoch=number)
        for number, ms in times.items()
    ]
    facts = Facts(group, now_ms=1_000_000, since_ms=0, patience_s=10, recorded=Recorded(began))
    told = [each.message for each in diagnoses(facts) if each.code == "KG112"]
    waits = "it waits for b (revoking)"
    assert told == ([] if since_s is None else [f"Reconciling for {since_s} s: {waits}"])
