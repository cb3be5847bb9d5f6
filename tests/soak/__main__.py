"""`python -m tests.soak --seconds 60`: real consumers on `kgroup serve` while things go wrong.

Groups of both protocols, static and dynamic, with librdkafka and Java members in each, read one topic while a
producer writes. Every few seconds a consumer is killed or stopped for a while, all connections break, or the
server is killed and started again on its folder. In the end all faults stop; then each group must come to
rest, every commit that a consumer saw acknowledged must be there, and each kind of fault and of client must
have been seen at work. Without java, javac and mvn there are librdkafka members only, and a line says so.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import ConsumerGroupTopicPartitions, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop.kgroup_server import KgroupServer
from tests.soak.consumers import Slot, commands, slots_for
from tests.soak.faults import Faults
from tests.soak.proxy import Proxy

TOPIC, PARTITIONS = "soak", 6
REST_S = 90
EVERY_FAULT_WITHIN_S = 90
"""In a run of this length each kind of fault must happen."""
SETTINGS = {
    "group.initial.rebalance.delay.ms": 500,
    "group.consumer.min.session.timeout.ms": 6000,
    "group.consumer.session.timeout.ms": 6000,
    "group.consumer.min.heartbeat.interval.ms": 1000,
    "group.consumer.heartbeat.interval.ms": 1000,
}


@dataclass(slots=True)
class Soak:
    """One run: the consumers, where they connect to, and what goes wrong."""

    bootstrap: str
    slots: list[Slot]
    faults: Faults
    seconds: float

    @property
    def client(self) -> dict[str, str | int]:
        """Configuration of our own clients, which are quiet about the connections they lose."""
        return {"bootstrap.servers": self.bootstrap, "log_level": 0}

    def keep_running(self) -> None:
        """Start what has died, as a supervisor would."""
        for slot in self.slots:
            slot.start(self.bootstrap, TOPIC)

    def go_wrong(self) -> None:
        """Write records, and do something bad every few seconds, until the time is over."""
        producer = Producer({**self.client, "linger.ms": 20})
        ends, next_fault = time.monotonic() + self.seconds, time.monotonic() + 8
        rng = random.Random(0)
        while time.monotonic() < ends:
            self.keep_running()
            for number in range(20):
                producer.produce(TOPIC, b"x" * 50, partition=number % PARTITIONS)
            producer.poll(0.1)
            if time.monotonic() >= next_fault:
                self.faults.one()
                next_fault = time.monotonic() + rng.uniform(1, 5)
        producer.flush(20)

    def come_to_rest(self) -> list[str]:
        """Wait until every group is at rest; what is still wrong when the time for that is over."""
        ends = time.monotonic() + REST_S
        problems = ["not looked yet"]
        while problems and time.monotonic() < ends:
            self.keep_running()
            time.sleep(1)
            problems = self.unrest()
        return problems

    def acknowledged(self) -> dict[tuple[str, int], int]:
        """The highest offset each group was told is committed, by partition."""
        highest: dict[tuple[str, int], int] = {}
        for slot in self.slots:
            for partition, offset in slot.acknowledged():
                highest[slot.group, partition] = max(offset, highest.get((slot.group, partition), -1))
        return highest

    def lost(self) -> list[str]:
        """Acknowledged commits the server does not have any more."""
        admin = AdminClient(self.client)
        acknowledged = self.acknowledged()
        problems = []
        for group in sorted({slot.group for slot in self.slots}):
            asked = ConsumerGroupTopicPartitions(group)
            found = admin.list_consumer_group_offsets([asked])[group].result(30).topic_partitions
            stored = {each.partition: each.offset for each in found}
            problems += [
                f"{group}: partition {partition}: {offset} acknowledged, {stored.get(partition)} stored"
                for (name, partition), offset in sorted(acknowledged.items())
                if name == group and stored.get(partition, -1) < offset
            ]
        return problems

    def unrest(self) -> list[str]:
        """Groups that are not Stable with all members and every partition held once."""
        admin = AdminClient(self.client)
        problems = []
        for group in sorted({slot.group for slot in self.slots}):
            told = admin.describe_consumer_groups([group])[group].result(30)
            held = [part.partition for m in told.members for part in m.assignment.topic_partitions]
            if told.state.name != "STABLE" or sorted(held) != list(range(PARTITIONS)):
                problems.append(
                    f"{group}: {told.state.name}, {len(told.members)} members hold {sorted(held)}"
                )
        return problems

    def unseen(self) -> list[str]:
        """What should have been at work and was not."""
        idle = [f"no {client} consumer committed" for client, count in self.commits().items() if not count]
        if self.seconds < EVERY_FAULT_WITHIN_S:
            return idle
        return idle + [f"never happened: {name}" for name in self.faults.never]

    def commits(self) -> dict[str, int]:
        """How many commits of a partition were acknowledged to each kind of client."""
        counts = dict.fromkeys((slot.client for slot in self.slots), 0)
        for slot in self.slots:
            counts[slot.client] += len(slot.acknowledged())
        return counts


def soak(seconds: float, seed: int, folder: Path) -> int:
    """Run for so long, then audit; 1 if something was lost, does not come to rest, or never happened."""
    base = folder / "server"
    base.mkdir()
    how, missing = commands()
    if missing is not None:
        print(missing, flush=True)
    with KgroupServer(SETTINGS, base) as server:
        proxy = Proxy(server.port)
        slots = slots_for(how, folder)
        faults = Faults(server, proxy, slots, random.Random(seed))
        run = Soak(f"127.0.0.1:{proxy.port}", slots, faults, seconds)
        try:
            _create_topic(AdminClient(run.client))
            run.go_wrong()
            began = time.monotonic()
            problems = run.come_to_rest()
            rested_s = time.monotonic() - began
            problems += [*run.lost(), *run.unseen()]
            return _report(run, rested_s, problems)
        finally:
            for slot in slots:
                slot.signal(signal.SIGKILL)
            proxy.close()


def _create_topic(admin: AdminClient) -> None:
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(30)


def _report(run: Soak, rested_s: float, problems: list[str]) -> int:
    for name, count in run.faults.seen.most_common():
        print(f"{count:>6} × {name}")
    for client, count in run.commits().items():
        slots = [slot for slot in run.slots if slot.client == client]
        starts = sum(slot.starts for slot in slots)
        print(f"{count:>6} commits acknowledged to {len(slots)} {client} consumers, started {starts} times")
    groups, partitions = len({slot.group for slot in run.slots}), len(run.acknowledged())
    print(f"audited {partitions} partitions of {groups} groups; {rested_s:.0f} s until all were at rest")
    for problem in problems:
        print(f"PROBLEM {problem}")
    print("nothing was lost" if not problems else f"{len(problems)} problems")
    return 1 if problems else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="how long things go wrong (default 60)")
    parser.add_argument("--seed", type=int, default=0, help="of the faults' order (default 0)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kgroup-soak-") as folder:
        return soak(options.seconds, options.seed, Path(folder))


if __name__ == "__main__":
    sys.exit(main())
