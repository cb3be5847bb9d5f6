"""`python -m tests.hostile --seconds 60 --seed 0`: strangers at a server with clients that must not notice.

Two members each of a classic group in librdkafka, a classic one in kafka-python and a consumer group read
and commit while attacks of every kind come in. In the end nobody may have met an error or lost a partition,
no ping taken longer than PING_S, nobody's commit have been longer in coming than SILENT_S, no traceback be in
the server's log, its memory be flat; told to end, the server does within END_S; and the folder, opened again,
must hold every acknowledged commit.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from confluent_kafka import ConsumerGroupTopicPartitions, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kgroup.runtime.settings import STANDARD_AUTHORIZER
from tests.hostile import structure
from tests.hostile.attacks import PING, TOPIC, Stranger
from tests.interop.kgroup_server import KgroupServer
from tests.soak.__main__ import SETTINGS

OWN_SETTINGS = {
    "group.consumer.session.timeout.ms": 10_000,
    "group.min.session.timeout.ms": 100,
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "allow.everyone.if.no.acl.found": "true",
}
"""Rights are decided for every request, though all are allowed: the memory for decisions is watched, too."""
OWN_TOPIC, PARTITIONS = "bystanders", 4
CLIENTS = ("librdkafka classic", "librdkafka consumer", "kafka-python")
MEMBERS = 2
WITHIN_S = 60
PING_S = 3.0
SILENT_S = 2.0
END_S, TIMES_ENDED = 2.0, 5
GROWTH_MB = 96
"""How much more memory may be in use at the end than after a third of the time."""


@dataclass(frozen=True)
class Plan:
    """How long the attacks go on, which they are ("" for all), and what nobody may have to bear."""

    seconds: float
    seed: int
    only: str = ""
    requests: float = float("inf")
    ping_s: float = PING_S
    silent_s: float = SILENT_S


@dataclass(slots=True)
class Run:
    """What is seen while it lasts."""

    server: KgroupServer
    folder: Path
    attacks: Counter[str] = field(default_factory=Counter)
    sent: int = 0
    longest: tuple[float, str] = (0, "")
    ends: list[float] = field(default_factory=list)
    end_work: list[float] = field(default_factory=list)
    """Processor seconds that the server took to end, each time: others may have the machine meanwhile."""
    began: float = 0
    ended: float = 0
    pings: list[float] = field(default_factory=list)
    slowest: tuple[float, float, str] = (0, 0, "")
    """Of the pings: how long it took, the server's processor seconds meanwhile, and the attack under way."""
    under_way: str = ""
    memory_mb: list[float] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    bystanders: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    over: threading.Event = field(default_factory=threading.Event)

    def start_bystanders(self) -> None:
        """All of them, each with its partitions, before anything happens."""
        for client in CLIENTS:
            for number in range(MEMBERS):
                name = f"{client} {number}"
                command = [
                    sys.executable,
                    "-m",
                    "tests.hostile.bystander",
                    client,
                    self.server.bootstrap,
                    f"by {client}",
                    OWN_TOPIC,
                    str(self.journal(name)),
                ]
                with self.journal(name).with_suffix(".log").open("wb") as log:
                    self.bystanders[name] = subprocess.Popen(command, stdout=log, stderr=log)
        ends = time.monotonic() + WITHIN_S
        while not self.settled():
            if time.monotonic() > ends:
                raise RuntimeError("the bystanders did not come to share the partitions")
            time.sleep(0.2)

    def settled(self) -> bool:
        return all(self.assigned(name)[-1:] == [PARTITIONS // MEMBERS] for name in self.bystanders)

    def assigned(self, name: str) -> list[object]:
        """How many partitions a bystander had, in turn."""
        return [what[1] for what in self.noted(name) if what[0] == "assigned"]

    def journal(self, name: str) -> Path:
        return self.folder / f"{name}.jsonl"

    def noted(self, name: str) -> list[list[object]]:
        path = self.journal(name)
        lines = path.read_text().splitlines() if path.exists() else []
        return [json.loads(line) for line in lines]

    def produce(self) -> None:
        """Records for the bystanders, all the time."""
        producer = Producer({"bootstrap.servers": self.server.bootstrap, "linger.ms": 20})

        def delivered(error: object, _: object) -> None:
            if error is not None:
                self.problems.append(f"produce: {error}")

        while not self.over.is_set():
            for partition in range(PARTITIONS):
                producer.produce(OWN_TOPIC, b"x" * 50, partition=partition, on_delivery=delivered)
            producer.poll(0.2)
        if producer.flush(20):
            self.problems.append("records were not delivered")

    def watch(self) -> None:
        """How long a ping takes, and how much memory is used."""
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=60) as there:
            while not self.over.wait(0.05):
                began, used_s = time.monotonic(), processor_s(self.server.pid)
                there.sendall(PING)
                size = int.from_bytes(_exactly(there, 4), "big")
                _exactly(there, size)
                self.pings.append(time.monotonic() - began)
                worked = processor_s(self.server.pid) - used_s
                self.slowest = max(self.slowest, (self.pings[-1], worked, self.under_way))
                if len(self.pings) % 10 == 0:
                    self.memory_mb.append(memory_of(self.server.pid))

    def start(self, what: Callable[[], None]) -> threading.Thread:
        """Have a thread do it; what ends it early is a problem like any other."""

        def noted() -> None:
            try:
                what()
            except Exception as error:
                self.problems.append(f"{what.__name__}: {type(error).__name__}: {error}")

        thread = threading.Thread(target=noted)
        thread.start()
        return thread

    def attack(self, plan: Plan) -> None:
        stranger = Stranger(self.server.port, random.Random(plan.seed))
        attacks = [attack for attack in stranger.all() if plan.only in ("", attack.__name__)]
        first = list(dict.fromkeys(attacks))  # each of them at least once
        ends = time.monotonic() + plan.seconds
        with closing(stranger.crew):
            while time.monotonic() < ends and self.server.running and stranger.sent < plan.requests:
                one = first.pop() if first else stranger.chance.choice(attacks)
                self.under_way = one.__name__
                self.attacks[one.__name__] += 1
                one()
                self.sent, self.longest = stranger.sent, stranger.longest

    def end_bystanders(self) -> None:
        """Tell them to end; one that had ended before, does not, or ends in an error is a problem."""
        for name, process in self.bystanders.items():
            if process.poll() is not None:
                self.problems.append(f"{name} ended with {process.returncode}")
        running = {name: process for name, process in self.bystanders.items() if process.returncode is None}
        for process in running.values():
            process.send_signal(signal.SIGTERM)
        ends = time.monotonic() + 30
        for name, process in running.items():
            try:
                if process.wait(max(ends - time.monotonic(), 0.1)):
                    self.problems.append(f"{name} ended with {process.returncode} when it was told to")
            except subprocess.TimeoutExpired:
                process.kill()
                self.problems.append(f"{name} did not end within 30 s")

    def silence(self, name: str) -> float:
        """The longest time a bystander's commit took to come after the one before, under attack."""
        times = [float(str(what[-1])) for what in self.noted(name) if what[0] == "commit"]
        during = [self.began, *(at for at in times if self.began <= at <= self.ended), self.ended]
        return max(after - before for before, after in pairwise(during))

    def judge(self, plan: Plan) -> None:
        """Everything that should not have been."""
        for name in self.bystanders:
            noted = self.noted(name)
            self.problems += [f"{name}: {what[1]}" for what in noted if what[0] == "harm"]
            if not any(what[0] == "commit" for what in noted):
                self.problems.append(f"{name}: committed nothing")
            if (silent := self.silence(name)) > plan.silent_s:
                self.problems.append(f"{name}: was silent for {silent:.1f} s")
        if not self.pings or not self.memory_mb:
            self.problems.append("too few pings were answered to say anything")
        elif max(self.pings) > plan.ping_s:
            self.problems.append(f"a ping took {max(self.pings):.1f} s")
        if max(self.ends) > max(END_S, plan.silent_s) or max(self.end_work) > END_S:
            work = f"{max(self.end_work):.1f} s of processor time"
            self.problems.append(f"the server took {max(self.ends):.1f} s to end, {work}")
        tracebacks = self.server.log_text().count("Traceback")
        if tracebacks:
            self.problems.append(f"{tracebacks} tracebacks in the log")
        third = self.memory_mb[len(self.memory_mb) // 3 :]
        if third and third[-1] - third[0] > GROWTH_MB:
            self.problems.append(f"memory grew from {third[0]:.0f} to {third[-1]:.0f} MB")

    def told_to_end(self, chance: random.Random) -> None:
        """End the server amid big structures, again and again, and note how long that takes."""
        for _ in range(TIMES_ENDED):
            sent = threading.Event()
            seeds = [chance.randrange(1 << 31) for _ in range(2)]
            threads = [threading.Thread(target=self._send_big, args=(seed, sent)) for seed in seeds]
            for thread in threads:
                thread.start()
            sent.wait(60)
            time.sleep(chance.random() * 3)
            began, others_s, used_s = time.monotonic(), _ended_children_s(), processor_s(self.server.pid)
            self.server.stop()
            self.ends.append(time.monotonic() - began)
            self.end_work.append(_ended_children_s() - others_s - used_s)
            for thread in threads:
                thread.join()
            self.server.start()

    def _send_big(self, seed: int, sent: threading.Event) -> None:
        """Send big structures until the connection ends."""
        stranger = Stranger(self.server.port, random.Random(seed))
        with suppress(OSError), stranger.connect() as there:
            while True:
                whole = structure.frame(structure.drawn(stranger.chance, structure.MOST_ITEMS // 3))
                there.sendall(whole)
                sent.set()

    def lost(self) -> None:
        """Kill the server, open its folder again, and look for every acknowledged commit."""
        self.server.kill9()
        self.server.start()
        admin = AdminClient({"bootstrap.servers": self.server.bootstrap})
        for client in CLIENTS:
            group = f"by {client}"
            found = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result(30)
            stored = {part.partition: part.offset for part in found.topic_partitions}
            for number in range(MEMBERS):
                for what, *rest in self.noted(f"{client} {number}"):
                    if what == "commit" and stored.get(rest[0], -1) < rest[1]:
                        self.problems.append(f"{group}: {rest} acknowledged, {stored.get(rest[0])} stored")


def _exactly(there: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        part = there.recv(size - len(found))
        if not part:
            raise ConnectionError("the ping's connection was closed")
        found += part
    return found


def memory_of(pid: int) -> float:
    """Resident megabytes of a process."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.split("VmRSS:")[1].split()[0]) / 1024


def processor_s(pid: int) -> float:
    """Processor seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _ended_children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def hostile(plan: Plan, folder: Path) -> int:
    """Attack as planned, then judge; 1 if anybody was harmed."""
    base = folder / "server"
    base.mkdir()
    with KgroupServer(SETTINGS | OWN_SETTINGS, base) as server:
        admin = AdminClient({"bootstrap.servers": server.bootstrap})
        plain = [NewTopic(f"s{number}", 1, 1) for number in range(structure.TOPICS)]
        big = [NewTopic(structure.BIG, structure.BIG_PARTITIONS, 1)]
        for topics in ([NewTopic(OWN_TOPIC, PARTITIONS, 1), NewTopic(TOPIC, 1, 1)], plain, big):
            for done in admin.create_topics(topics).values():
                done.result(30)
        run = Run(server, folder)
        threads = [run.start(run.produce), run.start(run.watch)]
        try:
            run.start_bystanders()
            before = {name: len(run.assigned(name)) for name in run.bystanders}
            run.began = time.time()
            run.attack(plan)
            run.ended = time.time()
            after = {name: len(run.assigned(name)) for name in run.bystanders}
            run.problems += [f"{name}: was rebalanced" for name in before if after[name] != before[name]]
        finally:
            if not server.running:
                run.problems.append("the server has ended")
            run.over.set()
            for thread in threads:
                thread.join()
            run.end_bystanders()
        run.told_to_end(random.Random(plan.seed))
        run.judge(plan)
        run.lost()
        return report(run)


def report(run: Run) -> int:
    for name, count in run.attacks.most_common():
        print(f"{count:>6} × {name}")
    print(f"{run.sent} requests of members at the bounds, or of structure")
    print("the longest answer to a structure: {:.1f} s, {}".format(*run.longest))
    ends = (f"{wall:.1f} s ({work:.1f} of work)" for wall, work in zip(run.ends, run.end_work, strict=True))
    print("told to end, the server took " + ", ".join(ends))
    commits = sum(what[0] == "commit" for name in run.bystanders for what in run.noted(name))
    print(f"{commits} commits acknowledged to {len(run.bystanders)} bystanders")
    print(f"the longest silence: {max(map(run.silence, run.bystanders)):.1f} s")
    if pings := sorted(run.pings):
        shares = (len(pings) // 2, len(pings) * 99 // 100, -1)
        half, most, longest = (f"{1000 * pings[at]:.0f} ms" for at in shares)
        print(f"{len(pings)} pings: half in {half}, 99 of 100 in {most}, the longest {longest}")
        _, worked, attack = run.slowest
        print(f"the longest came during {attack!r}; the server worked {worked:.1f} s meanwhile")
    if memory := run.memory_mb:
        first, most, last = (f"{size:.0f} MB" for size in (memory[0], max(memory), memory[-1]))
        print(f"memory: {first} at first, {most} at most, {last} at last")
    for problem, count in Counter(run.problems).most_common(50):
        print(f"PROBLEM {problem}" + (f" ({count} times)" if count > 1 else ""))
    if run.problems:
        text = run.server.log_text()
        at = text.find("Traceback")
        print(text[max(at - 500, 0) : at + 6000] if at >= 0 else text[-2000:])
    print("nobody was harmed" if not run.problems else f"{len(run.problems)} problems")
    return 1 if run.problems else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="how long the attacks go on (default 60)")
    parser.add_argument("--seed", type=int, default=0, help="of the attacks (default 0)")
    parser.add_argument("--only", default="", help="the one attack, such as bounds (default all)")
    parser.add_argument(
        "--requests", type=float, default=float("inf"), help="end after so many of bounds and structures"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kgroup-hostile-") as folder:
        return hostile(Plan(options.seconds, options.seed, options.only, options.requests), Path(folder))


if __name__ == "__main__":
    sys.exit(main())
