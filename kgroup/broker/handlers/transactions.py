"""Requests of transactional producers, and operators' requests about transactions."""

from __future__ import annotations

from collections.abc import Iterable

from kgroup.broker.call import Call
from kgroup.broker.dispatch import Api, Dispatcher
from kgroup.broker.handlers.repeats import as_often_as_asked
from kgroup.domain import OFFSETS_TOPIC, TopicPartition
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.codec import Message
from kgroup.protocol.messages import describe_transactions as described
from kgroup.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kgroup.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from kgroup.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from kgroup.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from kgroup.transactions.describe import describe, list_transactions
from kgroup.transactions.outcome import Outcome
from kgroup.transactions.producers import ProducerEpoch
from kgroup.transactions.state import LATEST_VERSION

FENCED_SINCE = 2  # of AddPartitionsToTxn, AddOffsetsToTxn and EndTxn: PRODUCER_FENCED is understood
BATCHED_SINCE, ABORTABLE_SINCE = 4, 5  # of AddPartitionsToTxn
BUMPED_SINCE = 5  # of EndTxn: the client continues under the epoch in the answer


def understood(code: ErrorCode, version: int, since: int = FENCED_SINCE) -> ErrorCode:
    """Return PRODUCER_FENCED only to clients that know it."""
    fenced = code is ErrorCode.PRODUCER_FENCED and version < since
    return ErrorCode.INVALID_PRODUCER_EPOCH if fenced else code


def add_partitions(broker: Dispatcher, call: Call[AddPartitionsToTxnRequest]) -> AddPartitionsToTxnResponse:
    """Add partitions of one transaction, or from version 4 of many: all of a transaction's or none."""
    request = call.body
    if call.version >= BATCHED_SINCE:
        return AddPartitionsToTxnResponse(
            results_by_transaction=tuple(
                AddPartitionsToTxnResult(
                    transactional_id=transaction.transactional_id,
                    topic_results=_added(broker, call, transaction),
                )
                for transaction in request.transactions
            )
        )
    only = AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_added(broker, call, only))


def _added(
    broker: Dispatcher, call: Call[Message], transaction: AddPartitionsToTxnTransaction
) -> tuple[AddPartitionsToTxnTopicResult, ...]:
    partitions = [TopicPartition(topic.name, p) for topic in transaction.topics for p in topic.partitions]
    absent = {p for p in partitions if broker.cluster.log(p.topic, p.partition) is None}
    if absent:
        missing, skipped = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OPERATION_NOT_ATTEMPTED
        return _results(transaction.topics, {p: missing if p in absent else skipped for p in partitions})
    name = transaction.transactional_id
    producer = ProducerEpoch(transaction.producer_id, transaction.producer_epoch)
    try:
        if transaction.verify_only:
            coordinator = broker.transactions.coordinator_of(name, call.node)
            codes = coordinator.verify_partitions(name, producer, partitions)
        else:
            version = LATEST_VERSION if call.version >= BATCHED_SINCE else 0
            outcome = broker.transactions.run(
                name, lambda c, now: c.add_partitions(name, producer, partitions, version, now), call.node
            )
            codes = dict.fromkeys(partitions, outcome.code)
    except Refused as refused:
        codes = dict.fromkeys(partitions, refused.code)
    if BATCHED_SINCE <= call.version < ABORTABLE_SINCE:
        codes = {p: without_abortable(code) for p, code in codes.items()}
    return _results(transaction.topics, {p: understood(code, call.version) for p, code in codes.items()})


def without_abortable(code: ErrorCode) -> ErrorCode:
    """Return the code for clients that do not know TRANSACTION_ABORTABLE."""
    return ErrorCode.INVALID_TXN_STATE if code is ErrorCode.TRANSACTION_ABORTABLE else code


def _results(
    topics: Iterable[AddPartitionsToTxnTopic], codes: dict[TopicPartition, ErrorCode]
) -> tuple[AddPartitionsToTxnTopicResult, ...]:
    return tuple(
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=tuple(
                AddPartitionsToTxnPartitionResult(
                    partition_index=p, partition_error_code=codes[TopicPartition(topic.name, p)]
                )
                for p in topic.partitions
            ),
        )
        for topic in topics
    )


def add_offsets(broker: Dispatcher, call: Call[AddOffsetsToTxnRequest]) -> AddOffsetsToTxnResponse:
    """Make the offsets partition of a group part of the transaction."""
    request = call.body
    name, producer = request.transactional_id, ProducerEpoch(request.producer_id, request.producer_epoch)
    added = [TopicPartition(OFFSETS_TOPIC, broker.partition_of(request.group_id))]
    try:
        outcome = broker.transactions.run(
            name, lambda c, now: c.add_partitions(name, producer, added, 0, now), call.node
        )
    except Refused as refused:
        return AddOffsetsToTxnResponse(error_code=understood(refused.code, call.version))
    return AddOffsetsToTxnResponse(error_code=outcome.code)


def end(broker: Dispatcher, call: Call[EndTxnRequest]) -> EndTxnResponse:
    """Commit or abort; when the answer is sent, the transaction has ended for every reader."""
    request = call.body
    name, producer = request.transactional_id, ProducerEpoch(request.producer_id, request.producer_epoch)
    version = LATEST_VERSION if call.version >= BUMPED_SINCE else 0
    try:
        ended: Outcome = broker.transactions.run(
            name, lambda c, now: c.end(name, producer, request.committed, version, now), call.node
        )
    except Refused as refused:
        return EndTxnResponse(error_code=understood(refused.code, call.version))
    return EndTxnResponse(
        error_code=ended.code, producer_id=ended.producer_id, producer_epoch=ended.producer_epoch
    )


def describe_transactions(
    broker: Dispatcher, call: Call[described.DescribeTransactionsRequest]
) -> described.DescribeTransactionsResponse:
    """Return each transactional id by itself; NOT_COORDINATOR for one that another broker coordinates."""
    request = call.body
    states = []
    for name in as_often_as_asked(request.transactional_ids, str):
        try:
            known = broker.transactions.coordinator_of(name, call.node).transactions.get(name)
            states.append(describe(name, known))
        except Refused as refused:
            states.append(described.TransactionState(error_code=refused.code, transactional_id=name))
    return described.DescribeTransactionsResponse(transaction_states=tuple(states))


def list_all(broker: Dispatcher, call: Call[ListTransactionsRequest]) -> ListTransactionsResponse:
    """Return the transactional ids this broker coordinates."""
    request = call.body
    known = [t for c in broker.transactions.coordinators_at(call.node) for t in c.transactions.values()]
    return list_transactions(request, known, broker.clock.now_ms())


APIS = (
    Api(AddPartitionsToTxnRequest, add_partitions),
    Api(AddOffsetsToTxnRequest, add_offsets),
    Api(EndTxnRequest, end),
    Api(described.DescribeTransactionsRequest, describe_transactions),
    Api(ListTransactionsRequest, list_all),
)
