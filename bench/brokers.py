"""What the benchmarks of whole brokers share: ours and Kafka side by side, and a raw client.

The client writes requests that were encoded beforehand and only counts the answers, so that what is
measured is the broker. Processor time is the broker process's own, all threads, from /proc.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import struct
import time
from collections.abc import Iterable, Iterator, Mapping

from bench.kfake import Kfake
from kgroup.client.settings import ConnectionSettings, parse_bootstrap
from kgroup.client.transport import SocketTransport
from kgroup.errors import ErrorCode, KgroupError
from kgroup.protocol.codec import Message
from kgroup.protocol.headers import decode_response, encode_request
from kgroup.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kgroup.protocol.messages.find_coordinator import FindCoordinatorRequest
from kgroup.protocol.messages.heartbeat import HeartbeatRequest
from tests.interop.kafka import RealKafka
from tests.interop.kgroup_server import KgroupServer
from tests.interop.server import Server
from tests.interop.toolchain import missing

TICKS = os.sysconf("SC_CLK_TCK")
JVM = (
    *("-Xmx1G", "-Xms1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *("-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent"),
)
NOT_YET = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
LENGTH = struct.Struct(">i")


class Kafka(RealKafka):
    """Kafka with the JVM options of its own start script, instead of those that suit short tests."""

    def command(self) -> list[str]:
        command = super().command()
        main = command.index("kafka.Kafka")
        kept = [word for word in command[:main] if not word.startswith(("-XX:", "-Xm"))]
        return [*kept[:1], *JVM, *kept[1:], *command[main:]]


@contextlib.contextmanager
def brokers(overrides: Mapping[str, object] | None = None) -> Iterator[dict[str, Server]]:
    """Ours, and of Kafka and kfake those that can be had here, running, by name; it is said which cannot.

    Ours and Kafka have the same settings; kfake has few.
    """
    with contextlib.ExitStack() as running:
        servers: dict[str, Server] = {"kgroup": running.enter_context(KgroupServer(overrides))}
        for name, peer, needs in (("kafka", Kafka, ("java", "mvn")), ("kfake", Kfake, ("go",))):
            if absent := missing(*needs):
                print(f"without {name}, which needs {', '.join(absent)} on PATH")
            else:
                servers[name] = running.enter_context(peer(overrides))
        yield servers


def cpu_s(pid: int) -> float:
    """Processor seconds a process has used so far, in all its threads, user and system."""
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


@contextlib.contextmanager
def connected(server: Server) -> Iterator[SocketTransport]:
    """A client for what happens before the clock runs."""
    with SocketTransport(ConnectionSettings(parse_bootstrap(server.bootstrap))) as transport:
        yield transport


def create_topic(transport: SocketTransport, name: str, partitions: int) -> None:
    """Create a topic with one replica."""
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    transport.request(None, CreateTopicsRequest(topics=(topic,), timeout_ms=30_000))


def until_ready(transport: SocketTransport, groups: Iterable[str], timeout_s: float = 60) -> None:
    """Wait until each group's coordinator serves it; Kafka makes its offsets topic on the first look-up."""
    end = time.monotonic() + timeout_s
    for group in groups:
        while not _is_served(transport, group):
            if time.monotonic() > end:
                raise RuntimeError(f"no coordinator serves {group}")
            time.sleep(0.1)


def _is_served(transport: SocketTransport, group: str) -> bool:
    beat = HeartbeatRequest(group_id=group, generation_id=0, member_id="nobody")
    try:
        transport.request(None, FindCoordinatorRequest(coordinator_keys=(group,)))
        return transport.request(None, beat).error_code not in NOT_YET  # type: ignore[attr-defined]
    except KgroupError:
        return False


class Pipeline:
    """One connection that sends the same request again and again, up to `window` at a time."""

    def __init__(self, address: tuple[str, int], request: Message, version: int, window: int) -> None:
        self.api, self.version = request.API, version
        self.frame = encode_request(request, version, 1, "bench")
        self.window = window
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sent = self.answered = 0
        self.last = b""
        self._buffer = b""

    def send(self, target: int) -> None:
        """Fill the window, up to `target` requests in all."""
        count = min(self.window - (self.sent - self.answered), target - self.sent)
        if count > 0:
            self.socket.sendall(self.frame * count)
            self.sent += count

    def receive(self) -> None:
        """Count the answers that have come."""
        data = self._buffer + self.socket.recv(1 << 18)
        pos, end = 0, len(data)
        while end - pos >= 4:
            stop = pos + 4 + LENGTH.unpack_from(data, pos)[0]
            if stop > end:
                break
            self.answered += 1
            self.last = data[pos + 4 : stop]
            pos = stop
        self._buffer = data[pos:]

    def answer(self) -> Message:
        """The last answer."""
        return decode_response(self.last, self.api, self.version)[1]

    def close(self) -> None:
        self.socket.close()


def run(pipelines: list[Pipeline], each: int) -> float:
    """Have every connection make `each` more requests; wall seconds until all are answered."""
    targets = {p: p.answered + each for p in pipelines}
    start = time.perf_counter()
    with selectors.DefaultSelector() as selector:
        for pipeline in pipelines:
            selector.register(pipeline.socket, selectors.EVENT_READ, pipeline)
            pipeline.send(targets[pipeline])
        left = len(pipelines)
        while left:
            for key, _ in selector.select():
                pipeline = key.data
                pipeline.receive()
                if pipeline.answered == targets[pipeline]:
                    selector.unregister(pipeline.socket)
                    left -= 1
                else:
                    pipeline.send(targets[pipeline])
    return time.perf_counter() - start
