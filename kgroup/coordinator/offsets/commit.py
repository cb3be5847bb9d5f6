"""OffsetCommit: who may commit, and the records of what was committed (KIP-345, KIP-848, KIP-1251)."""

from __future__ import annotations

from kgroup.coordinator.checks import refuse_if_generation_differs, refuse_if_unknown
from kgroup.coordinator.classic.group import ClassicGroup
from kgroup.coordinator.classic.rebalance import renew_session
from kgroup.coordinator.classic.states import ClassicState
from kgroup.coordinator.consumer.fencing import CommitCheck, check_commit
from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.state import Step
from kgroup.domain import ZERO_UUID, Topic
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.group_records import OffsetCommitKey, OffsetCommitValue
from kgroup.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

GROUP_ID_NOT_FOUND_SINCE = 9
TOPIC_IDS_SINCE = 10


def commit(step: Step, request: OffsetCommitRequest) -> OffsetCommitResponse:
    """Commit what may be committed; topics and partitions that do not exist are refused one by one.

    A member that may not commit has every partition refused, and nothing is written.
    """
    known = [(topic, _lookup(step, topic)) for topic in request.topics]
    check: CommitCheck | None = None
    if any(_some_exist(topic, found) for topic, found in known):
        check = _validate(step, request)
    expire_ms = -1 if request.retention_time_ms < 0 else step.now_ms + request.retention_time_ms
    topics = tuple(
        OffsetCommitResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=_commit_topic(step, request, topic, found, check, expire_ms),
        )
        for topic, found in known
    )
    step.state.counters.offset_commit += len(step.records)
    return OffsetCommitResponse(topics=topics)


def _lookup(step: Step, topic: OffsetCommitRequestTopic) -> Topic | None:
    image = step.state.image
    return (
        image.by_id.get(topic.topic_id) if step.version >= TOPIC_IDS_SINCE else image.by_name.get(topic.name)
    )


def _some_exist(topic: OffsetCommitRequestTopic, found: Topic | None) -> bool:
    return found is not None and any(0 <= p.partition_index < found.partitions for p in topic.partitions)


def _validate(step: Step, request: OffsetCommitRequest) -> CommitCheck | None:
    """Refuse a committer the group does not accept; the check that is left is for single partitions."""
    group = step.state.groups.get(request.group_id)
    epoch = request.generation_id_or_member_epoch
    if group is None:
        if epoch < 0:
            return None
        late = step.version >= GROUP_ID_NOT_FOUND_SINCE
        raise Refused(ErrorCode.GROUP_ID_NOT_FOUND if late else ErrorCode.ILLEGAL_GENERATION)
    if isinstance(group, ConsumerGroup):
        return check_commit(step, group, request.member_id, epoch, transactional=False)
    refuse_if_not_committer(group, request.member_id, request.group_instance_id, epoch, transactional=False)
    if group.state in (ClassicState.STABLE, ClassicState.PREPARING):
        renew_session(step, group, group.members[request.member_id])
    return None


def refuse_if_not_committer(
    group: ClassicGroup, member_id: str, instance_id: str | None, generation: int, *, transactional: bool
) -> None:
    """Refuse a committer a classic group does not know; transactional commits ignore the group's state."""
    if generation < 0 and group.state is ClassicState.EMPTY:
        return
    if generation >= 0 or member_id or instance_id is not None:
        refuse_if_unknown(group, member_id, instance_id)
        refuse_if_generation_differs(group, generation)
    elif not transactional:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
    if not transactional and group.state is ClassicState.COMPLETING:
        raise Refused(ErrorCode.REBALANCE_IN_PROGRESS)


def _commit_topic(
    step: Step,
    request: OffsetCommitRequest,
    topic: OffsetCommitRequestTopic,
    found: Topic | None,
    check: CommitCheck | None,
    expire_ms: int,
) -> tuple[OffsetCommitResponsePartition, ...]:
    if found is None:
        by_id = step.version >= TOPIC_IDS_SINCE
        code = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return tuple(
            OffsetCommitResponsePartition(partition_index=p.partition_index, error_code=code)
            for p in topic.partitions
        )
    results = []
    for partition in topic.partitions:
        index = partition.partition_index
        code = _refusal_of(step, found, partition)
        if code is ErrorCode.NONE:
            if check is not None:
                check(found.topic_id, index)
            step.write(
                OffsetCommitKey(group=request.group_id, topic=found.name, partition=index),
                _value(step, found, partition, expire_ms),
            )
        results.append(OffsetCommitResponsePartition(partition_index=index, error_code=code))
    return tuple(results)


def _refusal_of(step: Step, topic: Topic, partition: OffsetCommitRequestPartition) -> ErrorCode:
    if not 0 <= partition.partition_index < topic.partitions:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if metadata_too_large(step, partition.committed_metadata):
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    return ErrorCode.NONE


def metadata_too_large(step: Step, metadata: str | None) -> bool:
    """Whether commit metadata is over offset.metadata.max.bytes; counted in characters, as Kafka does."""
    return metadata is not None and len(metadata) > step.config.offset_metadata_max_bytes


def _value(
    step: Step, topic: Topic, partition: OffsetCommitRequestPartition, expire_ms: int
) -> OffsetCommitValue:
    """A commit with an expiry of its own has neither leader epoch nor topic id: value version 1."""
    expires = expire_ms >= 0
    return OffsetCommitValue(
        offset=partition.committed_offset,
        leader_epoch=-1 if expires else partition.committed_leader_epoch,
        metadata=partition.committed_metadata or "",
        commit_timestamp=step.now_ms,
        expire_timestamp=expire_ms,
        topic_id=ZERO_UUID if expires else topic.topic_id,
    )
