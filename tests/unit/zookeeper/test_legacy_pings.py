"""Pings: when they go, what an answer is worth, and how a consumer that is silent or leaves is gone."""

import pytest

from kgroup.zookeeper.events import Received
from kgroup.zookeeper.wire.messages import (
    ErrorMapping,
    PartitionAndOffset,
    PingRequest,
    PingResponse,
    StartFetcherRequest,
    StopFetcherRequest,
    StopFetcherResponse,
)
from tests.unit.zookeeper.stage import S, Stage

TOPICS = {"t": 2}


def test_pings_go_on_their_ms():
    """LC-52, LC-53, LC-54, LC-55, scenario 17: each third, none while one is unanswered."""
    stage = Stage(topics=TOPICS)
    consumer = stage.joined(session=9000)
    stage.until(7_000)
    assert consumer.when(PingRequest) == [0, 3000, 6000]
    consumer.silent()
    stage.until(15_000)
    assert consumer.when(PingRequest) == [0, 3000, 6000, 9000, 15_000]
    assert [m.num_retries for m in consumer.received if isinstance(m, PingRequest)] == [0, 0, 0, 0, 1]


def test_sessions_that_are_no_multiple_of_three_do_not_drift():
    """LC-53: counted from the registration."""
    stage = Stage(topics=TOPICS)
    consumer = stage.joined(session=1001)
    stage.until(10_010)
    assert consumer.when(PingRequest) == [k * 1001 // 3 for k in range(31)]


def test_a_thousand_consumers_each_on_their_ms():
    """LC-53: mixed sessions and moments of registration."""
    stage = Stage()
    consumers = []
    for number in range(1000):
        stage.advance(3)
        session = 3000 + number % 7 * 1000
        consumers.append(
            (stage.now, session, stage.joined(f"c{number}", group=f"g{number}", session=session))
        )
    stage.advance(9_000)
    for began, session, consumer in consumers:
        count = (stage.now - began) * 3 // session + 1
        assert consumer.when(PingRequest) == [began + k * session // 3 for k in range(count)]


def test_who_answers_no_more_is_found_out():
    """LC-55, LC-57, scenario 18: four misses, 16 s; what it held is free by then."""
    stage = Stage(topics=TOPICS)
    silent, other = stage.joined("c1"), stage.joined("c2")
    stage.until(1_000)
    silent.silent()
    stage.until(2_000 + 4 * 4_000 - 1)
    assert not silent.closed
    starts = other.count(StartFetcherRequest)
    stage.until(2_000 + 4 * 4_000)
    assert silent.closed
    assert other.count(StartFetcherRequest) == starts + 1
    assert set(stage.owners().values()) == {"c2-0"}


def test_an_answer_forgives_misses():
    """LC-56, scenario 19: miss, answer, three misses, answer: still alive."""
    stage = Stage(topics=TOPICS)
    consumer = stage.joined()
    stage.advance(1)
    for misses in (1, 3):
        consumer.silent()
        stage.advance(2_000 + misses * 4_000)
        assert consumer.last(PingRequest).num_retries == misses
        consumer.catch_up()
        stage.advance(2_000)
        assert consumer.last(PingRequest).num_retries == 0
    stage.advance(60_000)
    assert not consumer.closed


def test_a_late_answer_counts_for_its_offsets_only():
    """LC-56: it neither forgives nor renews, and it is not the next ping's answer."""
    stage = Stage(topics={"t": 1})
    consumer = stage.joined()
    stage.until(1)
    consumer.silent()
    stage.until(6_001)
    (group,) = stage.brokers[1].machine.term.groups.values()
    member = group.members["c1"]
    assert (member.failed, member.answered_at_ms) == (1, 0)
    late = PingResponse(0, "c1", (PartitionAndOffset("t", "0", 9),))
    consumer.say(late)
    assert (member.failed, member.answered_at_ms) == (1, 0)
    assert group.offsets == {("t", "0"): 9}
    consumer.say(late)
    assert (member.failed, member.answered_at_ms) == (0, 6_001)


def test_with_one_allowed_miss_the_second_fails():
    """LC-55: (max + 1) misses of two thirds of a session."""
    stage = Stage(topics=TOPICS, max_failed_pings=1)
    consumer = stage.joined()
    stage.until(1)
    consumer.silent()
    stage.until(9_999)
    assert not consumer.closed
    stage.until(10_000)
    assert consumer.closed


def test_a_dropped_connection_is_a_failure_at_once_but_its_partitions_are_not_free():
    """LC-57, LC-61, OC-33, scenario 20: others read on, and get them a session behind its last answer."""
    stage = Stage(topics=TOPICS)
    dropped, other = stage.joined("c1"), stage.joined("c2")
    stage.until(5_000)
    starts, stops = other.count(StartFetcherRequest), other.count(StopFetcherRequest)
    dropped.die()
    assert list(next(iter(stage.brokers[1].machine.term.groups.values())).members) == ["c2"]
    stage.until(4_000 + S - 1)
    assert (other.count(StartFetcherRequest), other.count(StopFetcherRequest)) == (starts, stops)
    assert other.fetched == (("t", "1"),)
    stage.until(4_000 + S)
    assert other.fetched == (("t", "0"), ("t", "1"))


def test_the_same_id_back_has_its_partitions_at_once():
    """LC-61, OC-42, scenario 20: it has stopped its fetchers before it registered."""
    stage = Stage(topics=TOPICS)
    dropped, other = stage.joined("c1"), stage.joined("c2")
    stage.until(5_000)
    dropped.die()
    back = stage.joined("c1")
    assert stage.now == 5_000
    assert back.fetched == (("t", "0"),) and other.fetched == (("t", "1"),)


def test_a_last_member_that_is_gone_starts_no_rebalance():
    """LC-57: nobody is left to be told."""
    stage = Stage(topics=TOPICS)
    consumer = stage.joined()
    stage.advance(100)
    consumer.die()
    group = stage.brokers[1].machine.term.groups["g"]
    assert group.run is None and not group.rebalance_initiated and group.rebalancer is None


def leave(consumer):
    """With auto-commit: the next ping is answered with offsets, the one behind it with 10."""
    consumer.silent()
    pings = consumer.count(PingRequest)
    while consumer.count(PingRequest) == pings:
        consumer.stage.advance(1)
    consumer.positions = dict.fromkeys(consumer.fetched, 77)
    consumer.answer(consumer.last(PingRequest))
    consumer.stage.settle()
    pings = consumer.count(PingRequest)
    while consumer.count(PingRequest) == pings:
        consumer.stage.advance(1)
    consumer.answer(consumer.last(PingRequest), ErrorMapping.CLOSING)
    consumer.stage.settle()


def test_leaving_moves_partitions_at_once():
    """LC-78, OC-41, scenario 36: the first ping's offsets are stored, the second's error is the end."""
    stage = Stage(topics=TOPICS)
    leaving, other = stage.joined("c1"), stage.joined("c2")
    stage.advance(100)
    leave(leaving)
    assert leaving.closed
    assert other.fetched == (("t", "0"), ("t", "1"))
    assert stage.offsets()["t/0"] == 77
    start = other.last(StartFetcherRequest).ownership[0].partitions[0]
    assert (start.partition, start.offset) == ("0", 77)


def test_pings_go_out_while_an_answer_is_half_read():
    """LC-83, LC-90, scenario 23: the rest of an answer comes 1 s later, and nothing expires."""
    stage = Stage(topics=TOPICS)
    slow = stage.joined("c1")
    stage.until(1_900)
    slow.answers = {PingRequest, StartFetcherRequest}
    other = stage.joined("c2")
    stage.until(2_900)
    assert slow.when(PingRequest) == [0, 2_000]
    slow.answer(slow.last(StopFetcherRequest))
    stage.advance(1)
    assert slow.count(StopFetcherRequest) == 2 and other.count(StopFetcherRequest) == 1
    assert slow.count(StartFetcherRequest) == 2
    assert stage.brokers[1].logged("info", "warning", "error") == ["broker 1 is the coordinator"]


def test_an_answer_half_read_for_too_long():
    """LC-56, LC-83, scenario 24: the attempt fails; the rest counts for offsets of what is still held."""
    stage = Stage(topics=TOPICS)
    slow = stage.joined("c1")
    stage.until(100)
    slow.answers = {PingRequest, StartFetcherRequest}
    stage.joined("c2")
    stage.until(100 + 4_000)
    group = stage.brokers[1].machine.term.groups["g"]
    assert group.run.attempts == 1 and group.rebalance_failed
    late = (
        PartitionAndOffset("t", "0", 5),
        PartitionAndOffset("u", "0", 5),
        PartitionAndOffset("t", "1", -1),
    )
    slow.say(StopFetcherResponse(0, "c1", late))
    assert group.offsets == {("t", "0"): 5, ("t", "1"): 0}
    assert stage.brokers[1].machine.term.answers.ignored == 2
    assert ("t", "0") not in group.holders, "it has stopped, late as it says so"


@pytest.mark.parametrize("late", [False, True])
def test_offsets_from_before_a_start_are_not_taken_for_those_behind_it(late):
    """LC-26: a ping sent before the Start is answered with what the consumer had before."""
    stage = Stage(topics={"t": 1})
    consumer = stage.consumer()
    consumer.answers = {StopFetcherRequest, StartFetcherRequest}
    consumer.register()
    stage.advance(4_000 if late else 10)
    old = PingResponse(0, "c1", (PartitionAndOffset("t", "0", 3),))
    consumer.broker.step(Received(consumer.conn, old))
    group = stage.brokers[1].machine.term.groups["g"]
    assert group.offsets == {} and stage.brokers[1].machine.term.answers.ignored >= 1
