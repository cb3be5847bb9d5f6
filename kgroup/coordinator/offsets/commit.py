"""OffsetCommit: who may commit, and the records of what was committed (KIP-345, KIP-848, KIP-1251)."""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

from kgroup.coordinator.checks import refuse_if_generation_differs, refuse_if_unknown
from kgroup.coordinator.classic.group import ClassicGroup
from kgroup.coordinator.classic.rebalance import renew_session
from kgroup.coordinator.classic.states import ClassicState
from kgroup.coordinator.consumer.fencing import EpochRefused, OlderEpoch, check_commit
from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.outcome import Record
from kgroup.coordinator.state import Step
from kgroup.domain import ZERO_UUID, Topic
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.group_records import OffsetCommitKey, OffsetCommitValue
from kgroup.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

GROUP_ID_NOT_FOUND_SINCE = 9
TOPIC_IDS_SINCE = 10
NO_EXPIRY = -1

Known: TypeAlias = list[tuple[OffsetCommitRequestTopic, Topic | None]]
"""The topics of a request, each with the topic that exists, if one does."""


def commit(step: Step, request: OffsetCommitRequest) -> OffsetCommitResponse:
    """Commit what may be committed; topics and partitions that do not exist are refused one by one.

    A member that may not commit has every partition that exists refused, and nothing is written.
    """
    known = [(topic, _lookup(step, topic)) for topic in request.topics]
    try:
        return _commit(step, request, known)
    except Refused as refused:
        step.drop()
        response = _refused(step, known, refused.code)
        if isinstance(refused, EpochRefused):
            codes = (part.error_code for topic in response.topics for part in topic.partitions)
            refused.count(step.state.counters, codes)
        return response


def _commit(step: Step, request: OffsetCommitRequest, known: Known) -> OffsetCommitResponse:
    check: OlderEpoch | None = None
    if _some_exist(known):
        check = _validate(step, request)
    expire_ms = _expiry_ms(step.now_ms, request.retention_time_ms)
    topics = tuple(
        OffsetCommitResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=_commit_topic(step, request, topic, found, check, expire_ms),
        )
        for topic, found in known
    )
    step.state.counters.offset_commit += len(step.records)
    if check is not None:
        step.state.counters.commits_only_relaxed_check_accepted += len(step.records)
    return OffsetCommitResponse(topics=topics)


def _expiry_ms(now_ms: int, retention_ms: int) -> int:
    """When a commit with a retention of its own (versions 2 to 4) expires; NO_EXPIRY without one.

    A sum beyond 63 bits wraps to the distant past, as Kafka's does: such an offset goes with the next sweep.
    """
    if retention_ms == NO_EXPIRY:
        return NO_EXPIRY
    return (now_ms + retention_ms + 2**63) % 2**64 - 2**63


def _refused(step: Step, known: Known, code: ErrorCode) -> OffsetCommitResponse:
    """Refuse what exists with `code`; what does not exist stays unknown, whoever asks."""
    return OffsetCommitResponse(
        topics=tuple(
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=_unknown_topic(step, topic)
                if found is None
                else _refused_each(topic, found, code),
            )
            for topic, found in known
        )
    )


def _refused_each(
    topic: OffsetCommitRequestTopic, found: Topic, code: ErrorCode
) -> tuple[OffsetCommitResponsePartition, ...]:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return tuple(
        _result(p.partition_index, code if 0 <= p.partition_index < found.partitions else unknown)
        for p in topic.partitions
    )


def _unknown_topic(step: Step, topic: OffsetCommitRequestTopic) -> tuple[OffsetCommitResponsePartition, ...]:
    by_id = step.version >= TOPIC_IDS_SINCE
    code = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return tuple(_result(p.partition_index, code) for p in topic.partitions)


def _lookup(step: Step, topic: OffsetCommitRequestTopic) -> Topic | None:
    image = step.state.image
    return (
        image.by_id.get(topic.topic_id) if step.version >= TOPIC_IDS_SINCE else image.by_name.get(topic.name)
    )


def _some_exist(known: Known) -> bool:
    for topic, found in known:
        if found is not None:
            for partition in topic.partitions:
                if 0 <= partition.partition_index < found.partitions:
                    return True
    return False


def _validate(step: Step, request: OffsetCommitRequest) -> OlderEpoch | None:
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
    check: OlderEpoch | None,
    expire_ms: int,
) -> tuple[OffsetCommitResponsePartition, ...]:
    if found is None:
        return _unknown_topic(step, topic)
    results: list[OffsetCommitResponsePartition] = []
    records, group_id, now_ms = step.records, request.group_id, step.now_ms
    expires, topic_id, count = expire_ms != NO_EXPIRY, found.topic_id, found.partitions
    for partition in topic.partitions:
        index, metadata = partition.partition_index, partition.committed_metadata or ""
        if not 0 <= index < count:
            results.append(_result(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            continue
        if metadata and metadata_too_large(step, metadata):
            results.append(_result(index, ErrorCode.OFFSET_METADATA_TOO_LARGE))
            continue
        if check is not None:
            check(topic_id, index)
        # An expiry of its own means value version 1, which has neither leader epoch nor topic id.
        value = OffsetCommitValue(
            offset=partition.committed_offset,
            leader_epoch=-1 if expires else partition.committed_leader_epoch,
            metadata=metadata,
            commit_timestamp=now_ms,
            expire_timestamp=expire_ms,
            topic_id=ZERO_UUID if expires else topic_id,
        )
        key = OffsetCommitKey(group=group_id, topic=found.name, partition=index)
        records.append(Record(key, value))
        results.append(_accepted(index))
    return tuple(results)


@lru_cache(maxsize=4096)
def _accepted(partition: int) -> OffsetCommitResponsePartition:
    """What nearly all partitions are answered: a few thousand different results."""
    return _result(partition, ErrorCode.NONE)


def _result(partition: int, code: ErrorCode) -> OffsetCommitResponsePartition:
    return OffsetCommitResponsePartition(partition_index=partition, error_code=code)


def metadata_too_large(step: Step, metadata: str | None) -> bool:
    """Whether commit metadata is over offset.metadata.max.bytes; Kafka counts UTF-16 units, not bytes."""
    if metadata is None:
        return False
    units = len(metadata) if metadata.isascii() else sum(1 + (char > "\uffff") for char in metadata)
    return units > step.config.offset_metadata_max_bytes
