"""A simulated cluster of the ZooKeeper era whose faults come to an end."""

from __future__ import annotations

from random import Random

from kgroup.zookeeper.coordinator import paths
from kgroup.zookeeper.coordinator.config import LegacyConfig
from kgroup.zookeeper.coordinator.election import State
from kgroup.zookeeper.store.operations import Delete
from kgroup.zookeeper.wire.messages import Partition
from kgroup.zookeeper.world.world import RECORDS_PER_S, World
from tests.simulation.era.invariants import Auditor


class AuditedWorld(World):
    """A run whose invariants are checked; after `calm` nothing is produced and positions come to rest."""

    def __init__(self, chance: Random, config: LegacyConfig, brokers: int) -> None:
        super().__init__(chance, config, brokers)
        self._calm_ms: int | None = None
        self.auditor = Auditor(self)
        self.watch(self.auditor)

    @property
    def is_calm(self) -> bool:
        """Whether nothing is to go wrong any more."""
        return self._calm_ms is not None

    def end_of(self, partition: Partition) -> int:
        until = self.now_ms if self._calm_ms is None else self._calm_ms
        return min(self.now_ms, until) * RECORDS_PER_S // 1000

    def delete_coordinator_node(self) -> None:
        """An operator's mistake."""
        self.administer(Delete(paths.COORDINATOR))

    def calm(self) -> None:
        """Everything is mended, everybody runs, and nothing is produced any more."""
        self._calm_ms = self.now_ms
        self.auditor.on_start = None
        self.network.cut.clear()
        for connection in self.network.connections:
            connection.to_broker.blocked = connection.to_consumer.blocked = False
        self.network.flow_all()
        for broker in self.brokers:
            broker.go_on()
            broker.link.heal()
            if broker.machine.state is State.STOPPED:
                broker.crash(silently=False)
            if not broker.alive:
                broker.start()
        for consumer in self.consumers:
            consumer.resume()
            if not consumer.wanted:
                consumer.wanted = True
                consumer.crash(silently=False)
            if not consumer.alive:
                consumer.start()

    def produce_for(self, ms: int) -> None:
        """A few more records, behind `calm`."""
        self._calm_ms = self.now_ms + ms
