"""Patterns are matched a few names at a time: others are served in between, and the result is the same."""

from __future__ import annotations

from dataclasses import dataclass, field

from kgroup.coordinator.config import GroupConfig
from kgroup.coordinator.consumer import subscription
from kgroup.coordinator.consumer.subscription import MOST_EFFORT, Resolution
from kgroup.coordinator.outcome import Request
from kgroup.domain import Topic, TopicImage
from kgroup.log.memory import MemoryLog
from kgroup.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgroup.runtime.shard import Shard

NAMES = [f"orders-{n}" for n in range(1000)]
LONG = "|".join(f"orders-{n}.*" for n in range(0, 1000, 7))
"""Some two thousand instructions."""


@dataclass
class Counting:
    """A pattern that matches every name, and counts how many it was asked about."""

    programsize: int
    asked: list[str] = field(default_factory=list)

    def fullmatch(self, text: str) -> bool:
        self.asked.append(text)
        return True


def image() -> TopicImage:
    return TopicImage.of([Topic(name, name.encode().rjust(16, b"0"), 1) for name in NAMES])


def test_one_step_matches_no_more_names_the_longer_the_pattern_is(monkeypatch):
    made = {"short": Counting(50), "long": Counting(5_000)}
    monkeypatch.setattr(subscription, "compile_regex", made.__getitem__)
    work = Resolution(0, ("short", "long"), None, names=NAMES)
    steps, asked_in = 0, []
    while True:
        before = {name: len(pattern.asked) for name, pattern in made.items()}
        goes_on = work.go_on()
        steps += 1
        asked_in.append(sum((len(p.asked) - before[n]) * p.programsize for n, p in made.items()))
        if not goes_on:
            break
    assert max(asked_in) <= MOST_EFFORT + 5_000
    assert made["short"].asked == made["long"].asked == NAMES
    assert work.found == {"short": set(NAMES), "long": set(NAMES)}
    assert steps > 40


def test_others_are_answered_while_a_long_pattern_is_resolved():
    shard = Shard(0, MemoryLog(), GroupConfig(assignment_interval_ms=0), 1, image())
    shard.load(0)
    tickets = iter(range(1, 100_000))

    def beat(group, now, epoch=0, names=None, pattern=None):
        request = ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id="m",
            member_epoch=epoch,
            rebalance_timeout_ms=60_000 if epoch == 0 else -1,
            subscribed_topic_names=names,
            subscribed_topic_regex=pattern,
            topic_partitions=() if epoch == 0 else None,
        )
        (reply,) = shard.submit(next(tickets), Request(request, 1, "c", "/h"), now)
        return reply.response

    slow = beat("slow", 0, pattern=LONG)
    quick = beat("quick", 0, names=("orders-1",))
    now = rounds = 0
    while not shard.coordinator.state.groups["slow"].resolved:
        now += 1
        rounds += 1
        shard.wake(now)
        quick = beat("quick", now, quick.member_epoch)
        assert quick.error_code == 0
    assert rounds > 3
    expected = [name for name in NAMES if any(name.startswith(p[:-2]) for p in LONG.split("|"))]
    assert shard.coordinator.state.groups["slow"].resolved[LONG].topics == tuple(sorted(expected))
    assert beat("slow", now + 1, slow.member_epoch).member_epoch > slow.member_epoch
