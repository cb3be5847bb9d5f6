"""What must hold after every event (era 12); each name begins with the number of its rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kgroup.zookeeper.coordinator import paths
from kgroup.zookeeper.coordinator.machine import LegacyCoordinator
from kgroup.zookeeper.coordinator.rebalancers import consumer_of
from kgroup.zookeeper.events import CoordinatorEffect, CoordinatorEvent, Received, Send
from kgroup.zookeeper.store.operations import Create, Failure, Read, Result, SetData, Write
from kgroup.zookeeper.wire.messages import (
    RegisterConsumerRequest,
    RegisterConsumerResponse,
    StartFetcherRequest,
    StartFetcherResponse,
    StopFetcherRequest,
    StopFetcherResponse,
)
from kgroup.zookeeper.world.world import Observer

if TYPE_CHECKING:
    from kgroup.zookeeper.world.world import BrokerProcess, World

Said = tuple[int, CoordinatorEvent | None, list[CoordinatorEffect]]
Conn = tuple[int, int, int]
"""A broker, which of its lives, and a connection to it."""


class Violation(AssertionError):
    """What ends a run: an invariant does not hold; `name` begins with its number in the rules."""

    def __init__(self, name: str, detail: str) -> None:
        super().__init__(f"{name}: {detail}")
        self.name, self.detail = name, detail


@dataclass(slots=True)
class Told:
    """What a coordinator asked one consumer, and what it was answered."""

    member: tuple[str, str] = ("", "")
    stops: int = 0
    stopped: int = 0
    starts: int = 0
    started: int = 0
    stopped_last: bool = False


class Auditor(Observer):
    """Looks at every effect, every write and every consumer; raises `Violation`."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._leader = 0
        self._offsets: dict[str, int] = {}
        self._told: dict[Conn, Told] = {}
        self._conn_of: dict[tuple[int, int, str, str], Told] = {}
        self.reset: set[str] = set()
        self.said: dict[int, tuple[int, list[Said]]] = {}
        self.on_start: Callable[[BrokerProcess, int], None] | None = None

    def after_event(self) -> None:
        """Whatever has just happened, these hold."""
        self._one_delivers()
        for broker in self._world.brokers:
            if broker.alive and broker.machine.term is not None:
                self._one_attempt(broker.machine)
                self._watchers_end_once(broker.machine)

    def asked(
        self,
        broker: BrokerProcess,
        session: int,
        ops: Sequence[Read] | Sequence[Write],
        results: Sequence[Result],
    ) -> None:
        """ZooKeeper has carried out a broker's call."""
        if isinstance(ops[0], Read) or any(isinstance(result, Failure) for result in results):
            return
        for op in ops:
            if op.path == paths.COORDINATOR and isinstance(op, Create):
                self._leader = session
            elif op.path.startswith(paths.CONSUMERS + "/") and isinstance(op, Write):
                self._written(broker, session, op)

    def stepped(
        self, broker: BrokerProcess, event: CoordinatorEvent | None, effects: list[CoordinatorEffect]
    ) -> None:
        """A coordinator was told something, and answered."""
        if self.said.get(broker.id, (0,))[0] != broker.life:
            self.said[broker.id] = broker.life, []
        self.said[broker.id][1].append((self._world.now_ms, event, effects))
        request = None
        if isinstance(event, Received):
            told = self._of(broker, event.conn)
            match event.message:
                case StopFetcherResponse():
                    told.stopped += 1
                case StartFetcherResponse():
                    told.started += 1
                case RegisterConsumerRequest():
                    request = event.message
        for effect in effects:
            if isinstance(effect, Send):
                self._sent(broker, effect, request)

    def same_again(self, broker: BrokerProcess) -> None:
        """Compare the effects of a second machine that gets the same events (era 12.8)."""
        again = LegacyCoordinator(self._world.config, broker.id)
        for now_ms, event, effects in self.said[broker.id][1]:
            did = again.wake(now_ms) if event is None else again.step(event, now_ms)
            if did != effects:
                raise Violation("12.8 same events, same effects", f"{broker.name} at {now_ms}: {event}")

    def _of(self, broker: BrokerProcess, conn: int) -> Told:
        return self._told.setdefault((broker.id, broker.life, conn), Told())

    def _sent(self, broker: BrokerProcess, effect: Send, request: RegisterConsumerRequest | None) -> None:
        told = self._of(broker, effect.conn)
        match effect.message:
            case RegisterConsumerResponse(0) if request is not None:
                told.member = request.group_id, request.consumer_id
                self._conn_of[broker.id, broker.life, *told.member] = told
            case StopFetcherRequest():
                told.stops += 1
                told.stopped_last = True
            case StartFetcherRequest():
                if not told.stopped_last or told.stopped != told.stops:
                    raise Violation("12.6 Stop before Start", f"{told.member} is started, {told}")
                told.starts += 1
                told.stopped_last = False
                if self.on_start is not None:
                    self.on_start(broker, effect.conn)

    def _written(self, broker: BrokerProcess, session: int, op: Write) -> None:
        if session != self._leader and isinstance(op, Create | SetData):
            detail = f"{broker.name} writes {op.path} and is not the coordinator"
            raise Violation("12.2 one machine writes", detail)
        parts = op.path.split("/")
        if not isinstance(op, Create | SetData) or len(parts) != 6:
            return
        if parts[3] == "offsets":
            self._offset_written(op)
        elif parts[3] == "owners":
            told = self._conn_of.get((broker.id, broker.life, parts[2], consumer_of(op.data.decode())))
            if told is None or not told.starts or told.starts != told.started:
                raise Violation("12.6 owners behind all Starts", f"{op.path} = {op.data!r}: {told}")

    def _offset_written(self, op: Create | SetData) -> None:
        offset = int(op.data)
        before = self._offsets.get(op.path, 0)
        if offset < before and op.path not in self.reset:
            raise Violation("12.4 offsets never go back", f"{op.path} from {before} to {offset}")
        self._offsets[op.path] = offset

    def _one_delivers(self) -> None:
        now_ms = self._world.now_ms
        delivering: dict[tuple[str, str, str], str] = {}
        for consumer in self._world.consumers:
            if not consumer.running:
                continue
            for partition in consumer.machine.positions:
                if not consumer.machine.may_deliver(partition, now_ms):
                    continue
                key = (consumer.config.group_id, *partition)
                other = delivering.setdefault(key, consumer.name)
                if other is not consumer.name:
                    raise Violation("12.1 one consumer delivers", f"{key}: {other} and {consumer.name}")

    def _one_attempt(self, machine: LegacyCoordinator) -> None:
        assert machine.term is not None
        runs = [rebalancer.run for rebalancer in machine.term.rebalancers.all if rebalancer.run is not None]
        of_groups = [group.run for group in machine.term.groups.values() if group.run is not None]
        if len(runs) != len(of_groups) or any(run not in runs for run in of_groups):
            raise Violation("12.5 one attempt a group", f"{len(runs)} runs, {len(of_groups)} groups")

    def _watchers_end_once(self, machine: LegacyCoordinator) -> None:
        assert machine.term is not None
        purgatory = machine.term.purgatory
        pending = sum(
            not watcher.settled
            for member in machine.term.members.values()
            for waiting in member.unanswered.values()
            for watcher in waiting
        )
        if purgatory.started != pending + sum(purgatory.ended.values()):
            detail = f"{purgatory.started} begun, {pending} pending, ended {purgatory.ended}"
            raise Violation("12.7 every watcher ends once", detail)
