"""`kgroup record` beside a real Kafka: killed, over a restart of the broker, it has each batch once."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kgroup.admin.recording.days import files_of, read
from kgroup.admin.recording.lines import Began, Gap, Judged, Line, Looked, Members
from kgroup.client.settings import ConnectionSettings, parse_bootstrap
from kgroup.client.transport import SocketTransport
from kgroup.history.sources.live import LiveLog, LiveTopic
from kgroup.history.sources.logs import OffsetsLog, segment_logs
from tests.own_home import environment

from .conftest import require
from .kafka import RealKafka
from .record_incidents import Member
from .server import Server
from .waiting import eventually

pytestmark = pytest.mark.interop
TOPIC, GROUP = "recorded", "recorded-readers"


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKafka]:
    require("java", "mvn")
    with RealKafka({"offsets.topic.num.partitions": "4"}, base=tmp_path_factory.mktemp("kafka")) as running:
        yield running


class Recording:
    """A recorder in a process of its own, of one folder."""

    def __init__(self, kafka: Server, folder: Path, home: Path) -> None:
        self.folder = folder
        command = [sys.executable, "-m", "kgroup", "record", str(folder), "-b", kafka.bootstrap]
        self._argv = [*command, "--interval", "1s", "--patience", "1s", "--every", "200ms"]
        self._home = home
        self.begin()

    def begin(self) -> None:
        self.process = subprocess.Popen(
            self._argv, env=environment(self._home), stderr=subprocess.DEVNULL, start_new_session=True
        )

    def end(self, how: signal.Signals) -> int:
        self.process.send_signal(how)
        return self.process.wait(60)

    def lines(self) -> list[Line]:
        found = []
        for file in files_of(self.folder):
            for line in read(file):
                assert not hasattr(line, "number") or hasattr(line, "at_ms"), line
                found.append(line)
        return found  # type: ignore[return-value]

    def seen(self, kind: type) -> int:
        return sum(isinstance(line, kind) for line in self.lines())

    def looks(self) -> None:
        """Wait for a look that is still to come."""
        before = self.seen(Looked)
        eventually(lambda: self.seen(Looked) > before, what="another look")


def offsets(log: OffsetsLog) -> list[int]:
    return [header.base_offset for _, headers in log.batches() for header in headers]


def in_kafka(kafka: Server) -> dict[int, list[int]]:
    transport = SocketTransport(ConnectionSettings(parse_bootstrap(kafka.bootstrap)))
    with contextlib.closing(transport):
        topic = LiveTopic(transport)
        found = {number: offsets(LiveLog(topic, number)) for number in topic.partitions}
    return {number: those for number, those in found.items() if those}


def recorded(folder: Path) -> dict[int, list[int]]:
    return {log.partition: offsets(log) for log in segment_logs([folder])}


def test_killed_and_over_a_restart_of_the_broker_each_batch_is_there_once(
    kafka: RealKafka, tmp_path: Path
) -> None:
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.create_topics([NewTopic(TOPIC, 2, 1)])[TOPIC].result(20)
    producer = Producer({"bootstrap.servers": kafka.bootstrap})

    def produce() -> None:
        for number in range(40):
            producer.produce(TOPIC, str(number).encode(), partition=number % 2)
        assert producer.flush(60) == 0

    settings = {"session.timeout.ms": "6000", "heartbeat.interval.ms": "500", "topics": TOPIC}
    produce()
    with contextlib.ExitStack() as ends:
        recording = Recording(kafka, tmp_path / "recording", tmp_path)
        ends.callback(recording.end, signal.SIGKILL)
        member = Member(kafka, GROUP, **settings)
        ends.callback(member.kill)
        member.owns(2)
        for _ in range(3):
            member.commit()
            recording.looks()
            recording.end(signal.SIGKILL)
            produce()
            member.commit()
            produce()
            recording.begin()
        member.commit()
        recording.looks()
        kafka.restart()
        recording.looks()
        produce()
        member.commit()
        member.kill()
        eventually(lambda: any(map(_empty, recording.lines())), what="the member is seen to be gone")
        eventually(lambda: recorded(recording.folder) == in_kafka(kafka), what="every batch, once")
        assert recording.end(signal.SIGTERM) == 0
    lines = recording.lines()
    assert not any(isinstance(line, Gap) for line in lines)
    assert sum(isinstance(line, Began) and not line.goes_on for line in lines) == 4
    hosts = {
        person.host
        for line in lines
        if isinstance(line, Members) and line.group_id == GROUP
        for person in line.members or ()
    }
    assert {host and host.strip("/") for host in hosts} == {"127.0.0.1"}


def _empty(line: Line) -> bool:
    return isinstance(line, Judged) and line.group_id == GROUP and line.state == "Empty"
