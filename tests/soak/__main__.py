"""`python -m tests.soak --seconds 60`: real consumers on `kgroup serve` while things go wrong.

Groups of both protocols, static and dynamic, read one topic while a producer writes. Every few seconds a
consumer is killed or stopped for a while, all connections break, or the server is killed and started again
on its folder. In the end all faults stop; then each group must come to rest, and every commit that a consumer
saw acknowledged must be there.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import ConsumerGroupTopicPartitions, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop.kgroup_server import KgroupServer
from tests.soak.proxy import Proxy

TOPIC, PARTITIONS = "soak", 6
GROUPS = (("classic", False), ("classic", True), ("consumer", False), ("consumer", True))
MEMBERS = 2
REST_S = 90
SETTINGS = {
    "group.initial.rebalance.delay.ms": 500,
    "group.consumer.min.session.timeout.ms": 6000,
    "group.consumer.session.timeout.ms": 6000,
    "group.consumer.min.heartbeat.interval.ms": 1000,
    "group.consumer.heartbeat.interval.ms": 1000,
}


@dataclass(slots=True)
class Slot:
    """A place in a group; its process may die and be started again."""

    group: str
    protocol: str
    instance: str
    journal: Path
    process: subprocess.Popen[bytes] | None = None
    starts: int = 0

    def start(self, bootstrap: str) -> None:
        """Start the consumer, unless it runs."""
        if self.process is not None and self.process.poll() is None:
            return
        self.starts += 1
        arguments = [bootstrap, self.group, self.protocol, self.instance, str(self.journal), TOPIC]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.soak.consumer", *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def signal(self, number: signal.Signals) -> None:
        """Send the process a signal, if it runs."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)


@dataclass(slots=True)
class Soak:
    """One run: the server, its proxy, the consumers, and what was done to them."""

    server: KgroupServer
    proxy: Proxy
    slots: list[Slot]
    rng: random.Random
    done: dict[str, int] = field(default_factory=dict)

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.proxy.port}"

    def keep_running(self) -> None:
        """Start what has died, as a supervisor would."""
        for slot in self.slots:
            slot.start(self.bootstrap)

    def one_fault(self) -> None:
        """Do one thing, and undo it after a while."""
        faults: tuple[Callable[[], None], ...] = (self._kill, self._stop, self._break, self._kill_server)
        fault = self.rng.choices(faults, (4, 3, 3, 1))[0]
        name = fault.__name__.strip("_")
        self.done[name] = self.done.get(name, 0) + 1
        fault()

    def _kill(self) -> None:
        self.rng.choice(self.slots).signal(signal.SIGKILL)
        time.sleep(self.rng.uniform(0, 2))

    def _stop(self) -> None:
        slot = self.rng.choice(self.slots)
        slot.signal(signal.SIGSTOP)
        time.sleep(self.rng.choice((1.0, 9.0)))
        slot.signal(signal.SIGCONT)

    def _break(self) -> None:
        self.proxy.break_all()

    def _kill_server(self) -> None:
        self.server.kill9()
        self.proxy.break_all()
        time.sleep(self.rng.uniform(0, 2))
        self.server.start()

    def acknowledged(self) -> dict[tuple[str, int], int]:
        """The highest offset each group was told is committed, by partition."""
        highest: dict[tuple[str, int], int] = {}
        for slot in self.slots:
            lines = slot.journal.read_text(encoding="utf-8").splitlines() if slot.journal.exists() else []
            for line in lines:
                group, partition, offset = json.loads(line)
                highest[group, partition] = max(offset, highest.get((group, partition), -1))
        return highest

    def lost(self) -> list[str]:
        """Acknowledged commits the server does not have any more."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        problems = []
        for group in sorted({slot.group for slot in self.slots}):
            asked = ConsumerGroupTopicPartitions(group)
            found = admin.list_consumer_group_offsets([asked])[group].result(30).topic_partitions
            stored = {each.partition: each.offset for each in found}
            problems += [
                f"{group}: partition {partition}: {offset} acknowledged, {stored.get(partition)} stored"
                for (name, partition), offset in sorted(self.acknowledged().items())
                if name == group and stored.get(partition, -1) < offset
            ]
        return problems

    def unrest(self) -> list[str]:
        """Groups that are not Stable with all members and every partition held once."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        problems = []
        for group in sorted({slot.group for slot in self.slots}):
            told = admin.describe_consumer_groups([group])[group].result(30)
            held = [part.partition for m in told.members for part in m.assignment.topic_partitions]
            if told.state.name != "STABLE" or sorted(held) != list(range(PARTITIONS)):
                problems.append(
                    f"{group}: {told.state.name}, {len(told.members)} members hold {sorted(held)}"
                )
        return problems


def soak(seconds: float, seed: int, folder: Path) -> int:
    """Run for so long, then audit; 1 if something was lost or does not come to rest."""
    base = folder / "server"
    base.mkdir()
    with KgroupServer(SETTINGS, base) as server:
        proxy = Proxy(server.port)
        slots = [
            Slot(group, protocol, f"{group}-{n}" if static else "", folder / f"{group}-{n}.jsonl")
            for protocol, static in GROUPS
            for group in (f"{protocol}-{'static' if static else 'dynamic'}",)
            for n in range(MEMBERS)
        ]
        run = Soak(server, proxy, slots, random.Random(seed))
        try:
            _create_topic(run.bootstrap)
            _go_wrong(run, seconds)
            return _audit(run)
        finally:
            for slot in slots:
                slot.signal(signal.SIGKILL)
            proxy.close()


def _create_topic(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(30)


def _go_wrong(run: Soak, seconds: float) -> None:
    producer = Producer({"bootstrap.servers": run.bootstrap, "linger.ms": 20})
    ends, next_fault = time.monotonic() + seconds, time.monotonic() + 5
    while time.monotonic() < ends:
        run.keep_running()
        for number in range(20):
            producer.produce(TOPIC, b"x" * 50, partition=number % PARTITIONS)
        producer.poll(0.1)
        if time.monotonic() >= next_fault:
            run.one_fault()
            next_fault = time.monotonic() + run.rng.uniform(1, 5)
    producer.flush(20)


def _audit(run: Soak) -> int:
    ends = time.monotonic() + REST_S
    problems = ["not looked yet"]
    while problems and time.monotonic() < ends:
        run.keep_running()
        time.sleep(1)
        problems = run.unrest()
    problems += run.lost()
    commits = len(run.acknowledged())
    starts = sum(slot.starts for slot in run.slots)
    print(f"faults {run.done}; {starts} starts of {len(run.slots)} consumers; {commits} partitions committed")
    for problem in problems:
        print(f"PROBLEM {problem}")
    return 1 if problems or not commits else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="how long things go wrong (default 60)")
    parser.add_argument("--seed", type=int, default=0, help="of the faults' order (default 0)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kgroup-soak-") as folder:
        return soak(options.seconds, options.seed, Path(folder))


if __name__ == "__main__":
    sys.exit(main())
