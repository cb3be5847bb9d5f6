"""Refusals that several operations on classic groups share."""

from __future__ import annotations

from kgroup.coordinator.classic.group import ClassicGroup
from kgroup.errors import ErrorCode, Refused


def refuse_if_unknown(group: ClassicGroup, member_id: str, instance_id: str | None) -> None:
    """Raise UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID unless the ids name one member (KIP-345 fencing)."""
    if instance_id is not None:
        holder = group.static.get(instance_id)
        if holder is None:
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
        if holder != member_id:
            raise Refused(ErrorCode.FENCED_INSTANCE_ID)
    if member_id not in group.members:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)


def refuse_if_generation_differs(group: ClassicGroup, generation: int) -> None:
    """Raise ILLEGAL_GENERATION unless the group is at `generation`."""
    if generation != group.generation:
        raise Refused(ErrorCode.ILLEGAL_GENERATION)
