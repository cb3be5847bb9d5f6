"""Keeps a tree's brokers and topics as the served cluster has them, as brokers of the era did."""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from kgroup.runtime.cluster import Cluster
from kgroup.zookeeper.coordinator import paths
from kgroup.zookeeper.coordinator.directory import OWN_LISTENER, partitions_of
from kgroup.zookeeper.events import CoordinatorEvent, Zk, ZkConnected, ZkDone, ZkExpired, ZkSuspended
from kgroup.zookeeper.hosts.links import MakeLink
from kgroup.zookeeper.store.operations import Create, Delete, Failure, Get, Node, Read, Result, SetData, Write

log = logging.getLogger(__name__)

LOOK_S = 0.2
"""How often it looks for topics that were created, changed or deleted."""
AGAIN_S = 1.0
Address = tuple[str, int]
Then = Callable[[Sequence[Result]], None]
_BASES = ("/brokers", paths.BROKER_IDS, paths.TOPICS, paths.CONSUMERS)
_LOST = (Failure.CONNECTION_LOSS, Failure.SESSION_EXPIRED)


class Registrar:
    """Writes an ephemeral node for each broker and a node for each topic; never over what others wrote.

    It deletes only topics that it wrote itself and that the cluster no longer has.
    """

    def __init__(
        self, cluster: Cluster, listeners: Mapping[int, tuple[Address, Address]], make_link: MakeLink
    ) -> None:
        """Take each broker's `listeners`: for Kafka, and for its coordinator."""
        self._cluster = cluster
        self._listeners = listeners
        self._loop = asyncio.get_running_loop()
        self._link = make_link(self._on_event)
        self._calls: dict[int, Then] = {}
        self._called = 0
        self._session = 0
        self._connected = False
        self._written: set[str] = set()
        self._registered: set[int] = set()
        self._version: int | None = None
        self._complained: dict[str, str] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._busy = False
        self._closed = False

    def start(self) -> None:
        self._link.open()
        self._look()

    def close(self) -> None:
        """Remove the brokers' nodes at once; the topics' nodes stay."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._link.close()

    def _on_event(self, event: CoordinatorEvent) -> None:
        match event:
            case ZkConnected(session, _, fresh):
                self._connected, self._session = True, session
                if fresh:
                    self._registered.clear()
                self._version = None
            case ZkSuspended() | ZkExpired():
                self._connected = False
            case ZkDone(call, results):
                self._calls.pop(call)(results)
                return
            case _:
                return
        self._update()

    def _look(self) -> None:
        self._timer = self._loop.call_later(AGAIN_S if self._complained else LOOK_S, self._look)
        self._update()

    def _update(self) -> None:
        """Write what differs from what was last written, one round at a time."""
        version = self._cluster.catalog.image.version
        done = version == self._version and self._registered == self._listeners.keys()
        if self._connected and not self._busy and not self._closed and not done:
            self._busy = True
            self._make(list(_BASES), version)

    def _make(self, bases: list[str], version: int) -> None:
        if not bases:
            self._register(version)
            return
        base = bases.pop(0)

        def made(results: Sequence[Result]) -> None:
            if self._done(base, results[0], Failure.NODE_EXISTS):
                self._make(bases, version)
            else:
                self._busy = False

        self._ask((Create(base, b""),), made)

    def _register(self, version: int) -> None:
        """Register each broker in this session; another session's node stays until that session ends."""
        missing = sorted(self._listeners.keys() - self._registered)
        if not missing:
            self._read_topics(version)
            return
        paths_of = {number: paths.broker(str(number)) for number in missing}

        def nodes_read(results: Sequence[Result]) -> None:
            for number, node in zip(missing, results, strict=True):
                path = paths_of[number]
                if isinstance(node, Node) and node.stat.owner == self._session:
                    self._registered.add(number)
                    self._complained.pop(path, None)
                elif isinstance(node, Node):
                    self._complain(path, "another process has registered this broker")
                elif node is Failure.NO_NODE:
                    # Its outcome is seen when the node is read again; a refusal is logged at once.
                    create = Create(path, self._broker(number), ephemeral=True)
                    self._ask((create,), partial(self._made_broker, path))
            self._read_topics(version)

        self._ask([Get(path) for path in paths_of.values()], nodes_read)

    def _made_broker(self, path: str, results: Sequence[Result]) -> None:
        self._done(path, results[0])

    def _broker(self, number: int) -> bytes:
        (host, port), (own_host, own_port) = self._listeners[number]
        protocol = self._cluster.scheme.removesuffix("://") or "PLAINTEXT"
        return json.dumps(
            {
                "version": 4,
                "host": host,
                "port": port,
                "jmx_port": -1,
                "timestamp": str(self._cluster.clock.now_ms()),
                "listener_security_protocol_map": {protocol: protocol},
                "endpoints": [f"{protocol}://{host}:{port}", f"{OWN_LISTENER}{own_host}:{own_port}"],
            }
        ).encode()

    def _read_topics(self, version: int) -> None:
        topics = {t.name: t.partitions for t in self._cluster.catalog.topics.values() if not t.internal}
        names = sorted(topics.keys() | self._written)
        if not names:
            self._topics_done(version, True)
            return

        def topics_read(results: Sequence[Result]) -> None:
            if any(isinstance(node, Failure) and node in _LOST for node in results):
                self._topics_done(version, False)
                return
            writes = {}
            for name, node in zip(names, results, strict=True):
                write = self._write_for(name, topics.get(name), node)
                if write is not None:
                    writes[name] = write
            self._write_topics(version, writes)

        self._ask([Get(paths.topic(name)) for name in names], topics_read)

    def _write_for(self, name: str, partitions: int | None, node: Result) -> Write | None:
        """Return the write that corrects a topic's node; None if none is needed or allowed."""
        path = paths.topic(name)
        if isinstance(node, Failure) and node is not Failure.NO_NODE:
            self._done(path, node)
            return None
        if not isinstance(node, Node):
            if partitions is None:
                self._written.discard(name)
                return None
            return Create(path, self._topic(name, partitions))
        if partitions is None:
            return Delete(path, node.stat.version)
        there = partitions_of(node.data)
        if isinstance(there, Failure) or len(there) > partitions:
            self._complain(path, f"it is there with other partitions than the cluster's {partitions}")
            return None
        self._complained.pop(path, None)
        self._written.add(name)
        if len(there) == partitions:
            return None
        return SetData(path, self._topic(name, partitions), node.stat.version)

    def _topic(self, name: str, partitions: int) -> bytes:
        leaders = {str(n): [self._cluster.leader_of(name, n)] for n in range(partitions)}
        return json.dumps({"version": 1, "partitions": leaders}).encode()

    def _write_topics(self, version: int, writes: dict[str, Write]) -> None:
        left = set(writes)
        if not left:
            self._topics_done(version, True)
        good = True

        def written(name: str, results: Sequence[Result]) -> None:
            nonlocal good
            left.discard(name)
            done = self._done(paths.topic(name), results[0])
            good = good and done
            if done and isinstance(writes[name], Delete):
                self._written.discard(name)
            elif done:
                self._written.add(name)
            if not left:
                self._topics_done(version, good)

        for name, write in writes.items():
            self._ask((write,), partial(written, name))

    def _topics_done(self, version: int, good: bool) -> None:
        self._busy = False
        # What is not as it should be is checked again, for ever.
        self._version = version if good and not self._complained else None

    def _done(self, path: str, result: Result, *fine: Failure) -> bool:
        """Return whether a write was done; log a refusal, but not a lost connection."""
        if isinstance(result, Failure) and result not in fine:
            if result not in _LOST:
                self._complain(path, f"it cannot be written: {result.value}")
            return False
        self._complained.pop(path, None)
        return True

    def _complain(self, path: str, why: str) -> None:
        if self._complained.get(path) != why:
            log.error("ZooKeeper's %s: %s", path, why)
        self._complained[path] = why

    def _ask(self, ops: Sequence[Read] | Sequence[Write], then: Then) -> None:
        self._called += 1
        self._calls[self._called] = then
        self._link.call(Zk(self._called, tuple(ops)))  # type: ignore[arg-type]
