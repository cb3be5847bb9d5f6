"""Which process has which partitions at hand, for interactive queries (KIP-1071)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kgroup.coordinator.streams.group import StreamsGroup
from kgroup.coordinator.streams.member import StreamsMember
from kgroup.coordinator.streams.topology import ConfiguredTopology
from kgroup.domain import TopicImage
from kgroup.protocol.messages.streams_group_heartbeat import EndpointToPartitions, TopicPartition


def partitions_by_endpoint(
    group: StreamsGroup, member: StreamsMember, configured: ConfiguredTopology, image: TopicImage
) -> tuple[EndpointToPartitions, ...]:
    """What each process with an endpoint has; `member`, as it is now, last."""
    others = (other for other in group.members.values() if other.member_id != member.member_id)
    return tuple(
        EndpointToPartitions(
            user_endpoint=endpoint,
            active_partitions=_partitions(each.current.assigned.active, configured, image),
            standby_partitions=_partitions(each.current.assigned.standby, configured, image),
        )
        for each in (*others, member)
        if (endpoint := each.metadata.user_endpoint) is not None
    )


def _partitions(
    tasks: Mapping[str, Iterable[int]], configured: ConfiguredTopology, image: TopicImage
) -> tuple[TopicPartition, ...]:
    """The tasks' partitions of what they read; none of topics that are gone meanwhile."""
    found = []
    for subtopology_id, numbers in tasks.items():
        # Kafka 4.3.1 ends the heartbeat with an unknown error where topics went away and the tasks are still
        # there, and with it the application; its members are told once the topics are back.
        subtopology = (configured.subtopologies or {}).get(subtopology_id)
        for name in () if subtopology is None else subtopology.source_topics:
            topic = image.by_name.get(name)
            if topic is not None:
                found.append(
                    TopicPartition(topic=name, partitions=tuple(sorted(numbers)[: topic.partitions]))
                )
    return tuple(found)
