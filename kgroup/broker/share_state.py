"""The share coordinators of all brokers: the deliveries of share groups in each partition (KIP-932)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TypeVar

from kgroup.broker.tickets import Tickets
from kgroup.broker.wakeups import Deadline
from kgroup.domain import SHARE_STATE_TOPIC, offsets_partition_of
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.messages import initialize_share_group_state as initializing
from kgroup.protocol.messages import read_share_group_state_summary as summarizing
from kgroup.runtime.cluster import Cluster
from kgroup.runtime.complaints import line_of
from kgroup.runtime.share_shard import ShareShard
from kgroup.share.coordinator import Change, ShareCoordinator, ShareStateConfig, StateKey

log = logging.getLogger(__name__)
R = TypeVar("R")

TOPIC_CONFIG = {"cleanup.policy": "delete", "compression.type": "producer", "retention.ms": "-1"}
"""As in Kafka: records are deleted once snapshots supersede all before them, not by compaction."""


class ShareState:
    """The shards of `__share_group_state`, which is created when it is first needed."""

    def __init__(self, cluster: Cluster, tickets: Tickets) -> None:
        self._cluster = cluster
        self._tickets = tickets
        self._keeping: Deadline | None = None
        self.shards: list[ShareShard | None] = []
        if SHARE_STATE_TOPIC in cluster.catalog.topics:
            self._load()

    def ready(self) -> None:
        """Create the topic and its shards if there are none yet."""
        if self.shards:
            return
        settings = self._cluster.settings
        factor = settings.share_state_replication_factor
        self._tickets.create_internal_topic(
            SHARE_STATE_TOPIC, settings.share_state_partitions, factor, TOPIC_CONFIG
        )
        self._load()

    def node_of(self, key: str) -> int:
        """Return the broker that coordinates a partition of a group, named as FindCoordinator names it."""
        self.ready()
        return self._cluster.leader_of(SHARE_STATE_TOPIC, offsets_partition_of(key, len(self.shards)))

    def run(
        self, key: StateKey, operation: Callable[[ShareCoordinator], Change[R]], node: int | None = None
    ) -> R:
        """Carry out an operation on the state of a partition; Refused as it says.

        NOT_COORDINATOR if `node`, where one is named, does not lead it.
        """
        self.ready()
        number = offsets_partition_of(str(key), len(self.shards))
        shard = self.shards[number]
        if shard is None or node not in (None, self._cluster.leader_of(SHARE_STATE_TOPIC, number)):
            raise Refused(ErrorCode.NOT_COORDINATOR, "This is not the correct coordinator.")
        try:
            self._show_topics(shard)
            return shard.run(operation, self._cluster.clock.now_ms())
        except Refused:
            raise
        except Exception:
            self._reload(number)
            raise

    def initialize(
        self, group_id: str, state_epoch: int, offsets: Mapping[bytes, Mapping[int, int]]
    ) -> dict[StateKey, Refused | None]:
        """Initialize the state of partitions at offsets, by topic id and number; return the failures."""

        def begin(key: StateKey) -> None:
            asked = initializing.PartitionState(
                partition=key.partition,
                state_epoch=state_epoch,
                start_offset=offsets[key.topic_id][key.partition],
            )
            self.run(key, lambda c: c.initialize(key, asked, self._cluster.clock.now_ms()))

        return self._each(_keys(group_id, offsets), begin)

    def delete(
        self, group_id: str, partitions: Mapping[bytes, Iterable[int]]
    ) -> dict[StateKey, Refused | None]:
        """Remove the state of partitions; return the failures."""
        return self._each(_keys(group_id, partitions), lambda key: self.run(key, lambda c: c.delete(key)))

    def summary(self, key: StateKey) -> summarizing.PartitionResult:
        """Return where a partition stands; Refused if that is unknown."""
        return self.run(key, lambda coordinator: (None, coordinator.summary(key)))

    def topics_changed(self) -> None:
        """Give every shard the present topics; the state of deleted ones is removed."""
        for shard in self.shards:
            if shard is not None:
                with suppress(Refused):  # the process's log says why
                    self._show_topics(shard)

    def _show_topics(self, shard: ShareShard) -> None:
        image = self._cluster.catalog.image
        if shard.coordinator.image is not image:
            shard.topics_changed(image, self._cluster.clock.now_ms())

    @staticmethod
    def _each(
        keys: Iterable[StateKey], operation: Callable[[StateKey], object]
    ) -> dict[StateKey, Refused | None]:
        refusals: dict[StateKey, Refused | None] = {}
        for key in keys:
            refusals[key] = None
            try:
                operation(key)
            except Refused as refused:
                refusals[key] = refused
        return refusals

    def _load(self) -> None:
        partitions = self._cluster.catalog.topics[SHARE_STATE_TOPIC].partitions
        self.shards = [None] * partitions
        for partition in range(partitions):
            self._reload(partition)
        self._keep_later()

    def _reload(self, partition: int) -> None:
        """Make a shard again from its log. One whose log cannot be read is no longer led."""
        self.shards[partition] = None
        settings, cluster = self._cluster.settings, self._cluster
        config = ShareStateConfig(settings.share_updates_per_snapshot, settings.share_cold_snapshot_ms)
        try:
            partition_log = cluster.log(SHARE_STATE_TOPIC, partition)
            assert partition_log is not None
            shard = ShareShard(partition, partition_log, config, cluster.catalog.image, cluster.complaints)
            shard.load()
        except Exception as error:
            where = f"{SHARE_STATE_TOPIC}-{partition}"
            log.error("%s cannot be loaded, its share partitions are not served: %s", where, line_of(error))
            return
        self.shards[partition] = shard

    def _keep_later(self) -> None:
        settings = self._cluster.settings
        after_ms = min(settings.share_cold_snapshot_ms, settings.share_prune_ms)
        self._keeping = self._tickets.wakeups.at(self._cluster.clock.now_ms() + after_ms, self._keep_short)

    def _keep_short(self) -> None:
        for shard in self.shards:
            if shard is not None and shard.coordinator.states:
                with suppress(Refused):  # tried again the next time
                    shard.keep_short(self._cluster.clock.now_ms())
        self._keep_later()


def _keys(group_id: str, partitions: Mapping[bytes, Iterable[int]]) -> Iterator[StateKey]:
    for topic_id, numbers in partitions.items():
        for number in sorted(numbers):
            yield StateKey(group_id, topic_id, number)
