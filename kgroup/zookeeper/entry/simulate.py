"""The same scenarios on a group of the ZooKeeper era: an elected coordinator that pings, stops and starts."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

from kgroup.domain import TopicPartition
from kgroup.simulation.play.acting import Acting
from kgroup.simulation.play.tally import Tally
from kgroup.zookeeper.consumer.machine import ConsumerConfig
from kgroup.zookeeper.coordinator.config import LegacyConfig
from kgroup.zookeeper.coordinator.election import State
from kgroup.zookeeper.events import (
    ConsumerEffect,
    ConsumerEvent,
    CoordinatorEffect,
    CoordinatorEvent,
    Received,
    Send,
    Start,
)
from kgroup.zookeeper.wire.messages import Partition, StopFetcherRequest
from kgroup.zookeeper.world.world import BrokerProcess, ConsumerProcess, Observer, World, unrest

if TYPE_CHECKING:
    from kgroup.simulation.play.planning import Size

GROUP, TOPIC = "group", "topic"
BROKERS = 3


class Ledger(Observer):
    """Counts rebalances and messages."""

    def __init__(self) -> None:
        self.rebalances = 0
        self.messages = 0

    def stepped(
        self, broker: BrokerProcess, event: CoordinatorEvent | None, effects: list[CoordinatorEffect]
    ) -> None:
        sent = [effect.message for effect in effects if isinstance(effect, Send)]
        self.messages += len(sent) + isinstance(event, Received)
        self.rebalances += any(isinstance(message, StopFetcherRequest) for message in sent)


class PlanWorld(World):
    """A world whose partitions all grow by a fixed number of records per second."""

    def __init__(self, rng: Random, config: LegacyConfig, records_per_s: int) -> None:
        super().__init__(rng, config, BROKERS)
        self.observer = self.ledger = Ledger()
        self._records_per_s = records_per_s

    def end_of(self, partition: Partition | TopicPartition) -> int:
        """Return the number of records in the partition now."""
        return self.now_ms * self._records_per_s // 1000


class PlanConsumer(ConsumerProcess):
    """A consumer that has always read to the end; `holding` is what it may deliver."""

    def __init__(
        self,
        world: PlanWorld,
        config: ConsumerConfig,
        topic_count: str,
        on_change: Callable[[PlanConsumer], None],
    ) -> None:
        super().__init__(world, config, topic_count)
        self.wanted = False
        self.holding: frozenset[TopicPartition] = frozenset()
        self.positions: dict[TopicPartition, int] = {}
        self.on_position: Callable[[PlanConsumer, TopicPartition, int], None] = lambda *_: None
        self._on_change = on_change

    def start(self) -> None:
        """Run; a consumer that is still leaving runs again as soon as it has left."""
        self.wanted = True
        if not self.alive:
            super().start()

    def stop(self, for_good: bool = False) -> None:
        """Leave the group, then end."""
        if self.alive:
            self.leave()
        self.wanted = False

    def kill(self) -> None:
        """End with the machine it runs on, without notice."""
        self._catch_up()
        self.wanted = False
        self.crash(silently=True)

    def die(self) -> None:
        super().die()
        self._note_holding()
        if self.wanted:
            self.schedule.after(0, self.start)

    def step(self, event: ConsumerEvent) -> None:
        self._catch_up()
        super().step(event)

    def wake(self) -> None:
        self._catch_up()
        super().wake()

    def _carry_out(self, effects: list[ConsumerEffect]) -> None:
        super()._carry_out(effects)
        for effect in effects:
            if isinstance(effect, Start):
                for fetch in effect.fetches:
                    self.on_position(self, _named(fetch.partition), fetch.offset or 0)
        self._note_holding()

    def _note_holding(self) -> None:
        now_ms, machine = self.schedule.now_ms, self.machine
        held = [p for p in machine.positions if self.running and machine.may_deliver(p, now_ms)]
        before, self.holding = self.holding, frozenset(map(_named, held))
        if self.holding != before:
            self._on_change(self)
        self.positions = {_named(p): machine.positions[p] or 0 for p in held}

    def _catch_up(self) -> None:
        """Deliver everything there is by now; the next report includes it."""
        for partition, position in list(self.machine.positions.items()):
            if position is not None and self.machine.may_deliver(partition, self.schedule.now_ms):
                self.machine.delivered(partition, max(position, self.world.end_of(partition)))

    def _poll_later(self) -> None:
        """Do nothing: no one reads records between two events."""


class PushStage(Acting[PlanConsumer]):
    """A group of the ZooKeeper era, and what can be done to it."""

    def __init__(self, size: Size, *, seed: int) -> None:
        rng = Random(seed)
        session = size.session_timeout_ms
        config = LegacyConfig(
            min_session_ms=min(1_000, session - 1),
            max_session_ms=max(30_000, session),
            commit_interval_ms=size.commit_interval_ms,
        )
        self.world = PlanWorld(rng, config, size.records_per_s)
        super().__init__(self.world.schedule, rng, size.members)
        self._size = size
        self.tally = Tally(self.world, size.partitions)
        self.world.set_topic(TOPIC, size.partitions)
        for broker in self.world.brokers:
            broker.start()

    @property
    def messages(self) -> int:
        """Requests and answers between brokers and consumers so far."""
        return self.world.ledger.messages

    def epoch(self) -> int:
        """Return the number of rebalances: attempts that stopped the group."""
        return self.world.ledger.rebalances

    @property
    def assignments(self) -> int:
        """The number of assignments: each attempt assigns again."""
        return self.epoch()

    def _add(self) -> PlanConsumer:
        config = ConsumerConfig(
            group_id=GROUP,
            consumer_id=f"member-{len(self.processes):05}",
            brokers=self.world.addresses,
            session_timeout_ms=self._size.session_timeout_ms,
        )
        process = PlanConsumer(self.world, config, json.dumps({TOPIC: 1}), self.tally.owners_changed)
        process.on_position = self.tally.position_known
        self.world.consumers.append(process)
        self.processes.append(process)
        return process

    def _at_rest(self) -> bool:
        processes = self._wanted()
        if self._starting or any(not process.running for process in processes):
            return False
        return any(process.alive for process in self.processes) and unrest(self.world) is None

    def _fail_over(self, down_ms: int) -> None:
        for broker in self.world.brokers:
            if broker.alive and broker.machine.state is State.ACTIVE:
                broker.crash(silently=False)
                self.world.after(down_ms, broker.start)


def _named(partition: Partition) -> TopicPartition:
    return TopicPartition(partition.topic, int(partition.name))
