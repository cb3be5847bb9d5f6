"""Made-up settings of brokers and groups for Kafka's own checks and ours.

Each case sets a few settings: the bounds of their types, their defaults and what lies just outside, numbers
that only one of two languages reads, and values of the settings they are compared with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from kgroup.coordinator.config import GroupConfig
from kgroup.errors import ConfigError, Refused
from kgroup.protocol.releases import Release

Settings = dict[str, str]
ASSIGNORS = "org.apache.kafka.coordinator.group.assignor."
NUMBERS = tuple(map(str, (0, 1, -1, 2, 3, 99, 1000, 9999, 10_000, 44_999, 45_000, 60_000, 60_001, 70_000)))
BOUNDS = tuple(str(way * 2**bits - less) for way in (1, -1) for bits in (31, 63) for less in (0, 1))
WRITTEN = (
    *[" 5000 ", "+5000", "05000", "5_000", "5e3", "5.0", "0x10", "", " ", "５０００", "\xa05000"],
    "1" * 5000,
)
LISTS = (
    "uniform",
    "range",
    "uniform,range",
    " range , uniform ",
    "uniform,uniform",
    "uniform,,range",
    ",",
    "",
    "Uniform",
    "sticky",
    " sticky ",
    "sticky,sticky",
    "org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor",
    "sticky,org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor",
    "zone , rack",
    ASSIGNORS + "UniformAssignor",
    f"{ASSIGNORS}RangeAssignor,uniform",
    f"{ASSIGNORS}UniformAssignor,uniform",
    f"{ASSIGNORS}SimpleAssignor",
    "java.lang.String",
    "com.example.None",
    "classic",
    "classic,consumer",
    "consumer",
    "classic,classic,streams",
    "classic,share",
    "Classic",
    "classic,unknown",
)
WORDS = (
    *("bidirectional", "BiDirectional", " upgrade", "downgrade", "disabled", "none", "true", "false"),
    *(
        "TRUE ",
        "earliest",
        " latest",
        "Latest",
        "read_committed",
        "READ_COMMITTED",
        "by_duration",
        "by_duration:",
    ),
    *(
        "by_duration:PT1H",
        "by_duration: PT1H",
        "by_duration:p1dt2.5s",
        "by_duration:PT-1S",
        "by_duration:P",
        "by_duration:1h",
    ),
)
ELSEWHERE = frozenset(
    {
        "group.coordinator.append.linger.ms",
        "group.coordinator.background.threads",
        "group.coordinator.cached.buffer.max.bytes",
        "group.coordinator.threads",
        "group.share.assignors",
        "group.share.persister.class.name",
        "offsets.commit.timeout.ms",
        "offsets.load.buffer.size",
        "offsets.topic.compression.codec",
        "offsets.topic.num.partitions",
        "offsets.topic.replication.factor",
        "offsets.topic.segment.bytes",
        "share.fetch.purgatory.purge.interval.requests",
    }
)
"""Kafka's settings that the coordinator does not have: of threads, buffers, classes and its topic."""


NOT_BUILT = frozenset(
    {
        "consumer.assignor.offload.enable",
        "errors.deadletterqueue.auto.create.topics.enable",
        "errors.deadletterqueue.copy.record.enable",
        "errors.deadletterqueue.topic.name",
        "errors.deadletterqueue.topic.name.prefix",
        "group.consumer.assignor.offload.enable",
        "group.share.assignor.offload.enable",
        "group.share.dlq.manager.class.name",
        "group.streams.acceptable.recovery.lag",
        "group.streams.assignor.offload.enable",
        "group.streams.max.warmup.replicas",
        "group.streams.min.task.offset.interval.ms",
        "group.streams.num.warmup.replicas",
        "group.streams.task.offset.interval.ms",
        "group.streams.topology.description.plugin.class",
        "share.assignor.offload.enable",
        "streams.acceptable.recovery.lag",
        "streams.assignor.offload.enable",
        "streams.num.warmup.replicas",
        "streams.task.offset.interval.ms",
    }
)
"""What Kafka 4.4 brought and we have not: most are internal there; docs/not-built.md has the others."""


@dataclass(frozen=True)
class Case:
    """Settings of a broker, and those of a group (None: none are altered)."""

    broker: Settings
    group: Settings | None
    kafka: Release

    @classmethod
    def of(cls, seed: int, group_names: list[str], kafka: Release) -> Case:
        dice = Random(seed)
        defaults = GroupConfig(kafka=kafka).as_text()
        broker_names = [name for name in defaults if not name.startswith("kgroup.")]
        alike = dice.choice(("consumer", "share", "streams", ""))
        near = [name for name in broker_names if alike in name]
        chosen = dice.sample(near, dice.choice((0, 1, 1, 2, 3)))
        chosen += dice.sample(broker_names, dice.choice((0, 1)))
        group = None
        if dice.random() < 0.5:
            near = [name for name in group_names if name.startswith(alike)] or group_names
            names = dice.sample(near, min(len(near), dice.choice((0, 1, 1, 2, 3))))
            group = {name: _value(dice, defaults, f"group.{name}") for name in names}
        return cls({name: _value(dice, defaults, name) for name in chosen}, group, kafka)

    def refused_by_us(self) -> str | None:
        """Why our checks refuse it."""
        try:
            config = GroupConfig.of(self.broker, self.kafka)
        except ConfigError as refused:
            return str(refused)
        try:
            config.check_group(self.group or {})
        except Refused as refused:
            return str(refused.message)
        return None

    def asked(self) -> dict[str, Settings]:
        """The case as the JVM is asked."""
        return {"broker": self.broker} | ({} if self.group is None else {"group": self.group})


def _value(dice: Random, defaults: Mapping[str, str], name: str) -> str:
    own = GroupConfig().of_groups().get(name.removeprefix("group."))
    default = defaults.get(name) or (own and own.default_text) or "0"
    if dice.random() < 0.07:
        return dice.choice(LISTS + WORDS)
    if any(word in name for word in ("assignor", "protocols", "tags")):
        return dice.choice(LISTS)
    if not default.lstrip("-").isdecimal():
        return dice.choice(WORDS)
    roll = dice.random()
    if roll < 0.45:
        return str(int(default) + dice.choice((-1, 0, 0, 1)))
    return dice.choice(NUMBERS if roll < 0.8 else BOUNDS if roll < 0.9 else WRITTEN)
