"""A consumer group's settings: its own dynamic ones, else the broker's (resource type GROUP)."""

from __future__ import annotations

from typing import NamedTuple

from kgroup.coordinator.config import GroupConfig
from kgroup.coordinator.state import State
from kgroup.errors import ErrorCode, Refused

SESSION_TIMEOUT = "consumer.session.timeout.ms"
HEARTBEAT_INTERVAL = "consumer.heartbeat.interval.ms"
ASSIGNMENT_INTERVAL = "consumer.assignment.interval.ms"


class Bounds(NamedTuple):
    """What the broker says of a dynamic setting: its default, and the range that is allowed."""

    default: int
    least: int
    most: int


def bounds(config: GroupConfig) -> dict[str, Bounds]:
    """The dynamic settings a group may have, by name; in ms."""
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
    }


def check(config: GroupConfig, settings: dict[str, str]) -> None:
    """Refuse settings a group may not have: unknown names, no numbers, out of the broker's bounds."""
    known = bounds(config)
    for name, text in settings.items():
        if name not in known:
            raise Refused(ErrorCode.INVALID_CONFIG, f"Unknown group config name: {name}")
        _, least, most = known[name]
        try:
            value = int(text)
        except ValueError:
            raise Refused(ErrorCode.INVALID_CONFIG, f"{name} must be a number of ms, not {text!r}") from None
        if not least <= value <= most:
            raise Refused(
                ErrorCode.INVALID_CONFIG, f"{name} must be from {least} to {most} on this broker, not {value}"
            )
    session = int(settings.get(SESSION_TIMEOUT, config.consumer_session_timeout_ms))
    heartbeat = int(settings.get(HEARTBEAT_INTERVAL, config.consumer_heartbeat_interval_ms))
    if session <= heartbeat:
        raise Refused(
            ErrorCode.INVALID_CONFIG,
            f"{SESSION_TIMEOUT} ({session}) must be more than {HEARTBEAT_INTERVAL} ({heartbeat})",
        )


def session_timeout_ms(state: State, group_id: str) -> int:
    """How long a consumer-protocol member may be silent."""
    own = state.group_configs.get(group_id)
    return state.config.consumer_session_timeout_ms if own is None else _value(state, own, SESSION_TIMEOUT)


def heartbeat_interval_ms(state: State, group_id: str) -> int:
    """How often members are told to send heartbeats."""
    own = state.group_configs.get(group_id)
    return (
        state.config.consumer_heartbeat_interval_ms if own is None else _value(state, own, HEARTBEAT_INTERVAL)
    )


def assignment_interval_ms(state: State, group_id: str) -> int:
    """The least time between two computations of the target assignment."""
    own = state.group_configs.get(group_id)
    return state.config.assignment_interval_ms if own is None else _value(state, own, ASSIGNMENT_INTERVAL)


def _value(state: State, own: dict[str, str], name: str) -> int:
    """The group's own value, held within the broker's present bounds."""
    default, least, most = bounds(state.config)[name]
    return min(max(int(own[name]), least), most) if name in own else default
