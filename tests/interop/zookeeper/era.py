"""ZooKeeper 3.9, and brokers, consumers and tools of Kafka 0.8.2.2 and 1.1.1, on loopback.

`python -m tests.interop.zookeeper.era` fetches their jars (from Maven).
"""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from ..jvm import LIGHT_JVM
from ..server import Server, free_port
from ..toolchain import built, copy_jars, locked, missing

HERE = Path(__file__).resolve().parent
ZOOKEEPER = "3.9.4"
SCALA = {"0.8.2.2": "2.11", "1.1.1": "2.12"}
"""The brokers there are, and the Scala that each is built for."""
OFFSET_CHECKER = "kafka.tools.ConsumerOffsetChecker"
GROUP_COMMAND = "kafka.admin.ConsumerGroupCommand"


def jars(release: str) -> Path:
    """Folder with a broker of that release and all it needs at run time; of ZooKeeper for its version."""
    name, pom, which = f"kafka-{release}", HERE / "kafka.xml", [f"-Dkafka.version={release}"]
    if release == ZOOKEEPER:
        name, pom, which = f"zookeeper-{release}", HERE / "zookeeper.xml", [f"-Dzookeeper.version={release}"]
    else:
        which.append(f"-Dscala.version={SCALA[release]}")

    with locked():
        return built(name, [pom], lambda to: copy_jars(pom, to, *which))


def java(release: str, main: str, *args: str, log4j: Path | None = None, heap: str = "256m") -> list[str]:
    """The command line of a main class with the jars of a release."""
    options = [f"-Dlog4j.configuration=file:{log4j}"] if log4j else []
    return ["java", *LIGHT_JVM, f"-Xmx{heap}", *options, "-cp", f"{jars(release)}{os.sep}*", main, *args]


def log4j_file(folder: Path, level: str) -> Path:
    """A log4j configuration that writes to stderr."""
    file = folder / f"log4j-{level}.properties"
    file.write_text(
        f"log4j.rootLogger={level}, err\n"
        "log4j.appender.err=org.apache.log4j.ConsoleAppender\n"
        "log4j.appender.err.Target=System.err\n"
        "log4j.appender.err.layout=org.apache.log4j.PatternLayout\n"
        "log4j.appender.err.layout.ConversionPattern=%p %m (%c)%n\n"
    )
    return file


class ZooKeeperServer(Server):
    """One ZooKeeper server; it is up when a session can be made."""

    kind = "zookeeper"
    ready_line = ""

    def __init__(self, base: Path | None = None, settings: Mapping[str, object] | None = None) -> None:
        super().__init__(settings, base)
        self.jvm: tuple[str, ...] = ()

    def prepare(self) -> None:
        self.data_dir.mkdir(parents=True)
        settings = {
            # Sessions last 2 to 20 ticks.
            "tickTime": 200,
            "dataDir": self.data_dir,
            "clientPort": self.port,
            "clientPortAddress": "127.0.0.1",
            "admin.enableServer": "false",
            "maxClientCnxns": 0,
            **self.overrides,
        }
        lines = "".join(f"{key}={value}\n" for key, value in settings.items())
        (self.base / "zoo.cfg").write_text(lines)

    def command(self) -> list[str]:
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        command = java(ZOOKEEPER, main, str(self.base / "zoo.cfg"))
        return [command[0], *self.jvm, *command[1:]]

    def client(self) -> Any:
        """A kazoo client with a session, closed by the caller."""
        from kazoo.client import KazooClient

        made = KazooClient(self.bootstrap, timeout=4)
        made.start(30)
        return made

    def _wait_until_ready(self, log_from: int, deadline: float) -> None:
        # Its port opens before it makes sessions.
        while time.monotonic() < deadline and self.running:
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1) as probe:
                    probe.settimeout(2)
                    probe.sendall(_CONNECT)
                    if probe.recv(64):
                        return
            except OSError:
                pass
            time.sleep(0.05)
        text = self.log_text()
        self.kill9()
        raise RuntimeError(f"ZooKeeper did not come up; its log ends:\n{text[-4000:]}")


# A request for a session: protocol 0, nothing seen, 4 s, no session yet, a password of zeros.
_CONNECT = struct.pack(">iiqiqi16s", 44, 0, 0, 4000, 0, 16, bytes(16))


class ZooKeeperEnsemble:
    """Three servers that elect a leader; up when a session can be made at each."""

    def __init__(self, base: Path) -> None:
        base.mkdir()
        quorum = {f"server.{number}": f"127.0.0.1:{free_port()}:{free_port()}" for number in range(1, 4)}
        settings = {
            "tickTime": 1000,
            "initLimit": 25,
            "syncLimit": 10,
            "4lw.commands.whitelist": "srvr",
            **quorum,
        }
        self.servers = [ZooKeeperServer(base / str(number), settings) for number in range(1, 4)]

    @property
    def bootstrap(self) -> str:
        """All of them."""
        return ",".join(server.bootstrap for server in self.servers)

    def leader(self) -> ZooKeeperServer:
        """The server that leads now."""
        return next(server for server in self.servers if server.running and "leader" in _said(server))

    def __enter__(self) -> Self:
        for number, server in enumerate(self.servers, 1):
            server.base.mkdir()
            server.prepare()
            (server.data_dir / "myid").write_text(f"{number}\n")
        # None of them makes a session before two are there.
        with ThreadPoolExecutor(len(self.servers)) as pool:
            list(pool.map(ZooKeeperServer.start, self.servers))
        return self

    def __exit__(self, *_: object) -> None:
        for server in self.servers:
            server.close()


def _said(server: ZooKeeperServer) -> str:
    with socket.create_connection(("127.0.0.1", server.port), 5) as asking:
        asking.sendall(b"srvr")
        return asking.recv(4096).decode()


class OldBroker(Server):
    """A broker of a release of SCALA in a tree of ZooKeeper, below a chroot."""

    ready_line = "started (kafka.server.KafkaServer)"

    def __init__(self, release: str, zookeeper: ZooKeeperServer, chroot: str, base: Path) -> None:
        base.mkdir()
        super().__init__(None, base)
        self.kind, self.release = f"kafka-{release}", release
        self.zookeeper = zookeeper
        self.connect = f"{zookeeper.bootstrap}{chroot}"

    def prepare(self) -> None:
        self.data_dir.mkdir()
        self._write("server.properties", self._properties())

    def _properties(self) -> dict[str, object]:
        old = {"port": self.port, "host.name": "127.0.0.1"}
        listeners = {"listeners": f"PLAINTEXT://{self.bootstrap}", "group.initial.rebalance.delay.ms": 0}
        return {
            "broker.id": 1,
            **(old if self.release.startswith("0.8") else listeners),
            "log.dirs": self.data_dir,
            "zookeeper.connect": self.connect,
            "zookeeper.session.timeout.ms": 4000,
            "auto.create.topics.enable": "false",
            "num.network.threads": 2,
            "num.io.threads": 2,
            "log.cleaner.enable": "false",
            "offsets.topic.num.partitions": 2,
            "offsets.topic.replication.factor": 1,
        }

    def command(self) -> list[str]:
        log4j = log4j_file(self.base, "INFO")
        return java(self.release, "kafka.Kafka", str(self.base / "server.properties"), log4j=log4j)

    def _write(self, name: str, settings: Mapping[str, object]) -> Path:
        file = self.base / name
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        return file

    def create_topic(self, name: str, partitions: int) -> None:
        """Create a topic with the release's own tool, and wait until its partitions have leaders."""
        numbers = ("--partitions", str(partitions), "--replication-factor", "1")
        self.run("kafka.admin.TopicCommand", "--create", "--topic", name, *numbers)
        client = self.zookeeper.client()
        below = self.connect.partition("/")[2]
        try:
            for number in range(partitions):
                path = f"/{below}/brokers/topics/{name}/partitions/{number}/state"
                eventually(
                    lambda where=path: client.exists(where) is not None, f"{name}-{number} has a leader"
                )
        finally:
            client.stop()
            client.close()

    def run(self, main: str, *args: str, release: str | None = None) -> str:
        """What a tool prints, of this release or another, told where ZooKeeper is; it must end well."""
        log4j = log4j_file(self.base, "ERROR")
        command = java(release or self.release, main, "--zookeeper", self.connect, *args, log4j=log4j)
        done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
        assert done.returncode == 0, f"{main} {args}: {done.stdout}\n{done.stderr}"
        return done.stdout

    def produce(self, topic: str, partition: int, values: Sequence[str]) -> None:
        """Append records, by Produce version 0, which every broker of the era serves."""
        messages = b"".join(_message(value.encode()) for value in values)
        body = struct.pack(">hii", 1, 10_000, 1) + _string(topic)
        body += struct.pack(">iii", 1, partition, len(messages)) + messages
        request = struct.pack(">hhi", 0, 0, 1) + _string("test") + body
        deadline = time.monotonic() + 30
        while True:
            with socket.create_connection(("127.0.0.1", self.port), 10) as broker:
                broker.sendall(struct.pack(">i", len(request)) + request)
                answer = _frame(broker)
            (code,) = struct.unpack_from(">h", answer, 4 + 4 + 2 + len(topic) + 4 + 4)
            if not code:
                return
            # The leader may not know yet that it is one.
            assert time.monotonic() < deadline, f"Produce to {topic}-{partition} answered {code}"
            time.sleep(0.1)

    def consumer(self, group: str, *args: str, **settings: object) -> Consumer:
        """A live consumer of ZooKeeper's kind, of this release: `--topic t` or `--whitelist t.*`."""
        return Consumer(self, group, args, {k.replace("_", "."): v for k, v in settings.items()})


class Consumer:
    """The console consumer of a release, reading with a group until it is stopped."""

    _made = 0

    def __init__(
        self, broker: OldBroker, group: str, args: Sequence[str], settings: Mapping[str, object]
    ) -> None:
        Consumer._made += 1
        name = f"consumer-{Consumer._made}"
        config = broker._write(
            f"{name}.properties",
            {
                "group.id": group,
                "auto.offset.reset": "smallest",
                "auto.commit.interval.ms": 200,
                "zookeeper.session.timeout.ms": 4000,
                # Together longer than the session of a consumer that went without a word.
                "rebalance.backoff.ms": 500,
                "rebalance.max.retries": 20,
                **settings,
            },
        )
        where = ("--zookeeper", broker.connect, "--consumer.config", str(config), *args)
        log4j = log4j_file(broker.base, "WARN")
        command = java(broker.release, "kafka.tools.ConsoleConsumer", *where, log4j=log4j, heap="96m")
        self.log = broker.base / f"{name}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )

    def stop(self) -> None:
        """Have it leave the group: its registration ends with it."""
        self.process.send_signal(signal.SIGTERM)
        self.wait()

    def wait(self) -> None:
        """Wait for the end of one that was told to leave."""
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(20)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


@contextmanager
def together(*consumers: Consumer) -> Iterator[None]:
    """Live consumers, told to leave all at once: each takes a second or two over it."""
    try:
        yield
    finally:
        for consumer in consumers:
            consumer.process.send_signal(signal.SIGTERM)
        for consumer in consumers:
            consumer.wait()


def eventually(holds: Any, what: str, timeout_s: float = 60.0) -> Any:
    """What `holds()` gives as soon as it is true of it; AssertionError after the time."""
    deadline = time.monotonic() + timeout_s
    while not (found := holds()):
        assert time.monotonic() < deadline, f"never came true: {what}"
        time.sleep(0.2)
    return found


def _message(value: bytes) -> bytes:
    """A record of message format 0 without a key, with the size in front; the broker gives its offset."""
    rest = struct.pack(">bbii", 0, 0, -1, len(value)) + value
    return struct.pack(">qiI", 0, len(rest) + 4, zlib.crc32(rest)) + rest


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def _frame(broker: socket.socket) -> bytes:
    data = b""
    while len(data) < 4 or len(data) < 4 + struct.unpack_from(">i", data)[0]:
        received = broker.recv(65536)
        assert received, "the broker hung up"
        data += received
    return data[4:]


def main() -> str | None:
    """Fetch all jars; what is missing from PATH if something is."""
    if absent := missing("java", "mvn"):
        return f"the interop tests need {', '.join(absent)} on PATH"
    for release in (ZOOKEEPER, *SCALA):
        jars(release)
    return None


if __name__ == "__main__":
    sys.exit(main())
