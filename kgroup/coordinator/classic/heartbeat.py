"""Heartbeat on a classic group."""

from __future__ import annotations

from kgroup.coordinator.classic.checks import refuse_if_generation_differs, refuse_if_unknown
from kgroup.coordinator.classic.group import ClassicGroup
from kgroup.coordinator.classic.states import Phase
from kgroup.coordinator.classic.timers import renew_session
from kgroup.coordinator.state import Step
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

REBALANCING = HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
ALIVE = HeartbeatResponse()


def heartbeat(step: Step, group: ClassicGroup | None, request: HeartbeatRequest) -> HeartbeatResponse:
    """Keep a member's session alive and report a rebalance to it; write no record."""
    if group is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
    refuse_if_unknown(group, request.member_id, request.group_instance_id)
    refuse_if_generation_differs(group, request.generation_id)
    # In a rebalance too: a member that is asked to rejoin, and is about to, lives.
    renew_session(step, group, group.members[request.member_id])
    # Only while joins are awaited: a member that has joined learns its assignment by its sync. In a complete
    # group only a standby with something to inherit is asked to rejoin (SM-84).
    forming = group.forming
    if (forming is not None and forming.phase is Phase.PREPARING) or request.member_id in group.heirs:
        return REBALANCING
    return ALIVE
