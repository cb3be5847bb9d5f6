"""What became of each item of a change, as JSON documents and the journal have it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from kgroup.domain import value


class ChangeStatus(StrEnum):
    """What a plan means to do with an item, or what became of it."""

    PLANNED = "planned"
    UNCHANGED = "unchanged"
    """What was wanted was there already."""
    DONE = "done"
    REMOVED = "removed"
    DELETED = "deleted"
    NOT_FOUND = "not_found"
    REFUSED = "refused"
    """By a check, before or by the coordinator: the item is as it was."""
    FAILED = "failed"


@value
class ItemResult:
    """One member of a removal: result is planned, removed, not_found or failed."""

    instance_id: str | None
    member_id: str | None
    result: Annotated[ChangeStatus, ("planned", "removed", "not_found", "failed")]
    error_code: str | None = None
    effect: str = ""

    @property
    def planned(self) -> bool:
        """Whether it is still to be done."""
        return self.result == ChangeStatus.PLANNED


@value
class GroupResult:
    """One group of a deletion: result is planned, deleted, not_found or failed."""

    group_id: str
    result: Annotated[ChangeStatus, ("planned", "deleted", "not_found", "failed")]
    error_code: str | None = None
    effect: str = ""

    @property
    def planned(self) -> bool:
        """Whether it is still to be done."""
        return self.result == ChangeStatus.PLANNED
