"""A new coordinator: whom it waits for, for how long, and what thousands of consumers cost it."""

import pytest

from kgroup.zookeeper.coordinator.registries import Stage as GroupStage
from kgroup.zookeeper.store.operations import Check, Create, SetData
from kgroup.zookeeper.wire.messages import (
    ClusterMetadataRequest,
    PingRequest,
    RegisterConsumerResponse,
    StartFetcherRequest,
    StopFetcherRequest,
)
from tests.unit.zookeeper.stage import S, Stage, Z

TOPICS = {"t": 3}
WAIT = S + 2 * Z // 3
"""The sessions of the old one's consumers, behind its lease."""


def failed_over(stage, names=("c1", "c2", "c3")):
    """A settled group whose coordinator has died."""
    for name in names:
        stage.joined(name)
    stage.advance(10)
    stage.brokers[1].expire()
    stage.settle()
    assert stage.brokers[2].state == "active"


def back(stage, name, **more):
    return stage.joined(name, broker=2, **more)


def moves(consumer):
    return consumer.count(StopFetcherRequest), consumer.count(StartFetcherRequest)


def test_all_come_back():
    """LC-08, LC-73, LC-76, OC-35, scenario 29: nothing before the third; then one rebalance."""
    stage = Stage(brokers=2, topics=TOPICS)
    failed_over(stage)
    owners = stage.owners()
    one, two = back(stage, "c1"), back(stage, "c2")
    stage.advance(1_000)
    assert moves(one) == moves(two) == (0, 0)
    group = stage.brokers[2].machine.term.groups["g"]
    assert group.stage is GroupStage.RECOVERING and group.awaited == {"c3"}
    three = back(stage, "c3")
    assert [moves(each) for each in (one, two, three)] == [(1, 1)] * 3
    assert stage.owners() == owners
    assert [each.fetched for each in (one, two, three)] == [(("t", str(n)),) for n in range(3)]


def test_one_does_not_come_back():
    """LC-08, LC-09, scenario 30: its partitions move when it can deliver no more, whatever it knows."""
    stage = Stage(brokers=2, topics=TOPICS)
    failed_over(stage)
    one, two = back(stage, "c1"), back(stage, "c2")
    stage.until(10 + WAIT - 1)
    assert moves(one) == (0, 0)
    stage.until(10 + WAIT)
    assert moves(one) == moves(two) == (1, 1)
    assert set(stage.owners().values()) == {"c1-0", "c2-0"}


def test_a_member_that_dies_while_others_are_waited_for():
    """LC-09: failure detection begins at its registration."""
    stage = Stage(brokers=2, topics=TOPICS)
    failed_over(stage)
    one, two = back(stage, "c1"), back(stage, "c2")
    two.die()
    stage.until(10 + WAIT)
    assert moves(one) == (1, 1)
    assert set(stage.owners().values()) == {"c1-0"}


def test_a_new_consumer_waits_with_the_others():
    """LC-08: it is nobody that is waited for, and gets nothing before the others are back or over."""
    stage = Stage(brokers=2, topics=TOPICS)
    failed_over(stage)
    new = back(stage, "c9")
    stage.until(10 + WAIT - 1)
    assert moves(new) == (0, 0)
    stage.until(10 + WAIT)
    assert moves(new) == (1, 1)


def test_a_group_nobody_knows_waits_for_nobody():
    """LC-08."""
    stage = Stage(brokers=2, topics=TOPICS)
    failed_over(stage)
    assert moves(back(stage, "c1", group="new")) == (1, 1)


@pytest.mark.parametrize("data", [b"", b"{", b'{"session_timeout_ms":"x"}', b'{"session_timeout_ms":-1}'])
def test_without_the_sessions_the_longest_is_waited_for(data):
    """LC-08: an old tree, or one that somebody wrote into."""
    stage = Stage(brokers=2, topics=TOPICS)
    failed_over(stage)
    stage.do(SetData("/consumers/g/owners", data))
    one = back(stage, "c1")
    stage.until(10 + 30_000 + 2 * Z // 3 - 1)
    assert moves(one) == (0, 0)
    stage.until(10 + 30_000 + 2 * Z // 3)
    assert moves(one) == (1, 1)


def test_the_coordinator_dies_between_starts_and_owners():
    """LC-67, LC-73, scenario 31: who was started is waited for, though no owners node names it."""
    stage = Stage(brokers=2, topics=TOPICS)
    one = stage.joined("c1")
    stage.advance(10)
    two = stage.consumer("c2")
    two.answers = {PingRequest, StopFetcherRequest}
    two.register()
    assert two.count(StartFetcherRequest) == 1 and set(stage.owners().values()) == {"c1-0"}
    assert stage.dump()["/consumers/g/owners"].endswith('"starting":true}')
    stage.brokers[1].expire()
    stage.settle()
    again = back(stage, "c1")
    stage.until(10 + WAIT - 1)
    assert moves(again) == (0, 0), "the second may deliver yet"
    stage.until(10 + WAIT)
    assert moves(again) == (1, 1) and one.closed
    assert stage.dump()["/consumers/g/owners"] == '{"version":1,"session_timeout_ms":6000}'


def test_owners_that_cannot_be_read_are_not_taken_for_none():
    """A new coordinator that cannot see who was there touches nothing, and says so."""
    stage = Stage(brokers=2, topics=TOPICS)
    failed_over(stage)
    stage.tree.deny("/consumers/g/owners/t")
    one = back(stage, "c1")
    stage.until(10 + 3 * WAIT)
    assert moves(one) == (0, 0)
    assert stage.brokers[2].logged("error")[0] == "owners of group g cannot be read: no auth"


def storm(members, groups):
    """That many consumers, each the owner of one partition, all register at one moment with a new one."""
    stage = Stage(brokers=2, topics={"t": members} if groups == 1 else {"t": 1})
    group_ids = [f"g{n % groups}" for n in range(members)]
    create(stage, group_ids, members, groups)
    stage.brokers[1].expire()
    stage.settle()
    consumers = []
    for number, group_id in enumerate(group_ids):
        consumer = stage.consumer(f"c{number}", broker=2, group=group_id)
        consumer.register()
        consumers.append(consumer)
    stage.settle()
    return stage, consumers


def create(stage, group_ids, members, groups):
    ops = [
        Create(f"/consumers/{group_id}{rest}", data)
        for group_id in dict.fromkeys(group_ids)
        for rest, data in (
            ("", b""),
            ("/owners", b'{"version":1,"session_timeout_ms":6000}'),
            ("/owners/t", b""),
        )
    ]
    for number, group_id in enumerate(group_ids):
        partition = number if groups == 1 else 0
        ops.append(Create(f"/consumers/{group_id}/owners/t/{partition}", f"c{number}-0".encode()))
    for start in range(0, len(ops), 500):
        stage.do(*ops[start : start + 500])


@pytest.mark.parametrize(("members", "groups"), [(1000, 1), (1000, 1000)])
def test_a_storm_of_registrations(members, groups):
    """LC-87, scenario 32: one rebalance a group, however many members come back."""
    _, consumers = storm(members, groups)
    assert [moves(consumer) for consumer in consumers] == [(1, 1)] * members


def test_five_thousand_consumers():
    """LC-03, scenario 33: one attempt, owners in at most 11 multis, every ping on its ms."""
    stage = Stage(topics={"t": 5000}, join_window_ms=100)
    consumers = [stage.joined(f"c{number:04}") for number in range(5000)]
    stage.advance(100)
    assert [moves(consumer) for consumer in consumers] == [(1, 1)] * 5000
    assert len(stage.owners()) == 5000
    owners = [
        ops
        for ops, _ in stage.multis()
        if isinstance(ops[0], Check) and any("/owners/t/" in op.path for op in ops)
    ]
    assert len(owners) <= 11 and all(len(ops) <= 500 for ops in owners)
    stage.until(S)
    assert all(consumer.when(PingRequest) == [0, 2000, 4000, 6000] for consumer in consumers)
    term = stage.brokers[1].machine.term
    group = term.groups["g"]
    assert all(list(member.holds) == [p] for p, member in group.holders.items())


def test_who_asks_during_the_election_is_told_so():
    """LC-73: registries are empty, and registrations refused, until the start is done."""
    stage = Stage(brokers=2, topics=TOPICS)
    stage.brokers[2].held = True
    stage.brokers[1].expire()
    asking = stage.consumer("c1", broker=2)
    asking.say(ClusterMetadataRequest())
    assert asking.received[-1].error in (0, 7)
    assert asking.register() is not None
    assert asking.last(RegisterConsumerResponse).error == 7
