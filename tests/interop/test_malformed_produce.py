"""Produce of malformed batches: a real Kafka and ours answer alike, and what is refused is not stored."""

from __future__ import annotations

import time

import pytest

from kgroup.client.transport import SocketTransport
from kgroup.errors import Unreachable
from kgroup.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kgroup.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kgroup.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.produced_batches import CASES, TOPICS

from .conftest import Case
from .server import Server
from .waiting import eventually

pytestmark = [pytest.mark.interop]


def end_offset(transport: SocketTransport, topic: str, timestamp: int = -1) -> int:
    wanted = ListOffsetsTopic(
        name=topic, partitions=(ListOffsetsPartition(partition_index=0, timestamp=timestamp),)
    )
    answer = transport.request(None, ListOffsetsRequest(replica_id=-1, topics=(wanted,)), max_version=7)
    (found,) = answer.topics[0].partitions  # type: ignore[attr-defined]
    assert found.error_code == 0
    return int(found.offset)


def create(transport: SocketTransport, topic: str, config: dict[str, str]) -> None:
    settings = tuple(CreatableTopicConfig(name=name, value=value) for name, value in config.items())
    wanted = CreatableTopic(name=topic, num_partitions=1, replication_factor=1, configs=settings)
    answer = transport.request(None, CreateTopicsRequest(topics=(wanted,), timeout_ms=10_000))
    assert [each.error_code for each in answer.topics] == [0]  # type: ignore[attr-defined]


def test_malformed_batches_are_refused_with_kafkas_codes(
    server: Server, case: Case, transport: SocketTransport
) -> None:
    topics = {kind: f"{case.group}-{kind}" for kind in TOPICS}
    for kind, topic in topics.items():
        create(transport, topic, TOPICS[kind])
        eventually(lambda t=topic: end_offset(transport, t) == 0, what="the topic is there")  # type: ignore[misc]
    now = int(time.time() * 1000)
    found, wanted = {}, {}
    for each in CASES:
        topic = topics[each.topic]
        before = end_offset(transport, topic)
        data = PartitionProduceData(index=0, records=each.make(now))
        request = ProduceRequest(
            transactional_id=each.transactional_id,
            acks=-1,
            timeout_ms=5000,
            topic_data=(TopicProduceData(name=topic, partition_data=(data,)),),
        )
        try:
            answer = transport.request(None, request, min_version=each.version, max_version=each.version)
            code: object = answer.responses[0].partition_responses[0].error_code  # type: ignore[attr-defined]
        except Unreachable as error:
            code = error.message
        different = each.ours is not None and server.kind == "kgroup"
        wanted[each.name] = (each.ours, 0) if different else (each.code, each.stored)
        found[each.name] = code, end_offset(transport, topic) - before
    differing = {
        name: (found[name], "wanted", wanted[name]) for name in wanted if found[name] != wanted[name]
    }
    assert not differing
    for topic in topics.values():
        for timestamp in (-3, 0, now, now + 2 * 3_600_000):
            end_offset(transport, topic, timestamp)
