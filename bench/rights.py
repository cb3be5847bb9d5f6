"""What do rights cost? Processor time per request of our broker, without an authorizer and with 1,000 rules.

    python -m bench rights [heartbeat|consumer|commit|fetch …] [requests=20000] [rounds=9]

The same requests as in server_cpu, by a principal that rules allow to make them: it is no super user. Two
brokers, in turns.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from statistics import median

from bench.brokers import connected, create_topic, run, until_ready
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
from tests.interop.server import Server

RULES = 1_000
ON = {"authorizer.class.name": STANDARD_AUTHORIZER}


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


def compare(servers: dict[str, Server], kind: str, window: int, count: int, rounds: int) -> None:
    """Print one line: the medians and the best rounds of both, and what rights add to the median."""
    connections = {name: pipelines(server, kind, window) for name, server in servers.items()}
    for name, opened in connections.items():
        run(opened, 2_000 // CONNECTIONS)
        if told := errors(opened[0].answer()):
            raise RuntimeError(f"{name} refuses {kind}: {sorted(told)}")
    taken: dict[str, list[float]] = {name: [] for name in servers}
    for _ in range(rounds):
        for name, server in servers.items():
            taken[name].append(measured(server, connections[name], count))
    for opened in connections.values():
        for pipeline in opened:
            pipeline.close()
    off, on = median(taken["off"]), median(taken["on"])
    best = " ".join(f"{min(each):8.1f}" for each in taken.values())
    added, added_best = on / off - 1, min(taken["on"]) / min(taken["off"]) - 1
    print(
        f"{kind:10}{window:4} in flight {off:8.1f} {on:8.1f} {added:+8.1%}   best {best} {added_best:+8.1%}",
        flush=True,
    )


def main(arguments: list[str]) -> None:
    """Print a table of microseconds of processor time per request."""
    options = dict(argument.split("=") for argument in arguments if "=" in argument)
    kinds = [argument for argument in arguments if "=" not in argument] or list(KINDS)
    count, rounds = int(options.get("requests", 20_000)), int(options.get("rounds", 9))
    with ExitStack() as stack:
        servers: dict[str, Server] = {
            "off": stack.enter_context(KgroupServer()),
            "on": stack.enter_context(GuardedServer(ON)),
        }
        for server in servers.values():
            with connected(server) as transport:
                create_topic(transport, TOPIC, PARTITIONS)
                groups = [group_name(k, w, n) for k in kinds for w in WINDOWS for n in range(CONNECTIONS)]
                until_ready(transport, groups)
        print(f"{'':24} {'off':>8} {'on':>8} {'rights':>8}")
        for kind in kinds:
            for window in WINDOWS:
                compare(servers, kind, window, count, rounds)
