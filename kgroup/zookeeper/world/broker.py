"""A broker: a coordinator's host, with its connections and its ZooKeeper client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kgroup.errors import DecodeError
from kgroup.zookeeper.coordinator.events import (
    Close,
    Closed,
    Effect,
    Event,
    Malformed,
    Opened,
    Received,
    Send,
    Shutdown,
    Zk,
)
from kgroup.zookeeper.coordinator.machine import LegacyCoordinator
from kgroup.zookeeper.world.network import Connection
from kgroup.zookeeper.world.process import Process
from kgroup.zookeeper.world.zklink import ZkLink

if TYPE_CHECKING:
    from kgroup.zookeeper.world.world import World


class BrokerProcess(Process):
    """One broker through all its lives, each with a new machine."""

    def __init__(self, world: World, broker_id: int) -> None:
        super().__init__(f"broker {broker_id}", world.schedule)
        self.world = world
        self.id = broker_id
        self.machine = LegacyCoordinator(world.config, broker_id)
        self.link = ZkLink(world.schedule, world.chance, world.tree, self, world.config.zk_session_ms)
        self.connections: dict[int, Connection] = {}

    def next_wake_ms(self) -> int | None:
        return self.machine.next_wake_ms()

    def start(self) -> None:
        """A new machine, and a new session."""
        self.begin()
        self.machine = LegacyCoordinator(self.world.config, self.id)
        self.connections.clear()
        self.link.open()

    def crash(self, *, silently: bool) -> None:
        """The process is killed; or the whole machine, and nobody is told that its connections are gone."""
        if not self.alive:
            return
        self.die()
        for connection in list(self.connections.values()):
            if silently:
                self.world.network.silence(connection)
            else:
                self.world.network.close_at_broker(connection)
        self.connections.clear()
        self.link.die()

    def shut_down(self) -> None:
        """The broker goes down in order, and its host carries out what that asks for."""
        if self.running:
            self.step(Shutdown())
            life = self.life
            self.schedule.after(50, lambda: self._down(life))

    def stand_still(self) -> None:
        """SIGSTOP, or a collection of garbage."""
        if self.running:
            self.pause()
            self.link.silent()

    def go_on(self) -> None:
        """See `stand_still`."""
        if self.paused:
            self.resume()
            self.link.resumed()

    def opened(self, connection: Connection) -> None:
        self.connections[connection.number] = connection
        self.step(Opened(connection.number))

    def lost(self, connection: Connection) -> None:
        if self.connections.pop(connection.number, None) is not None:
            self.step(Closed(connection.number))

    def took(self, connection: Connection, data: bytes) -> None:
        """Bytes have come."""
        try:
            for payload in connection.to_broker.frames.feed(data):
                message, correlation = self.world.wire.from_consumer(payload)
                self.step(Received(connection.number, message, correlation))
        except DecodeError as error:
            self.step(Malformed(connection.number, error.message))

    def wake(self) -> None:
        self._carry_out(None, self.machine.wake(self.schedule.now_ms))

    def step(self, event: Event) -> None:
        """Tell the machine, and do what it asks for."""
        self._carry_out(event, self.machine.step(event, self.schedule.now_ms))

    def _carry_out(self, event: Event | None, effects: list[Effect]) -> None:
        self.world.observer.stepped(self, event, effects)
        for effect in effects:
            match effect:
                case Send(conn, message, correlation):
                    connection = self.connections.get(conn)
                    if connection is not None:
                        data = self.world.wire.encode(message, correlation)
                        self.world.network.to_consumer(connection, data)
                case Close(conn):
                    connection = self.connections.pop(conn, None)
                    if connection is not None:
                        self.world.network.close_at_broker(connection)
                case Zk():
                    self.link.call(effect)

    def _down(self, life: int) -> None:
        if life == self.life and self.alive:
            self.link.close()
            self.die()
