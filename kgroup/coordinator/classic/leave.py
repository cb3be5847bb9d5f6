"""LeaveGroup on a classic group: one member or a batch, by member id or instance id (KIP-345, KIP-800)."""

from __future__ import annotations

from kgroup.coordinator.classic.checks import refuse_if_unknown
from kgroup.coordinator.classic.group import ClassicGroup, ClassicMember
from kgroup.coordinator.classic.rebalance import after_removal, remove_member
from kgroup.coordinator.classic.timers import session_timer
from kgroup.coordinator.state import Step
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.messages.leave_group import LeaveGroupResponse, MemberIdentity, MemberResponse


def leave(step: Step, group: ClassicGroup | None, members: tuple[MemberIdentity, ...]) -> LeaveGroupResponse:
    """Remove the named members, each with a result of its own; one rebalance follows for all."""
    expected = None if group is None else step.state.expected.get(group.group_id)
    gone: list[ClassicMember] = []
    somebody_went = False
    results = []
    for leaver in members:
        code = ErrorCode.NONE
        # A held join is not in the group yet: its end changes nothing there.
        if group is None or expected is None or not expected.let_go(step, group, leaver):
            code = _remove(step, group, leaver, gone)
            somebody_went = somebody_went or code is ErrorCode.NONE
        results.append(
            MemberResponse(
                member_id=leaver.member_id, group_instance_id=leaver.group_instance_id, error_code=code
            )
        )
    # One rebalance for the whole batch (SM-58), and none if no member was removed.
    if group is not None and somebody_went:
        after_removal(step, group, gone)
    return LeaveGroupResponse(members=tuple(results))


def _remove(
    step: Step, group: ClassicGroup | None, leaver: MemberIdentity, gone: list[ClassicMember]
) -> ErrorCode:
    if group is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    member_id = leaver.member_id
    # An admin names the instance alone (SM-53): remove the member that owns it, whatever its member id.
    if not member_id and leaver.group_instance_id is not None:
        member_id = group.static.get(leaver.group_instance_id, "")
    elif member_id in group.pending_joiners:
        # It got an id (KIP-394) and has not rejoined with it: a rebalance may be waiting for it alone.
        group.pending_joiners.discard(member_id)
        step.cancel(session_timer(group, member_id))
        return ErrorCode.NONE
    try:
        refuse_if_unknown(group, member_id, leaver.group_instance_id)
    except Refused as refused:
        return refused.code
    member = group.members[member_id]
    remove_member(step, group, member)
    gone.append(member)
    return ErrorCode.NONE
