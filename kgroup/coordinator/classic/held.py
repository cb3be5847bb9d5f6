"""Joins of registered instance ids that wait for the others, so that all of them cost one rebalance.

They wait outside the group, whose members keep reading their partitions. The wait ends when the last of the
registered ids has joined, when its bound is over (SM-82), or when the group rebalances for another reason.
Held joins are soft: after a failover the clients rejoin, and are held again.
"""

from __future__ import annotations

from kgroup.coordinator.classic.answers import refused_join
from kgroup.coordinator.classic.group import ClassicGroup, ClassicMember
from kgroup.coordinator.classic.states import ClassicState
from kgroup.coordinator.classic.timers import hold_timer, session_timer
from kgroup.coordinator.roster import Roster
from kgroup.coordinator.state import Step
from kgroup.errors import ErrorCode
from kgroup.protocol.messages.leave_group import MemberIdentity


def hold(step: Step, group: ClassicGroup, member: ClassicMember) -> bool:
    """Hold the join of a registered id if other registered ids are missing; return whether (SM-80, OC-06)."""
    roster = step.state.roster_of(group.group_id)
    # A join costs nothing in a group that prepares a rebalance; one that completes it would start over.
    if roster is None or group.state not in (ClassicState.STABLE, ClassicState.COMPLETING):
        return False
    instance_id = member.instance_id
    if instance_id is None or instance_id not in roster.registered:
        return False
    bound_ms = wait_ms(step, group, member)
    if bound_ms == 0 or not _missing(roster, group, instance_id):
        return False
    _refuse_held(step, group, instance_id, ErrorCode.FENCED_INSTANCE_ID)
    member.join = step.park()
    group.held[instance_id] = member
    if not step.is_armed(hold_timer(group)):
        step.arm(hold_timer(group), bound_ms)
    return True


def wait_ms(step: Step, group: ClassicGroup, joining: ClassicMember | None = None) -> int:
    """Return how long a group waits for expected members; its rebalance timeout by default (OC-06)."""
    roster = step.state.roster_of(group.group_id)
    if roster is not None and roster.wait_ms is not None:
        return roster.wait_ms
    return max(group.rebalance_timeout_ms, joining.rebalance_timeout_ms if joining is not None else 0)


def is_awaited(step: Step, group: ClassicGroup) -> bool:
    """Return whether a member that the group's settings name or count is still missing."""
    roster = step.state.roster_of(group.group_id)
    return roster is not None and roster.is_awaited(group.static, len(group.members))


def is_complete(step: Step, group: ClassicGroup) -> bool:
    """Return whether the group's settings name or count its members, and all of them have joined."""
    return step.state.roster_of(group.group_id) is not None and not is_awaited(step, group)


def is_over(step: Step, group: ClassicGroup) -> bool:
    """Return whether held joins have no member left to wait for, as after a change of the settings."""
    roster = step.state.roster_of(group.group_id)
    return bool(group.held) and (roster is None or not _missing(roster, group))


def take_in(step: Step, group: ClassicGroup) -> None:
    """Make the held joins members of a group that has begun to rebalance."""
    if not group.held:
        return
    joiners, group.held = group.held, {}
    step.cancel(hold_timer(group))
    for member in joiners.values():
        # Members that rejoined meanwhile may have brought other protocols than when this one asked.
        if not group.supports(member.protocol_type, member.protocols):
            _refuse(step, member, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
            continue
        member.is_new = True
        group.add(member)
        step.arm(session_timer(group, member.member_id), step.config.new_member_timeout_ms)


def let_go(step: Step, group: ClassicGroup, leaver: MemberIdentity) -> bool:
    """Refuse a held join whose instance id is removed; return whether there was one."""
    member = group.held.get(leaver.group_instance_id or "")
    if member is None or leaver.member_id not in ("", member.member_id):
        return False
    assert member.instance_id is not None
    _refuse_held(step, group, member.instance_id, ErrorCode.UNKNOWN_MEMBER_ID)
    if not group.held:
        step.cancel(hold_timer(group))
    return True


def send_back(step: Step, group: ClassicGroup, code: ErrorCode) -> None:
    """Refuse every held join."""
    for instance_id in list(group.held):
        _refuse_held(step, group, instance_id, code)


def _missing(roster: Roster, group: ClassicGroup, *joining: str) -> bool:
    return bool(roster.missing({*group.static, *group.held, *joining}))


def _refuse_held(step: Step, group: ClassicGroup, instance_id: str, code: ErrorCode) -> None:
    member = group.held.pop(instance_id, None)
    if member is not None:
        _refuse(step, member, code)


def _refuse(step: Step, member: ClassicMember, code: ErrorCode) -> None:
    if member.join is not None:
        step.answer(member.join, refused_join(code, member.member_id))
        member.join = None
