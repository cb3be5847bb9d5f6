"""Connections between consumers and brokers: bytes in order, late, in pieces, held up, or cut off."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

from kgroup.simulation.schedule import Schedule
from kgroup.zookeeper.wire.primitives import Frames

if TYPE_CHECKING:
    from kgroup.zookeeper.world.broker import BrokerProcess
    from kgroup.zookeeper.world.consumer import ConsumerProcess

LEAST_DELAY_MS, MOST_DELAY_MS = 1, 20


@dataclass(slots=True)
class Pipe:
    """One direction: pieces that are under way, None for the end; `blocked` while nothing gets through."""

    queue: deque[tuple[int, bytes | None]] = field(default_factory=deque)
    frames: Frames = field(default_factory=Frames)
    last_ms: int = 0
    blocked: bool = False

    @property
    def pending(self) -> int:
        """Bytes that the other side has not taken."""
        return sum(len(piece) for _, piece in self.queue if piece is not None)


@dataclass(slots=True, eq=False)
class Connection:
    """A consumer's connection to a broker; each side has its own view of whether it is open."""

    number: int
    consumer: ConsumerProcess
    consumer_conn: int
    consumer_life: int
    broker: BrokerProcess
    broker_life: int
    to_broker: Pipe = field(default_factory=Pipe)
    to_consumer: Pipe = field(default_factory=Pipe)
    open_at_broker: bool = False
    open_at_consumer: bool = True


class Network:
    """All connections; `cut` are the pairs of consumer and broker between which nothing arrives."""

    def __init__(self, schedule: Schedule, chance: Random, max_outbound: int) -> None:
        self.schedule = schedule
        self.cut: set[tuple[str, str]] = set()
        self.tear_next = 0
        self._chance = chance
        self._max_outbound = max_outbound
        self._made = 0
        self.connections: list[Connection] = []

    def delay(self) -> int:
        return self._chance.randrange(LEAST_DELAY_MS, MOST_DELAY_MS + 1)

    def connect(self, consumer: ConsumerProcess, conn: int, broker: BrokerProcess) -> None:
        """Try to connect: a dead broker refuses, one that stands still or is cut off does not answer yet."""
        self._made += 1
        made = Connection(self._made, consumer, conn, consumer.life, broker, broker.life)
        consumer.connection = made
        self.schedule.after(self.delay(), lambda: self._arrive(made))

    def _arrive(self, made: Connection) -> None:
        if not made.open_at_consumer:
            return
        if self.is_cut(made):
            self.schedule.after(500, lambda: self._arrive(made))
            return
        broker, consumer = made.broker, made.consumer
        if not broker.alive:
            made.open_at_consumer = False
            self._tell(made, lambda: consumer.not_connected(made))
            return
        made.broker_life = broker.life
        made.open_at_broker = True
        self.connections.append(made)
        broker.post(lambda: broker.opened(made))
        self._tell(made, lambda: consumer.connected(made))

    def to_broker(self, connection: Connection, data: bytes) -> None:
        """Bytes from the consumer."""
        if connection.open_at_consumer:
            self._put(connection, connection.to_broker, data)

    def to_consumer(self, connection: Connection, data: bytes) -> None:
        """Bytes from the broker; a consumer that takes too few of them is dropped (3)."""
        if not connection.open_at_broker:
            return
        self._put(connection, connection.to_consumer, data)
        if connection.to_consumer.pending > self._max_outbound:
            self.drop_at_broker(connection)

    def close_at_consumer(self, connection: Connection) -> None:
        """The consumer's side is closed; the broker hears of it behind what was sent."""
        if connection.open_at_consumer:
            connection.open_at_consumer = False
            self._put(connection, connection.to_broker, None)

    def close_at_broker(self, connection: Connection) -> None:
        """The broker's side is closed."""
        if connection.open_at_broker:
            connection.open_at_broker = False
            self._put(connection, connection.to_consumer, None)

    def drop_at_broker(self, connection: Connection) -> None:
        """The broker's side is reset; the consumer hears of it when something gets through to it again."""
        if connection.open_at_broker:
            self.close_at_broker(connection)
            connection.broker.post(lambda: connection.broker.lost(connection))

    def silence(self, connection: Connection) -> None:
        """A machine lost its power: the other side is not told."""
        connection.open_at_broker = connection.open_at_consumer = False

    def is_cut(self, connection: Connection) -> bool:
        return (connection.consumer.name, connection.broker.name) in self.cut

    def flow_all(self) -> None:
        """Something may get through again."""
        for connection in self.connections:
            self._flow(connection)

    def _put(self, connection: Connection, pipe: Pipe, data: bytes | None) -> None:
        now = self.schedule.now_ms
        if data is not None and self.tear_next and len(data) > 1:
            # Half of the frame arrives, the rest when it has been forgotten about (LC-83).
            gap, self.tear_next = self.tear_next, 0
            at = self._chance.randrange(1, len(data))
            self._under_way(connection, pipe, now + self.delay(), data[:at])
            self._under_way(connection, pipe, now + gap, data[at:])
        else:
            self._under_way(connection, pipe, now + self.delay(), data)

    def _under_way(self, connection: Connection, pipe: Pipe, ready_ms: int, data: bytes | None) -> None:
        pipe.last_ms = max(pipe.last_ms, ready_ms)
        pipe.queue.append((pipe.last_ms, data))
        self.schedule.at(pipe.last_ms, lambda: self._flow(connection))

    def _flow(self, connection: Connection) -> None:
        if self.is_cut(connection):
            return
        now = self.schedule.now_ms
        for pipe, deliver in (
            (connection.to_broker, self._to_broker),
            (connection.to_consumer, self._to_consumer),
        ):
            while pipe.queue and pipe.queue[0][0] <= now and not pipe.blocked:
                deliver(connection, pipe.queue.popleft()[1])
        if (
            not connection.open_at_broker
            and not connection.open_at_consumer
            and connection in self.connections
        ):
            self.connections.remove(connection)

    def _to_broker(self, connection: Connection, piece: bytes | None) -> None:
        broker = connection.broker
        if not connection.open_at_broker or broker.life != connection.broker_life:
            return
        if piece is None:
            connection.open_at_broker = False
            broker.post(lambda: broker.lost(connection))
        else:
            broker.post(lambda: broker.took(connection, piece))

    def _to_consumer(self, connection: Connection, piece: bytes | None) -> None:
        consumer = connection.consumer
        if not connection.open_at_consumer:
            return
        if piece is None:
            connection.open_at_consumer = False
            self._tell(connection, lambda: consumer.lost(connection))
        else:
            self._tell(connection, lambda: consumer.took(connection, piece))

    def _tell(self, connection: Connection, action: object) -> None:
        consumer = connection.consumer
        if consumer.life == connection.consumer_life and callable(action):
            consumer.post(action)
