"""The coordinator's settings, under Kafka's names, with Kafka's defaults, bounds and cross-checks.

The sources are Kafka's GroupCoordinatorConfig and ShareGroupConfig; the differential compares every setting
here with those of each release.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from functools import partial
from typing import Any, NamedTuple

from kgroup.errors import ConfigError
from kgroup.protocol.releases import NEWEST, Release

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
INT64_MAX = 2**63 - 1
_BLANK = "".join(map(chr, range(0x21)))
_WHOLE = re.compile(r"[+-]?\d+")
_COMMA = re.compile(r"\s*,\s*", re.ASCII)
_ASSIGNORS = {
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": "uniform",
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": "range",
}
_TASK_ASSIGNORS = {"org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor": "sticky"}
_POLICIES = ("bidirectional", "upgrade", "downgrade", "disabled")
_PROTOCOLS = ("classic", "consumer", "share", "streams")
_BOUNDED = ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms")
BOUNDED_IN = {
    "group.consumer.": _BOUNDED,
    "group.streams.": _BOUNDED,
    "group.share.": (
        *_BOUNDED,
        "record.lock.duration.ms",
        "delivery.count.limit",
        "partition.max.record.locks",
    ),
}
"""The settings, by their common prefix, that have a lower and an upper bound for groups."""


class _Setting(NamedTuple):
    name: str
    read: Callable[[str], Any]


def _number(name: str, default: int, least: int = 1, most: int = INT32_MAX) -> Any:
    return _other(name, default, lambda text: whole_number(text, least, most))


def _other(name: str, default: Any, read: Callable[[str], Any]) -> Any:
    return field(default=default, metadata={"setting": _Setting(name, read)})


def whole_number(text: str, least: int, most: int) -> int:
    """Return the number as Java reads it: a sign, digits, blanks around; ValueError says what is wrong."""
    digits = text.strip(_BLANK)
    if not _WHOLE.fullmatch(digits) or len(digits) > 4000:
        raise ValueError(f"must be a whole number from {least} to {most}")
    value = int(digits)
    if value < least:
        raise ValueError(f"must be at least {least}")
    if value > most:
        raise ValueError(f"must be at most {most}")
    return value


def _list(text: str) -> tuple[str, ...]:
    """Return each item once, in order; no item may be empty."""
    items = _COMMA.split(text.strip(_BLANK))
    if not all(items):
        raise ValueError("must name at least one, with a comma between each")
    return tuple(dict.fromkeys(items))


def rack_tags(text: str) -> tuple[str, ...]:
    """Return the names of client tags; ValueError where one is empty or given twice."""
    stripped = text.strip(_BLANK)
    tags = tuple(_COMMA.split(stripped)) if stripped else ()
    if len(set(tags)) < len(tags):
        raise ValueError("must not contain duplicate tag keys")
    if not all(tags):
        raise ValueError("must not have an empty tag key")
    return tags


def _assignors(text: str, known: Mapping[str, str]) -> tuple[str, ...]:
    """Return assignors by their short names, or by Kafka's classes, which are the keys of `known`."""
    names = [known.get(name, name) for name in _list(text)]
    for name in names:
        if name not in known.values():
            short = ", ".join(known.values())
            raise ValueError(f"names {name!r}; use {short} or Kafka's class names of these")
    if len(set(names)) < len(names):
        raise ValueError("names an assignor twice, by its short name and by its class")
    return tuple(names)


def _protocols(text: str) -> tuple[str, ...]:
    names = _list(text)
    for name in names:
        if name not in _PROTOCOLS:
            raise ValueError(f"names {name!r}; use {', '.join(_PROTOCOLS)}")
    if "classic" not in names:
        raise ValueError("must name classic, which cannot be disabled")
    return names


def _policy(text: str) -> str:
    policy = text.strip(_BLANK).lower()
    if policy not in _POLICIES:
        raise ValueError(f"must be one of {', '.join(_POLICIES)}")
    return policy


def _flag(text: str) -> bool:
    flag = text.strip(_BLANK).lower()
    if flag not in ("true", "false"):
        raise ValueError("must be true or false")
    return flag == "true"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """Settings of all groups of a broker, and the release it behaves as.

    Times in ms unless the name says otherwise.
    """

    kafka: Release = NEWEST
    min_session_timeout_ms: int = _number("group.min.session.timeout.ms", 6000, INT32_MIN)
    max_session_timeout_ms: int = _number("group.max.session.timeout.ms", 1_800_000, INT32_MIN)
    initial_rebalance_delay_ms: int = _number("group.initial.rebalance.delay.ms", 3000, INT32_MIN)
    max_size: int = _number("group.max.size", INT32_MAX)
    new_member_timeout_ms: int = 300_000  # a constant of Kafka, not a setting
    offset_metadata_max_bytes: int = _number("offset.metadata.max.bytes", 4096, INT32_MIN)
    offsets_retention_minutes: int = _number("offsets.retention.minutes", 10080)
    retention_check_interval_ms: int = _number("offsets.retention.check.interval.ms", 600_000, 1, INT64_MAX)
    rebalance_protocols: tuple[str, ...] = _other(
        "group.coordinator.rebalance.protocols", ("classic", "consumer", "streams"), _protocols
    )
    consumer_session_timeout_ms: int = _number("group.consumer.session.timeout.ms", 45_000)
    consumer_min_session_timeout_ms: int = _number("group.consumer.min.session.timeout.ms", 45_000)
    consumer_max_session_timeout_ms: int = _number("group.consumer.max.session.timeout.ms", 60_000)
    consumer_heartbeat_interval_ms: int = _number("group.consumer.heartbeat.interval.ms", 5000)
    consumer_min_heartbeat_interval_ms: int = _number("group.consumer.min.heartbeat.interval.ms", 5000)
    consumer_max_heartbeat_interval_ms: int = _number("group.consumer.max.heartbeat.interval.ms", 15_000)
    consumer_max_size: int = _number("group.consumer.max.size", INT32_MAX)
    consumer_assignors: tuple[str, ...] = _other(
        "group.consumer.assignors", ("uniform", "range"), partial(_assignors, known=_ASSIGNORS)
    )
    migration_policy: str = _other("group.consumer.migration.policy", "bidirectional", _policy)
    assignment_interval_ms: int = _number("group.consumer.assignment.interval.ms", 1000, 0)
    min_assignment_interval_ms: int = _number("group.consumer.min.assignment.interval.ms", 0, 0)
    max_assignment_interval_ms: int = _number("group.consumer.max.assignment.interval.ms", 15_000, 0)
    regex_refresh_interval_ms: int = _number("group.consumer.regex.refresh.interval.ms", 600_000, 10_000)
    streams_session_timeout_ms: int = _number("group.streams.session.timeout.ms", 45_000)
    streams_min_session_timeout_ms: int = _number("group.streams.min.session.timeout.ms", 45_000)
    streams_max_session_timeout_ms: int = _number("group.streams.max.session.timeout.ms", 60_000)
    streams_heartbeat_interval_ms: int = _number("group.streams.heartbeat.interval.ms", 5000)
    streams_min_heartbeat_interval_ms: int = _number("group.streams.min.heartbeat.interval.ms", 5000)
    streams_max_heartbeat_interval_ms: int = _number("group.streams.max.heartbeat.interval.ms", 15_000)
    streams_max_size: int = _number("group.streams.max.size", INT32_MAX)
    streams_standby_replicas: int = _number("group.streams.num.standby.replicas", 0, 0)
    streams_max_standby_replicas: int = _number("group.streams.max.standby.replicas", 2, 0)
    streams_initial_delay_ms: int = _number("group.streams.initial.rebalance.delay.ms", 3000, 0)
    streams_assignment_interval_ms: int = _number("group.streams.assignment.interval.ms", 1000, 0)
    streams_min_assignment_interval_ms: int = _number("group.streams.min.assignment.interval.ms", 0, 0)
    streams_max_assignment_interval_ms: int = _number("group.streams.max.assignment.interval.ms", 15_000, 0)
    streams_assignors: tuple[str, ...] = _other(
        "group.streams.assignors", ("sticky",), partial(_assignors, known=_TASK_ASSIGNORS)
    )
    streams_rack_tags: tuple[str, ...] = _other("group.streams.rack.aware.assignment.tags", (), rack_tags)
    share_session_timeout_ms: int = _number("group.share.session.timeout.ms", 45_000)
    share_min_session_timeout_ms: int = _number("group.share.min.session.timeout.ms", 45_000)
    share_max_session_timeout_ms: int = _number("group.share.max.session.timeout.ms", 60_000)
    share_heartbeat_interval_ms: int = _number("group.share.heartbeat.interval.ms", 5000)
    share_min_heartbeat_interval_ms: int = _number("group.share.min.heartbeat.interval.ms", 5000)
    share_max_heartbeat_interval_ms: int = _number("group.share.max.heartbeat.interval.ms", 15_000)
    share_max_size: int = _number("group.share.max.size", 200, 1, 1000)
    share_assignment_interval_ms: int = _number("group.share.assignment.interval.ms", 1000, 0)
    share_min_assignment_interval_ms: int = _number("group.share.min.assignment.interval.ms", 0, 0)
    share_max_assignment_interval_ms: int = _number("group.share.max.assignment.interval.ms", 15_000, 0)
    share_initialize_retry_ms: int = _number("group.share.initialize.retry.interval.ms", 30_000)
    share_max_locks: int = _number("group.share.partition.max.record.locks", 2000, 100, 10_000)
    share_min_max_locks: int = _number("group.share.min.partition.max.record.locks", 100, 100, 2000)
    share_max_max_locks: int = _number("group.share.max.partition.max.record.locks", 4000, 2000, 10_000)
    share_delivery_limit: int = _number("group.share.delivery.count.limit", 5, 2, 10)
    share_min_delivery_limit: int = _number("group.share.min.delivery.count.limit", 2, 2, 5)
    share_max_delivery_limit: int = _number("group.share.max.delivery.count.limit", 10, 5, 25)
    share_lock_ms: int = _number("group.share.record.lock.duration.ms", 30_000, 1000, 3_600_000)
    share_min_lock_ms: int = _number("group.share.min.record.lock.duration.ms", 15_000, 1000, 30_000)
    share_max_lock_ms: int = _number("group.share.max.record.lock.duration.ms", 60_000, 30_000, 3_600_000)
    share_max_sessions: int = _number("group.share.max.share.sessions", 2000)
    client_assignors: bool = _other("kgroup.client.assignors.enable", False, _flag)

    @classmethod
    def names(cls) -> dict[str, str]:
        """Return setting name to field name, for every setting that can be given."""
        return {f.metadata["setting"].name: f.name for f in fields(cls) if f.metadata}

    @classmethod
    def lists(cls) -> frozenset[str]:
        """Return the names of the settings that are lists."""
        return frozenset(
            f.metadata["setting"].name for f in fields(cls) if f.metadata and isinstance(f.default, tuple)
        )

    @classmethod
    def of(cls, settings: Mapping[str, str], kafka: Release = NEWEST) -> GroupConfig:
        """Return settings from Kafka's names, checked alone and against each other; raise ConfigError."""
        known = {f.name: f.metadata["setting"] for f in fields(cls) if f.metadata}
        given: dict[str, Any] = {}
        for name, text in settings.items():
            attribute = cls.attribute(name)
            if not kafka.has_setting(name):
                raise ConfigError(
                    f"Kafka {kafka} has no setting {name}", "leave it out, or serve as a later one"
                )
            try:
                given[attribute] = known[attribute].read(text)
            except ValueError as wrong:
                raise ConfigError(f"{name}={text[:200]} {wrong}") from None
        config = cls(kafka=kafka, **given)
        config._check()
        return config

    @classmethod
    def attribute(cls, name: str) -> str:
        """Return the field of a setting; raise ConfigError, with similar names, if there is none."""
        names = cls.names()
        if name not in names:
            raise ConfigError(f"no such setting: {name}", _near(name, list(names)))
        return names[name]

    def as_settings(self) -> dict[str, str]:
        """Return every setting that the release has, under Kafka's name, as text."""
        return {
            name: _text(getattr(self, attribute))
            for name, attribute in self.names().items()
            if self.kafka.has_setting(name)
        }

    def _check(self) -> None:
        value = {name: getattr(self, attribute) for name, attribute in self.names().items()}
        ordered: list[tuple[str, str]] = []
        for group, bounded in BOUNDED_IN.items():
            for what in bounded:
                low, own, high = f"{group}min.{what}", f"{group}{what}", f"{group}max.{what}"
                ordered += [(low, high), (low, own), (own, high)]
        ordered.append(("group.streams.num.standby.replicas", "group.streams.max.standby.replicas"))
        ordered.append(("group.share.max.size", "group.share.max.share.sessions"))
        for low, high in ordered:
            if value[low] > value[high]:
                raise ConfigError(f"{high}={value[high]} must be at least {low}={value[low]}")
        for group in BOUNDED_IN:
            beats, silence = f"{group}heartbeat.interval.ms", f"{group}session.timeout.ms"
            if value[beats] >= value[silence]:
                raise ConfigError(f"{beats}={value[beats]} must be less than {silence}={value[silence]}")


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _near(name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, 3)
    return (
        f"did you mean {' or '.join(near)}?"
        if near
        else "settings have Kafka's names, such as group.max.size"
    )
