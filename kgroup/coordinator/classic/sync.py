"""SyncGroup on a classic group: the leader's assignments commit the generation."""

from __future__ import annotations

from kgroup.coordinator.classic.checks import refuse_if_generation_differs, refuse_if_unknown
from kgroup.coordinator.classic.group import ClassicGroup
from kgroup.coordinator.classic.states import ClassicState
from kgroup.coordinator.classic.timers import renew_session, sync_timer
from kgroup.coordinator.state import Step
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse


def sync(step: Step, group: ClassicGroup | None, request: SyncGroupRequest) -> SyncGroupResponse | None:
    """Answer with the member's assignment, or park until the leader has sent it (None)."""
    # An Empty group has no members: the sender has left, or was removed.
    if group is None or group.is_empty:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
    refuse_if_unknown(group, request.member_id, request.group_instance_id)
    refuse_if_generation_differs(group, request.generation_id)
    if _differs(request.protocol_type, group.protocol_type) or _differs(
        request.protocol_name, group.protocol
    ):
        raise Refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    # The generation it names ended before any member had a part of it: it has to join the next.
    if group.state is ClassicState.PREPARING:
        raise Refused(ErrorCode.REBALANCE_IN_PROGRESS)
    member = group.members[request.member_id]
    group.pending_sync.discard(member.member_id)
    if not group.pending_sync:
        step.cancel(sync_timer(group))
    expected = step.state.expected.get(group.group_id)
    # Its answer was lost, or it is a static member back from a bounce: the leader has already synced.
    if group.state is ClassicState.STABLE:
        if expected is not None:
            expected.inherit(step, group, member)
        return _synced(group, member.assignment)
    # It asks twice, as after a reconnect: the waiting request is rejected. Kafka drops the earlier one.
    if member.sync is not None:
        step.answer(member.sync, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    member.sync = step.park()
    if member.member_id == group.leader:
        given = {a.member_id: a.assignment for a in request.assignments}
        _commit(step, group, given if expected is None else expected.left_out(group) | given)
    return None


def _commit(step: Step, group: ClassicGroup, assignments: dict[str, bytes]) -> None:
    """Write the generation and answer every parked sync; the group is Stable once the record is replayed.

    A member that the leader omitted gets no partitions; an unknown member is ignored.
    """
    group.stable_since_ms = step.now_ms
    step.records.append(
        group.record(
            group.generation,
            protocol=group.protocol,
            leader=group.leader,
            assignments=assignments,
            state_since_ms=group.state_since_ms,
        )
    )
    for member in group.members.values():
        if member.sync is None:
            continue
        step.answer(member.sync, _synced(group, assignments.get(member.member_id, b"")))
        member.sync = None
        renew_session(step, group, member)
    group.forming = None
    step.state.counters.group_completed_rebalance += 1


def _synced(group: ClassicGroup, assignment: bytes) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=assignment
    )


def _differs(given: str | None, held: str | None) -> bool:
    """Return whether both are named and differ: before a protocol is chosen, any may be named."""
    return given is not None and held is not None and given != held
