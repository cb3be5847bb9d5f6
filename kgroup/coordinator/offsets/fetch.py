"""OffsetFetch: the committed offsets of a group, by name or by topic id, all of them or those asked for."""

from __future__ import annotations

from kgroup.coordinator.checks import has_no_offsets
from kgroup.coordinator.commit_epochs import refuse_fetch
from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.offset_store import NO_OFFSETS, GroupOffsets, StoredOffset
from kgroup.coordinator.share.group import ShareGroup
from kgroup.coordinator.state import Step
from kgroup.coordinator.streams.group import StreamsGroup
from kgroup.domain import NO_OFFSET, ZERO_UUID
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

MANY_GROUPS_SINCE = 8
TOPIC_IDS_SINCE = 10


def fetch(step: Step, request: OffsetFetchRequest) -> OffsetFetchResponse:
    """Answer for each named group; an unknown group has no offsets and is no error."""
    stable = request.require_stable
    if step.version >= MANY_GROUPS_SINCE:
        return OffsetFetchResponse(
            groups=tuple([_fetch_group(step, group, stable) for group in request.groups])
        )
    asked = None
    if request.topics is not None:
        asked = tuple(
            OffsetFetchRequestTopics(name=t.name, partition_indexes=t.partition_indexes)
            for t in request.topics
        )
    group = _fetch_group(step, OffsetFetchRequestGroup(group_id=request.group_id, topics=asked), stable)
    return OffsetFetchResponse(
        error_code=group.error_code,
        topics=tuple(
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=tuple(
                    OffsetFetchResponsePartition(
                        partition_index=p.partition_index,
                        committed_offset=p.committed_offset,
                        committed_leader_epoch=p.committed_leader_epoch,
                        metadata=p.metadata,
                        error_code=p.error_code,
                    )
                    for p in topic.partitions
                ),
            )
            for topic in group.topics
        ),
    )


def _fetch_group(step: Step, asked: OffsetFetchRequestGroup, stable: bool) -> OffsetFetchResponseGroup:
    group = step.state.groups.get(asked.group_id)
    # For a classic group neither member nor generation is checked, in Kafka either: its members fetch once
    # they are assigned, and admins at any time.
    try:
        if isinstance(group, ShareGroup):
            raise has_no_offsets(group.group_id)
        if isinstance(group, ConsumerGroup | StreamsGroup):
            refuse_fetch(group, asked.member_id, asked.member_epoch)
    except Refused as refused:
        return OffsetFetchResponseGroup(group_id=asked.group_id, error_code=refused.code)
    # A consumer that starts in a new group asks before anything is committed: that is no error.
    stored = NO_OFFSETS if group is None else step.state.offsets.of_group(asked.group_id)
    topics = asked.topics
    if topics is None:
        by_id, image = step.version >= TOPIC_IDS_SINCE, step.state.image
        topics = tuple(
            OffsetFetchRequestTopics(
                name=name,
                topic_id=image.id_of(name) or ZERO_UUID,
                partition_indexes=tuple(sorted(held)),
            )
            for name, held in sorted(stored.items())
            # From version 10 on a topic is named by its id alone: a deleted one has none.
            if not by_id or name in image.by_name
        )
    return OffsetFetchResponseGroup(
        group_id=asked.group_id,
        topics=tuple([_fetch_topic(step, asked.group_id, topic, stored, stable) for topic in topics]),
    )


def _fetch_topic(
    step: Step, group_id: str, asked: OffsetFetchRequestTopics, stored: GroupOffsets, stable: bool
) -> OffsetFetchResponseTopics:
    name, topic_id = asked.name, ZERO_UUID
    if step.version >= TOPIC_IDS_SINCE:
        topic_id = asked.topic_id
        known = step.state.image.name_of(topic_id)
        if known is None:
            unknown = tuple(
                OffsetFetchResponsePartitions(
                    partition_index=index, committed_offset=NO_OFFSET, error_code=ErrorCode.UNKNOWN_TOPIC_ID
                )
                for index in asked.partition_indexes
            )
            return OffsetFetchResponseTopics(topic_id=topic_id, partitions=unknown)
        name = known
    offsets = stored.get(name, {})
    partitions = [
        # A reader of committed data must not begin at an offset that an open transaction is about to move
        # (KIP-447).
        OffsetFetchResponsePartitions(
            partition_index=index, committed_offset=NO_OFFSET, error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT
        )
        if stable and step.state.offsets.has_pending(group_id, name, index)
        else _partition(index, offsets.get(index), topic_id)
        for index in asked.partition_indexes
    ]
    return OffsetFetchResponseTopics(name=name, topic_id=topic_id, partitions=tuple(partitions))


def _partition(index: int, stored: StoredOffset | None, asked_id: bytes) -> OffsetFetchResponsePartitions:
    # Asked for by name, it is whatever topic has the name.
    if stored is None or asked_id is not ZERO_UUID and _recreated(stored.topic_id, asked_id):
        return OffsetFetchResponsePartitions(partition_index=index, committed_offset=NO_OFFSET)
    # As its `__init__` does, in less than half the time: there is one for each partition of each fetch.
    answer = object.__new__(OffsetFetchResponsePartitions)
    answer.partition_index = index  # type: ignore[misc]
    answer.committed_offset = stored.offset  # type: ignore[misc]
    answer.committed_leader_epoch = stored.leader_epoch  # type: ignore[misc]
    answer.metadata = stored.metadata  # type: ignore[misc]
    answer.error_code = ErrorCode.NONE  # type: ignore[misc]
    return answer


def _recreated(stored_id: bytes, asked_id: bytes) -> bool:
    """Return whether the offset belongs to an earlier topic of that name; a zero id says nothing."""
    return ZERO_UUID not in (stored_id, asked_id) and stored_id != asked_id
