"""One of two real brokers dies, and `__consumer_offsets` has fewer replicas in sync than it must have."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Place

from kgroup.admin.change.committing import store
from kgroup.admin.discovery import ClusterView
from kgroup.admin.topics import create_topic
from kgroup.client.retry import Retry
from kgroup.client.settings import ConnectionSettings, parse_bootstrap
from kgroup.client.transport import SocketTransport
from kgroup.domain import OffsetAndMetadata, TopicPartition
from tests.own_home import environment

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
    "min.insync.replicas": "2",
}
GROUP, TOPIC = "billing", "orders"
HEALTHY, SICK = 0, 8


def test_the_coordinator_is_named_and_no_member_is_blamed(tmp_path: Path) -> None:
    """Its reader was called dead and was to be removed, though the coordinator refuses what it commits."""
    require("java", "mvn")
    folders = tmp_path / "first", tmp_path / "second"
    for folder in folders:
        folder.mkdir()

    def doctor() -> tuple[int, Any]:
        argv = [EXECUTABLE, "doctor", GROUP, "-b", first.bootstrap, "-o", "json"]
        done = subprocess.run(argv, env=environment(tmp_path), capture_output=True, text=True, timeout=90)
        return done.returncode, json.loads(done.stdout)

    with (
        RealKafka(SETTINGS, heap="256m", base=folders[0]) as first,
        Follower(first, folders[1], SETTINGS) as second,
        SocketTransport(ConnectionSettings(parse_bootstrap(first.bootstrap))) as transport,
    ):
        eventually(lambda: len(transport.nodes()) == 2)
        create_topic(ClusterView(transport), TOPIC, 1)
        consumer = Consumer({"bootstrap.servers": first.bootstrap, "group.id": GROUP, "log_level": 0})
        consumer.subscribe([TOPIC])
        eventually(lambda: consumer.poll(0.1) or consumer.assignment())
        consumer.commit(offsets=[Place(TOPIC, 0, 0)], asynchronous=False)
        eventually(lambda: doctor()[0] == HEALTHY)
        second.kill9()
        eventually(lambda: doctor()[0] == SICK)
        (group,) = doctor()[1]["data"]["groups"]
        told = {each["code"]: each for each in group["findings"]}["KG123"]
        assert "has 1 of 2 replicas in sync" in told["message"]
        assert told["hint"] == "start broker 2, or wait until it has caught up"
        at = {TopicPartition(TOPIC, 0): OffsetAndMetadata(0)}
        codes, failed = store(ClusterView(transport, Retry(5.0)), "another", at)
        assert failed or 0 not in codes.values()
        second.start()
        eventually(lambda: doctor()[0] == HEALTHY)
        consumer.close()
