"""The whole simulation: a tree, brokers, consumers and a network, under one clock and one seed."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from kgroup.domain import grouped
from kgroup.errors import DecodeError
from kgroup.simulation.schedule import Schedule
from kgroup.zookeeper import events
from kgroup.zookeeper.consumer.machine import ConsumerConfig, LegacyConsumer, Phase
from kgroup.zookeeper.coordinator import paths
from kgroup.zookeeper.coordinator.config import LegacyConfig
from kgroup.zookeeper.coordinator.election import State
from kgroup.zookeeper.coordinator.machine import LegacyCoordinator
from kgroup.zookeeper.coordinator.rebalancers import consumer_of
from kgroup.zookeeper.coordinator.registries import Stage, parse
from kgroup.zookeeper.store.operations import Change, Create, Failure, Get, Node, Read, Result, SetData, Write
from kgroup.zookeeper.store.tree import Tree
from kgroup.zookeeper.wire.codec import Frames, Wire
from kgroup.zookeeper.wire.messages import Broker, Partition
from kgroup.zookeeper.world.process import Process

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
        """Show the observer everything from now on."""
        self.observer = observer
        self.schedule.after_each = observer.after_event

    def administer(self, *ops: Write) -> bool:
        """Change the tree as by hand, or as a broker changes its topics; return whether it was done."""
        results = self.tree.ask(self._admin, ops, now_ms=self.now_ms)
        return not any(isinstance(result, Failure) for result in results)

    def read(self, path: str) -> Result:
        """Return a node as it is now."""
        return self.tree.ask(self._admin, (Get(path),))[0]

    def set_topic(self, name: str, partitions: int) -> None:
        """Create a topic, or give it more partitions."""
        content = {"version": 1, "partitions": {str(n): [1] for n in range(partitions)}}
        data, path = json.dumps(content).encode(), paths.topic(name)
        known = name in self.topics
        self.topics[name] = partitions
        self.administer(SetData(path, data) if known else Create(path, data))

    def add(self, config: ConsumerConfig, topic_count: str) -> ConsumerProcess:
        """Return a consumer, not started yet."""
        consumer = ConsumerProcess(self, config, topic_count)
        self.consumers.append(consumer)
        return consumer

    def broker_at(self, host: str) -> BrokerProcess:
        return next(broker for broker in self.brokers if f"h{broker.id}" == host)

    def end_of(self, partition: Partition) -> int:
        """Return the number of records in the partition."""
        return self.now_ms * RECORDS_PER_S // 1000

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        self.schedule.after(delay_ms, action)


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
        """Start a new machine, with a new session."""
        self.begin()
        self.machine = LegacyCoordinator(self.world.config, self.id)
        self.connections.clear()
        self.link.open()

    def crash(self, *, silently: bool) -> None:
        """Kill the process, or silently the whole machine: then no peer is notified."""
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
        """Shut the broker down in order; its host executes the effects."""
        if self.running:
            self.step(events.Shutdown())
            life = self.life
            self.schedule.after(50, lambda: self._down(life))

    def stand_still(self) -> None:
        """Pause, as by SIGSTOP or a garbage collection."""
        if self.running:
            self.pause()
            self.link.silent()

    def go_on(self) -> None:
        """Resume after `stand_still`."""
        if self.paused:
            self.resume()
            self.link.resumed()

    def opened(self, connection: Connection) -> None:
        self.connections[connection.number] = connection
        self.step(events.Opened(connection.number))

    def lost(self, connection: Connection) -> None:
        if self.connections.pop(connection.number, None) is not None:
            self.step(events.Closed(connection.number))

    def took(self, connection: Connection, data: bytes) -> None:
        """Pass on received bytes."""
        try:
            for payload in connection.to_broker.frames.feed(data):
                message, correlation = self.world.wire.from_consumer(payload)
                self.step(events.Received(connection.number, message, correlation))
        except DecodeError as error:
            self.step(events.Malformed(connection.number, error.message))

    def wake(self) -> None:
        self._carry_out(None, self.machine.wake(self.schedule.now_ms))

    def step(self, event: events.CoordinatorEvent) -> None:
        """Pass the event to the machine, and do what it asks for."""
        self._carry_out(event, self.machine.step(event, self.schedule.now_ms))

    def _carry_out(
        self, event: events.CoordinatorEvent | None, effects: list[events.CoordinatorEffect]
    ) -> None:
        self.world.observer.stepped(self, event, effects)
        for effect in effects:
            match effect:
                case events.Send(conn, message, correlation):
                    connection = self.connections.get(conn)
                    if connection is not None:
                        data = self.world.wire.encode(message, correlation)
                        self.world.network.to_consumer(connection, data)
                case events.Close(conn):
                    connection = self.connections.pop(conn, None)
                    if connection is not None:
                        self.world.network.close_at_broker(connection)
                case events.Zk():
                    self.link.call(effect)

    def _down(self, life: int) -> None:
        if life == self.life and self.alive:
            self.link.close()
            self.die()


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
        """Start a new machine."""
        self.begin()
        self.machine = LegacyConsumer(self.config)
        self.connection = None
        self._carry_out(self.machine.create_message_streams(self.topic_count, self.schedule.now_ms))
        self.arm()
        self._poll_later()

    def crash(self, *, silently: bool) -> None:
        """Kill the process, or silently its whole machine."""
        if not self.alive:
            return
        self.die()
        connection, self.connection = self.connection, None
        if connection is not None and silently:
            self.world.network.silence(connection)
        elif connection is not None:
            self.world.network.close_at_consumer(connection)

    def leave(self) -> None:
        """Leave: the application is done and does not restart by itself."""
        self.wanted = False
        self.post(lambda: self.step(events.Leave()))

    def connected(self, connection: Connection) -> None:
        self.step(events.Connected(connection.consumer_conn))

    def not_connected(self, connection: Connection) -> None:
        self.step(events.NotConnected(connection.consumer_conn))

    def lost(self, connection: Connection) -> None:
        self.step(events.Closed(connection.consumer_conn))

    def took(self, connection: Connection, data: bytes) -> None:
        """Pass on received bytes; what a frame is depends on what was asked before (era 2.5)."""
        try:
            for payload in connection.to_consumer.frames.feed(data):
                message, correlation = self.world.wire.from_coordinator(payload, self.machine.awaiting)
                self.step(events.Received(connection.consumer_conn, message, correlation))
                if connection is not self.connection:
                    break
        except DecodeError as error:
            self.step(events.Malformed(connection.consumer_conn, error.message))

    def wake(self) -> None:
        self._carry_out(self.machine.wake(self.schedule.now_ms))

    def step(self, event: events.ConsumerEvent) -> None:
        """Pass the event to the machine, and do what it asks for."""
        self._carry_out(self.machine.step(event, self.schedule.now_ms))

    def _carry_out(self, effects: list[events.ConsumerEffect]) -> None:
        network = self.world.network
        for effect in effects:
            match effect:
                case events.Connect(conn, host, _):
                    network.connect(self, conn, self.world.broker_at(host))
                case events.Send(_, message, correlation) if self.connection is not None:
                    data = self.world.wire.encode(message, correlation)
                    network.to_broker(self.connection, data)
                case events.Close() if self.connection is not None:
                    network.close_at_consumer(self.connection)
                    self.connection = None
                case events.Start(fetches):
                    partitions = [f.partition for f in fetches if f.offset is None]
                    for partition in partitions:
                        smallest = self.config.reset == "smallest"
                        self.machine.delivered(partition, 0 if smallest else self.world.end_of(partition))
        if self.machine.phase is Phase.LEFT and self.alive:
            self.die()

    def awake(self) -> None:
        """Deliver first, as the application's thread may be the first to resume (era 9.6)."""
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
        """Deliver what there is, asking before each record whether that is allowed (era 9.6)."""
        now_ms = self.schedule.now_ms
        for partition, position in list(self.machine.positions.items()):
            end = self.world.end_of(partition)
            if position is not None and position < end and self.machine.may_deliver(partition, now_ms):
                self.machine.delivered(partition, min(end, position + 60))


LEAST_DELAY_MS, MOST_DELAY_MS = 1, 20


@dataclass(slots=True)
class Pipe:
    """One direction: pieces in flight, None for the end; `blocked` while nothing gets through."""

    queue: deque[tuple[int, bytes | None]] = field(default_factory=deque)
    frames: Frames = field(default_factory=Frames)
    last_ms: int = 0
    blocked: bool = False

    @property
    def pending(self) -> int:
        """The number of bytes that the other side has not read."""
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
    """All connections; between the pairs of consumer and broker in `cut` nothing arrives."""

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
        """Try to connect: a dead broker refuses; a paused or unreachable one does not answer yet."""
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
            self._post(made, lambda: consumer.not_connected(made))
            return
        made.broker_life = broker.life
        made.open_at_broker = True
        self.connections.append(made)
        broker.post(lambda: broker.opened(made))
        self._post(made, lambda: consumer.connected(made))

    def to_broker(self, connection: Connection, data: bytes) -> None:
        """Send bytes from the consumer."""
        if connection.open_at_consumer:
            self._put(connection, connection.to_broker, data)

    def to_consumer(self, connection: Connection, data: bytes) -> None:
        """Send bytes from the broker; a consumer that reads too few of them is dropped (3)."""
        if not connection.open_at_broker:
            return
        self._put(connection, connection.to_consumer, data)
        if connection.to_consumer.pending > self._max_outbound:
            self.drop_at_broker(connection)

    def close_at_consumer(self, connection: Connection) -> None:
        """Close the consumer's side; the broker notices after what was sent."""
        if connection.open_at_consumer:
            connection.open_at_consumer = False
            self._put(connection, connection.to_broker, None)

    def close_at_broker(self, connection: Connection) -> None:
        """Close the broker's side."""
        if connection.open_at_broker:
            connection.open_at_broker = False
            self._put(connection, connection.to_consumer, None)

    def drop_at_broker(self, connection: Connection) -> None:
        """Reset the broker's side; the consumer notices when something gets through to it again."""
        if connection.open_at_broker:
            self.close_at_broker(connection)
            connection.broker.post(lambda: connection.broker.lost(connection))

    def silence(self, connection: Connection) -> None:
        """Cut both sides without notice: a machine lost its power."""
        connection.open_at_broker = connection.open_at_consumer = False

    def is_cut(self, connection: Connection) -> bool:
        return (connection.consumer.name, connection.broker.name) in self.cut

    def flow_all(self) -> None:
        """Continue after something may get through again."""
        for connection in self.connections:
            self._flow(connection)

    def _put(self, connection: Connection, pipe: Pipe, data: bytes | None) -> None:
        now = self.schedule.now_ms
        if data is not None and self.tear_next and len(data) > 1:
            # Half of the frame arrives, the rest long after (LC-83).
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
            self._post(connection, lambda: consumer.lost(connection))
        else:
            self._post(connection, lambda: consumer.took(connection, piece))

    def _post(self, connection: Connection, action: object) -> None:
        consumer = connection.consumer
        if consumer.life == connection.consumer_life and callable(action):
            consumer.post(action)


BELIEVES_CONNECTED_MS = 200
"""How long a paused process takes its session for alive."""


class ZkLink:
    """One client; `negotiated_ms` is how long ZooKeeper keeps a silent session."""

    def __init__(
        self, schedule: Schedule, chance: Random, tree: Tree, broker: BrokerProcess, negotiated_ms: int
    ) -> None:
        self._schedule = schedule
        self._chance = chance
        self._tree = tree
        self._broker = broker
        self._calls: dict[int, events.Zk] = {}
        self._negotiated_ms = negotiated_ms
        self.session = 0
        self.cut = False
        self._up = False
        self._missed: dict[str, None] = {}
        self._there_ms = self._back_ms = 0
        self._silences: dict[int, int] = {}
        self._broken = 0

    def open(self) -> None:
        """Open a session, or wait until the connection is back."""
        self._up = False
        self._missed.clear()
        self._broken += 1
        if self.cut:
            return
        self.session = self._tree.open(self._saw)
        self._up = True
        session = self.session
        self._back(lambda: self._broker.step(events.ZkConnected(session, self._negotiated_ms, True)))

    def call(self, zk: events.Zk) -> None:
        """Make a call; it is answered after the calls before it."""
        if not self._up:
            self._schedule.after(0, self._for_this_life(lambda: self._fail([zk], Failure.CONNECTION_LOSS)))
            return
        self._calls[zk.call] = zk
        self._there_ms = max(self._there_ms, self._schedule.now_ms + self._delay())
        broken, session = self._broken, self.session
        self._schedule.at(self._there_ms, lambda: self._arrive(zk, broken, session))

    def _arrive(self, zk: events.Zk, broken: int, session: int) -> None:
        if broken != self._broken or self.cut:
            return
        now_ms = self._schedule.now_ms
        results = self._tree.ask(session, zk.ops, watch=zk.watch, now_ms=now_ms)
        self._broker.world.observer.asked(self._broker, session, zk.ops, results)

        def answer() -> None:
            if self._calls.pop(zk.call, None) is not None:
                self._broker.step(events.ZkDone(zk.call, results))

        self._back(answer)

    def silent(self) -> None:
        """Hide the session from ZooKeeper from now on; unless that ends, ZooKeeper expires it."""
        session = self.session
        silence = self._silences[session] = self._silences.get(session, 0) + 1
        heard_ago = self._chance.randrange(0, self._negotiated_ms // 3)
        self._schedule.after(
            self._negotiated_ms - heard_ago,
            lambda: self._tree.expire(session) if silence == self._silences[session] else None,
        )

    def heard(self) -> None:
        """Show the session to ZooKeeper again, if it still exists."""
        if not self.cut:
            self._silences[self.session] = self._silences.get(self.session, 0) + 1

    def break_off(self) -> None:
        """Cut the connection; the client notices at once, or when its own pings stay unanswered."""
        if self.cut:
            return
        self.cut = True
        self.silent()
        broken = self._broken

        def notice() -> None:
            if broken == self._broken and self.cut and self._up:
                self._notice()

        self._schedule.after(self._chance.choice((0, self._negotiated_ms // 2)), notice)

    def heal(self) -> None:
        """Repair the network."""
        if not self.cut:
            return
        if self._up:
            self._notice()
        self.cut = False
        if self._broker.running:
            self.heard()
        if self._broker.alive:
            self._schedule.after(self._delay(), self._for_this_life(self._reconnect))

    def resumed(self) -> None:
        """Resume the process; it learns if its session has ended meanwhile."""
        self.heard()
        self._schedule.after(BELIEVES_CONNECTED_MS, self._check)

    def end_session(self) -> None:
        """End the session, as a second client with its password can; the client is notified."""
        self._tree.expire(self.session)
        self._schedule.after(self._delay(), self._check)

    def close(self) -> None:
        """Close the client, and end the session at once."""
        self._up = False
        self._calls.clear()
        self._broken += 1
        self._tree.expire(self.session)

    def die(self) -> None:
        """Lose the process; the session stays until ZooKeeper expires it."""
        self._up = False
        self._calls.clear()
        self._broken += 1
        self.silent()

    def _check(self) -> None:
        if self._up and not self._tree.alive(self.session) and not self.cut:
            self._broker.post(self._expired)

    def _notice(self) -> None:
        """Treat the connection as lost, with its calls, done or not, and all its watches."""
        self._up = False
        self._broken += 1
        calls, self._calls = self._calls, {}
        paths = dict.fromkeys([*self._tree.forget_watches(self.session), *self._missed])
        self._missed.clear()

        def suspended() -> None:
            self._broker.step(events.ZkSuspended())
            self._fail(list(calls.values()), Failure.CONNECTION_LOSS)
            for path in paths:
                self._broker.step(events.ZkFired(path, Change.LOST))

        self._broker.post(suspended)

    def _reconnect(self) -> None:
        if self.cut or self._up:
            return
        if self.session and self._tree.alive(self.session):
            self._up = True
            self.heard()
            self._broker.step(events.ZkConnected(self.session, self._negotiated_ms, False))
        else:
            self._expired()

    def _expired(self) -> None:
        calls, self._calls = self._calls, {}
        self._fail(list(calls.values()), Failure.SESSION_EXPIRED)
        self._broker.step(events.ZkExpired())
        self.open()

    def _saw(self, path: str, change: Change) -> None:
        if self.cut:
            self._missed[path] = None
        else:
            self._back(lambda: self._broker.step(events.ZkFired(path, change)))

    def _back(self, action: Callable[[], None]) -> None:
        """Answer the client in order; what is in flight when the connection is cut does not arrive."""
        self._back_ms = max(self._back_ms, self._schedule.now_ms + self._delay())
        broken = self._broken
        unbroken = self._for_this_life(lambda: self._broker.post(action) if broken == self._broken else None)
        self._schedule.at(self._back_ms, unbroken)

    def _for_this_life(self, action: Callable[[], None]) -> Callable[[], None]:
        life = self._broker.life
        return lambda: self._broker.post(action) if life == self._broker.life else None

    def _fail(self, calls: list[events.Zk], failure: Failure) -> None:
        for call in calls:
            self._broker.step(events.ZkDone(call.call, (failure,) * len(call.ops)))

    def _delay(self) -> int:
        return self._chance.randrange(1, 6)


class Observer:
    """Observes brokers; this one does nothing."""

    def stepped(
        self,
        broker: BrokerProcess,
        event: events.CoordinatorEvent | None,
        effects: list[events.CoordinatorEffect],
    ) -> None:
        """Note an event of a coordinator, None for a timer, and its effects."""

    def asked(
        self,
        broker: BrokerProcess,
        session: int,
        ops: Sequence[Read] | Sequence[Write],
        results: Sequence[Result],
    ) -> None:
        """Note that ZooKeeper has executed a broker's call."""

    def after_event(self) -> None:
        """Note an event in the cluster."""


def unrest(world: World) -> str | None:
    """Return why the cluster is not at rest, None if it is."""
    active = [broker for broker in world.brokers if broker.alive and broker.machine.state is State.ACTIVE]
    if len(active) != 1:
        return f"{len(active)} coordinators"
    term = active[0].machine.term
    assert term is not None
    for group in term.groups.values():
        if group.members and (group.stage is not Stage.NORMAL or group.run or group.rebalance_initiated):
            return f"group {group.group_id} is {group.stage.value}, rebalancing: {group.run is not None}"
    by_group = grouped((consumer.config.group_id, consumer) for consumer in running(world))
    for group_id, consumers in by_group.items():
        for partition in _subscribed(world, consumers):
            why = _owned(world, group_id, partition, consumers)
            if why is not None:
                return why
    return None


def running(world: World) -> list[ConsumerProcess]:
    return [consumer for consumer in world.consumers if consumer.running]


def _subscribed(world: World, consumers: list[ConsumerProcess]) -> list[Partition]:
    subscribed = []
    for topic, partitions in world.topics.items():
        subscriptions = [parse(consumer.topic_count) for consumer in consumers]
        if any(subscription and subscription.streams_of(topic) for subscription in subscriptions):
            subscribed += [Partition(topic, str(number)) for number in range(partitions)]
    return subscribed


def _owned(world: World, group_id: str, partition: Partition, consumers: list[ConsumerProcess]) -> str | None:
    """Return why the partition has not exactly the owner its node names; None if it has (era 12.3)."""
    holders = [c for c in consumers if c.machine.may_deliver(partition, world.now_ms)]
    if len(holders) != 1:
        return f"{group_id} {partition}: {len(holders)} holders"
    owner = consumer_of(data_at(world, paths.owner(group_id, partition)) or "")
    named = holders[0].config.consumer_id
    return None if owner == named else f"{group_id} {partition}: {named} holds it, {owner!r} owns it"


def data_at(world: World, path: str) -> str | None:
    node = world.read(path)
    return node.data.decode() if isinstance(node, Node) else None
