"""What does `kgroup record` take beside a busy Kafka?

    python -m bench recorder [groups=500] [partitions=4] [seconds=180] [topics=0]

Each group has one member, which commits each of its partitions once a second, in a request of its own: 2,000
commits a second. `topics` are so many more in the cluster, which no group reads. Processor and memory are the
recorder's process's own; how far it is behind is what its metrics say, once a second.
"""

from __future__ import annotations

import itertools
import re
import statistics
import tempfile
import threading
import time
from pathlib import Path
from urllib.request import urlopen

from bench.brokers import Kafka, cpu_s
from kgroup.admin.recording.lines import Looked
from kgroup.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.cli.live import SESSION_MS, Client
from tests.interop.coordinating import coordinates
from tests.interop.recording import Recording

TOPIC = "bench"
THREADS = 4


def memory_mb(pid: int) -> tuple[float, float]:
    """The memory that a process has, and the most that it had."""
    text = Path(f"/proc/{pid}/status").read_text()
    now, most = (int(re.findall(rf"{name}:\s+(\d+) kB", text)[0]) / 1000 for name in ("VmRSS", "VmHWM"))
    return now, most


class Committer(threading.Thread):
    """Commits for some groups, each partition once a second; `done` counts the commits."""

    def __init__(self, bootstrap: str, groups: list[tuple[str, str]], partitions: int) -> None:
        super().__init__(daemon=True)
        self.client, self.groups, self.partitions = Client(bootstrap), groups, range(partitions)
        self.done, self.stopped = 0, threading.Event()

    def run(self) -> None:
        begun = time.monotonic()
        for second in itertools.takewhile(lambda _: not self.stopped.is_set(), itertools.count()):
            for group, member_id in self.groups:
                for number in self.partitions:
                    part = OffsetCommitRequestPartition(partition_index=number, committed_offset=second)
                    request = OffsetCommitRequest(
                        group_id=group,
                        generation_id_or_member_epoch=1,
                        member_id=member_id,
                        topics=(OffsetCommitRequestTopic(name=TOPIC, partitions=(part,)),),
                    )
                    answer = self.client.transport.request(None, request, max_version=9)
                    assert {p.error_code for t in answer.topics for p in t.partitions} == {0}
                    self.done += 1
            self.stopped.wait(max(0.0, begun + second + 1 - time.monotonic()))


def measured(kafka: Kafka, folder: Path, groups: int, partitions: int, seconds: int, topics: int) -> None:
    """Let groups commit while a recorder runs, and print what it took."""
    client = Client(kafka.bootstrap)
    client.create_topic(TOPIC, partitions)
    for number in range(topics):
        client.create_topic(f"unread-{number:05}", 1)
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for number in range(partitions):
        for value in range(seconds * 2):
            producer.produce(TOPIC, str(value).encode(), partition=number)
        producer.flush(60)
    owned: dict[str | None, list[int]] = {None: list(range(partitions))}
    names = [f"group-{number:03}" for number in range(groups)]
    ids = {name: client.classic_group(name, TOPIC, owned)[None] for name in names}
    shares = [list(ids.items())[n::THREADS] for n in range(THREADS)]
    committers = [Committer(kafka.bootstrap, share, partitions) for share in shares]
    for each in committers:
        each.start()
    with Recording(kafka, folder / "recording", folder, "--metrics", "0", interval="10s") as recording:
        recording.looks(2)
        address = next(line.split()[1].rstrip(",") for line in recording.told if line.startswith("metrics"))
        pid = recording.process.pid
        before, done = cpu_s(pid), sum(each.done for each in committers)
        begun, behind = time.monotonic(), []
        while time.monotonic() - begun < seconds:
            time.sleep(1)
            with urlopen(address) as answer:
                text = answer.read().decode()
            behind.append(float(re.findall(r"^kgroup_record_behind_seconds (\S+)", text, re.M)[0]))
        passed = time.monotonic() - begun
        rate = (sum(c.done for c in committers) - done) / passed
        core, (now, most) = (cpu_s(pid) - before) / passed, memory_mb(pid)
        looks = [line.at_ms for line in recording.lines(Looked)]
        size = sum(file.stat().st_size for file in folder.rglob("*.log")) / 1e6
        stored = sum(file.stat().st_size for file in folder.rglob("*.ndjson")) / 1e6
    for each in committers:
        each.stopped.set()
        each.join()
    gaps = [b - a for a, b in zip(looks, looks[1:], strict=False)]
    print(f"{groups} groups, {rate:.0f} commits a second for {passed:.0f} s, {len(looks)} looks")
    print(f"processor {core:.2f} of a core, memory {now:.0f} MB, at most {most:.0f} MB")
    print(
        f"behind: median {statistics.median(behind):.1f} s, at most {max(behind):.1f} s; "
        f"looks at most {max(gaps) / 1000:.1f} s apart"
    )
    print(f"stored: {size:.1f} MB of segments, {stored:.1f} MB of observations")


def main(arguments: list[str]) -> None:
    """Measure once."""
    given = dict(each.split("=", 1) for each in arguments)
    usual = {"groups": 500, "partitions": 4, "seconds": 180, "topics": 0}
    numbers = (int(given.get(name, number)) for name, number in usual.items())
    settings = {"group.max.session.timeout.ms": SESSION_MS, "offsets.topic.num.partitions": 50}
    with tempfile.TemporaryDirectory() as folder, Kafka(settings) as kafka:
        coordinates(kafka)
        measured(kafka, Path(folder), *numbers)
