"""Checks of a request that several operations make before they look up its group."""

from __future__ import annotations

from kgroup.errors import ErrorCode, Refused


def refuse_if_no_group_id(group_id: str) -> None:
    """Raise INVALID_GROUP_ID for the empty group id, where it is illegal."""
    if not group_id:
        raise Refused(ErrorCode.INVALID_GROUP_ID)


def has_no_offsets(group_id: str) -> Refused:
    """Return the refusal of a commit or fetch in a share group, whose start offsets lie elsewhere."""
    return Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")


def is_blank(text: str | None) -> bool:
    """Return whether a text has nothing in it but what Java's `String.trim` removes."""
    return text is not None and not text.strip(_TRIMMED)


_TRIMMED = "".join(map(chr, range(ord(" ") + 1)))
