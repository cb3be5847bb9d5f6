"""Topics that appear, grow and go; trees of 0.7, 0.8 and later; watches that miss nothing."""

import pytest

from kgroup.zookeeper.coordinator import paths
from kgroup.zookeeper.coordinator.directory import broker_of
from kgroup.zookeeper.store.operations import Create, Delete, SetData
from kgroup.zookeeper.wire.messages import Broker, StartFetcherRequest
from tests.unit.zookeeper.stage import Stage, Z


def starts(consumer):
    return consumer.count(StartFetcherRequest)


def test_more_partitions_and_new_topics():
    """LC-11, LC-32, LC-33, scenario 27: growing 1 rebalance, a topic that matches 1, another 0."""
    stage = Stage(topics={"a": 3, "other": 1})
    wild, static = stage.joined("c1", topics="*1*a.*"), stage.joined("c2", group="s", topics='{"other":1}')
    stage.topic("a", 5)
    assert (starts(wild), starts(static)) == (2, 1)
    stage.topic("ab", 1)
    assert (starts(wild), starts(static)) == (3, 1)
    assert set(wild.fetched) == {("a", str(n)) for n in range(5)} | {("ab", "0")}
    stage.topic("b", 1)
    assert (starts(wild), starts(static)) == (3, 1)


def test_a_topic_registered_for_before_it_is_there():
    """LC-11: nothing to fetch until it is."""
    stage = Stage()
    consumer = stage.joined(topics='{"later":1}')
    assert consumer.fetched == ()
    stage.topic("later", 2)
    assert consumer.fetched == (("later", "0"), ("later", "1"))


def test_changes_while_the_first_is_being_read():
    """LC-34, scenario 28: both are seen, in at most two rebalances."""
    stage = Stage(topics={"t": 1})
    consumer = stage.joined()
    broker = stage.brokers[1]
    broker.held = True
    stage.topic("t", 2)
    broker.step(broker.inbox.pop(0))
    stage.topic("t", 3)
    broker.held = False
    broker.release()
    stage.settle()
    assert len(consumer.fetched) == 3
    assert 2 <= starts(consumer) <= 3


def test_watches_lost_with_the_connection_miss_nothing():
    """LC-34: what changed while it was cut off is found when it is back."""
    stage = Stage(topics={"t": 1})
    consumer = stage.joined(topics="*1*.*")
    stage.brokers[1].suspend()
    stage.topic("t", 2)
    stage.topic("new", 1)
    assert len(consumer.fetched) == 1
    stage.brokers[1].connect(fresh=False)
    stage.advance(Z // 6)
    assert set(consumer.fetched) == {("t", "0"), ("t", "1"), ("new", "0")}


def test_a_topic_that_is_gone_loses_its_owners():
    """LC-66: which cannot happen, says the document; the next attempt drops them."""
    stage = Stage(topics={"t": 1, "u": 1})
    consumer = stage.joined(topics='{"t":1,"u":1}')
    assert sorted(stage.owners()) == ["t/0", "u/0"]
    stage.do(Delete(paths.topic("u")))
    assert consumer.fetched == (("t", "0"),)
    assert sorted(stage.owners()) == ["t/0"]
    assert "u" not in stage.brokers[1].machine.term.topics


def test_a_tree_of_0_7():
    """LC-16, OC-31: a child for each broker, in it how many partitions; names are broker-number."""
    stage = Stage()
    stage.do(Create("/brokers/topics/old", b""), Create("/brokers/topics/old/0", b"2"))
    stage.do(Create("/brokers/topics/old/1", b"1"))
    consumer = stage.joined(topics='{"old":2}')
    assert stage.owners() == {"old/0-0": "c1-0", "old/0-1": "c1-0", "old/1-0": "c1-1"}
    stage.do(SetData("/brokers/topics/old/1", b"2"))
    assert consumer.fetched[-1] == ("old", "1-1")
    stage.do(Create("/brokers/topics/old/2", b"1"))
    assert consumer.fetched[-1] == ("old", "2-0")


@pytest.mark.parametrize("data", [b'{"partitions":3}', b"{", b'{"version":1}', b'{"partitions":{"x":[1]}}'])
def test_a_topic_that_makes_no_sense_is_not_one_without_partitions(data):
    """Nobody's partitions are taken away because a topic cannot be read; it is said."""
    stage = Stage(topics={"t": 2})
    consumer = stage.joined()
    stage.do(SetData(paths.topic("t"), data))
    assert consumer.fetched == (("t", "0"), ("t", "1")) and len(stage.owners()) == 2
    assert stage.brokers[1].logged("error")[0] == "topic t cannot be read: bad arguments"
    stage.topic("t", 3)
    stage.advance(2_000)
    assert len(consumer.fetched) == 3


@pytest.mark.parametrize(
    ("data", "broker"),
    [
        (b"creator-h-123:h:9092", Broker(3, "h", 9092)),
        (b'{"host":"h","port":9092,"version":1,"jmx_port":-1}', Broker(3, "h", 9092)),
        (
            b'{"endpoints":["SSL://s:1","PLAINTEXT://h:2"],"host":null,"port":-1,"version":4}',
            Broker(3, "h", 2),
        ),
        (b'{"endpoints":["INSIDE://[::1]:7"],"version":5}', Broker(3, "::1", 7)),
        (b'{"host":null,"port":-1,"version":4}', None),
        (b'{"endpoints":[7],"version":4}', None),
        (b"nonsense", None),
        (b"\xff", None),
        (b"[1]", None),
    ],
)
def test_brokers_of_all_versions(data, broker):
    """LC-16: 0.7's text and JSON of versions 1 to 5, PLAINTEXT first."""
    assert broker_of("3", data) == broker


def test_a_tree_of_a_real_0_8():
    """LC-16, scenario 41: owners and offsets as its consumers left them are read as they are."""
    stage = Stage(topics={"t1": 2})
    for path, data in {
        "/consumers": b"",
        "/consumers/og": b"",
        "/consumers/og/ids": b"",
        "/consumers/og/owners": b"",
        "/consumers/og/owners/t1": b"",
        "/consumers/og/owners/t1/0": b"og_c1-0",
        "/consumers/og/owners/t1/1": b"og_c1-0",
        "/consumers/og/offsets": b"",
        "/consumers/og/offsets/t1": b"",
        "/consumers/og/offsets/t1/0": b"100",
    }.items():
        if path != "/consumers":
            stage.do(Create(path, data))
    consumer = stage.joined("og_c1", group="og", topics='{"t1":1}')
    assert consumer.positions == {("t1", "0"): 100, ("t1", "1"): 0}
    assert "/consumers/og/ids/og_c1" not in stage.dump(), "members are not in ZooKeeper any more"


def test_a_chroot():
    """LC-16, scenario 41: everything lies below it, and nothing beside it."""
    stage = Stage(topics={"t": 1}, chroot="/kafka")
    consumer = stage.joined()
    assert stage.owners() == {"t/0": "c1-0"}
    stage.topic("t", 2)
    assert len(consumer.fetched) == 2
    assert {path.split("/")[1] for path, _ in stage.tree.walk() if path != "/"} == {"kafka"}


def test_owners_outlive_their_consumers():
    """LC-16: persistent, and without ids."""
    stage = Stage(topics={"t": 1})
    consumer = stage.joined()
    consumer.die()
    stage.advance(60_000)
    assert stage.owners() == {"t/0": "c1-0"}
    assert "/consumers/g/ids" not in stage.dump()
