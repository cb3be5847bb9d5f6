"""DeleteRecords: a log's start goes up, for every reader and across restarts, and files go where they can."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgroup.broker.embedded import EmbeddedTransport
from kgroup.domain import OFFSETS_TOPIC
from kgroup.errors import ErrorCode, StorageError
from kgroup.protocol.batches import LogRecord, encode_batch
from kgroup.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kgroup.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from kgroup.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kgroup.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kgroup.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kgroup.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kgroup.runtime.cluster import Cluster
from tests.unit.broker.brokers import create_topic

EARLIEST, LATEST = -2, -1


def delete(
    transport: EmbeddedTransport, offset: int, topic: str = "t", partition: int = 0
) -> tuple[int, int]:
    """Error code and low watermark."""
    wanted = DeleteRecordsPartition(partition_index=partition, offset=offset)
    request = DeleteRecordsRequest(topics=(DeleteRecordsTopic(name=topic, partitions=(wanted,)),))
    answer = transport.request(None, request)
    assert isinstance(answer, DeleteRecordsResponse)
    ((result,),) = (topic.partitions for topic in answer.topics)
    return result.error_code, result.low_watermark


def produce(transport: EmbeddedTransport, value: bytes, topic: str = "t") -> tuple[int, int]:
    """Base offset and the log's start."""
    data = PartitionProduceData(index=0, records=encode_batch([LogRecord(b"k", value)]))
    wanted = TopicProduceData(name=topic, partition_data=(data,))
    answer = transport.request(
        None, ProduceRequest(acks=-1, timeout_ms=1, topic_data=(wanted,)), max_version=12
    )
    found = answer.responses[0].partition_responses[0]  # type: ignore[attr-defined]
    assert found.error_code == 0
    return found.base_offset, found.log_start_offset


def fetch(transport: EmbeddedTransport, offset: int) -> tuple[int, int, bool]:
    """Error code, the log's start, and whether there are records."""
    ask = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(max_wait_ms=0, min_bytes=1, topics=(FetchTopic(topic="t", partitions=(ask,)),))
    answer = transport.request(None, request, max_version=12)
    found = answer.responses[0].partitions[0]  # type: ignore[attr-defined]
    return found.error_code, found.log_start_offset, bool(found.records)


def listed(transport: EmbeddedTransport, timestamp: int) -> int:
    ask = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name="t", partitions=(ask,)),))
    answer = transport.request(None, request)
    return int(answer.topics[0].partitions[0].offset)  # type: ignore[attr-defined]


def commit(transport: EmbeddedTransport, offset: int) -> int:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topic = OffsetCommitRequestTopic(name="t", partitions=(partition,))
    answer = transport.request(
        None, OffsetCommitRequest(group_id="g", member_id="", topics=(topic,)), max_version=9
    )
    return int(answer.topics[0].partitions[0].error_code)  # type: ignore[attr-defined]


@pytest.fixture(params=["memory", "disk"])
def transport(request: pytest.FixtureRequest, tmp_path: Path) -> EmbeddedTransport:
    """One broker and a topic with ten records, each in a segment of its own where there are segments."""
    data = tmp_path / "data" if request.param == "disk" else None
    made = EmbeddedTransport(Cluster(data, offsets_partitions=1))
    small = CreatableTopicConfig(name="internal.segment.bytes", value="100")
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1, configs=(small,))
    made.request(None, CreateTopicsRequest(topics=(topic,)))
    for number in range(10):
        assert produce(made, b"%d" % number) == (number, 0)
    request.addfinalizer(made.close)
    return made


def test_the_start_goes_up_for_every_reader(transport: EmbeddedTransport) -> None:
    """A commit below the start, the case operators ask about, can be rehearsed."""
    assert commit(transport, 3) == 0
    assert delete(transport, 6) == (0, 6)
    assert listed(transport, EARLIEST) == 6
    assert fetch(transport, 3) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1, False)
    assert fetch(transport, 6) == (0, 6, True)
    assert produce(transport, b"more") == (10, 6)
    # a lower offset changes nothing and tells where the start is
    assert delete(transport, 2) == (0, 6)


def test_all_records_can_go(transport: EmbeddedTransport) -> None:
    assert delete(transport, -1) == (0, 10)
    assert (listed(transport, EARLIEST), listed(transport, LATEST)) == (10, 10)
    assert fetch(transport, 10) == (0, 10, False)
    assert produce(transport, b"more") == (10, 10)


def test_what_cannot_be_deleted(transport: EmbeddedTransport) -> None:
    assert delete(transport, 11) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert delete(transport, -2) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert delete(transport, 0, partition=1) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert delete(transport, 0, topic="nobody") == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert delete(transport, 0, topic=OFFSETS_TOPIC) == (ErrorCode.INVALID_TOPIC_EXCEPTION, -1)
    compacted = CreatableTopicConfig(name="cleanup.policy", value="compact")
    topic = CreatableTopic(name="c", num_partitions=1, replication_factor=1, configs=(compacted,))
    transport.request(None, CreateTopicsRequest(topics=(topic,)))
    assert delete(transport, 0, topic="c") == (ErrorCode.POLICY_VIOLATION, -1)


def test_only_the_leader_deletes() -> None:
    transport = EmbeddedTransport(Cluster(brokers=2, offsets_partitions=1))
    create_topic(transport, "t", 2)
    assert delete(transport, 0, partition=1) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    transport.close()


def test_segments_go_and_the_start_survives_a_restart(tmp_path: Path) -> None:
    transport = EmbeddedTransport(Cluster(tmp_path, offsets_partitions=1))
    small = CreatableTopicConfig(name="internal.segment.bytes", value="100")
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1, configs=(small,))
    transport.request(None, CreateTopicsRequest(topics=(topic,)))
    create_topic(transport, "whole")
    for number in range(4):
        produce(transport, b"%d" % number)
        produce(transport, b"%d" % number, "whole")
    assert delete(transport, 2) == delete(transport, 2, "whole") == (0, 2)
    transport.close()
    assert sorted(path.name for path in (tmp_path / "t-0").glob("*.log")) == [
        f"{2:020d}.log",
        f"{3:020d}.log",
    ]
    transport = EmbeddedTransport(Cluster(tmp_path, offsets_partitions=1))
    assert (listed(transport, EARLIEST), listed(transport, LATEST)) == (2, 4)
    assert produce(transport, b"4", "whole") == (4, 2)
    assert delete(transport, -1) == (0, 4)
    transport.close()
    transport = EmbeddedTransport(Cluster(tmp_path, offsets_partitions=1))
    assert produce(transport, b"4") == (4, 4)
    transport.close()


def test_a_copy_of_a_kafkas_folder_keeps_the_starts_it_had(tmp_path: Path) -> None:
    """Kafka keeps the starts of all logs in one file beside them."""
    transport = EmbeddedTransport(Cluster(tmp_path / "made", offsets_partitions=1))
    create_topic(transport, "t")
    for number in range(4):
        produce(transport, b"%d" % number)
    transport.close()
    (tmp_path / "made" / "t-0").rename(tmp_path / "t-0")
    (tmp_path / "t-0" / "segments").unlink()  # Kafka has no such file
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\nt 0 3\n")
    transport = EmbeddedTransport(Cluster(tmp_path, offsets_partitions=1))
    assert listed(transport, EARLIEST) == 3
    transport.close()


def test_a_file_of_starts_that_cannot_be_read_is_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n2\nt 0 3\n")
    with pytest.raises(StorageError, match="log-start-offset-checkpoint"):
        Cluster(tmp_path, offsets_partitions=1)
