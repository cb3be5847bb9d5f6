"""Compaction of the logs of state while the cluster runs: when, and by which settings."""

import logging
from pathlib import Path
from typing import Protocol

from kgroup.domain import OFFSETS_TOPIC, TRANSACTION_TOPIC
from kgroup.errors import StorageError
from kgroup.log.compaction import compact, is_dirty
from kgroup.log.interface import Log
from kgroup.log.partition import PartitionLog
from kgroup.runtime.catalog import Catalog
from kgroup.runtime.clock import Clock
from kgroup.runtime.complaints import Complaints, line_of
from kgroup.runtime.topic_settings import TopicSettings

log = logging.getLogger(__name__)


class Logs(Protocol):
    """The cluster whose logs are compacted."""

    folder: Path | None
    complaints: Complaints
    catalog: Catalog
    clock: Clock

    def log(self, topic: str, partition: int) -> Log | None: ...

    def leader_of(self, topic: str, partition: int) -> int: ...

    def topic_settings(self, name: str, node: int | None = None) -> TopicSettings: ...


def compact_one(cluster: Logs) -> bool:
    """Compact the first log of state that has more history than state; return whether there was one.

    A pass reads the whole log while all others wait: at most one per call, with time between two calls.
    """
    now_ms = cluster.clock.now_ms()
    for topic in (OFFSETS_TOPIC, TRANSACTION_TOPIC):
        known = cluster.catalog.topics.get(topic)
        if any(clean(cluster, topic, p, now_ms) for p in range(known.partitions if known else 0)):
            return True
    return False


def clean(cluster: Logs, topic: str, partition: int, now_ms: int) -> bool:
    """Compact a log of state that is mostly history; return whether it was done."""
    if cluster.folder is None:
        return False

    try:
        opened = cluster.log(topic, partition)
    except StorageError:
        return False  # the loader logs it
    settings = cluster.topic_settings(topic, cluster.leader_of(topic, partition))
    try:
        if isinstance(opened, PartitionLog) and is_dirty(opened, settings.min_cleanable_dirty_ratio):
            done = compact(opened, now_ms=now_ms, delete_retention_ms=settings.delete_retention_ms)
            return done is not None
    except Exception as error:
        subject = f"compaction of {topic}-{partition}"
        cluster.complaints.say(log, subject, f"tried again later: {line_of(error)}")
    return False
