"""The coordinator's settings, of its broker and of single groups, each a row.

The sources are Kafka's GroupCoordinatorConfig, GroupConfig and ShareGroupConfig; the differential compares
every setting here with those of each release.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import lru_cache, partial
from typing import Any, Self

from kgroup.coordinator.roster import ROWS, Roster
from kgroup.domain import CLASSIC, CONSUMER, EPOCH_TYPES, GROUP_TYPES, STREAMS
from kgroup.durations import iso_duration_ms
from kgroup.errors import ConfigError, ErrorCode, Refused
from kgroup.numbers import INT32_MAX
from kgroup.protocol.releases import NEWEST, Release
from kgroup.settings import BOOLEAN, LIST, LONG, STRING, Setting, Settings, Value, number, one_of, written

_ASSIGNORS = {
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": "uniform",
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": "range",
}
_TASK_ASSIGNORS = {"org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor": "sticky"}
_POLICIES = ("bidirectional", "upgrade", "downgrade", "disabled")
BY_DURATION = "by_duration:"


def _listed(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return each item once, in order; no item may be empty."""
    if not names or not all(names):
        raise ValueError("must name at least one, with a comma between each")
    return tuple(dict.fromkeys(names))


def _assignors(names: tuple[str, ...], known: Mapping[str, str]) -> tuple[str, ...]:
    """Return assignors by their short names, or by Kafka's classes, which are the keys of `known`."""
    short = [known.get(name, name) for name in _listed(names)]
    for name in short:
        if name not in known.values():
            choices = ", ".join(known.values())
            raise ValueError(f"names {name!r}; use {choices} or Kafka's class names of these")
    if len(set(short)) < len(short):
        raise ValueError("names an assignor twice, by its short name and by its class")
    return tuple(short)


def _protocols(names: tuple[str, ...]) -> tuple[str, ...]:
    listed = _listed(names)
    for name in listed:
        if name not in GROUP_TYPES:
            raise ValueError(f"names {name!r}; use {', '.join(GROUP_TYPES)}")
    if CLASSIC not in listed:
        raise ValueError("must name classic, which cannot be disabled")
    return listed


def _tags(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) < len(names):
        raise ValueError("must not contain duplicate tag keys")
    if not all(names):
        raise ValueError("must not have an empty tag key")
    return names


def _among(names: tuple[str, ...]) -> Callable[[str], tuple[str, ...]]:
    """Return a check that a group chooses one of its broker's task assignors."""

    def check(name: str) -> tuple[str, ...]:
        if name not in names:
            registered = f"Registered assignors are: [{', '.join(names)}]."
            raise ValueError(f"'{name[:200]}' is not a registered task assignor. {registered}")
        return (name,)

    return check


def _reset(word: str) -> str:
    if word.startswith(BY_DURATION):
        with suppress(ConfigError):
            ago_ms = iso_duration_ms(word.removeprefix(BY_DURATION))
            if ago_ms is not None and ago_ms >= 0:
                return word
    if word not in ("earliest", "latest"):
        hour = f"{BY_DURATION}PT1H, for another time than an hour"
        raise ValueError(f"must be earliest or latest or {hour}")
    return word


_ASSIGNOR = Setting("streams.assignor.name", STRING).documented(
    "Which of group.streams.assignors assigns the tasks of a streams group.", "group.streams.assignors"
)


def _own(own: str, default: int, low: int = 1, high: int | None = None) -> Setting:
    """Return a number of the broker that a group may set for itself."""
    return replace(number(f"group.{own}", default, low, high), own=own)


def _least(own: str, default: int, low: int = 1, high: int | None = None) -> Any:
    """Return the least value that a group may set for itself."""
    kind, what = own.split(".", 1)
    row = number(f"group.{kind}.min.{what}", default, low, high)
    return row.field(f"The least value of group.{own}.", least_of=own)


def _most(own: str, default: int, low: int = 1, high: int | None = None) -> Any:
    """Return the greatest value that a group may set for itself."""
    kind, what = own.split(".", 1)
    row = number(f"group.{kind}.max.{what.removeprefix('num.')}", default, low, high)
    return row.field(f"The greatest value of group.{own}.", most_of=own)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig(Settings):
    """Settings of all groups of a broker, or of one group that has its own; and the release it behaves as.

    Times in ms unless the name says otherwise.
    """

    kafka: Release = NEWEST
    roster: Roster | None = None
    """The members that a group expects; None for nearly all groups."""
    min_session_timeout_ms: int = number("group.min.session.timeout.ms", 6000, None).field(
        "The shortest session timeout a classic member may ask for."
    )
    max_session_timeout_ms: int = number("group.max.session.timeout.ms", 1_800_000, None).field(
        "The longest session timeout a classic member may ask for."
    )
    initial_rebalance_delay_ms: int = number("group.initial.rebalance.delay.ms", 3000, None).field(
        "How long the first rebalance of a classic group waits for members."
    )
    max_size: int = number("group.max.size", INT32_MAX, 1).field("The most members of a classic group.")
    new_member_timeout_ms: int = 300_000  # a constant of Kafka, not a setting
    offset_metadata_max_bytes: int = number("offset.metadata.max.bytes", 4096, None).field(
        "The most bytes of metadata of a committed offset."
    )
    offsets_retention_minutes: int = number("offsets.retention.minutes", 10080, 1).field(
        "How long committed offsets outlive their group's last member, in minutes."
    )
    retention_check_interval_ms: int = number(
        "offsets.retention.check.interval.ms", 600_000, 1, type=LONG
    ).field("How often expired offsets are looked for.")
    rebalance_protocols: tuple[str, ...] = Setting(
        "group.coordinator.rebalance.protocols", LIST, (CLASSIC, CONSUMER, STREAMS), check=_protocols
    ).field("The group protocols that are served.")
    consumer_session_timeout_ms: int = _own("consumer.session.timeout.ms", 45_000).field(
        "How long a member of a consumer group may be silent."
    )
    consumer_min_session_timeout_ms: int = _least("consumer.session.timeout.ms", 45_000)
    consumer_max_session_timeout_ms: int = _most("consumer.session.timeout.ms", 60_000)
    consumer_heartbeat_interval_ms: int = _own("consumer.heartbeat.interval.ms", 5000).field(
        "How often members of a consumer group send heartbeats."
    )
    consumer_min_heartbeat_interval_ms: int = _least("consumer.heartbeat.interval.ms", 5000)
    consumer_max_heartbeat_interval_ms: int = _most("consumer.heartbeat.interval.ms", 15_000)
    consumer_max_size: int = number("group.consumer.max.size", INT32_MAX, 1).field(
        "The most members of a consumer group."
    )
    consumer_assignors: tuple[str, ...] = Setting(
        "group.consumer.assignors", LIST, ("uniform", "range"), check=partial(_assignors, known=_ASSIGNORS)
    ).field("Server-side assignors of consumer groups; the first is the default.")
    migration_policy: str = Setting(
        "group.consumer.migration.policy", STRING, "bidirectional", check=one_of(*_POLICIES, ignore_case=True)
    ).field("Which conversions between classic and consumer groups are allowed.")
    assignment_interval_ms: int = _own("consumer.assignment.interval.ms", 1000, 0).field(
        "The least time between two target assignments of a consumer group."
    )
    min_assignment_interval_ms: int = _least("consumer.assignment.interval.ms", 0, 0)
    max_assignment_interval_ms: int = _most("consumer.assignment.interval.ms", 15_000, 0)
    regex_refresh_interval_ms: int = number(
        "group.consumer.regex.refresh.interval.ms", 600_000, 10_000
    ).field("How often the topics of patterns are looked for.", internal=True)
    streams_session_timeout_ms: int = _own("streams.session.timeout.ms", 45_000).field(
        "How long a member of a streams group may be silent."
    )
    streams_min_session_timeout_ms: int = _least("streams.session.timeout.ms", 45_000)
    streams_max_session_timeout_ms: int = _most("streams.session.timeout.ms", 60_000)
    streams_heartbeat_interval_ms: int = _own("streams.heartbeat.interval.ms", 5000).field(
        "How often members of a streams group send heartbeats."
    )
    streams_min_heartbeat_interval_ms: int = _least("streams.heartbeat.interval.ms", 5000)
    streams_max_heartbeat_interval_ms: int = _most("streams.heartbeat.interval.ms", 15_000)
    streams_max_size: int = number("group.streams.max.size", INT32_MAX, 1).field(
        "The most members of a streams group."
    )
    streams_standby_replicas: int = _own("streams.num.standby.replicas", 0, 0).field(
        "Standby copies of each stateful task of a streams group."
    )
    streams_max_standby_replicas: int = _most("streams.num.standby.replicas", 2, 0)
    streams_initial_delay_ms: int = _own("streams.initial.rebalance.delay.ms", 3000, 0).field(
        "How long the first assignment of a streams group waits."
    )
    streams_assignment_interval_ms: int = _own("streams.assignment.interval.ms", 1000, 0).field(
        "The least time between two target assignments of a streams group."
    )
    streams_min_assignment_interval_ms: int = _least("streams.assignment.interval.ms", 0, 0)
    streams_max_assignment_interval_ms: int = _most("streams.assignment.interval.ms", 15_000, 0)
    streams_assignors: tuple[str, ...] = Setting(
        "group.streams.assignors", LIST, ("sticky",), check=partial(_assignors, known=_TASK_ASSIGNORS)
    ).field("The task assignors of streams groups; the first is the default.", own=_ASSIGNOR.name)
    streams_rack_tags: tuple[str, ...] = Setting(
        "group.streams.rack.aware.assignment.tags", LIST, (), check=_tags
    ).field("Client tags over which standbys are to be spread.", own="streams.rack.aware.assignment.tags")
    share_session_timeout_ms: int = _own("share.session.timeout.ms", 45_000).field(
        "How long a member of a share group may be silent."
    )
    share_min_session_timeout_ms: int = _least("share.session.timeout.ms", 45_000)
    share_max_session_timeout_ms: int = _most("share.session.timeout.ms", 60_000)
    share_heartbeat_interval_ms: int = _own("share.heartbeat.interval.ms", 5000).field(
        "How often members of a share group send heartbeats."
    )
    share_min_heartbeat_interval_ms: int = _least("share.heartbeat.interval.ms", 5000)
    share_max_heartbeat_interval_ms: int = _most("share.heartbeat.interval.ms", 15_000)
    share_max_size: int = number("group.share.max.size", 200, 1, 1000).field(
        "The most members of a share group."
    )
    share_assignment_interval_ms: int = _own("share.assignment.interval.ms", 1000, 0).field(
        "The least time between two target assignments of a share group."
    )
    share_min_assignment_interval_ms: int = _least("share.assignment.interval.ms", 0, 0)
    share_max_assignment_interval_ms: int = _most("share.assignment.interval.ms", 15_000, 0)
    share_initialize_retry_ms: int = number("group.share.initialize.retry.interval.ms", 30_000, 1).field(
        "How often the share coordinator is asked again to initialize a partition.", internal=True
    )
    share_max_locks: int = _own("share.partition.max.record.locks", 2000, 100, 10_000).field(
        "The most records of a partition that a share group has in flight."
    )
    share_min_max_locks: int = _least("share.partition.max.record.locks", 100, 100, 2000)
    share_max_max_locks: int = _most("share.partition.max.record.locks", 4000, 2000, 10_000)
    share_delivery_limit: int = _own("share.delivery.count.limit", 5, 2, 10).field(
        "How often a share group delivers a record before archiving it."
    )
    share_min_delivery_limit: int = _least("share.delivery.count.limit", 2, 2, 5)
    share_max_delivery_limit: int = _most("share.delivery.count.limit", 10, 5, 25)
    share_lock_ms: int = _own("share.record.lock.duration.ms", 30_000, 1000, 3_600_000).field(
        "How long a member of a share group has a record before others may."
    )
    share_min_lock_ms: int = _least("share.record.lock.duration.ms", 15_000, 1000, 30_000)
    share_max_lock_ms: int = _most("share.record.lock.duration.ms", 60_000, 30_000, 3_600_000)
    share_max_sessions: int = number("group.share.max.share.sessions", 2000, 1).field(
        "The most share sessions of this broker."
    )
    share_reset: str = Setting("share.auto.offset.reset", STRING, "latest", check=_reset).field(
        "Where a share group begins: earliest, latest or by_duration:PT1H.", own="share.auto.offset.reset"
    )
    share_isolation: str = Setting(
        "share.isolation.level",
        STRING,
        "read_uncommitted",
        check=one_of("read_committed", "read_uncommitted"),
    ).field(
        "Whether a share group reads records of open and aborted transactions.", own="share.isolation.level"
    )
    share_may_renew: bool = Setting("share.renew.acknowledge.enable", BOOLEAN, True).field(
        "Whether members of a share group may renew their locks.", own="share.renew.acknowledge.enable"
    )
    client_assignors: bool = Setting("kgroup.client.assignors.enable", BOOLEAN, False).field(
        "Whether client-side assignors of the consumer protocol are served."
    )

    @classmethod
    def of(cls, settings: Mapping[str, str], kafka: Release = NEWEST) -> Self:
        """Return settings from Kafka's names, checked alone and against each other; raise ConfigError."""
        values = cls.values(settings)
        for name in settings:
            if not kafka.has_setting(name):
                raise ConfigError(
                    f"Kafka {kafka} has no setting {name}", "leave it out, or serve as a later one"
                )
        config = cls(kafka=kafka, **values)
        config._check()
        return config

    def as_text(self) -> dict[str, str]:
        """Return every setting of the broker that the release has, as Kafka writes it."""
        values = {name: getattr(self, attribute) for name, attribute in self.names().items()}
        return {name: written(value) for name, value in values.items() if self.kafka.has_setting(name)}

    def of_groups(self) -> dict[str, Setting]:
        """Return the settings that the release's groups may have, by name, as this broker bounds them."""
        return {row.name: row for _, row in _own_rows(self)}

    def of_group(self, own: Mapping[str, str]) -> Self:
        """Return what is in force for a group that sets `own`, within the broker's present bounds."""
        values: dict[str, Value] = {}
        for attribute, row in _own_rows(self):
            if row.name in own:
                # What an earlier start accepted, and this one could not read, is the broker's again.
                with suppress(ValueError):
                    values[attribute] = row.nearest(own[row.name])
        return replace(self, roster=Roster.of(own) if own.keys() & ROWS.keys() else None, **values)

    def check_group(self, own: Mapping[str, str]) -> None:
        """Refuse settings that a group may not have: unknown, of another type, beyond the broker's bounds."""
        rows = {**self.of_groups(), **ROWS}
        values = {name: row.default for name, row in rows.items()}
        for name, text in own.items():
            if name not in rows:
                raise Refused(ErrorCode.INVALID_CONFIG, f"Unknown group config name: {name}")
            values[name] = rows[name].parse(text)
        for kind in EPOCH_TYPES:
            beats, silence = f"{kind}.heartbeat.interval.ms", f"{kind}.session.timeout.ms"
            if values[silence] <= values[beats]:
                raise Refused(
                    ErrorCode.INVALID_CONFIG,
                    f"{silence} ({values[silence]}) must be more than {beats} ({values[beats]})",
                )

    def _check(self) -> None:
        values = [(f.metadata["setting"], getattr(self, f.name)) for f in fields(self) if f.metadata]
        own = {row.own: (row.name, value) for row, value in values}
        ordered = [(own[row.most_of], (row.name, value)) for row, value in values if row.most_of]
        ordered += [((row.name, value), own[row.least_of]) for row, value in values if row.least_of]
        most, size = "group.share.max.share.sessions", "group.share.max.size"
        ordered.append(((size, self.share_max_size), (most, self.share_max_sessions)))
        for (low, least), (high, value) in ordered:
            if least > value:
                raise ConfigError(f"{high}={value} must be at least {low}={least}")
        for kind in EPOCH_TYPES:
            beats, silence = f"group.{kind}.heartbeat.interval.ms", f"group.{kind}.session.timeout.ms"
            heartbeat, session = (getattr(self, self.names()[name]) for name in (beats, silence))
            if heartbeat >= session:
                raise ConfigError(f"{beats}={heartbeat} must be less than {silence}={session}")


@lru_cache(maxsize=16)
def _own_rows(config: GroupConfig) -> tuple[tuple[str, Setting], ...]:
    """Return each setting that a group may have, with its attribute; its default is the broker's value."""
    rows: dict[str, Setting] = {f.name: f.metadata["setting"] for f in fields(config) if f.metadata}
    lows = {row.least_of: getattr(config, name) for name, row in rows.items()}
    highs = {row.most_of: getattr(config, name) for name, row in rows.items()}
    own_rows = []
    for name, row in rows.items():
        value = getattr(config, name)
        if not row.own or not config.kafka.has_setting(row.own):
            continue
        if row.own == _ASSIGNOR.name:
            own = replace(_ASSIGNOR, default=value[0], check=_among(value))
        else:
            behind = "" if row.own == row.name else row.name
            low, high = lows.get(row.own, row.low), highs.get(row.own, row.high)
            own = replace(row, name=row.own, behind=behind, default=value, low=low, high=high)
        own_rows.append((name, own))
    return tuple(own_rows)
