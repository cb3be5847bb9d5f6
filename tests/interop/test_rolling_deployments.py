"""Healthy rolling deployments on a real Kafka: nothing in the log is suspicious, no rebalance unexplained.

Each kind of group is rolled while records flow and everybody commits: every member is stopped and comes back,
one after the other; ten times with KGROUP_ROLLINGS=10. `make interop-full` rolls every kind twice, with and
without static members, `make interop` once, in one of the two ways.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kgroup.repeating import repeating
from tests.sampled import FULL, in_full

from .conftest import SETTINGS, Case, require
from .driver import Client, Driver, Member, settle
from .foreign import builds
from .foreign.workers import Workers
from .jvm import LIGHT_JVM, java
from .kafka import RealKafka
from .verifying import kgroup
from .waiting import eventually

ROUNDS = int(os.environ.get("KGROUP_ROLLINGS", "2" if FULL else "1"))
pytestmark = [pytest.mark.interop, pytest.mark.timeout(120 + 150 * ROUNDS)]
MEMBERS = 3
PARTITIONS = 6
KINDS: dict[str, dict[str, str]] = {
    "eager": {"assignor": "range"},
    "sticky": {"assignor": "sticky"},
    "cooperative": {"assignor": "cooperative-sticky"},
    "consumer-protocol": {"protocol": "consumer"},
}
STREAMS = {
    "commit.interval.ms": "200",
    "replication.factor": "1",
    "main.consumer.session.timeout.ms": "10000",
    "main.consumer.heartbeat.interval.ms": "300",
    "main.consumer.auto.offset.reset": "earliest",
    "num.stream.threads": "1",
}


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKafka]:
    require("java", "javac", "mvn")
    with RealKafka(SETTINGS, base=tmp_path_factory.mktemp("rolling")) as running:
        yield running


@pytest.fixture
def rolled(
    kafka: RealKafka, drivers: Callable[[str], Driver], request: pytest.FixtureRequest
) -> Iterator[Case]:
    made = Case(kafka, drivers("java"), f"roll-{request.node.callspec.id}", [])  # type: ignore[attr-defined]
    yield made
    for member in made.members:
        member.driver.begin("close", name=member.name, leave=None).exception(30)


@contextmanager
def records(case: Case, topic: str) -> Iterator[None]:
    """Records flow into each partition as long as the block runs."""
    numbers = itertools.count()

    def feed() -> None:
        number = next(numbers)
        rows = [[partition, f"word{number % 7} word{number % 3}"] for partition in range(PARTITIONS)]
        case.call("produce", topic=topic, rows=rows)

    with repeating(feed, 0.2, "feed"):
        yield


def story(case: Case, group: str) -> list[dict[str, Any]]:
    """The events of a healthy group: none suspicious, no rebalance that is not explained."""
    code, told = kgroup("replay-log", group, "-b", case.server.bootstrap)
    assert code == 0 and told["coverage"][0]["from_the_start"]
    events: list[dict[str, Any]] = told["events"]
    assert [(e["detail"], e["cause"]) for e in events if e["suspicious"] or "suspicious" in e["detail"]] == []
    rebalances = [e for e in events if e["event"] in ("rebalance-completed", "rebalance-started")]
    unexplained = [e for e in rebalances if not e["cause"] or "records do not tell" in e["cause"]]
    assert rebalances and unexplained == []
    return events


def everybody_reads(members: list[Member]) -> None:
    """Each member has read something since now, so it has something to commit."""
    before = [member.state().read for member in members]
    eventually(lambda: all(m.state().read > n for m, n in zip(members, before, strict=True)), what="records")


@pytest.mark.parametrize(
    ("kind", "static"),
    [
        pytest.param(kind, static, id=f"{kind}-{'static' if static else 'dynamic'}")
        for number, kind in enumerate(KINDS)
        for static in (False, True)
        if FULL or number % 2 == static
    ],
)
def test_consumers(rolled: Case, java_client: Client, kind: str, static: bool) -> None:
    topic, options = rolled.topic(PARTITIONS), KINDS[kind]
    everything = rolled.partitions(topic, PARTITIONS)

    def join(seat: int) -> Member:
        instance = f"seat-{seat}" if static else None
        return rolled.join(java_client, topic, instance=instance, commits=True, **options)

    with records(rolled, topic):
        members = [join(seat) for seat in range(MEMBERS)]
        settle(members, everything, each=2)
        for _, seat in itertools.product(range(ROUNDS), range(MEMBERS)):
            everybody_reads(members)
            rolled.close(members[seat])
            if not static:
                settle([m for m in members if m is not members[seat]], everything)
            members[seat] = join(seat)
            settle(members, everything, each=2)
        everybody_reads(members)
    events = story(rolled, rolled.group)
    kinds = [event["event"] for event in events]
    if static:
        assert kinds.count("member-replaced") >= ROUNDS * MEMBERS
    else:
        assert kinds.count("rebalance-completed") >= ROUNDS * MEMBERS
    if kind == "cooperative" and not static:
        assert [e for e in events if "onPartitionsRevoked" in (e["cause"] or "")]
        assert [e for e in events if "cooperative hand-over" in (e["cause"] or "")]


class Instances:
    """The instances of one Streams application."""

    def __init__(self, case: Case, folder: Path, **settings: str) -> None:
        self.case = case
        self.folder = folder
        self.settings = settings
        self.running: dict[str, Driver] = {}
        self._starts = itertools.count()

    def start(self, name: str, **more: str) -> None:
        own = {
            "application.id": self.case.group,
            "bootstrap.servers": self.case.server.bootstrap,
            "client.id": name,
            "state.dir": str(self.folder / name),
        }
        settings = [f"{k}={v}" for k, v in {**STREAMS, **self.settings, **own, **more}.items()]
        names = (f"{self.case.group}-in", f"{self.case.group}-out")
        command = java("kgroup.foreign.WordCount", *names, *settings, jvm=LIGHT_JVM, classpath=builds.apps())
        self.running[name] = Driver(command, self.folder / f"{name}-{next(self._starts)}.log")

    def settle(self) -> None:
        """Wait until all run, and all tasks of both subtopologies are somebody's."""

        def shared() -> bool:
            rows = [each.call("state") for each in self.running.values()]
            assert all(row["state"] == "RUNNING" for row in rows), rows
            held = [task for row in rows for task in row["active"]]
            assert len(held) == len(set(held)) == 2 * PARTITIONS, rows
            assert all(row["active"] for row in rows), rows
            return True

        eventually(shared, what="the instances share all tasks")

    def close(self, name: str | None = None) -> None:
        for each in [name] if name else list(self.running):
            self.running.pop(each).close()


@pytest.fixture
def streams(rolled: Case, tmp_path: Path) -> Iterator[Instances]:
    rolled.topic(PARTITIONS, "in")
    rolled.topic(2, "out")
    made = Instances(rolled, tmp_path)
    yield made
    made.close()


@in_full("an application that moves to the streams protocol is rolled before and after it")
@pytest.mark.parametrize("guarantee", ["at_least_once"])
def test_streams(rolled: Case, streams: Instances, guarantee: str) -> None:
    """The second instance is given what the first lets go of, one generation later."""
    streams.settings["processing.guarantee"] = guarantee
    with records(rolled, f"{rolled.group}-in"):
        for name in ("s0", "s1"):
            streams.start(name)
            streams.settle()
        for _, name in itertools.product(range(ROUNDS), ("s0", "s1")):
            streams.close(name)
            streams.start(name)
            streams.settle()
    events = story(rolled, rolled.group)
    assert [e for e in events if "cooperative hand-over" in (e["cause"] or "")]


@pytest.mark.parametrize("to", ["streams"])
def test_a_streams_application_that_moves_to_the_streams_protocol(
    rolled: Case, streams: Instances, to: str
) -> None:
    """KIP-1071: the group is empty while its protocol changes, and is no other group afterwards."""
    with records(rolled, f"{rolled.group}-in"):
        streams.start("s0")
        streams.settle()
        streams.close()
        where = ("-b", rolled.server.bootstrap)
        eventually(lambda: kgroup("describe", rolled.group, *where)[1]["groups"][0]["state"] == "Empty")
        streams.start("s0", **{"group.protocol": to})
        streams.settle()
        code, told = kgroup("replay-log", rolled.group, *where)
        kinds = [event["event"] for event in told["events"]]
        assert code == 0 and "group-deleted" not in kinds
        (turned,) = [event for event in told["events"] if event["event"] == "upgraded"]
        assert turned["type"] == "streams" and turned["detail"].startswith("classic → streams")
        _, blamed = kgroup("blame", rolled.group, *where)
        assert "deletion" not in {each["about"] for each in blamed["groups"][0]["blames"]}
        code, verdict = kgroup("replay-log", rolled.group, "--verify", *where)
        (row,) = verdict["groups"]
        assert (code, row["verdict"], row["differences"]) == (0, "same", [])
        assert row["not_compared"] == []


@in_full("foreign/test_described has workers of Connect that go and come back")
@pytest.mark.parametrize("protocol", ["sessioned"])
def test_connect(rolled: Case, tmp_path: Path, protocol: str) -> None:
    topic = rolled.topic(PARTITIONS)
    workers = Workers(rolled.server.bootstrap, rolled.group, protocol, tmp_path)
    names = [f"{rolled.group}-sink{n}" for n in range(2)]
    try:
        with records(rolled, topic):
            for worker in ("w0", "w1"):
                workers.start(worker)
            for name in names:
                sink = {"connector.class": "FileStreamSink", "topics": topic, "file": str(tmp_path / name)}
                workers.create(name, **sink, **{"tasks.max": "1"})
            workers.shares(names)
            for _, worker in itertools.product(range(ROUNDS), ("w0", "w1")):
                workers.stop(worker)
                workers.start(worker)
                workers.shares(names)
    finally:
        workers.close()
    story(rolled, rolled.group)
    for name in names:
        story(rolled, f"connect-{name}")
