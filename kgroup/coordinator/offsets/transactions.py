"""TxnOffsetCommit: offsets that take effect when their producer's transaction commits (KIP-98, KIP-447)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from kgroup.coordinator.checks import has_no_offsets, refuse_if_no_group_id
from kgroup.coordinator.commit_epochs import PartitionCheck
from kgroup.coordinator.consumer.commit_check import check_commit
from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.offsets.accepting import (
    Commit,
    arranged,
    carry_out,
    refuse_all,
    refuse_if_not_committer,
    some_exist,
)
from kgroup.coordinator.outcome import Producer
from kgroup.coordinator.share.group import ShareGroup
from kgroup.coordinator.state import Step
from kgroup.coordinator.streams.commit_check import check_streams_commit
from kgroup.coordinator.streams.group import StreamsGroup
from kgroup.domain import TopicImage
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from kgroup.protocol.releases import Change

GROUP_ID_NOT_FOUND_SINCE = TOPIC_IDS_SINCE = 6


def commit(step: Step, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
    """Keep offsets until the producer's transaction ends; the host has made sure that it is open.

    A member that may not commit has every partition that exists refused.
    """
    step.producer = Producer(request.producer_id, request.producer_epoch)
    asked = _asked(
        step.state.image,
        request,
        step.version,
        partial(_validate, step, request),
        topic_ids=step.config.kafka.has(Change.TOPIC_IDS_IN_TRANSACTIONS),
    )
    return _response(request, step.version, asked, carry_out(step, asked))


def names_something(image: TopicImage, request: TxnOffsetCommitRequest, version: int) -> bool:
    """Return whether any partition of the request exists: else neither group nor transaction is asked."""
    return some_exist(_asked(image, request, version).topics)


def refuse_what_exists(
    image: TopicImage, request: TxnOffsetCommitRequest, version: int, code: ErrorCode
) -> TxnOffsetCommitResponse:
    """Refuse a commit whose producer has no such transaction; what does not exist is still unknown."""
    asked = _asked(image, request, version)
    return _response(request, version, asked, refuse_all(asked, code))


_Commit = Commit[TxnOffsetCommitRequestPartition, TxnOffsetCommitResponsePartition]


def _asked(
    image: TopicImage,
    request: TxnOffsetCommitRequest,
    version: int,
    validate: Callable[[], PartitionCheck | None] = lambda: None,
    *,
    topic_ids: bool = False,
) -> _Commit:
    by_id = version >= TOPIC_IDS_SINCE
    return Commit(
        request.group_id,
        [
            (image.by_id.get(topic.topic_id) if by_id else image.by_name.get(topic.name), topic.partitions)
            for topic in request.topics
        ],
        validate,
        _accepted,
        _refused,
        ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        topic_ids=topic_ids,
    )


def _response(
    request: TxnOffsetCommitRequest,
    version: int,
    asked: _Commit,
    results: Sequence[tuple[TxnOffsetCommitResponsePartition, ...]],
) -> TxnOffsetCommitResponse:
    topics = request.topics
    keys = [topic.topic_id if version >= TOPIC_IDS_SINCE else topic.name for topic in topics]
    return TxnOffsetCommitResponse(
        topics=tuple(
            TxnOffsetCommitResponseTopic(
                name=topics[at].name, topic_id=topics[at].topic_id, partitions=result
            )
            for at, result in arranged(asked, keys, results)
        )
    )


def _validate(step: Step, request: TxnOffsetCommitRequest) -> PartitionCheck | None:
    refuse_if_no_group_id(request.group_id)
    group = step.state.groups.get(request.group_id)
    member_id, instance_id, generation = request.member_id, request.group_instance_id, request.generation_id
    if group is None:
        # It names a member, but there is no group: it is gone, as when an admin deletes an empty one.
        if generation >= 0:
            late = step.version >= GROUP_ID_NOT_FOUND_SINCE
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND if late else ErrorCode.ILLEGAL_GENERATION)
        return None
    if isinstance(group, ConsumerGroup):
        return check_commit(step, group, member_id, generation, transactional=True, instance_id=instance_id)
    if isinstance(group, ShareGroup):
        raise has_no_offsets(group.group_id)
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
