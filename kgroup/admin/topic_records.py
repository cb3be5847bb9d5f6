"""A few records of a topic, written or read at once, for tests and repairs."""

from collections.abc import Iterator, Mapping, Sequence

from kgroup.admin.discovery import ClusterView
from kgroup.admin.models import TopicDescription
from kgroup.admin.read.offsets import EARLIEST, LATEST, leader_of, list_offsets
from kgroup.admin.read.record_times import NAMES_UNTIL
from kgroup.admin.refusals import check, refused
from kgroup.domain import TopicPartition, value
from kgroup.errors import ConfigError, ErrorCode, KgroupError
from kgroup.protocol.batches import batches_in, encode_batch
from kgroup.protocol.log_records import LogRecord
from kgroup.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from kgroup.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kgroup.security.rights import READ, WRITE, on_topic

READ_COMMITTED = 1
FETCH_BYTES = 8 << 20
ALL_REPLICAS = -1


@value
class Record:
    """A record of a topic; its time in ms since 1970, UTC."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def produce(
    cluster: ClusterView, topic: str, records: Sequence[LogRecord], partition: int | None = None
) -> tuple[TopicPartition, ...]:
    """Append records, to one partition or to all in turn; return where each went, in their order.

    Acknowledged by all replicas in sync. The first refusal of a partition is raised, and records of
    partitions before it are stored. Not repeated when the outcome is unknown.
    """
    topics = cluster.topics([topic])
    partitions = _partitions(topics, topic, partition)
    dealt = tuple(partitions[n % len(partitions)] for n in range(len(records)))
    now_ms = cluster.now_ms()
    for target in dict.fromkeys(dealt):
        leader = leader_of(target, topics)
        if isinstance(leader, KgroupError):
            raise leader
        own = [record for record, there in zip(records, dealt, strict=True) if there == target]
        data = PartitionProduceData(index=target.partition, records=encode_batch(own, timestamp_ms=now_ms))
        request = ProduceRequest(
            acks=ALL_REPLICAS,
            timeout_ms=int(cluster.retry.timeout_s * 1000),
            topic_data=(TopicProduceData(name=topic, partition_data=(data,)),),
        )
        answer = cluster.ask(leader, request, ProduceResponse, versions=(3, NAMES_UNTIL))
        result = answer.responses[0].partition_responses[0]
        check(result.error_code, str(target), result.error_message, [on_topic(WRITE, topic)])
    return dealt


def read(cluster: ClusterView, topic: str, partition: int | None = None) -> tuple[Record, ...]:
    """Return the current records by partition and offset; of transactions the committed ones.

    Records after the start of an open transaction are omitted, as for a consumer of committed records.
    """
    topics = cluster.topics([topic])
    places = _partitions(topics, topic, partition)
    starts, ends = (_listed(cluster, places, which) for which in (EARLIEST, LATEST))
    return tuple(
        record for p in places for record in _records(cluster, p, leader_of(p, topics), starts[p], ends[p])
    )


def _partitions(topics: Mapping[str, object], topic: str, partition: int | None) -> list[TopicPartition]:
    known = topics.get(topic)
    if isinstance(known, KgroupError):
        raise known
    if not isinstance(known, TopicDescription):
        raise refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic}")
    numbers = [partition.partition for partition in known.partitions]
    if partition is not None and partition not in numbers:
        raise ConfigError(f"topic {topic} has no partition {partition}", f"it has {len(numbers)}, from 0 on")
    return [TopicPartition(topic, number) for number in numbers if partition in (None, number)]


def _listed(cluster: ClusterView, places: Sequence[TopicPartition], which: int) -> dict[TopicPartition, int]:
    offsets: dict[TopicPartition, int] = {}
    for partition, at in list_offsets(cluster, dict.fromkeys(places, which)).items():
        if isinstance(at, KgroupError):
            raise at
        offsets[partition] = at.offset
    return offsets


def _records(
    cluster: ClusterView, partition: TopicPartition, leader: int | KgroupError, position: int, end: int
) -> Iterator[Record]:
    if isinstance(leader, KgroupError):
        raise leader
    while position < end:
        data = _fetched(cluster, partition, leader, position)
        records, after = _committed(data, position)
        for entry in records:
            if entry.offset < end:
                yield Record(
                    *partition, entry.offset, entry.timestamp_ms, entry.key, entry.value, entry.headers
                )
        if after == position:
            return  # an open transaction: nothing after it can be read yet
        position = after


def _committed(data: PartitionData, position: int) -> tuple[list[LogRecord], int]:
    """Return records from a position on without markers and aborted ones, and where to continue."""
    aborted = sorted((t.first_offset, t.producer_id) for t in data.aborted_transactions or ())
    within: set[int] = set()
    records: list[LogRecord] = []
    for batch in batches_in(data.records or b""):
        while aborted and aborted[0][0] <= batch.last_offset:
            within.add(aborted.pop(0)[1])
        if batch.control:
            within.discard(batch.producer_id)
        elif not (batch.transactional and batch.producer_id in within):
            records += [record for record in batch.records if record.offset >= position]
        position = batch.last_offset + 1
    return records, position


def _fetched(cluster: ClusterView, partition: TopicPartition, leader: int, position: int) -> PartitionData:
    fetch = FetchPartition(
        partition=partition.partition, fetch_offset=position, partition_max_bytes=FETCH_BYTES
    )
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        isolation_level=READ_COMMITTED,
        topics=(FetchTopic(topic=partition.topic, partitions=(fetch,)),),
    )

    def ask(left_s: float) -> FetchResponse:
        return cluster.ask(leader, request, FetchResponse, versions=(4, NAMES_UNTIL), timeout_s=left_s)

    answer = cluster.retry.call(ask, idempotent=True)
    check(answer.error_code, f"reading {partition}")
    data = answer.responses[0].partitions[0]
    check(data.error_code, f"reading {partition}", needs=[on_topic(READ, partition.topic)])
    return data
