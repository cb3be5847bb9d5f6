"""A partition that cannot be read is refused by itself, and the operator hears of it whoever asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kgroup.broker.embedded import EmbeddedTransport
from kgroup.domain import TopicPartition
from kgroup.errors import ErrorCode
from kgroup.log.files import segment_file
from kgroup.protocol.batches import LogRecord
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kgroup.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from kgroup.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kgroup.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kgroup.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kgroup.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kgroup.runtime.clock import ManualClock
from kgroup.runtime.cluster import Cluster
from kgroup.runtime.complaints import EVERY_MS
from kgroup.transactions.producers import ProducerEpoch
from tests.unit.broker.brokers import create_topic

BOTH = (0, 1)
FETCHED = tuple(FetchPartition(partition=p, fetch_offset=0, partition_max_bytes=1000) for p in BOTH)
FETCH = FetchRequest(max_wait_ms=0, min_bytes=0, topics=(FetchTopic(topic="t", partitions=FETCHED),))
LISTED = tuple(ListOffsetsPartition(partition_index=p, timestamp=1) for p in BOTH)
LIST = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name="t", partitions=LISTED),))
OF_EPOCH = tuple(OffsetForLeaderPartition(partition=p, leader_epoch=0) for p in BOTH)
EPOCHS = OffsetForLeaderEpochRequest(topics=(OffsetForLeaderTopic(topic="t", partitions=OF_EPOCH),))
DELETED = tuple(DeleteRecordsPartition(partition_index=p, offset=0) for p in BOTH)
DELETE = DeleteRecordsRequest(topics=(DeleteRecordsTopic(name="t", partitions=DELETED),), timeout_ms=1000)
MARKER = WritableTxnMarker(
    producer_id=5,
    producer_epoch=0,
    transaction_result=True,
    coordinator_epoch=0,
    topics=(WritableTxnMarkerTopic(name="t", partition_indexes=BOTH),),
)
MARK = WriteTxnMarkersRequest(markers=(MARKER,))
PRODUCERS = DescribeProducersRequest(topics=(TopicRequest(name="t", partition_indexes=BOTH),))


@pytest.fixture
def damaged(tmp_path: Path) -> EmbeddedTransport:
    """A cluster whose topic `t` has lost the segment of partition 0; partition 1 has a record."""
    transport = EmbeddedTransport(Cluster(tmp_path, offsets_partitions=1))
    create_topic(transport, "t", 2)
    for partition in BOTH:
        log = transport.cluster.log("t", partition)
        assert log is not None
        log.append([LogRecord(b"k", b"v", timestamp_ms=2)])
    transport.close()
    segment_file(tmp_path / "t-0", 0, ".log").unlink()
    return EmbeddedTransport(Cluster(tmp_path, clock=ManualClock()))


@pytest.mark.parametrize(
    ("request_", "name", "partitions"),
    [
        pytest.param(FETCH, "Fetch", lambda a: a.responses[0].partitions, id="Fetch"),
        pytest.param(LIST, "ListOffsets", lambda a: a.topics[0].partitions, id="ListOffsets"),
        pytest.param(EPOCHS, "OffsetForLeaderEpoch", lambda a: a.topics[0].partitions, id="epochs"),
        pytest.param(DELETE, "DeleteRecords", lambda a: a.topics[0].partitions, id="DeleteRecords"),
        pytest.param(
            WriteTxnMarkersRequest(markers=(MARKER,)),
            "WriteTxnMarkers",
            lambda a: a.markers[0].topics[0].partitions,
            id="markers",
        ),
        pytest.param(PRODUCERS, "DescribeProducers", lambda a: a.topics[0].partitions, id="producers"),
    ],
)
def test_damage_refuses_its_partition_alone_and_is_told(
    damaged: EmbeddedTransport,
    caplog: pytest.LogCaptureFixture,
    request_: Message,
    name: str,
    partitions: Callable[[Message], tuple[Message, ...]],
) -> None:
    def codes() -> list[int]:
        answer = damaged.request(0, request_, max_version=12)
        return [part.error_code for part in partitions(answer)]  # type: ignore[attr-defined]

    codes()
    clock = damaged.cluster.clock
    assert isinstance(clock, ManualClock)
    clock.advance(EVERY_MS)
    caplog.clear()
    for _ in range(3):
        assert codes() == [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE]
    (line,) = caplog.messages
    assert "t-0" in line
    assert "restore" in line
    assert f"{name} is refused" in line
    damaged.close()


def test_markers_that_cannot_be_written_are_told_now_and_again(
    damaged: EmbeddedTransport, caplog: pytest.LogCaptureFixture
) -> None:
    """They are tried twice a second, and each try was a line."""
    transactions, clock = damaged.dispatcher.transactions, damaged.cluster.clock
    transactions.run("x", lambda c, now: c.init_producer_id("x", 60_000, None, now))
    producer = ProducerEpoch(0, 0)
    both = [TopicPartition("t", p) for p in BOTH]
    transactions.run("x", lambda c, now: c.add_partitions("x", producer, both, 0, now))
    transactions.run("x", lambda c, now: c.end("x", producer, True, 0, now))
    damaged.run_until(clock.now_ms() + EVERY_MS - 1)
    lines = [line for line in caplog.messages if line.startswith("markers for t-0: that of x is tried again")]
    assert len(lines) == 1
    damaged.run_until(clock.now_ms() + 20)
    assert "19 more since the last line" in caplog.messages[-1]
    damaged.close()
