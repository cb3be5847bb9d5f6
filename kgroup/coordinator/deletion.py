"""DeleteGroups: the tombstones of an empty group and of its offsets, in one batch."""

from __future__ import annotations

from kgroup.coordinator.groups import forget_group
from kgroup.coordinator.offsets.delete import forget_all
from kgroup.coordinator.state import Step
from kgroup.errors import ErrorCode
from kgroup.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


def delete_groups(step: Step, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    """Delete each group that has no members; open transactions do not keep a group."""
    results = []
    for group_id in dict.fromkeys(request.groups_names):
        group = step.state.groups.get(group_id)
        code = ErrorCode.NONE
        if group is None:
            code = ErrorCode.GROUP_ID_NOT_FOUND
        # Members would go on with a new group of this name that has none of them (KIP-229).
        elif not group.is_empty:
            code = ErrorCode.NON_EMPTY_GROUP
        else:
            # Offsets before the group, in one batch: a restart finds all of it, or nothing.
            forget_all(step, group_id)
            forget_group(step, group)
        results.append(DeletableGroupResult(group_id=group_id, error_code=code))
    return DeleteGroupsResponse(results=tuple(results))
