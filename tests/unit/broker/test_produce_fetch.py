"""Produce, Fetch, ListOffsets and what depends on them, through the embedded transport."""

from __future__ import annotations

import pytest

from kgroup.broker.call import Call, NoResponse
from kgroup.broker.embedded import EmbeddedTransport
from kgroup.domain import OFFSETS_TOPIC
from kgroup.errors import ErrorCode
from kgroup.protocol.batches import LogRecord, batches_in, encode_batch
from kgroup.protocol.codec import Message
from kgroup.protocol.compression import Compression
from kgroup.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kgroup.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from kgroup.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kgroup.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kgroup.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kgroup.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kgroup.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kgroup.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kgroup.runtime.clock import ManualClock
from tests.unit.broker.brokers import create_topic

BY_NAME = 12  # the last versions of Produce and Fetch that name topics


def batch(*values: bytes, timestamp_ms: int = 1000, **fields: int) -> bytes:
    records = [LogRecord(None, value, timestamp_ms=timestamp_ms + i) for i, value in enumerate(values)]
    return encode_batch(records, **fields)  # type: ignore[arg-type]


def produce_request(records: bytes | None, partition: int = 0, topic: str = "t", acks: int = -1) -> Message:
    data = PartitionProduceData(index=partition, records=records)
    return ProduceRequest(
        acks=acks, timeout_ms=1000, topic_data=(TopicProduceData(name=topic, partition_data=(data,)),)
    )


def produce(
    transport: EmbeddedTransport,
    records: bytes | None,
    *,
    partition: int = 0,
    topic: str = "t",
    version: int = 12,
) -> PartitionProduceResponse:
    request = produce_request(records, partition, topic)
    answer = transport.request(partition % 3, request, max_version=version)
    assert isinstance(answer, ProduceResponse)
    return answer.responses[0].partition_responses[0]


def fetch_request(
    offset: int,
    *,
    partition: int = 0,
    topic: str = "t",
    wait_ms: int = 0,
    min_bytes: int = 1,
    most: int = 1 << 20,
) -> FetchRequest:
    wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=most)
    return FetchRequest(
        max_wait_ms=wait_ms, min_bytes=min_bytes, topics=(FetchTopic(topic=topic, partitions=(wanted,)),)
    )


def fetch(
    transport: EmbeddedTransport, offset: int, *, partition: int = 0, **how: int | str
) -> PartitionData:
    request = fetch_request(offset, partition=partition, **how)  # type: ignore[arg-type]
    answer = transport.request(partition % 3, request, max_version=BY_NAME)
    assert isinstance(answer, FetchResponse)
    return answer.responses[0].partitions[0]


def values(data: PartitionData) -> list[bytes | None]:
    return [record.value for found in batches_in(data.records or b"") for record in found.records]


def list_offset(transport: EmbeddedTransport, timestamp: int) -> tuple[int, int, int]:
    wanted = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name="t", partitions=(wanted,)),))
    answer = transport.request(0, request)
    assert isinstance(answer, ListOffsetsResponse)
    found = answer.topics[0].partitions[0]
    return found.error_code, found.offset, found.timestamp


@pytest.fixture
def ready(transport: EmbeddedTransport) -> EmbeddedTransport:
    create_topic(transport, "t", 3)
    return transport


def test_what_is_produced_is_fetched(ready: EmbeddedTransport) -> None:
    assert produce(ready, batch(b"a", b"b")).base_offset == 0
    assert produce(ready, batch(b"c")).base_offset == 2
    found = fetch(ready, 0)
    assert (values(found), found.high_watermark, found.last_stable_offset) == ([b"a", b"b", b"c"], 3, 3)
    assert values(fetch(ready, 2)) == [b"c"]
    assert values(fetch(ready, 3)) == []


@pytest.mark.parametrize("offset", [-1, 1])
def test_fetch_out_of_range(ready: EmbeddedTransport, offset: int) -> None:
    assert fetch(ready, offset).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_topics_by_id_from_version_13_on(ready: EmbeddedTransport) -> None:
    told = ready.request(None, MetadataRequest(topics=None))
    assert isinstance(told, MetadataResponse)
    topic_id = next(topic.topic_id for topic in told.topics if topic.name == "t")
    data = PartitionProduceData(index=0, records=batch(b"a"))
    for wanted, code in ((topic_id, 0), (b"\1" * 16, ErrorCode.UNKNOWN_TOPIC_ID)):
        sent = TopicProduceData(topic_id=wanted, partition_data=(data,))
        answer = ready.request(0, ProduceRequest(acks=-1, timeout_ms=1, topic_data=(sent,)), min_version=13)
        assert isinstance(answer, ProduceResponse)
        assert answer.responses[0].partition_responses[0].error_code == code
        part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
        request = FetchRequest(
            max_wait_ms=0, min_bytes=0, topics=(FetchTopic(topic_id=wanted, partitions=(part,)),)
        )
        read = ready.request(0, request, min_version=13)
        assert isinstance(read, FetchResponse)
        assert read.responses[0].partitions[0].error_code == code


def test_the_first_batch_comes_whatever_its_size(ready: EmbeddedTransport) -> None:
    """KIP-74: a consumer with small limits still gets on."""
    produce(ready, batch(b"x" * 500))
    produce(ready, batch(b"y" * 500))
    assert values(fetch(ready, 0, most=10)) == [b"x" * 500]


@pytest.mark.parametrize("wait_ms", [1, 500])
def test_a_fetch_waits_for_the_time_it_gave(
    wait_ms: int, ready: EmbeddedTransport, clock: ManualClock
) -> None:
    start = clock.now_ms()
    assert values(fetch(ready, 0, wait_ms=wait_ms)) == []
    assert clock.now_ms() - start == wait_ms
    assert not ready.dispatcher.watchers.by_key


@pytest.mark.parametrize("wait_ms", [0, -1])
def test_a_fetch_that_gives_no_time_is_answered_before_anything_else(
    wait_ms: int, ready: EmbeddedTransport
) -> None:
    call = Call(fetch_request(0, wait_ms=wait_ms), BY_NAME, "c", "/h", 0, lambda _: None)
    answer = ready.dispatcher.handle(call)
    assert isinstance(answer, FetchResponse) and values(answer.responses[0].partitions[0]) == []
    assert not ready.dispatcher.watchers.by_key


def test_a_parked_fetch_is_answered_by_a_produce(ready: EmbeddedTransport) -> None:
    answers: list[Message | None] = []
    request = fetch_request(0, wait_ms=5000, min_bytes=100)
    call = Call(request, BY_NAME, "c", "/h", 0, answers.append)
    assert ready.dispatcher.handle(call) is None
    produce(ready, batch(b"small"))
    assert answers == []
    produce(ready, batch(b"x" * 100))
    (answer,) = answers
    assert isinstance(answer, FetchResponse)
    assert len(values(answer.responses[0].partitions[0])) == 2
    assert not ready.dispatcher.watchers.by_key


def test_a_parked_fetch_hears_that_its_topic_is_gone(ready: EmbeddedTransport) -> None:
    answers: list[Message | None] = []
    assert (
        ready.dispatcher.handle(Call(fetch_request(0, wait_ms=5000), 12, "c", "/h", 0, answers.append))
        is None
    )
    state = DeleteTopicState(name="t", topic_id=bytes(16))
    ready.request(None, DeleteTopicsRequest(topics=(state,), timeout_ms=1))
    (answer,) = answers
    assert isinstance(answer, FetchResponse)
    code = answer.responses[0].partitions[0].error_code
    assert code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_fetch_of_the_offsets_topic_sees_commits_as_they_are_made(ready: EmbeddedTransport) -> None:
    partition = ready.dispatcher.partition_of("g")
    answers: list[Message | None] = []
    request = fetch_request(0, topic=OFFSETS_TOPIC, partition=partition, wait_ms=5000)
    assert ready.dispatcher.handle(Call(request, 12, "c", "/h", partition % 3, answers.append)) is None
    wanted = OffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata="")
    topic = OffsetCommitRequestTopic(name="t", partitions=(wanted,))
    commit = OffsetCommitRequest(
        group_id="g", generation_id_or_member_epoch=-1, member_id="", topics=(topic,)
    )
    ready.request(partition % 3, commit, max_version=9)
    (answer,) = answers
    assert isinstance(answer, FetchResponse)
    assert len(values(answer.responses[0].partitions[0])) == 1


def test_only_the_leader_serves_a_partition(ready: EmbeddedTransport) -> None:
    wrong = ready.request(1, produce_request(batch(b"a")), max_version=BY_NAME)
    assert isinstance(wrong, ProduceResponse)
    code = wrong.responses[0].partition_responses[0].error_code
    assert code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    read = ready.request(2, fetch_request(0), max_version=BY_NAME)
    assert isinstance(read, FetchResponse)
    assert read.responses[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def damaged(raw: bytes) -> bytes:
    return raw[:-1] + bytes([raw[-1] ^ 1])


@pytest.mark.parametrize(
    ("records", "version", "code"),
    [
        pytest.param(damaged(batch(b"a")), 12, ErrorCode.CORRUPT_MESSAGE, id="checksum"),
        pytest.param(b"", 12, ErrorCode.INVALID_RECORD, id="nothing"),
        pytest.param(batch(b"a") * 2, 12, ErrorCode.INVALID_RECORD, id="two-batches"),
        pytest.param(batch(b"a")[:-3], 12, ErrorCode.INVALID_RECORD, id="cut-short"),
        pytest.param(batch(b"x" * 1_100_000), 12, ErrorCode.MESSAGE_TOO_LARGE, id="too-large"),
        pytest.param(
            batch(b"a", compression=Compression.ZSTD), 6, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, id="zstd"
        ),
        pytest.param(batch(b"a", control=True), 12, ErrorCode.INVALID_RECORD, id="control"),
        pytest.param(
            batch(b"a")[:16] + b"\1" + batch(b"a")[17:], 12, ErrorCode.INVALID_RECORD, id="old-magic"
        ),
    ],
)
def test_refused_batches(ready: EmbeddedTransport, records: bytes, version: int, code: ErrorCode) -> None:
    assert produce(ready, records, version=version).error_code == code
    assert list_offset(ready, -1) == (0, 0, -1)


def test_the_offsets_topic_is_not_for_producers(ready: EmbeddedTransport) -> None:
    found = produce(ready, batch(b"a"), topic=OFFSETS_TOPIC)
    assert found.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_acks(ready: EmbeddedTransport) -> None:
    silent = Call(produce_request(batch(b"a"), acks=0), 12, "c", "/h", 0)
    assert ready.dispatcher.handle(silent) is NoResponse.NO_OP
    wrong = Call(produce_request(b"", acks=0), 12, "c", "/h", 0)
    assert ready.dispatcher.handle(wrong) is NoResponse.CLOSE_CONNECTION
    assert values(fetch(ready, 0)) == [b"a"]
    odd = ready.request(0, produce_request(batch(b"a"), acks=2), max_version=12)
    assert isinstance(odd, ProduceResponse)
    assert odd.responses[0].partition_responses[0].error_code == ErrorCode.INVALID_REQUIRED_ACKS


def idempotent(first: int, count: int = 1, epoch: int = 0, producer_id: int = 9) -> bytes:
    return batch(*[b"v"] * count, producer_id=producer_id, producer_epoch=epoch, base_sequence=first)


def test_retried_batches_are_stored_once(ready: EmbeddedTransport) -> None:
    """KIP-98: the newest five batches of a producer are answered with their first offset."""
    offsets = [produce(ready, idempotent(first, 2)).base_offset for first in range(0, 14, 2)]
    assert offsets == [0, 2, 4, 6, 8, 10, 12]
    for first, offset in ((12, 12), (4, 4)):
        again = produce(ready, idempotent(first, 2))
        assert (again.error_code, again.base_offset) == (0, offset)
    assert produce(ready, idempotent(2, 2)).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert list_offset(ready, -1)[1] == 14


@pytest.mark.parametrize(
    ("first", "epoch", "code"),
    [
        (1, 3, ErrorCode.NONE),
        (2, 3, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (0, 2, ErrorCode.INVALID_PRODUCER_EPOCH),
        (0, 4, ErrorCode.NONE),
        (1, 4, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
    ],
)
def test_sequences_and_epochs(ready: EmbeddedTransport, first: int, epoch: int, code: ErrorCode) -> None:
    assert produce(ready, idempotent(0, epoch=3)).error_code == 0
    assert produce(ready, idempotent(first, epoch=epoch)).error_code == code


def test_an_unknown_producer_may_begin_anywhere(ready: EmbeddedTransport) -> None:
    """KIP-360: its earlier batches may have been deleted."""
    assert produce(ready, idempotent(70)).error_code == 0


def test_sequences_wrap_around(ready: EmbeddedTransport) -> None:
    assert produce(ready, idempotent((1 << 31) - 1)).error_code == 0
    assert produce(ready, idempotent(0)).error_code == 0


def test_sequences_are_read_back_from_the_log(ready: EmbeddedTransport) -> None:
    produce(ready, idempotent(0, 3))
    fresh = EmbeddedTransport(ready.cluster)
    assert produce(fresh, idempotent(0, 3)).base_offset == 0
    assert produce(fresh, idempotent(3)).base_offset == 3


def test_producer_ids_are_never_given_twice(transport: EmbeddedTransport) -> None:
    request = InitProducerIdRequest(transaction_timeout_ms=1)
    answers = [transport.request(node, request) for node in (0, 1, 2)]
    ids = [a.producer_id for a in answers if isinstance(a, InitProducerIdResponse) and a.error_code == 0]
    assert len(set(ids)) == 3


@pytest.mark.parametrize(
    ("timestamp", "found"),
    [
        pytest.param(-1, (0, 4, -1), id="latest"),
        pytest.param(-2, (0, 0, -1), id="earliest"),
        pytest.param(-3, (0, 1, 2001), id="max-timestamp"),
        pytest.param(-4, (0, 0, -1), id="earliest-local"),
        pytest.param(-5, (0, -1, -1), id="latest-tiered"),
        pytest.param(1500, (0, 0, 2000), id="first-not-older"),
        pytest.param(2001, (0, 1, 2001), id="exact"),
        pytest.param(2002, (0, -1, -1), id="behind-all"),
        pytest.param(-7, (ErrorCode.UNSUPPORTED_VERSION, -1, -1), id="unknown"),
    ],
)
def test_list_offsets(ready: EmbeddedTransport, timestamp: int, found: tuple[int, int, int]) -> None:
    produce(ready, batch(b"a", b"b", timestamp_ms=2000))
    produce(ready, batch(b"c", b"d", timestamp_ms=1000))
    assert list_offset(ready, timestamp) == found


def test_list_offsets_names_a_partition_twice(ready: EmbeddedTransport) -> None:
    wanted = ListOffsetsPartition(partition_index=0, timestamp=-1)
    topic = ListOffsetsTopic(name="t", partitions=(wanted, wanted))
    answer = ready.request(0, ListOffsetsRequest(replica_id=-1, topics=(topic,)))
    assert isinstance(answer, ListOffsetsResponse)
    assert {p.error_code for p in answer.topics[0].partitions} == {ErrorCode.INVALID_REQUEST}


@pytest.mark.parametrize(("epoch", "found"), [(0, (0, 1)), (1, (-1, -1))])
def test_offset_for_leader_epoch(ready: EmbeddedTransport, epoch: int, found: tuple[int, int]) -> None:
    produce(ready, batch(b"a"))
    wanted = OffsetForLeaderPartition(partition=0, leader_epoch=epoch)
    topic = OffsetForLeaderTopic(topic="t", partitions=(wanted,))
    answer = ready.request(0, OffsetForLeaderEpochRequest(topics=(topic,)))
    assert isinstance(answer, OffsetForLeaderEpochResponse)
    end = answer.topics[0].partitions[0]
    assert (end.leader_epoch, end.end_offset) == found
