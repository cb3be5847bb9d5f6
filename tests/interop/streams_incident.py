"""The incident of tests/data/incidents that needs Kafka Streams: an application's life, on either broker."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from .driver import Driver
from .foreign import builds
from .jvm import LIGHT_JVM, java, tool
from .server import Server
from .waiting import eventually

STREAMS_BROKER = {
    "group.streams.min.session.timeout.ms": 6000,
    "group.streams.session.timeout.ms": 6000,
    "group.streams.min.heartbeat.interval.ms": 500,
    "group.streams.heartbeat.interval.ms": 500,
    "group.streams.initial.rebalance.delay.ms": 500,
    "group.streams.assignment.interval.ms": 0,
}
COMMAND = "org.apache.kafka.tools.streams.StreamsGroupCommand"
PARTITIONS = 2


class Application:
    """The instances of a word count, of one thread each."""

    def __init__(self, server: Server, group: str, folder: Path, protocol: str = "streams") -> None:
        self.server, self.group, self.folder, self.protocol = server, group, folder, protocol
        self.instances: dict[str, Driver] = {}

    def start(self, name: str) -> None:
        settings = {
            "application.id": self.group,
            "bootstrap.servers": self.server.bootstrap,
            "client.id": name,
            "state.dir": str(self.folder / name),
            "group.protocol": self.protocol,
            "replication.factor": "1",
            "commit.interval.ms": "200",
            "statestore.cache.max.bytes": "0",
            "main.consumer.auto.offset.reset": "earliest",
        }
        given = [f"{key}={value}" for key, value in settings.items()]
        names = (f"{self.group}-in", f"{self.group}-out")
        command = java("kgroup.foreign.WordCount", *names, *given, jvm=LIGHT_JVM, classpath=builds.apps())
        self.instances[name] = Driver(command, self.folder / f"{name}.log")

    def end(self, name: str, *, kill: bool = False) -> None:
        """A crash, or a clean shutdown."""
        instance = self.instances.pop(name)
        if kill:
            instance.process.kill()
        instance.close()

    def settle(self, active: dict[str, int], standby: int = 0) -> None:
        """Wait until each instance has so many active tasks, and all together so many standbys."""

        def shared() -> bool:
            rows: dict[str, Any] = {name: each.call("state") for name, each in self.instances.items()}
            assert {name: len(row["active"]) for name, row in rows.items()} == active, rows
            assert sum(len(row["standby"]) for row in rows.values()) == standby, rows
            assert all(row["state"] == "RUNNING" for row in rows.values()), rows
            return True

        eventually(shared, what=f"{active} {standby}")

    def feed(self) -> None:
        """Have every task commit something, once."""
        producer = Producer({"bootstrap.servers": self.server.bootstrap})
        for number in range(PARTITIONS):
            producer.produce(f"{self.group}-in", b"alpha beta gamma delta", partition=number)
        producer.flush(30)
        admin = AdminClient({"bootstrap.servers": self.server.bootstrap})

        def committed() -> bool:
            asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(self.group)])
            told = asked[self.group].result(30).topic_partitions
            assert len({place.topic for place in told}) == 2, told
            return True

        eventually(committed, every=0.5)


def streams_application(server: Server, group: str) -> None:
    """Two processes count words; a standby is asked for, one process is killed, is back, and all close."""
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    topics = [NewTopic(f"{group}-in", PARTITIONS, 1), NewTopic(f"{group}-out", 1, 1)]
    for made in admin.create_topics(topics).values():
        made.result(30)
    with tempfile.TemporaryDirectory() as folder:
        app = Application(server, group, Path(folder))
        try:
            app.start("s0")
            app.settle({"s0": 4})
            app.start("s1")
            app.settle({"s0": 2, "s1": 2})
            app.feed()
            settings = ("--entity-type", "groups", "--entity-name", group)
            change = ("--alter", "--add-config", "streams.num.standby.replicas=1")
            server.tool("kafka-configs", *settings, *change)
            app.settle({"s0": 2, "s1": 2}, standby=2)
            app.end("s1", kill=True)
            app.settle({"s0": 4})
            app.start("s1")
            app.settle({"s0": 2, "s1": 2}, standby=2)
            app.end("s1")
            app.settle({"s0": 4})
            app.end("s0")
        finally:
            for name in list(app.instances):
                app.end(name)
    where = ("--bootstrap-server", server.bootstrap)
    eventually(lambda: tool(COMMAND, *where, "--delete", "--group", group), every=2)
