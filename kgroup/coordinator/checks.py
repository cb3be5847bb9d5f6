"""A refusal that every operation may need."""

from __future__ import annotations

from kgroup.errors import ErrorCode, Refused


def refuse_if_no_group_id(group_id: str) -> None:
    """INVALID_GROUP_ID for the empty group id, where it is illegal."""
    if not group_id:
        raise Refused(ErrorCode.INVALID_GROUP_ID)
