"""OffsetDelete: remove a group's offsets of topics it does not subscribe to (KIP-496)."""

from __future__ import annotations

from kgroup.coordinator.checks import has_no_offsets
from kgroup.coordinator.classic.group import ClassicGroup
from kgroup.coordinator.share.group import ShareGroup
from kgroup.coordinator.state import Group, Step
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.group_records import OffsetCommitKey
from kgroup.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from kgroup.protocol.subscription import PROTOCOL_TYPE


def delete_offsets(step: Step, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    """Delete offset by offset; partitions of subscribed topics are refused one by one."""
    group = step.state.groups.get(request.group_id)
    if group is None:
        raise Refused(ErrorCode.GROUP_ID_NOT_FOUND)
    subscribed = _subscribed(group)
    topics = []
    for topic in request.topics:
        existing = step.state.image.by_name.get(topic.name)
        partitions = []
        for partition in topic.partitions:
            index = partition.partition_index
            code = ErrorCode.NONE
            if existing is None or not 0 <= index < existing.partitions:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            # A subscriber would restart from auto.offset.reset in the middle of its work.
            elif subscribed is None or topic.name in subscribed:
                code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
            elif forget(step, request.group_id, topic.name, index):
                step.state.counters.offset_deletion += 1
            partitions.append(OffsetDeleteResponsePartition(partition_index=index, error_code=code))
        # Kafka asks its coordinator about partitions that exist, and answers for the topics that are left.
        if partitions or existing is None:
            topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=tuple(partitions)))
    return OffsetDeleteResponse(topics=tuple(topics))


def forget(step: Step, group_id: str, topic: str, partition: int) -> bool:
    """Write the tombstone of an offset, if there is one, committed or pending."""
    offsets = step.state.offsets
    # What a transaction has pending goes too: its marker must not restore the offset (KIP-98).
    if offsets.get(group_id, topic, partition) is None and not offsets.has_pending(
        group_id, topic, partition
    ):
        return False
    step.write(OffsetCommitKey(group=group_id, topic=topic, partition=partition), None)
    return True


def forget_all(step: Step, group_id: str) -> None:
    """Write the tombstones of every offset the group has, committed or pending."""
    offsets = step.state.offsets
    named = {(topic, p) for topic, by_partition in offsets.of_group(group_id).items() for p in by_partition}
    for topic, partition in sorted(named.union(offsets.pending_partitions(group_id))):
        step.write(OffsetCommitKey(group=group_id, topic=topic, partition=partition), None)


def _subscribed(group: Group) -> frozenset[str] | set[str] | None:
    """Return topics the group subscribes to; None stands for all (subscriptions that cannot be read)."""
    if isinstance(group, ShareGroup):
        raise has_no_offsets(group.group_id)
    if not isinstance(group, ClassicGroup):
        return group.subscribed_topics()
    # Subscriptions of Connect's groups and others cannot be read: they must be Empty (KIP-496).
    if group.protocol_type != PROTOCOL_TYPE:
        if not group.is_empty:
            raise Refused(ErrorCode.NON_EMPTY_GROUP)
        return frozenset()
    return group.subscribed_topics()
