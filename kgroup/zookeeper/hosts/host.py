"""One broker's coordinator on the event loop: its connections, its timer, its session with ZooKeeper."""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from kgroup.broker.listener import Listener
from kgroup.broker.turns import Turns
from kgroup.errors import DecodeError
from kgroup.runtime.clock import Clock
from kgroup.runtime.complaints import Complaints
from kgroup.zookeeper import events
from kgroup.zookeeper.coordinator.config import LegacyConfig
from kgroup.zookeeper.coordinator.machine import LegacyCoordinator
from kgroup.zookeeper.hosts.links import MakeLink
from kgroup.zookeeper.wire.codec import Frames, Unencodable, Wire

log = logging.getLogger(__name__)

LEVELS = {
    events.Level.INFO: logging.INFO,
    events.Level.WARNING: logging.WARNING,
    events.Level.ERROR: logging.ERROR,
}
AT_ONCE = 1000
"""How many timers fire before the event loop gets another turn."""
GOODBYE_S = 3.0
"""How long the last writes of a broker that shuts down may take."""


class LegacyHost:
    """Executes the machine's effects in order, and reports events to it."""

    def __init__(
        self, broker_id: int, config: LegacyConfig, clock: Clock, complaints: Complaints, make_link: MakeLink
    ) -> None:
        self.broker_id = broker_id
        self.config = config
        self.wire = Wire(header=config.header, commit=config.commit)
        self.machine = LegacyCoordinator(config, broker_id)
        self._clock = clock
        self._complaints = complaints
        self._link = make_link(self.step)
        self._loop = asyncio.get_running_loop()
        self._turns = Turns()
        self._connections: dict[int, LegacyConnection] = {}
        self._opened = 0
        self._calls: set[int] = set()
        self._quiet = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._listener: Listener | None = None
        self._waking = self._stopped = False

    def listen(self, host: str, port: int) -> tuple[str, int]:
        """Listen for consumers (port 0: any free one); return the address. OSError if it cannot be used."""
        self._listener = Listener(host, port, lambda: LegacyConnection(self), self._complaints)
        return self._listener.address

    def start(self) -> None:
        """Open a session and start the election."""
        self._link.open()

    def shut_down(self) -> None:
        """Resign if this broker coordinates, and close all connections."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        self.step(events.Shutdown())

    async def stop(self) -> None:
        """Wait after `shut_down` for the last writes, which other brokers may need, and end."""
        if self._calls:
            self._quiet.clear()
            try:
                await asyncio.wait_for(self._quiet.wait(), GOODBYE_S)
            except TimeoutError:
                log.error("broker %d: ZooKeeper has not confirmed the last writes", self.broker_id)
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
        self._link.close()

    def opened(self, connection: LegacyConnection) -> None:
        """Register a consumer's new connection."""
        self._opened += 1
        connection.number = self._opened
        self._connections[connection.number] = connection
        self.step(events.Opened(connection.number))

    def lost(self, connection: LegacyConnection) -> None:
        """Note that a connection has ended without the machine's request."""
        if self._connections.pop(connection.number, None) is not None:
            self.step(events.Closed(connection.number))

    def step(self, event: events.CoordinatorEvent) -> None:
        """Pass the event to the machine, and do what it asks for."""
        if self._stopped:
            return
        if isinstance(event, events.ZkDone):
            self._calls.discard(event.call)
        self._carry_out(self.machine.step(event, self._clock.now_ms()))
        if not self._calls:
            self._quiet.set()
        self._arm()

    def _carry_out(self, effects: list[events.CoordinatorEffect]) -> None:
        for effect in effects:
            match effect:
                case events.Send():
                    self._send(effect)
                case events.Close(conn):
                    connection = self._connections.pop(conn, None)
                    if connection is not None:
                        connection.close()
                case events.Zk():
                    self._calls.add(effect.call)
                    self._link.call(effect)
                case events.Log(level, text):
                    log.log(LEVELS[level], "%s", text)

    def _send(self, send: events.Send) -> None:
        connection = self._connections.get(send.conn)
        if connection is None:
            return
        try:
            frame = self.wire.encode(send.message, send.correlation)
        except Unencodable as error:
            self._loop.call_soon(self.step, events.Malformed(send.conn, error.message))
            return
        if connection.send(frame) > self.config.max_outbound_bytes:
            log.warning("connection %d reads too slowly, and is closed", send.conn)
            del self._connections[send.conn]
            connection.abort()
            self._loop.call_soon(self.step, events.Closed(send.conn))

    def _arm(self) -> None:
        """Set the one timer to the machine's next deadline."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = None if self._waking or self._stopped else self.machine.next_wake_ms()
        if due is not None:
            delay_ms = max(due - self._clock.now_ms(), 0)
            self._timer = self._loop.call_later(delay_ms / 1000, self._wake)

    def _wake(self) -> None:
        """Do what is due now, after the input that has arrived.

        A loop that was blocked finds deadlines and unread answers at once: an answer that arrived in time
        must not count as late.
        """
        self._timer = None
        self._waking = True
        self._turns.after_unread(partial(self._keep_deadlines, self._clock.now_ms()))

    def _keep_deadlines(self, due_ms: int) -> None:
        self._waking = False
        for _ in range(AT_ONCE):
            due = None if self._stopped else self.machine.next_wake_ms()
            if due is None or due > due_ms:
                break
            self._carry_out(self.machine.wake(due_ms))
        self._arm()


PARTING_S = 5.0
"""How long a closed connection may take to send what is left."""


class LegacyConnection(asyncio.Protocol):
    """A connection; `number` is the machine's name for it, never reused; once closed, it reports nothing."""

    def __init__(self, host: LegacyHost) -> None:
        self.number = 0
        self._host = host
        self._frames = Frames(host.config.max_frame_bytes)
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._host.opened(self)

    def data_received(self, data: bytes) -> None:
        try:
            for payload in self._frames.feed(data):
                if self._transport is None:
                    return
                message, correlation = self._host.wire.from_consumer(payload)
                self._host.step(events.Received(self.number, message, correlation))
        except DecodeError as error:
            self._host.step(events.Malformed(self.number, error.message))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._transport is not None:
            self._transport = None
            self._host.lost(self)

    def send(self, frame: bytes) -> int:
        """Send a frame; return how many bytes are still unsent."""
        if self._transport is None or self._transport.is_closing():
            return 0
        self._transport.write(frame)
        return self._transport.get_write_buffer_size()

    def close(self) -> None:
        """End it after what was sent; abort it if the peer does not read that."""
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.close()
            if transport.get_write_buffer_size():
                asyncio.get_running_loop().call_later(PARTING_S, transport.abort)

    def abort(self) -> None:
        """End it at once."""
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.abort()
