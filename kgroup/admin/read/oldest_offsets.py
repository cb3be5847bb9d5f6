"""Offsets of logs from brokers that serve no later ListOffsets than version 0: Kafka 0.8 to 0.10.0."""

from __future__ import annotations

from collections.abc import Mapping

from kgroup.admin.discovery import ClusterView
from kgroup.admin.read.listed_offset import CONSUMER_REPLICA, ListedOffset
from kgroup.admin.refusals import refused
from kgroup.domain import TopicPartition
from kgroup.errors import ErrorCode, KgroupError
from kgroup.protocol.messages.list_offsets_0 import (
    ListOffsets0Partition,
    ListOffsets0Request,
    ListOffsets0Response,
    ListOffsets0Topic,
)
from kgroup.security.rights import DESCRIBE, on_topic


def ask_oldest(
    cluster: ClusterView, leader: int, asked: Mapping[TopicPartition, int], left_s: float
) -> dict[TopicPartition, ListedOffset | KgroupError]:
    """The ends or the beginnings of logs, as their leader has them."""
    by_topic: dict[str, list[ListOffsets0Partition]] = {}
    for partition, when in sorted(asked.items()):
        entry = ListOffsets0Partition(partition_index=partition.partition, timestamp=when)
        by_topic.setdefault(partition.topic, []).append(entry)
    topics = tuple(ListOffsets0Topic(name=name, partitions=tuple(ps)) for name, ps in by_topic.items())
    request = ListOffsets0Request(replica_id=CONSUMER_REPLICA, topics=topics)
    answer = cluster.ask(leader, request, ListOffsets0Response, timeout_s=left_s)
    return {
        TopicPartition(topic.name, p.partition_index): _offset(
            f"{topic.name}-{p.partition_index}", p.error_code, p.offsets
        )
        for topic in answer.topics
        for p in topic.partitions
    }


def _offset(what: str, code: int, offsets: tuple[int, ...]) -> ListedOffset | KgroupError:
    if code:
        return refused(code, what, needs=[on_topic(DESCRIBE, what.rpartition("-")[0])])
    if not offsets:
        return refused(ErrorCode.UNKNOWN_SERVER_ERROR, what, "the broker told no offset")
    return ListedOffset(offsets[0], -1, -1)
