"""TxnOffsetCommit: offsets that take effect when their producer's transaction commits (KIP-98, KIP-447)."""

from __future__ import annotations

from kgroup.coordinator.checks import refuse_if_no_group_id
from kgroup.coordinator.consumer.fencing import EpochRefused, OlderEpoch, check_commit
from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.offsets.commit import metadata_too_large, refuse_if_not_committer
from kgroup.coordinator.outcome import Producer
from kgroup.coordinator.state import Step
from kgroup.domain import Topic
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.group_records import OffsetCommitKey, OffsetCommitValue
from kgroup.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def commit(step: Step, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
    """Hold offsets for the producer's transaction; the host has made sure that it is open.

    Records of transactional commits carry no topic id, and expire by the group's retention only. A member
    that may not commit has every partition that exists refused.
    """
    refuse_if_no_group_id(request.group_id)
    try:
        return _commit(step, request)
    except Refused as refused:
        step.drop()
        response = _refused(step, request, refused.code)
        if isinstance(refused, EpochRefused):
            codes = (part.error_code for topic in response.topics for part in topic.partitions)
            refused.count(step.state.counters, codes)
        return response


def _refused(step: Step, request: TxnOffsetCommitRequest, code: ErrorCode) -> TxnOffsetCommitResponse:
    """Refuse what exists with `code`; what does not exist stays unknown, whoever asks."""
    return TxnOffsetCommitResponse(
        topics=tuple(
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=tuple(
                    TxnOffsetCommitResponsePartition(
                        partition_index=p.partition_index,
                        error_code=code if _exists(found, p.partition_index) else UNKNOWN,
                    )
                    for p in topic.partitions
                ),
            )
            for topic in request.topics
            for found in (step.state.image.by_name.get(topic.name),)
        )
    )


def _commit(step: Step, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
    check = _validate(step, request)
    response = TxnOffsetCommitResponse(
        topics=tuple(
            TxnOffsetCommitResponseTopic(
                name=topic.name, partitions=_commit_topic(step, request.group_id, topic, check)
            )
            for topic in request.topics
        )
    )
    step.producer = Producer(request.producer_id, request.producer_epoch)
    step.state.counters.offset_commit += len(step.records)
    if check is not None:
        step.state.counters.commits_only_relaxed_check_accepted += len(step.records)
    return response


def _validate(step: Step, request: TxnOffsetCommitRequest) -> OlderEpoch | None:
    group = step.state.groups.get(request.group_id)
    member_id, instance_id, generation = request.member_id, request.group_instance_id, request.generation_id
    if group is None:
        if generation >= 0:
            raise Refused(ErrorCode.ILLEGAL_GENERATION)
        return None
    if isinstance(group, ConsumerGroup):
        return check_commit(step, group, member_id, generation, transactional=True, instance_id=instance_id)
    refuse_if_not_committer(group, member_id, instance_id, generation, transactional=True)
    return None


def _commit_topic(
    step: Step, group_id: str, topic: TxnOffsetCommitRequestTopic, check: OlderEpoch | None
) -> tuple[TxnOffsetCommitResponsePartition, ...]:
    found = step.state.image.by_name.get(topic.name)
    results = []
    for partition in topic.partitions:
        index = partition.partition_index
        code = _refusal_of(step, found, index, partition.committed_metadata)
        if code is ErrorCode.NONE:
            assert found is not None
            if check is not None:
                check(found.topic_id, index)
            value = OffsetCommitValue(
                offset=partition.committed_offset,
                leader_epoch=partition.committed_leader_epoch,
                metadata=partition.committed_metadata or "",
                commit_timestamp=step.now_ms,
            )
            step.write(OffsetCommitKey(group=group_id, topic=topic.name, partition=index), value)
        results.append(TxnOffsetCommitResponsePartition(partition_index=index, error_code=code))
    return tuple(results)


def _exists(topic: Topic | None, partition: int) -> bool:
    return topic is not None and 0 <= partition < topic.partitions


def _refusal_of(step: Step, topic: Topic | None, partition: int, metadata: str | None) -> ErrorCode:
    if not _exists(topic, partition):
        return UNKNOWN
    if metadata_too_large(step, metadata):
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    return ErrorCode.NONE
