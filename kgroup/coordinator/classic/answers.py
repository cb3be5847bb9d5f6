"""Answers to JoinGroup."""

from __future__ import annotations

from kgroup.coordinator.classic.group import ClassicGroup
from kgroup.errors import ErrorCode
from kgroup.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember


def refused_join(code: ErrorCode, member_id: str) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=code, member_id=member_id, protocol_name=None)


def joined_members(group: ClassicGroup) -> tuple[JoinGroupResponseMember, ...]:
    """Return the members that the leader assigns to, with their subscriptions under the selected protocol.

    All of them, except the standbys of a group with a target size.
    """
    protocol = group.protocol
    return tuple(
        JoinGroupResponseMember(
            member_id=m.member_id, group_instance_id=m.instance_id, metadata=m.metadata(protocol)
        )
        for m in group.members.values()
        if m.member_id not in group.idle
    )


def joined(group: ClassicGroup, member_id: str, *, to_leader: bool) -> JoinGroupResponse:
    """Return the answer to a join at the current generation."""
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=group.leader or "",
        member_id=member_id,
        members=joined_members(group) if to_leader else (),
    )
