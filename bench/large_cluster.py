"""How long do the commands about all groups take on a large cluster, beside kafka-consumer-groups?

    python -m bench large_cluster [groups=10000] [partitions=100] [topics=10] [rounds=1] [at=HOST:PORT]

On a Kafka of three brokers (bench/three_brokers.py; `at` names one that runs already). Whole processes in
turns: wall and processor seconds, largest memory; medians. Kafka's tool runs with the options of its script.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench.cli_start import KGROUP, SCRIPT_JVM, as_installed
from bench.history import Ratio, keep
from bench.three_brokers import filled, three_brokers
from tests.interop.jvm import TOOLS, java
from tests.interop.toolchain import missing
from tests.own_home import environment

LIST, OFFSETS = "kafka-consumer-groups --list", "kafka-consumer-groups --describe --all-groups"
STATES = "kafka-consumer-groups --describe --all-groups --state"
"""What tells of each group what our `list` tells: coordinator, state and number of members."""
OURS = {
    "list": (["list"], STATES),
    "list --no-members": (["list", "--no-members"], LIST),
    "describe --all-groups": (["describe", "--all-groups"], OFFSETS),
    "lag '*'": (["lag", "*"], OFFSETS),
    "lag '*' -o ndjson": (["lag", "*", "-o", "ndjson"], OFFSETS),
    "doctor --all-groups": (["doctor", "--all-groups"], OFFSETS),
    "doctor --without history": (["doctor", "--all-groups", "--without", "history"], OFFSETS),
    "doctor --kafka 5": (["doctor", "--kafka", "5"], OFFSETS),
    "upgrade plan --all-groups": (["upgrade", "plan", "--all-groups"], OFFSETS),
    "upgrade plan --read-log": (["upgrade", "plan", "--all-groups", "--read-log"], OFFSETS),
}
TIMEOUT = "600s"


class Run(NamedTuple):
    """What one process took."""

    wall_s: float
    cpu_s: float
    memory_mb: float


def timed(command: list[str], home: Path) -> Run:
    """One run; RuntimeError when it fails."""
    start = time.perf_counter()
    with open(os.devnull, "w") as nowhere, (home / "said").open("w+") as said:
        process = subprocess.Popen(command, stdout=nowhere, stderr=said, env=as_installed(environment(home)))
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            raise RuntimeError(f"{command} ended with {process.returncode}: {said.read()[:300]}")
    return Run(time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def commands(bootstrap: str) -> dict[str, list[str]]:
    """Ours and Kafka's, by name."""
    ours = {
        name: [KGROUP, *words, "-b", bootstrap, "--timeout", TIMEOUT] for name, (words, _) in OURS.items()
    }
    theirs = {}
    all_groups = ["--describe", "--all-groups"]
    for name, words in {LIST: ["--list"], STATES: [*all_groups, "--state"], OFFSETS: all_groups}.items():
        options = ["--bootstrap-server", bootstrap, "--timeout", "600000"]
        theirs[name] = java(TOOLS["kafka-consumer-groups"], *options, *words, jvm=SCRIPT_JVM)
    return ours | theirs


def main(arguments: list[str]) -> None:
    """Print a line for each command, with its ratios to Kafka's."""
    options = dict(argument.split("=", 1) for argument in arguments)
    groups, partitions, topics, rounds = (
        int(options.get(name, usual))
        for name, usual in (("groups", 10_000), ("partitions", 100), ("topics", 10), ("rounds", 1))
    )
    if absent := missing("java", "mvn"):
        print(f"left out: it needs {', '.join(absent)} on PATH")
        return
    taken: dict[str, list[Run]] = {}
    with ExitStack() as running:
        home = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="kgroup-bench-")))
        bootstrap = options.get("at")
        if bootstrap is None:
            bootstrap = running.enter_context(three_brokers())[0].bootstrap
            filled(bootstrap, groups, partitions, topics)
        for _ in range(rounds):
            for name, command in commands(bootstrap).items():
                taken.setdefault(name, []).append(timed(command, home))
    _show(taken, f"{groups}x{partitions}")


def _show(taken: dict[str, list[Run]], size: str) -> None:
    print(f"{size:46}{'wall s':>8}{'CPU s':>8}{'MB':>6}   {'ratio of wall':22}ratio of CPU")
    for name, runs in taken.items():
        middle = Run(*map(median, zip(*runs, strict=True)))
        each = f"{middle.wall_s:8.1f}{middle.cpu_s:8.1f}{middle.memory_mb:6.0f}"
        if name not in OURS:
            print(f"{name:46}{each}")
            continue
        theirs = taken[OURS[name][1]]
        walls = Ratio.of([run.wall_s for run in runs], [run.wall_s for run in theirs])
        cpus = Ratio.of([run.cpu_s for run in runs], [run.cpu_s for run in theirs])
        print(f"{name:46}{each}   {walls!s:22}{cpus!s:22}{keep(f'large_cluster {size} {name}', cpus.middle)}")
