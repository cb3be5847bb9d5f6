"""The records of share groups, by what they say; the orders are Kafka's (KIP-932)."""

from __future__ import annotations

from kgroup.coordinator.share.group import ShareGroup
from kgroup.coordinator.share.member import Partitions, ShareMember, listed
from kgroup.coordinator.state import Step
from kgroup.protocol import share_records as r


def write_metadata(step: Step, group_id: str, member: ShareMember) -> None:
    """Write record 10: the member's identity and subscriptions."""
    step.write(r.ShareGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), member.metadata)


def write_epoch(step: Step, group_id: str, epoch: int, metadata_hash: int) -> None:
    """Write record 11: the group epoch and a hash of the subscribed topics."""
    value = r.ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    step.write(r.ShareGroupMetadataKey(group_id=group_id), value)


def write_target_epoch(step: Step, group_id: str, epoch: int, timestamp_ms: int) -> None:
    """Write record 12: the epoch of all targets, and the time; it follows them."""
    value = r.ShareGroupTargetAssignmentMetadataValue(
        assignment_epoch=epoch, assignment_timestamp=timestamp_ms
    )
    step.write(r.ShareGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def write_target(step: Step, group_id: str, member_id: str, target: Partitions) -> None:
    """Write record 13: the member's target partitions."""
    value = r.ShareGroupTargetAssignmentMemberValue(topic_partitions=listed(target))
    step.write(r.ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def write_current(step: Step, group_id: str, member: ShareMember) -> None:
    """Write record 14: the member's epoch and partitions."""
    key = r.ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    step.write(key, member.value())


def remove_member(step: Step, group_id: str, member_id: str) -> None:
    """Write tombstones of a member: assignment, target, metadata."""
    step.write(r.ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None)
    step.write(r.ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None)
    step.write(r.ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None)


def forget_share_group(step: Step, group: ShareGroup) -> None:
    """Write tombstones of all records of a group without members, in the order replay asks for."""
    group_id = group.group_id
    step.defer(lambda: step.state.initializing_since_ms.pop(group_id, None))
    step.write(r.ShareGroupTargetAssignmentMetadataKey(group_id=group_id), None)
    step.write(r.ShareGroupStatePartitionMetadataKey(group_id=group_id), None)
    step.write(r.ShareGroupMetadataKey(group_id=group_id), None)
