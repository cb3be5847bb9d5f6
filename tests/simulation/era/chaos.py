"""One seed, one run: a made-up cluster, faults for a while, then rest; every invariant after every event."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from kgroup.zookeeper.consumer.machine import ConsumerConfig
from kgroup.zookeeper.coordinator.config import LegacyConfig
from kgroup.zookeeper.world.world import BrokerProcess, ConsumerProcess
from tests.simulation.era.faults import Fault, planted
from tests.simulation.era.invariants import Violation
from tests.simulation.era.rest import come_to_rest, stay_at_rest
from tests.simulation.era.world import AuditedWorld

ZK_SESSION_MS = 6000
SESSIONS_MS = (3000, 6000, 9000)


@dataclass(slots=True)
class Run:
    """What came of a seed; `log` tells the faults, and when."""

    world: AuditedWorld
    log: list[str] = field(default_factory=list)
    rest_ms: int = 0
    violation: Violation | None = None

    @property
    def steps(self) -> int:
        return self.world.schedule.steps

    @property
    def simulated_ms(self) -> int:
        return self.world.now_ms


def run(seed: int, fault: Fault | None = None) -> Run:
    """The same seed, the same run; with a fault that is planted meanwhile."""
    with planted(fault):
        return _run(Random(seed))


def _run(chance: Random) -> Run:
    """Carry a program out; a violated invariant ends it and is in its result."""
    world = AuditedWorld(chance, _settings(chance), chance.randrange(2, 4))
    result = Run(world)
    try:
        _play(chance, result)
        for broker in world.brokers:
            world.auditor.same_again(broker)
    except Violation as violation:
        result.violation = violation
    except Exception as error:
        result.violation = Violation("nothing crashes", f"{type(error).__name__}: {error}")
        result.violation.__cause__ = error
    return result


def _settings(chance: Random) -> LegacyConfig:
    return LegacyConfig(
        zk_session_ms=ZK_SESSION_MS,
        commit_interval_ms=chance.choice((2_000, 5_000)),
        rebalancers=chance.randrange(1, 3),
        max_multi_ops=chance.choice((3, 500)),
        max_outbound_bytes=500,
        header=chance.random() < 0.3,
        join_window_ms=chance.choice((0, 0, 0, 500)),
        empty_group_ms=chance.choice((8_000, 600_000)),
    )


def _play(chance: Random, result: Run) -> None:
    world = result.world
    for number in range(chance.randrange(1, 4)):
        world.set_topic(f"t{number}", chance.randrange(1, 5))
    for number in range(chance.randrange(1, 3)):
        _make_group(world, chance, f"g{number}")
    for broker in world.brokers:
        world.after(chance.randrange(0, 1_000), broker.start)
    for consumer in world.consumers:
        world.after(chance.randrange(0, 5_000), consumer.start)
    world.schedule.run_until(chance.randrange(5_000, 25_000))
    until = world.now_ms + chance.randrange(20_000, 90_000)
    pace = chance.choice((2_000, 6_000, 12_000))
    while world.now_ms < until:
        Trouble(world, chance, result.log).make()
        world.schedule.run_until(world.now_ms + chance.randrange(100, pace))
    world.calm()
    result.rest_ms = come_to_rest(world)
    # The last positions are on their way to ZooKeeper when it is out of reach: nothing makes up for them.
    world.produce_for(3_000)
    moment = chance.randrange(3_000, 3_000 + world.config.commit_interval_ms)
    world.after(moment, lambda: result.log.append(Trouble(world, chance, result.log).blink()))
    if chance.random() < 0.3:
        # Nobody joins or fails any more: it is the watch that has to tell.
        topic = chance.choice(list(world.topics))
        world.set_topic(topic, world.topics[topic] + 1)
    stay_at_rest(world)


def _make_group(world: AuditedWorld, chance: Random, group_id: str) -> None:
    auto_commit = chance.random() < 0.8
    session = chance.choice(SESSIONS_MS)
    for number in range(chance.randrange(1, 5)):
        config = ConsumerConfig(
            group_id=group_id,
            consumer_id=f"c{number}",
            brokers=world.addresses,
            session_timeout_ms=session if chance.random() < 0.7 else chance.choice(SESSIONS_MS),
            auto_commit=auto_commit,
            reset=chance.choice(("smallest", "largest")),
        )
        world.add(config, _topic_count(world, chance))


def _topic_count(world: AuditedWorld, chance: Random) -> str:
    streams = chance.randrange(1, 3)
    if chance.random() < 0.3:
        return f"*{streams}*t.*"
    return json.dumps(dict.fromkeys(world.topics, streams))


class Trouble:
    """One thing that goes wrong, or that somebody does."""

    def __init__(self, world: AuditedWorld, chance: Random, log: list[str]) -> None:
        self._world = world
        self._chance = chance
        self._log = log

    def make(self) -> None:
        """One of all kinds."""
        kinds: tuple[Callable[[], str], ...] = (
            self._crash_broker,
            self._pause_broker,
            self._pause_broker,
            self._cut_zookeeper,
            self._cut_zookeeper,
            self.blink,
            self._isolate,
            self._strike,
            self._cut_consumer,
            self._cut_consumer,
            self._cut_consumer,
            self._crash_consumer,
            self._pause_consumer,
            self._pause_consumer,
            self._leave,
            self._tear,
            self._block,
            self._more_partitions,
            self._delete_node,
            self._end_session,
            self._shut_down,
        )
        self._log.append(f"{self._world.now_ms}: {self._chance.choice(kinds)()}")

    def _later(self, least_ms: int, most_ms: int, action: Callable[[], None]) -> int:
        delay = self._chance.randrange(least_ms, most_ms)
        self._world.after(delay, action)
        return delay

    def _consumer(self) -> ConsumerProcess:
        return self._chance.choice(self._world.consumers)

    def _crash_broker(self) -> str:
        broker, silently = self._chance.choice(self._world.brokers), self._chance.random() < 0.3
        broker.crash(silently=silently)
        back = self._later(500, 15_000, lambda: None if broker.alive else broker.start())
        return f"{broker.name} crashes {'silently ' if silently else ''}for {back} ms"

    def _pause_broker(self) -> str:
        broker = self._chance.choice(self._world.brokers)
        broker.stand_still()
        return f"{broker.name} stands still for {self._later(500, 20_000, broker.go_on)} ms"

    def _cut_zookeeper(self) -> str:
        broker = self._chance.choice(self._world.brokers)
        broker.link.break_off()
        return f"{broker.name} is cut off from ZooKeeper for {self._later(200, 25_000, broker.link.heal)} ms"

    def blink(self) -> str:
        """Too short for anybody to resign, long enough for a write to be lost."""
        for broker in self._world.brokers:
            broker.link.break_off()
            self._later(200, 2_500, broker.link.heal)
        return "nobody reaches ZooKeeper for a moment"

    def _isolate(self) -> str:
        """A coordinator without ZooKeeper; some of its consumers find another, some do not hear of it."""
        world, chance = self._world, self._chance
        led = [broker for broker in world.brokers if broker.alive and broker.machine.elector.leading]
        broker = chance.choice(led or world.brokers)
        broker.link.break_off()
        back = self._later(3_000, 30_000, broker.link.heal)
        if chance.random() < 0.5:
            world.delete_coordinator_node()
        if broker.connections:
            connections = list(broker.connections.values())
            deaf = chance.choice(connections).consumer
            world.network.drop_at_broker(chance.choice(connections))
            self._later(1_000, 5_000, lambda: self._cut(deaf, [broker], chance.randrange(5_000, 15_000)))
        return f"{broker.name} is cut off from ZooKeeper for {back} ms, and loses consumers"

    def _strike(self) -> str:
        """The next Start is followed by its coordinator's crash, and its consumer does not hear of that."""

        def hit(broker: BrokerProcess, conn: int) -> None:
            self._world.auditor.on_start = None
            connection = broker.connections.get(conn)
            if connection is not None:
                consumer = connection.consumer
                self._later(20, 60, lambda: self._cut(consumer, [broker], 12_000))
                self._later(20, 60, lambda: None if self._world.is_calm else broker.crash(silently=False))
                self._later(1_000, 9_000, lambda: None if broker.alive else broker.start())

        self._world.auditor.on_start = hit
        self._crash_consumer()
        return "a coordinator is to crash at its next Start"

    def _cut(self, consumer: ConsumerProcess, brokers: list[BrokerProcess], ms: int) -> None:
        world = self._world
        if world.is_calm:
            return
        pairs = {(consumer.name, broker.name) for broker in brokers}
        world.network.cut |= pairs

        def heal() -> None:
            world.network.cut -= pairs
            world.network.flow_all()

        world.after(ms, heal)

    def _cut_consumer(self) -> str:
        consumer, world = self._consumer(), self._world
        brokers = [self._chance.choice(world.brokers)] if self._chance.random() < 0.5 else world.brokers
        gap = self._chance.randrange(500, 20_000)
        self._cut(consumer, brokers, gap)
        half = self._chance.random() < 0.5
        if half and consumer.connection is not None:
            world.network.drop_at_broker(consumer.connection)
        names = ", ".join(broker.name for broker in brokers)
        how = ", reset at the broker's side," if half else ""
        return f"{consumer.name} is cut off{how} from {names} for {gap} ms"

    def _crash_consumer(self) -> str:
        consumer, silently = self._consumer(), self._chance.random() < 0.3
        consumer.crash(silently=silently)
        back = self._later(10, 15_000, lambda: self._back(consumer))
        return f"{consumer.name} crashes {'silently ' if silently else ''}for {back} ms"

    def _back(self, consumer: ConsumerProcess) -> None:
        if not consumer.alive and consumer.wanted:
            consumer.start()

    def _pause_consumer(self) -> str:
        consumer = self._consumer()
        consumer.pause()
        half = self._chance.random() < 0.5
        if half and consumer.connection is not None:
            self._world.network.drop_at_broker(consumer.connection)
        how = ", reset at the broker's side," if half else ""
        return f"{consumer.name} stands still{how} for {self._later(500, 20_000, consumer.resume)} ms"

    def _leave(self) -> str:
        consumer = self._consumer()
        consumer.leave()

        def back() -> None:
            consumer.wanted = True
            self._back(consumer)

        return f"{consumer.name} leaves for {self._later(3_000, 20_000, back)} ms"

    def _tear(self) -> str:
        gap = self._chance.randrange(200, 7_000)
        self._world.network.tear_next = gap
        return f"the next frame comes in two halves, {gap} ms apart"

    def _block(self) -> str:
        if not self._world.network.connections:
            return "nobody is connected"
        connection = self._chance.choice(self._world.network.connections)
        connection.to_consumer.blocked = True

        def unblock() -> None:
            connection.to_consumer.blocked = False
            self._world.network.flow_all()

        return f"{connection.consumer.name} takes nothing for {self._later(500, 30_000, unblock)} ms"

    def _more_partitions(self) -> str:
        world = self._world
        topics = [*world.topics, f"t{len(world.topics)}"]
        topic = self._chance.choice(topics)
        partitions = world.topics.get(topic, 0) + 1
        if partitions > 6 or len(topics) > 6:
            return "enough topics"
        world.set_topic(topic, partitions)
        return f"topic {topic} has {partitions} partitions"

    def _delete_node(self) -> str:
        self._world.delete_coordinator_node()
        return "somebody deletes the coordinator's node"

    def _end_session(self) -> str:
        broker = self._chance.choice(self._world.brokers)
        broker.link.end_session()
        return f"{broker.name}'s session is ended"

    def _shut_down(self) -> str:
        broker = self._chance.choice(self._world.brokers)
        broker.shut_down()
        back = self._later(500, 10_000, lambda: None if broker.alive else broker.start())
        return f"{broker.name} goes down in order for {back} ms"
