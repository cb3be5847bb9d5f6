"""OffsetCommit requests of members, and their answers by partition."""

from collections.abc import Mapping

from kgroup.domain import TopicPartition, grouped
from kgroup.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)

NAMES_UNTIL = 9
"""The last version that names topics rather than giving their ids."""


def commit_request(
    group_id: str,
    generation_or_epoch: int,
    member_id: str,
    instance_id: str | None,
    offsets: Mapping[TopicPartition, int],
) -> OffsetCommitRequest:
    """Return a commit of these positions; to be sent in a version up to `NAMES_UNTIL`."""
    topics = grouped(
        (p.topic, OffsetCommitRequestPartition(partition_index=p.partition, committed_offset=offset))
        for p, offset in sorted(offsets.items())
    )
    return OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=generation_or_epoch,
        member_id=member_id,
        group_instance_id=instance_id,
        topics=tuple(
            OffsetCommitRequestTopic(name=name, partitions=tuple(parts)) for name, parts in topics.items()
        ),
    )


def commit_errors(response: OffsetCommitResponse) -> dict[TopicPartition, int]:
    """Return the error code of each partition of a commit."""
    return {
        TopicPartition(topic.name, part.partition_index): part.error_code
        for topic in response.topics
        for part in topic.partitions
    }


def all_failed(request: OffsetCommitRequest, code: int) -> dict[TopicPartition, int]:
    """Return the same error code for each partition of a commit that got no answer."""
    return {
        TopicPartition(topic.name, part.partition_index): code
        for topic in request.topics
        for part in topic.partitions
    }
