"""How long the server-side assignors take: the first assignment of a group, and one member more.

    python -m bench.assignors [--kafka] [ASSIGNOR [homo|hetero [MEMBERS PARTITIONS]]]

With --kafka, Kafka's own assignors over the same groups (`assignors_kafka.java`; needs Java and Maven).
Times in ms: the first run, and the median of the later half of up to 15 runs.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from kgroup.coordinator.assignors.interface import NOTHING, Assignment, Assignor, GroupSpec, MemberSpec
from kgroup.coordinator.assignors.range import RangeAssignor
from kgroup.coordinator.assignors.uniform import UniformAssignor
from kgroup.domain import Topic

MEMBERS = (100, 1_000, 10_000)
PARTITIONS = (10_000, 100_000, 1_000_000)
RUNS = 15
BUDGET_S = 1.5
HEADER = "assignor\tsubs\tmembers\tpartitions\tfirst_1st_ms\tfirst_warm_ms\tincr_1st_ms\tincr_warm_ms"


def group(members: int, partitions: int, alike: bool, present: dict[str, Assignment]) -> GroupSpec:
    """100 topics (1,000 from 100,000 partitions on); unlike members subscribe to two fifths of them each."""
    count = 100 if partitions <= 10_000 else 1_000
    ids = [number.to_bytes(16, "big") for number in range(count)]
    topics = {i: Topic(f"topic-{n}", i, partitions // count) for n, i in enumerate(ids)}
    fifths = [frozenset(i for n, i in enumerate(ids) if alike or n % 5 in (b, (b + 1) % 5)) for b in range(5)]
    specs = {
        f"member-{n}": MemberSpec(fifths[n % 5], present.get(f"member-{n}", NOTHING)) for n in range(members)
    }
    return GroupSpec(specs, topics, alike)


def timed(assignor: Assignor, spec: GroupSpec) -> tuple[float, float, dict[str, Assignment]]:
    """The first run and the warm median in ms, and the targets."""
    times: list[float] = []
    targets: dict[str, Assignment] = {}
    while len(times) < RUNS and (not times or sum(times) < BUDGET_S * 1000):
        start = time.perf_counter()
        targets = assignor.assign(spec)
        times.append((time.perf_counter() - start) * 1000)
    warm = times[len(times) // 2 :] if len(times) > 2 else times
    return times[0], median(warm), targets


def kafka(arguments: list[str]) -> list[str]:
    """The command that times Kafka's assignors."""
    from tests.interop.toolchain import kafka_classpath

    source = str(Path(__file__).with_name("assignors_kafka.java"))
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
    return ["java", "-Xmx4g", quiet, "-cp", kafka_classpath(), source, *arguments]


def main(arguments: list[str]) -> None:
    """Print the table."""
    if arguments[:1] == ["--kafka"]:
        print(HEADER, flush=True)
        subprocess.run(kafka(arguments[1:]), check=True)
        return
    only, subs = [*arguments, "all", "all"][:2] if len(arguments) < 2 else arguments[:2]
    sizes = [(m, p) for m in MEMBERS for p in PARTITIONS]
    if len(arguments) == 4:
        sizes = [(int(arguments[2]), int(arguments[3]))]
    print(HEADER)
    for assignor in (UniformAssignor(), RangeAssignor()):
        for alike, label in ((True, "homo"), (False, "hetero")):
            if only not in ("all", assignor.name) or subs not in ("all", label):
                continue
            for members, partitions in sizes:
                first = timed(assignor, group(members, partitions, alike, {}))
                more = timed(assignor, group(members + 1, partitions, alike, first[2]))
                times = "\t".join(f"{ms:.2f}" for ms in (*first[:2], *more[:2]))
                print(f"{assignor.name}\t{label}\t{members}\t{partitions}\t{times}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
