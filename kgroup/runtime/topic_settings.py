"""The settings a topic may have: Kafka's names, types, defaults and bounds, and the values in force.

Kafka 4.3.1's LogConfig is the source. A value that was not given is the broker's, under the broker's name
for it, else the default. Retention alone differs: nothing is deleted by default, as the embedded cluster
may contain a copy of a user's data (docs/decisions/0017-topic-settings.md).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kgroup.errors import ErrorCode, Refused

INT32_MAX, INT64_MAX = (1 << 31) - 1, (1 << 63) - 1
BOOLEAN, STRING, INT, LONG, DOUBLE, LIST = 1, 2, 3, 5, 6, 7  # config types, as DescribeConfigs reports them
MAX_VALUE = (1 << 15) - 1  # length of a value

_WHOLE = re.compile(r"[+-]?[0-9]+")
_FRACTION = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?")
_COMMA = re.compile(r"\s*,\s*")
_THROTTLED = re.compile(r"([0-9]+:[0-9]+)?")


class TopicSetting(NamedTuple):
    """One setting: its type, its default as text, the broker setting behind it ("" for none), and its check.

    The check gets the parsed value and returns what is wrong with it, None for nothing.
    """

    type: int
    default: str
    broker_name: str = ""
    check: Callable[[object], str | None] = lambda value: None


def at_least(low: float) -> Callable[[object], str | None]:
    return lambda value: f"Value must be at least {low}" if value < low else None  # type: ignore[operator]


def between(low: float, high: float) -> Callable[[object], str | None]:
    def check(value: object) -> str | None:
        if value > high:  # type: ignore[operator]
            return f"Value must be no more than {high}"
        return at_least(low)(value)

    return check


def one_of(*choices: str) -> Callable[[object], str | None]:
    return lambda value: None if value in choices else f"String must be one of: {', '.join(choices)}"


def _policies(value: object) -> str | None:
    assert isinstance(value, list)
    return next((error for each in value if (error := one_of("compact", "delete")(each))), None)


def _gzip_level(value: object) -> str | None:
    return None if value == -1 or not between(1, 9)(value) else "Value must be between 1 and 9 or equal to -1"


def _throttled(value: object) -> str | None:
    assert isinstance(value, list)
    if "".join(value) == "*" or all(_THROTTLED.fullmatch(each) for each in value):
        return None
    return (
        "must be the literal '*' or a list of replicas in the following format: "
        "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
    )


_COMPRESSIONS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")

SETTINGS: dict[str, TopicSetting] = {
    "cleanup.policy": TopicSetting(LIST, "delete", "log.cleanup.policy", _policies),
    "compression.gzip.level": TopicSetting(INT, "-1", "compression.gzip.level", _gzip_level),
    "compression.lz4.level": TopicSetting(INT, "9", "compression.lz4.level", between(1, 17)),
    "compression.type": TopicSetting(STRING, "producer", "compression.type", one_of(*_COMPRESSIONS)),
    "compression.zstd.level": TopicSetting(INT, "3", "compression.zstd.level", between(-131072, 22)),
    "delete.retention.ms": TopicSetting(LONG, "86400000", "log.cleaner.delete.retention.ms", at_least(0)),
    "file.delete.delay.ms": TopicSetting(LONG, "60000", "log.segment.delete.delay.ms", at_least(0)),
    "flush.messages": TopicSetting(LONG, str(INT64_MAX), "log.flush.interval.messages", at_least(1)),
    "flush.ms": TopicSetting(LONG, str(INT64_MAX), "log.flush.interval.ms", at_least(0)),
    "follower.replication.throttled.replicas": TopicSetting(LIST, "", "", _throttled),
    "index.interval.bytes": TopicSetting(INT, "4096", "log.index.interval.bytes", at_least(0)),
    "leader.replication.throttled.replicas": TopicSetting(LIST, "", "", _throttled),
    "local.retention.bytes": TopicSetting(LONG, "-2", "log.local.retention.bytes", at_least(-2)),
    "local.retention.ms": TopicSetting(LONG, "-2", "log.local.retention.ms", at_least(-2)),
    "max.compaction.lag.ms": TopicSetting(
        LONG, str(INT64_MAX), "log.cleaner.max.compaction.lag.ms", at_least(1)
    ),
    "max.message.bytes": TopicSetting(INT, "1048588", "message.max.bytes", at_least(0)),
    "message.timestamp.after.max.ms": TopicSetting(
        LONG, "3600000", "log.message.timestamp.after.max.ms", at_least(0)
    ),
    "message.timestamp.before.max.ms": TopicSetting(
        LONG, str(INT64_MAX), "log.message.timestamp.before.max.ms", at_least(0)
    ),
    "message.timestamp.type": TopicSetting(
        STRING, "CreateTime", "log.message.timestamp.type", one_of("CreateTime", "LogAppendTime")
    ),
    "min.cleanable.dirty.ratio": TopicSetting(
        DOUBLE, "0.5", "log.cleaner.min.cleanable.ratio", between(0, 1)
    ),
    "min.compaction.lag.ms": TopicSetting(LONG, "0", "log.cleaner.min.compaction.lag.ms", at_least(0)),
    "min.insync.replicas": TopicSetting(INT, "1", "min.insync.replicas", at_least(1)),
    "preallocate": TopicSetting(BOOLEAN, "false", "log.preallocate"),
    "remote.log.copy.disable": TopicSetting(BOOLEAN, "false"),
    "remote.log.delete.on.disable": TopicSetting(BOOLEAN, "false"),
    "remote.storage.enable": TopicSetting(BOOLEAN, "false"),
    "retention.bytes": TopicSetting(LONG, "-1", "log.retention.bytes"),
    "retention.ms": TopicSetting(LONG, "-1", "log.retention.ms", at_least(-1)),
    "segment.bytes": TopicSetting(INT, str(1 << 30), "log.segment.bytes", at_least(1 << 20)),
    "segment.index.bytes": TopicSetting(INT, "10485760", "log.index.size.max.bytes", at_least(4)),
    "segment.jitter.ms": TopicSetting(LONG, "0", "log.roll.jitter.ms", at_least(0)),
    "segment.ms": TopicSetting(LONG, "604800000", "log.roll.ms", at_least(1)),
    "unclean.leader.election.enable": TopicSetting(BOOLEAN, "false", "unclean.leader.election.enable"),
}
"""Kafka's 33 topic settings, by name."""

INTERNAL = {"internal.segment.bytes": TopicSetting(INT, "", "")}
"""Settings Kafka accepts without listing them: segments smaller than `segment.bytes` may be, for tests."""


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """The values in force for one topic; those that act here, times in ms and sizes in bytes."""

    max_message_bytes: int
    append_time: bool
    """Whether records get the time of their append (LogAppendTime) instead of keeping their own."""
    timestamp_before_max_ms: int
    timestamp_after_max_ms: int
    compact: bool
    delete: bool
    segment_bytes: int
    fsync: bool
    """Whether every append is synced (flush.messages=1)."""
    delete_retention_ms: int
    min_cleanable_dirty_ratio: float

    @classmethod
    def of(cls, own: Mapping[str, str], broker: Mapping[str, str]) -> TopicSettings:
        """Return what is in force with the topic's own settings, and the broker's by the broker's names."""

        def number(name: str) -> int:
            return int(_text(name, own, broker))

        policies = _COMMA.split(_text("cleanup.policy", own, broker).strip())
        internal = own.get("internal.segment.bytes")
        return cls(
            max_message_bytes=number("max.message.bytes"),
            append_time=_text("message.timestamp.type", own, broker).strip() == "LogAppendTime",
            timestamp_before_max_ms=number("message.timestamp.before.max.ms"),
            timestamp_after_max_ms=number("message.timestamp.after.max.ms"),
            compact="compact" in policies,
            delete="delete" in policies,
            segment_bytes=number("segment.bytes") if internal is None else int(internal),
            fsync=number("flush.messages") == 1,
            delete_retention_ms=number("delete.retention.ms"),
            min_cleanable_dirty_ratio=float(
                _text("min.cleanable.dirty.ratio", own, broker).strip().rstrip("fFdD")
            ),
        )


def parse(name: str, text: str, setting: TopicSetting) -> object:
    """Return the value of a setting as Kafka reads it; INVALID_CONFIG for an invalid one."""
    value, problem = _read(text, setting)
    if problem is None:
        problem = setting.check(value)
    if problem is not None:
        raise Refused(ErrorCode.INVALID_CONFIG, f"Invalid value {text} for configuration {name}: {problem}")
    return value


def _read(text: str, setting: TopicSetting) -> tuple[object, str | None]:
    """Return the value, and the error if there is none."""
    trimmed = text.strip()
    value: object = trimmed
    problem: str | None = None
    if setting.type == BOOLEAN:
        value = trimmed.lower() == "true"
        if trimmed.lower() not in ("true", "false"):
            problem = "Expected value to be either true or false"
    elif setting.type in (INT, LONG):
        high = INT32_MAX if setting.type == INT else INT64_MAX
        value = int(trimmed) if _WHOLE.fullmatch(trimmed) and len(trimmed) <= 64 else high + 1
        if not -high - 1 <= value <= high:
            problem = f"Not a number of type {'INT' if setting.type == INT else 'LONG'}"
    elif setting.type == DOUBLE:
        if _FRACTION.fullmatch(trimmed):
            value = float(trimmed.rstrip("fFdD"))
        else:
            problem = "Not a number of type DOUBLE"
    elif setting.type == LIST:
        parts = _COMMA.split(trimmed) if trimmed else []
        # Kafka drops repeated items if it knows all valid ones
        value = list(dict.fromkeys(parts)) if setting.check is _policies else parts
    return value, problem


def written(name: str, text: str) -> str:
    """Return a value as Kafka reports it: read and written again, so without the blanks around it.

    One in force that could not be set, as a segment length of state, is reported all the same.
    """
    setting = SETTINGS.get(name) or INTERNAL[name]
    value, problem = _read(text, setting)
    if problem is not None:
        return text
    if setting.type == BOOLEAN:
        return str(value).lower()
    return ",".join(value) if isinstance(value, list) else str(value)


def check(own: Mapping[str, str], broker: Mapping[str, str]) -> None:
    """Raise INVALID_CONFIG for a value that a topic cannot have, or two that contradict each other.

    The names are known ones.
    """
    values = {}
    for name, setting in (SETTINGS | INTERNAL).items():
        if name in own:
            text = own[name]
            if len(text) > MAX_VALUE:
                raise Refused(
                    ErrorCode.INVALID_CONFIG,
                    "The configuration value cannot be added because "
                    f"it exceeds the maximum value size of {MAX_VALUE} bytes.",
                )
            values[name] = parse(name, text, setting)
    if values.get("remote.storage.enable"):
        raise Refused(
            ErrorCode.INVALID_CONFIG,
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage.",
        )
    least, most = (
        int(_text(name, own, broker)) for name in ("min.compaction.lag.ms", "max.compaction.lag.ms")
    )
    if least > most:
        raise Refused(
            ErrorCode.INVALID_CONFIG,
            f"conflict topic config setting min.compaction.lag.ms ({least}) > max.compaction.lag.ms ({most})",
        )


def _text(name: str, own: Mapping[str, str], broker: Mapping[str, str]) -> str:
    setting = SETTINGS[name]
    found = own.get(name)
    return broker.get(setting.broker_name, setting.default) if found is None else found
