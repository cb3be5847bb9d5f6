"""DescribeTransactions and ListTransactions: what operators see (KIP-664, KIP-994, KIP-1152)."""

from collections.abc import Iterable

from kgroup.domain import numbers_by_topic
from kgroup.errors import ErrorCode, Refused
from kgroup.patterns import Pattern, compile_regex
from kgroup.protocol.messages import describe_transactions as described
from kgroup.protocol.messages import list_transactions as listed
from kgroup.transactions.state import Status, Transaction

TITLES = {status.title for status in Status}


def describe(transactional_id: str, known: Transaction | None) -> described.TransactionState:
    """Return one transactional id; with an error code if there is none of this name."""
    if not transactional_id:
        return described.TransactionState(error_code=ErrorCode.INVALID_REQUEST)
    if known is None:
        return described.TransactionState(
            error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, transactional_id=transactional_id
        )
    topics = numbers_by_topic(known.partitions)
    return described.TransactionState(
        transactional_id=transactional_id,
        transaction_state=known.status.title,
        transaction_timeout_ms=known.timeout_ms,
        transaction_start_time_ms=known.started_ms,
        producer_id=known.producer_id,
        producer_epoch=known.producer_epoch,
        topics=tuple(described.TopicData(topic=t, partitions=p) for t, p in topics.items()),
    )


def list_transactions(
    request: listed.ListTransactionsRequest, known: Iterable[Transaction], now_ms: int
) -> listed.ListTransactionsResponse:
    """Return the transactional ids that pass every filter, and the unknown states among the filters."""
    states = set(request.state_filters)
    producers = set(request.producer_id_filters)
    pattern: Pattern | None = None
    if request.transactional_id_pattern:
        try:
            pattern = compile_regex(request.transactional_id_pattern)
        except Refused:
            raise Refused(ErrorCode.INVALID_REGULAR_EXPRESSION) from None
    matching = [
        listed.TransactionState(
            transactional_id=transaction.transactional_id,
            producer_id=transaction.producer_id,
            transaction_state=transaction.status.title,
        )
        for transaction in known
        if (not states or transaction.status.title in states)
        and (not producers or transaction.producer_id in producers)
        and (request.duration_filter < 0 or now_ms - transaction.started_ms > request.duration_filter)
        and (pattern is None or pattern.fullmatch(transaction.transactional_id))
    ]
    return listed.ListTransactionsResponse(
        unknown_state_filters=tuple(sorted(states - TITLES)), transaction_states=tuple(matching)
    )
