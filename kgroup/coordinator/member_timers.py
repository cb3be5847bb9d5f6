"""The timers of members of consumer, share and streams groups."""

from __future__ import annotations

from kgroup.coordinator.epoch_group import AnyGroup, AnyMember
from kgroup.coordinator.state import Step
from kgroup.timers import TimerKey


def session_timer(group: AnyGroup, member: AnyMember) -> TimerKey:
    return TimerKey(group.KIND.timers.session, group.group_id, member.member_id)


def renew_session(step: Step, group: AnyGroup, member: AnyMember, timer: TimerKey | None = None) -> None:
    """Restart the member's session timeout; a classic member of a consumer group brings its own."""
    kind, timeout = group.KIND, member.own_session_ms
    if timeout is None:
        timeout = kind.session_ms(step.state.config_of(group.group_id))
    step.arm(timer or session_timer(group, member), timeout)


def limit_revocation(step: Step, group: AnyGroup, member: AnyMember) -> None:
    """Give the member its rebalance timeout to revoke; lift the limit if it has nothing to revoke."""
    revocation = group.KIND.timers.revocation
    assert revocation is not None, "members of a share group have nothing to revoke"
    key = TimerKey(revocation, group.group_id, member.member_id)
    if member.current.must_revoke:
        step.arm(key, member.metadata.rebalance_timeout_ms, member.epoch)
    else:
        step.cancel(key)


def cancel_all(step: Step, group: AnyGroup, member_id: str) -> None:
    """Cancel every timer of a removed member."""
    for kind in group.KIND.timers.all:
        step.cancel(TimerKey(kind, group.group_id, member_id))


def arm_after_load(step: Step, group: AnyGroup) -> None:
    """Start sessions, and revocations under way; every member gets the group's session timeout."""
    kind = group.KIND
    timeout = kind.session_ms(step.state.config_of(group.group_id))
    for member in group.members.values():
        step.arm(session_timer(group, member), timeout)
        if member.current.must_revoke:
            limit_revocation(step, group, member)
