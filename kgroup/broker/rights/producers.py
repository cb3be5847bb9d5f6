"""Rules for producers: records, producer ids and transactions."""

from __future__ import annotations

from dataclasses import replace

from kgroup.broker.call import Answer, Call, NoResponse
from kgroup.broker.dispatch import AnyApi, Dispatcher
from kgroup.broker.produced import transactional
from kgroup.broker.rights.asker import Asker
from kgroup.broker.rights.rule import asked, by_id, entries_of
from kgroup.broker.topics import check_name
from kgroup.domain import INTERNAL_TOPICS
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.anatomy import Each, Entry
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from kgroup.protocol.messages.describe_producers import DescribeProducersRequest
from kgroup.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from kgroup.protocol.messages.init_producer_id import InitProducerIdRequest
from kgroup.protocol.messages.produce import ProduceRequest
from kgroup.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from kgroup.protocol.registry import ApiKey
from kgroup.protocol.requests import ALTER, CLUSTER_ACTION, WRITE_ID
from kgroup.security.acls import Operation, ResourceType
from kgroup.security.needs import Need

BATCHED_SINCE = 4  # AddPartitionsToTxn: sent by brokers only
_IDEMPOTENT_WRITE = Need(Operation.IDEMPOTENT_WRITE)
_TWO_PHASES = Need(Operation.TWO_PHASE_COMMIT, ResourceType.TRANSACTIONAL_ID, "transactional_id")
_WRITTEN = entries_of(ApiKey.PRODUCE, Each(Operation.WRITE))
_DESCRIBED = entries_of(ApiKey.DESCRIBE_TRANSACTIONS, Each(Operation.DESCRIBE))


def produce(asker: Asker, broker: Dispatcher, call: Call[ProduceRequest], api: AnyApi) -> Answer:
    """Require Write on each topic, and on the transactional id if anything is written in a transaction."""
    request = call.body
    if request.transactional_id is not None and any(
        transactional(data.records) for topic in request.topic_data for data in topic.partition_data
    ):
        WRITE_ID.check(asker, request)
    answer = _WRITTEN(asker, broker, call, api)
    names = (by_id(broker, topic) for topic in request.topic_data)
    if (
        request.acks
        or (answer is None or isinstance(answer, NoResponse))
        and all(name is None or asker.may(Operation.WRITE, ResourceType.TOPIC, name) for name in names)
    ):
        return answer
    return NoResponse.CLOSE_CONNECTION  # the only way to report that some of it may not be written


def init_producer_id(
    asker: Asker, broker: Dispatcher, call: Call[InitProducerIdRequest], api: AnyApi
) -> Answer:
    """Require Write on the transactional id; without one, IdempotentWrite, or Write on a possible topic."""
    request = call.body
    if request.transactional_id is not None:
        WRITE_ID.check(asker, request)
        if request.enable2_pc:
            _TWO_PHASES.check(asker, request)
    elif not asker.may_somewhere(Operation.WRITE, ResourceType.TOPIC):
        _IDEMPOTENT_WRITE.check(asker, request)
    return api.handle(broker, call)


def write_markers(
    asker: Asker, broker: Dispatcher, call: Call[WriteTxnMarkersRequest], api: AnyApi
) -> Answer:
    """Require Alter on the cluster, as operators have it, or ClusterAction, as brokers have it."""
    if not ALTER.met(asker, call.body):
        CLUSTER_ACTION.check(asker, call.body)
    return api.handle(broker, call)


def add_partitions(
    asker: Asker, broker: Dispatcher, call: Call[AddPartitionsToTxnRequest], api: AnyApi
) -> Answer:
    """Require Write on the transactional id and on each topic; one refused stops all others."""
    request = call.body
    if call.version >= BATCHED_SINCE:
        CLUSTER_ACTION.check(asker, request)
        return api.handle(broker, call)
    if not asker.may(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.v3_and_below_transactional_id):
        raise Refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    topics = request.v3_and_below_topics
    refused = {
        t.name
        for t in topics
        if t.name in INTERNAL_TOPICS or not asker.may(Operation.WRITE, ResourceType.TOPIC, t.name)
    }
    if not refused:
        return api.handle(broker, call)
    denied, skipped = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.OPERATION_NOT_ATTEMPTED
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def code(topic: str, partition: int) -> ErrorCode:
        if topic in refused:
            return denied
        known = broker.cluster.catalog.topics.get(topic)
        return skipped if known is not None and 0 <= partition < known.partitions else missing

    return AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=tuple(
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=tuple(
                    AddPartitionsToTxnPartitionResult(
                        partition_index=p, partition_error_code=code(topic.name, p)
                    )
                    for p in topic.partitions
                ),
            )
            for topic in topics
        )
    )


def describe_transactions(
    asker: Asker, broker: Dispatcher, call: Call[DescribeTransactionsRequest], api: AnyApi
) -> Answer:
    """Require Describe on each transactional id; show those of its partitions that may be described."""

    def finish(response: DescribeTransactionsResponse) -> Message:
        return replace(response, transaction_states=tuple(map(seen, response.transaction_states)))

    def seen(state: TransactionState) -> TransactionState:
        return replace(state, topics=tuple(t for t in state.topics if asker.describes(t.topic)))

    under = replace(api, handle=lambda of, part: _DESCRIBED(asker, of, part, api))
    return asked(broker, call, under, call.body, finish)


def _valid(broker: Dispatcher, entry: Entry) -> str | None:
    """Return the topic's name; None for an impossible one."""
    try:
        check_name(entry.name)
    except Refused as refused:
        if refused.code is ErrorCode.INVALID_TOPIC_EXCEPTION:
            return None
    name: str = entry.name
    return name


_PRODUCERS = entries_of(ApiKey.DESCRIBE_PRODUCERS, Each(Operation.READ), name=_valid)


def describe(asker: Asker, broker: Dispatcher, call: Call[DescribeProducersRequest], api: AnyApi) -> Answer:
    """Require Read on each topic; one with an impossible name is invalid for all callers."""
    return _PRODUCERS(asker, broker, call, api)
