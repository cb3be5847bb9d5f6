"""A group's settings: its own dynamic ones, else the broker's (resource type GROUP)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from kgroup.coordinator import roster
from kgroup.coordinator.config import INT32_MAX, GroupConfig, rack_tags, whole_number
from kgroup.coordinator.state import State
from kgroup.durations import iso_duration_ms
from kgroup.errors import ConfigError, ErrorCode, Refused

SESSION_TIMEOUT = "consumer.session.timeout.ms"
HEARTBEAT_INTERVAL = "consumer.heartbeat.interval.ms"
ASSIGNMENT_INTERVAL = "consumer.assignment.interval.ms"
SHARE_SESSION_TIMEOUT = "share.session.timeout.ms"
SHARE_HEARTBEAT_INTERVAL = "share.heartbeat.interval.ms"
SHARE_ASSIGNMENT_INTERVAL = "share.assignment.interval.ms"
SHARE_LOCK = "share.record.lock.duration.ms"
SHARE_DELIVERIES = "share.delivery.count.limit"
SHARE_LOCKS = "share.partition.max.record.locks"
STREAMS_SESSION_TIMEOUT = "streams.session.timeout.ms"
STREAMS_HEARTBEAT_INTERVAL = "streams.heartbeat.interval.ms"
STREAMS_ASSIGNMENT_INTERVAL = "streams.assignment.interval.ms"
STREAMS_STANDBYS = "streams.num.standby.replicas"
STREAMS_INITIAL_DELAY = "streams.initial.rebalance.delay.ms"
STREAMS_ASSIGNOR = "streams.assignor.name"
STREAMS_RACK_TAGS = "streams.rack.aware.assignment.tags"
TASK_OFFSET_INTERVAL_MS, ACCEPTABLE_RECOVERY_LAG = 60_000, 10_000
"""Sent to members of streams groups; settings that Kafka 4.4 keeps to itself (not documented there)."""


class Bounds(NamedTuple):
    """The broker's default for a dynamic setting, and the range that is allowed."""

    default: int
    least: int
    most: int


def bounds(config: GroupConfig) -> dict[str, Bounds]:
    """Return the numeric dynamic settings of a group, by name; times in ms."""
    return {
        SESSION_TIMEOUT: Bounds(
            config.consumer_session_timeout_ms,
            config.consumer_min_session_timeout_ms,
            config.consumer_max_session_timeout_ms,
        ),
        HEARTBEAT_INTERVAL: Bounds(
            config.consumer_heartbeat_interval_ms,
            config.consumer_min_heartbeat_interval_ms,
            config.consumer_max_heartbeat_interval_ms,
        ),
        ASSIGNMENT_INTERVAL: Bounds(
            config.assignment_interval_ms,
            config.min_assignment_interval_ms,
            config.max_assignment_interval_ms,
        ),
        SHARE_SESSION_TIMEOUT: Bounds(
            config.share_session_timeout_ms,
            config.share_min_session_timeout_ms,
            config.share_max_session_timeout_ms,
        ),
        SHARE_HEARTBEAT_INTERVAL: Bounds(
            config.share_heartbeat_interval_ms,
            config.share_min_heartbeat_interval_ms,
            config.share_max_heartbeat_interval_ms,
        ),
        SHARE_ASSIGNMENT_INTERVAL: Bounds(
            config.share_assignment_interval_ms,
            config.share_min_assignment_interval_ms,
            config.share_max_assignment_interval_ms,
        ),
        SHARE_LOCK: Bounds(config.share_lock_ms, config.share_min_lock_ms, config.share_max_lock_ms),
        SHARE_DELIVERIES: Bounds(
            config.share_delivery_limit, config.share_min_delivery_limit, config.share_max_delivery_limit
        ),
        SHARE_LOCKS: Bounds(config.share_max_locks, config.share_min_max_locks, config.share_max_max_locks),
        STREAMS_SESSION_TIMEOUT: Bounds(
            config.streams_session_timeout_ms,
            config.streams_min_session_timeout_ms,
            config.streams_max_session_timeout_ms,
        ),
        STREAMS_HEARTBEAT_INTERVAL: Bounds(
            config.streams_heartbeat_interval_ms,
            config.streams_min_heartbeat_interval_ms,
            config.streams_max_heartbeat_interval_ms,
        ),
        STREAMS_ASSIGNMENT_INTERVAL: Bounds(
            config.streams_assignment_interval_ms,
            config.streams_min_assignment_interval_ms,
            config.streams_max_assignment_interval_ms,
        ),
        STREAMS_STANDBYS: Bounds(config.streams_standby_replicas, 0, config.streams_max_standby_replicas),
        STREAMS_INITIAL_DELAY: Bounds(config.streams_initial_delay_ms, 0, INT32_MAX),
    }


class Word(NamedTuple):
    """A dynamic setting that is no number: its default, and its allowed words."""

    default: str
    choices: tuple[str, ...]
    is_flag: bool = False


SHARE_RESET = "share.auto.offset.reset"
SHARE_ISOLATION = "share.isolation.level"
SHARE_RENEW = "share.renew.acknowledge.enable"
WORDS = {
    SHARE_RESET: Word("latest", ("earliest", "latest")),
    SHARE_ISOLATION: Word("read_uncommitted", ("read_committed", "read_uncommitted")),
    SHARE_RENEW: Word("true", ("true", "false"), is_flag=True),
}
"""Where a share group begins (or `by_duration:` and how long ago), what it reads, whether it renews locks."""
BY_DURATION = "by_duration:"


class Text(NamedTuple):
    """A dynamic setting that the broker's own decides: that one's name, and its value."""

    broker_setting: str
    default: str


def texts(config: GroupConfig) -> dict[str, Text]:
    """Return the dynamic settings of a streams group that are no numbers and that the release has."""
    known = {
        STREAMS_ASSIGNOR: Text("group.streams.assignors", config.streams_assignors[0]),
        STREAMS_RACK_TAGS: Text(
            "group.streams.rack.aware.assignment.tags", ",".join(config.streams_rack_tags)
        ),
    }
    return {name: text for name, text in known.items() if config.kafka.has_setting(name)}


def as_shown(name: str, text: str) -> str:
    """Return what was set as Kafka shows it: names and lists without blanks."""
    if name == STREAMS_RACK_TAGS:
        return ",".join(rack_tags(text))
    return text.strip() if name == STREAMS_ASSIGNOR else text


def _check_text(config: GroupConfig, name: str, text: str) -> None:
    if name == STREAMS_ASSIGNOR:
        known = config.streams_assignors
        if text.strip() not in known:
            raise Refused(
                ErrorCode.INVALID_CONFIG,
                f"{name} '{text[:200]}' is not a registered task assignor. Registered assignors are: "
                f"[{', '.join(known)}].",
            )
        return
    try:
        rack_tags(text)
    except ValueError as wrong:
        raise Refused(ErrorCode.INVALID_CONFIG, f"{name} {wrong}.") from None


def _check_word(name: str, text: str) -> None:
    choices, word = WORDS[name].choices, text.strip()
    if (word.lower() if WORDS[name].is_flag else word) in choices:
        return
    expected = " or ".join(choices)
    if name == SHARE_RESET:
        if word.startswith(BY_DURATION):
            with suppress(ConfigError):
                ago_ms = iso_duration_ms(word.removeprefix(BY_DURATION))
                if ago_ms is not None and ago_ms >= 0:
                    return
        expected += f" or {BY_DURATION}PT1H, for another time than an hour"
    raise Refused(ErrorCode.INVALID_CONFIG, f"{name}={text[:200]} must be {expected}")


def check(config: GroupConfig, settings: dict[str, str]) -> None:
    """Refuse settings a group may not have: unknown names, no numbers, out of the broker's bounds."""
    known, others = bounds(config), texts(config)
    for name, text in settings.items():
        if name in roster.SETTINGS:
            roster.check(name, text)
            continue
        if name in WORDS:
            _check_word(name, text)
            continue
        if name in others:
            _check_text(config, name, text)
            continue
        if name not in known:
            raise Refused(ErrorCode.INVALID_CONFIG, f"Unknown group config name: {name}")
        _, least, most = known[name]
        try:
            whole_number(text, least, most)
        except ValueError as wrong:
            raise Refused(ErrorCode.INVALID_CONFIG, f"{name}={text[:200]} {wrong} on this broker") from None
    for beats, silence in (
        (HEARTBEAT_INTERVAL, SESSION_TIMEOUT),
        (SHARE_HEARTBEAT_INTERVAL, SHARE_SESSION_TIMEOUT),
        (STREAMS_HEARTBEAT_INTERVAL, STREAMS_SESSION_TIMEOUT),
    ):
        heartbeat = int(settings.get(beats, known[beats].default))
        session = int(settings.get(silence, known[silence].default))
        if session <= heartbeat:
            raise Refused(
                ErrorCode.INVALID_CONFIG,
                f"{silence} ({session}) must be more than {beats} ({heartbeat})",
            )


def put(configs: dict[str, dict[str, str]], group_id: str, settings: dict[str, str]) -> None:
    """Replace what a group has set for itself; a group without settings of its own is not listed."""
    if settings:
        configs[group_id] = settings
    else:
        configs.pop(group_id, None)


def session_timeout_ms(state: State, group_id: str) -> int:
    """Return how long a consumer-protocol member may be silent."""
    return _value(state, group_id, SESSION_TIMEOUT, state.config.consumer_session_timeout_ms)


def heartbeat_interval_ms(state: State, group_id: str) -> int:
    """Return the interval at which members send heartbeats."""
    return _value(state, group_id, HEARTBEAT_INTERVAL, state.config.consumer_heartbeat_interval_ms)


def assignment_is_due(now_ms: int, last_ms: int, interval_ms: int) -> bool:
    """Return whether a group's assignment interval since its last computation (0: none) is over."""
    return last_ms == 0 or interval_ms == 0 or now_ms >= last_ms + interval_ms


def assignment_interval_ms(state: State, group_id: str) -> int:
    """Return the least time between two computations of the target assignment."""
    return _value(state, group_id, ASSIGNMENT_INTERVAL, state.config.assignment_interval_ms)


def streams_session_timeout_ms(state: State, group_id: str) -> int:
    """Return how long a member of a streams group may be silent."""
    return _value(state, group_id, STREAMS_SESSION_TIMEOUT, state.config.streams_session_timeout_ms)


def streams_heartbeat_interval_ms(state: State, group_id: str) -> int:
    """Return the interval at which members of a streams group send heartbeats."""
    return _value(state, group_id, STREAMS_HEARTBEAT_INTERVAL, state.config.streams_heartbeat_interval_ms)


def streams_assignment_interval_ms(state: State, group_id: str) -> int:
    """Return the least time between two computations of a streams group's target assignment."""
    return _value(state, group_id, STREAMS_ASSIGNMENT_INTERVAL, state.config.streams_assignment_interval_ms)


def streams_initial_delay_ms(state: State, group_id: str) -> int:
    """Return how long the first assignment of an empty streams group waits for more members."""
    return _value(state, group_id, STREAMS_INITIAL_DELAY, state.config.streams_initial_delay_ms)


def streams_standby_replicas(state: State, group_id: str) -> int:
    """Return the number of standbys of each stateful task."""
    return _value(state, group_id, STREAMS_STANDBYS, state.config.streams_standby_replicas)


def streams_rack_tags(state: State, group_id: str) -> tuple[str, ...]:
    """Return the client tags over which standbys are to be spread; the assignor `sticky` ignores them."""
    own = state.group_configs.get(group_id, {})
    return rack_tags(own[STREAMS_RACK_TAGS]) if STREAMS_RACK_TAGS in own else state.config.streams_rack_tags


class ShareSettings(NamedTuple):
    """A share group's settings for the partitions it reads; times in ms."""

    lock_ms: int
    most_deliveries: int
    most_locks: int
    reset: str
    read_committed: bool
    may_renew: bool


def share_settings(config: GroupConfig, own: Mapping[str, str]) -> ShareSettings:
    """Return the settings in force of a share group that sets `own`, within the broker's present bounds."""
    known = bounds(config)
    lock_ms, deliveries, locks = (
        min(max(int(own.get(name, known[name].default)), known[name].least), known[name].most)
        for name in (SHARE_LOCK, SHARE_DELIVERIES, SHARE_LOCKS)
    )
    reset, isolation, renew = (
        own.get(name, WORDS[name].default).strip() for name in (SHARE_RESET, SHARE_ISOLATION, SHARE_RENEW)
    )
    return ShareSettings(
        lock_ms, deliveries, locks, reset, isolation == "read_committed", renew.lower() == "true"
    )


def share_session_timeout_ms(state: State, group_id: str) -> int:
    """Return how long a member of a share group may be silent."""
    return _value(state, group_id, SHARE_SESSION_TIMEOUT, state.config.share_session_timeout_ms)


def share_heartbeat_interval_ms(state: State, group_id: str) -> int:
    """Return the interval at which members of a share group send heartbeats."""
    return _value(state, group_id, SHARE_HEARTBEAT_INTERVAL, state.config.share_heartbeat_interval_ms)


def share_assignment_interval_ms(state: State, group_id: str) -> int:
    """Return the least time between two computations of a share group's target assignment."""
    return _value(state, group_id, SHARE_ASSIGNMENT_INTERVAL, state.config.share_assignment_interval_ms)


def _value(state: State, group_id: str, name: str, default: int) -> int:
    """Return the group's own value, within the broker's present bounds; nearly all groups have none."""
    own = state.group_configs.get(group_id)
    if own is None or name not in own:
        return default
    _, least, most = bounds(state.config)[name]
    return min(max(int(own[name]), least), most)
