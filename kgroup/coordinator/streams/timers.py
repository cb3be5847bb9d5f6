"""The timers of streams groups and their members."""

from __future__ import annotations

from kgroup.coordinator.state import Step
from kgroup.coordinator.streams.group import StreamsGroup
from kgroup.coordinator.streams.member import MemberState, StreamsMember
from kgroup.coordinator.timer_kinds import STREAMS_MEMBER_KINDS, TimerKind
from kgroup.timers import TimerKey


def initial_delay(group_id: str) -> TimerKey:
    """Return the timer that makes a new group's first assignment."""
    return TimerKey(TimerKind.STREAMS_INITIAL, group_id)


def renew_session(step: Step, group_id: str, member_id: str) -> None:
    """Restart the member's session timeout."""
    key = TimerKey(TimerKind.STREAMS_SESSION, group_id, member_id)
    step.arm(key, step.state.config_of(group_id).streams_session_timeout_ms)


def limit_revocation(step: Step, group_id: str, member: StreamsMember) -> None:
    """Give the member its rebalance timeout to revoke; lift the limit if it has nothing to revoke."""
    key = TimerKey(TimerKind.STREAMS_REVOCATION, group_id, member.member_id)
    if member.current.state is MemberState.UNREVOKED_TASKS:
        step.arm(key, member.metadata.rebalance_timeout_ms, member.epoch)
    else:
        step.cancel(key)


def cancel_all(step: Step, group_id: str, member_id: str) -> None:
    """Cancel every timer of a removed member."""
    for kind in STREAMS_MEMBER_KINDS:
        step.cancel(TimerKey(kind, group_id, member_id))


def arm_after_load(step: Step, group: StreamsGroup) -> None:
    """Start sessions, and revocations under way."""
    for member in group.members.values():
        renew_session(step, group.group_id, member.member_id)
        if member.current.state is MemberState.UNREVOKED_TASKS:
            limit_revocation(step, group.group_id, member)
