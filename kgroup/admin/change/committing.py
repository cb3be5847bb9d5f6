"""Write and delete a group's committed offsets from outside the group, partition by partition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from kgroup.admin.discovery import ClusterView
from kgroup.admin.read.offsets import by_topic
from kgroup.admin.refusals import Needs, refused
from kgroup.client.retry import NOT_PROCESSED
from kgroup.domain import OffsetAndMetadata, TopicPartition
from kgroup.errors import ErrorCode, KgroupError
from kgroup.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponseTopic,
)
from kgroup.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponseTopic,
)
from kgroup.security.rights import DELETE, READ, on_group

if TYPE_CHECKING:
    AnyTopic = OffsetCommitResponseTopic | OffsetDeleteResponseTopic

NAMES_UNTIL = 9
"""The last version of OffsetCommit that names topics."""
EPOCHS_SINCE = 6
PARTITIONS_A_REQUEST = 1000
"""A broker writes a request as one batch, which must fit into its largest message."""

Codes = dict[TopicPartition, int]


def store(
    cluster: ClusterView,
    group_id: str,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    *,
    share: bool = False,
) -> tuple[Codes, KgroupError | None]:
    """Commit offsets as an outsider of the group: offset, leader epoch and metadata unchanged.

    Return the broker's code for each partition, and the error that ended the work early: partitions without a
    code were not stored, or, after OutcomeUnknown, perhaps. A group that has members by then refuses with
    UNKNOWN_MEMBER_ID. Brokers before 2.1 cannot keep leader epochs: an offset with one is refused. For a
    `share` group only start offsets are set; a group that does not exist is created.
    """

    def ask(node: int, part: Sequence[TopicPartition], left_s: float) -> Codes | KgroupError:
        if share:
            return _alter(cluster, node, group_id, {p: offsets[p].offset for p in part}, left_s)
        return _commit(cluster, node, group_id, {p: offsets[p] for p in part}, left_s)

    return _in_parts(cluster, group_id, sorted(offsets), ask)


def forget(
    cluster: ClusterView, group_id: str, partitions: Iterable[TopicPartition], *, share: bool = False
) -> tuple[Codes, KgroupError | None]:
    """Delete offsets; return as `store` does. Subscribed topics: GROUP_SUBSCRIBED_TO_TOPIC.

    Brokers delete whole topics of a `share` group, so `partitions` must be all that it has of them.
    """
    if share:
        # One request: after it a second one would find nothing of these topics.
        whole = sorted(partitions)
        return _in_parts(
            cluster,
            group_id,
            whole,
            lambda node, part, left_s: _delete_topics(cluster, node, group_id, part, left_s),
            len(whole),
        )

    def ask(node: int, part: Sequence[TopicPartition], left_s: float) -> Codes | KgroupError:
        topics = tuple(
            OffsetDeleteRequestTopic(
                name=name,
                partitions=tuple(OffsetDeleteRequestPartition(partition_index=p.partition) for p in entries),
            )
            for name, entries in by_topic(part)
        )
        request = OffsetDeleteRequest(group_id=group_id, topics=topics)
        answer = cluster.ask(node, request, OffsetDeleteResponse, timeout_s=left_s)
        needs = [on_group(DELETE, group_id)]
        if answer.error_code:
            return refused(answer.error_code, f"deleting offsets of group {group_id}", needs=needs)
        return _codes(group_id, _by_partition(answer.topics), needs)

    return _in_parts(cluster, group_id, sorted(partitions), ask)


def _in_parts(
    cluster: ClusterView,
    group_id: str,
    partitions: Sequence[TopicPartition],
    ask: Callable[[int, Sequence[TopicPartition], float], Codes | KgroupError],
    size: int = PARTITIONS_A_REQUEST,
) -> tuple[Codes, KgroupError | None]:
    codes: Codes = {}
    for start in range(0, len(partitions), size):
        part = partitions[start : start + size]

        def ask_coordinator(
            node: int, _: Sequence[str], left_s: float, part: Sequence[TopicPartition] = part
        ) -> Mapping[str, Codes | KgroupError]:
            return {group_id: ask(node, part, left_s)}

        try:
            answer = cluster.ask_coordinators([group_id], ask_coordinator, idempotent=False)[group_id]
        except KgroupError as error:
            return codes, error  # no broker is reachable any more; codes of stored partitions stay
        if isinstance(answer, KgroupError):
            return codes, answer
        codes.update(answer)
    return codes, None


def _commit(
    cluster: ClusterView,
    node: int,
    group_id: str,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    left_s: float,
) -> Codes | KgroupError:
    topics = tuple(
        OffsetCommitRequestTopic(
            name=name,
            partitions=tuple(
                OffsetCommitRequestPartition(
                    partition_index=p.partition,
                    committed_offset=offsets[p].offset,
                    committed_leader_epoch=offsets[p].leader_epoch,
                    committed_metadata=offsets[p].metadata,
                )
                for p in partitions
            ),
        )
        for name, partitions in by_topic(offsets)
    )
    request = OffsetCommitRequest(
        group_id=group_id, generation_id_or_member_epoch=-1, member_id="", topics=topics
    )
    lowest = EPOCHS_SINCE if any(p.leader_epoch >= 0 for p in offsets.values()) else 2
    versions = (lowest, NAMES_UNTIL)
    answer = cluster.ask(node, request, OffsetCommitResponse, versions=versions, timeout_s=left_s)
    return _codes(group_id, _by_partition(answer.topics), [on_group(READ, group_id)])


def _alter(
    cluster: ClusterView, node: int, group_id: str, offsets: Mapping[TopicPartition, int], left_s: float
) -> Codes | KgroupError:
    from kgroup.protocol.messages.alter_share_group_offsets import (
        AlterShareGroupOffsetsRequest,
        AlterShareGroupOffsetsRequestPartition,
        AlterShareGroupOffsetsRequestTopic,
        AlterShareGroupOffsetsResponse,
    )

    topics = tuple(
        AlterShareGroupOffsetsRequestTopic(
            topic_name=name,
            partitions=tuple(
                AlterShareGroupOffsetsRequestPartition(partition_index=p.partition, start_offset=offsets[p])
                for p in partitions
            ),
        )
        for name, partitions in by_topic(offsets)
    )
    request = AlterShareGroupOffsetsRequest(group_id=group_id, topics=topics)
    answer = cluster.ask(node, request, AlterShareGroupOffsetsResponse, timeout_s=left_s)
    by_partition = {
        TopicPartition(topic.topic_name, p.partition_index): p.error_code
        for topic in answer.responses
        for p in topic.partitions
    }
    codes = {p: answer.error_code or by_partition.get(p, ErrorCode.UNKNOWN_SERVER_ERROR) for p in offsets}
    return _codes(group_id, codes, [on_group(READ, group_id)])


def _delete_topics(
    cluster: ClusterView, node: int, group_id: str, partitions: Sequence[TopicPartition], left_s: float
) -> Codes | KgroupError:
    from kgroup.protocol.messages.delete_share_group_offsets import (
        DeleteShareGroupOffsetsRequest,
        DeleteShareGroupOffsetsRequestTopic,
        DeleteShareGroupOffsetsResponse,
    )

    topics = tuple(DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name, _ in by_topic(partitions))
    request = DeleteShareGroupOffsetsRequest(group_id=group_id, topics=topics)
    answer = cluster.ask(node, request, DeleteShareGroupOffsetsResponse, timeout_s=left_s)
    codes_by_topic = {topic.topic_name: topic.error_code for topic in answer.responses}
    codes = {
        p: answer.error_code or codes_by_topic.get(p.topic, ErrorCode.UNKNOWN_SERVER_ERROR)
        for p in partitions
    }
    return _codes(group_id, codes, [on_group(DELETE, group_id)])


def _by_partition(topics: Iterable[AnyTopic]) -> Codes:
    return {TopicPartition(t.name, p.partition_index): p.error_code for t in topics for p in t.partitions}


def _codes(group_id: str, codes: Codes, needs: Needs) -> Codes | KgroupError:
    """Return the code of each partition, or an error when all were rejected as by a wrong coordinator."""
    distinct = set(codes.values())
    if len(distinct) == 1 and next(iter(distinct)) in NOT_PROCESSED | {ErrorCode.GROUP_AUTHORIZATION_FAILED}:
        return refused(distinct.pop(), f"group {group_id}", needs=needs)
    return codes
