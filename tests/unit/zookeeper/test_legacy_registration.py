"""Registrations: the checks in their order, who may take an id over, and what groups and consumers are."""

import pytest

from kgroup.zookeeper.coordinator.registries import parse
from kgroup.zookeeper.events import Close, Received, Send
from kgroup.zookeeper.wire.messages import (
    ClusterMetadataRequest,
    PingRequest,
    PingResponse,
    RegisterConsumerResponse,
    StartFetcherRequest,
    StopFetcherRequest,
)
from tests.unit.zookeeper.stage import S, Stage, malformed

TOPICS = {"t": 3}


def error_of(stage, **more):
    return stage.consumer(more.pop("name", "c1"), **more).register().error


def test_a_follower_refuses_and_leaves_the_connection_open():
    """LC-48, LC-49, scenario 9: 7, and it is the consumer that closes."""
    stage = Stage(brokers=2)
    consumer = stage.consumer(broker=2)
    assert consumer.register() == RegisterConsumerResponse(7)
    assert not consumer.closed


@pytest.mark.parametrize(("session", "error"), [(1000, 6), (1001, 0), (30_000, 0), (30_001, 6)])
def test_session_timeouts_are_larger_than_the_least_and_at_most_the_largest(session, error):
    """LC-12, LC-48, scenario 10."""
    stage = Stage()
    consumer = stage.consumer(session=session)
    assert consumer.register().error == error
    assert not consumer.closed


def test_an_id_in_use_is_refused_while_its_consumer_may_deliver():
    """LC-48, OC-42, scenario 11: alive 5; closed, or silent past its lease, 0."""
    stage = Stage(topics=TOPICS, max_failed_pings=9)
    first = stage.joined()
    assert error_of(stage) == 5
    assert error_of(stage, name="c2") == 0
    first.die()
    second = stage.consumer()
    assert second.register().error == 0
    second.silent()
    stage.advance(S - 1)
    assert error_of(stage) == 5
    stage.advance(S // 3 + 1)
    third = stage.consumer()
    stage.brokers[1].effects.clear()
    third.register()
    stage.settle()
    sends = [effect for effect in stage.brokers[1].effects if isinstance(effect, Send | Close)]
    assert sends[0] == Send(third.conn, RegisterConsumerResponse(0))
    assert Close(second.conn) in sends and second.closed and not third.closed


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"topics": "{}"}, 8),
        ({"topics": '{"t":0}'}, 8),
        ({"topics": "[1]"}, 8),
        ({"topics": "*x*a"}, 8),
        ({"topics": "*1*("}, 8),
        ({"topics": '{"a/b":1}'}, 8),
        ({"topics": '{"t":32768}'}, 8),
        ({"topics": '{"t":true}'}, 8),
        ({"topics": "[" * 20_000}, 8),
        ({"topics": '{"\\ud800":1}'}, 8),
        ({"reset": "earliest"}, 9),
        ({"group": "coordinator"}, 9),
        ({"group": "a/b"}, 9),
        ({"group": ""}, 9),
        ({"group": ".."}, 9),
        ({"name": "x" * 250}, 9),
        ({"topics": "{}", "group": "."}, 9),
        ({"topics": "{}", "session": 1}, 8),
    ],
)
def test_what_is_no_registration_says_why(more, error):
    """LC-15, LC-16, LC-37, OC-28, OC-30, scenarios 12 and 41: the first check that fails decides."""
    stage = Stage()
    assert error_of(stage, **more) == error
    assert stage.brokers[1].machine.term.groups == {}


def test_a_second_registration_on_a_connection_is_refused():
    stage = Stage(topics=TOPICS)
    consumer = stage.joined()
    consumer.say(consumer.registration)
    assert consumer.last(RegisterConsumerResponse).error == 9
    assert not consumer.closed and consumer.conn in stage.brokers[1].machine.term.members


def test_what_follows_from_being_accepted():
    """LC-24, LC-25, LC-50, LC-51, LC-67, scenario 13: answer, ping, Stop, Start; owners are written last."""
    stage = Stage(topics=TOPICS)
    consumer = stage.consumer("c", topics='{"t":2}')
    consumer.answers = {PingRequest, StopFetcherRequest}
    consumer.register()
    assert consumer.kinds() == [
        "RegisterConsumerResponse",
        "PingRequest",
        "StopFetcherRequest",
        "StartFetcherRequest",
    ]
    start = consumer.last(StartFetcherRequest)
    assert [(own.thread_id, [p.partition for p in own.partitions]) for own in start.ownership] == [
        ("c-0", ["0", "1"]),
        ("c-1", ["2"]),
    ]
    assert {p.offset for own in start.ownership for p in own.partitions} == {-1}
    assert stage.owners() == {}
    consumer.answer(start)
    stage.settle()
    assert stage.owners() == {"t/0": "c-0", "t/1": "c-0", "t/2": "c-1"}
    term = stage.brokers[1].machine.term
    (group,) = term.groups.values()
    member = group.members["c"]
    assert (member.registration, member.conn, member.failed) == (consumer.registration, consumer.conn, 0)
    assert list(term.interests.groups_of) == ["t"] and term.interests.wildcards == {}
    assert (group.rebalance_initiated, group.rebalancer, group.rebalance_failed) == (False, None, False)
    assert group.offsets == {} and group.changed == {}


def test_the_coordinator_speaks_first_only_behind_the_registration():
    """LC-90: pings come by themselves, and nothing before the answer."""
    stage = Stage(topics=TOPICS)
    consumer = stage.consumer()
    stage.advance(10_000)
    assert consumer.received == []
    consumer.register()
    stage.advance(S)
    assert consumer.count(PingRequest) == 4


def test_connections_nobody_registers_on_are_closed():
    stage = Stage()
    idle, asking = stage.consumer("idle"), stage.consumer("asking")
    stage.advance(20_000)
    asking.say(ClusterMetadataRequest())
    stage.until(29_999)
    assert not idle.closed
    stage.until(30_000)
    assert idle.closed and not asking.closed
    stage.until(50_000)
    assert asking.closed


def test_garbage_ends_its_connection_only():
    """LC-45, scenario 26: logged and closed; the member is gone, and the others take its partitions."""
    stage = Stage(topics=TOPICS)
    one, other = stage.joined("c1"), stage.joined("c2")
    stage.advance(0)
    malformed(one)
    assert one.closed and not other.closed
    assert "connection 1 is closed: garbage" in stage.brokers[1].logged("warning")
    stage.advance(2 * S)
    assert set(stage.owners().values()) == {"c2-0"}


@pytest.mark.parametrize(
    "reply",
    [
        PingResponse(0, "somebody", ()),
        PingResponse(3, "c1", ()),
        PingResponse(0, "c1", None),
    ],
)
def test_answers_that_contradict_the_registration_end_the_connection(reply):
    """LC-40, LC-56: another's id, an error none has, offsets where auto-commit says otherwise."""
    stage = Stage(topics=TOPICS)
    consumer = stage.joined()
    consumer.say(reply)
    assert consumer.closed


def test_answers_of_who_has_not_registered_end_the_connection():
    stage = Stage()
    consumer = stage.consumer()
    consumer.say(PingResponse(0, "c1", ()))
    assert consumer.closed
    stage.brokers[1].step(Received(consumer.conn, ClusterMetadataRequest()))
    assert consumer.received == []


@pytest.mark.parametrize(
    ("text", "topic", "streams"),
    [
        ('{"a":2}', "a", 2),
        ('{"a":2}', "b", 0),
        ("*3*a.*", "abc", 3),
        ("*3*a.*", "ba", 0),
        ("!1!a.*", "ba", 1),
        ("!1!a.*", "ab", 0),
        ("*1* a , b ", "b", 1),
        ('*1*"a"', "a", 1),
        ("*1*.*", "__consumer_offsets", 0),
        ("!1!a", "__consumer_offsets", 0),
    ],
)
def test_topic_counts_are_read_as_in_0_8(text, topic, streams):
    """LC-37, OC-30: whole names, commas are alternatives, never the broker's own topic."""
    assert parse(text).streams_of(topic) == streams


def test_ten_thousand_throw_away_groups_leave_nothing():
    """LC-84, OC-39, scenario 35: registries, sets, timers and watchers are back to what they were."""
    stage = Stage(topics=TOPICS)
    term = stage.brokers[1].machine.term
    before = len(term.timers), len(stage.brokers[1].machine.core.timers)
    for number in range(10_000):
        consumer = stage.consumer(group=f"console-{number}")
        consumer.answers = {StopFetcherRequest} if number == 7 else frozenset()
        consumer.register()
        consumer.die()
        stage.advance(1)
        del stage.consumers[consumer.conn]
        stage.consumers[10**9 + number] = None
        stage.asked.clear()
        stage.brokers[1].effects.clear()
    assert len(term.groups) == 10_000
    stage.advance(600_000 + 2 * S)
    assert term.groups == {} and term.members == {} and term.interests.groups_of == {}
    assert (len(term.timers), len(stage.brokers[1].machine.core.timers)) == before
    assert len(term.timers._heap) < 200
    assert term.purgatory.started == sum(term.purgatory.ended.values())
    assert "/consumers/console-7/owners" in stage.dump(), "ZooKeeper keeps what was there"
