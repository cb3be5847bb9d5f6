"""What does a way in that obeys rules cost? Heartbeats in process, without it, with it, with a rule.

    python -m bench faults [requests=100000] [rounds=9]

The same calls through a broker's usual dispatcher, through the controlled one of `kgroup.testing` without any
rule, and with one about another request; in turns. The usual one, of `kgroup serve`, has no line for rules.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

from kgroup.broker.call import Call
from kgroup.broker.control.dispatcher import ControlledDispatcher
from kgroup.broker.control.faults.rules import Rule
from kgroup.broker.dispatch import Dispatcher
from kgroup.broker.handlers import ALL
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgroup.runtime.cluster import Cluster


def member(dispatcher: Dispatcher) -> Call[Message]:
    """The heartbeat of a member that has joined."""

    def beat(epoch: int, topics: tuple[str, ...] | None) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(
            group_id="bench",
            member_id="one",
            member_epoch=epoch,
            rebalance_timeout_ms=300_000,
            subscribed_topic_names=topics,
            topic_partitions=() if epoch == 0 else None,
        )

    answer = dispatcher.handle(Call(beat(0, ("orders",)), 0, "bench", "/127.0.0.1"))
    return Call(beat(answer.member_epoch, None), 0, "bench", "/127.0.0.1")  # type: ignore[union-attr]


def made(kind: type[Dispatcher], *rules: Rule) -> Callable[[int], float]:
    dispatcher = kind(Cluster(config={"offsets.topic.num.partitions": "1"}), ALL)
    if isinstance(dispatcher, ControlledDispatcher) and rules:
        dispatcher.faults.add(rules)
    call = member(dispatcher)

    def timed(requests: int) -> float:
        began = time.process_time()
        for _ in range(requests):
            dispatcher.handle(call)
        return (time.process_time() - began) / requests * 1e6

    return timed


def main(arguments: list[str]) -> None:
    given = [int(each) for each in arguments]
    requests, rounds = [*given, *(100_000, 9)[len(given) :]]
    ways = {
        "usual": made(Dispatcher),
        "controlled": made(ControlledDispatcher),
        "with a rule": made(ControlledDispatcher, Rule.of({"keys": ["Produce"], "error": "NOT_COORDINATOR"})),
    }
    for each in ways.values():
        each(requests // 10)
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, timed in ways.items():
            found[name].append(timed(requests))
    for name, times in found.items():
        print(f"  {name:12} {median(times):.2f} µs a heartbeat ({min(times):.2f} to {max(times):.2f})")
