"""What a cluster says about committed offsets that were removed: its records leave it open."""

from kgroup.admin.discovery import ClusterView
from kgroup.admin.models import TopicDescription
from kgroup.admin.read.visibility import sees_every_topic
from kgroup.admin.settings import OFFSETS_RETENTION, broker_setting
from kgroup.errors import KgroupError
from kgroup.history.fold.removals import Today

PATIENCE_S = 5.0


def today(cluster: ClusterView, node: int | None) -> Today:
    """Return the topics there are and the retention of broker `node`; None for what is not said to us.

    It only narrows causes down, so a refusal is no failure.
    """
    topics: dict[str, str] | None = None
    retention_ms: int | None = None
    with cluster.within(PATIENCE_S):
        try:
            if sees_every_topic(cluster):
                found = cluster.topics(None)
                topics = {n: told.topic_id for n, told in found.items() if isinstance(told, TopicDescription)}
            minutes = broker_setting(cluster, node, OFFSETS_RETENTION) if node is not None else None
            retention_ms = int(minutes) * 60_000 if minutes else None
        except KgroupError:
            pass
    return Today(topics, retention_ms)
