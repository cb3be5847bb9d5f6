"""A consumer of the ZooKeeper era on a socket: a blocking loop that carries out what its machine asks for."""

import select
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from kgroup.admin.read.records import Chunk, Records
from kgroup.domain import TopicPartition
from kgroup.errors import DecodeError, KgroupError
from kgroup.members.effects import Assigned, Left, Lost, Revoke
from kgroup.zookeeper import events
from kgroup.zookeeper.consumer.machine import ConsumerConfig as ConsumerConfig
from kgroup.zookeeper.consumer.machine import LegacyConsumer as LegacyConsumer
from kgroup.zookeeper.consumer.machine import Phase
from kgroup.zookeeper.wire.codec import Frames, Wire
from kgroup.zookeeper.wire.messages import Broker as Broker
from kgroup.zookeeper.wire.messages import Partition

POLL_S = 0.05
READ_EVERY_MS = 250
CHUNK = 64 * 1024


@dataclass(frozen=True, slots=True)
class Read:
    """Records were delivered to the application: how many, and the next position."""

    partition: TopicPartition
    records: int
    position: int


Happened: TypeAlias = Assigned | Revoke | Lost | Left | Read


class LegacyDriver:
    """One consumer and its connection.

    `stop()` says whether it should leave; `on_event` receives partitions and records; `on_log` receives what
    an operator should know, repeated only after another message.
    """

    def __init__(
        self,
        consumer: LegacyConsumer,
        records: Records,
        *,
        clock_ms: Callable[[], int],
        stop: Callable[[], bool],
        on_event: Callable[[Happened], None] = lambda event: None,
        on_log: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.joined = False
        self._consumer = consumer
        self._records = records
        self._clock_ms = clock_ms
        self._stop = stop
        self._on_event = on_event
        self._on_log = on_log
        self._wire = Wire()
        self._socket: socket.socket | None = None
        self._conn = 0
        self._connecting = False
        self._frames = Frames()
        self._outbound = b""
        self._held: tuple[TopicPartition, ...] = ()
        self._pending_starts: set[TopicPartition] = set()
        self._read_ms = 0
        self._said: set[str] = set()

    def run(self, topic_count: str) -> None:
        """Consume until `stop` says so, then leave; look for the coordinator until then."""
        leaving = False
        try:
            self._carry_out(self._consumer.create_message_streams(topic_count, self._clock_ms()))
            while self._consumer.phase is not Phase.LEFT:
                if not leaving and self._stop():
                    leaving = True
                    self._step(events.Leave())
                    continue
                self._turn()
                due = self._consumer.next_wake_ms()
                if due is not None and due <= self._clock_ms():
                    self._carry_out(self._consumer.wake(self._clock_ms()))
                if not leaving and self._clock_ms() >= self._read_ms:
                    self._read_ms = self._clock_ms() + READ_EVERY_MS
                    self._read()
        finally:
            self._disconnect()
        self._on_event(Left())

    def _step(self, event: events.ConsumerEvent) -> None:
        self._carry_out(self._consumer.step(event, self._clock_ms()))

    def _carry_out(self, effects: list[events.ConsumerEffect]) -> None:
        for effect in effects:
            match effect:
                case events.Connect():
                    self._connect(effect)
                case events.Send(_, message, correlation):
                    self._outbound += self._wire.encode(message, correlation)
                    self._flush()
                case events.Close():
                    self._disconnect()
                case events.Start(fetches):
                    self.joined = True
                    self._said.clear()
                    self._held = tuple(sorted(_named(fetch.partition) for fetch in fetches))
                    self._pending_starts = {_named(f.partition) for f in fetches if f.offset is None}
                    self._on_event(Assigned(self._held))
                case events.Stop():
                    self._give_up(Revoke(self._held))
                    self._held = ()
                case events.Pause():
                    self._give_up(Lost(self._held))
                case events.Resume():
                    self._on_event(Assigned(self._held))
                case events.Log(level, text) if level is not events.Level.INFO:
                    self._log(text)

    def _give_up(self, event: Revoke | Lost) -> None:
        if event.partitions:
            self._on_event(event)

    # The connection

    def _connect(self, asked: events.Connect) -> None:
        self._disconnect()
        self._conn, self._frames, self._outbound = asked.conn, Frames(), b""
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(
                asked.host, asked.port, type=socket.SOCK_STREAM
            )[0]
            self._socket = socket.socket(family, kind, protocol)
            self._socket.setblocking(False)
            self._socket.connect_ex(address)
        except OSError:
            self._disconnect()
            self._step(events.NotConnected(asked.conn))
            return
        self._connecting = True

    def _disconnect(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket, self._connecting = None, False

    def _turn(self) -> None:
        """Wait a moment for data to arrive, or to be sent."""
        if self._socket is None:
            select.select((), (), (), POLL_S)
            return
        writers = [self._socket] if self._connecting or self._outbound else []
        readable, writable, _ = select.select([self._socket], writers, (), POLL_S)
        if self._connecting:
            if writable:
                self._connecting = False
                if self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                    self._disconnect()
                    self._step(events.NotConnected(self._conn))
                else:
                    self._step(events.Connected(self._conn))
        else:
            self._flush()
            if readable:
                self._receive()

    def _flush(self) -> None:
        if self._socket is None or self._connecting or not self._outbound:
            return
        try:
            self._outbound = self._outbound[self._socket.send(self._outbound) :]
        except BlockingIOError:
            pass
        except OSError:
            # Earlier bytes of the other side are still to be read; then its end is.
            self._outbound = b""

    def _receive(self) -> None:
        assert self._socket is not None
        conn = self._conn
        try:
            data = self._socket.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._disconnect()
            self._step(events.Closed(conn))
            return
        try:
            for payload in self._frames.feed(data):
                message, correlation = self._wire.from_coordinator(payload, self._consumer.awaiting)
                self._step(events.Received(conn, message, correlation))
                if self._socket is None or self._conn != conn:
                    return
        except DecodeError as error:
            self._step(events.Malformed(conn, error.message))

    # Records

    def _read(self) -> None:
        """Poll each partition once; records that arrive after the lease are not delivered."""
        self._begin()
        asked = {_named(p): at for p, at in self._consumer.positions.items() if at is not None}
        if not asked or not self._may_deliver(next(iter(asked))):
            return
        for partition, chunk in self._records.read(asked).items():
            own = Partition(partition.topic, str(partition.partition))
            if isinstance(chunk, KgroupError):
                self._log(f"{partition} cannot be read: {chunk.message}")
            elif chunk.position is None:
                self._log(f"{partition}: the log does not have position {asked[partition]}")
                self._step(events.OutOfRange(own))
            else:
                self._deliver(partition, own, chunk)

    def _begin(self) -> None:
        """Apply the reset word to partitions without a position."""
        if not self._pending_starts:
            return
        smallest = self._consumer.config.reset == "smallest"
        for partition, start in self._records.start(sorted(self._pending_starts), smallest).items():
            own = Partition(partition.topic, str(partition.partition))
            if isinstance(start, KgroupError):
                self._log(f"{partition}: the start of its log is unknown: {start.message}")
            elif own in self._consumer.positions:
                self._consumer.delivered(own, start)
                self._pending_starts.discard(partition)
        held = {_named(p) for p in self._consumer.positions}
        self._pending_starts &= held

    def _deliver(self, partition: TopicPartition, own: Partition, chunk: Chunk) -> None:
        """Deliver records one by one, each only while the lease is good (era 9.6)."""
        count = 0
        for offset in chunk.offsets:
            if not self._may_deliver(partition):
                break
            self._consumer.delivered(own, offset + 1)
            count += 1
        if count == len(chunk.offsets) and chunk.position is not None and self._may_deliver(partition):
            self._consumer.delivered(own, chunk.position)
        position = self._consumer.positions.get(own)
        if count and position is not None:
            self._on_event(Read(partition, count, position))

    def _may_deliver(self, partition: TopicPartition) -> bool:
        own = Partition(partition.topic, str(partition.partition))
        return self._consumer.may_deliver(own, self._clock_ms())

    def _log(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self._on_log(text)


def _named(partition: Partition) -> TopicPartition:
    """Return Kafka's partition; those of 0.7, named `broker-number`, exist in no current cluster."""
    if not partition.name.isdecimal():
        raise KgroupError(f"{partition} is a partition of Kafka 0.7: its records cannot be read")
    return TopicPartition(partition.topic, int(partition.name))
