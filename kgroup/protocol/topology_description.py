"""What an application says of its topology for people: nodes, stores, and how they are joined (KIP-1331)."""

from enum import IntEnum

from kgroup.protocol.codec import Struct
from kgroup.protocol.types import Int8, String


class NodeType(IntEnum):
    """What a node does."""

    SOURCE = 1
    PROCESSOR = 2
    SINK = 3


class DescriptionStatus(IntEnum):
    """Whether a description of a group's topology came with its answer, and why not."""

    NOT_REQUESTED = 0
    NOT_STORED = 1
    ERROR = 2
    AVAILABLE = 3


class Node(Struct):
    """A node: a source has topics, a processor stores, a sink a topic unless each record chooses its own."""

    name: String = ""
    node_type: Int8 = 0
    source_topics: tuple[String, ...] = ()
    sink_topic: String | None = None
    stores: tuple[String, ...] = ()
    successors: tuple[String, ...] = ()


class DescribedSubtopology(Struct):
    """The nodes of a part of the topology that runs as tasks of its own."""

    subtopology_id: String = ""
    nodes: tuple[Node, ...] = ()


class GlobalStore(Struct):
    """A store that every process fills with all of a topic."""

    source: Node = Node()
    processor: Node = Node()


class TopologyDescription(Struct):
    """A whole topology."""

    subtopologies: tuple[DescribedSubtopology, ...] = ()
    global_stores: tuple[GlobalStore, ...] = ()
