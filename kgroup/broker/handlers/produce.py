"""Produce: check a batch, append it, tell who waits for it."""

from __future__ import annotations

import logging

from kgroup.broker.call import Answer, Api, Call, Silence
from kgroup.broker.dispatch import Dispatcher
from kgroup.broker.handlers.partitions import partition_log, topic_name
from kgroup.broker.handlers.transactions import without_abortable
from kgroup.coordinator.transactions.producers import ProducerEpoch
from kgroup.domain import INTERNAL_TOPICS, TopicPartition
from kgroup.errors import DecodeError, ErrorCode, Refused, StorageError
from kgroup.log.interface import Log
from kgroup.protocol.batches import Batch, batches_in
from kgroup.protocol.codec import Message
from kgroup.protocol.compression import Compression
from kgroup.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

log = logging.getLogger(__name__)

ADMIN_CLIENT = "__admin_client"  # Kafka lets this client id write to internal topics
ZSTD_SINCE = 7
ABORTABLE_SINCE = 11  # TRANSACTION_ABORTABLE is understood
IMPLICIT_SINCE = 12  # a batch adds its partition to the transaction (KIP-890)
_RETRIABLE = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
INT32_MAX = (1 << 31) - 1


def produce(desk: Dispatcher, call: Call) -> Answer:
    """Append what was sent, each partition on its own; with acks=0 a failure ends the connection."""
    request = call.body
    assert isinstance(request, ProduceRequest)
    if request.acks not in (-1, 0, 1):
        response = refuse(request, ErrorCode.INVALID_REQUIRED_ACKS, None)
    else:
        responses = tuple(_topic(desk, call, topic) for topic in request.topic_data)
        response = ProduceResponse(responses=responses)
    if request.acks:
        return response
    failed = any(p.error_code for topic in response.responses for p in topic.partition_responses)
    return Silence.HANG_UP if failed else Silence.QUIET


def refuse(request: Message, code: ErrorCode, message: str | None) -> ProduceResponse:
    """Nothing was appended anywhere, because of `code`."""
    assert isinstance(request, ProduceRequest)
    return ProduceResponse(
        responses=tuple(
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=tuple(_refused(p.index, code, message) for p in topic.partition_data),
            )
            for topic in request.topic_data
        )
    )


def _refused(index: int, code: ErrorCode, message: str | None) -> PartitionProduceResponse:
    return PartitionProduceResponse(index=index, error_code=code, base_offset=-1, error_message=message)


def _topic(desk: Dispatcher, call: Call, topic: TopicProduceData) -> TopicProduceResponse:
    found = []
    for data in topic.partition_data:
        try:
            found.append(_partition(desk, call, topic, data))
        except Refused as refused:
            found.append(_refused(data.index, refused.code, refused.message))
        except StorageError as error:
            desk.cluster.complaints.say(log, "Produce", error.message)
            found.append(_refused(data.index, ErrorCode.KAFKA_STORAGE_ERROR, error.message))
    return TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=tuple(found))


def _partition(
    desk: Dispatcher, call: Call, topic: TopicProduceData, data: PartitionProduceData
) -> PartitionProduceResponse:
    name = topic_name(desk, topic.name, topic.topic_id)
    if name in INTERNAL_TOPICS and call.client_id != ADMIN_CLIENT:
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {name}")
    _, log = partition_log(desk, call.node, name, data.index)
    settings = desk.cluster.topic_settings(name)
    batch = _checked(data.records, call.version, settings.max_message_bytes)
    if batch.transactional:
        _admit(desk, call, batch, TopicPartition(name, data.index))
    producers = desk.producers.of(name, data.index, log)
    implicit = batch.transactional and call.version >= IMPLICIT_SINCE
    base = producers.check(batch, starts_at_zero=implicit) if batch.producer_id >= 0 else None
    append_time = -1
    if base is None:
        if settings.append_time:
            append_time = desk.clock.now_ms()
        base = _append(log, batch, append_time)
        producers.appended(batch, base)
        if desk.watchers:
            desk.watchers.notify((name, data.index))
    return PartitionProduceResponse(
        index=data.index, base_offset=base, log_append_time_ms=append_time, log_start_offset=log.start_offset
    )


def _admit(desk: Dispatcher, call: Call, batch: Batch, partition: TopicPartition) -> None:
    """Refuse a batch whose producer has no open transaction with this partition; newer clients add it so."""
    request = call.body
    assert isinstance(request, ProduceRequest)
    if not request.transactional_id:
        raise Refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    implicit = call.version >= IMPLICIT_SINCE
    producer = ProducerEpoch(batch.producer_id, batch.producer_epoch)
    code = desk.transactions.admit(request.transactional_id, producer, [partition], add=implicit)
    if code in _RETRIABLE or (code is ErrorCode.CONCURRENT_TRANSACTIONS and not implicit):
        raise Refused(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            "Unable to verify the partition has been added to the transaction. "
            f"Underlying error: {code.name}",
        )
    if call.version < ABORTABLE_SINCE:
        code = without_abortable(code)
    if code:
        raise Refused(code, "Partition was not added to the transaction")


def _append(log: Log, batch: Batch, append_time: int) -> int:
    try:
        return log.append_batches(batch.raw, append_time_ms=None if append_time < 0 else append_time)[0]
    except DecodeError as error:
        raise Refused(ErrorCode.INVALID_RECORD, error.message) from None


def _checked(records: bytes | None, version: int, largest: int) -> Batch:
    """The one batch in `records`; Refused as Kafka does for anything else."""
    reader = batches_in(records or b"")
    try:
        found = list(reader)
    except DecodeError as error:
        wrong_magic = records is not None and len(records) > 16 and records[16] != 2
        code = ErrorCode.INVALID_RECORD if wrong_magic else ErrorCode.CORRUPT_MESSAGE
        raise Refused(code, error.message) from None
    if len(found) != 1 or reader.trailing_bytes:
        raise Refused(
            ErrorCode.INVALID_RECORD,
            f"Produce requests with version {version} must contain exactly one record batch per partition",
        )
    batch = found[0]
    if len(batch.raw) > largest:
        raise Refused(
            ErrorCode.MESSAGE_TOO_LARGE, f"The batch of {len(batch.raw)} bytes exceeds the limit of {largest}"
        )
    if batch.compression == Compression.ZSTD and version < ZSTD_SINCE:
        raise Refused(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"Produce requests with version {version} may not use zstd",
        )
    if batch.control:
        raise Refused(ErrorCode.INVALID_RECORD, "Clients are not allowed to write control records")
    if batch.transactional and batch.producer_id < 0:
        raise Refused(ErrorCode.INVALID_RECORD, "a transactional batch needs a producer id")
    if batch.producer_id >= 0 and (batch.producer_epoch < 0 or batch.base_sequence < 0):
        raise Refused(ErrorCode.INVALID_RECORD, "an idempotent batch needs an epoch and a sequence number")
    return batch


APIS = (Api(ProduceRequest.API, produce, refuse),)
