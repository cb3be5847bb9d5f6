"""Coordinators over a tree in memory and scripted consumers: for tests that count every message and ms."""

from __future__ import annotations

import json

from kgroup.zookeeper.coordinator import paths
from kgroup.zookeeper.coordinator.config import LegacyConfig
from kgroup.zookeeper.coordinator.machine import LegacyCoordinator
from kgroup.zookeeper.events import (
    Close,
    Closed,
    Log,
    Malformed,
    Opened,
    Received,
    Send,
    Shutdown,
    Zk,
    ZkConnected,
    ZkDone,
    ZkExpired,
    ZkFired,
    ZkSuspended,
)
from kgroup.zookeeper.store.operations import Change, Check, Create, Failure, SetData
from kgroup.zookeeper.store.tree import Tree
from kgroup.zookeeper.wire.messages import (
    PartitionAndOffset,
    PingRequest,
    PingResponse,
    RegisterConsumerRequest,
    StartFetcherRequest,
    StartFetcherResponse,
    StopFetcherRequest,
    StopFetcherResponse,
)

S = 6000
REQUESTS = frozenset({PingRequest, StopFetcherRequest, StartFetcherRequest})
Z = 6000


class Broker:
    """A coordinator and its host: calls are answered at once, unless `held` or the link is cut."""

    def __init__(self, stage, broker_id):
        self.stage, self.id = stage, broker_id
        self.machine = LegacyCoordinator(stage.config, broker_id)
        self.session = None
        self.linked = self.held = False
        self.effects, self.calls, self.inbox = [], [], []

    @property
    def state(self):
        return self.machine.state.value

    def connect(self, fresh=True):
        if fresh:
            self.session = self.stage.tree.open(self._fired, self.stage.chroot)
        self.linked = True
        self.step(ZkConnected(self.session, Z, fresh))

    def suspend(self):
        """The link to ZooKeeper is cut; what is asked from now on is lost, and watches with it."""
        self.linked = False
        lost = self.stage.tree.forget_watches(self.session)
        self.step(ZkSuspended())
        for path in lost:
            self.step(ZkFired(path, Change.LOST))

    def expire(self):
        """ZooKeeper ends the session; who is linked hears of it."""
        self.stage.tree.expire(self.session)
        if self.linked:
            self.linked = False
            self.step(ZkExpired())

    def shut_down(self):
        self.step(Shutdown())

    def step(self, event):
        self._carry_out(self.machine.step(event, self.stage.now))

    def wake(self):
        self._carry_out(self.machine.wake(self.stage.now))

    def _carry_out(self, effects):
        self.effects += effects
        for effect in effects:
            match effect:
                case Zk():
                    self.calls.append(effect)
                case Send(conn, message):
                    self.stage.consumers[conn].receive(message)
                case Close(conn):
                    self.stage.consumers[conn].closed = True
        if not self.held:
            self.release()

    def release(self):
        """Answer the calls made so far, first in, first out, and then tell what watches saw."""
        while self.calls or self.inbox:
            if self.inbox:
                self.step(self.inbox.pop(0))
                continue
            call = self.calls.pop(0)
            results = (Failure.CONNECTION_LOSS,) * len(call.ops)
            if self.linked:
                results = self.stage.tree.ask(self.session, call.ops, watch=call.watch, now_ms=self.stage.now)
            self.stage.asked.append((self.id, call.ops, results))
            self.step(ZkDone(call.call, results))

    def _fired(self, path, change):
        self.inbox.append(ZkFired(path, change))
        self.stage.dirty.append(self)

    def logged(self, *levels):
        logs = [effect for effect in self.effects if isinstance(effect, Log)]
        return [log.text for log in logs if not levels or log.level.value in levels]


class Consumer:
    """A scripted consumer on one connection: answers as it is told, and keeps all it has received."""

    def __init__(self, stage, broker, conn, name="c1", group="g", topics='{"t":1}', session=S, **more):
        self.stage, self.broker, self.conn, self.name = stage, broker, conn, name
        self.auto_commit = more.get("auto_commit", True)
        reset = more.get("reset", "smallest")
        self.registration = RegisterConsumerRequest(group, name, topics, self.auto_commit, reset, session)
        self.received, self.times, self.left, self.closed = [], [], [], False
        self.answers = REQUESTS
        self.positions = {}
        self.fetched = ()

    def register(self):
        self.say(self.registration)
        return self.received[-1] if not self.received else self.received[0]

    def say(self, message):
        self.broker.step(Received(self.conn, message))
        self.stage.settle()

    def receive(self, message):
        self.received.append(message)
        self.times.append(self.stage.now)
        if type(message) in self.answers:
            self.stage.pending.append((self, message))
        elif type(message) in REQUESTS:
            self.left.append(message)

    def answer(self, message, error=0):
        """Answer one request as a consumer does."""
        offsets = None
        if self.auto_commit:
            offsets = tuple(PartitionAndOffset(t, p, o) for (t, p), o in sorted(self.positions.items()))
        match message:
            case PingRequest():
                reply = PingResponse(error, self.name, offsets)
            case StopFetcherRequest():
                reply = StopFetcherResponse(0, self.name, offsets)
                self.fetched, self.positions = (), {}
            case StartFetcherRequest():
                reply = StartFetcherResponse(0, self.name)
                parts = [part for own in message.ownership for part in own.partitions]
                self.fetched = tuple((topic, name) for topic, name, _ in parts)
                self.positions = {(t, p): max(o, 0) for t, p, o in parts}
        if not self.closed:
            self.broker.step(Received(self.conn, reply))

    def die(self):
        """The connection drops."""
        self.closed = True
        self.broker.step(Closed(self.conn))
        self.stage.settle()

    def silent(self):
        self.answers = set()

    def catch_up(self):
        """Answer everything that was left, in order, and go on answering."""
        self.answers = REQUESTS
        for message in self.left:
            self.answer(message)
        self.left = []
        self.stage.settle()

    def kinds(self):
        return [type(message).__name__ for message in self.received]

    def last(self, kind):
        return [message for message in self.received if isinstance(message, kind)][-1]

    def count(self, kind):
        return sum(isinstance(message, kind) for message in self.received)

    def when(self, kind):
        """The moments it received this kind."""
        pairs = zip(self.times, self.received, strict=True)
        return [at for at, message in pairs if isinstance(message, kind)]


class Stage:
    """A tree, brokers and consumers under one clock."""

    def __init__(self, brokers=1, topics=None, connect=True, chroot="", **config):
        self.chroot = chroot
        self.config = LegacyConfig(**config)
        self.tree = Tree()
        self.now = 0
        self.asked, self.dirty, self.pending, self.consumers = [], [], [], {}
        if chroot:
            self.tree.ask(self.tree.open(), [Create(chroot, b"")])
        self.admin = self.tree.open(chroot=chroot)
        for path in ("/brokers", paths.BROKER_IDS, paths.TOPICS):
            self.do(Create(path, b""))
        self.brokers = {}
        for broker_id in range(1, brokers + 1):
            data = json.dumps({"version": 1, "host": f"h{broker_id}", "port": 9092}).encode()
            self.do(Create(paths.broker(str(broker_id)), data))
        for name, partitions in (topics or {}).items():
            self.topic(name, partitions)
        self.brokers = {n: Broker(self, n) for n in range(1, brokers + 1)}
        if connect:
            for broker in self.brokers.values():
                broker.connect()
            self.settle()

    def do(self, *ops):
        results = self.tree.ask(self.admin, ops, now_ms=self.now)
        assert not any(isinstance(result, Failure) for result in results), results
        self.settle()

    def topic(self, name, partitions):
        """Make a topic in the form of 0.8, or give it another number of partitions."""
        data = json.dumps({"version": 1, "partitions": {str(n): [1] for n in range(partitions)}}).encode()
        exists = paths.topic(name) in self.dump(paths.TOPICS)
        self.do(SetData(paths.topic(name), data) if exists else Create(paths.topic(name), data))

    def consumer(self, name="c1", broker=1, **more):
        conn = len(self.consumers) + 1
        consumer = Consumer(self, self.brokers[broker], conn, name, **more)
        self.consumers[conn] = consumer
        consumer.broker.step(Opened(conn))
        return consumer

    def joined(self, name="c1", broker=1, **more):
        """A consumer that is registered."""
        consumer = self.consumer(name, broker, **more)
        consumer.register()
        return consumer

    def settle(self):
        """Have everything happen that is to happen at this moment."""
        while True:
            if self.dirty:
                broker = self.dirty.pop(0)
                if not broker.held:
                    broker.release()
            elif self.pending:
                consumer, message = self.pending.pop(0)
                consumer.answer(message)
            else:
                return

    def advance(self, ms):
        """Let time pass, every timer at its moment."""
        self.until(self.now + ms)

    def until(self, moment):
        while True:
            dues = [(b.machine.next_wake_ms(), b.id) for b in self.brokers.values()]
            dues = [(due, broker_id) for due, broker_id in dues if due is not None and due <= moment]
            if not dues:
                break
            due, broker_id = min(dues)
            self.now = max(self.now, due)
            self.brokers[broker_id].wake()
            self.settle()
        self.now = moment

    def dump(self, path="/consumers"):
        """The data of every node below a path."""
        nodes = self.tree.walk(self.chroot + path)
        return {name[len(self.chroot) :]: node.data.decode() for name, node in nodes}

    def owners(self, group="g"):
        prefix = paths.owners(group) + "/"
        nodes = self.dump(paths.owners(group)).items()
        return {p[len(prefix) :]: data for p, data in nodes if p.count("/") == 5}

    def offsets(self, group="g"):
        prefix = f"/consumers/{group}/offsets/"
        nodes = self.dump(prefix[:-1]).items()
        return {p[len(prefix) :]: int(data) for p, data in nodes if p.count("/") == 5}

    def multis(self, broker=None):
        """The multis so far, with their results."""
        return [
            (ops, results)
            for who, ops, results in self.asked
            if broker in (None, who) and isinstance(ops[0], Check | Create | SetData)
        ]


def malformed(consumer):
    """The consumer's bytes make no message."""
    consumer.broker.step(Malformed(consumer.conn, "garbage"))
    consumer.stage.settle()
