"""`python -m tests.differential.tasks --cases 10000`: Kafka's sticky task assignor and ours, side by side.

A case is a made-up group over some rounds: threads and processes come and go, topics grow, standbys are asked
for, and the next round begins with what was assigned. Every task of every round must be where Kafka has it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import Pool
from random import Random
from typing import Any
from uuid import UUID

from kgroup.coordinator.tasks.java_order import hash_map_order
from kgroup.coordinator.tasks.sticky import NoAssignment, Placed, TaskKind, assign
from kgroup.coordinator.tasks.values import Tasks, TaskSet

from .kafka import NEWEST, Jvm

MOST_ALIKE = 4
SHARE = 500
"""Groups that one JVM is asked about."""
ROLES = ("active", "standby", "warmup")
Told = dict[str, Any]
"""A group as the JVM is asked, or tasks by member as it answers."""


def ours(group: Told, kafka: str) -> Told:
    """What our assignor answers as this version of Kafka, asked as our coordinator asks it."""
    told = {each["id"]: each for each in group["members"]}
    placed = {
        name: Placed(
            told[name]["process"],
            TaskSet(*(_tasks(told[name][role]) for role in ROLES)),
            {
                part: {int(number): at for number, at in reached.items()}
                for part, reached in told[name]["offsets"].items()
            },
        )
        for name in hash_map_order(told)
    }
    parts = sorted(group["subtopologies"], key=lambda part: str(part["id"]))
    kinds = {part["id"]: TaskKind(part["tasks"], part["stateful"]) for part in parts}
    try:
        given = assign(placed, kinds, group["standbys"], kafka == NEWEST)
    except NoAssignment as error:
        return {"error": str(error)}
    return {name: {role: _listed(getattr(tasks, role)) for role in ROLES} for name, tasks in given.items()}


def _tasks(told: Mapping[str, list[int]]) -> Tasks:
    return {part: frozenset(numbers) for part, numbers in told.items() if numbers}


def _listed(tasks: Tasks) -> dict[str, list[int]]:
    return {part: sorted(tasks[part]) for part in sorted(tasks) if tasks[part]}


@dataclass
class MadeUp:
    """A group that changes from round to round, as chance has it."""

    rng: Random
    threads: dict[str, str] = field(default_factory=dict)
    """The process of each, in the order in which they joined."""
    parts: list[Told] = field(default_factory=list)
    standbys: int = 0

    @classmethod
    def of(cls, seed: int) -> MadeUp:
        rng = Random(seed)
        group = cls(rng)
        for number in range(rng.choice((1, 1, 2, 3, 5, 12))):
            tasks = rng.choice((1, 2, 3, 4, 6, 7, 13, 40))
            group.parts.append({"id": str(number), "tasks": tasks, "stateful": rng.random() < 0.6})
        group.standbys = rng.choice((0, 0, 1, 1, 2, 3))
        for _ in range(rng.choice((1, 1, 2, 3, 4, 8, 20))):
            group.process_starts()
        return group

    def process_starts(self) -> None:
        """A process of one to four threads; sometimes with a name that many share the hash of."""
        rng = self.rng
        process = str(UUID(bytes=rng.randbytes(16))) if rng.random() < 0.8 else self._clash()
        for _ in range(rng.choice((1, 1, 1, 2, 4))):
            self._joins(process)

    def _clash(self) -> str:
        """Aa and BB hash alike: so do all words of them of one length.

        Eight keys in one place of a large table make Java plant a tree, whose order ours leaves aside.
        """
        word = "".join(self.rng.choice(("Aa", "BB")) for _ in range(4))
        alike = {process for process in self.threads.values() if len(process) == len(word)} - {word}
        return word if len(alike) < MOST_ALIKE else f"{word}-{len(self.threads)}"

    def _joins(self, process: str) -> None:
        name = urlsafe_b64encode(self.rng.randbytes(16)).decode().rstrip("=")
        self.threads[name] = process

    def changes(self) -> None:
        """What happens between two rounds."""
        rng = self.rng
        for _ in range(rng.choice((1, 1, 2, 3))):
            match rng.randrange(7):
                case 0:
                    self.process_starts()
                case 1 if len(set(self.threads.values())) > 1:
                    gone = rng.choice(sorted(set(self.threads.values())))
                    self.threads = {name: p for name, p in self.threads.items() if p != gone}
                case 2 if len(self.threads) > 1:
                    del self.threads[rng.choice(sorted(self.threads))]
                case 3:
                    self._restarts(rng.choice(sorted(set(self.threads.values()))))
                case 4:
                    self._joins(rng.choice(sorted(set(self.threads.values()))))
                case 5:
                    part = rng.choice(self.parts)
                    part["tasks"] = max(1, part["tasks"] + rng.choice((-1, 1, 1, 3)))
                case _:
                    self.standbys = rng.choice((0, 1, 2))

    def _restarts(self, process: str) -> None:
        """A process is back, with its state and other threads."""
        count = sum(each == process for each in self.threads.values())
        self.threads = {name: each for name, each in self.threads.items() if each != process}
        for _ in range(count):
            self._joins(process)

    def asked(self, before: Told) -> Told:
        """The group as it is now, with what its threads had; now and then with what nobody has assigned."""
        strange = self.rng.random() < 0.15
        members = []
        for name, process in self.threads.items():
            had = self._anything() if strange else before.get(name, {})
            tasks = {role: had.get(role, {}) for role in ROLES}
            members.append({"id": name, "process": process, "offsets": self._offsets(), **tasks})
        return {"members": members, "subtopologies": self.parts, "standbys": self.standbys}

    def _offsets(self) -> Told:
        """How much of some tasks' state a thread says it has; of most threads none."""
        rng = self.rng
        if rng.random() < 0.6:
            return {}
        return {
            part["id"]: {
                str(n): rng.choice((0, 7, 7, 1000)) for n in range(part["tasks"]) if rng.random() < 0.4
            }
            for part in self.parts
            if part["stateful"]
        }

    def _anything(self) -> Told:
        """Tasks at random: of several owners, in several roles, of parts that are not there."""
        rng = self.rng
        names = [str(number) for number in range(len(self.parts) + 1)]
        return {
            role: {
                part: sorted(rng.sample(range(15), rng.randint(1, 6))) for part in names if rng.random() < 0.4
            }
            for role in ROLES
        }


@dataclass(frozen=True)
class Case:
    """What came of one group: rounds played, tasks placed and moved, and the first difference."""

    seed: int
    rounds: int
    tasks: int
    moved: int
    difference: str | None = None


def play(running: Jvm, seed: int, rounds: int, kafka: str) -> Case:
    """One group on both; it ends at the first difference."""
    group, before = MadeUp.of(seed), {}
    tasks = moved = 0
    for number in range(rounds):
        asked = group.asked(before)
        theirs, mine = running.ask(asked), ours(asked, kafka)
        if theirs != mine:
            return Case(seed, number, tasks, moved, f"{json.dumps(asked)}\n  Kafka {theirs}\n  ours  {mine}")
        now = _places(theirs)
        tasks += len(now)
        moved += len(now - _places(before)) if number else 0
        before = {} if "error" in theirs else theirs
        group.changes()
    return Case(seed, rounds, tasks, moved)


def _places(told: Told) -> set[tuple[str, str, str, int]]:
    return {
        (name, role, part, number)
        for name, given in told.items()
        if name != "error"
        for role in ROLES
        for part, numbers in given[role].items()
        for number in numbers
    }


def cases(seeds: range, rounds: int, kafka: str) -> list[Case]:
    """The cases of these seeds, in order, on this version of Kafka."""
    with Jvm("kgroup.differential.TaskAssignments", kafka) as running:
        return [play(running, seed, rounds, kafka) for seed in seeds]


def cases_by(jobs: int, seeds: range, rounds: int, kafka: str) -> Iterator[Case]:
    """The same, by some processes with a JVM each."""
    shares = [seeds[start : start + SHARE] for start in range(0, len(seeds), SHARE)]
    with Pool(jobs) as pool:
        for share in pool.imap(partial(cases, rounds=rounds, kafka=kafka), shares):
            yield from share


def main() -> int:
    """Play the cases; 1 when one differs."""
    parser = argparse.ArgumentParser(prog="differential.tasks", description=__doc__)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--cases", type=int, default=10_000, help="how many groups")
    parser.add_argument("--rounds", type=int, default=5, help="assignments a group")
    parser.add_argument("--jobs", type=int, default=2, help="processes, with a JVM each")
    parser.add_argument("--kafka", default=NEWEST, help="the version of Kafka: 4.3.1 or 4.4.0")
    given = parser.parse_args()
    began = time.monotonic()
    seeds = range(given.first, given.first + given.cases)
    played = list(cases_by(given.jobs, seeds, given.rounds, given.kafka))
    bad = [case for case in played if case.difference]
    for case in bad[:5]:
        print(f"seed {case.seed}, round {case.rounds}: {case.difference}")
    print(
        f"{len(played)} groups, {sum(case.rounds for case in played)} assignments, "
        f"{sum(case.tasks for case in played)} tasks placed, {sum(case.moved for case in played)} of them "
        f"moved; {len(bad)} groups differ; {time.monotonic() - began:.0f} s"
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
