"""Stand-ins for clients: they say to the coordinator what a client in their place would."""

from __future__ import annotations

from typing import Any

import pytest

from kgroup.admin.migrate.simulated_clients import ConsumerClient, Refusal
from kgroup.domain import TopicPartition
from kgroup.errors import ErrorCode
from kgroup.protocol.codec import Message
from kgroup.protocol.messages import consumer_group_heartbeat as cgh
from kgroup.protocol.messages import join_group as jg
from kgroup.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kgroup.protocol.messages.leave_group import LeaveGroupRequest
from kgroup.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kgroup.protocol.subscription import Assignment, Subscription
from tests.unit.admin.written_log import TOPIC_ID, classic


class Script:
    """A coordinator that answers what is written, in order; None is an answer still to come."""

    group_id = "g"

    def __init__(self, *answers: Message | None) -> None:
        self.answers = list(answers)
        self.sent: list[Any] = []

    def send(self, body: Message, client_id: str, host: str) -> int:
        self.sent.append(body)
        return len(self.sent) - 1

    def answer(self, ticket: int, response: type[Message], /) -> Any:
        return self.answers[ticket]


def beaten(epoch: int, *owned: int, code: ErrorCode = ErrorCode.NONE) -> cgh.ConsumerGroupHeartbeatResponse:
    topic = cgh.TopicPartitions(topic_id=TOPIC_ID, partitions=owned)
    return cgh.ConsumerGroupHeartbeatResponse(
        member_epoch=epoch,
        assignment=cgh.Assignment(topic_partitions=(topic,)),
        error_code=code,
        error_message="no" if code else None,
    )


def consumer(instance: str | None = None) -> ConsumerClient:
    return ConsumerClient("m", instance, "c", "/h", ("orders",))


def test_a_consumer_joins_with_nothing_and_beats_with_what_it_was_given() -> None:
    at, client = Script(beaten(3, 0, 1), beaten(4, 1), beaten(4, 1)), consumer()
    client.join(at)
    client.beat(at)
    client.beat(at)
    assert [r.member_epoch for r in at.sent] == [0, 3, 4]
    assert [r.subscribed_topic_names for r in at.sent] == [("orders",), None, None]
    owned = [[p for t in r.topic_partitions for p in t.partitions] for r in at.sent]
    assert owned == [[], [0, 1], [1]], "it gives up what it is told to, and says so"


def test_a_consumer_that_is_fenced_begins_anew_with_nothing() -> None:
    at = Script(beaten(3, 0), beaten(0, code=ErrorCode.FENCED_MEMBER_EPOCH), beaten(5))
    client = consumer()
    client.join(at)
    client.beat(at)
    assert (client.epoch, [r.member_epoch for r in at.sent]) == (5, [0, 3, 0])
    assert at.sent[-1].topic_partitions == ()


def test_a_coordinator_that_says_no_is_a_refusal_with_its_words() -> None:
    with pytest.raises(Refusal) as refused:
        consumer().join(Script(beaten(0, code=ErrorCode.GROUP_ID_NOT_FOUND)))
    assert (refused.value.code, refused.value.message) == (ErrorCode.GROUP_ID_NOT_FOUND, "no")


@pytest.mark.parametrize(("instance", "epoch"), [(None, -1), ("i", -2)])
def test_a_consumer_that_leaves_is_silent_from_then_on(instance: str | None, epoch: int) -> None:
    at, client = Script(beaten(3, 0), None), consumer(instance)
    client.join(at)
    client.leave(at)
    client.beat(at)
    assert [r.member_epoch for r in at.sent] == [0, epoch]


def joined(member_id: str, leader: str, members: tuple[str, ...] = (), code: int = 0) -> jg.JoinGroupResponse:
    return jg.JoinGroupResponse(
        error_code=code,
        generation_id=7,
        protocol_name="range",
        leader=leader,
        member_id=member_id,
        members=tuple(jg.JoinGroupResponseMember(member_id=m) for m in members),
    )


def synced(*partitions: int) -> SyncGroupResponse:
    owned = Assignment(tuple(TopicPartition("orders", number) for number in partitions))
    return SyncGroupResponse(assignment=owned.encode(1))


def test_a_leader_hands_out_and_a_follower_does_not() -> None:
    at, client = Script(joined("a", "a", ("a", "b")), synced(0)), classic()
    client.join(at)
    given = {entry.member_id: Assignment.decode(entry.assignment) for entry in at.sent[-1].assignments}
    assert given == {
        "a": Assignment((TopicPartition("orders", 0),)),
        "b": Assignment((TopicPartition("orders", 1),)),
    }
    assert (client.generation, client.assignment.partitions) == (7, (TopicPartition("orders", 0),))
    at, client = Script(joined("b", "a"), synced(1)), classic()
    client.join(at)
    assert (at.sent[-1].assignments, client.assignment.partitions) == ((), (TopicPartition("orders", 1),))


def test_an_answer_that_is_still_to_come_is_waited_for() -> None:
    at, client = Script(None, synced(0)), classic()
    client.join(at)
    client.beat(at)
    assert [type(r) for r in at.sent] == [jg.JoinGroupRequest], "no heartbeat, and not joined twice"
    at.answers[0] = joined("a", "a", ("a",))
    client.beat(at)
    assert [type(r) for r in at.sent] == [jg.JoinGroupRequest, SyncGroupRequest]


def test_a_first_join_comes_back_with_the_id_it_was_told() -> None:
    required = joined("a", "", code=ErrorCode.MEMBER_ID_REQUIRED)
    at, client = Script(required, joined("a", "a", ("a",)), synced(0)), classic()
    client.join(at)
    assert [r.member_id for r in at.sent[:2]] == ["", "a"]
    with pytest.raises(Refusal):
        classic().join(Script(joined("", "", code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)))


@pytest.mark.parametrize(("protocol", "kept"), [("range", ()), ("cooperative-sticky", (0,))])
def test_an_eager_client_gives_everything_up_before_it_rejoins(protocol: str, kept: tuple[int, ...]) -> None:
    rebalance = HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    at, client = Script(joined("a", "a", ("a",)), synced(0), rebalance, None), classic(protocol=protocol)
    client.join(at)
    client.beat(at)
    told = Subscription.decode(at.sent[-1].protocols[0].metadata)
    assert (at.sent[-1].member_id, told.owned) == ("a", tuple(TopicPartition("orders", p) for p in kept))


def test_a_member_that_is_not_known_any_more_comes_back_as_a_new_one() -> None:
    unknown = HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
    at, client = Script(joined("a", "a", ("a",)), synced(0), unknown, None), classic()
    client.join(at)
    client.beat(at)
    assert isinstance(at.sent[2], HeartbeatRequest)
    assert (at.sent[3].member_id, client.assignment) == ("", Assignment())


@pytest.mark.parametrize(("instance", "kinds"), [(None, [LeaveGroupRequest]), ("i", [])])
def test_a_static_client_of_the_classic_protocol_falls_silent(
    instance: str | None, kinds: list[type]
) -> None:
    at = Script(None)
    classic(instance).leave(at)
    assert [type(request) for request in at.sent] == kinds
