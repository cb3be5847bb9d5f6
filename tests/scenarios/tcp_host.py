"""Our broker behind sockets, on a clock that only moves when a row says so."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from kgroup.broker.server import Server
from kgroup.protocol.codec import Message
from kgroup.runtime.clock import ManualClock
from kgroup.runtime.cluster import Cluster
from tests.scenarios.hosts import JUDGE

from .hosts import (
    CONFIG,
    SEED,
    START_MS,
    epochs_in,
    group_config_request,
    restart_shards,
    shard_of,
    topic_requests,
)
from .wire import Wire

PATIENCE_S = 5.0
TURNS = 6
CONTROL = -1


class TcpHost:
    """Server and client take turns on one thread, so nothing depends on how fast the machine is."""

    scale = 1
    prefix = ""

    def __init__(self, config: Mapping[str, str], seed: int = SEED) -> None:
        self.clock = ManualClock(START_MS)
        self.cluster = Cluster(
            config={**CONFIG, "auto.create.topics.enable": "false", **config},
            offsets_partitions=1,
            seed=seed,
            clock=self.clock,
            kafka=JUDGE,
        )
        self._loop = asyncio.new_event_loop()
        self._server = Server(self.cluster)
        (port,) = self._loop.run_until_complete(self._server.start())
        self._wire = Wire("127.0.0.1", port)
        self._replies: list[tuple[int, Message]] = []

    def send(self, ticket: int, client_id: str, message: Message, version: int) -> None:
        self._wire.send(ticket, client_id, message, version)
        self._turn()

    def collect(self, expected: int) -> list[tuple[int, Message]]:
        self._turn()
        collected, self._replies = self._replies, []
        return collected

    def wait(self, ms: int) -> None:
        until = self.clock.now_ms() + ms
        wakeups = self._server.dispatcher.wakeups
        while (due := wakeups.next_ms()) is not None and due <= until:
            self.clock.wait_until(due)
            wakeups.run(self.clock.now_ms())
        self.clock.wait_until(until)
        self._turn()

    def set_topic(self, name: str, partitions: int) -> bytes:
        exists = name in self.cluster.catalog.topics
        for request in topic_requests(name, partitions, exists=exists):
            self._control(request)
        return self.cluster.catalog.topics[name].topic_id if partitions else bytes(16)

    def set_group_config(self, group_id: str, settings: Mapping[str, str]) -> None:
        self._control(group_config_request(group_id, settings))

    def restart(self) -> None:
        restart_shards(self._server.dispatcher.tickets, self.cluster)
        self._turn()

    def fail_next_append(self) -> None:
        raise NotImplementedError("only the bare machine's log can be made to fail")

    def epochs(self, group_id: str) -> dict[str, str]:
        return epochs_in(shard_of(self.cluster, group_id), group_id)

    def check(self) -> None:
        """The bare machine does it."""

    def close(self) -> None:
        self._wire.close()
        self._loop.run_until_complete(self._server.stop())
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()
        self.cluster.close()

    def _control(self, request: Message) -> None:
        self._wire.send(0, "control", request, request.VERSIONS[-1])
        self._turn()
        self._replies = [reply for reply in self._replies if reply[0] != 0]

    def _turn(self) -> None:
        """Let the server read, work and write until it has nothing more to do, then read its answers."""
        for _ in range(TURNS):
            self._loop.run_until_complete(asyncio.sleep(0))
        self._replies += self._wire.receive(0)
