"""Coordinators of the ZooKeeper era on loopback, and consumers that say what they are told to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from kgroup.broker.server import Server
from kgroup.runtime.catalog import CatalogTopic
from kgroup.runtime.cluster import Cluster
from kgroup.zookeeper.coordinator.config import LegacyConfig
from kgroup.zookeeper.entry.serve import LegacyBrokers, LegacyOptions
from kgroup.zookeeper.wire.codec import Awaiting, Frames, Wire
from kgroup.zookeeper.wire.messages import (
    ClusterMetadataRequest,
    PingRequest,
    PingResponse,
    RegisterConsumerRequest,
    StartFetcherRequest,
    StartFetcherResponse,
    StopFetcherRequest,
    StopFetcherResponse,
)

FAST = LegacyConfig(rebalance_backoff_ms=200, commit_interval_ms=200, zk_session_ms=1200, min_session_ms=500)
WAIT_S = 200.0


@asynccontextmanager
async def coordinators(
    brokers: int = 1, config: LegacyConfig = FAST, topics: dict[str, int] | None = None, **options: Any
) -> AsyncIterator[LegacyBrokers]:
    """A cluster in memory, served, with a coordinator beside each broker; one of them is elected."""
    cluster = Cluster(None, brokers=brokers, offsets_partitions=1)
    for name, partitions in (topics or {"t": 3}).items():
        set_topic(cluster, name, partitions)
    server = Server(cluster)
    await server.start()
    made = LegacyBrokers(cluster, LegacyOptions(config=config, **options))
    made.cluster = cluster  # type: ignore[attr-defined]
    made.addresses = await made.start()  # type: ignore[attr-defined]
    try:
        await until(lambda: active(made) is not None)
        yield made
    finally:
        await made.stop()
        await server.stop()
        cluster.close()


def set_topic(cluster: Cluster, name: str, partitions: int) -> None:
    """Make a topic, or give it more partitions."""
    if name in cluster.catalog.topics:
        cluster.catalog.grow(name, partitions, {})
    else:
        cluster.catalog.add(CatalogTopic(name, cluster.catalog.new_topic_id(), partitions))


def active(made: LegacyBrokers) -> Any:
    """The host that coordinates and knows of every broker, None while there is none."""
    found = [host for host in made.hosts if host.machine.state.value == "active"]
    return found[0] if found and len(found[0].machine.directory.brokers) == len(made.hosts) else None


async def until(holds: Callable[[], Any]) -> Any:
    """What it gives as soon as it is true of it."""
    async with asyncio.timeout(WAIT_S):
        while not (found := holds()):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        return found


class Peer:
    """One connection to a coordinator; `received` is all that came, answers to requests included."""

    def __init__(self, name: str = "c1", session: int = 3000) -> None:
        self.name, self.session = name, session
        self.wire = Wire()
        self.received: list[Any] = []
        self.positions: dict[tuple[str, str], int] = {}
        self.silent = self.closed = False
        self._awaiting = Awaiting.NOTHING
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Peer:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self.writer.close()
            await self._task

    async def connect(self, made: LegacyBrokers, broker: int | None = None) -> Peer:
        host = made.hosts.index(active(made)) if broker is None else broker
        where, _, port = made.addresses[host].rpartition(":")  # type: ignore[attr-defined]
        self.reader, self.writer = await asyncio.open_connection(where, int(port))
        self._task = asyncio.create_task(self._read())
        return self

    async def metadata(self) -> Any:
        self._awaiting = Awaiting.METADATA
        self.say(ClusterMetadataRequest())
        return await self.next()

    async def register(self, group: str = "g", topics: str = '{"t":1}') -> Any:
        self._awaiting = Awaiting.REGISTRATION
        self.say(RegisterConsumerRequest(group, self.name, topics, True, "smallest", self.session))
        return await self.next()

    async def next(self) -> Any:
        before = len(self.received)
        await until(lambda: len(self.received) > before or self.closed)
        return self.received[before] if len(self.received) > before else None

    async def started(self) -> StartFetcherRequest:
        """The newest Start, once there is one."""
        found = await until(lambda: [m for m in self.received if isinstance(m, StartFetcherRequest)])
        return found[-1]

    def say(self, message: Any) -> None:
        self.writer.write(self.wire.encode(message))

    def owned(self) -> list[str]:
        starts = [m for m in self.received if isinstance(m, StartFetcherRequest)]
        return sorted(p.partition for o in starts[-1].ownership for p in o.partitions) if starts else []

    async def _read(self) -> None:
        frames = Frames()
        while data := await self._chunk():
            for payload in frames.feed(data):
                message, _ = self.wire.from_coordinator(payload, self._awaiting)
                self._awaiting = Awaiting.NOTHING
                self.received.append(message)
                if not self.silent:
                    self._answer(message)
        self.closed = True

    async def _chunk(self) -> bytes:
        try:
            return await self.reader.read(65536)
        except ConnectionError:
            return b""

    def _answer(self, message: Any) -> None:
        from kgroup.zookeeper.wire.messages import PartitionAndOffset

        offsets = tuple(PartitionAndOffset(t, p, at) for (t, p), at in sorted(self.positions.items()))
        match message:
            case PingRequest():
                self.say(PingResponse(0, self.name, offsets))
            case StopFetcherRequest():
                self.say(StopFetcherResponse(0, self.name, offsets))
            case StartFetcherRequest():
                self.say(StartFetcherResponse(0, self.name))
