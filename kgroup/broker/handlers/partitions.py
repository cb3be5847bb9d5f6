"""The first check of every request about partitions: whether the topic exists, and is led here."""

from __future__ import annotations

from kgroup.broker.call import Call
from kgroup.broker.dispatch import Dispatcher
from kgroup.domain import NO_LEADER_EPOCH, ZERO_UUID
from kgroup.errors import ErrorCode, Refused, StorageError
from kgroup.log.interface import Log, OffsetOutOfRange
from kgroup.protocol.codec import Message
from kgroup.runtime.catalog import CatalogTopic


def topic_name(broker: Dispatcher, name: str, topic_id: bytes) -> str:
    """Return the name asked for, or the one behind an id; Refused with UNKNOWN_TOPIC_ID."""
    if topic_id == ZERO_UUID:
        return name
    topic = broker.cluster.catalog.image.name_of(topic_id)
    if topic is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_ID)
    return topic


def code_of(broker: Dispatcher, call: Call[Message], error: Refused | StorageError) -> ErrorCode:
    """Return why a client cannot have a partition; disk faults are logged for the operator as well."""
    if isinstance(error, Refused):
        return error.code
    if isinstance(error, OffsetOutOfRange):
        return ErrorCode.OFFSET_OUT_OF_RANGE
    broker.complain(call, error)
    return ErrorCode.KAFKA_STORAGE_ERROR


def partition_log(
    broker: Dispatcher, node: int, topic: str, partition: int, leader_epoch: int = NO_LEADER_EPOCH
) -> tuple[CatalogTopic, Log]:
    """Return the topic and the log of a partition that broker `node` leads.

    Refuse also a client that knows an older or a newer leader epoch than there is (KIP-320).
    """
    cluster = broker.cluster
    log = cluster.log(topic, partition)
    if log is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if leader_epoch >= 0 and leader_epoch != log.leader_epoch:
        older = leader_epoch < log.leader_epoch
        raise Refused(ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH)
    if cluster.leader_of(topic, partition) != node:
        raise Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return cluster.catalog.topics[topic], log
