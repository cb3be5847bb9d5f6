"""A real Kafka in the place of the embedded cluster: its time passes by itself, and its clients are real."""

from __future__ import annotations

import contextlib
import heapq
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as Offset
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from kgroup.client.settings import ConnectionSettings, parse_bootstrap
from kgroup.client.transport import SocketTransport
from kgroup.domain import OFFSETS_TOPIC, TopicPartition
from kgroup.protocol.batches import batches_in
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kgroup.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tests.interop import toolchain
from tests.interop.coordinating import coordinates
from tests.interop.driver import Driver
from tests.interop.jvm import java
from tests.interop.kafka import AUTHORIZED, SHARED, RealKafka

from .asking import SKEW_MS, Ask, Ran, ran
from .machine import NOW_MS, PREFIX, SETTINGS, USERS, VALUE_BYTE

R = TypeVar("R", bound=Message)
HOSTS = 4
GROUP = 32
"""The type of a group among the resources that have settings."""
LIMIT_MS = 300_000
"""The longest session that a client of librdkafka may have with its default limit between polls."""
BROKER = {
    **{k: v for k, v in SETTINGS.items() if "authorizer" not in k and k != "super.users"},
    **SHARED,
    **AUTHORIZED,
    "super.users": "User:ANONYMOUS",
    "group.initial.rebalance.delay.ms": 500,
    "group.consumer.heartbeat.interval.ms": 3_000,
    "group.share.max.share.sessions": 4_000,
    "log.cleaner.backoff.ms": 200,
    "offsets.topic.num.partitions": 8,
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        + " ".join(f'user_{name}="{name}"' for name in USERS)
        + ";"
    ),
}


Where = dict[str, str | int | float | bool]


class RealMachine:
    """One broker, clients in processes of their own, and what is planned; NOW_MS is when to look."""

    def __init__(self, release: str, base: Path) -> None:
        self._base = base
        self.kafka = RealKafka(BROKER, ("SASL_PLAINTEXT",), heap="1g", base=base / "kafka")
        self.kafka.base.mkdir()
        self.kafka.kafka = release
        self.looks_at_ms = 0.0
        """The wall clock's time that is NOW_MS."""
        self.begun = False
        self._planned: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(16)
        self._busy: set[Future[Any]] = set()
        self._topics: list[NewTopic] = []
        self._open: list[Producer] = []
        self._hosts: dict[str, Driver] = {}
        self._turn = count()
        self.ended = threading.Event()

    def __enter__(self) -> RealMachine:
        self.kafka.__enter__()
        coordinates(self.kafka)
        self._where: Where = {"bootstrap.servers": self.kafka.bootstrap, "log_level": 0}
        self.admin = AdminClient(self._where)
        self.producer = Producer({**self._where, "linger.ms": 0})
        self._transport = SocketTransport(ConnectionSettings(parse_bootstrap(self.kafka.bootstrap)))
        self._grant()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self._pool.shutdown(cancel_futures=True)
        for host in self._hosts.values():
            host.process.kill()
            host.close()
        self._transport.close()
        self.kafka.close()

    # time

    @property
    def now_ms(self) -> int:
        return NOW_MS + int(time.time() * 1000 - self.looks_at_ms)

    def at(self, ms: float, act: Callable[[], None]) -> None:
        """Plan an action."""
        with self._lock:
            heapq.heappush(self._planned, (ms, next(self._order), act))

    def run(self, until_ms: int) -> None:
        """Let the planned happen, each at its own time."""
        while (act := self._due(until_ms)) or self.now_ms < until_ms:
            if act is not None:
                act()
                continue
            self.producer.poll(0)
            time.sleep(0.02)

    def _due(self, until_ms: int) -> Callable[[], None] | None:
        with self._lock:
            due = self._planned and self._planned[0][0] <= min(self.now_ms, until_ms)
            return heapq.heappop(self._planned)[2] if due else None

    def do(self, act: Callable[[], None]) -> None:
        """Do in the background what waits for an answer."""
        task = self._pool.submit(act)
        self._busy.add(task)
        task.add_done_callback(self._busy.discard)

    def rest(self) -> None:
        """Wait until nothing is under way in the background."""
        self.producer.flush(30)
        while self._busy:
            time.sleep(0.02)

    # requests

    def ask(
        self, request: Message, answer: type[R], version: int | None = None, who: str = "", node: int = 1
    ) -> R:
        """The answer of the broker."""
        low = 0 if version is None else version
        found = self._transport.request(1, request, min_version=low, max_version=version)
        assert isinstance(found, answer), found
        return found

    # topics and logs

    def create_topic(self, name: str, partitions: int, **config: str) -> None:
        """Make a topic, or note it to be made with all others."""
        settings = {key.replace("_", "."): value for key, value in config.items()}
        if settings.get("cleanup.policy") == "compact":
            # Each batch gets a segment, and the cleaner comes at once.
            settings |= {"segment.ms": "100", "min.cleanable.dirty.ratio": "0.001"}
        topic = NewTopic(name, partitions, 1, config=settings)
        if self.begun:
            self.done(self.admin.create_topics([topic]))
        else:
            self._topics.append(topic)

    def make_topics(self) -> None:
        """Make all topics noted so far."""
        for first in range(0, len(self._topics), 100):
            self.done(self.admin.create_topics(self._topics[first : first + 100], operation_timeout=60))
        # The broker knows them some time after the controller.
        while not {topic.topic for topic in self._topics} <= self.admin.list_topics(timeout=30).topics.keys():
            time.sleep(0.2)
        self.begun = True

    @staticmethod
    def done(futures: Mapping[Any, Any]) -> None:
        for each in futures.values():
            each.result(60)

    def topic_id(self, topic: str) -> bytes:
        asked = MetadataRequest(topics=(MetadataRequestTopic(name=topic),))
        return self.ask(asked, MetadataResponse).topics[0].topic_id

    def delete_topic(self, name: str) -> None:
        self.done(self.admin.delete_topics([name]))

    def add_partitions(self, topic: str, to: int) -> None:
        self.done(self.admin.create_partitions([NewPartitions(topic, to)]))

    def delete_before(self, place: TopicPartition, offset: int) -> None:
        self.producer.flush(30)
        self.done(self.admin.delete_records([Offset(*place, offset)]))

    def damage(self, place: TopicPartition, offset: int) -> range:
        """Change a bit of a value in the batch with this offset on disk; return its offsets."""
        self.producer.flush(30)
        (path,) = (self.kafka.data_dir / f"{place.topic}-{place.partition}").glob("*.log")
        batch = next(batch for batch in batches_in(path.read_bytes()) if batch.last_offset >= offset)
        with path.open("r+b") as log:
            log.seek(batch.position + batch.size + VALUE_BYTE)
            (byte,) = log.read(1)
            log.seek(-1, 1)
            log.write(bytes([byte ^ 1]))
        return range(batch.base_offset, batch.last_offset + 1)

    def leader_of(self, place: TopicPartition) -> int:
        return 1

    def configure_group(self, group: str, config: Mapping[str, str]) -> None:
        """Set what only a group has; librdkafka knows no groups among the resources."""
        changes = tuple(
            AlterableConfig(name=key, config_operation=0, value=value) for key, value in config.items()
        )
        wanted = AlterConfigsResource(resource_type=GROUP, resource_name=group, configs=changes)
        answer = self.ask(
            IncrementalAlterConfigsRequest(resources=(wanted,)), IncrementalAlterConfigsResponse
        )
        assert answer.responses[0].error_code == 0, answer

    def produce(self, place: TopicPartition, count: int, stamps_ms: int = 0) -> None:
        """Write records, also to a partition that the producer does not know yet."""
        for number in range(count):
            for left in reversed(range(20)):
                try:
                    self._send(self.producer, place, number, stamps_ms)
                    break
                except KafkaException:
                    if not left:
                        raise
                    self.producer.list_topics(place.topic, 10)
                    time.sleep(0.05)

    @staticmethod
    def _send(producer: Producer, place: TopicPartition, number: int, stamps_ms: int) -> None:
        at_ms = int(time.time() * 1000) + stamps_ms
        producer.produce(place.topic, b"v", f"k{number}".encode(), partition=place.partition, timestamp=at_ms)

    def read(self, places: Sequence[TopicPartition]) -> dict[TopicPartition, list[int]]:
        """The offsets of what a reader of committed records gets of each partition."""
        reader = self.assigned("exam", places, isolation_level="read_committed", enable_partition_eof=True)
        found: dict[TopicPartition, list[int]] = {place: [] for place in places}
        left = set(places)
        deadline = time.monotonic() + 60
        while left and time.monotonic() < deadline:
            for message in reader.consume(1_000, 0.2):
                topic, number, offset = message.topic(), message.partition(), message.offset()
                assert topic is not None and number is not None
                place, error = TopicPartition(topic, number), message.error()
                if error is None and offset is not None:
                    found[place].append(offset)
                elif error is not None and error.code() == KafkaError._PARTITION_EOF:
                    left.discard(place)
        reader.close()
        assert not left, left
        return found

    def transaction(self, place: TopicPartition, count: int, kind: str, stamps_ms: int) -> None:
        """Write records in a transaction that is committed, aborted, or left open."""
        name = f"{place.topic}-{place.partition}-{next(self._order)}"
        settings = {"transactional.id": name, "transaction.timeout.ms": 600_000}
        producer = Producer({**self._where, **settings})
        producer.init_transactions(30)
        producer.begin_transaction()
        for number in range(count):
            self._send(producer, place, number, stamps_ms)
        producer.flush(30)
        if kind == "open":
            self._open.append(producer)
        elif kind == "aborted":
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)

    def epoch_of(self, place: TopicPartition) -> int:
        """What is committed here but by clients has no leader epoch."""
        return -1

    def commit(self, group: str, place: TopicPartition, offset: int) -> None:
        """Commit as a tool does: as no member."""
        rows = [ConsumerGroupTopicPartitions(group, [Offset(*place, offset)])]
        answer = self.admin.alter_consumer_group_offsets(rows)[group].result(30)
        assert all(each.error is None for each in answer.topic_partitions), answer.topic_partitions

    def assigned(self, group: str, places: Sequence[TopicPartition], **more: str | bool) -> Consumer:
        """A consumer with assign()."""
        settings = {"group.id": group, "enable.auto.commit": False, "auto.offset.reset": "earliest"}
        settings |= {name.replace("_", "."): value for name, value in more.items()}
        made = Consumer({**self._where, **settings})
        made.assign([Offset(*place) for place in places])
        return made

    # clients

    def host(self, doom: str = "") -> Driver:
        """The process for a client: one that is killed at its time, or the next of the others."""
        name = doom or f"host-{next(self._turn) % HOSTS}"
        if name not in self._hosts:
            command = [sys.executable, "-m", "tests.interop.python_driver"]
            self._hosts[name] = Driver(command, self._base / f"{name}.log")
        return self._hosts[name]

    def java(self) -> Driver:
        """The JVM with all members of share groups."""
        if "java" not in self._hosts:
            command = java("kgroup.interop.Driver", classpath=toolchain.driver_classpath())
            self._hosts["java"] = Driver(command, self._base / "java.log")
        return self._hosts["java"]

    def kill(self, doom: str) -> None:
        """Kill a process, with all clients in it."""
        if (host := self._hosts.pop(doom, None)) is not None:
            host.process.kill()
            host.close()

    def states(self) -> dict[str, Any]:
        """What each living client says of itself, by its name."""
        asked = [host.begin("states") for name, host in list(self._hosts.items()) if name != "java"]
        found: dict[str, Any] = {}
        for each in asked:
            with contextlib.suppress(Exception):  # a host that was killed meanwhile
                found |= each.result(30)
        return found

    # who may see what

    def _grant(self) -> None:
        def may(user: str, kind: ResourceType, name: str, *operations: AclOperation) -> list[AclBinding]:
            shape = (
                ResourcePatternType.LITERAL if kind is ResourceType.BROKER else ResourcePatternType.PREFIXED
            )
            allow = AclPermissionType.ALLOW
            return [AclBinding(kind, name, shape, f"User:{user}", "*", each, allow) for each in operations]

        o, t = AclOperation, ResourceType.TOPIC
        rules: list[AclBinding] = []
        for user in USERS:
            if user != "groups":
                rules += may(user, ResourceType.GROUP, PREFIX, o.DESCRIBE, o.DESCRIBE_CONFIGS)
            if user != "history":
                rules += may(user, t, OFFSETS_TOPIC, o.READ, o.DESCRIBE, o.DESCRIBE_CONFIGS)
            if user != "topics":
                rules += may(user, t, PREFIX, o.DESCRIBE, *(() if user == "read" else (o.READ,)))
                if user != "settings":
                    rules += may(user, t, PREFIX, o.DESCRIBE_CONFIGS)
            cluster = (o.DESCRIBE,) if user == "settings" else (o.DESCRIBE, o.DESCRIBE_CONFIGS)
            rules += may(user, ResourceType.BROKER, "kafka-cluster", *cluster)
        self.done(self.admin.create_acls(rules))

    @contextlib.contextmanager
    def seen(self, visibility: str, clock: str) -> Iterator[Ask]:
        """Let the commands see the broker as this one does, by a clock that is right or wrong."""
        door = ["-b", self.kafka.bootstrap]
        if visibility in USERS:
            login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
            login |= {"sasl.username": visibility, "sasl.password": visibility}
            door = ["-b", self.kafka.address("SASL_PLAINTEXT")]
            door += [part for key, value in login.items() for part in ("-X", f"{key}={value}")]
        right, skew = time.time_ns, SKEW_MS[clock] * 1_000_000

        def timed(*argv: str) -> Ran:
            begin = self.now_ms
            found = ran(*argv, door=door)
            return replace(found, moments=(*range(begin, self.now_ms, 1_000), self.now_ms))

        with tempfile.TemporaryDirectory() as home, contextlib.ExitStack() as patched:
            where = {"KGROUP_CONFIG": f"{home}/none.toml", "XDG_CONFIG_HOME": home, "HOME": home}
            patched.enter_context(mock.patch.dict(os.environ, where))
            patched.enter_context(mock.patch.object(time, "time_ns", lambda: right() + skew))
            yield timed
