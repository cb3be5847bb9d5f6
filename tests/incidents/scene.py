"""What can happen in an incident: readers that are killed, frozen and started, topics that change, records.

A reader is a process of its own, so that it dies as processes do. Everything a scene starts ends with it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic, OffsetSpec

from tests.interop import toolchain
from tests.interop.driver import Driver, Member, Partition, settle
from tests.interop.jvm import LIGHT_JVM, java
from tests.interop.server import Server
from tests.interop.waiting import eventually
from tests.own_home import environment
from tests.ran import Ran

KGROUP = Path(sys.executable).with_name("kgroup")
LONG_MS = 60_000
"""A session that outlasts the questions about it."""


@dataclass(frozen=True)
class Reader(Member):
    """A consumer in a process of its own."""

    request: dict[str, Any] = field(default_factory=dict)

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
        self.driver.close()

    def end(self) -> None:
        """Whatever state it is in, the process goes."""
        if self.driver.process.poll() is None:
            self.signal(signal.SIGCONT)
            self.driver.process.kill()
            self.driver.process.wait(30)
        for pipe in (self.driver.process.stdin, self.driver.process.stdout):
            with contextlib.suppress(OSError):
                pipe.close()  # type: ignore[union-attr]


@dataclass
class Scene:
    """One incident's corner of a broker: a group and topics that begin with its name."""

    server: Server
    name: str
    folder: Path
    readers: list[Reader] = field(default_factory=list)
    _ending: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.close()
        for reader in self.readers:
            reader.end()

    @property
    def group(self) -> str:
        return self.name

    # topics

    @cached_property
    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.server.bootstrap})

    def topic(self, partitions: int = 4, name: str = "data", **config: str) -> str:
        """Make a topic."""
        topic = f"{self.name}-{name}"
        made = self.admin.create_topics([NewTopic(topic, partitions, 1, config=config)])
        made[topic].result(30)
        return topic

    def delete_topic(self, topic: str) -> None:
        self.admin.delete_topics([topic])[topic].result(30)
        eventually(lambda: topic not in self.admin.list_topics(timeout=10).topics, 30, f"{topic} is gone")

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
        producer = Producer({"bootstrap.servers": self.server.bootstrap, "linger.ms": 5})
        numbers = range(partitions) if isinstance(partitions, int) else partitions

        eventually(lambda: len(self.admin.list_topics(topic, 10).topics[topic].partitions) > max(numbers))
        given = {} if at_ms is None else {"timestamp": at_ms}
        for number in numbers:
            for value in range(each):
                producer.produce(topic, f"v{value}".encode(), partition=number, **given)
        assert producer.flush(30) == 0

    @contextlib.contextmanager
    def _repeating(self, what: Callable[[], Any], every: float) -> Iterator[None]:
        stopped = threading.Event()

        def go() -> None:
            while not stopped.wait(every):
                what()

        thread = threading.Thread(target=go)
        thread.start()
        try:
            yield
        finally:
            stopped.set()
            thread.join()

    def repeat(self, what: Callable[[], Any], every: float = 0.5) -> None:
        """Do this again and again, until the scene ends."""
        self._ending.enter_context(self._repeating(what, every))

    def flow(self, topic: str, partitions: int = 4, every: float = 0.5) -> None:
        """A record into each partition again and again, until the scene ends."""
        producer = Producer({"bootstrap.servers": self.server.bootstrap})

        def feed() -> None:
            for number in range(partitions):
                producer.produce(topic, b"flow", partition=number)
            producer.poll(0)

        self._ending.callback(producer.flush, 10)
        self.repeat(feed, every)

    # readers

    def reader(
        self,
        label: str,
        topics: str | list[str],
        *,
        client: str = "librdkafka",
        instance: str | None = None,
        session_ms: int = 3_000,
        protocol: str = "classic",
        assignor: str | None = None,
        commits: bool = True,
        group: str | None = None,
        **config: str,
    ) -> Reader:
        """Start a consumer in a process of its own, client id `label`, that commits as it reads or not."""
        if client == "java":
            command = java("kgroup.interop.Driver", jvm=LIGHT_JVM, classpath=toolchain.driver_classpath())
        else:
            command = [sys.executable, "-m", "tests.interop.python_driver"]
        settings = {key.replace("_", "."): value for key, value in config.items()}
        if commits:
            settings = {"enable.auto.commit": "true", "auto.commit.interval.ms": "300", **settings}
        request = {
            "client": client,
            "name": label,
            "bootstrap": self.server.bootstrap,
            "group": group or self.group,
            "instance": instance,
            "topics": [topics] if isinstance(topics, str) else topics,
            "pattern": None,
            "protocol": protocol,
            "assignor": assignor or ("range" if protocol == "classic" else None),
            "session_ms": session_ms,
            "config": settings,
        }
        return self._started(command, request)

    def crowd(self, label: str, topic: str, count: int) -> list[Reader]:
        """Start so many Java consumers in one process, client ids `label`-0 and so on."""
        first = self.reader(f"{label}-0", topic, client="java", session_ms=LONG_MS)
        rest = []
        for number in range(1, count):
            request = {**first.request, "name": f"{label}-{number}"}
            first.driver.call("start", **request)
            rest.append(Reader(first.driver, request["name"], request))
        return [first, *rest]

    def again(self, reader: Reader, **changed: Any) -> Reader:
        """Start the reader's program once more, with the settings it had but for these."""
        return self._started(list(reader.driver.process.args), {**reader.request, **changed})  # type: ignore[arg-type]

    def _started(self, command: list[str], request: dict[str, Any]) -> Reader:
        driver = Driver(command, self.folder / f"{request['name']}-{len(self.readers)}.log")
        reader = Reader(driver, request["name"], request)
        self.readers.append(reader)
        driver.call("start", **request)
        return reader

    def settled(self, topic: str, partitions: int, *readers: Reader, each: int = 1) -> None:
        """Wait until these readers share the topic's partitions."""
        settle(list(readers), {(topic, number) for number in range(partitions)}, each)

    def committed(self, group: str | None = None) -> dict[Partition, int]:
        """The group's committed offsets, as a client that is not kgroup sees them."""
        group = group or self.group
        asked = self.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
        rows = asked[group].result(20).topic_partitions
        return {(each.topic, each.partition): each.offset for each in rows if each.offset >= 0}

    def until_read(self, topic: str, offsets: dict[int, int], group: str | None = None) -> None:
        """Wait until at least these offsets are committed."""

        def done() -> bool:
            seen = self.committed(group)
            assert all(seen.get((topic, number), -1) >= offset for number, offset in offsets.items()), seen
            return True

        eventually(done, 60, f"{offsets} committed", every=0.3)

    def until_exactly(self, topic: str, offsets: dict[int, int]) -> None:
        """Wait until these, lower than before perhaps, are the topic's committed offsets."""

        def same() -> bool:
            seen = {number: offset for (name, number), offset in self.committed().items() if name == topic}
            assert seen == offsets, seen
            return True

        eventually(same, 60, f"{offsets} committed", every=0.3)

    def until(self, what: Callable[[], Any], why: str, timeout: float = 60) -> Any:
        return eventually(what, timeout, why, every=0.3)

    def sleep(self, seconds: float) -> None:
        """Time that is part of the incident: a lag that grows, a silence that lasts."""
        time.sleep(seconds)

    # kgroup

    def kgroup(self, *argv: str, output: str = "json", stdin: str = "") -> Ran:
        """Run a command as an operator does, in a process of its own without a terminal."""
        where = [] if "-b" in argv else ["-b", self.server.bootstrap]
        command = [str(KGROUP), *argv, *where, "-o", output]
        done = subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env=environment(self.folder) | {"PATH": os.environ["PATH"]},
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def asked(self, cell: str, argv: tuple[str, ...] = ()) -> Ran:
        """What one of the exam's commands, or this one, says of the group."""
        words = argv or (("replay-log", "--verify") if cell == "verify" else (cell,))
        return self.kgroup(words[0], self.group, *words[1:])

    def members(self) -> list[dict[str, Any]]:
        """The members as `describe` has them."""
        found: list[dict[str, Any]] = self.asked("describe").group(self.group)["members"]
        return found
