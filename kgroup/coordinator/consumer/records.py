"""The records of consumer groups, by what they say; the orders are Kafka's (KIP-848)."""

from __future__ import annotations

from collections.abc import Mapping

from kgroup.coordinator.assignors.interface import Assignment
from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.consumer.member import ConsumerMember
from kgroup.coordinator.state import Step
from kgroup.protocol import group_records as r


def write_metadata(step: Step, group_id: str, member: ConsumerMember) -> None:
    """Write record 5: the member's identity and subscriptions."""
    key = r.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id)
    step.write(key, member.metadata)


def write_current(step: Step, group_id: str, member: ConsumerMember) -> None:
    """Write record 8: the member's epoch and partitions."""
    key = r.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    step.write(key, member.current.value())


def write_target(step: Step, group_id: str, member_id: str, target: Assignment) -> None:
    """Write record 7: the member's target partitions."""
    value = r.ConsumerGroupTargetAssignmentMemberValue(topic_partitions=listed(target))
    step.write(r.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def write_target_epoch(step: Step, group_id: str, epoch: int, timestamp_ms: int) -> None:
    """Write record 6: the epoch of all targets; it follows them."""
    value = r.ConsumerGroupTargetAssignmentMetadataValue(
        assignment_epoch=epoch, assignment_timestamp=timestamp_ms
    )
    step.write(r.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def write_epoch(step: Step, group_id: str, epoch: int, metadata_hash: int) -> None:
    """Write record 3: the group epoch and the hash of the topics subscribed to."""
    value = r.ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    step.write(r.ConsumerGroupMetadataKey(group_id=group_id), value)


def remove_member(step: Step, group_id: str, member_id: str) -> None:
    """Write tombstones of a member: assignment, target, metadata."""
    step.write(r.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None)
    step.write(r.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None)
    step.write(r.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None)


def replace_member(
    step: Step, group_id: str, old: ConsumerMember, new: ConsumerMember, target: Assignment
) -> None:
    """Give a static member's place to a new member id."""
    remove_member(step, group_id, old.member_id)
    write_metadata(step, group_id, new)
    write_target(step, group_id, new.member_id, target)
    write_current(step, group_id, new)


def remove_regex(step: Step, group_id: str, pattern: str) -> None:
    """Write the tombstone of a resolved pattern."""
    step.write(r.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern), None)


def listed(partitions: Mapping[bytes, tuple[int, ...]]) -> tuple[r.TargetTopicPartitions, ...]:
    """Return partitions as records carry them."""
    return tuple(
        r.TargetTopicPartitions(topic_id=topic_id, partitions=numbers)
        for topic_id, numbers in partitions.items()
    )


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
    for member_id in members:
        step.write(r.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None)
    for member_id in targets:
        step.write(r.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None)
    step.write(r.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None)
    for member_id in members:
        step.write(r.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None)
    for pattern in group.resolved:
        step.write(r.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern), None)
    # Whether there is one or not, as Kafka writes it: a broker before 4.1 may have left one.
    step.write(r.ConsumerGroupPartitionMetadataKey(group_id=group_id), None)
    step.write(r.ConsumerGroupMetadataKey(group_id=group_id), None)
