"""What every request about partitions checks first: does the topic exist, and is it led here?"""

from __future__ import annotations

from kgroup.broker.dispatch import Dispatcher
from kgroup.domain import ZERO_UUID
from kgroup.errors import ErrorCode, Refused
from kgroup.log.interface import Log
from kgroup.runtime.catalog import CatalogTopic

LEADER_EPOCH = 0
"""Of every partition: a partition never changes its leader while the process lives."""


def topic_name(desk: Dispatcher, name: str, topic_id: bytes) -> str:
    """The name asked for, or the one behind an id; Refused with UNKNOWN_TOPIC_ID."""
    if topic_id == ZERO_UUID:
        return name
    found = desk.cluster.catalog.image.name_of(topic_id)
    if found is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_ID)
    return found


def partition_log(desk: Dispatcher, node: int, topic: str, partition: int) -> tuple[CatalogTopic, Log]:
    """The topic and the log of a partition that broker `node` leads."""
    log = desk.cluster.log(topic, partition)
    if log is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if desk.cluster.leader_of(partition) != node:
        raise Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return desk.cluster.catalog.topics[topic], log


def check_leader_epoch(epoch: int) -> None:
    """Refused for a client that knows a newer leader epoch than there is (KIP-320)."""
    if epoch > LEADER_EPOCH:
        raise Refused(ErrorCode.UNKNOWN_LEADER_EPOCH)
