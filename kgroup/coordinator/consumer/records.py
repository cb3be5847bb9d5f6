"""The records that consumer groups alone have, and the removal of all their records (KIP-848)."""

from __future__ import annotations

from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.records import forget_members
from kgroup.coordinator.state import Step
from kgroup.protocol import group_records as r


def remove_regex(step: Step, group_id: str, pattern: str) -> None:
    """Write the tombstone of a resolved pattern."""
    step.write(r.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern), None)


def forget_consumer_group(step: Step, group: ConsumerGroup, renamed: tuple[str, str] | None = None) -> None:
    """Write tombstones of assignments, targets, target epoch, members, patterns and group, in Kafka's order.

    `renamed` is the old and the new id of a static member that this batch has given a new id.
    """
    group_id = group.group_id
    old, new = renamed or ("", "")
    members = [new if renamed and member_id == old else member_id for member_id in group.members]
    # Every member's target, whether it has one or not: taking a static member's place writes the new id a
    # target in this batch, even an empty one, and the target epoch may go only when no target is left.
    targets = [*members, *(other for other in group.targets if other not in group.members)]
    forget_members(step, group, members, targets)
    for pattern in group.resolved:
        remove_regex(step, group_id, pattern)
    # Whether there is one or not, as Kafka writes it: a broker before 4.1 may have left one.
    step.write(r.ConsumerGroupPartitionMetadataKey(group_id=group_id), None)
    step.write(r.ConsumerGroupMetadataKey(group_id=group_id), None)
