"""One of two real brokers dies, and a coordinator's topic has fewer replicas in sync than it must have."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka import TopicPartition as Place

from kgroup.admin.change.committing import store
from kgroup.admin.discovery import ClusterView
from kgroup.admin.topics import create_topic
from kgroup.client.retry import Retry
from kgroup.client.settings import ConnectionSettings, parse_bootstrap
from kgroup.client.transport import SocketTransport
from kgroup.domain import OffsetAndMetadata, TopicPartition
from tests.own_home import environment
from tests.sampled import in_full

from .conftest import require
from .kafka import RealKafka
from .kgroup_server import EXECUTABLE
from .test_half_a_cluster import Follower
from .waiting import eventually

pytestmark = pytest.mark.interop
SETTINGS = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "offsets.topic.replication.factor": "2",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.replication.factor": "2",
}
GROUP, TOPIC = "billing", "orders"
HEALTHY, SICK = 0, 8


@dataclass
class Pair:
    """Two brokers, which keep a copy each of the coordinators' topics, and a topic."""

    first: RealKafka
    second: RealKafka
    transport: SocketTransport
    home: Path

    def doctor(self) -> tuple[int, Any]:
        argv = [str(EXECUTABLE), "doctor", GROUP, "-b", self.first.bootstrap, "-o", "json"]
        done = subprocess.run(argv, env=environment(self.home), capture_output=True, text=True, timeout=90)
        return done.returncode, json.loads(done.stdout)

    def findings(self) -> dict[str, Any]:
        (group,) = self.doctor()[1]["data"]["groups"]
        return {each["code"]: each for each in group["findings"]}


@contextmanager
def pair(home: Path, **more: str) -> Iterator[Pair]:
    """Start them with these settings."""
    require("java", "mvn")
    settings = SETTINGS | {name.replace("_", "."): value for name, value in more.items()}
    folders = home / "first", home / "second"
    for folder in folders:
        folder.mkdir()
    with (
        RealKafka(settings, heap="256m", base=folders[0]) as first,
        Follower(first, folders[1], settings) as second,
        SocketTransport(ConnectionSettings(parse_bootstrap(first.bootstrap))) as transport,
    ):
        eventually(lambda: len(transport.nodes()) == 2)
        create_topic(ClusterView(transport), TOPIC, 1, 2)
        yield Pair(first, second, transport, home)


def test_the_coordinator_is_named_and_no_member_is_blamed(tmp_path: Path) -> None:
    """Its reader was called dead and was to be removed, though the coordinator refuses what it commits."""
    with pair(tmp_path, min_insync_replicas="2") as brokers:
        consumer = Consumer({"bootstrap.servers": brokers.first.bootstrap, "group.id": GROUP, "log_level": 0})
        consumer.subscribe([TOPIC])
        eventually(lambda: consumer.poll(0.1) or consumer.assignment())
        consumer.commit(offsets=[Place(TOPIC, 0, 0)], asynchronous=False)
        eventually(lambda: brokers.doctor()[0] == HEALTHY)
        brokers.second.kill9()
        eventually(lambda: brokers.doctor()[0] == SICK)
        told = brokers.findings()["KG123"]
        assert "has 1 of 2 replicas in sync" in told["message"]
        assert told["hint"] == "start broker 2, or wait until it has caught up"
        at = {TopicPartition(TOPIC, 0): OffsetAndMetadata(0)}
        codes, failed = store(ClusterView(brokers.transport, Retry(5.0)), "another", at)
        assert failed or 0 not in codes.values()
        brokers.second.start()
        eventually(lambda: brokers.doctor()[0] == HEALTHY)
        consumer.close()


@in_full("its records have to wait for half a minute; tests/unit/admin/test_brokers_side.py plays the same")
def test_a_reader_that_commits_in_transactions_is_not_blamed(tmp_path: Path) -> None:
    """Its group's coordinator stores everything, that of its transactions nothing."""
    with pair(tmp_path, transaction_state_log_min_isr="2") as brokers:
        where = {"bootstrap.servers": brokers.first.bootstrap, "log_level": 0}
        consumer = Consumer({**where, "group.id": GROUP, "auto.offset.reset": "earliest"})
        producer = Producer({**where, "transactional.id": "pipe"})
        consumer.subscribe([TOPIC])
        eventually(lambda: consumer.poll(0.1) or consumer.assignment())
        producer.init_transactions(60)

        def commit(offset: int) -> None:
            producer.begin_transaction()
            producer.produce(TOPIC, b"v", partition=0)
            at = [Place(TOPIC, 0, offset)]
            producer.send_offsets_to_transaction(at, consumer.consumer_group_metadata(), 20)
            producer.commit_transaction(20)

        commit(0)
        eventually(lambda: brokers.doctor()[0] == HEALTHY)
        brokers.second.kill9()
        eventually(lambda: "KG310" in brokers.findings())
        with pytest.raises(KafkaException):
            commit(1)
        assert brokers.doctor()[0] == SICK
        told = brokers.findings()
        assert "has 1 of 2 replicas in sync" in told["KG124"]["message"]
        assert told["KG310"]["hint"].startswith("see KG124 first")
        consumer.close()
