"""Static membership as a client shows it on the wire (KIP-345)."""

from types import SimpleNamespace

import pytest

from kgroup.coordinator.assignors.client_side import ClientRangeAssignor
from kgroup.domain import TopicPartition
from kgroup.errors import BrokerRefused
from kgroup.errors import ErrorCode as E
from kgroup.members.classic import ClassicMember, ClassicTimings
from kgroup.members.driver import Driver
from kgroup.members.effects import Failed, Left, Lost, Revoke
from kgroup.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kgroup.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kgroup.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from kgroup.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kgroup.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kgroup.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kgroup.protocol.subscription import Subscription
from tests.unit.members.classic_table import TOPICS, Table, parts


def commit(table, code=E.NONE):
    """Commit, and be answered with the code."""
    table.take(table.member.commit({TopicPartition("t", 0): 7}, table.now))
    request = table.sent
    partition = OffsetCommitResponsePartition(partition_index=0, error_code=code)
    table.answer(OffsetCommitResponse(topics=(OffsetCommitResponseTopic(name="t", partitions=(partition,)),)))
    return request


@pytest.mark.parametrize("instance", [None, "i"])
def test_the_instance_id_is_in_every_request_from_the_first_join_on(instance):
    """SM-01, SM-46: set it is in all of them, unset in none."""
    table = Table(instance_id=instance)
    sent = [table.sent]
    table.follow(1, 0)
    sent.append(table.sent)
    table.beat()
    sent += [table.sent, commit(table)]
    table.beat(E.REBALANCE_IN_PROGRESS)
    table.take(table.member.revoked(table.now))
    sent.append(table.sent)
    kinds = [JoinGroupRequest, SyncGroupRequest, HeartbeatRequest, OffsetCommitRequest, JoinGroupRequest]
    assert [type(request) for request in sent] == kinds
    assert [request.group_instance_id for request in sent] == [instance] * 5


def test_timeouts_are_in_the_join():
    """SM-70: the rebalance timeout is the client's max.poll.interval.ms, apart from the session timeout."""
    table = Table(timings=ClassicTimings(session_timeout_ms=10_000, rebalance_timeout_ms=600_000))
    assert (table.sent.session_timeout_ms, table.sent.rebalance_timeout_ms) == (10_000, 600_000)


class OldBroker:
    """A coordinator that serves nothing newer than JoinGroup 4, and asks nobody to join twice."""

    def __init__(self):
        self.asked = []

    def versions(self, node, api_key):
        return range(5)

    def request(self, node, message, *, min_version=0, max_version=None, timeout_s=None):
        if min_version > 4:
            raise BrokerRefused(E.UNSUPPORTED_VERSION, f"{type(message).__name__} {min_version} is needed")
        self.asked.append(message)
        if isinstance(message, FindCoordinatorRequest):
            return FindCoordinatorResponse(coordinators=(Coordinator(key="g", node_id=1),))
        return JoinGroupResponse(error_code=E.GROUP_MAX_SIZE_REACHED)


@pytest.mark.parametrize(
    ("instance", "joins", "code"), [("i", 0, E.UNSUPPORTED_VERSION), (None, 1, E.GROUP_MAX_SIZE_REACHED)]
)
def test_an_old_broker_never_takes_a_static_member_for_a_dynamic_one(instance, joins, code):
    """SM-07: UNSUPPORTED_VERSION without JoinGroup 5, and no join is sent; as Kafka's client."""
    broker, events = OldBroker(), []
    member = ClassicMember("g", ["t"], [ClientRangeAssignor()], instance_id=instance)
    clock = SimpleNamespace(now=0)

    def pause(seconds):
        clock.now += round(seconds * 1000)
        return clock.now > 1000

    Driver(member, broker, clock_ms=lambda: clock.now, pause=pause, on_event=events.append).run()
    assert [event.code for event in events if isinstance(event, Failed)] == [code]
    assert sum(isinstance(request, JoinGroupRequest) for request in broker.asked) == joins


def test_a_static_member_that_goes_away_says_nothing():
    """SM-47: no LeaveGroup; only its session or an administrator takes it out."""
    table = Table(instance_id="i")
    table.follow(1, 0)
    table.take(table.member.leave(5000))
    assert table.seen == [Revoke(parts(0)), Left()]
    assert not isinstance(table.sent, LeaveGroupRequest)
    assert table.member.wake(99_999) == []


def test_a_dynamic_member_leaves_as_a_list_of_one():
    """SM-48: its member id and no instance id; the old single field too, for brokers that read only that."""
    table = Table()
    table.follow(1, 0)
    table.take(table.member.leave(5000))
    (me,) = table.sent.members
    assert isinstance(me, MemberIdentity)
    assert (me.member_id, me.group_instance_id, table.sent.member_id) == ("m", None, "m")


def fenced_join(table):
    table.answer(JoinGroupResponse(error_code=E.FENCED_INSTANCE_ID))


def fenced_sync(table):
    table.answer(JoinGroupResponse(generation_id=1, protocol_name="range", leader="o", member_id="m"))
    table.answer(SyncGroupResponse(error_code=E.FENCED_INSTANCE_ID))


def fenced_beat(table):
    table.follow(1, 0)
    table.now += 3000
    table.take(table.member.wake(table.now))
    table.answer(HeartbeatResponse(error_code=E.FENCED_INSTANCE_ID))


def fenced_commit(table):
    table.follow(1, 0)
    commit(table, E.FENCED_INSTANCE_ID)


@pytest.mark.parametrize("fence", [fenced_join, fenced_sync, fenced_beat, fenced_commit])
def test_a_fenced_member_fails_for_good_wherever_it_learns_of_it(fence):
    """SM-49, SM-50: no retry and no join anew, so that a duplicate cannot come back in."""
    table = Table(instance_id="i")
    fence(table)
    assert table.seen[-1] == Failed(E.FENCED_INSTANCE_ID, "FENCED_INSTANCE_ID")
    last = table.sent
    table.take(table.member.wake(99_999))
    table.take(table.member.update_topics(TOPICS, 99_999))
    table.take(table.member.revoked(99_999))
    assert table.seen == []
    assert table.sent is last


@pytest.mark.parametrize(
    ("code", "member_id", "generation"),
    [(E.UNKNOWN_MEMBER_ID, "", -1), (E.ILLEGAL_GENERATION, "m", -1), (E.REBALANCE_IN_PROGRESS, "m", 1)],
)
def test_only_an_unknown_member_forgets_its_id(code, member_id, generation):
    """SM-50: UNKNOWN_MEMBER_ID resets, ILLEGAL_GENERATION resets the generation, a rebalance keeps both."""
    table = Table(instance_id="i")
    table.follow(1, 0)
    table.beat(code)
    if code == E.REBALANCE_IN_PROGRESS:
        table.take(table.member.revoked(table.now))
    else:
        assert Lost(parts(0)) in table.seen
    assert isinstance(table.sent, JoinGroupRequest)
    assert (table.sent.member_id, table.sent.group_instance_id) == (member_id, "i")
    assert Subscription.decode(table.sent.protocols[0].metadata).generation == generation


class Watching(ClientRangeAssignor):
    """A user's own assignor, which remembers whom it was shown."""

    def assign(self, partitions, members, racks):
        self.shown = {member_id: member.instance_id for member_id, member in members.items()}
        return super().assign(partitions, members, racks)


def test_a_leaders_assignor_sees_instance_ids():
    """SM-20, SM-21: it is given members with their instance ids, None for dynamic ones."""
    assignor = Watching()
    table = Table(assignor)
    members = tuple(
        JoinGroupResponseMember(
            member_id=name, group_instance_id=instance, metadata=Subscription(("t",)).encode()
        )
        for name, instance in (("m", None), ("n", "i"))
    )
    table.answer(
        JoinGroupResponse(generation_id=1, protocol_name="range", leader="m", member_id="m", members=members)
    )
    table.take(table.member.update_topics(TOPICS, 0))
    assert assignor.shown == {"m": None, "n": "i"}
