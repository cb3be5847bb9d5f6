"""`python -m tests.differential.share`: made-up programs on Kafka's share partition, and on ours."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from multiprocessing import Pool

from . import groups
from .judge import Verdict, judge, kafka, shrunk


def main() -> int:
    """Play the programs; 1 when one differs."""
    parser = argparse.ArgumentParser(prog="differential.share", description=__doc__)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--programs", type=int, default=5000, help="how many programs")
    parser.add_argument(
        "--groups", type=int, default=1000, help="how many of share groups in the coordinator"
    )
    parser.add_argument("--length", type=int, default=60, help="operations a program")
    parser.add_argument("--jobs", type=int, default=2, help="processes, each with a JVM")
    given = parser.parse_args()
    began = time.monotonic()
    failures: dict[str, list[Verdict]] = {}
    operations = 0
    crashes: Counter[str] = Counter()
    for verdict in verdicts(range(given.first, given.first + given.programs), given.length, given.jobs):
        operations += verdict.at
        crashes.update([verdict.crash] if verdict.crash else ())
        if verdict.differences:
            failures.setdefault(verdict.signature, []).append(verdict)
    with kafka() as running:
        for signature, cases in sorted(failures.items(), key=lambda item: -len(item[1]))[:10]:
            seeds = [case.seed for case in cases[:8]]
            print(f"\n{len(cases)} programs: {signature}; seeds {seeds}")
            case = shrunk(running, min(cases, key=lambda each: each.at))
            print(f"  setup {json.dumps(case.setup)}")
            for number, op in enumerate(case.ops):
                print(f"  {number}: {json.dumps(op)[:400]}")
            for line in case.differences[:6]:
                print(f"  {line[:600]}")
    for crash, count in crashes.most_common():
        print(f"ended {count:5} times by Kafka's own exception: {crash}")
    bad = sum(map(len, failures.values()))
    print(f"\n{given.programs} programs, {operations} operations in {time.monotonic() - began:.0f} s")
    print(f"{bad} differ in {len(failures)} ways")
    apart = list(of_groups(range(given.first, given.first + given.groups), given.jobs))
    print("\n".join(line[:2000] for lines in apart[:5] for line in lines))
    print(f"{given.groups} programs on share groups in the coordinator, {len(apart)} differ")
    return 1 if bad or apart else 0


def verdicts(seeds: range, length: int, jobs: int) -> Iterator[Verdict]:
    """The verdict on each seed's program."""
    size = max(1, len(seeds) // (jobs * 4))
    shares = [seeds[at : at + size] for at in range(0, len(seeds), size)]
    with Pool(jobs) as pool:
        for found in pool.imap_unordered(partial(_judged, length=length), shares):
            yield from found


def of_groups(seeds: range, jobs: int) -> Iterator[list[str]]:
    """What differs in each program on share groups in the coordinator that is played otherwise."""
    size = max(1, len(seeds) // (jobs * 4))
    with Pool(jobs) as pool:
        for found in pool.imap_unordered(
            _apart, [seeds[at : at + size] for at in range(0, len(seeds), size)]
        ):
            yield from found


def _apart(seeds: range) -> list[list[str]]:
    with groups.kafka() as running:
        return [lines for seed in seeds if (lines := groups.differences(running, seed, groups.LENGTH))]


def _judged(seeds: range, *, length: int) -> list[Verdict]:
    with kafka() as running:
        return [judge(running, seed, length) for seed in seeds]


if __name__ == "__main__":
    sys.exit(main())
