"""Kafka Streams of both protocols: exactly once, standbys; killed, restarted, killed for good.

Threads of the classic protocol are static members too; those of the streams protocol (KIP-1071) cannot be.
"""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.sampled import FULL

from ..conftest import NEWEST
from ..driver import Driver
from ..jvm import LIGHT_JVM, java, tool
from ..server import JUDGE
from ..waiting import eventually
from . import builds
from .conftest import Play
from .programs import Run

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1200)]
WORDS = ("alpha", "beta", "gamma", "delta", "epsilon")
PARTITIONS = 4
SETTINGS = {
    "processing.guarantee": "exactly_once_v2",
    "num.standby.replicas": "1",
    "replication.factor": "1",
    "commit.interval.ms": "200",
    "statestore.cache.max.bytes": "0",
    "main.consumer.session.timeout.ms": "6000",
    "main.consumer.heartbeat.interval.ms": "500",
    "main.consumer.auto.offset.reset": "earliest",
    "producer.transaction.timeout.ms": "6000",
}


class Streams:
    """The instances of one application on one server."""

    def __init__(self, run: Run, folder: Path, protocol: str) -> None:
        self.run = run
        self.protocol = protocol
        self.folder = folder
        self.out = f"{run.name}-out"
        self.instances: dict[str, Driver] = {}
        self._starts = itertools.count()

    def start(self, name: str) -> None:
        """Start an instance, with the state it left behind if it ran before."""
        own = {
            "application.id": self.run.name,
            "bootstrap.servers": self.run.server.bootstrap,
            "client.id": name,
            "state.dir": str(self.folder / name),
            "group.protocol": self.protocol,
        }
        if self.protocol == "classic":
            own["main.consumer.group.instance.id"] = name
        settings = [f"{key}={value}" for key, value in {**SETTINGS, **own}.items()]
        names = (f"{self.run.name}-in", self.out)
        command = java("kgroup.foreign.WordCount", *names, *settings, jvm=LIGHT_JVM, classpath=builds.apps())
        log = self.folder / f"{name}-{next(self._starts)}.log"
        self.instances[name] = Driver(command, log)

    def kill(self, name: str) -> None:
        killed = self.instances.pop(name)
        killed.process.kill()
        killed.close()

    def settle(self, step: str) -> None:
        """Wait until every instance runs and all tasks are somebody's; how many each has is told."""
        tasks = [f"{sub}_{number}" for sub in (0, 1) for number in range(PARTITIONS)]
        alone = len(self.instances) == 1

        def shared() -> list[dict[str, Any]]:
            rows = [each.call("state") for each in self.instances.values()]
            assert all(row["state"] == "RUNNING" for row in rows), rows
            assert sorted(task for row in rows for task in row["active"]) == tasks, rows
            standby = [] if alone else [f"1_{number}" for number in range(PARTITIONS)]
            assert sorted(task for row in rows for task in row["standby"]) == standby, rows
            return rows

        rows = eventually(shared, 180, step)
        self.run.tell(step, sorted(len(row["active"]) for row in rows))

    def feed(self, lines: int, since: int) -> None:
        rows = [[n % PARTITIONS, f"{WORDS[n % 5]} {WORDS[n % 3]}"] for n in range(since, since + lines)]
        self.run.call("producer.send", name=f"{self.run.name}-feed", topic=f"{self.run.name}-in", rows=rows)

    def counted(self, total: int) -> list[list[Any]]:
        """What is committed of the output once all words are counted."""

        def seen() -> list[list[Any]]:
            rows: list[list[Any]] = self.run.call("read", topic=self.out, isolation="read_committed")["rows"]
            assert len(rows) >= total, f"{len(rows)} of {total}"
            return rows

        return eventually(seen, 180, f"{total} counts", every=0.5)

    def close(self) -> None:
        for each in self.instances.values():
            each.close()
        self.instances.clear()


def word_count(run: Run, folder: Path, protocol: str) -> None:
    run.topic(PARTITIONS, "-in")
    run.topic(2, "-out")
    run.call("producer.open", name=f"{run.name}-feed", config={})
    app = Streams(run, folder, protocol)
    described = _described if protocol == "classic" else _streams_described
    try:
        app.start("s0")
        app.start("s1")
        app.settle("two instances")
        run.tell("described", described(run))
        app.feed(100, 0)
        app.counted(200)
        app.feed(100, 100)
        app.kill("s1")
        app.feed(100, 200)
        app.start("s1")
        app.settle("the killed one is back")
        app.counted(600)
        run.tell("described again", described(run))
        app.feed(100, 300)
        app.kill("s1")
        app.feed(100, 400)
        app.settle("the other took over")
        rows = app.counted(1000)
    finally:
        app.close()
    counts = defaultdict(list)
    for _, _, word, count in rows:
        counts[word].append(int(count))
    wanted = Counter(word for n in range(500) for word in (WORDS[n % 5], WORDS[n % 3]))
    assert counts == {word: list(range(1, number + 1)) for word, number in wanted.items()}
    run.tell("counts", sorted(counts.items()))
    offsets = run.call("admin.offsets", group=run.name)
    run.tell("offsets", {key: value[0] for key, value in offsets.items() if key.startswith(f"{run.name}-in")})


def _described(run: Run) -> list[Any]:
    def stable() -> dict[str, Any]:
        found: dict[str, Any] = run.call("admin.describe", group=run.name)
        assert found["state"] == "Stable" and len(found["members"]) == 2, found
        return found

    found = eventually(stable)
    return [found["assignor"], sorted((each["instance"], each["host"]) for each in found["members"])]


def _streams_described(run: Run) -> list[Any]:
    """What both brokers say, and Kafka's own StreamsGroupCommand says of them."""

    def stable() -> dict[str, Any]:
        found: dict[str, Any] = _kgroup("describe", run.name, "-b", run.server.bootstrap)["groups"][0]
        assert found["state"] == "Stable" and len(found["members"]) == 2, found
        assert all(member["tasks"] == member["target_tasks"] for member in found["members"]), found
        return found

    found = eventually(stable, 180)
    (verdict,) = _kgroup("replay-log", run.name, "--verify", "-b", run.server.bootstrap)["groups"]
    assert (verdict["verdict"], verdict["not_compared"]) == ("same", []), verdict
    given = [_tasks(member["tasks"]) for member in found["members"]]
    told = _tool(run, "--describe", "--group", run.name, "--state")
    assert re.search(rf"{re.escape(run.name)}\s.*\sStable\s+2\s*$", told, re.MULTILINE), told
    members = _tool(run, "--describe", "--group", run.name, "--members", "--verbose")
    assert all(member["member_id"] in members for member in found["members"]), members
    return [found["type"], sorted(given)]


def _tasks(tasks: dict[str, Any]) -> list[int]:
    return [sum(len(part["partitions"]) for part in tasks[role]) for role in ("active", "standby", "warmup")]


def _kgroup(*arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "kgroup.cli.app", *arguments, "-o", "json"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout, done.stderr
    data: dict[str, Any] = json.loads(done.stdout)["data"]
    return data


def _tool(run: Run, *arguments: str) -> str:
    main = "org.apache.kafka.tools.streams.StreamsGroupCommand"
    return tool(main, "--bootstrap-server", run.server.bootstrap, *arguments).stdout


PLAYED = {("streams", NEWEST): None}
if FULL:
    PLAYED = dict.fromkeys([("classic", JUDGE), *PLAYED, ("streams", JUDGE)])
"""Protocols and releases; what the classic protocol is answered is not new in the newest."""


@pytest.mark.parametrize(("protocol", "pair"), PLAYED, indirect=["pair"])
def test_word_count_is_exact_through_kills(play: Play, tmp_path: Path, protocol: str) -> None:
    def streams(run: Run) -> None:
        folder = tmp_path / run.server.kind
        folder.mkdir()
        word_count(run, folder, protocol)

    play(streams, "4.0.2")
