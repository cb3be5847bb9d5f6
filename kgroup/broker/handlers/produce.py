"""Produce: check a batch, append it, notify its readers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kgroup.broker.call import Answer, Call, NoResponse
from kgroup.broker.dispatch import Api, Dispatcher, Work
from kgroup.broker.handlers.fetch import leader_of, node_endpoints
from kgroup.broker.handlers.partitions import code_of, partition_log, topic_name
from kgroup.broker.handlers.transactions import without_abortable
from kgroup.broker.produced import InvalidRecords, checked, header_of, sole_batch, transactional
from kgroup.domain import INTERNAL_TOPICS, TopicPartition
from kgroup.errors import ErrorCode, Refused, StorageError
from kgroup.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from kgroup.protocol.requests import refusal
from kgroup.transactions.producers import ProducerEpoch

ADMIN_CLIENT = "__admin_client"  # Kafka lets this client id write to internal topics
LEADERS_SINCE = 10
ABORTABLE_SINCE = 11  # TRANSACTION_ABORTABLE is understood
IMPLICIT_SINCE = 12  # a batch adds its partition to the transaction (KIP-890)
_RETRIABLE = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


def produce(broker: Dispatcher, call: Call[ProduceRequest]) -> Answer:
    """Append what was sent, each partition on its own; with acks=0 a failure ends the connection."""
    return broker.in_turns(call, _produce(broker, call))


def _produce(broker: Dispatcher, call: Call[ProduceRequest]) -> Work:
    request = call.body
    try:
        if request.acks not in (-1, 0, 1):
            raise Refused(ErrorCode.INVALID_REQUIRED_ACKS)
        # What is wrong with one partition's data refuses all, as in Kafka.
        in_transaction = [
            transactional(data.records) for topic in request.topic_data for data in topic.partition_data
        ]
        if not request.transactional_id and any(in_transaction):
            raise Refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    except Refused as refused:
        answer = refusal(request, refused.code, refused.message)
        return answer if request.acks else NoResponse.CLOSE_CONNECTION
    leaders: set[int] = set()
    responses = []
    for topic in request.topic_data:
        of_topic = []
        for data in topic.partition_data:
            of_topic.append(_appended(broker, call, topic, data, leaders))
            yield
        responses.append(
            TopicProduceResponse(
                name=topic.name, topic_id=topic.topic_id, partition_responses=tuple(of_topic)
            )
        )
    response = ProduceResponse(
        responses=tuple(responses),
        node_endpoints=node_endpoints(broker, call, leaders) if leaders else (),
    )
    if request.acks:
        return response
    failed = any(p.error_code for topic in response.responses for p in topic.partition_responses)
    return NoResponse.CLOSE_CONNECTION if failed else NoResponse.NO_OP


def _refused(
    index: int, code: ErrorCode, message: str | None, records: Iterable[tuple[int, str]] = ()
) -> PartitionProduceResponse:
    errors = tuple(
        BatchIndexAndErrorMessage(batch_index=at, batch_index_error_message=why) for at, why in records
    )
    return PartitionProduceResponse(
        index=index, error_code=code, base_offset=-1, error_message=message, record_errors=errors
    )


def _appended(
    broker: Dispatcher,
    call: Call[ProduceRequest],
    topic: TopicProduceData,
    data: PartitionProduceData,
    leaders: set[int],
) -> PartitionProduceResponse:
    """Append to a partition, or return why not; the leader of one led elsewhere is added to `leaders`."""
    try:
        return _partition(broker, call, topic, data)
    except Refused as refused:
        records = refused.records if isinstance(refused, InvalidRecords) else ()
        answer = _refused(data.index, refused.code, refused.message, records)
        if refused.code is ErrorCode.NOT_LEADER_OR_FOLLOWER and call.version >= LEADERS_SINCE:
            name = topic_name(broker, topic.name, topic.topic_id)
            leader = leader_of(broker, name, data.index)
            leaders.add(leader.leader_id)
            answer = replace(answer, current_leader=leader)
        return answer
    except StorageError as error:
        return _refused(data.index, code_of(broker, call, error), error.message)


def _partition(
    broker: Dispatcher, call: Call[ProduceRequest], topic: TopicProduceData, data: PartitionProduceData
) -> PartitionProduceResponse:
    name = topic_name(broker, topic.name, topic.topic_id)
    _, log = partition_log(broker, call.node, name, data.index)
    batch = header_of(sole_batch(data.records, call.version))
    implicit = batch.transactional and call.version >= IMPLICIT_SINCE
    if batch.transactional and batch.producer_id >= 0:
        # Its producer needs an open transaction with this partition; newer clients add it so.
        transactional_id = call.body.transactional_id
        assert transactional_id
        producer = ProducerEpoch(batch.producer_id, batch.producer_epoch)
        partition = TopicPartition(name, data.index)
        code = broker.transactions.admit(transactional_id, producer, [partition], add=implicit)
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
    if name in INTERNAL_TOPICS and call.client_id != ADMIN_CLIENT:
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {name}")
    settings = broker.cluster.topic_settings(name, call.node)
    now_ms = broker.clock.now_ms()
    batch = checked(batch, settings, now_ms)
    producers = broker.producers.of(name, data.index, log)
    base = producers.check(batch, starts_at_zero=implicit) if batch.producer_id >= 0 else None
    append_time = -1
    if base is None:
        if settings.append_time:
            append_time = now_ms
        base = log.append_batches(batch.raw, append_time_ms=now_ms if settings.append_time else None)[0]
        producers.appended(batch, base)
        if broker.watchers.by_key:
            broker.watchers.notify((name, data.index))
    return PartitionProduceResponse(
        index=data.index, base_offset=base, log_append_time_ms=append_time, log_start_offset=log.start_offset
    )


APIS = (Api(ProduceRequest, produce),)
