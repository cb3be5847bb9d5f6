"""When a group last wrote anything: told by `__consumer_offsets` alone, no request answers it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kgroup.admin.discovery import ClusterView
from kgroup.domain import offsets_partition_of


def last_written(cluster: ClusterView, group_ids: Iterable[str]) -> Mapping[str, int | None]:
    """The time in ms of each group's newest record, a commit or a change of the group; None without one.

    Reads the partitions of `__consumer_offsets` that hold the groups. BrokerRefused when they cannot be
    read: that takes READ on the topic.
    """
    from kgroup.history.sources.live import LiveLog, LiveTopic
    from kgroup.history.stats import scan

    wanted = list(dict.fromkeys(group_ids))
    if not wanted:
        return {}
    topic = LiveTopic(cluster.transport, cluster.retry.timeout_s)
    holding = {offsets_partition_of(group, len(topic.partitions)) for group in wanted}
    tallies = scan(LiveLog(topic, partition) for partition in sorted(holding)).by_group()
    return {group: tallies[group].last_ms if group in tallies else None for group in wanted}
