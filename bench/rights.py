"""What do rights cost? Processor time per request of our broker, without an authorizer and with 1,000 rules.

    python -m bench rights [heartbeat|consumer|commit|fetch …] [requests=20000] [rounds=9]
    python -m bench rights instructions [heartbeat|consumer|commit|fetch …] [requests=1000] [rounds=5]

The same requests as in server_cpu, by a principal that rules allow to make them: it is no super user. Two
brokers, in turns. With `instructions` both run under valgrind, and what they execute is counted: that hardly
depends on what else the machine is doing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from statistics import median

from bench.brokers import Pipeline, connected, create_topic, run, until_ready
from bench.history import keep
from bench.instructions import START_S, Counted, under_valgrind
from bench.server_cpu import (
    CONNECTIONS,
    KINDS,
    PARTITIONS,
    TOPIC,
    WINDOWS,
    errors,
    group_name,
    measured,
    pipelines,
)
from kgroup.runtime.cluster import Cluster
from kgroup.runtime.settings import STANDARD_AUTHORIZER
from kgroup.security.acls import CLUSTER_NAME, Acl, Operation, PatternType, Permission, ResourceType
from kgroup.security.principals import ANONYMOUS
from tests.interop.kgroup_server import KgroupServer

RULES = 1_000
ON = {"authorizer.class.name": STANDARD_AUTHORIZER}
PATIENT = {
    "group.consumer.session.timeout.ms": "1800000",
    "group.consumer.max.session.timeout.ms": "1800000",
}
"""A member that waits for a broker under valgrind is not gone."""


def rules() -> Iterator[Acl]:
    """Those that matter, and many about topics and groups of others, literal and prefixed."""
    who = str(ANONYMOUS)
    mine = (
        (ResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL),
        (ResourceType.TOPIC, TOPIC, PatternType.LITERAL),
        *((ResourceType.GROUP, f"{kind}-", PatternType.PREFIXED) for kind in KINDS),
    )
    for resource, name, pattern in mine:
        yield Acl(resource, name, pattern, who, "*", Operation.ALL, Permission.ALLOW)
    for number in range(RULES - len(mine)):
        yield Acl(
            (ResourceType.TOPIC, ResourceType.GROUP)[number % 2],
            f"application-{number:04}",
            (PatternType.LITERAL, PatternType.PREFIXED)[number // 2 % 2],
            f"User:application-{number:04}",
            "*",
            Operation.READ,
            Permission.ALLOW,
        )


class GuardedServer(KgroupServer):
    """Our broker with an authorizer, and rules before its first start."""

    def prepare(self) -> None:
        cluster = Cluster(self.data_dir, config=ON, offsets_partitions=4)
        assert cluster.acls is not None
        cluster.acls.add(rules())
        cluster.close()


class CountedServer(KgroupServer):
    """Our broker without rights, under valgrind."""

    def command(self) -> list[str]:
        return under_valgrind(self, super().command())


class CountedGuard(GuardedServer):
    """Our broker with rights, under valgrind."""

    def command(self) -> list[str]:
        return under_valgrind(self, super().command())


Measure = Callable[[str, list[Pipeline]], float]


def by_time(servers: dict[str, KgroupServer], count: int) -> Measure:
    """Microseconds of processor time per request."""
    return lambda name, connections: measured(servers[name], connections, count)


def by_instructions(servers: dict[str, KgroupServer], count: int) -> Measure:
    """Thousands of instructions per request."""
    counted = {name: Counted(server) for name, server in servers.items()}

    def measure(name: str, connections: list[Pipeline]) -> float:
        counted[name].since()
        run(connections, count // CONNECTIONS)
        return counted[name].since() / count / 1e3

    return measure


def compare(servers: dict[str, KgroupServer], measure: Measure, kind: str, window: int, rounds: int) -> None:
    """Print one line: the medians and the best rounds of both, and what rights add to the median."""
    connections = {name: pipelines(server, kind, window) for name, server in servers.items()}
    for name, opened in connections.items():
        measure(name, opened)
        if told := errors(opened[0].answer()):
            raise RuntimeError(f"{name} refuses {kind}: {sorted(told)}")
    taken: dict[str, list[float]] = {name: [] for name in servers}
    for _ in range(rounds):
        for name in servers:
            taken[name].append(measure(name, connections[name]))
    for opened in connections.values():
        for pipeline in opened:
            pipeline.close()
    off, on = median(taken["off"]), median(taken["on"])
    best = " ".join(f"{min(each):8.1f}" for each in taken.values())
    said = keep(f"rights {kind} {window}", on / off)
    added, added_best = on / off - 1, min(taken["on"]) / min(taken["off"]) - 1
    print(
        f"{kind:10}{window:4} in flight {off:8.1f} {on:8.1f} {added:+8.1%}   best {best} {added_best:+8.1%}"
        f"   {said}",
        flush=True,
    )


def main(arguments: list[str]) -> None:
    """Print a table of microseconds of processor time, or of thousands of instructions, per request."""
    options = dict(argument.split("=") for argument in arguments if "=" in argument)
    counting = "instructions" in arguments
    kinds = [name for name in arguments if "=" not in name and name != "instructions"] or list(KINDS)
    count = int(options.get("requests", 1_000 if counting else 20_000))
    rounds = int(options.get("rounds", 5 if counting else 9))
    with ExitStack() as stack:
        servers = (
            {"off": CountedServer(PATIENT), "on": CountedGuard({**ON, **PATIENT})}
            if counting
            else {"off": KgroupServer(), "on": GuardedServer(ON)}
        )
        for server in servers.values():
            stack.callback(server.close)
            server.start(START_S)
            with connected(server) as transport:
                create_topic(transport, TOPIC, PARTITIONS)
                groups = [group_name(k, w, n) for k in kinds for w in WINDOWS for n in range(CONNECTIONS)]
                until_ready(transport, groups)
        measure = (by_instructions if counting else by_time)(servers, count)
        print(f"{'':24} {'off':>8} {'on':>8} {'rights':>8}")
        for kind in kinds:
            for window in WINDOWS:
                compare(servers, measure, kind, window, rounds)
