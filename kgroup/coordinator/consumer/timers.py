"""The timers of consumer group members."""

from __future__ import annotations

from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.consumer.member import ConsumerMember, MemberState
from kgroup.coordinator.state import Step
from kgroup.coordinator.timer_kinds import MEMBER_KINDS, TimerKind
from kgroup.timers import TimerKey


def renew_session(step: Step, group_id: str, member: ConsumerMember) -> None:
    """Restart the member's session timeout; a classic-protocol member brings its own."""
    classic = member.metadata.classic_member_metadata
    config = step.state.config_of(group_id)
    timeout = config.consumer_session_timeout_ms if classic is None else classic.session_timeout_ms
    step.arm(TimerKey(TimerKind.CONSUMER_SESSION, group_id, member.member_id), timeout)


def limit_revocation(step: Step, group_id: str, member: ConsumerMember) -> None:
    """Give the member its rebalance timeout to revoke; lift the limit if it has nothing to revoke."""
    key = TimerKey(TimerKind.CONSUMER_REVOCATION, group_id, member.member_id)
    if member.current.state is MemberState.UNREVOKED_PARTITIONS:
        step.arm(key, member.metadata.rebalance_timeout_ms, member.epoch)
    else:
        step.cancel(key)


def cancel_all(step: Step, group_id: str, member_id: str) -> None:
    """Cancel every timer of a removed member."""
    for kind in MEMBER_KINDS:
        step.cancel(TimerKey(kind, group_id, member_id))


def arm_after_load(step: Step, group: ConsumerGroup) -> None:
    """Start sessions, and revocations under way; every member gets the group's session timeout."""
    timeout = step.state.config_of(group.group_id).consumer_session_timeout_ms
    for member in group.members.values():
        step.arm(TimerKey(TimerKind.CONSUMER_SESSION, group.group_id, member.member_id), timeout)
        if member.current.state is MemberState.UNREVOKED_PARTITIONS:
            limit_revocation(step, group.group_id, member)
