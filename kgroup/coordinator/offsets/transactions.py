"""TxnOffsetCommit: offsets that take effect when their producer's transaction commits (KIP-98, KIP-447)."""

from __future__ import annotations

from functools import partial

from kgroup.coordinator.checks import refuse_if_no_group_id
from kgroup.coordinator.commit_epochs import PartitionCheck
from kgroup.coordinator.consumer.commit_check import check_commit
from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.offsets.accepting import Commit, carry_out, refuse_if_not_committer
from kgroup.coordinator.outcome import Producer
from kgroup.coordinator.state import Step
from kgroup.coordinator.streams.commit_check import check_streams_commit
from kgroup.coordinator.streams.group import StreamsGroup
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)


def commit(step: Step, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
    """Hold offsets for the producer's transaction; the host has made sure that it is open.

    A member that may not commit has every partition that exists refused.
    """
    refuse_if_no_group_id(request.group_id)
    by_name = step.state.image.by_name
    step.producer = Producer(request.producer_id, request.producer_epoch)
    results = carry_out(
        step,
        Commit(
            request.group_id,
            [(by_name.get(topic.name), topic.partitions) for topic in request.topics],
            partial(_validate, step, request),
            _accepted,
            _refused,
            # Kafka writes none with a transactional commit; which expires by the group's retention only.
            topic_ids=False,
        ),
    )
    return TxnOffsetCommitResponse(
        topics=tuple(
            TxnOffsetCommitResponseTopic(name=topic.name, partitions=result)
            for topic, result in zip(request.topics, results, strict=True)
        )
    )


def _validate(step: Step, request: TxnOffsetCommitRequest) -> PartitionCheck | None:
    group = step.state.groups.get(request.group_id)
    member_id, instance_id, generation = request.member_id, request.group_instance_id, request.generation_id
    if group is None:
        # It says it is a member, and there is no group to be one of: gone, as an admin deletes an empty one.
        if generation >= 0:
            raise Refused(ErrorCode.ILLEGAL_GENERATION)
        return None
    if isinstance(group, ConsumerGroup):
        return check_commit(step, group, member_id, generation, transactional=True, instance_id=instance_id)
    if isinstance(group, StreamsGroup):
        return check_streams_commit(
            step, group, member_id, generation, transactional=True, instance_id=instance_id
        )
    refuse_if_not_committer(group, member_id, instance_id, generation, transactional=True)
    return None


def _accepted(partition: int) -> TxnOffsetCommitResponsePartition:
    return TxnOffsetCommitResponsePartition(partition_index=partition)


def _refused(partition: int, code: ErrorCode) -> TxnOffsetCommitResponsePartition:
    return TxnOffsetCommitResponsePartition(partition_index=partition, error_code=code)
