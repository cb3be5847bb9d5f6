"""OffsetCommit: check the committer, and write the offsets (KIP-345, KIP-848, KIP-1251)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial

from kgroup.coordinator.checks import has_no_offsets
from kgroup.coordinator.classic.timers import renew_session
from kgroup.coordinator.commit_epochs import PartitionCheck
from kgroup.coordinator.consumer.commit_check import check_commit
from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.offsets.accepting import Commit, arranged, carry_out, refuse_if_not_committer
from kgroup.coordinator.share.group import ShareGroup
from kgroup.coordinator.state import Step
from kgroup.coordinator.streams.commit_check import check_streams_commit
from kgroup.coordinator.streams.group import StreamsGroup
from kgroup.domain import NO_EXPIRY
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

GROUP_ID_NOT_FOUND_SINCE = 9
TOPIC_IDS_SINCE = 10
MOST_REMEMBERED = 64
"""Partitions of an answer that is kept for the next such commit."""


def commit(step: Step, request: OffsetCommitRequest) -> OffsetCommitResponse:
    """Commit what may be committed; topics and partitions that do not exist are refused one by one.

    A member that may not commit has every partition that exists refused, and nothing is written.
    """
    by_id, image = step.version >= TOPIC_IDS_SINCE, step.state.image
    topics = request.topics
    asked = Commit(
        request.group_id,
        [(image.by_id.get(t.topic_id) if by_id else image.by_name.get(t.name), t.partitions) for t in topics],
        partial(_validate, step, request),
        _accepted,
        _refused,
        ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        _expiry_ms(step.now_ms, request.retention_time_ms),
    )
    results = carry_out(step, asked)
    if asked.plain and len(step.committed) <= MOST_REMEMBERED:
        return _all_accepted(
            tuple([(t.name, t.topic_id, one.partitions) for t, one in zip(topics, asked.taken, strict=True)])
        )
    keys = [topic.topic_id if by_id else topic.name for topic in topics]
    return OffsetCommitResponse(
        topics=tuple(
            OffsetCommitResponseTopic(name=topics[at].name, topic_id=topics[at].topic_id, partitions=result)
            for at, result in arranged(asked, keys, results)
        )
    )


def _validate(step: Step, request: OffsetCommitRequest) -> PartitionCheck | None:
    """Refuse a committer the group does not accept; the returned check is for single partitions."""
    group = step.state.groups.get(request.group_id)
    epoch = request.generation_id_or_member_epoch
    if group is None:
        # Without an epoch it is an admin's, or a lone consumer's: the first commit makes the group (AE-28).
        if epoch < 0:
            return None
        late = step.version >= GROUP_ID_NOT_FOUND_SINCE
        raise Refused(ErrorCode.GROUP_ID_NOT_FOUND if late else ErrorCode.ILLEGAL_GENERATION)
    if isinstance(group, ConsumerGroup):
        return check_commit(step, group, request.member_id, epoch, transactional=False)
    if isinstance(group, ShareGroup):
        raise has_no_offsets(group.group_id)
    if isinstance(group, StreamsGroup):
        return check_streams_commit(step, group, request.member_id, epoch, transactional=False)
    refuse_if_not_committer(group, request.member_id, request.group_instance_id, epoch, transactional=False)
    # A commit shows that a member lives. An Empty group has none; while syncs are awaited it is refused.
    if not group.is_empty:
        renew_session(step, group, group.members[request.member_id])
    return None


def _expiry_ms(now_ms: int, retention_ms: int) -> int:
    """Return when a commit with its own retention (versions 2 to 4) expires; NO_EXPIRY without one.

    A sum beyond 63 bits wraps to the distant past, as Kafka's does: such an offset goes with the next sweep.
    """
    if retention_ms == NO_EXPIRY:
        return NO_EXPIRY
    return (now_ms + retention_ms + 2**63) % 2**64 - 2**63


# Members commit the same partitions again and again.
@lru_cache(maxsize=1024)
def _all_accepted(topics: tuple[tuple[str, bytes, Sequence[int]], ...]) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=tuple(
            OffsetCommitResponseTopic(
                name=name, topic_id=topic_id, partitions=tuple([_accepted(p) for p in partitions])
            )
            for name, topic_id, partitions in topics
        )
    )


# Nearly all partitions of all commits are answered by a few thousand different values.
@lru_cache(maxsize=4096)
def _accepted(partition: int) -> OffsetCommitResponsePartition:
    return OffsetCommitResponsePartition(partition_index=partition)


def _refused(partition: int, code: ErrorCode) -> OffsetCommitResponsePartition:
    return OffsetCommitResponsePartition(partition_index=partition, error_code=code)
