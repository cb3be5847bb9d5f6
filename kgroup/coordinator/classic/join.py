"""JoinGroup on a classic group: every case of member id and instance id (KIP-345, KIP-394)."""

from __future__ import annotations

from dataclasses import replace

from kgroup.coordinator.classic.answers import joined, refused_join
from kgroup.coordinator.classic.checks import refuse_if_unknown
from kgroup.coordinator.classic.group import NEVER, ClassicGroup, ClassicMember
from kgroup.coordinator.classic.rebalance import (
    add_member,
    park_join,
    rebalance_or_complete,
    rebalance_timeout,
)
from kgroup.coordinator.classic.states import ClassicState
from kgroup.coordinator.classic.static import rejoin_static
from kgroup.coordinator.classic.timers import session_timer
from kgroup.coordinator.state import Step
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.group_records import GroupMetadataKey
from kgroup.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse

MEMBER_ID_REQUIRED_SINCE = 4


def join(step: Step, group: ClassicGroup | None, request: JoinGroupRequest) -> JoinGroupResponse | None:
    """Answer a join, or park it (None); create a missing group for a new member."""
    if group is not None:
        return _join(step, group, request)
    if request.member_id:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
    group = ClassicGroup(request.group_id, state_since_ms=step.now_ms)
    step.state.groups[request.group_id] = group
    response = _join(step, group, request)
    # Written even when the join only got an id (MEMBER_ID_REQUIRED), as Kafka does: the group is listed from
    # here on, and must be after a restart too.
    if not step.records:
        created = replace(NEVER, current_state_timestamp=step.now_ms)
        step.write(GroupMetadataKey(group=request.group_id), created)
    return response


def _join(step: Step, group: ClassicGroup, request: JoinGroupRequest) -> JoinGroupResponse | None:
    try:
        if not _has_room(step, group, request.member_id):
            # After the limit is lowered, members that rejoin last are rejected until the group fits.
            group.remove(request.member_id)
            return refused_join(ErrorCode.GROUP_MAX_SIZE_REACHED, "")
        if not group.supports(request.protocol_type, request.protocols):
            raise Refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if request.member_id:
            return _join_existing(step, group, request)
        return _join_new(step, group, request)
    except Refused as refused:
        return refused_join(refused.code, request.member_id)


def _has_room(step: Step, group: ClassicGroup, member_id: str) -> bool:
    limit = step.config.max_size
    member = group.members.get(member_id)
    match group.state:
        # Ids are handed out without limit (KIP-394): only clients that join with one count.
        case ClassicState.EMPTY | ClassicState.DEAD:
            return True
        # Members that have not rejoined yet may be gone: only waiting joins are counted.
        case ClassicState.PREPARING:
            return (member is not None and member.join is not None) or group.awaiting_join < limit
        case _:
            return member is not None or len(group.members) + len(group.held) < limit


def _join_new(step: Step, group: ClassicGroup, request: JoinGroupRequest) -> JoinGroupResponse | None:
    instance_id = request.group_instance_id
    if instance_id is not None:
        if instance_id in group.static:
            return rejoin_static(step, group, request, instance_id)
        # Not asked for an id first (SM-29): the instance id shows that its retries are one member.
        return _enter(step, group, _member(step, request, step.state.ids.classic_member(instance_id)))
    member_id = step.state.ids.classic_member(step.client_id)
    # KIP-394: a client whose first join timed out would become another member at each retry. It must fetch
    # its id first; an unused id costs a session timeout, and no rebalance.
    if step.version >= MEMBER_ID_REQUIRED_SINCE:
        group.pending_joiners.add(member_id)
        step.arm(session_timer(group, member_id), request.session_timeout_ms)
        return refused_join(ErrorCode.MEMBER_ID_REQUIRED, member_id)
    return _enter(step, group, _member(step, request, member_id))


def _enter(step: Step, group: ClassicGroup, member: ClassicMember) -> JoinGroupResponse | None:
    expected = step.state.expected.get(group.group_id)
    if expected is not None:
        return expected.enter(step, group, member)
    add_member(step, group, member)
    return None


def _join_existing(step: Step, group: ClassicGroup, request: JoinGroupRequest) -> JoinGroupResponse | None:
    member_id = request.member_id
    if member_id in group.pending_joiners:
        # A static member never gets an id to rejoin with (SM-29), so no client sends this. Kafka fails with
        # an IllegalStateException, which its clients see as UNKNOWN_SERVER_ERROR.
        if request.group_instance_id is not None:
            return refused_join(ErrorCode.UNKNOWN_SERVER_ERROR, "")
        return _enter(step, group, _member(step, request, member_id))
    refuse_if_unknown(group, member_id, request.group_instance_id)
    member = group.members[member_id]
    expected = step.state.expected.get(group.group_id)
    if expected is not None and (inherits := expected.rejoin(step, group, member, request)) is not None:
        return inherits
    unchanged = member.protocols == request.protocols
    match group.state:
        # The answer to its join was lost: send it again, without a rebalance for the others.
        case ClassicState.COMPLETING if unchanged:
            return joined(group, member_id, to_leader=member_id == group.leader)
        # The same for a follower (SM-05). A leader that joins wants a new assignment, as when topics changed,
        # which it alone can see (SM-40).
        case ClassicState.STABLE if unchanged and member_id != group.leader:
            return joined(group, member_id, to_leader=False)
        # No step leaves a member in an Empty group; Kafka has this answer for the case.
        case ClassicState.EMPTY:
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
    group.update(
        member, request.protocols, rebalance_timeout(request, step.version), request.session_timeout_ms
    )
    park_join(step, group, member)
    rebalance_or_complete(step, group)
    return None


def _member(step: Step, request: JoinGroupRequest, member_id: str) -> ClassicMember:
    return ClassicMember(
        member_id=member_id,
        instance_id=request.group_instance_id,
        client_id=step.client_id,
        client_host=step.client_host,
        rebalance_timeout_ms=rebalance_timeout(request, step.version),
        session_timeout_ms=request.session_timeout_ms,
        protocol_type=request.protocol_type,
        protocols=request.protocols,
    )
