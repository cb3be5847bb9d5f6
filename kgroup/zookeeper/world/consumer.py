"""A consumer's process: its machine, its connection, and an application that is handed records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kgroup.errors import DecodeError
from kgroup.zookeeper.consumer.events import (
    Connect,
    Connected,
    ConsumerConfig,
    Effect,
    Event,
    Leave,
    NotConnected,
    Received,
    Send,
    Start,
)
from kgroup.zookeeper.consumer.machine import LegacyConsumer, Phase
from kgroup.zookeeper.coordinator.events import Close, Closed, Malformed
from kgroup.zookeeper.world.network import Connection
from kgroup.zookeeper.world.process import Process

if TYPE_CHECKING:
    from kgroup.zookeeper.world.world import World

POLL_MS = 250


class ConsumerProcess(Process):
    """One consumer through all its lives, each with a new machine."""

    def __init__(self, world: World, config: ConsumerConfig, topic_count: str) -> None:
        super().__init__(f"{config.group_id}/{config.consumer_id}", world.schedule)
        self.world = world
        self.config = config
        self.topic_count = topic_count
        self.machine = LegacyConsumer(config)
        self.connection: Connection | None = None
        self.wanted = True

    def next_wake_ms(self) -> int | None:
        return self.machine.next_wake_ms()

    def start(self) -> None:
        """A new machine."""
        self.begin()
        self.machine = LegacyConsumer(self.config)
        self.connection = None
        self._carry_out(self.machine.create_message_streams(self.topic_count, self.schedule.now_ms))
        self.arm()
        self._poll_later()

    def crash(self, *, silently: bool) -> None:
        """The process is killed, or its whole machine, and nobody is told."""
        if not self.alive:
            return
        self.die()
        connection, self.connection = self.connection, None
        if connection is not None and silently:
            self.world.network.silence(connection)
        elif connection is not None:
            self.world.network.close_at_consumer(connection)

    def leave(self) -> None:
        """The application is done; it does not come back by itself."""
        self.wanted = False
        self.post(lambda: self.step(Leave()))

    def connected(self, connection: Connection) -> None:
        self.step(Connected(connection.consumer_conn))

    def not_connected(self, connection: Connection) -> None:
        self.step(NotConnected(connection.consumer_conn))

    def lost(self, connection: Connection) -> None:
        self.step(Closed(connection.consumer_conn))

    def took(self, connection: Connection, data: bytes) -> None:
        """Bytes have come; what a frame is depends on what was asked before (era 2.5)."""
        try:
            for payload in connection.to_consumer.frames.feed(data):
                message, correlation = self.world.wire.from_coordinator(payload, self.machine.awaiting)
                self.step(Received(connection.consumer_conn, message, correlation))
                if connection is not self.connection:
                    break
        except DecodeError as error:
            self.step(Malformed(connection.consumer_conn, error.message))

    def wake(self) -> None:
        self._carry_out(self.machine.wake(self.schedule.now_ms))

    def step(self, event: Event) -> None:
        """Tell the machine, and do what it asks for."""
        self._carry_out(self.machine.step(event, self.schedule.now_ms))

    def _carry_out(self, effects: list[Effect]) -> None:
        network = self.world.network
        for effect in effects:
            match effect:
                case Connect(conn, host, _):
                    network.connect(self, conn, self.world.broker_at(host))
                case Send(_, message, correlation) if self.connection is not None:
                    data = self.world.wire.encode(message, correlation)
                    network.to_broker(self.connection, data)
                case Close() if self.connection is not None:
                    network.close_at_consumer(self.connection)
                    self.connection = None
                case Start(fetches):
                    partitions = [f.partition for f in fetches if f.offset is None]
                    for partition in partitions:
                        smallest = self.config.reset == "smallest"
                        self.machine.delivered(partition, 0 if smallest else self.world.end_of(partition))
        if self.machine.phase is Phase.LEFT and self.alive:
            self.die()

    def awake(self) -> None:
        """The application's thread may be the first to resume: what it is handed then counts (era 9.6)."""
        self._deliver()
        self.world.observer.after_event()

    def _poll_later(self) -> None:
        life = self.life
        self.schedule.after(POLL_MS, lambda: self._poll() if life == self.life else None)

    def _poll(self) -> None:
        self._poll_later()
        if not self.paused:
            self._deliver()

    def _deliver(self) -> None:
        """Hand the application what there is, asking before each record whether that is allowed (era 9.6)."""
        now_ms = self.schedule.now_ms
        for partition, position in list(self.machine.positions.items()):
            end = self.world.end_of(partition)
            if position is not None and position < end and self.machine.may_deliver(partition, now_ms):
                self.machine.delivered(partition, min(end, position + 60))
