"""What does a failover of thousands of consumers cost the new coordinator of the ZooKeeper era?

    python -m bench legacy_failover [MEMBERS=5000]

One group, a partition for each member; the old coordinator is gone, all register at one moment with the new
one, and answer at once. Processor time within the machine alone, beside what it was told and what it did.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter, deque

from kgroup.zookeeper.coordinator import paths
from kgroup.zookeeper.coordinator.config import LegacyConfig
from kgroup.zookeeper.coordinator.machine import LegacyCoordinator
from kgroup.zookeeper.events import (
    CoordinatorEffect,
    CoordinatorEvent,
    Opened,
    Received,
    Send,
    Zk,
    ZkConnected,
    ZkDone,
)
from kgroup.zookeeper.store.operations import Create, Write
from kgroup.zookeeper.store.tree import Tree
from kgroup.zookeeper.wire.messages import (
    FromConsumer,
    Partition,
    PingRequest,
    PingResponse,
    RegisterConsumerRequest,
    StartFetcherRequest,
    StartFetcherResponse,
    StopFetcherRequest,
    StopFetcherResponse,
)

SESSION_MS = 6000


class Host:
    """The machine's host: everything is answered in the moment it is asked."""

    def __init__(self, tree: Tree) -> None:
        self.machine = LegacyCoordinator(LegacyConfig(), 1)
        self.tree = tree
        self.session = tree.open()
        self.now_ms = 0
        self.spent_s = 0.0
        self.counts: Counter[str] = Counter()
        self._events: deque[CoordinatorEvent] = deque()

    def tell(self, *events: CoordinatorEvent) -> None:
        """These happen, and all that follows from them."""
        self._events.extend(events)
        while self._events:
            event = self._events.popleft()
            began = time.process_time()
            effects = self.machine.step(event, self.now_ms)
            self.spent_s += time.process_time() - began
            self.counts["events"] += 1
            for effect in effects:
                self._carry_out(effect)

    def _carry_out(self, effect: CoordinatorEffect) -> None:
        if isinstance(effect, Zk):
            kind = "multis" if isinstance(effect.ops[0], Write) else "read calls"
            self.counts[f"operations in {kind}"] += len(effect.ops)
            self.counts[kind] += 1
            results = self.tree.ask(self.session, effect.ops, watch=effect.watch)
            self._events.append(ZkDone(effect.call, results))
        elif isinstance(effect, Send):
            self.counts[type(effect.message).__name__] += 1
            answer = answer_to(effect.message)
            if answer is not None:
                self._events.append(Received(effect.conn, answer))


def answer_to(message: object) -> FromConsumer | None:
    """What a consumer answers that has delivered nothing yet."""
    match message:
        case PingRequest(consumer_id):
            return PingResponse(0, consumer_id, ())
        case StopFetcherRequest(consumer_id):
            return StopFetcherResponse(0, consumer_id, ())
        case StartFetcherRequest(consumer_id):
            return StartFetcherResponse(0, consumer_id)
    return None


def tree_of(members: int) -> Tree:
    """A tree as the old coordinator left it."""
    tree = Tree()
    admin = tree.open()
    partitions = json.dumps({"version": 1, "partitions": {str(n): [1] for n in range(members)}})
    told = json.dumps({"version": 1, "session_timeout_ms": SESSION_MS})
    nodes = {
        "/brokers": "",
        paths.BROKER_IDS: "",
        paths.broker("1"): '{"version":1,"host":"h","port":9092}',
        paths.TOPICS: "",
        paths.topic("t"): partitions,
        paths.CONSUMERS: "",
        paths.group("g"): "",
        paths.owners("g"): told,
        paths.owners_of("g", "t"): "",
    }
    for number in range(members):
        nodes[paths.owner("g", Partition("t", str(number)))] = f"{member_name(number)}-0"
    for path, data in nodes.items():
        tree.ask(admin, (Create(path, data.encode()),))
    return tree


def member_name(number: int) -> str:
    return f"consumer-{number:06}"


def main(arguments: list[str]) -> None:
    members = int(arguments[0]) if arguments else 5000
    host = Host(tree_of(members))
    host.tell(ZkConnected(host.session, SESSION_MS, True))
    host.counts.clear()
    host.spent_s = 0.0
    for number in range(members):
        registration = RegisterConsumerRequest(
            "g", member_name(number), '{"t":1}', True, "smallest", SESSION_MS
        )
        host.tell(Opened(number), Received(number, registration))
    assert host.machine.term is not None
    started = sum(member.started for member in host.machine.term.members.values())
    print(f"{members} members, {started} started, {host.spent_s:.2f} CPU s in the machine")
    for name, count in sorted(host.counts.items()):
        print(f"  {count:>8} {name}")


if __name__ == "__main__":
    main(sys.argv[1:])
