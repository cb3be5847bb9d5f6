"""DeleteGroups: the tombstones of an empty group and of its offsets, in one batch."""

from __future__ import annotations

from kgroup.coordinator.classic.group import ClassicGroup
from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.groups import Group
from kgroup.coordinator.offsets.delete import forget_all
from kgroup.coordinator.state import Step
from kgroup.errors import ErrorCode
from kgroup.protocol import group_records as r
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
        elif not group.is_empty:
            code = ErrorCode.NON_EMPTY_GROUP
        else:
            forget_all(step, group_id)
            forget_group(step, group)
        results.append(DeletableGroupResult(group_id=group_id, error_code=code))
    return DeleteGroupsResponse(results=tuple(results))


def forget_group(step: Step, group: Group) -> None:
    """Write the tombstones of the group itself, in the order replay asks for."""
    if isinstance(group, ClassicGroup):
        step.write(r.GroupMetadataKey(group=group.group_id), None)
    else:
        forget_consumer_group(step, group)


def forget_consumer_group(step: Step, group: ConsumerGroup, renamed: tuple[str, str] | None = None) -> None:
    """Tombstones of assignments, targets, target epoch, members, patterns and the group, in Kafka's order.

    `renamed` is the old and the new id of a static member that this very batch has given a new id.
    """
    group_id = group.group_id
    old, new = renamed or ("", "")
    members = [new if renamed and member_id == old else member_id for member_id in group.members]
    # Every member's target, whether it has one or not: taking a static member's place writes the new id a
    # target in this very batch, even an empty one, and the target epoch may go only when no target is left.
    targets = [*members, *(other for other in group.targets if other not in group.members)]
    for member_id in members:
        step.write(r.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None)
    for member_id in targets:
        step.write(r.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None)
    step.write(r.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None)
    for member_id in members:
        step.write(r.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None)
    for pattern in group.resolved:
        step.write(r.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern), None)
    step.write(r.ConsumerGroupPartitionMetadataKey(group_id=group_id), None)
    step.write(r.ConsumerGroupMetadataKey(group_id=group_id), None)
