"""The consumer-protocol member, heartbeat by heartbeat."""

import pytest

from kgroup.domain import Topic, TopicPartition
from kgroup.errors import ErrorCode as E
from kgroup.members.beating import Phase
from kgroup.members.consumer import ConsumerMember
from kgroup.members.effects import (
    Assigned,
    Committed,
    CoordinatorMoved,
    Failed,
    Left,
    Lost,
    NeedTopics,
    Revoke,
    Send,
    WakeAt,
)
from kgroup.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

T = b"t" * 16
TOPICS = {"t": Topic("t", T, 4)}


def parts(*numbers):
    return tuple(TopicPartition("t", n) for n in numbers)


def ids(*numbers):
    return (TopicPartitions(topic_id=T, partitions=numbers),) if numbers else ()


class Table:
    """A member, and the heartbeat it sent last; stands in for host and coordinator."""

    def __init__(self, topics=("t",), regex=None, known=True, **options):
        self.member = ConsumerMember("g", "m", topics, regex, **options)
        if known:
            assert self.member.update_topics(TOPICS, 0) == []
        self.now = 0
        self.sent = None
        self.limits = None
        self.take(self.member.start(0))

    def take(self, effects):
        self.seen = []
        for effect in effects:
            if isinstance(effect, Send):
                self.sent, self.limits = effect.request, (effect.min_version, effect.max_version)
            else:
                self.seen.append(effect)
        return self.seen

    def answer(self, epoch, *numbers, assignment=True, code=0, message=None):
        given = Assignment(topic_partitions=ids(*numbers)) if assignment else None
        response = ConsumerGroupHeartbeatResponse(
            error_code=code,
            error_message=message,
            member_id="m",
            member_epoch=epoch,
            heartbeat_interval_ms=5000,
            assignment=given,
        )
        return self.take(self.member.receive(self.sent, response, self.now))

    def nothing_new(self, epoch):
        return self.answer(epoch, assignment=False)

    def refuse(self, code, message=None):
        return self.answer(0, assignment=False, code=code, message=message)

    def beat(self):
        self.now += 5000
        self.take(self.member.wake(self.now))
        return self.sent


def request(epoch, **fields):
    return ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=epoch, **fields)


def settled(*numbers, **options):
    table = Table(**options)
    table.answer(1, *numbers)
    table.nothing_new(1)
    return table


def test_a_join_tells_everything_and_later_heartbeats_nothing_that_is_known():
    table = Table(rack="r", server_assignor="range", rebalance_timeout_ms=9000)
    assert table.sent == request(
        0,
        rack_id="r",
        rebalance_timeout_ms=9000,
        subscribed_topic_names=("t",),
        server_assignor="range",
        topic_partitions=(),
    )
    assert table.answer(1) == [WakeAt(5000)]
    assert table.beat() == request(1)


def test_an_assignment_is_acknowledged_at_once():
    table = Table()
    assert table.answer(3, 0, 1) == [WakeAt(5000), Assigned(parts(0, 1))]
    assert table.sent == request(3, topic_partitions=ids(0, 1))
    assert table.nothing_new(3) == [WakeAt(5000)]
    assert table.member.owned == set(parts(0, 1))
    assert table.beat() == request(3)


def test_a_member_gives_up_first_and_takes_afterwards():
    table = settled(0, 1)
    table.beat()
    assert table.answer(1, 1, 2) == [WakeAt(10000), Revoke(parts(0))]
    assert table.beat() == request(1), "nothing is given up before the host says so"
    table.nothing_new(1)
    table.take(table.member.revoked(table.now))
    assert table.seen == [Assigned(parts(2))]
    assert table.sent == request(1, topic_partitions=ids(1, 2))


def test_a_target_that_changes_during_a_revocation_is_followed_after_it():
    table = settled(0, 1)
    table.beat()
    table.answer(1, 1)
    table.beat()
    assert table.answer(1, 3) == [WakeAt(15000)]
    table.take(table.member.revoked(table.now))
    assert table.seen == [Revoke(parts(1))]
    table.take(table.member.revoked(table.now))
    assert table.seen == [Assigned(parts(3))]
    assert table.sent == request(1, topic_partitions=ids(3))


def test_a_revocation_finished_while_a_heartbeat_is_under_way_is_told_with_the_next():
    table = settled(0, 1)
    table.beat()
    table.answer(1, 1)
    under_way = table.beat()
    table.take(table.member.revoked(table.now))
    assert table.sent is under_way
    table.nothing_new(1)
    assert table.sent == request(1, topic_partitions=ids(1))


def test_names_are_looked_up_before_partitions_are_handed_over():
    table = Table(known=False)
    assert table.answer(1, 0)[1:] == [NeedTopics(frozenset("t"), frozenset({T}))]
    assert table.member.owned == frozenset()
    assert table.take(table.member.update_topics(TOPICS, 0)) == [Assigned(parts(0))]
    assert table.sent == request(1, topic_partitions=ids(0))


def test_a_pattern_needs_version_1_and_all_topics():
    table = Table((), "t.*", known=False)
    assert table.sent.subscribed_topic_names == ()
    assert table.sent.subscribed_topic_regex == "t.*"
    assert table.limits == (1, None)
    assert table.answer(1, 0)[1:] == [NeedTopics(None, frozenset({T}))]


def test_a_new_subscription_is_told_at_once_and_a_pattern_is_taken_back():
    table = settled(0, topics=(), regex="t.*")
    table.take(table.member.subscribe(["u"], None, table.now))
    assert table.sent == request(1, subscribed_topic_names=("u",), subscribed_topic_regex="")


def test_a_new_subscription_waits_for_the_heartbeat_under_way():
    table = settled()
    under_way = table.beat()
    table.take(table.member.subscribe(["u"], None, table.now))
    assert table.sent is under_way
    table.nothing_new(1)
    assert table.sent == request(1, subscribed_topic_names=("u",))


@pytest.mark.parametrize("code", [E.FENCED_MEMBER_EPOCH, E.UNKNOWN_MEMBER_ID])
def test_a_fenced_member_loses_its_partitions_and_joins_under_the_same_id(code):
    table = settled(0)
    table.beat()
    assert table.refuse(code) == [Lost(parts(0))]
    assert (table.sent.member_epoch, table.sent.subscribed_topic_names) == (0, ("t",))
    assert table.sent.topic_partitions == ()
    assert table.answer(7, 0)[1:] == [Assigned(parts(0))]


def test_a_host_that_revokes_too_late_gives_up_nothing():
    table = settled(0, 1)
    table.beat()
    table.answer(1, 1)
    table.beat()
    assert table.refuse(E.UNKNOWN_MEMBER_ID) == [Lost(parts(0, 1))]
    assert table.member.revoked(table.now) == []


@pytest.mark.parametrize(
    "code",
    [
        E.UNRELEASED_INSTANCE_ID,
        E.FENCED_INSTANCE_ID,
        E.INVALID_REGULAR_EXPRESSION,
        E.UNSUPPORTED_ASSIGNOR,
        E.GROUP_ID_NOT_FOUND,
    ],
)
def test_some_refusals_are_final(code):
    table = settled(0)
    table.beat()
    assert table.refuse(code, "because") == [Lost(parts(0)), Failed(code, "because")]
    assert table.member.wake(10**9) == []


def test_after_a_lost_answer_everything_is_told_again():
    table = settled(0)
    table.beat()
    assert table.member.unanswered(table.sent, table.now) == [CoordinatorMoved(), WakeAt(5100)]
    table.take(table.member.wake(5100))
    assert table.sent == request(
        1, rebalance_timeout_ms=300_000, subscribed_topic_names=("t",), topic_partitions=ids(0)
    )


@pytest.mark.parametrize(
    ("code", "effects"),
    [
        (E.NOT_COORDINATOR, [CoordinatorMoved(), WakeAt(5100)]),
        (E.COORDINATOR_NOT_AVAILABLE, [CoordinatorMoved(), WakeAt(5100)]),
        (E.COORDINATOR_LOAD_IN_PROGRESS, [WakeAt(5100)]),
    ],
)
def test_a_heartbeat_is_repeated_after_the_backoff(code, effects):
    table = settled(0)
    table.beat()
    assert table.refuse(code) == effects
    assert table.member.phase is Phase.STABLE


@pytest.mark.parametrize(
    ("options", "for_good", "epoch"),
    [({}, False, -1), ({"instance_id": "i"}, False, -2), ({"instance_id": "i"}, True, -1)],
)
def test_leaving(options, for_good, epoch):
    table = settled(0, **options)
    assert table.take(table.member.leave(table.now, for_good)) == [Revoke(parts(0))]
    assert table.sent == request(epoch, **options)
    table.take(table.member.commit({TopicPartition("t", 0): 5}, table.now))
    assert table.sent.generation_id_or_member_epoch == 1, "what the host revokes it may still commit"


def test_a_leave_is_over_with_any_answer():
    table = settled()
    table.take(table.member.leave(table.now))
    assert table.refuse(E.UNKNOWN_MEMBER_ID) == [Left()]
    table = settled()
    table.take(table.member.leave(table.now))
    assert table.member.unanswered(table.sent, table.now) == [Left()]


def test_a_commit_carries_the_epoch_and_names():
    table = settled(0)
    table.take(table.member.commit({TopicPartition("t", 0): 5}, table.now))
    assert (table.sent.member_id, table.sent.generation_id_or_member_epoch) == ("m", 1)
    assert table.limits == (9, 9)
    lost = table.take(table.member.unanswered(table.sent, table.now))
    assert lost == [Committed({TopicPartition("t", 0): E.REQUEST_TIMED_OUT})]
