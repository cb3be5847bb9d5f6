"""The history of one group, or of all, as the live `__consumer_offsets` has it."""

from __future__ import annotations

from kgroup.admin.discovery import ClusterView
from kgroup.admin.read.today import today
from kgroup.domain import OFFSETS_TOPIC, offsets_partition_of
from kgroup.errors import BrokerRefused, ErrorCode
from kgroup.history.fold.folding import Extras
from kgroup.history.replay import Story, replay
from kgroup.history.sources.live import LiveLog, LiveTopic


def story_of(cluster: ClusterView, group_id: str | None = None) -> Story:
    """Return what the records say of a group, or of all groups.

    Raise BrokerRefused where they may not be read to their end.
    """
    topic = LiveTopic(cluster.transport, cluster.retry.timeout_s)
    wanted = topic.partitions
    if group_id is not None:
        wanted = [offsets_partition_of(group_id, len(wanted))]
    for partition in wanted:
        if partition not in topic.leaders:
            raise BrokerRefused(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{OFFSETS_TOPIC}-{partition} is not in the metadata"
            )
    return replay(
        [LiveLog(topic, partition) for partition in wanted],
        topic_names=topic.topic_names,
        names=None if group_id is None else [group_id],
        extras=Extras(today(cluster, topic.leaders[wanted[0]])),
    )
