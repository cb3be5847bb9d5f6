"""Compaction of the logs of state while the cluster runs: when, and by which settings."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kgroup.errors import StorageError
from kgroup.runtime.complaints import told

if TYPE_CHECKING:
    from kgroup.runtime.cluster import Cluster

log = logging.getLogger(__name__)


def clean(cluster: Cluster, topic: str, partition: int, now_ms: int) -> bool:
    """Compact a log of state that is mostly history; whether it was done."""
    if cluster.folder is None:
        return False
    from kgroup.log.compaction import compact, is_dirty
    from kgroup.log.partition import PartitionLog

    try:
        found = cluster.log(topic, partition)
    except StorageError:
        return False  # who loads it says so
    settings = cluster.topic_settings(topic, cluster.leader_of(topic, partition))
    try:
        if isinstance(found, PartitionLog) and is_dirty(found, settings.min_cleanable_dirty_ratio):
            done = compact(found, now_ms=now_ms, delete_retention_ms=settings.delete_retention_ms)
            return done is not None
    except Exception as error:
        subject = f"compaction of {topic}-{partition}"
        cluster.complaints.say(log, subject, f"tried again later: {told(error)}")
    return False
