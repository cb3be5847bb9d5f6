"""What happened in a group on a real Kafka, written as a scenario, happens again in kgroup.testing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import kgroup
import kgroup.api
from kgroup.api import Kind
from kgroup.testing import Cluster
from tests.sampled import FULL
from tests.unit.testing.test_play import (
    GROUP,
    PARTITIONS,
    PATIENCE_S,
    TOPIC,
    Part,
    People,
    committed,
    shape,
    write,
)

from .conftest import ASKED, require
from .kafka import RealKafka

pytestmark = [
    pytest.mark.interop,
    pytest.mark.skipif("kafka" not in ASKED, reason="recorded on a real Kafka, which was not asked for"),
]
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    # Else one batch has the records of several requests, which replay-log tells as one.
    "group.coordinator.append.linger.ms": "0",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
}
VICTIM = """
import sys
from confluent_kafka import Consumer
consumer = Consumer(dict(each.split("=") for each in sys.argv[2:]))
consumer.subscribe([sys.argv[1]])
while True:
    consumer.poll(0.1)
"""
SHORT = {
    "session.timeout.ms": "6000",
    "heartbeat.interval.ms": "500",
    "partition.assignment.strategy": "range",
}
LEFT_TO_CHANCE = (Kind.LEADER_CHANGED,)
"""Kafka takes the next leader of a classic group from a hash map, by random member ids."""


@pytest.fixture
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[kgroup.api.Kafka]:
    """A Kafka of its own: a group that was deleted, and was of another kind, is in the log still."""
    require("java", "mvn")
    with (
        RealKafka(SETTINGS, base=tmp_path_factory.mktemp("kafka")) as server,
        kgroup.connect(server.bootstrap) as kafka,
    ):
        kafka.create_topic(TOPIC, PARTITIONS)
        yield kafka


def killed(kafka: kgroup.api.Kafka, people: People, protocol: str) -> None:
    """A member whose process is killed: its session ends."""
    own = SHORT if protocol == "classic" else {"group.protocol": "consumer"}
    settings = {"bootstrap.servers": kafka.bootstrap, "group.id": GROUP, "client.id": "orders-3", **own}
    with subprocess.Popen(
        [sys.executable, "-c", VICTIM, TOPIC, *(f"{key}={value}" for key, value in settings.items())]
    ) as victim:
        people.settle(others=1)
        victim.kill()
    people.settle()


@pytest.mark.parametrize("protocol", ["classic", "consumer"] if FULL else ["consumer"])
def test_what_happened_on_kafka_happens_again(
    protocol: str, kafka: kgroup.api.Kafka, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    people = People(kafka, ("orders-2",), protocol)
    people.start_each("orders-0", "orders-1", "orders-2")
    people.commit("orders-0", 5)
    killed(kafka, people, protocol)
    if protocol == "consumer":
        people.close("orders-2")  # for now: a second process would be refused
    people.start_each("orders-2")
    people.restart("orders-0", "orders-1")
    people.commit("orders-1", 9)
    people.end()
    kafka.wait_for(GROUP, "empty", PATIENCE_S)
    path = tmp_path / "incident.yaml"
    assert write(kafka, path, capsys).code == 0
    recorded, offsets = kafka.history(GROUP), committed(kafka)
    with Cluster(timeout_s=PATIENCE_S) as fresh:
        assert shape(fresh.play(path), without=LEFT_TO_CHANCE) == shape(recorded, without=LEFT_TO_CHANCE)
        assert committed(fresh) == offsets
    without = (*LEFT_TO_CHANCE, Kind.COMMITTED)
    with Cluster(timeout_s=PATIENCE_S) as fresh:
        part = Part(fresh, "orders-0", protocol)
        played = fresh.play(path, part="orders-0", act=part.act, meanwhile=part.people.poll)
        part.people.end()
    assert shape(played, without=without) == shape(recorded, without=without)
