"""Everything together: a tree, brokers, consumers, a network, under one clock and one seed."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random

from kgroup.simulation.schedule import Schedule
from kgroup.zookeeper.consumer.events import ConsumerConfig
from kgroup.zookeeper.coordinator import paths
from kgroup.zookeeper.coordinator.config import LegacyConfig
from kgroup.zookeeper.store.operations import Create, Failure, Get, Result, SetData, Write
from kgroup.zookeeper.store.tree import Tree
from kgroup.zookeeper.wire.codec import Wire
from kgroup.zookeeper.wire.messages import Broker, Partition
from kgroup.zookeeper.world.broker import BrokerProcess
from kgroup.zookeeper.world.consumer import ConsumerProcess
from kgroup.zookeeper.world.network import Network
from kgroup.zookeeper.world.observer import Observer

RECORDS_PER_S = 20
PORT = 9092


class World:
    """One run."""

    def __init__(self, chance: Random, config: LegacyConfig, brokers: int) -> None:
        self.chance = chance
        self.config = config
        self.schedule = Schedule()
        self.tree = Tree()
        self.wire = Wire(header=config.header, commit=config.commit)
        self.network = Network(self.schedule, chance, config.max_outbound_bytes)
        self.observer = Observer()
        self.topics: dict[str, int] = {}
        self._admin = self.tree.open()
        for path in ("/brokers", paths.BROKER_IDS, paths.TOPICS):
            self.administer(Create(path, b""))
        for broker_id in range(1, brokers + 1):
            data = json.dumps({"version": 1, "host": f"h{broker_id}", "port": PORT}).encode()
            self.administer(Create(paths.broker(str(broker_id)), data))
        self.addresses = tuple(Broker(n, f"h{n}", PORT) for n in range(1, brokers + 1))
        self.brokers = [BrokerProcess(self, n) for n in range(1, brokers + 1)]
        self.consumers: list[ConsumerProcess] = []

    @property
    def now_ms(self) -> int:
        return self.schedule.now_ms

    def watch(self, observer: Observer) -> None:
        """Have the observer see everything from now on."""
        self.observer = observer
        self.schedule.after_each = observer.after_event

    def administer(self, *ops: Write) -> bool:
        """What somebody does to the tree by hand, or a broker to its topics; whether it was done."""
        results = self.tree.ask(self._admin, ops, now_ms=self.now_ms)
        return not any(isinstance(result, Failure) for result in results)

    def read(self, path: str) -> Result:
        """A node as it is now."""
        return self.tree.ask(self._admin, (Get(path),))[0]

    def set_topic(self, name: str, partitions: int) -> None:
        """Make a topic, or give it more partitions."""
        told = {"version": 1, "partitions": {str(n): [1] for n in range(partitions)}}
        data, path = json.dumps(told).encode(), paths.topic(name)
        known = name in self.topics
        self.topics[name] = partitions
        self.administer(SetData(path, data) if known else Create(path, data))

    def add(self, config: ConsumerConfig, topic_count: str) -> ConsumerProcess:
        """A consumer, not started yet."""
        consumer = ConsumerProcess(self, config, topic_count)
        self.consumers.append(consumer)
        return consumer

    def broker_at(self, host: str) -> BrokerProcess:
        return next(broker for broker in self.brokers if f"h{broker.id}" == host)

    def end_of(self, partition: Partition) -> int:
        """How many records the partition has."""
        return self.now_ms * RECORDS_PER_S // 1000

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        self.schedule.after(delay_ms, action)
