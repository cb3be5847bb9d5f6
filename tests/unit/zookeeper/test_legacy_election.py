"""Who coordinates: election, the epoch that fences, the lease by one's own clock, going down in order."""

import pytest

from kgroup.errors import ConfigError
from kgroup.zookeeper.coordinator import paths
from kgroup.zookeeper.coordinator.config import LegacyConfig
from kgroup.zookeeper.coordinator.machine import LegacyCoordinator
from kgroup.zookeeper.events import Close, Send, Zk, ZkConnected, ZkDone
from kgroup.zookeeper.store.operations import (
    Check,
    Children,
    Create,
    Delete,
    Exists,
    Failure,
    Get,
    SetData,
    Stat,
)
from kgroup.zookeeper.wire.messages import (
    Broker,
    ClusterMetadataRequest,
    ClusterMetadataResponse,
    PingRequest,
)
from tests.unit.zookeeper.stage import S, Stage, Z

HOSTS = tuple(Broker(n, f"h{n}", 9092) for n in (1, 2, 3))


def states(stage):
    return [broker.state for broker in stage.brokers.values()]


def elections(stage):
    """The multis that would make somebody the coordinator, and whether they did."""
    return [
        (who, not any(isinstance(result, Failure) for result in results))
        for who, ops, results in stage.asked
        if any(isinstance(op, Create) and op.path == paths.COORDINATOR for op in ops)
    ]


def ask_metadata(stage, broker):
    consumer = stage.consumer("asks", broker)
    consumer.say(ClusterMetadataRequest())
    return consumer.received[-1]


def test_three_brokers_and_one_coordinator():
    """LC-05, LC-15, LC-18, LC-20, scenario 1: one multi wins, the others watch the node."""
    stage = Stage(brokers=3)
    assert states(stage) == ["active", "follower", "follower"]
    assert elections(stage) == [(1, True)]
    assert stage.dump()["/consumers/coordinator"] == "1"
    assert stage.dump("/coordinator_epoch") == {"/coordinator_epoch": "1"}


def test_the_start_is_in_the_documents_order():
    """LC-21, scenario 1: topics and a watch on them, then each topic's partitions, then it is active."""
    stage = Stage(topics={"b": 1, "a": 2})
    (broker,) = stage.brokers.values()
    watched = [effect.ops for effect in broker.effects if isinstance(effect, Zk) and effect.watch]
    of_topics = [ops for ops in watched if ops[0].path.startswith(paths.TOPICS)]
    assert of_topics == [
        (Children(paths.TOPICS),),
        (Get(paths.topic("a")), Get(paths.topic("b"))),
    ]
    assert broker.machine.term.interests.groups_of == {}
    assert (Children(paths.BROKER_IDS),) in watched
    assert broker.effects[-1].text == "broker 1 is the coordinator"


def test_nobody_is_registered_or_named_before_the_start_is_done():
    """LC-07, LC-21, LC-36, scenario 8: 7 while it starts, and before any election."""
    stage = Stage(connect=False)
    broker = stage.brokers[1]
    assert ask_metadata(stage, 1) == ClusterMetadataResponse(7, -1, ())
    broker.held = True
    broker.connect()
    while broker.state != "starting":
        call = broker.calls.pop(0)
        results = stage.tree.ask(broker.session, call.ops, watch=call.watch)
        broker.step(ZkDone(call.call, results))
    assert ask_metadata(stage, 1).error == 7
    assert stage.consumer("c").register().error == 7
    broker.held = False
    broker.release()
    assert ask_metadata(stage, 1) == ClusterMetadataResponse(0, 1, HOSTS[:1])


def test_every_broker_tells_who_coordinates():
    """LC-07, LC-36, scenario 8: with the brokers' list, at the follower too."""
    stage = Stage(brokers=3)
    for broker in (1, 2, 3):
        assert ask_metadata(stage, broker) == ClusterMetadataResponse(0, 1, HOSTS)


def test_brokers_that_come_and_go_are_in_the_list():
    stage = Stage(brokers=2)
    stage.do(Delete(paths.broker("2")))
    assert ask_metadata(stage, 1).brokers == HOSTS[:1]
    stage.do(Create(paths.broker("3"), b'{"endpoints":["SSL://s:1","PLAINTEXT://h3:9092"],"version":4}'))
    assert ask_metadata(stage, 2).brokers == (HOSTS[0], HOSTS[2])


def test_the_first_broker_registers_between_two_questions():
    """LC-36: its node is made behind the answer that there is none, before the watch that waits for it."""
    machine = LegacyCoordinator(LegacyConfig(), 1)

    def asked(effects, op):
        return [e.call for e in effects if isinstance(e, Zk) and e.ops == (op,) and e.watch]

    (call,) = asked(machine.step(ZkConnected(7, Z, True), 0), Children(paths.BROKER_IDS))
    (wait,) = asked(machine.step(ZkDone(call, (Failure.NO_NODE,)), 0), Exists(paths.BROKER_IDS))
    assert asked(machine.step(ZkDone(wait, (Stat(0, 0, 0, 0),)), 0), Children(paths.BROKER_IDS))


def test_a_broker_that_cannot_be_read_is_said():
    stage = Stage()
    stage.do(Create(paths.broker("7"), b"no broker"))
    assert stage.brokers[1].logged("warning") == [
        "broker 7 cannot be read from ZooKeeper: its data is not that of a broker"
    ]


def test_a_create_whose_answer_was_lost_is_not_repeated():
    """LC-20, scenario 2: the node's owner is this session, so it has won."""
    stage = Stage(connect=False)
    broker = stage.brokers[1]
    broker.held = True
    broker.connect()
    while not any(isinstance(op, Create) and op.path == paths.COORDINATOR for op in broker.calls[0].ops):
        answer(stage, broker, broker.calls.pop(0))
    call = broker.calls.pop(0)
    stage.tree.ask(broker.session, call.ops)
    broker.linked = False
    answer(stage, broker, call, (Failure.CONNECTION_LOSS,) * 2)
    broker.held = False
    broker.connect(fresh=False)
    stage.advance(Z // 6)
    assert broker.state == "active"
    assert stage.dump("/coordinator_epoch")["/coordinator_epoch"] == "1"


def answer(stage, broker, call, results=None):
    if results is None:
        results = stage.tree.ask(broker.session, call.ops, watch=call.watch)
    broker.step(ZkDone(call.call, results))


def test_the_session_of_the_active_one_expires():
    """LC-73, LC-74, scenario 3: the next wins with the next epoch; the first begins anew, and follows."""
    stage = Stage(brokers=2, topics={"t": 1})
    consumer = stage.joined()
    stage.brokers[1].expire()
    stage.settle()
    assert consumer.closed
    assert states(stage) == ["idle", "active"]
    assert stage.dump("/coordinator_epoch")["/coordinator_epoch"] == "2"
    stage.brokers[1].connect()
    stage.settle()
    assert states(stage) == ["follower", "active"]
    assert stage.brokers[1].machine.term is None


def split_brain(stage):
    """Broker 1 stands still with a member that has offsets to commit; broker 2 is elected meanwhile."""
    consumer = stage.joined()
    consumer.positions = {("t", "0"): 5}
    stage.advance(S // 3)
    broker = stage.brokers[1]
    stage.tree.expire(broker.session)
    stage.settle()
    stage.now += 10_000
    for other in list(stage.brokers.values())[1:]:
        while other.machine.next_wake_ms() <= stage.now:
            other.wake()
    stage.settle()
    assert states(stage) == ["active", "active"], "the first does not know yet"
    broker.effects.clear()
    return broker, consumer


def test_split_brain():
    """LC-02, LC-74, scenario 4: who stood still closes all before it does anything else."""
    stage = Stage(brokers=2, topics={"t": 1})
    broker, consumer = split_brain(stage)
    broker.wake()
    assert broker.effects[0] == Close(consumer.conn)
    assert not any(isinstance(effect, Send) for effect in broker.effects)
    stage.settle()
    assert states(stage)[1] == "active" and broker.machine.term is None


def test_a_write_of_who_was_replaced_is_fenced():
    """LC-02, LC-18, scenario 5: where no lease helps, the epoch keeps the tree as it is."""
    stage = Stage(brokers=2, topics={"t": 1}, commit_interval_ms=2_100)
    consumer = stage.joined()
    consumer.positions = {("t", "0"): 5}
    stage.until(2_050)
    stage.do(Delete(paths.COORDINATOR))
    before = stage.dump()
    assert states(stage) == ["active", "active"], "the first has not probed yet"
    stage.until(2_100)
    ops, results = stage.multis(1)[-1]
    assert ops == (Check(paths.EPOCH, 1), *ops[1:]) and len(ops) > 1
    assert results[0] is Failure.BAD_VERSION
    assert stage.dump() == before
    assert states(stage) == ["follower", "active"] and consumer.closed
    assert len(stage.brokers[1].logged("error")) == 1


def test_an_admin_deletes_the_coordinators_node():
    """LC-20, LC-74, scenario 6: the probe finds another's node, and the broker resigns."""
    stage = Stage(brokers=2, topics={"t": 1})
    consumer = stage.joined()
    stage.do(Delete(paths.COORDINATOR))
    assert states(stage)[1] == "active"
    stage.advance(Z // 6)
    assert states(stage) == ["follower", "active"]
    assert consumer.closed
    assert elections(stage) == [(1, True), (2, True)]


def test_cut_off_from_zookeeper_only():
    """LC-74, scenario 7: it resigns 4 s after its last probe, before its session can end."""
    stage = Stage(brokers=2, topics={"t": 1})
    consumer = stage.joined()
    stage.advance(2_500)
    stage.brokers[1].suspend()
    stage.until(5_999)
    assert states(stage)[0] == "active" and not consumer.closed
    stage.until(6_000)
    assert states(stage)[0] == "idle" and consumer.closed
    assert stage.dump()["/consumers/coordinator"] == "1", "its session has not ended"
    stage.brokers[1].expire()
    stage.settle()
    assert states(stage)[1] == "active"


def test_suspended_for_less_than_the_lease_changes_nothing():
    """LC-74, scenario 42: the session is back in time; its member is kept, its watches are armed again."""
    stage = Stage(topics={"t": 1})
    consumer = stage.joined()
    stage.brokers[1].suspend()
    stage.advance(2_000)
    stage.brokers[1].connect(fresh=False)
    stage.advance(Z)
    assert stage.brokers[1].state == "active" and not consumer.closed
    stage.topic("t", 2)
    stage.settle()
    assert stage.owners() == {"t/0": "c1-0", "t/1": "c1-0"}


def test_a_resigned_one_gives_its_own_node_up_first():
    """LC-74: the session is alive, so the node is deleted, fenced, before it tries again."""
    stage = Stage(topics={"t": 1})
    broker = stage.brokers[1]
    stage.advance(1_000)
    broker.suspend()
    stage.advance(Z)
    assert broker.state == "idle"
    broker.connect(fresh=False)
    stage.settle()
    release = (Check(paths.EPOCH, 1), Delete(paths.COORDINATOR))
    assert release in [ops for ops, _ in stage.multis(1)]
    assert broker.state == "active"
    assert stage.dump("/coordinator_epoch")["/coordinator_epoch"] == "2"


def test_going_down_in_order():
    """LC-22, scenario 39: elector, pings, offsets, rebalancers, connections; the next one needs no expiry."""
    stage = Stage(brokers=2, topics={"t": 1})
    consumer = stage.joined()
    consumer.positions = {("t", "0"): 5}
    stage.advance(S // 3)
    broker = stage.brokers[1]
    broker.effects.clear()
    broker.shut_down()
    stage.settle()
    release, flush, close = broker.effects
    assert release.ops == (Check(paths.EPOCH, 1), Delete(paths.COORDINATOR))
    path = "/consumers/g/offsets/t/0"
    assert (flush.ops[0], flush.ops[-1]) == (Check(paths.EPOCH, 1), Create(path, b"5"))
    assert close == Close(consumer.conn)
    assert states(stage) == ["stopped", "active"] and stage.offsets() == {"t/0": 5}
    assert stage.tree.alive(broker.session), "the successor did not wait for the session"
    stage.brokers[1].step(None)
    assert broker.machine.next_wake_ms() is None


def test_each_coordinator_has_a_session_of_its_own():
    """LC-17: one ends, and the other broker's stays."""
    stage = Stage(brokers=2)
    one, other = stage.brokers.values()
    one.expire()
    assert one.session != other.session and stage.tree.alive(other.session)


def test_without_zookeeper_nobody_coordinates():
    """LC-18: a machine that is never connected answers 7, for ever."""
    stage = Stage(connect=False)
    stage.advance(600_000)
    assert ask_metadata(stage, 1).error == 7
    assert stage.consumer("c").register().error == 7
    assert stage.brokers[1].calls == []


def test_paths_nobody_has_made_are_made():
    """LC-15, LC-16: an empty tree gets the parents it lacks; an election that may not write says so."""
    stage = Stage(connect=False)
    stage.do(
        Delete(paths.BROKER_IDS + "/1"), Delete(paths.BROKER_IDS), Delete(paths.TOPICS), Delete("/brokers")
    )
    stage.brokers[1].connect()
    stage.settle()
    assert states(stage) == ["active"]
    assert sorted(stage.dump()) == ["/consumers", "/consumers/coordinator"]


def test_missing_rights_are_said():
    stage = Stage(connect=False)
    stage.do(Create(paths.CONSUMERS, b""), Create(paths.EPOCH, b"0"))
    stage.tree.deny(paths.EPOCH)
    stage.brokers[1].connect()
    stage.settle()
    assert stage.brokers[1].logged("error") == ["no election: /coordinator_epoch cannot be read: no auth"]
    assert ask_metadata(stage, 1).error == 7


def test_settings_have_the_documents_names_and_bounds():
    """LC-12, LC-13, OC-32: pool, minimum session, failed pings, commit interval, retries, backoff."""
    config = LegacyConfig()
    assert (config.rebalancers, config.min_session_ms, config.max_failed_pings) == (4, 1000, 3)
    assert (config.commit_interval_ms, config.max_rebalance_retries) == (10_000, 4)
    assert (config.rebalance_backoff_ms, config.queue_size) == (2000, 1000)
    for wrong in ({"max_failed_pings": 0}, {"rebalancers": 0}, {"min_session_ms": 30_000}):
        with pytest.raises(ConfigError):
            LegacyConfig(**wrong)


def test_all_writes_of_groups_are_fenced():
    """LC-18: the check is in front of each, and no multi is larger than it may be."""
    stage = Stage(topics={"t": 20}, max_multi_ops=5)
    stage.joined()
    writes = [
        ops
        for ops, _ in stage.multis()
        if any(op.path.startswith("/consumers/g") for op in ops if isinstance(op, Create | SetData))
    ]
    assert len(stage.owners()) == 20
    assert all(ops[0] == Check(paths.EPOCH, 1) and len(ops) <= 5 for ops in writes)


def test_pings_go_on_until_the_lease_ends_and_no_longer():
    """LC-74: nothing is sent behind the lease."""
    stage = Stage(topics={"t": 1})
    consumer = stage.joined()
    stage.brokers[1].suspend()
    stage.advance(60_000)
    assert max(consumer.when(PingRequest)) <= 4_000 and consumer.closed
    assert not any(isinstance(effect, Exists) for effect in stage.brokers[1].effects)
