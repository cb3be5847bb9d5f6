"""Brokers of Kafka 0.8: they hang up when asked for ApiVersions, so they are not asked."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kgroup.client.settings import ConnectionSettings
from kgroup.client.transport import SocketTransport
from kgroup.errors import BrokerRefused, ErrorCode, Unreachable
from kgroup.protocol.headers import decode_response, encode_request
from kgroup.protocol.messages.api_versions import ApiVersionsRequest
from kgroup.protocol.messages.list_groups import ListGroupsRequest
from kgroup.protocol.messages.list_offsets import ListOffsetsResponse
from kgroup.protocol.messages.list_offsets_0 import (
    ListOffsets0Partition,
    ListOffsets0PartitionResponse,
    ListOffsets0Request,
    ListOffsets0Response,
    ListOffsets0Topic,
    ListOffsets0TopicResponse,
)
from kgroup.protocol.messages.metadata import MetadataRequest
from kgroup.protocol.registry import response_class_at
from tests.unit.client.scripted_broker import HANG_UP, ScriptedBroker


@pytest.fixture
def broker() -> Iterator[ScriptedBroker]:
    with ScriptedBroker() as running:
        running.answers[ApiVersionsRequest] = HANG_UP
        yield running


def transport(broker: ScriptedBroker, *, asks_versions: bool) -> SocketTransport:
    settings = ConnectionSettings((broker.address,), request_timeout_s=60.0, asks_versions=asks_versions)
    return SocketTransport(settings)


def test_asked_for_its_versions_it_cannot_be_used(broker: ScriptedBroker) -> None:
    with transport(broker, asks_versions=True) as made, pytest.raises(Unreachable):
        made.nodes()


def test_not_asked_it_tells_its_nodes_in_version_0(broker: ScriptedBroker) -> None:
    with transport(broker, asks_versions=False) as made:
        assert made.nodes() == {1: broker.address}
        assert made.versions(1, 2) == made.versions(1, 3) == range(1)
    assert [type(request) for request in broker.requests] == [MetadataRequest]


def test_what_no_broker_of_that_age_serves_is_never_sent(broker: ScriptedBroker) -> None:
    with transport(broker, asks_versions=False) as made, pytest.raises(BrokerRefused) as refused:
        made.request(None, ListGroupsRequest())
    assert refused.value.code == ErrorCode.UNSUPPORTED_VERSION
    assert broker.requests == []


def test_list_offsets_0_byte_for_byte() -> None:
    topics = (
        ListOffsets0Topic(name="t", partitions=(ListOffsets0Partition(partition_index=3, timestamp=-1),)),
    )
    asked = encode_request(ListOffsets0Request(replica_id=-1, topics=topics), 0, 7, "k")
    assert asked.hex() == (
        "0000002a"  # size
        "000200000000000700016b"  # ListOffsets, version, correlation id, client id
        "ffffffff00000001000174"  # replica, one topic
        "0000000100000003ffffffffffffffff00000001"  # one partition: its end, one offset
    )
    told = bytes.fromhex("00000007000000010001740000000100000003000000000001000000000000002a")
    partition = ListOffsets0PartitionResponse(partition_index=3, error_code=0, offsets=(42,))
    topic = ListOffsets0TopicResponse(name="t", partitions=(partition,))
    assert decode_response(told, 2, 0) == (7, ListOffsets0Response(topics=(topic,)))


def test_later_versions_are_read_as_ever() -> None:
    assert response_class_at(2, 1) is ListOffsetsResponse
