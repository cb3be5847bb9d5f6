"""Applications' descriptions of their topologies, as brokers keep them since Kafka 4.4 (KIP-1331)."""

from __future__ import annotations

from collections.abc import Iterator

from kgroup.admin.models import (
    Described,
    GlobalStore,
    ItemError,
    SubtopologyNodes,
    TopologyDescription,
    TopologyNode,
)
from kgroup.protocol import topology_description as wire
from kgroup.protocol.messages.streams_group_describe import DescribedGroup

NOT_DESCRIBED = "NOT_DESCRIBED"
_STATUSES: dict[int, Described] = {
    wire.DescriptionStatus.NOT_STORED: Described.NOT_STORED,
    wire.DescriptionStatus.ERROR: Described.ERROR,
    wire.DescriptionStatus.AVAILABLE: Described.AVAILABLE,
}
_TYPES: dict[int, str] = {kind: kind.name.lower() for kind in wire.NodeType}


def topology_description(group: DescribedGroup) -> tuple[Described, TopologyDescription | None]:
    """Return whether a description came with StreamsGroupDescribe, and the description.

    UNKNOWN where none was requested, as from a broker before Kafka 4.4, which has no field for it.
    """
    status, known = group.topology_description_status, group.topology_description
    if status != wire.DescriptionStatus.AVAILABLE:
        return _STATUSES.get(status, Described.UNKNOWN), None
    if known is None:
        return Described.ERROR, None
    return Described.AVAILABLE, TopologyDescription(
        tuple(
            SubtopologyNodes(part.subtopology_id, tuple(map(_node, part.nodes)))
            for part in known.subtopologies
        ),
        tuple(GlobalStore(_node(store.source), _node(store.processor)) for store in known.global_stores),
    )


def unread_description(group_id: str, status: Described) -> Iterator[ItemError]:
    """Yield why the description is missing, where the broker failed to read it."""
    if status == Described.ERROR:
        message = f"{group_id}: the broker could not read the application's description of its topology"
        hint = "the broker's log says why its group.streams.topology.description.plugin.class failed"
        yield ItemError("topology", NOT_DESCRIBED, message, hint)


def _node(node: wire.Node) -> TopologyNode:
    return TopologyNode(
        name=node.name,
        type=_TYPES.get(node.node_type, str(node.node_type)),
        source_topics=node.source_topics,
        sink_topic=node.sink_topic,
        stores=node.stores,
        successors=node.successors,
    )
