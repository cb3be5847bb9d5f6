"""The brokers that a tree names, asked in versions that every Kafka from 0.8.2 to 3.9 serves.

They return where logs begin and end, and committed offsets of consumers with offsets.storage=kafka.
"""

from collections.abc import Iterable, Mapping, Sequence

from kgroup.admin.discovery import ClusterView
from kgroup.admin.models import Committed
from kgroup.admin.read.offsets import LATEST, ListedOffset, list_offsets
from kgroup.admin.refusals import refused
from kgroup.domain import NO_OFFSET, OffsetAndMetadata, TopicPartition, numbers_by_topic
from kgroup.errors import ErrorCode, KgroupError, Unreachable
from kgroup.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kgroup.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)

METADATA = 3
CREATES_NOTHING = 4
"""The first version of Metadata that does not create the topics asked for."""
_NOTHING_THERE = frozenset({ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})


class OldCluster(ClusterView):
    """A cluster whose brokers may be as old as 0.8; like any other but for what it asks."""

    def metadata(self, topics: Iterable[str] | None) -> MetadataResponse:
        """Return the metadata of at least the topics named; creates no topic."""
        served = self.transport.versions(None, METADATA)
        if served is not None and served[-1] >= CREATES_NOTHING:
            return super().metadata(topics)

        def ask(left_s: float) -> MetadataResponse:
            # Asked by name, a topic deleted a moment ago would be created again: ask for all topics.
            request = MetadataRequest(topics=())
            return self.ask(None, request, MetadataResponse, versions=(0, 0), timeout_s=left_s)

        return self.retry.call(ask, idempotent=True)

    def left_out(self, topic: str) -> KgroupError:
        """Return why there is no answer about a topic: among all topics, one that is missing is not there."""
        return refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic}")


class Logs:
    """Where logs begin and end, and offsets committed in Kafka; each a value or an error, never raised."""

    def __init__(self, cluster: OldCluster | KgroupError) -> None:
        """Answer everything with the error if `cluster` is one."""
        self._cluster = cluster

    def at(
        self, partitions: Iterable[TopicPartition], when: int = LATEST
    ) -> dict[TopicPartition, ListedOffset | KgroupError]:
        """Return the end of each partition's log, or its beginning (EARLIEST)."""
        asked = dict.fromkeys(partitions, when)
        if isinstance(self._cluster, KgroupError):
            return dict.fromkeys(asked, self._cluster)
        try:
            return list_offsets(self._cluster, asked)
        except KgroupError as error:
            return dict.fromkeys(asked, error)

    def committed(self, asked: Mapping[str, Sequence[TopicPartition]]) -> dict[str, Committed | KgroupError]:
        """Return what groups have committed in Kafka for these partitions."""
        if isinstance(self._cluster, KgroupError):
            return dict.fromkeys(asked, self._cluster)
        cluster = self._cluster
        try:
            return cluster.ask_coordinators(
                asked,
                lambda node, names, left_s: {
                    name: _fetch(cluster, node, name, asked[name], left_s) for name in names
                },
                idempotent=True,
            )
        except KgroupError as error:
            return dict.fromkeys(asked, error)


def _fetch(
    cluster: ClusterView, node: int, group_id: str, partitions: Sequence[TopicPartition], left_s: float
) -> Committed | KgroupError:
    asked = tuple(
        OffsetFetchRequestTopic(name=topic, partition_indexes=numbers)
        for topic, numbers in numbers_by_topic(partitions).items()
    )
    request = OffsetFetchRequest(group_id=group_id, topics=asked)
    answer = cluster.ask(node, request, OffsetFetchResponse, versions=(1, 1), timeout_s=left_s)
    offsets = {}
    for topic in answer.topics:
        for partition_answer in topic.partitions:
            partition = TopicPartition(topic.name, partition_answer.partition_index)
            if partition_answer.error_code not in _NOTHING_THERE:
                return refused(partition_answer.error_code, f"the committed offset of {partition}")
            if partition_answer.committed_offset != NO_OFFSET:
                offsets[partition] = OffsetAndMetadata(
                    partition_answer.committed_offset, metadata=partition_answer.metadata or ""
                )
    return offsets


def none_registered() -> Unreachable:
    """Return the error for logs when the tree names no live broker."""
    return Unreachable(
        "no broker is registered in ZooKeeper: the ends of the logs are unknown",
        "are the brokers down? committed offsets are still shown",
    )
