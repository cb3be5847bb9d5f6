"""Produce of malformed batches: each is refused with Kafka's code and leaves the log as it was.

That the codes are Kafka's is what `tests/interop/test_malformed_produce.py` shows.
"""

from __future__ import annotations

import pytest

from kgroup.broker.embedded import EmbeddedTransport
from kgroup.errors import ErrorCode
from kgroup.protocol.batches import batches_in
from kgroup.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kgroup.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kgroup.runtime.clock import ManualClock
from kgroup.runtime.cluster import Cluster
from tests.produced_batches import CASES, TOPICS, Case, batch, record
from tests.unit.broker.brokers import create_topic

NOW = 1_700_000_000_000


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


@pytest.fixture
def ready(transport: EmbeddedTransport) -> EmbeddedTransport:
    for kind, config in TOPICS.items():
        create_topic(transport, kind, **config)
    return transport


def produce(
    transport: EmbeddedTransport, *partitions: bytes, topic: str = "plain", case: Case | None = None
) -> tuple[PartitionProduceResponse, ...]:
    data = tuple(PartitionProduceData(index=0, records=records) for records in partitions)
    request = ProduceRequest(
        transactional_id=case.transactional_id if case else None,
        acks=-1,
        timeout_ms=1000,
        topic_data=(TopicProduceData(name=topic, partition_data=data),),
    )
    version = case.version if case else 9
    answer = transport.request(0, request, min_version=version, max_version=version)
    assert isinstance(answer, ProduceResponse)
    return answer.responses[0].partition_responses


def offset_at(transport: EmbeddedTransport, topic: str, timestamp: int) -> tuple[int, int, int]:
    wanted = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name=topic, partitions=(wanted,)),))
    answer = transport.request(0, request)
    assert isinstance(answer, ListOffsetsResponse)
    found = answer.topics[0].partitions[0]
    return found.error_code, found.offset, found.timestamp


def test_every_malformed_batch(ready: EmbeddedTransport, cluster: Cluster) -> None:
    """In the order of the table, as some build on those before."""
    differing = []
    for case in CASES:
        before = offset_at(ready, case.topic, -1)[1]
        (answer,) = produce(ready, case.make(NOW), topic=case.topic, case=case)
        wanted = (case.code, case.stored) if case.ours is None else (case.ours, 0)
        found = answer.error_code, offset_at(ready, case.topic, -1)[1] - before
        if found != wanted:
            differing.append((case.name, found, wanted, answer.error_message))
    assert not differing
    for topic in TOPICS:
        log = cluster.log(topic, 0)
        assert log is not None
        read = [r for each in batches_in(log.read(0, 1 << 20)) for r in each.records]
        assert [r.offset for r in read] == list(range(log.end_offset)), "every record can be read again"
        for timestamp in (-3, 0, NOW, NOW + 10 * 3_600_000, (1 << 63) - 1):
            assert offset_at(ready, topic, timestamp)[0] == 0


def test_a_request_is_refused_whole_for_a_partition_that_holds_no_batch(ready: EmbeddedTransport) -> None:
    """As Kafka, which looks for transactions in all of them first."""
    answers = produce(ready, batch(at=NOW), batch(at=NOW, magic=3))
    assert [answer.error_code for answer in answers] == [ErrorCode.CORRUPT_MESSAGE] * 2
    assert offset_at(ready, "plain", -1)[1] == 0


def test_which_records_were_at_fault_is_told(ready: EmbeddedTransport) -> None:
    body = record(0) + record(1, key=None) + record(2, since=-1000, key=None)
    (answer,) = produce(ready, batch(body, at=NOW, count=3, last_delta=2), topic="compacted")
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in answer.record_errors] == [1, 2]


def test_offsets_that_do_not_count_up_are_put_right(ready: EmbeddedTransport, cluster: Cluster) -> None:
    body = record(5, key=b"a") + record(2, since=7, key=b"b", headers=b"\2\2\xff\1")
    assert produce(ready, batch(body, at=NOW, count=2, last_delta=1))[0].error_code == 0
    log = cluster.log("plain", 0)
    assert log is not None
    (stored,) = batches_in(log.read(0, 1 << 20))
    assert [(r.offset, r.key, r.timestamp_ms) for r in stored.records] == [(0, b"a", NOW), (1, b"b", NOW + 7)]
    assert stored.max_timestamp == NOW + 7


def test_a_look_up_by_time_survives_any_time_in_the_log(ready: EmbeddedTransport, cluster: Cluster) -> None:
    """Such batches were stored before they were checked, or come with a copy of another broker's folder."""
    log = cluster.log("plain", 0)
    assert log is not None
    far = (1 << 63) - 1
    log.append_batches(batch(record(since=far), at=far))
    log.append_batches(batch(at=-far - 1, newest=far))
    for timestamp in (-3, 0, NOW, far):
        assert offset_at(ready, "plain", timestamp)[0] == 0
    log.append_batches(batch(b"\xff" * 9, at=far))
    assert offset_at(ready, "plain", far)[0] == ErrorCode.KAFKA_STORAGE_ERROR
