"""What can happen in an incident: readers that are killed, frozen and started, topics that change, records.

A reader is a process of its own, so that it dies as processes do. Everything a scene starts ends with it.
"""

from __future__ import annotations

import contextlib
import itertools
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic, OffsetSpec

from kgroup.repeating import repeating
from tests.interop import toolchain
from tests.interop.driver import ROOT, Driver, Member, Partition, settle
from tests.interop.foreign import builds
from tests.interop.jvm import LIGHT_JVM, java
from tests.interop.server import Server
from tests.interop.waiting import eventually
from tests.own_home import environment
from tests.ran import Ran

KGROUP = Path(sys.executable).with_name("kgroup")
LONG_MS = 300_000
"""A session that outlasts the questions about it."""
FIVE_MINUTES = r"(300 s|5 min|5m 00s)"
"""How a duration of five minutes may be written."""
PATIENCE_S = 120
"""How long anything is waited for, on machines that are busy."""


@dataclass(frozen=True)
class Reader(Member):
    """A consumer in a process of its own."""

    request: dict[str, Any] = field(default_factory=dict)
    alone: bool = True

    def signal(self, number: int) -> None:
        self.driver.process.send_signal(number)

    def kill(self) -> None:
        """kill -9: it gets no chance to say anything."""
        self.driver.process.kill()
        self.driver.process.wait(30)

    def freeze(self, seconds: int = 600) -> None:
        """Its poll loop hangs for so long; the process lives, and its background threads go on."""
        self.driver.begin("freeze", name=self.name, seconds=seconds)

    def close(self, leave: bool | None = None) -> None:
        """A clean end, as an application does it."""
        super().close(leave)
        if self.alone:
            self.driver.close()


def _ended(driver: Driver) -> None:
    """Whatever state it is in, the process goes."""
    if driver.process.poll() is None:
        driver.process.send_signal(signal.SIGCONT)
        driver.process.kill()
        driver.process.wait(30)
    for pipe in (driver.process.stdin, driver.process.stdout):
        with contextlib.suppress(OSError):
            pipe.close()  # type: ignore[union-attr]


@dataclass
class Scene:
    """One incident's corner of a broker: a group and topics that begin with its name."""

    server: Server
    name: str
    folder: Path
    readers: list[Reader] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    _processes: Iterator[int] = field(default_factory=itertools.count)
    _halted: threading.Event = field(default_factory=threading.Event)
    _ending: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True)
        self.groups = self.groups or [self.group]
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.close()

    @property
    def group(self) -> str:
        return self.name

    # topics

    @cached_property
    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.server.bootstrap, "log_level": 0})

    def topic(self, partitions: int = 4, name: str = "data", **config: str) -> str:
        """Make a topic."""
        topic = f"{self.name}-{name}"
        made = self.admin.create_topics([NewTopic(topic, partitions, 1, config=config)])
        made[topic].result(30)
        return topic

    def delete_topic(self, topic: str) -> None:
        self.admin.delete_topics([topic])[topic].result(30)
        eventually(lambda: topic not in self.admin.list_topics(timeout=10).topics, what=f"{topic} is gone")

    def add_partitions(self, topic: str, total: int) -> None:
        self.admin.create_partitions([NewPartitions(topic, total)])[topic].result(30)
        eventually(lambda: len(self.admin.list_topics(topic, 10).topics[topic].partitions) == total)

    def delete_records(self, topic: str, before: dict[int, int]) -> None:
        """What retention does: the log begins at these offsets."""
        wanted = [TopicPartition(topic, number, offset) for number, offset in before.items()]
        for each in self.admin.delete_records(wanted).values():
            each.result(30)

    def ends(self, topic: str) -> dict[int, int]:
        """Where the topic's logs end."""
        numbers = self.admin.list_topics(topic, 10).topics[topic].partitions
        asked = self.admin.list_offsets({TopicPartition(topic, n): OffsetSpec.latest() for n in numbers})
        return {place.partition: future.result(20).offset for place, future in asked.items()}

    def produce(self, topic: str, each: int, partitions: int | range = 4, at_ms: int | None = None) -> None:
        """So many records into each of these partitions; `at_ms` is the time their producer gives them."""
        producer = Producer({"bootstrap.servers": self.server.bootstrap, "log_level": 0})
        numbers = range(partitions) if isinstance(partitions, int) else partitions

        eventually(lambda: len(self.admin.list_topics(topic, 10).topics[topic].partitions) > max(numbers))
        given = {} if at_ms is None else {"timestamp": at_ms}
        for number in numbers:
            for value in range(each):
                producer.produce(topic, f"v{value}".encode(), partition=number, **given)
        assert producer.flush(30) == 0

    @contextlib.contextmanager
    def _repeating(self, what: Callable[[], Any], every: float) -> Iterator[None]:
        with repeating(lambda: None if self._halted.is_set() else what(), every, "scene"):
            yield

    @contextlib.contextmanager
    def quiet(self) -> Iterator[None]:
        """Nothing is written meanwhile: what is compared with the cluster may not move."""
        self._halted.set()
        self.sleep(1.5)
        yield
        self._halted.clear()

    def repeat(self, what: Callable[[], Any], every: float = 0.5) -> None:
        """Do this again and again, until the scene ends."""
        self._ending.enter_context(self._repeating(what, every))

    def flow(self, topic: str, partitions: int = 4, every: float = 0.5) -> None:
        """A record into each partition again and again, until the scene ends."""
        producer = Producer({"bootstrap.servers": self.server.bootstrap, "log_level": 0})

        def feed() -> None:
            for number in range(partitions):
                producer.produce(topic, b"flow", partition=number)
            producer.poll(0)

        self._ending.callback(producer.flush, 10)
        self.repeat(feed, every)

    def allow(self, user: str, topic: str) -> None:
        """The user may read the topic, in the incident's group."""
        self._acl("--add", user, "--topic", topic)
        self._acl("--add", user, "--group", self.group)

    def forbid(self, user: str, topic: str) -> None:
        """The user may read the topic no more; what is allowed on the group stays."""
        self._acl("--remove", user, "--topic", topic, "--force")

    def _acl(self, how: str, user: str, *what: str) -> None:
        rule = ("--allow-principal", f"User:{user}", "--operation", "READ", *what)
        self.server.tool("kafka-acls", how, *rule)

    # readers

    def reader(
        self,
        label: str,
        topics: str | list[str],
        *,
        client: str = "librdkafka",
        instance: str | None = None,
        session_ms: int = 6_000,
        protocol: str = "classic",
        assignor: str | None = None,
        commits: bool = True,
        group: str | None = None,
        process: Driver | None = None,
        **config: str,
    ) -> Reader:
        """Start a consumer, client id `label`, that commits as it reads or not; it may share a process.

        `config` is in the client's names, with underscores for dots.
        """
        settings: dict[str, Any] = {key.replace("_", "."): value for key, value in config.items()}
        if commits and client == "kafka-python":
            settings |= {"enable_auto_commit": True, "auto_commit_interval_ms": 300}
        elif commits:
            settings = {"enable.auto.commit": "true", "auto.commit.interval.ms": "300", **settings}
        request = {
            "client": client,
            "name": label,
            "bootstrap": settings.pop("bootstrap.servers", self.server.bootstrap),
            "group": group or self.group,
            "instance": instance,
            "topics": [topics] if isinstance(topics, str) else topics,
            "pattern": None,
            "protocol": protocol,
            "assignor": assignor or ("range" if protocol == "classic" else None),
            "session_ms": session_ms,
            "config": settings,
        }
        return self._started(request, process)

    def caught_up(
        self, label: str, each: int, partitions: int = 4, *, at: int | None = None, **options: Any
    ) -> tuple[str, Reader]:
        """Make a topic with so many records in each partition, and a reader that has read all of them.

        With `at` it commits only when it is told to, and has committed this offset everywhere.
        """
        topic = self.topic(partitions)
        self.produce(topic, each, partitions)
        reader = self.reader(label, topic, commits=at is None, **options)
        self.settled(topic, partitions, reader)
        if at is None:
            self.until_read(topic, dict.fromkeys(range(partitions), each))
        else:
            reader.commit({(topic, number): at for number in range(partitions)})
        return topic, reader

    def sharing(
        self, readers: Mapping[str, Mapping[str, Any]], partitions: int = 4, **common: Any
    ) -> tuple[str, list[Reader]]:
        """Make a topic with a flow, and readers with own and common options that share it evenly."""
        topic = self.topic(partitions)
        self.flow(topic, partitions)
        made = [self.reader(label, topic, **{**common, **own}) for label, own in readers.items()]
        self.settled(topic, partitions, *made, each=partitions // len(made))
        return topic, made

    def again(self, reader: Reader, **changed: Any) -> Reader:
        """Start the reader's program once more, with the settings it had but for these."""
        return self._started({**reader.request, **changed}, None if reader.alone else reader.driver)

    def _started(self, request: dict[str, Any], process: Driver | None) -> Reader:
        driver = process or self.process(request["client"])
        name = request["name"] if process is None else f"{request['name']}.{len(self.readers)}"
        reader = Reader(driver, name, request, process is None)
        self.readers.append(reader)
        driver.call("start", **{**request, "name": name})
        return reader

    def process(self, client: str) -> Driver:
        """A process for consumers of a client; it is ended with the scene.

        `java` is the newest, `java-3.7.2` that of another release, and all others are Python's.
        """
        if client.startswith("java-"):
            path = builds.java_driver(client.removeprefix("java-"))
            command = java("kgroup.foreign.Driver", jvm=LIGHT_JVM, classpath=path)
        elif client == "java":
            command = java("kgroup.interop.Driver", jvm=LIGHT_JVM, classpath=toolchain.driver_classpath())
        else:
            command = [sys.executable, "-m", "tests.interop.python_driver"]
        driver = Driver(command, self.folder / f"client-{next(self._processes)}.log")
        self._ending.callback(_ended, driver)
        return driver

    def program(self, main: str, *arguments: str) -> None:
        """Start a program of Kafka's own; it goes on until the scene ends."""
        with (self.folder / f"program-{next(self._processes)}.log").open("wb") as log:
            process = subprocess.Popen(
                java(main, *arguments), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self._ending.callback(process.wait, 30)
        self._ending.callback(process.kill)

    def at_end(self, what: Callable[[], Any]) -> None:
        """Do this when the scene ends."""
        self._ending.callback(what)

    def settled(self, topic: str, partitions: int, *readers: Reader, each: int = 1) -> None:
        """Wait until these readers share the topic's partitions."""
        settle(list(readers), {(topic, number) for number in range(partitions)}, each, PATIENCE_S)

    def committed(self, group: str | None = None) -> dict[Partition, int]:
        """The group's committed offsets, as a client that is not kgroup sees them."""
        group = group or self.group
        # librdkafka's client may wait a minute for its answer once its broker was started again.
        admin = AdminClient({"bootstrap.servers": self.server.bootstrap})
        asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
        rows = asked[group].result(20).topic_partitions
        return {(each.topic, each.partition): each.offset for each in rows if each.offset >= 0}

    def until_read(self, topic: str, offsets: dict[int, int], group: str | None = None) -> None:
        """Wait until at least these offsets are committed."""

        def done() -> bool:
            seen = self.committed(group)
            assert all(seen.get((topic, number), -1) >= offset for number, offset in offsets.items()), seen
            return True

        eventually(done, PATIENCE_S, f"{offsets} committed", every=0.3)

    def until_regular(self, topic: str) -> None:
        """Wait until all partitions of a topic with a flow were committed often enough to show how often."""
        for _ in range(4):
            self.until_read(topic, {number: end + 1 for number, end in self.ends(topic).items()})

    def until_exactly(self, topic: str, offsets: dict[int, int]) -> None:
        """Wait until these, lower than before perhaps, are the topic's committed offsets."""

        def same() -> bool:
            seen = {number: offset for (name, number), offset in self.committed().items() if name == topic}
            assert seen == offsets, seen
            return True

        eventually(same, PATIENCE_S, f"{offsets} committed", every=0.3)

    def until(self, what: Callable[[], Any], why: str, timeout: float = PATIENCE_S) -> Any:
        return eventually(what, timeout, why, every=0.3)

    def sleep(self, seconds: float) -> None:
        """Time that is part of the incident: a lag that grows, a silence that lasts."""
        time.sleep(seconds)

    # kgroup

    def kgroup(self, *argv: str, clock_s: int = 0) -> Ran:
        """Run a command as an operator does, in a process of its own without a terminal.

        With `clock_s` the operator's clock is wrong by so much.
        """
        return self.ended(self.begin(*argv, clock_s=clock_s))

    def ended(self, command: subprocess.Popen[str]) -> Ran:
        """What a command said, once it has ended."""
        try:
            out, err = command.communicate(timeout=150)
        finally:
            command.kill()
        return Ran(command.returncode, out, err)

    def begin(self, *argv: str, clock_s: int = 0) -> subprocess.Popen[str]:
        """Start a command, which goes on beside the incident."""
        where = () if "-b" in argv else ("-b", self.server.bootstrap)
        form = () if "-o" in argv else ("-o", "json")
        wrong = [sys.executable, "-m", "tests.incidents.wrong_clock", str(clock_s)]
        return subprocess.Popen(
            [*(wrong if clock_s else [str(KGROUP)]), *argv, *where, *form],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(self.folder) | {"PYTHONPATH": str(ROOT)},
        )

    def asked(self, cell: str, argv: tuple[str, ...] = ()) -> Ran:
        """What one of the exam's commands, or this one, says of the incident's groups."""
        words = argv or (("replay-log", "--verify") if cell == "verify" else (cell,))
        if cell != "verify":
            return self.kgroup(words[0], *self.groups, *words[1:])
        with self.quiet():
            return self.kgroup(words[0], *self.groups, *words[1:])

    def found_members(self) -> list[dict[str, Any]]:
        """The members, none as long as the group is not there."""
        ran = self.asked("describe")
        return [member for group in ran.data["groups"] for member in group["members"] or ()]

    def members(self) -> list[dict[str, Any]]:
        """The members as `describe` has them."""
        found: list[dict[str, Any]] = self.asked("describe").group(self.group)["members"]
        return found
