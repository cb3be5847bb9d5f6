"""How long does the command line take? `kgroup list` beside kafka-consumer-groups --list, in turns.

    python -m bench cli_start [rounds=5]

Both ask the same broker, one of ours. Whole processes: wall and processor seconds, medians.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from bench.brokers import connected, until_ready
from bench.history import keep
from tests.interop.jvm import TOOLS, java
from tests.interop.kgroup_server import KgroupServer

KGROUP = str(Path(sys.executable).with_name("kgroup"))


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
        "python -c pass": [sys.executable, "-c", "pass"],
    }


def timed(command: list[str]) -> tuple[float, float]:
    """Wall and processor seconds of one run."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(arguments: list[str]) -> None:
    """Print a line for each command, with its ratio to Kafka's."""
    rounds = int(dict(argument.split("=") for argument in arguments).get("rounds", 5))
    taken: dict[str, list[tuple[float, float]]] = {}
    with KgroupServer() as server:
        with connected(server) as transport:
            until_ready(transport, ["any"])
        for _ in range(rounds):
            for name, command in commands(server.bootstrap).items():
                taken.setdefault(name, []).append(timed(command))
    middle = {name: [median(column) for column in zip(*rows, strict=True)] for name, rows in taken.items()}
    wall_there, cpu_there = middle["kafka-consumer-groups --list"]
    print(f"{'':30}{'wall ms':>9}{'ratio':>7}{'CPU ms':>9}{'ratio':>7}")
    for name, (wall, cpu) in middle.items():
        said = keep(f"cli_start {name}", cpu / cpu_there) if name.startswith("kgroup") else ""
        each = f"{wall * 1e3:9.0f}{wall / wall_there:7.2f}{cpu * 1e3:9.0f}{cpu / cpu_there:7.2f}"
        print(f"{name:30}{each}  {said}")
