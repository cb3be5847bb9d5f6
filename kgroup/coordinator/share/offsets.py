"""Start offsets of share groups: set and delete them, and delete such a group (KIP-932).

Each takes two steps, around the share coordinator's: the first records what it is asked, so that a repeated
request after a crash repeats it; the second records what it has done.
"""

from __future__ import annotations

from collections.abc import Iterable

from kgroup.coordinator.share.group import Initialize, ShareGroup
from kgroup.coordinator.share.state_partitions import (
    Numbers,
    kept_of,
    numbers_of,
    write,
    write_initializing,
)
from kgroup.coordinator.state import Step
from kgroup.domain import ZERO_UUID
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from kgroup.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponseTopic,
)

UNKNOWN_TOPIC = "This server does not host this topic-partition."
NON_EMPTY = "The group is not empty."


def alter(
    step: Step, request: AlterShareGroupOffsetsRequest
) -> tuple[AlterShareGroupOffsetsResponse, Initialize]:
    """Record partitions to initialize again, and return the answer for when that is done.

    A missing group is made. Raise GROUP_ID_NOT_FOUND or NON_EMPTY_GROUP.
    """
    group_id = request.group_id
    existing = step.state.groups.get(group_id)
    group = ShareGroup(group_id) if existing is None else _empty(existing, group_id)
    offsets: dict[bytes, dict[int, int]] = {}
    answers = tuple(_altered(step, topic, offsets) for topic in request.topics)
    write_initializing(step, group, {topic_id: set(numbers) for topic_id, numbers in offsets.items()})
    asked = Initialize(group.epoch, {topic_id: numbers for topic_id, numbers in offsets.items() if numbers})
    return AlterShareGroupOffsetsResponse(responses=answers), asked


def _altered(
    step: Step, topic: AlterShareGroupOffsetsRequestTopic, offsets: dict[bytes, dict[int, int]]
) -> AlterShareGroupOffsetsResponseTopic:
    known = step.state.image.by_name.get(topic.topic_name)
    partitions = 0 if known is None else known.partitions
    if known is not None:
        offsets[known.topic_id] = {
            partition.partition_index: partition.start_offset
            for partition in topic.partitions
            if partition.partition_index < partitions
        }
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return AlterShareGroupOffsetsResponseTopic(
        topic_name=topic.topic_name,
        topic_id=ZERO_UUID if known is None else known.topic_id,
        partitions=tuple(
            AlterShareGroupOffsetsResponsePartition(
                partition_index=partition.partition_index,
                error_code=ErrorCode.NONE if partition.partition_index < partitions else unknown,
                error_message=None if partition.partition_index < partitions else UNKNOWN_TOPIC,
            )
            for partition in topic.partitions
        ),
    )


def begin_delete(
    step: Step, request: DeleteShareGroupOffsetsRequest
) -> tuple[list[DeleteShareGroupOffsetsResponseTopic], Numbers]:
    """Record topics as being deleted; return the unknown ones, and the partitions of the others.

    Raise GROUP_ID_NOT_FOUND or NON_EMPTY_GROUP.
    """
    group = _empty(step.state.groups.get(request.group_id), request.group_id)
    if group.kept is None:
        return [], {}
    kept = group.kept
    done = numbers_of(kept.initialized_topics)
    deleting = {topic.topic_id for topic in kept.deleting_topics}
    absent: list[DeleteShareGroupOffsetsResponseTopic] = []
    to_delete: Numbers = {}
    for asked in request.topics:
        topic = step.state.image.by_name.get(asked.topic_name)
        if topic is not None and topic.topic_id in done:
            to_delete[topic.topic_id] = done.pop(topic.topic_id)
            deleting.add(topic.topic_id)
        elif topic is not None and topic.topic_id in deleting:
            to_delete.setdefault(topic.topic_id, set(range(topic.partitions)))
        else:
            why = UNKNOWN_TOPIC if topic is None else "There is no offset information to delete."
            absent.append(
                DeleteShareGroupOffsetsResponseTopic(
                    topic_name=asked.topic_name,
                    error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    error_message=why,
                )
            )
    write(step, group.group_id, kept, numbers_of(kept.initializing_topics), done, deleting)
    return absent, to_delete


def end_delete(step: Step, group_id: str, topic_ids: Iterable[bytes]) -> None:
    """Record that the share coordinator has removed all it knew of topics."""
    group = step.state.groups.get(group_id)
    if not isinstance(group, ShareGroup) or group.kept is None:
        return
    kept = group.kept
    deleting = {topic.topic_id for topic in kept.deleting_topics} - set(topic_ids)
    initializing, done = numbers_of(kept.initializing_topics), numbers_of(kept.initialized_topics)
    write(step, group_id, kept, initializing, done, deleting)


def begin_delete_group(step: Step, group_id: str) -> Numbers:
    """Record all topics of a group as being deleted; return what the share coordinator must remove first.

    Nothing for a group of another type. Raise NON_EMPTY_GROUP.
    """
    group = step.state.groups.get(group_id)
    if not isinstance(group, ShareGroup):
        return {}
    if not group.is_empty:
        raise Refused(ErrorCode.NON_EMPTY_GROUP, NON_EMPTY)
    kept = kept_of(group)
    if group.kept is None:
        return {}
    to_delete = numbers_of(kept.initialized_topics)
    for more in (numbers_of(kept.initializing_topics), _being_deleted(step, group)):
        for topic_id, numbers in more.items():
            to_delete.setdefault(topic_id, set()).update(numbers)
    write(step, group_id, kept, {}, {}, to_delete)
    return to_delete


def _being_deleted(step: Step, group: ShareGroup) -> Numbers:
    """Return what an unfinished deletion left: deleted topics are removed with it."""
    by_id = step.state.image.by_id
    return {
        topic.topic_id: set(range(by_id[topic.topic_id].partitions))
        for topic in kept_of(group).deleting_topics
        if topic.topic_id in by_id
    }


def _empty(group: object, group_id: str) -> ShareGroup:
    if not isinstance(group, ShareGroup):
        missing = "not found" if group is None else "is not a share group"
        raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {missing}.")
    if not group.is_empty:
        raise Refused(ErrorCode.NON_EMPTY_GROUP, NON_EMPTY)
    return group
