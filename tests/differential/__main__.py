"""`python -m tests.differential --first 1 --seeds 1000`: made-up programs on Kafka's machine and on ours."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from multiprocessing import Pool

from .kafka import OLDEST, Kafka
from .scenario import as_scenario
from .shrink import shrunk
from .verdict import Verdict, judge


def main() -> int:
    """Play the programs; 1 when one differs in a way that is not allowed."""
    parser = argparse.ArgumentParser(prog="differential", description=__doc__)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1000, help="how many programs")
    parser.add_argument("--length", type=int, default=60, help="operations a program")
    parser.add_argument("--jobs", type=int, default=2, help="Python processes")
    parser.add_argument("--kafka", default=OLDEST, help="the version of Kafka: 4.3.1 or 4.4.0")
    parser.add_argument("--streams", action="store_true", help="programs with streams groups")
    parser.add_argument("--show", type=int, default=20, help="how many kinds of difference to print")
    parser.add_argument(
        "--shrink", action=argparse.BooleanOptionalAction, default=True, help="make cases small"
    )
    given = parser.parse_args()
    began = time.monotonic()
    allowed: Counter[str] = Counter()
    failures: dict[str, list[Verdict]] = {}
    operations = restarts = 0
    ended: Counter[str] = Counter()
    with Kafka(given.kafka) as kafka:
        seeds = range(given.first, given.first + given.seeds)
        for verdict in verdicts(seeds, given.length, given.jobs, given.kafka, streams=given.streams):
            operations += verdict.operations
            restarts += verdict.restarts
            ended.update([verdict.ended_early] if verdict.ended_early else ())
            allowed.update(verdict.allowed)
            if verdict.differences:
                failures.setdefault(verdict.signature, []).append(verdict)
        for name, count in allowed.most_common():
            print(f"allowed {count:7} {name}")
        for name, count in ended.most_common():
            print(f"ended at {count:6} {name}")
        found = sorted(failures.items(), key=lambda item: -len(item[1]))
        for _, cases in found[: given.show]:
            report(kafka, cases, given.shrink)
    bad = sum(map(len, failures.values()))
    print(f"\n{given.seeds} programs, {operations} operations in {time.monotonic() - began:.0f} s")
    print(f"{restarts} restarts and {ended.total()} ends at an allowed difference")
    print(f"{bad} differ in {len(failures)} ways")
    return 1 if bad else 0


def report(kafka: Kafka, cases: list[Verdict], shrink: bool) -> None:
    """Print one kind of difference by its smallest case."""
    case = min(cases, key=lambda verdict: verdict.operations)
    print(f"\n{len(cases)} programs: {case.signature}; seeds {[c.seed for c in cases[:8]]}")
    if not shrink:
        print(told(case, program=False))
        return
    case = shrunk(kafka, case)
    print(told(case))
    if scenario := as_scenario(kafka.play(case.program), case.signature):
        print(scenario)


def told(verdict: Verdict, *, program: bool = True) -> str:
    """A program and how it differs, for people."""
    lines = []
    if program:
        lines.append(f"  setup {json.dumps(verdict.program['setup'])}")
        for number, op in enumerate(verdict.program["ops"], 1):
            lines.append(f"  {number}: {json.dumps(op, ensure_ascii=False)}")
    lines += [f"  seed {verdict.seed} #{d.step} {str(d)[:500]}" for d in verdict.differences[:6]]
    return "\n".join(lines)


def verdicts(
    seeds: range, length: int, jobs: int, version: str = OLDEST, *, streams: bool = False
) -> Iterator[Verdict]:
    """The verdict on each seed's program.

    One JVM invents a program and plays it again: the order of Java's immutable sets changes with the JVM.
    """
    with Pool(jobs, _have_kafka, (version,)) as pool:
        yield from pool.imap_unordered(partial(_judged, length=length, streams=streams), seeds, chunksize=1)


_OWN: list[Kafka] = []


def _have_kafka(version: str) -> None:
    """Each process that judges has a JVM, which ends with it."""
    _OWN.append(Kafka(version))


def _judged(seed: int, *, length: int, streams: bool) -> Verdict:
    [kafka] = _OWN
    return judge(kafka.invent(seed, length, streams=streams), kafka.play)


if __name__ == "__main__":
    sys.exit(main())
