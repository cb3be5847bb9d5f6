"""A transactional producer, a read_committed consumer and a group member, by bare requests."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from kgroup.broker.embedded import EmbeddedTransport
from kgroup.domain import TopicPartition, offsets_partition_of
from kgroup.errors import ErrorCode
from kgroup.protocol.batches import LogRecord, batches_in, encode_batch
from kgroup.protocol.messages import fetch as f
from kgroup.protocol.messages import list_offsets as lo
from kgroup.protocol.messages import offset_fetch as of
from kgroup.protocol.messages import produce as p
from kgroup.protocol.messages import txn_offset_commit as tc
from kgroup.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kgroup.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from kgroup.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kgroup.protocol.messages.end_txn import EndTxnRequest
from kgroup.protocol.messages.init_producer_id import InitProducerIdRequest

NAMED = 12  # the last version of Produce and Fetch that names topics
A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


class Broker:
    """One broker without a socket, and short words for what tests ask it."""

    def __init__(self, transport: EmbeddedTransport) -> None:
        self.transport = transport

    def ask(self, request: Any, version: int | None = None) -> Any:
        low = 0 if version is None else version
        return self.transport.request(None, request, min_version=low, max_version=version)

    def create_topic(self, name: str, partitions: int = 2) -> None:
        wanted = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        self.ask(CreateTopicsRequest(topics=(wanted,)))

    def fetch(self, at: TopicPartition, offset: int = 0, *, committed: bool = True) -> f.PartitionData:
        wanted = f.FetchPartition(partition=at.partition, fetch_offset=offset, partition_max_bytes=1 << 20)
        request = f.FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            isolation_level=int(committed),
            topics=(f.FetchTopic(topic=at.topic, partitions=(wanted,)),),
        )
        found: f.PartitionData = self.ask(request, NAMED).responses[0].partitions[0]
        return found

    def read(self, at: TopicPartition) -> list[str]:
        """What a read_committed consumer sees: whole transactions, aborted ones left out."""
        data = self.fetch(at)
        aborted = sorted((a.first_offset, a.producer_id) for a in data.aborted_transactions or ())
        skipped: set[int] = set()
        seen = []
        for batch in batches_in(data.records or b""):
            while aborted and aborted[0][0] <= batch.last_offset:
                skipped.add(aborted.pop(0)[1])
            if batch.control:
                skipped.discard(batch.producer_id)
            elif not (batch.transactional and batch.producer_id in skipped):
                seen += [(record.value or b"").decode() for record in batch.records]
        return seen

    def end_offset(self, at: TopicPartition, *, committed: bool, timestamp: int = -1) -> int:
        wanted = lo.ListOffsetsPartition(partition_index=at.partition, timestamp=timestamp)
        topic = lo.ListOffsetsTopic(name=at.topic, partitions=(wanted,))
        request = lo.ListOffsetsRequest(replica_id=-1, isolation_level=int(committed), topics=(topic,))
        return int(self.ask(request).topics[0].partitions[0].offset)

    def offset(self, group: str, at: TopicPartition = A0, *, stable: bool = False) -> int | str:
        """The committed offset, -1 for none, or the error code's name."""
        topic = of.OffsetFetchRequestTopics(name=at.topic, partition_indexes=(at.partition,))
        asked = of.OffsetFetchRequestGroup(group_id=group, member_id=None, member_epoch=-1, topics=(topic,))
        answer = self.ask(of.OffsetFetchRequest(groups=(asked,), require_stable=stable), 9)
        found = answer.groups[0].topics[0].partitions[0]
        return ErrorCode(found.error_code).name if found.error_code else int(found.committed_offset)


class TransactionalClient:
    """A producer of either protocol: with `implicit` as of transaction.version 2, else with explicit adds."""

    def __init__(self, broker: Broker, name: str = "t", *, implicit: bool = True, timeout_ms: int = 60_000):
        self.broker, self.name, self.implicit, self.timeout_ms = broker, name, implicit, timeout_ms
        self.producer_id, self.epoch = -1, -1
        self.sequences: dict[TopicPartition, int] = defaultdict(int)

    def init(self, **fields: int) -> ErrorCode:
        request = InitProducerIdRequest(
            transactional_id=self.name,
            transaction_timeout_ms=self.timeout_ms,
            **fields,  # type: ignore[arg-type]
        )
        answer = self.broker.ask(request)
        if not answer.error_code:
            self._is_now(answer.producer_id, answer.producer_epoch)
        return ErrorCode(answer.error_code)

    def start(self) -> None:
        """As clients do: ask until the producer before has been aborted."""
        for _ in range(3):
            if not self.init():
                return
        raise AssertionError("no producer epoch")

    def add(self, *partitions: TopicPartition, version: int = 3) -> ErrorCode:
        topics = tuple(AddPartitionsToTxnTopic(name=p.topic, partitions=(p.partition,)) for p in partitions)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=topics,
        )
        answer = self.broker.ask(request, version)
        codes = [
            p.partition_error_code
            for topic in answer.results_by_topic_v3_and_below
            for p in topic.results_by_partition
        ]
        return ErrorCode(codes[0])

    def send(
        self, at: TopicPartition, *values: str, version: int | None = None, transactional: bool = True
    ) -> ErrorCode:
        """Produce; an explicit client has to `add` first."""
        if version is None:
            version = NAMED if self.implicit else 10
        records = encode_batch(
            [LogRecord(None, value.encode(), timestamp_ms=1000) for value in values],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self.sequences[at],
            transactional=transactional,
        )
        data = p.PartitionProduceData(index=at.partition, records=records)
        request = p.ProduceRequest(
            transactional_id=self.name if transactional else None,
            acks=-1,
            timeout_ms=1000,
            topic_data=(p.TopicProduceData(name=at.topic, partition_data=(data,)),),
        )
        answer = self.broker.ask(request, version)
        code = ErrorCode(answer.responses[0].partition_responses[0].error_code)
        if not code:
            self.sequences[at] += len(values)
        return code

    def add_offsets(self, group: str, version: int = 3) -> ErrorCode:
        request = AddOffsetsToTxnRequest(
            transactional_id=self.name,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            group_id=group,
        )
        return ErrorCode(self.broker.ask(request, version).error_code)

    def commit_offset(
        self, group: str, offset: int, at: TopicPartition = A0, version: int | None = None
    ) -> ErrorCode:
        if version is None:
            version = 5 if self.implicit else 3
        part = tc.TxnOffsetCommitRequestPartition(partition_index=at.partition, committed_offset=offset)
        request = tc.TxnOffsetCommitRequest(
            transactional_id=self.name,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=(tc.TxnOffsetCommitRequestTopic(name=at.topic, partitions=(part,)),),
        )
        return ErrorCode(self.broker.ask(request, version).topics[0].partitions[0].error_code)

    def end(self, committed: bool = True, version: int | None = None) -> ErrorCode:
        if version is None:
            version = 5 if self.implicit else 3
        request = EndTxnRequest(
            transactional_id=self.name,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=committed,
        )
        answer = self.broker.ask(request, version)
        if not answer.error_code and version >= 5:
            self._is_now(answer.producer_id, answer.producer_epoch)
        return ErrorCode(answer.error_code)

    def _is_now(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != (self.producer_id, self.epoch):
            self.producer_id, self.epoch = producer_id, epoch
            self.sequences.clear()


def offsets_partition(group: str, partitions: int) -> TopicPartition:
    return TopicPartition("__consumer_offsets", offsets_partition_of(group, partitions))
