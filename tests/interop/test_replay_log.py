"""The history against Kafka: its own decoder on the same segments, its own view of the same groups."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kgroup.history.raw import raw_rows
from kgroup.history.sources.logs import segment_logs

from . import jvm
from .conftest import require
from .record_incidents import TARGET, TOPICS, Member, classic, consumer
from .server import Server
from .tables import unlike
from .waiting import eventually

pytestmark = pytest.mark.interop
INCIDENTS = sorted(folder for folder in TARGET.iterdir() if folder.is_dir())


@pytest.fixture(scope="module")
def dumped() -> dict[str, dict[int, Any]]:
    """What kafka-dump-log says of every recorded segment: folder → offset → (key, payload) or marker."""
    require("java", "mvn")
    files = [str(path) for folder in INCIDENTS for path in folder.glob("__consumer_offsets-*/*.log")]
    arguments = ("--offsets-decoder", "--print-data-log", "--files", ",".join(files))
    done = jvm.tool("kafka-dump-log", *arguments)
    found: dict[str, dict[int, Any]] = {}
    place: dict[int, Any] = {}
    for line in done.stdout.splitlines():
        if line.startswith("Dumping "):
            place = found.setdefault(Path(line[8:]).parent.parent.name, {})
        elif match := re.match(r"\| offset: (\d+) .* key: (\{.*?\}\}) payload: (.*)$", line):
            payload = None if match[3] == "<DELETE>" else json.loads(match[3])
            place[int(match[1])] = (json.loads(match[2]), payload)
        elif match := re.match(r"\| offset: (\d+) .* endTxnMarker: (\w+)", line):
            place[int(match[1])] = match[2].lower()
    return found


@pytest.mark.parametrize("folder", INCIDENTS, ids=lambda folder: folder.name)
def test_raw_records_are_those_of_kafka_dump_log(folder: Path, dumped: dict[str, dict[int, Any]]) -> None:
    theirs = dumped[folder.name]
    (log,) = segment_logs([folder])
    ours = {row["offset"]: row for row in raw_rows(log)}
    assert ours.keys() == theirs.keys()
    for offset, row in ours.items():
        told = theirs[offset]
        if isinstance(told, str):
            assert row["key"] == {"marker": told}
            continue
        key, payload = told
        assert row["type"] == int(key["type"])
        assert list(unlike(row["key"], key["data"])) == []
        assert (row["value"] is None) == (payload is None)
        if payload is not None:
            assert row["value_version"] == int(payload["version"])
            assert list(unlike(row["value"], payload["data"])) == []


def kgroup(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kgroup.cli.app", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def busy(server: Server) -> Iterator[tuple[Server, list[Member]]]:
    """A broker with a classic, a consumer and a mixed group at work, all with commits."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    there = set(admin.list_topics(timeout=20).topics)
    for made in admin.create_topics(
        [NewTopic(t, n, 1) for t, n in TOPICS.items() if t not in there]
    ).values():
        made.result(20)
    producer = Producer({"bootstrap.servers": server.bootstrap})
    for topic, partitions in TOPICS.items():
        for n in range(20):
            producer.produce(topic, b"x", partition=n % partitions)
    producer.flush(20)
    at: Any = SimpleNamespace(bootstrap=server.bootstrap)
    members: list[Member] = []
    try:
        for group, config, count in (
            ("replay-classic", classic("pay-0"), 4),
            ("replay-consumer", consumer("pay-0", topics="orders,pay"), 6),
            ("replay-consumer", consumer(topics="orders,pay"), 3),
            ("replay-mixed", classic("m-0"), 4),
            ("replay-mixed", consumer(), 2),
        ):
            members.append(Member(at, group, **config))
            members[-1].owns(count)
        for member in members:
            member.commit()
        yield server, members
    finally:
        for member in members:
            if member.process.poll() is None:
                member.close()


def as_recorded(line: str) -> dict[str, object]:
    """A line of a story without what only a cluster can add: why offsets or a group are gone."""
    told = json.loads(line)
    if "deleted" in told.get("event", ""):
        told = {name: value for name, value in told.items() if name not in ("cause", "proven")}
    return told  # type: ignore[no-any-return]


def test_the_replayed_state_is_what_the_cluster_says(
    busy: tuple[Server, list[Member]], tmp_path: Path
) -> None:
    """With members, after they left, and from a capture; all groups of the whole session are compared."""
    server, members = busy
    where = ("-b", server.bootstrap)
    assert (done := kgroup("replay-log", "--verify", *where)).returncode == 0, done.stdout + done.stderr
    for member in members:
        member.close()
    done = kgroup("replay-log", "--verify", *where, "-o", "json")
    verdicts = json.loads(done.stdout)["data"]["groups"]
    assert done.returncode == 0, [v for v in verdicts if v["verdict"] != "same"]
    assert {"replay-classic", "replay-consumer", "replay-mixed"} <= {v["group_id"] for v in verdicts}
    numbers = itertools.count()

    def told() -> str:
        """What the cluster and a capture of it tell alike; sessions that end in between set them apart."""
        out = tmp_path / str(next(numbers))
        assert kgroup("capture", "--once", "--out", str(out), *where).returncode == 0
        live = kgroup("replay-log", *where, "-o", "ndjson").stdout
        filed = kgroup("replay-log", "--files", str(out), "-o", "ndjson").stdout
        assert [*map(as_recorded, filed.splitlines())] == [*map(as_recorded, live.splitlines())]
        return live

    events = [json.loads(line) for line in eventually(told).splitlines()]
    kinds = {e["event"] for e in events if e["group_id"] == "replay-mixed"}
    assert {"upgraded", "downgraded", "committed"} <= kinds
