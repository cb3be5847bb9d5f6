"""`kgroup record` beside an hour of healthy deployments on a real Kafka: no incident, but of what is real."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kgroup.admin.recording.gaps import gaps_in
from kgroup.admin.recording.lines import OPENED, Judged, Looked
from kgroup.history.sources.folders import LocalFolder
from kgroup.repeating import repeating
from tests.sampled import in_full

from .conftest import require
from .kafka import RealKafka
from .recording import Recording
from .waiting import eventually

HOUR_S = 3600
pytestmark = [pytest.mark.interop, pytest.mark.timeout(HOUR_S + 600)]
GROUPS, SEATS, PARTITIONS = 10, 3, 6
DOWN_S, CALM_S = (1.0, 5.0), (20.0, 90.0)
"""How long one member is away in a deployment, and how long a group rests between two of them."""
KINDS = (
    {"partition.assignment.strategy": "range"},
    {"partition.assignment.strategy": "cooperative-sticky"},
    {"partition.assignment.strategy": "range", "group.instance.id": "seat"},
    {"group.protocol": "consumer"},
    {"group.protocol": "consumer", "group.instance.id": "seat"},
)


class Reader:
    """A consumer that polls and commits in a thread of its own until it is stopped."""

    def __init__(self, kafka: RealKafka, group: str, seat: int, settings: dict[str, str]) -> None:
        own = dict(settings)
        if "group.instance.id" in own:
            own["group.instance.id"] = f"seat-{seat}"
        if "group.protocol" not in own:
            own["session.timeout.ms"] = "10000"
        self._consumer = Consumer(
            {
                "bootstrap.servers": kafka.bootstrap,
                "group.id": group,
                "client.id": f"{group}-{seat}",
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 1_000,
                "log_level": 0,
                **own,
            }
        )
        self._consumer.subscribe([group])
        self._stopped = threading.Event()
        self.hangs = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopped.is_set():
            if self.hangs.is_set():
                self._stopped.wait(0.2)
            else:
                self._consumer.poll(0.2)
        with suppress(KafkaException):
            self._consumer.close()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()


@contextmanager
def fed(kafka: RealKafka, topics: list[str]) -> Iterator[None]:
    """Records flow into all partitions as long as the block runs."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap})

    def feed() -> None:
        for topic, number in itertools.product(topics, range(PARTITIONS)):
            producer.produce(topic, b"v", partition=number)
        producer.poll(0)

    with repeating(feed, 0.5, "feed"):
        yield
    producer.flush(30)


def deployed(kafka: RealKafka, group: str, number: int, ends_s: float, left: dict[str, list[Reader]]) -> None:
    """Roll one group again and again until it is time; its readers stay."""
    by, kind = random.Random(number), KINDS[number % len(KINDS)]
    readers = [Reader(kafka, group, seat, kind) for seat in range(SEATS)]
    left[group] = readers
    while time.monotonic() < ends_s:
        time.sleep(by.uniform(*CALM_S))
        for seat in range(SEATS):
            readers[seat].stop()
            time.sleep(by.uniform(*DOWN_S))
            readers[seat] = Reader(kafka, group, seat, kind)
            time.sleep(by.uniform(*DOWN_S))


@in_full("it takes an hour")
def test_an_hour_of_deployments_opens_no_incident_and_a_reader_that_hangs_does(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    require("java", "mvn")
    with RealKafka({"offsets.topic.num.partitions": "8"}, base=tmp_path_factory.mktemp("kafka")) as kafka:
        names = [f"rolled-{number}" for number in range(GROUPS)]
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        for made in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in names]).values():
            made.result(30)
        readers: dict[str, list[Reader]] = {}
        with fed(kafka, names), Recording(kafka, tmp_path / "kept", tmp_path, interval="10s") as recording:
            ends_s = time.monotonic() + HOUR_S
            rolls = [
                threading.Thread(target=deployed, args=(kafka, name, number, ends_s, readers))
                for number, name in enumerate(names)
            ]
            for each in rolls:
                each.start()
            for each in rolls:
                each.join()
            said = [(each.title, each.event, each.at_ms) for each in recording.changes()]
            assert said == []
            assert gaps_in(LocalFolder(recording.folder)) == ()
            assert {each.group_id for each in recording.lines(Judged) if isinstance(each, Judged)} == {*names}
            assert len(recording.lines(Looked)) > 100
            # The same eyes see one that is real.
            readers[names[0]][0].hangs.set()
            eventually(
                lambda: (
                    [each.groups for each in recording.changes() if each.event == OPENED] == [(names[0],)]
                ),
                what="the incident of the reader that hangs",
                timeout=200,
            )
        for those in readers.values():
            for reader in those:
                reader.stop()
