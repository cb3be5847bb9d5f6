"""What is committed is of another log: a broker lost the disk of its partition, or the commit was copied."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from kgroup.admin.change.committing import store
from kgroup.admin.discovery import ClusterView
from kgroup.admin.topics import create_topic
from kgroup.client.settings import ConnectionSettings, parse_bootstrap
from kgroup.client.transport import SocketTransport
from kgroup.domain import OffsetAndMetadata, TopicPartition
from tests.own_home import environment

from .conftest import require
from .kafka import RealKafka
from .kgroup_server import EXECUTABLE
from .waiting import eventually

pytestmark = pytest.mark.interop
GROUP, TOPIC, READ, LATER = "billing", "orders", 30, 50
HEALTHY, SICK = 0, 8


@contextmanager
def admin(kafka: RealKafka) -> Iterator[ClusterView]:
    with SocketTransport(ConnectionSettings(parse_bootstrap(kafka.bootstrap))) as transport:
        yield ClusterView(transport)


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[RealKafka]:
    """A broker of its own, with a topic of one partition and these records."""
    require("java", "mvn")
    with RealKafka(heap="256m", base=tmp_path) as kafka:
        with admin(kafka) as cluster:
            create_topic(cluster, TOPIC, 1, 1)
        produce(kafka, READ)
        yield kafka


def produce(kafka: RealKafka, count: int) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for number in range(count):
        producer.produce(TOPIC, str(number).encode(), partition=0)
    assert producer.flush(30) == 0


def read(kafka: RealKafka, until: int) -> None:
    """Let a reader go on until its group has committed this offset, and leave."""
    config = {"bootstrap.servers": kafka.bootstrap, "group.id": GROUP, "auto.offset.reset": "earliest"}
    consumer = Consumer({**config, "enable.auto.commit": False, "log_level": 0})
    consumer.subscribe([TOPIC])

    def at_the_end() -> bool:
        record = consumer.poll(0.1)
        return record is not None and record.error() is None and record.offset() == until - 1

    eventually(at_the_end)
    consumer.commit(asynchronous=False)
    consumer.close()


def asked(kafka: RealKafka, home: Path, *argv: str) -> tuple[int, Any]:
    command = [str(EXECUTABLE), *argv, "-b", kafka.bootstrap, "-o", "json"]
    done = subprocess.run(command, env=environment(home), capture_output=True, text=True, timeout=90)
    return done.returncode, json.loads(done.stdout)["data"]


def test_what_a_broker_lost_is_told_after_the_log_has_grown_again(kafka: RealKafka, tmp_path: Path) -> None:
    """Its lag was 0, or 20 of 50 records, and nothing said that the others were never read."""
    read(kafka, READ)
    assert asked(kafka, tmp_path, "doctor", GROUP)[0] == HEALTHY
    kafka.kill9()
    shutil.rmtree(kafka.data_dir / f"{TOPIC}-0")
    kafka.start()
    for more in (READ, LATER - READ):
        produce(kafka, more)
        code, data = asked(kafka, tmp_path, "doctor", GROUP)
        (group,) = data["groups"]
        told = {finding["code"]: finding["message"] for finding in group["findings"]}
        assert code == SICK
        assert f"a new leader cut the log at 0, before the commit {READ}" in told["KG301"]
        for command in ("describe", "lag"):
            (group,) = asked(kafka, tmp_path, command, GROUP)[1]["groups"]
            (row,) = group["offsets"]
            assert (row["status"]["name"], row["lag"]) == ("beyond-end", None)
    read(kafka, LATER)
    assert asked(kafka, tmp_path, "doctor", GROUP)[0] == HEALTHY


def console_read(kafka: RealKafka) -> int:
    """The records that Kafka's console consumer, which is a Java one, gets for the group."""
    asks = ("--topic", TOPIC, "--group", GROUP, "--max-messages", str(READ), "--timeout-ms", "8000")
    ran = kafka.tool("kafka-console-consumer", *asks, check=False)
    return len(ran.stdout.split())


def test_a_commit_of_another_cluster_is_told_before_java_clients_wait_for_its_leader(
    kafka: RealKafka, tmp_path: Path
) -> None:
    """Its lag was 25, as if a reader had but to be started; one that is gets nothing."""
    with admin(kafka) as cluster:
        at = {TopicPartition(TOPIC, 0): OffsetAndMetadata(5, leader_epoch=5)}
        assert store(cluster, GROUP, at)[0] == {TopicPartition(TOPIC, 0): 0}
    assert console_read(kafka) == 0
    code, data = asked(kafka, tmp_path, "doctor", GROUP)
    (group,) = data["groups"]
    (told,) = [finding for finding in group["findings"] if finding["code"] == "KG319"]
    assert code == SICK
    assert "leader epoch 5, and the leader's is 0" in told["evidence"][0]
    where = ("--all-topics", "--to-current", "--execute", "--yes")
    assert asked(kafka, tmp_path, "reset-offsets", GROUP, *where)[0] == HEALTHY
    assert console_read(kafka) == READ - 5
    assert asked(kafka, tmp_path, "doctor", GROUP)[0] == HEALTHY
