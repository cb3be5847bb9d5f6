"""The session timers of share groups' members."""

from __future__ import annotations

from kgroup.coordinator.group_settings import share_session_timeout_ms
from kgroup.coordinator.state import Step
from kgroup.coordinator.timer_kinds import TimerKind
from kgroup.timers import TimerKey


def renew_session(step: Step, group_id: str, member_id: str) -> None:
    """Restart the member's session timeout."""
    step.arm(_session(group_id, member_id), share_session_timeout_ms(step.state, group_id))


def end_session(step: Step, group_id: str, member_id: str) -> None:
    """Cancel the session of a removed member."""
    step.cancel(_session(group_id, member_id))


def _session(group_id: str, member_id: str) -> TimerKey:
    return TimerKey(TimerKind.SHARE_SESSION, group_id, member_id)
