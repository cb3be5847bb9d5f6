"""`kgroup record` beside a real Kafka: killed, over restarts of the broker, it has each batch once."""

from __future__ import annotations

import contextlib
import json
import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kgroup.admin.diagnose.doctor import examine_all
from kgroup.admin.discovery import ClusterView, machine_ms
from kgroup.admin.read.lag_report import measure
from kgroup.admin.recording.gaps import gaps_in
from kgroup.admin.recording.lines import Ended, Judged, Line, Members
from kgroup.admin.recording.look import Terms
from kgroup.admin.recording.recorder import Limits, Recorder
from kgroup.cli.views.checkups import document_of
from kgroup.cli.views.lagging import documents
from kgroup.client.settings import ConnectionSettings, parse_bootstrap
from kgroup.client.transport import SocketTransport
from kgroup.history.sources.folders import LocalFolder
from kgroup.history.sources.live import LiveLog, LiveTopic
from kgroup.history.sources.logs import OffsetsLog, segment_logs
from tests.receiver import Receiver
from tests.recorded_lag import as_recorded
from tests.sampled import FULL, in_full

from .conftest import require
from .kafka import RealKafka
from .record_incidents import Member, classic, consumer
from .recording import Recording
from .server import Server
from .verifying import kgroup
from .waiting import eventually

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1800)]
TOPIC, GROUP = "recorded", "recorded-readers"
MEMBER = {"session.timeout.ms": "6000", "heartbeat.interval.ms": "500", "topics": TOPIC}
KILLS, RESTARTS = (20, 5) if FULL else (6, 1)
DOWN_S = 600
AT_ONCE_MS = 3_000
"""The time that one moment may take: beyond it the clocks of the test and of the broker disagree."""
BEYOND = 1_000_000
"""An offset beyond the end of every log here: an error of the group that commits it."""


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKafka]:
    require("java", "mvn")
    with RealKafka({"offsets.topic.num.partitions": "4"}, base=tmp_path_factory.mktemp("kafka")) as running:
        yield running


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


def test_killed_again_and_again_each_batch_and_each_incident_is_there_once(
    kafka: RealKafka, tmp_path: Path
) -> None:
    """It is killed at any moment, the broker is restarted, the disk is full, and nobody takes its posts."""
    by = random.Random(49)
    with contextlib.ExitStack() as ends:
        receiver = Receiver()
        ends.callback(receiver.close)
        posts = ("--patience", "1s", "--notify", receiver.url)
        recording = ends.enter_context(Recording(kafka, tmp_path / "recording", tmp_path, *posts))
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic(TOPIC, 2, 1)])[TOPIC].result(20)
        producer = Producer({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
        member = Member(kafka, GROUP, **MEMBER)
        ends.callback(member.kill)
        member.owns(2)

        def work() -> None:
            for number in range(40):
                producer.produce(TOPIC, str(number).encode(), partition=number % 2)
            assert producer.flush(60) == 0
            member.commit()

        def killed() -> None:
            time.sleep(by.uniform(0, 1.5))
            recording.end(signal.SIGKILL)
            work()
            recording.begin()

        for number in range(KILLS // 2):
            group = f"broken-{number}"
            receiver.closed = number % 3 == 1
            work()
            commit(kafka, group, BEYOND)
            killed()
            eventually(lambda g=group: events(recording, g) == ["opened"], what=f"{group} is an incident")  # type: ignore[misc]
            if number % max(1, KILLS // 2 // RESTARTS) == 0:
                kafka.restart()
                recording.looks()
            if number % 3 == 2:
                with recording.full_disk():
                    eventually(lambda: "nothing is recorded until" in recording.told[-1], what="a full disk")
                    work()
                recording.looks()
            commit(kafka, group, 0)
            killed()
            eventually(lambda g=group: events(recording, g) == ["opened", "closed"], what="it is over")  # type: ignore[misc]
        receiver.closed = False
        member.kill()
        eventually(lambda: any(map(_empty, recording.lines())), what="the member is seen to be gone")
        eventually(lambda: recorded(recording.folder) == in_kafka(kafka), what="every batch, once")
        changes = recording.changes()
        due = [(f"inc_{each.id}-{each.number}", each.event) for each in changes]
        eventually(lambda: len({id_ for id_, _ in receiver.taken}) >= len(due), what="all are delivered")
        assert recording.end(signal.SIGTERM) == 0
    delivered = [(id_, body["event"].removeprefix("incident_")) for id_, body in receiver.taken]
    # A post that was taken as the recorder was killed arrives again, with the same id.
    assert list(dict.fromkeys(delivered)) == due and [each.number for each in changes] == sorted(
        {each.number for each in changes}
    )
    lines = recording.lines()
    assert gaps_in(LocalFolder(recording.folder)) == ()
    assert sum(isinstance(line, Ended) for line in lines) == 1
    for key in {each.key for each in changes}:
        told = [each.event for each in changes if each.key == key and each.event != "updated"]
        assert told == ["opened", "closed"] * (len(told) // 2), (key, told)
    hosts = {
        person.host
        for line in lines
        if isinstance(line, Members) and line.group_id == GROUP
        for person in line.members or ()
    }
    assert {host and host.strip("/") for host in hosts} == {"127.0.0.1"}


@in_full("ten minutes by the clock; the test above has a receiver that refuses for seconds")
def test_a_receiver_that_is_down_for_ten_minutes_gets_each_change_once_and_in_order(
    kafka: RealKafka, tmp_path: Path
) -> None:
    """Incidents begin and end meanwhile, and the recorder is killed, and ended, in the middle of it."""
    with contextlib.ExitStack() as ends:
        receiver = Receiver()
        ends.callback(receiver.close)
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic("down", 1, 1)])["down"].result(20)
        posts = ("--patience", "0s", "--notify", receiver.url)
        recording = ends.enter_context(Recording(kafka, tmp_path / "recording", tmp_path, *posts))
        recording.looks()
        receiver.closed, began_s = True, time.monotonic()
        while (passed_s := time.monotonic() - began_s) < DOWN_S:
            group = f"down-{len(recording.changes()) // 2}"
            commit(kafka, group, BEYOND, "down")
            eventually(lambda g=group: events(recording, g) == ["opened"], what=f"{group} is an incident")  # type: ignore[misc]
            if int(passed_s) % 60 >= 45:
                recording.end(signal.SIGKILL if passed_s < DOWN_S / 2 else signal.SIGTERM)
                recording.begin()
            commit(kafka, group, 0, "down")
            eventually(lambda g=group: events(recording, g) == ["opened", "closed"], what="it is over")  # type: ignore[misc]
        assert receiver.refused and receiver.taken == []
        receiver.closed = False
        due = [(f"inc_{each.id}-{each.number}", each.event) for each in recording.changes()]
        eventually(lambda: len(receiver.taken) >= len(due), timeout=120, what="all are delivered")
        assert recording.end(signal.SIGTERM) == 0
    delivered = [(id_, body["event"].removeprefix("incident_")) for id_, body in receiver.taken]
    print(f"{len(due)} changes, {receiver.refused} refused")
    assert delivered == due


def test_at_ten_moments_the_recording_says_what_was_said_live(kafka: RealKafka, tmp_path: Path) -> None:
    """`doctor`, `lag` and `blame`, of groups whose members join, are killed, and whose topic is deleted."""
    now_ms = [0]
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
    for topic in ("kept", "dropped"):
        admin.create_topics([NewTopic(topic, 4, 1)])[topic].result(20)
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
    members: list[Member] = []

    def join(group: str, owned: int, *, protocol: str = "classic", instance: str | None = None) -> None:
        settings = (consumer if protocol == "consumer" else classic)(instance, topics="kept")
        members.append(Member(kafka, group, **settings))
        members[-1].owns(owned)

    def produce() -> None:
        for number in range(40):
            producer.produce("kept", str(number).encode(), partition=number % 4)
        assert producer.flush(60) == 0

    def offsets_are_gone() -> bool:
        blames = _blames(kgroup("blame", "moment-tool", "-b", kafka.bootstrap)[1])
        return "deletion" in {each["about"] for each in blames.get("moment-tool", ())}

    acts: list[Callable[[], object]] = [
        lambda: commit(kafka, "moment-tool", 0, "dropped"),
        lambda: join("moment-classic", 4, instance="i-0"),
        lambda: commit(kafka, "moment-tool", BEYOND, "dropped"),
        lambda: join("moment-next", 4, protocol="consumer"),
        lambda: (produce(), members[0].commit(), members[1].commit()),
        lambda: join("moment-classic", 2, instance="i-1"),
        lambda: members[1].kill(),
        lambda: (admin.delete_topics(["dropped"])["dropped"].result(30), eventually(offsets_are_gone)),
        lambda: (members[0].kill(), members[2].owns(4)),
        lambda: (produce(), commit(kafka, "moment-tool", 3, "kept")),
    ]
    groups = ("moment-classic", "moment-next", "moment-tool")
    with contextlib.ExitStack() as ends:
        ends.callback(lambda: [each.kill() for each in members])
        transport = SocketTransport(ConnectionSettings(parse_bootstrap(kafka.bootstrap)))
        ends.callback(transport.close)
        view = ClusterView(transport, now_ms=lambda: now_ms[0])
        terms = Terms(patience_s=0.0)
        recorder = Recorder(view, LocalFolder(tmp_path), lambda cluster: (groups, ()), terms, Limits())
        said = {}

        def moment() -> tuple[int, list[Any], list[Any]] | None:
            """What is said live at the moment of a look, unless the machine takes too long for one moment."""
            now_ms[0] = machine_ms()
            recorder.poll()
            recorder.look()
            checkups = examine_all(view, groups, window_ms=terms.window_ms, patience_s=0.0).checkups
            told = [json.loads(json.dumps(document_of(checkup))) for checkup in checkups]
            lags = json.loads(json.dumps([*documents(measure(view, groups, times=True).groups)]))
            return (now_ms[0], told, lags) if machine_ms() - now_ms[0] < AT_ONCE_MS else None

        for act in acts:
            act()
            at_ms, checkups, lags = eventually(moment, what="a moment")
            said[at_ms] = checkups, lags, _blames(kgroup("blame", *groups, "-b", kafka.bootstrap)[1])
    assert {each["verdict"] for checkups, *_ in said.values() for each in checkups} >= {"healthy", "sick"}
    assert any(group["total_lag"] for _, lags, _ in said.values() for group in lags)
    for at_ms, (checkups, lags, blames) in said.items():
        _, told = kgroup("doctor", *groups, "--at", str(at_ms), "--files", str(tmp_path))
        for now, before in zip(told["groups"], checkups, strict=True):
            assert now == before
        _, behind = kgroup("lag", "moment-*", "--time", "--at", str(at_ms), "--files", str(tmp_path))
        for now, before in zip(behind["groups"], lags, strict=True):
            assert now == as_recorded(before, now)
        _, blamed = kgroup("blame", *groups, "--until", str(at_ms), "--files", str(tmp_path))
        assert _blames(blamed) == blames


def _blames(told: Any) -> Any:
    found = {each["group_id"]: each["blames"] for each in told["groups"]}
    return {name: those for name, those in found.items() if those}


def commit(kafka: Server, group: str, offset: int, topic: str = TOPIC) -> None:
    """Commit an offset for a group without members, as a tool does."""
    there = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, offset)])
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
    eventually(lambda: _accepted(admin, there), what=f"{offset} is committed", every=0.3)


def _accepted(admin: AdminClient, there: ConsumerGroupTopicPartitions) -> bool:
    try:
        (done,) = admin.alter_consumer_group_offsets([there]).values()
        return all(each.error is None for each in done.result(20).topic_partitions)
    except (KafkaException, TimeoutError):
        return False  # the coordinator is not loaded yet, or the machine is busy


def events(recording: Recording, group: str) -> list[str]:
    """What was recorded of the incident of a group."""
    return [each.event for each in recording.changes() if each.key == f"group {group}"]


def _empty(line: Line) -> bool:
    return isinstance(line, Judged) and line.group_id == GROUP and line.state == "Empty"
