"""Takeovers that need bad luck in the right order: without decision 32 two consumers would deliver."""

from random import Random

import pytest

from kgroup.zookeeper.consumer.machine import ConsumerConfig
from kgroup.zookeeper.coordinator import paths
from kgroup.zookeeper.coordinator.config import LegacyConfig
from kgroup.zookeeper.coordinator.rebalancers import Moves
from kgroup.zookeeper.coordinator.term import Recovery
from kgroup.zookeeper.world.world import unrest
from tests.simulation.era.faults import Fault, planted
from tests.simulation.era.invariants import Violation
from tests.simulation.era.world import AuditedWorld

LONGEST = 9000
before_start = Moves.owners_before_start


def without_the_mark(moves):
    return {path: data.replace(b',"starting":true', b"") for path, data in before_start(moves).items()}


UNSEEN_STARTS = Fault("8.1", Moves, "owners_before_start", without_the_mark)
OLD_LEASE = Fault("8.3", Recovery, "old_lease_ms", lambda recovery: 0)


class Cluster:
    """Two brokers, the first of which coordinates, and a topic of two partitions."""

    def __init__(self, session):
        self.session = session
        self.world = AuditedWorld(Random(1), LegacyConfig(), 2)
        self.world.set_topic("t", 2)
        self.old, self.new = self.world.brokers
        self.old.start()
        self.run(500)
        self.new.start()
        self.run(500)

    def consumer(self, name, brokers=None):
        settings = ConsumerConfig(
            group_id="g",
            consumer_id=name,
            brokers=brokers or self.world.addresses,
            session_timeout_ms=self.session,
        )
        consumer = self.world.add(settings, '{"t":1}')
        consumer.start()
        return consumer

    def run(self, ms):
        self.world.schedule.run_until(self.world.now_ms + ms)

    def deaf(self, consumer):
        """Nothing of the old coordinator reaches it any more, not even that its connection is closed."""
        self.world.network.cut.add((consumer.name, self.old.name))


def dies_between_starts_and_owners():
    """The old coordinator has started a consumer that no owners node names yet, and is gone."""
    cluster = Cluster(LONGEST)
    cluster.consumer("c1")
    cluster.run(5_000)
    late = cluster.consumer("c2")
    while not late.machine.positions:
        cluster.run(1)
    cluster.deaf(late)
    assert "c2" not in str([node.data for _, node in cluster.world.tree.walk(paths.owners("g"))])
    cluster.old.shut_down()
    return cluster


def loses_its_node_and_zookeeper():
    """Somebody deletes its node while it is cut off, so that it takes answers until its lease ends."""
    cluster = Cluster(3000)
    consumers = [cluster.consumer("c1"), cluster.consumer("c2")]
    while unrest(cluster.world) is not None:
        cluster.run(100)
    cluster.run(5_000)
    cluster.old.link.break_off()
    cluster.world.delete_coordinator_node()
    cluster.consumer("c3", cluster.world.addresses[1:])
    while cluster.old.machine.elector.lease_end_ms - cluster.world.now_ms > 50:
        cluster.run(10)
    for consumer in consumers:
        cluster.deaf(consumer)
    return cluster


@pytest.mark.parametrize(
    ("story", "fault"),
    [(dies_between_starts_and_owners, UNSEEN_STARTS), (loses_its_node_and_zookeeper, OLD_LEASE)],
    ids=["unseen starts", "old lease"],
)
def test_a_takeover_waits_for_all_that_may_deliver(story, fault):
    """LC-02, LC-08, LC-61, LC-74: never two; and without the rule there are."""
    cluster = story()
    cluster.run(5 * LONGEST)
    assert cluster.new.machine.state.value == "active"
    assert sum(len(consumer.machine.positions) for consumer in cluster.world.consumers) == 2
    with planted(fault), pytest.raises(Violation, match=r"12\.1 one consumer delivers"):
        story().run(5 * LONGEST)
