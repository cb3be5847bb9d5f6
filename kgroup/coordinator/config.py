"""The coordinator's settings, under Kafka's names, with Kafka's defaults and ranges."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from kgroup.errors import ConfigError

INT32_MAX = 2**31 - 1


def _setting(name: str, default: Any, least: int = 1, parse: Callable[[str], Any] = int) -> Any:
    return field(default=default, metadata={"name": name, "least": least, "parse": parse})


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _lower(text: str) -> str:
    return text.strip().lower()


def _flag(text: str) -> bool:
    if text.strip().lower() not in ("true", "false"):
        raise ValueError(text)
    return text.strip().lower() == "true"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """Settings of all groups of a broker; times in ms unless the name says otherwise."""

    min_session_timeout_ms: int = _setting("group.min.session.timeout.ms", 6000)
    max_session_timeout_ms: int = _setting("group.max.session.timeout.ms", 1_800_000)
    initial_rebalance_delay_ms: int = _setting("group.initial.rebalance.delay.ms", 3000, 0)
    max_size: int = _setting("group.max.size", INT32_MAX)
    new_member_timeout_ms: int = 300_000  # a constant of Kafka's, and no setting
    offset_metadata_max_bytes: int = _setting("offset.metadata.max.bytes", 4096, 0)
    offsets_retention_minutes: int = _setting("offsets.retention.minutes", 10080)
    retention_check_interval_ms: int = _setting("offsets.retention.check.interval.ms", 600_000)
    rebalance_protocols: tuple[str, ...] = _setting(
        "group.coordinator.rebalance.protocols", ("classic", "consumer", "streams"), parse=_names
    )
    consumer_session_timeout_ms: int = _setting("group.consumer.session.timeout.ms", 45_000)
    consumer_min_session_timeout_ms: int = _setting("group.consumer.min.session.timeout.ms", 45_000)
    consumer_max_session_timeout_ms: int = _setting("group.consumer.max.session.timeout.ms", 60_000)
    consumer_heartbeat_interval_ms: int = _setting("group.consumer.heartbeat.interval.ms", 5000)
    consumer_min_heartbeat_interval_ms: int = _setting("group.consumer.min.heartbeat.interval.ms", 5000)
    consumer_max_heartbeat_interval_ms: int = _setting("group.consumer.max.heartbeat.interval.ms", 15_000)
    consumer_max_size: int = _setting("group.consumer.max.size", INT32_MAX)
    consumer_assignors: tuple[str, ...] = _setting(
        "group.consumer.assignors", ("uniform", "range"), parse=_names
    )
    migration_policy: str = _setting("group.consumer.migration.policy", "bidirectional", parse=_lower)
    assignment_interval_ms: int = _setting("group.consumer.assignment.interval.ms", 1000, 0)
    min_assignment_interval_ms: int = _setting("group.consumer.min.assignment.interval.ms", 0, 0)
    max_assignment_interval_ms: int = _setting("group.consumer.max.assignment.interval.ms", 15_000, 0)
    regex_refresh_interval_ms: int = _setting("group.consumer.regex.refresh.interval.ms", 600_000, 10_000)
    streams_session_timeout_ms: int = _setting("group.streams.session.timeout.ms", 45_000)
    streams_min_session_timeout_ms: int = _setting("group.streams.min.session.timeout.ms", 45_000)
    streams_max_session_timeout_ms: int = _setting("group.streams.max.session.timeout.ms", 60_000)
    streams_heartbeat_interval_ms: int = _setting("group.streams.heartbeat.interval.ms", 5000)
    streams_min_heartbeat_interval_ms: int = _setting("group.streams.min.heartbeat.interval.ms", 5000)
    streams_max_heartbeat_interval_ms: int = _setting("group.streams.max.heartbeat.interval.ms", 15_000)
    streams_max_size: int = _setting("group.streams.max.size", INT32_MAX)
    streams_standby_replicas: int = _setting("group.streams.num.standby.replicas", 0, 0)
    streams_max_standby_replicas: int = _setting("group.streams.max.standby.replicas", 2, 0)
    streams_initial_delay_ms: int = _setting("group.streams.initial.rebalance.delay.ms", 3000, 0)
    streams_assignment_interval_ms: int = _setting("group.streams.assignment.interval.ms", 1000, 0)
    streams_min_assignment_interval_ms: int = _setting("group.streams.min.assignment.interval.ms", 0, 0)
    streams_max_assignment_interval_ms: int = _setting("group.streams.max.assignment.interval.ms", 15_000, 0)
    client_assignors: bool = _setting("kgroup.client.assignors.enable", False, parse=_flag)

    @classmethod
    def names(cls) -> dict[str, str]:
        """Setting name to field name, for every setting that can be given."""
        return {f.metadata["name"]: f.name for f in fields(cls) if f.metadata}

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> GroupConfig:
        """Settings from Kafka's names; raises ConfigError for unknown names and values out of range."""
        by_name = {f.metadata["name"]: f for f in fields(cls) if f.metadata}
        given: dict[str, Any] = {}
        for name, text in settings.items():
            known = by_name.get(name)
            if known is None:
                raise ConfigError(f"no such setting: {name}", _near(name, list(by_name)))
            given[known.name] = _parsed(name, text, known.metadata)
        config = cls(**given)
        config._check()
        return config

    def as_settings(self) -> dict[str, str]:
        """Every setting under Kafka's name, as text."""
        return {name: _text(getattr(self, attribute)) for name, attribute in self.names().items()}

    def _check(self) -> None:
        bounds = (
            (
                "group.consumer.session.timeout.ms",
                self.consumer_min_session_timeout_ms,
                self.consumer_session_timeout_ms,
                self.consumer_max_session_timeout_ms,
            ),
            (
                "group.consumer.heartbeat.interval.ms",
                self.consumer_min_heartbeat_interval_ms,
                self.consumer_heartbeat_interval_ms,
                self.consumer_max_heartbeat_interval_ms,
            ),
            (
                "group.consumer.assignment.interval.ms",
                self.min_assignment_interval_ms,
                self.assignment_interval_ms,
                self.max_assignment_interval_ms,
            ),
        )
        for name, low, value, high in bounds:
            if not low <= value <= high:
                raise ConfigError(f"{name}={value} is outside its bounds {low} to {high}")
        if self.consumer_heartbeat_interval_ms >= self.consumer_session_timeout_ms:
            raise ConfigError(
                f"group.consumer.heartbeat.interval.ms={self.consumer_heartbeat_interval_ms} must be less "
                f"than group.consumer.session.timeout.ms={self.consumer_session_timeout_ms}"
            )
        if self.migration_policy not in ("bidirectional", "upgrade", "downgrade", "disabled"):
            raise ConfigError(
                f"group.consumer.migration.policy={self.migration_policy} is no policy",
                "use bidirectional, upgrade, downgrade or disabled",
            )
        if not self.consumer_assignors or len(set(self.consumer_assignors)) != len(self.consumer_assignors):
            raise ConfigError("group.consumer.assignors must name at least one assignor, each once")


def _parsed(name: str, text: str, metadata: Mapping[str, Any]) -> Any:
    try:
        value = metadata["parse"](text)
    except ValueError:
        raise ConfigError(f"{name}={text} cannot be read as a value of that setting") from None
    if isinstance(value, int) and not isinstance(value, bool) and value < metadata["least"]:
        raise ConfigError(f"{name}={text} is below the least value {metadata['least']}")
    return value


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _near(name: str, known: list[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, known, 3)
    return (
        f"did you mean {' or '.join(near)}?"
        if near
        else "settings have Kafka's names, such as group.max.size"
    )
