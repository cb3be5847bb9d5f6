"""What does a broker hold for a group, and how long does it take to load them? Ours beside Kafka.

    python -m bench many_groups [groups=100000] [partitions=10]

Groups without members that have committed. Memory a group: what the process has more than before, after a
collection; of Kafka the heap in use. Loading: from the start of the process until it lists every group, less
the same without any group; wall and processor seconds.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable

from bench.brokers import brokers, connected, cpu_s, create_topic
from bench.history import keep
from bench.three_brokers import OFFSETS_PARTITIONS, committed
from kgroup.errors import KgroupError
from kgroup.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from tests.interop.server import Server

TOPIC = "bench"
PATIENCE_S = 600.0


def resident(pid: int) -> float:
    """Bytes of memory a process has."""
    with open(f"/proc/{pid}/status") as status:
        return float(re.findall(r"VmRSS:\s+(\d+) kB", status.read())[0]) * 1024


def heap(pid: int) -> float:
    """Bytes of a JVM's heap that are in use, after a collection."""
    for words in (["GC.run"], ["GC.heap_info"]):
        said = subprocess.run(["jcmd", str(pid), *words], capture_output=True, text=True, check=True).stdout
    return float(re.findall(r"used (\d+)K", said)[0]) * 1024


MEMORY: dict[str, Callable[[int], float]] = {"kgroup": resident, "kafka": heap}


def until_listed(server: Server, count: int) -> float:
    """Seconds until the broker lists so many groups."""
    start = time.perf_counter()
    while time.perf_counter() - start < PATIENCE_S:
        try:
            with connected(server) as transport:
                answer = transport.request(None, ListGroupsRequest())
            assert isinstance(answer, ListGroupsResponse)
            if not answer.error_code and len(answer.groups) >= count:
                return time.perf_counter() - start
        except KgroupError:
            pass
        time.sleep(0.02)
    raise RuntimeError(f"not all of {count} groups are there")


def restarted(server: Server, count: int) -> tuple[float, float]:
    """Seconds from the start of the process until it lists so many groups: wall, and the process's own."""
    server.stop()
    start = time.perf_counter()
    server.start()
    until_listed(server, count)
    return time.perf_counter() - start, cpu_s(server.pid)


def measured(server: Server, name: str, groups: int, partitions: int) -> tuple[float, float, float]:
    """Bytes a group after loading, and the seconds that loading took: wall and processor."""
    with connected(server) as transport:
        create_topic(transport, TOPIC, partitions)
    committed(server.bootstrap, ["first"], [TOPIC], partitions)
    without = restarted(server, 1)
    before = MEMORY[name](server.pid)
    committed(server.bootstrap, [f"group-{n:06}" for n in range(groups)], [TOPIC], partitions)
    loaded = restarted(server, groups)
    each = (MEMORY[name](server.pid) - before) / groups
    return each, loaded[0] - without[0], loaded[1] - without[1]


def main(arguments: list[str]) -> None:
    """Print a line for each broker, and the ratio of ours to Kafka's."""
    options = {key: int(value) for key, value in (argument.split("=") for argument in arguments)}
    groups, partitions = options.get("groups", 100_000), options.get("partitions", 10)
    found = {}
    with brokers({"offsets.topic.num.partitions": OFFSETS_PARTITIONS}) as servers:
        print(f"{groups} groups x {partitions:<12}{'bytes a group':>15}{'loaded in s':>13}{'CPU s':>8}")
        for name in [name for name in servers if name in MEMORY]:
            found[name] = measured(servers[name], name, groups, partitions)
            each, wall, cpu = found[name]
            print(f"{name:28}{each:15.0f}{wall:13.1f}{cpu:8.1f}", flush=True)
    if "kafka" in found:
        whats = ("memory", "load, wall", "load, CPU")
        for what, ours, theirs in zip(whats, found["kgroup"], found["kafka"], strict=True):
            said = keep(f"many_groups {groups}x{partitions} {what}", ours / theirs)
            print(f"{what} ratio {ours / theirs:.2f}  {said}")
