"""The partitions that each process has locally, for interactive queries (KIP-1071)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping

from kgroup.coordinator.streams.group import StreamsGroup
from kgroup.coordinator.streams.member import HeldTasks, StreamsMember
from kgroup.coordinator.streams.topology import ConfiguredTopology
from kgroup.coordinator.tasks.values import union
from kgroup.domain import TopicImage
from kgroup.protocol.messages.streams_group_heartbeat import EndpointToPartitions, TopicPartition


def partitions_by_endpoint(
    group: StreamsGroup,
    member: StreamsMember,
    replaced: StreamsMember | None,
    configured: ConfiguredTopology,
    image: TopicImage,
    *,
    warmups: bool,
) -> tuple[EndpointToPartitions, ...]:
    """Return the partitions of each process with an endpoint; `member` last, in the place of `replaced`.

    `warmups` lists tasks that are warming up among the standbys, as since Kafka 4.4.
    """
    gone = {member.member_id, None if replaced is None else replaced.member_id}
    others = (other for other in group.members.values() if other.member_id not in gone)
    return tuple(
        EndpointToPartitions(
            user_endpoint=endpoint,
            active_partitions=_partitions(owner.current.assigned.active, configured, image, existing=warmups),
            standby_partitions=_partitions(
                _copies(owner.current.assigned, warmups), configured, image, existing=warmups
            ),
        )
        for owner in (*others, member)
        if (endpoint := owner.metadata.user_endpoint) is not None
    )


def _copies(held: HeldTasks, warmups: bool) -> Mapping[str, Iterable[int]]:
    return union(held.standby, held.warmup) if warmups else held.standby


def _partitions(
    tasks: Mapping[str, Iterable[int]],
    configured: ConfiguredTopology,
    image: TopicImage,
    *,
    existing: bool,
) -> tuple[TopicPartition, ...]:
    """Return the partitions that the tasks read; none of topics deleted meanwhile."""
    by_topic = []
    for subtopology_id, numbers in tasks.items():
        # Kafka 4.3.1 ends the heartbeat with an unknown error if topics were deleted and the tasks are still
        # there, and with it the application; its members get them once the topics are back.
        subtopology = (configured.subtopologies or {}).get(subtopology_id)
        ordered = sorted(numbers)
        for name in () if subtopology is None else subtopology.source_topics:
            topic = image.by_name.get(name)
            if topic is None:
                continue
            # Before Kafka 4.4 the first ones, as many as the topic has, whichever they are.
            listed = ordered[: bisect_left(ordered, topic.partitions) if existing else topic.partitions]
            if listed or not existing:
                by_topic.append(TopicPartition(topic=name, partitions=tuple(listed)))
    return tuple(by_topic)
