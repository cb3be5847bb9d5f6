"""A cluster's report about removed committed offsets, whose records leave the cause open."""

from kgroup.admin.discovery import ClusterView
from kgroup.admin.read.visibility import sees_every_topic
from kgroup.admin.settings import OFFSETS_RETENTION, broker_setting, number_of
from kgroup.domain import id_text
from kgroup.errors import KgroupError
from kgroup.history.fold.removals import Today

PATIENCE_S = 5.0


def today(cluster: ClusterView, node: int | None) -> Today:
    """Return the topics and the retention of broker `node`; None for what may not be read.

    It only narrows causes down, so a refusal is no failure.
    """
    topics: dict[str, str] | None = None
    retention_ms: int | None = None
    with cluster.within(PATIENCE_S):
        try:
            if sees_every_topic(cluster):
                metadata = cluster.metadata(None).topics
                topics = {t.name: id_text(t.topic_id) for t in metadata if t.name and not t.error_code}
            minutes = (
                number_of(broker_setting(cluster, node, OFFSETS_RETENTION)) if node is not None else None
            )
            retention_ms = minutes * 60_000 if minutes else None
        except KgroupError:
            pass
    return Today(topics, retention_ms)
