"""The classic member, request by request."""

import pytest

from kgroup.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kgroup.domain import Topic, TopicPartition
from kgroup.errors import ErrorCode as E
from kgroup.members.classic import Phase
from kgroup.members.effects import (
    Assigned,
    Committed,
    CoordinatorMoved,
    Failed,
    Left,
    Lost,
    NeedTopics,
    Revoke,
    WakeAt,
)
from kgroup.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kgroup.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from kgroup.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kgroup.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kgroup.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kgroup.protocol.subscription import Assignment, Subscription
from tests.unit.members.classic_table import TOPICS, Table, parts


def test_a_first_join_is_repeated_with_the_id_handed_out():
    """KIP-394"""
    table = Table()
    assert isinstance(table.sent, JoinGroupRequest)
    assert table.sent.member_id == ""
    table.answer(JoinGroupResponse(error_code=E.MEMBER_ID_REQUIRED, member_id="m"))
    assert table.sent.member_id == "m"
    assert [p.name for p in table.sent.protocols] == ["range"]


def test_a_follower_syncs_empty_handed_and_gets_its_partitions():
    table = Table()
    assert table.follow(1, 0, 1) == [Assigned(parts(0, 1)), WakeAt(3000)]
    assert table.member.owned == set(parts(0, 1))
    assert (table.sent.generation_id, table.sent.protocol_type, table.sent.protocol_name) == (
        1,
        "consumer",
        "range",
    )
    assert table.sent.assignments == ()


def test_a_leader_learns_the_topics_of_all_members_and_assigns():
    table = Table()
    members = tuple(
        JoinGroupResponseMember(member_id=name, metadata=Subscription((topic,)).encode())
        for name, topic in (("m", "t"), ("n", "u"))
    )
    seen = table.answer(
        JoinGroupResponse(generation_id=1, protocol_name="range", leader="m", member_id="m", members=members)
    )
    assert seen == [NeedTopics(frozenset("tu"))]
    table.take(table.member.update_topics(TOPICS, 0))
    given = {a.member_id: Assignment.decode(a.assignment).partitions for a in table.sent.assignments}
    assert given == {"m": parts(0, 1, 2, 3), "n": ()}


def test_a_leader_joins_again_when_a_topic_of_the_group_grows():
    table = lead()
    table.take(table.member.update_topics(TOPICS, 0))
    assert not table.seen and isinstance(table.sent, SyncGroupRequest)
    table.take(table.member.update_topics({"t": Topic("t", b"t" * 16, 5)}, 0))
    assert table.seen[0] == Revoke(parts(0))
    table.take(table.member.revoked(0))
    assert isinstance(table.sent, JoinGroupRequest)


def test_a_static_leader_told_to_skip_the_assignment_sends_none():
    """KIP-814"""
    table = lead(skip_assignment=True)
    assert table.sent.assignments == ()
    assert table.member.owned == set(parts(0))


def lead(skip_assignment=False):
    table = Table(instance_id="i")
    me = (
        JoinGroupResponseMember(member_id="m", group_instance_id="i", metadata=Subscription(("t",)).encode()),
    )
    table.answer(
        JoinGroupResponse(
            generation_id=1,
            protocol_name="range",
            leader="m",
            member_id="m",
            members=me,
            skip_assignment=skip_assignment,
        )
    )
    if not skip_assignment:
        table.take(table.member.update_topics(TOPICS, 0))
    table.answer(SyncGroupResponse(assignment=Assignment(parts(0)).encode()))
    return table


def test_an_eager_member_gives_up_everything_before_it_joins_again():
    table = Table()
    table.follow(1, 0, 1)
    assert table.beat(E.REBALANCE_IN_PROGRESS) == [Revoke(parts(0, 1)), WakeAt(6000)]
    assert isinstance(table.sent, HeartbeatRequest), "the join waits for the host"
    table.take(table.member.revoked(3500))
    assert isinstance(table.sent, JoinGroupRequest)
    subscription = Subscription.decode(table.sent.protocols[0].metadata)
    assert (subscription.owned, subscription.generation) == ((), 1)


def test_a_session_is_kept_alive_while_the_host_revokes():
    table = Table()
    table.follow(1, 0)
    table.beat(E.REBALANCE_IN_PROGRESS)
    assert table.beat(E.REBALANCE_IN_PROGRESS) == [WakeAt(9000)]
    assert table.member.phase is Phase.REVOKING


def test_a_cooperative_member_keeps_reading_and_joins_twice():
    """KIP-429"""
    table = Table(CooperativeStickyAssignor())
    table.follow(1, 0, 1, 2)
    assert table.beat(E.REBALANCE_IN_PROGRESS) == []
    assert Subscription.decode(table.sent.protocols[0].metadata).owned == parts(0, 1, 2)
    assert table.follow(2, 1, 2, 3) == [Revoke(parts(0)), WakeAt(6000)]
    table.take(table.member.revoked(table.now))
    assert table.seen == [Assigned(parts(3))]
    assert isinstance(table.sent, JoinGroupRequest)
    subscription = Subscription.decode(table.sent.protocols[0].metadata)
    assert (subscription.owned, subscription.generation) == (parts(1, 2, 3), 2)
    assert subscription.user_data == b"\0\0\0\2"


def test_a_cooperative_member_that_loses_nothing_joins_once():
    table = Table(CooperativeStickyAssignor())
    table.follow(1, 0)
    table.beat(E.REBALANCE_IN_PROGRESS)
    assert table.follow(2, 0, 1) == [Assigned(parts(1)), WakeAt(6000)]
    assert isinstance(table.sent, SyncGroupRequest)


@pytest.mark.parametrize(("code", "member_id"), [(E.UNKNOWN_MEMBER_ID, ""), (E.ILLEGAL_GENERATION, "m")])
def test_a_member_thrown_out_loses_its_partitions_and_joins_anew(code, member_id):
    table = Table()
    table.follow(1, 0)
    assert table.beat(code) == [Lost(parts(0))]
    assert table.sent.member_id == member_id
    assert Subscription.decode(table.sent.protocols[0].metadata).generation == -1


@pytest.mark.parametrize("code", [E.FENCED_INSTANCE_ID, E.GROUP_AUTHORIZATION_FAILED])
def test_some_refusals_are_final(code):
    table = Table(instance_id="i")
    table.follow(1, 0)
    assert table.beat(code) == [Lost(parts(0)), Failed(code, code.name)]
    assert table.member.wake(99999) == []


@pytest.mark.parametrize("code", [E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE])
def test_a_heartbeat_is_repeated_at_the_new_coordinator(code):
    table = Table()
    table.follow(1, 0)
    assert table.beat(code) == [CoordinatorMoved(), WakeAt(3100)]
    table.take(table.member.wake(3099))
    assert table.seen == []
    table.take(table.member.wake(3100))
    assert isinstance(table.sent, HeartbeatRequest)
    assert table.member.owned == set(parts(0))


@pytest.mark.parametrize("code", [E.NOT_COORDINATOR, E.COORDINATOR_LOAD_IN_PROGRESS])
def test_a_join_is_repeated_after_the_backoff(code):
    table = Table()
    assert table.answer(JoinGroupResponse(error_code=code))[-1] == WakeAt(100)
    first = table.sent
    table.take(table.member.wake(100))
    assert table.sent is not first and isinstance(table.sent, JoinGroupRequest)


def test_a_sync_during_the_next_rebalance_means_joining_again():
    table = Table()
    table.answer(JoinGroupResponse(generation_id=1, protocol_name="range", leader="o", member_id="m"))
    table.answer(SyncGroupResponse(error_code=E.REBALANCE_IN_PROGRESS))
    assert isinstance(table.sent, JoinGroupRequest)
    assert table.sent.member_id == "m"


def test_a_request_without_an_answer():
    table = Table()
    assert table.member.unanswered(table.sent, 0) == [CoordinatorMoved(), WakeAt(100)]
    table.take(table.member.wake(100))
    table.follow(1, 0)
    table.take(table.member.wake(3000))
    assert table.member.unanswered(table.sent, 4000) == [CoordinatorMoved(), WakeAt(4100)]
    assert table.member.owned == set(parts(0))


def test_an_answer_that_comes_too_late_is_ignored():
    table = Table()
    first = table.sent
    table.member.unanswered(first, 0)
    assert table.answer(JoinGroupResponse(generation_id=1, member_id="m"), request=first) == []


def test_a_rebalance_wanted_while_a_heartbeat_is_under_way_starts_with_its_answer():
    table = lead()
    table.take(table.member.wake(3000))
    assert isinstance(table.sent, HeartbeatRequest)
    table.take(table.member.update_topics({"t": Topic("t", b"t" * 16, 5)}, 3000))
    table.take(table.member.revoked(3000))
    assert table.member.phase is Phase.WAITING
    table.answer(HeartbeatResponse())
    assert isinstance(table.sent, JoinGroupRequest)


def test_leaving():
    table = Table()
    table.follow(1, 0)
    table.take(table.member.leave(5000))
    assert table.seen == [Revoke(parts(0))]
    assert isinstance(table.sent, LeaveGroupRequest)
    assert table.sent.members[0].member_id == table.sent.member_id == "m"
    assert table.answer(LeaveGroupResponse()) == [Left()]


@pytest.mark.parametrize(("for_good", "leaves"), [(False, False), (True, True)])
def test_a_static_member_leaves_only_for_good(for_good, leaves):
    """KIP-345"""
    table = Table(instance_id="i")
    table.follow(1, 0)
    table.take(table.member.leave(5000, for_good))
    assert isinstance(table.sent, LeaveGroupRequest) is leaves
    assert (Left() in table.seen) is not leaves


def committed(code):
    partition = OffsetCommitResponsePartition(partition_index=0, error_code=code)
    return OffsetCommitResponse(topics=(OffsetCommitResponseTopic(name="t", partitions=(partition,)),))


def commit(table):
    table.take(table.member.commit({TopicPartition("t", 0): 7}, table.now))
    assert isinstance(table.sent, OffsetCommitRequest)
    return table.sent


def test_a_commit_names_member_and_generation():
    table = Table(instance_id="i")
    table.follow(4, 0)
    request = commit(table)
    who = request.member_id, request.generation_id_or_member_epoch, request.group_instance_id
    assert who == ("m", 4, "i")
    assert table.answer(committed(0)) == [Committed({TopicPartition("t", 0): 0})]


def test_a_commit_of_a_member_thrown_out_makes_it_join_anew():
    table = Table()
    table.follow(1, 0)
    commit(table)
    assert table.answer(committed(E.UNKNOWN_MEMBER_ID))[1:] == [Lost(parts(0))]
    assert isinstance(table.sent, JoinGroupRequest)


def test_an_answer_to_a_commit_of_an_earlier_generation_changes_nothing():
    table = Table()
    table.follow(1, 0)
    old = commit(table)
    table.beat(E.REBALANCE_IN_PROGRESS)
    table.take(table.member.revoked(table.now))
    table.follow(2, 0)
    assert table.answer(committed(E.ILLEGAL_GENERATION), old) == [Committed({TopicPartition("t", 0): 22})]
    assert table.member.owned == set(parts(0))


def test_a_malformed_assignment_is_an_error_and_no_crash():
    table = Table()
    table.answer(JoinGroupResponse(generation_id=1, protocol_name="range", leader="o", member_id="m"))
    (failed,) = table.answer(SyncGroupResponse(assignment=b"\0"))
    assert failed.code == E.INCONSISTENT_GROUP_PROTOCOL
