"""How far each group is behind, partition by partition, and who reads the partition now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kgroup.admin.discovery import Answers, Cluster
from kgroup.admin.members import partitions_of
from kgroup.admin.models import Member, OffsetRow, TopicDescription
from kgroup.admin.offsets import LATEST, Committed, ListedOffset, list_offsets
from kgroup.domain import OffsetAndMetadata, TopicPartition
from kgroup.errors import BrokerRefused, ErrorCode, KgroupError

Ends = Mapping[TopicPartition, ListedOffset | KgroupError]


def log_ends(
    cluster: Cluster, partitions: Iterable[TopicPartition], topics: Answers[TopicDescription] | None = None
) -> Ends:
    """The end of each partition's log, or why it is not known."""
    return list_offsets(cluster, dict.fromkeys(partitions, LATEST), topics)


def rows(positions: Committed, members: Iterable[Member], ends: Ends) -> tuple[OffsetRow, ...]:
    """A row for every partition that has a committed position or an owner, in order."""
    owners = {owned: member for member in members for owned in partitions_of(member.assignment)}
    return tuple(
        _row(partition, positions.get(partition), owners.get(partition), ends.get(partition))
        for partition in sorted(positions.keys() | owners.keys())
    )


def total(offsets: Iterable[OffsetRow]) -> int | None:
    """The sum of the lags known; None when none is. A position beyond the end counts as no lag."""
    known = [max(row.lag, 0) for row in offsets if row.lag is not None]
    return sum(known) if known else None


def _row(
    partition: TopicPartition,
    position: OffsetAndMetadata | None,
    owner: Member | None,
    end: ListedOffset | KgroupError | None,
) -> OffsetRow:
    log_end = end.offset if isinstance(end, ListedOffset) else None
    offset = position.offset if position else None
    return OffsetRow(
        topic=partition.topic,
        partition=partition.partition,
        committed_offset=offset,
        log_end_offset=log_end,
        # Below zero for a position beyond the end, as Kafka's tool shows it; finding KG301 says why.
        lag=None if offset is None or log_end is None else log_end - offset,
        leader_epoch=position.leader_epoch if position and position.leader_epoch >= 0 else None,
        metadata=position.metadata if position else None,
        member_id=owner.member_id if owner else None,
        instance_id=owner.instance_id if owner else None,
        error=_words(end) if isinstance(end, KgroupError) else None,
    )


def _words(error: KgroupError) -> str:
    if isinstance(error, BrokerRefused) and error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return error.detail or "the topic does not exist (deleted?)"
    return error.message
