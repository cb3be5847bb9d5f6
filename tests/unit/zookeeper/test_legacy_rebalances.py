"""Rebalances: who is stopped and started when, what is written between, what makes an attempt fail."""

import pytest

from kgroup.zookeeper.coordinator import paths
from kgroup.zookeeper.coordinator.rebalancers import target_of
from kgroup.zookeeper.coordinator.registries import RegisteredConsumer, parse
from kgroup.zookeeper.store.operations import Create, Delete, SetData
from kgroup.zookeeper.wire.messages import (
    Broker,
    PingRequest,
    RegisterConsumerRequest,
    StartFetcherRequest,
    StopFetcherRequest,
)
from tests.unit.zookeeper.stage import S, Stage

TOPICS = {"t": 4}


def group_of(stage, name="g"):
    return stage.brokers[1].machine.term.groups[name]


def moves(consumer):
    return consumer.count(StopFetcherRequest), consumer.count(StartFetcherRequest)


def member(name, topics):
    return RegisteredConsumer(
        RegisterConsumerRequest("g", name, topics, True, "smallest", S), parse(topics), 1, 0, 0
    )


@pytest.mark.parametrize(
    ("partitions", "threads", "shares"),
    [(10, 3, [4, 3, 3]), (3, 5, [1, 1, 1, 0, 0]), (4, 2, [2, 2]), (0, 2, [0, 0])],
)
def test_range(partitions, threads, shares):
    """LC-64, LC-65: P div T each, the first P mod T threads one more, contiguous."""
    names = [str(n) for n in range(partitions)]
    target = target_of([member("c", f'{{"t":{threads}}}')], {"t": names})
    assert [sum(owner == f"c-{k}" for owner in target.values()) for k in range(threads)] == shares
    assert [p.name for p, _ in sorted(target.items(), key=lambda i: (i[1], int(i[0].name)))] == names


def test_threads_sort_as_strings_and_partitions_by_broker_and_number():
    """LC-64, LC-65, OC-31: "c-10" before "c-2", and "1-0" behind "0-10"."""
    target = target_of([member("c", '{"t":11}')], {"t": ["1-0", "0-10", "0-2"]})
    assert {p.name: thread for p, thread in target.items()} == {"0-2": "c-0", "0-10": "c-1", "1-0": "c-10"}


def test_a_second_member_joins():
    """LC-04, LC-67, LC-68, LC-79, scenario 14: all stop, offsets are in ZooKeeper, all start at those."""
    stage = Stage(topics=TOPICS)
    one = stage.joined("c1")
    one.positions = {("t", str(n)): 40 + n for n in range(4)}
    seen = []
    receive = type(one).receive

    def spying(self, message):
        if isinstance(message, StartFetcherRequest):
            seen.append(stage.offsets())
        receive(self, message)

    one.receive = lambda message: spying(one, message)
    two = stage.joined("c2")
    assert seen == [{"t/0": 40, "t/1": 41, "t/2": 42, "t/3": 43}]
    assert one.positions == {("t", "0"): 40, ("t", "1"): 41}
    assert two.positions == {("t", "2"): 42, ("t", "3"): 43}
    assert stage.owners() == {"t/0": "c1-0", "t/1": "c1-0", "t/2": "c2-0", "t/3": "c2-0"}


def test_stored_offsets_are_where_to_start_without_auto_commit():
    """LC-40, LC-68: what is stored decides; nothing stored leaves it to the reset word."""
    stage = Stage(topics={"t": 2})
    stage.do(*[Create(p, b"") for p in ("/consumers/g", "/consumers/g/offsets", "/consumers/g/offsets/t")])
    stage.do(Create("/consumers/g/offsets/t/1", b"17"))
    consumer = stage.joined(auto_commit=False)
    (own,) = consumer.last(StartFetcherRequest).ownership
    assert [p.offset for p in own.partitions] == [-1, 17]


def test_an_offset_that_makes_no_sense_is_not_taken_for_none():
    """A position nobody can read: said, and nobody is started before it is mended."""
    stage = Stage(topics={"t": 1})
    stage.do(*[Create(p, b"") for p in ("/consumers/g", "/consumers/g/offsets", "/consumers/g/offsets/t")])
    stage.do(Create("/consumers/g/offsets/t/0", b"-5"))
    consumer = stage.joined()
    assert consumer.count(StartFetcherRequest) == 0
    (error,) = stage.brokers[1].logged("error")
    assert error == "offset /consumers/g/offsets/t/0 cannot be used: it is no number; mend or delete it"
    stage.do(SetData("/consumers/g/offsets/t/0", b"5"))
    stage.advance(2_000)
    assert consumer.positions == {("t", "0"): 5}


def test_a_third_joins_during_stop():
    """LC-28, LC-63, scenario 15: not in this attempt; exactly one more run."""
    stage = Stage(topics=TOPICS)
    one = stage.joined("c1")
    one.answers = {PingRequest, StartFetcherRequest}
    two = stage.joined("c2")
    three = stage.joined("c3")
    assert moves(three) == (0, 0) and moves(two) == (1, 0)
    one.answer(one.last(StopFetcherRequest))
    one.answers = one.answers | {StopFetcherRequest}
    stage.settle()
    assert (moves(one), moves(two), moves(three)) == ((3, 3), (2, 2), (1, 1))
    assert set(stage.owners().values()) == {"c1-0", "c2-0", "c3-0"}


def test_a_hundred_triggers_while_queued_are_one_run():
    """LC-28, LC-29, scenario 16: also where it waits behind another group of the same rebalancer."""
    stage = Stage(topics=TOPICS, rebalancers=1)
    stuck = stage.consumer("c0", group="stuck")
    stuck.answers = {PingRequest}
    stuck.register()
    one = stage.joined("c1")
    for count in range(5, 105):
        stage.topic("t", count)
    assert moves(one) == (0, 0)
    stuck.die()
    stage.settle()
    assert moves(one) == (1, 1)
    assert len(stage.owners()) == 104


def test_rebalancers_take_turns_and_a_group_stays_with_its_own():
    """LC-29, LC-30: round robin, in order; who is busy with a group gets it again."""
    stage = Stage(topics=TOPICS, rebalancers=3)
    stuck = []
    for number in range(6):
        consumer = stage.consumer(f"c{number}", group=f"g{number}")
        consumer.answers = {PingRequest}
        consumer.register()
        stuck.append(consumer)
    term = stage.brokers[1].machine.term
    every = term.rebalancers.all
    assert [term.groups[f"g{n}"].rebalancer for n in range(6)] == [0, 1, 2, 0, 1, 2]
    stage.topic("t", 5)
    stage.settle()
    assert [term.groups[f"g{n}"].rebalancer for n in range(3)] == [0, 1, 2]
    assert [[group.group_id for group in r.queue] for r in every] == [
        ["g3", "g0"],
        ["g4", "g1"],
        ["g5", "g2"],
    ]


def test_a_full_queue_drops_nobody():
    """LC-19, OC-37: one line, and all groups are served."""
    stage = Stage(topics=TOPICS, rebalancers=1, queue_size=1)
    first = stage.consumer("c", group="first")
    first.answers = {PingRequest}
    first.register()
    others = [stage.joined("c", group=f"g{n}") for n in range(5)]
    assert [moves(other) for other in others] == [(0, 0)] * 5
    assert len([line for line in stage.brokers[1].logged("warning") if "queue is full" in line]) == 1
    first.die()
    stage.settle()
    assert [moves(other) for other in others] == [(1, 1)] * 5


def test_a_member_dies_in_stop():
    """LC-31, LC-60, scenario 21: the attempt ends at once; the next one, 2 s later, is without it."""
    stage = Stage(topics=TOPICS)
    one = stage.joined("c1")
    stage.until(1_000)
    one.answers = {PingRequest}
    two = stage.joined("c2")
    one.die()
    group = group_of(stage)
    assert group.rebalance_failed and group.run.attempts == 1
    assert moves(two) == (1, 0)
    stage.until(3_000 - 1)
    assert group.run.snapshot != [] and moves(two) == (1, 0)
    stage.until(S)
    assert moves(two) == (2, 1) and set(stage.owners().values()) == {"c2-0"}


def test_a_member_that_never_stops():
    """LC-13, LC-62, LC-70, LC-72, OC-38, scenario 22: four attempts, one line, and others are served."""
    stage = Stage(topics=TOPICS, rebalancers=2)
    stubborn = stage.consumer("c1", group="stubborn")
    stubborn.answers = {PingRequest}
    stubborn.register()
    elsewhere = stage.joined("c2", group="elsewhere")
    mate = stage.joined("c3", group="mate")
    assert moves(elsewhere) == (1, 1) and moves(mate) == (0, 0)
    stage.until(4 * (4_000 + 2_000) - 1)
    assert stubborn.count(StopFetcherRequest) == 4 and moves(mate) == (0, 0)
    assert stage.brokers[1].logged("error") == []
    stage.until(4 * (4_000 + 2_000))
    assert moves(mate) == (1, 1) and not stubborn.closed
    assert stage.brokers[1].logged("error") == ["ConsumerRebalanceFailedException: stubborn after 4 attempts"]
    group = group_of(stage, "stubborn")
    assert (group.given_up, group.rebalancer, group.run) == (True, None, None)
    stage.advance(60_000)
    assert stubborn.count(StopFetcherRequest) == 4
    stubborn.catch_up()
    stage.topic("t", 5)
    assert stubborn.count(StartFetcherRequest) == 1 and not group.given_up


def test_endless_retries_wait_a_third_of_a_session():
    """LC-88, OC-38: as an option, without a limit."""
    stage = Stage(topics=TOPICS, retry_endless=True)
    stubborn = stage.consumer()
    stubborn.answers = {PingRequest}
    stubborn.register()
    stage.until(20 * (4_000 + 2_000))
    assert stubborn.when(StopFetcherRequest) == [k * 6_000 for k in range(21)]
    assert stage.brokers[1].logged("error") == []


@pytest.mark.parametrize(
    "change",
    [
        lambda stage: stage.do(Delete("/consumers/g/owners/t/3")),
        lambda stage: stage.do(SetData("/consumers/g/owners/t/3", b"somebody-0")),
        lambda stage: stage.do(Create("/consumers/g/owners/t/9", b"c1-0")),
        lambda stage: stage.do(*[Delete(f"/consumers/g/owners/t/{n}") for n in range(4)]),
    ],
    ids=["unowned", "another owner", "no such partition", "no owners"],
)
def test_what_makes_a_rebalance_necessary(change):
    """LC-66: one clause each; and owners are right behind it."""
    stage = Stage(topics=TOPICS)
    consumer = stage.joined()
    change(stage)
    trigger(stage)
    assert moves(consumer) == (2, 2)
    assert stage.owners() == {f"t/{n}": "c1-0" for n in range(4)}


def test_a_rebalance_that_is_not_necessary_touches_nobody():
    """LC-66, LC-71: read, compared, done; and the group is nobody's again."""
    stage = Stage(topics=TOPICS)
    consumer = stage.joined()
    writes = len(stage.multis())
    trigger(stage)
    assert moves(consumer) == (1, 1) and len(stage.multis()) == writes
    assert group_of(stage).rebalancer is None


def trigger(stage):
    """Something about the group's topics seems to have changed."""
    stage.brokers[1].machine.term.rebalancers.add(group_of(stage))
    stage.brokers[1]._carry_out(stage.brokers[1].machine.core.take_effects())
    stage.settle()


def test_a_member_without_partitions_is_started_with_nothing():
    """LC-43, LC-67: and hears of the brokers."""
    stage = Stage(brokers=2, topics={"t": 1})
    stage.joined("c1")
    idle = stage.joined("c2")
    start = idle.last(StartFetcherRequest)
    assert start.ownership == ()
    assert start.brokers == (Broker(1, "h1", 9092), Broker(2, "h2", 9092))


def test_every_start_carries_the_brokers_of_now():
    """LC-69."""
    stage = Stage(topics={"t": 1})
    consumer = stage.joined()
    stage.do(Create(paths.broker("4"), b'{"host":"h4","port":9094,"version":1}'))
    stage.topic("t", 2)
    assert Broker(4, "h4", 9094) in consumer.last(StartFetcherRequest).brokers


def test_a_start_that_is_not_answered_fails_the_attempt():
    """LC-59, LC-67, LC-70: owners are written behind all answers to Starts only."""
    stage = Stage(topics=TOPICS)
    one = stage.consumer("c1")
    one.answers = {PingRequest, StopFetcherRequest}
    one.register()
    stage.until(3_999)
    assert stage.owners() == {}
    stage.until(4_000)
    assert group_of(stage).run.attempts == 1
    stage.until(6_000)
    assert moves(one) == (2, 2)
    one.answer(one.left[0])
    stage.settle()
    assert stage.owners() == {}, "the answer of the first attempt is not that of the second"
    one.answer(one.left[1])
    stage.settle()
    assert len(stage.owners()) == 4


def test_the_third_answer_of_three_is_the_signal():
    """LC-59."""
    stage = Stage(topics={"t": 3})
    members = [stage.joined(f"c{n}") for n in (1, 2, 3)]
    before = [moves(each) for each in members]
    for each in members:
        each.answers = {PingRequest}
    stage.topic("t", 4)
    for number, each in enumerate(members):
        assert [m.count(StartFetcherRequest) for m in members] == [starts for _, starts in before], number
        each.answer(each.last(StopFetcherRequest))
        stage.settle()
    assert [m.count(StartFetcherRequest) for m in members] == [starts + 1 for _, starts in before]


def test_members_may_have_sessions_of_their_own():
    """LC-52, OC-36: each is waited for two thirds of its own; the largest is beside the owners."""
    stage = Stage(topics=TOPICS)
    slow = stage.consumer("c1", session=9_000)
    slow.answers = {PingRequest}
    slow.register()
    stage.until(4_500)
    stage.joined("c2", session=3_000)
    assert group_of(stage).run.attempts == 0
    stage.until(6_000)
    assert group_of(stage).run.attempts == 1
    slow.catch_up()
    stage.until(20_000)
    assert stage.dump()["/consumers/g/owners"] == '{"version":1,"session_timeout_ms":9000}'
    slow.die()
    stage.until(60_000)
    assert stage.dump()["/consumers/g/owners"] == '{"version":1,"session_timeout_ms":3000}'


def test_joins_may_be_gathered_for_a_while():
    """LC-87: with a window, one rebalance for all who come within it."""
    stage = Stage(topics=TOPICS, join_window_ms=500)
    members = []
    for number in range(4):
        members.append(stage.joined(f"c{number}"))
        stage.advance(100)
    assert [moves(each) for each in members] == [(0, 0)] * 4
    stage.until(500)
    assert [moves(each) for each in members] == [(1, 1)] * 4


def test_a_join_while_it_waits_for_a_lease_is_taken_in():
    """LC-63: nobody has been stopped yet, so the attempt reads anew, and does not count."""
    stage = Stage(topics=TOPICS)
    gone, stays = stage.joined("c1"), stage.joined("c2")
    stage.until(1_000)
    gone.die()
    before = moves(stays)
    late = stage.joined("c3")
    assert moves(stays) == before and moves(late) == (0, 0)
    stage.until(S)
    assert moves(stays) == (before[0] + 1, before[1] + 1) and moves(late) == (1, 1)
    assert set(stage.owners().values()) == {"c2-0", "c3-0"}
