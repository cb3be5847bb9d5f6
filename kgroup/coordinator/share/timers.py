"""The session timers of share groups' members."""

from __future__ import annotations

from kgroup.coordinator.state import Step
from kgroup.coordinator.timer_kinds import TimerKind
from kgroup.timers import TimerKey


def renew_session(step: Step, group_id: str, member_id: str) -> None:
    """Restart the member's session timeout."""
    timeout = step.state.config_of(group_id).share_session_timeout_ms
    step.arm(_session(group_id, member_id), timeout)


def end_session(step: Step, group_id: str, member_id: str) -> None:
    """Cancel the session of a removed member."""
    step.cancel(_session(group_id, member_id))


def _session(group_id: str, member_id: str) -> TimerKey:
    return TimerKey(TimerKind.SHARE_SESSION, group_id, member_id)
