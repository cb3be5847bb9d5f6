"""Paths of nodes in ZooKeeper (era 1)."""

from kgroup.zookeeper.wire.messages import Partition

CONSUMERS = "/consumers"
COORDINATOR = "/consumers/coordinator"
COORDINATOR_GROUP = "coordinator"
"""Not allowed as a group id: its node is the coordinator's own (era 0.9)."""
EPOCH = "/coordinator_epoch"
BROKER_IDS = "/brokers/ids"
TOPICS = "/brokers/topics"


def topic(name: str) -> str:
    return f"{TOPICS}/{name}"


def broker(broker_id: str) -> str:
    return f"{BROKER_IDS}/{broker_id}"


def group(group_id: str) -> str:
    return f"{CONSUMERS}/{group_id}"


def owners(group_id: str) -> str:
    return f"{CONSUMERS}/{group_id}/owners"


def owners_of(group_id: str, topic_name: str) -> str:
    return f"{CONSUMERS}/{group_id}/owners/{topic_name}"


def owner(group_id: str, partition: Partition) -> str:
    return f"{CONSUMERS}/{group_id}/owners/{partition.topic}/{partition.name}"


def offset(group_id: str, partition: Partition) -> str:
    return f"{CONSUMERS}/{group_id}/offsets/{partition.topic}/{partition.name}"


def above(path: str) -> list[str]:
    """Return the nodes that must exist before this one, outermost first; `/consumers` always does."""
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(3, len(parts))]
