"""How long does the command line take? `kgroup list` beside kafka-consumer-groups --list, in turns.

    python -m bench cli_start [rounds=5]

Both ask the same broker, one of ours. Whole processes: wall and processor seconds, medians.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median

from bench.brokers import connected, until_ready
from bench.history import Ratio, keep
from tests.interop.jvm import TOOLS, java
from tests.interop.kgroup_server import KgroupServer

KGROUP = str(Path(sys.executable).with_name("kgroup"))
COMPLETING = {"_KGROUP_COMPLETE": "bash"}


# What kafka-consumer-groups.sh, through kafka-run-class.sh, starts its Java with.
SCRIPT_JVM = (
    *("-Xmx256M", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *(
        "-XX:InitiatingHeapOccupancyPercent=35",
        "-XX:+ExplicitGCInvokesConcurrent",
        "-Djava.awt.headless=true",
    ),
)


def commands(bootstrap: str) -> dict[str, list[str]]:
    """What is compared; Kafka's tool gets the options of its own script, without the script's own time."""
    tool = java(TOOLS["kafka-consumer-groups"], "--bootstrap-server", bootstrap, "--list", jvm=SCRIPT_JVM)
    return {
        "kgroup list": [KGROUP, "list", "-b", bootstrap],
        "kafka-consumer-groups --list": tool,
        "kgroup --help": [KGROUP, "--help"],
        "kgroup describe --se<TAB>": [KGROUP, "kgroup describe --se"],
        "python -c pass": [sys.executable, "-c", "pass"],
    }


def as_installed(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment in which Python keeps what it compiled, as an installed kgroup has it."""
    return {name: value for name, value in environment.items() if name != "PYTHONDONTWRITEBYTECODE"}


def timed(command: list[str], variables: Mapping[str, str]) -> tuple[float, float]:
    """Wall and processor seconds of one run."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    env = as_installed({**os.environ, **variables})
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, env=env)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(arguments: list[str]) -> None:
    """Print a line for each command, with its ratio to Kafka's."""
    rounds = int(dict(argument.split("=") for argument in arguments).get("rounds", 5))
    taken: dict[str, list[tuple[float, float]]] = {}
    subprocess.run(
        [KGROUP, "list", "--help"], stdout=subprocess.DEVNULL, check=True, env=as_installed(os.environ)
    )
    with KgroupServer() as server:
        with connected(server) as transport:
            until_ready(transport, ["any"])
        for _ in range(rounds):
            for name, command in commands(server.bootstrap).items():
                variables = COMPLETING if name.endswith("<TAB>") else {}
                taken.setdefault(name, []).append(timed(command, variables))
    theirs = taken["kafka-consumer-groups --list"]
    print(f"{'':30}{'wall ms':>9}{'CPU ms':>9}   {'ratio of wall':22}ratio of CPU")
    for name, rows in taken.items():
        walls, cpus = (
            Ratio.of([row[column] for row in rows], [row[column] for row in theirs]) for column in (0, 1)
        )
        said = keep(f"cli_start {name}", cpus.middle) if name.startswith("kgroup") else ""
        wall, cpu = (median(column) * 1e3 for column in zip(*rows, strict=True))
        print(f"{name:30}{wall:9.0f}{cpu:9.0f}   {walls!s:22}{cpus!s:22}{said}")
