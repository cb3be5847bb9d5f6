"""The timers of classic groups and their members."""

from __future__ import annotations

from typing import NamedTuple

from kgroup.coordinator.classic.group import ClassicGroup, ClassicMember
from kgroup.coordinator.state import Step
from kgroup.coordinator.timer_kinds import TimerKind
from kgroup.timers import TimerKey


class InitialDelay(NamedTuple):
    """The join timer of a group that was empty: the length of this delay, and how much may follow it."""

    delay_ms: int
    left_ms: int


def session_timer(group: ClassicGroup, member_id: str) -> TimerKey:
    return TimerKey(TimerKind.CLASSIC_SESSION, group.group_id, member_id)


def join_timer(group: ClassicGroup) -> TimerKey:
    return TimerKey(TimerKind.CLASSIC_JOIN, group.group_id)


def sync_timer(group: ClassicGroup) -> TimerKey:
    return TimerKey(TimerKind.CLASSIC_SYNC, group.group_id)


def hold_timer(group: ClassicGroup) -> TimerKey:
    return TimerKey(TimerKind.CLASSIC_HOLD, group.group_id)


def renew_session(step: Step, group: ClassicGroup, member: ClassicMember) -> None:
    """Restart the member's session timeout: it has just shown that it lives."""
    key = member.session_timer
    if key is None:
        key = member.session_timer = session_timer(group, member.member_id)
    step.arm(key, member.session_timeout_ms)
