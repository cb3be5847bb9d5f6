"""Earlier answers of brokers: leaders, partitions and coordinators as of when a rule was set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from kgroup.broker.call import AnyCall
from kgroup.broker.handlers.coordinators import GROUP
from kgroup.domain import OFFSETS_TOPIC, offsets_partition_of
from kgroup.errors import ErrorCode
from kgroup.protocol.anatomy import Entry
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.find_coordinator import FindCoordinatorResponse
from kgroup.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic
from kgroup.runtime.cluster import Cluster
from kgroup.runtime.placement import Placement


class Snapshot(NamedTuple):
    """The places of partitions: by topic, and by number below it."""

    placements: dict[str, dict[int, Placement]]

    @classmethod
    def of(cls, cluster: Cluster) -> Snapshot:
        """Return the present places."""
        return cls(
            {
                name: {number: cluster.placement_of(topic, number) for number in range(topic.partitions)}
                for name, topic in cluster.catalog.topics.items()
            }
        )

    def aged(self, answer: Message, call: AnyCall, endpoints: Mapping[int, tuple[str, int]]) -> Message:
        """Return an answer as it would have been then: topics that did not exist are unknown."""
        if isinstance(answer, MetadataResponse):
            topics = []
            for topic in answer.topics:
                known = self.placements.get(topic.name or "")
                if known is None:
                    code = topic.error_code or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                    topics.append(
                        MetadataResponseTopic(error_code=code, name=topic.name, topic_id=topic.topic_id)
                    )
                    continue
                now = {partition.partition_index: partition for partition in topic.partitions}
                parts = tuple(
                    replace(
                        now[number],
                        error_code=ErrorCode.NONE,
                        leader_id=then.leader,
                        leader_epoch=then.epoch,
                        replica_nodes=then.replicas,
                        isr_nodes=then.replicas,
                        offline_replicas=(),
                    )
                    for number, then in known.items()
                    if number in now
                )
                topics.append(replace(topic, partitions=parts))
            return replace(answer, topics=tuple(topics))
        if not isinstance(answer, FindCoordinatorResponse) or call.body.key_type != GROUP:
            return answer
        if not answer.coordinators:
            return replace(answer, **self._coordinator(call.body.key, endpoints))
        coordinators = (
            replace(coordinator, **self._coordinator(coordinator.key, endpoints))
            for coordinator in answer.coordinators
        )
        return replace(answer, coordinators=tuple(coordinators))

    def _coordinator(self, group_id: str, endpoints: Mapping[int, tuple[str, int]]) -> dict[str, Entry]:
        lay = self.placements[OFFSETS_TOPIC]
        node = lay[offsets_partition_of(group_id, len(lay))].leader
        host, port = endpoints[node]
        return {"error_code": ErrorCode.NONE, "node_id": node, "host": host, "port": port}
