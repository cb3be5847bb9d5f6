"""Offsets that a transaction holds open, and by which producer where visible (KIP-447, KIP-664).

Readers ask for stable offsets and wait until the transaction ends; one that never does blocks them for good.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kgroup.admin.discovery import Answers, ClusterView
from kgroup.admin.models import OpenProducer, TopicDescription
from kgroup.admin.read.offsets import ask_leaders, by_topic, fetched, reports_stable, unstable_of
from kgroup.admin.refusals import check, refused
from kgroup.domain import TRANSACTION_TOPIC, TopicPartition
from kgroup.errors import BrokerRefused, ErrorCode, KgroupError

ONGOING = ("Ongoing", "PrepareCommit", "PrepareAbort")


def unstable(
    cluster: ClusterView, partitions: Mapping[str, Collection[TopicPartition] | None]
) -> Answers[frozenset[TopicPartition]]:
    """Return each group's partitions (None: of all committed) whose offset a transaction holds open.

    Raise BrokerRefused with UNSUPPORTED_VERSION for groups of brokers before Kafka 2.5, which do not report
    it.
    """

    def ask(node: int, groups: Sequence[str], left_s: float) -> Answers[frozenset[TopicPartition]]:
        if not reports_stable(cluster, node):
            old = f"broker {node} does not report which offsets are stable"
            error = BrokerRefused(
                ErrorCode.UNSUPPORTED_VERSION, old, hint="Kafka 2.5 and later report which are"
            )
            return dict.fromkeys(groups, error)
        answer = fetched(cluster, node, {group: partitions[group] for group in groups}, left_s, stable=True)
        return {
            group: topics if isinstance(topics, KgroupError) else unstable_of(topics)
            for group, topics in answer.items()
        }

    return cluster.ask_coordinators(partitions, ask, idempotent=True)


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction that has not ended. Times in ms; -1 where the coordinator does not report them."""

    transactional_id: str
    producer_id: int
    state: str
    start_ms: int
    timeout_ms: int


def open_transactions(
    cluster: ClusterView, partitions: Iterable[TopicPartition], producer_ids: Iterable[int] = ()
) -> dict[TopicPartition, tuple[OpenTransaction, ...]]:
    """Return the transactions that wrote to each of these partitions and have not ended.

    Of some producers, or of all; only those this principal may see. Raise KgroupError when the brokers do not
    report them (before Kafka 3.0), or when none is known of a partition and a coordinator is down.
    """
    from kgroup.protocol.messages.describe_transactions import (
        DescribeTransactionsRequest,
        DescribeTransactionsResponse,
    )
    from kgroup.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse

    chosen = set(partitions)
    if not chosen:
        return {}
    transactions: dict[TopicPartition, list[OpenTransaction]] = {partition: [] for partition in chosen}
    for broker in cluster.brokers():
        request = ListTransactionsRequest(state_filters=ONGOING, producer_id_filters=tuple(producer_ids))
        listed = cluster.ask(broker.id, request, ListTransactionsResponse)
        check(listed.error_code, f"listing the transactions of broker {broker.id}")
        ids = tuple(state.transactional_id for state in listed.transaction_states)
        if not ids:
            continue
        asked = DescribeTransactionsRequest(transactional_ids=ids)
        # A broker describes the transactions that it coordinates.
        described = cluster.ask(broker.id, asked, DescribeTransactionsResponse)
        for state in described.transaction_states:
            if state.error_code:
                continue
            known = OpenTransaction(
                state.transactional_id,
                state.producer_id,
                state.transaction_state,
                state.transaction_start_time_ms,
                state.transaction_timeout_ms,
            )
            written = {TopicPartition(t.topic, n) for t in state.topics for n in t.partitions}
            for partition in written & chosen:
                transactions[partition].append(known)
    if not all(transactions.values()) and (down := _without_coordinator(cluster)):
        what = f"partition {down[0]} of {TRANSACTION_TOPIC} has no leader, so its transactions are not known"
        raise refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, TRANSACTION_TOPIC, what)
    return {partition: tuple(those) for partition, those in transactions.items()}


def seen_transactions(
    cluster: ClusterView, partitions: Iterable[TopicPartition]
) -> Mapping[TopicPartition, tuple[OpenTransaction, ...]]:
    """Return the same of all producers; none where they cannot be looked up."""
    try:
        return open_transactions(cluster, partitions)
    except KgroupError:
        return {}


def _without_coordinator(cluster: ClusterView) -> list[int]:
    topic = cluster.topics([TRANSACTION_TOPIC]).get(TRANSACTION_TOPIC)
    parts = topic.partitions if isinstance(topic, TopicDescription) else ()
    return [part.partition for part in parts if part.leader < 0]


def producers(
    cluster: ClusterView, places: Collection[TopicPartition], topics: Answers[TopicDescription]
) -> dict[TopicPartition, tuple[OpenProducer, ...]]:
    """Return the producers of open transactions, of partitions whose leader reports them."""
    from kgroup.protocol.messages.describe_producers import (
        DescribeProducersRequest,
        DescribeProducersResponse,
        TopicRequest,
    )

    def ask(
        leader: int, led: Sequence[TopicPartition]
    ) -> dict[TopicPartition, tuple[OpenProducer, ...] | KgroupError]:
        asked = tuple(
            TopicRequest(name=topic, partition_indexes=tuple(p.partition for p in those))
            for topic, those in by_topic(led)
        )
        answer = cluster.ask(leader, DescribeProducersRequest(topics=asked), DescribeProducersResponse)
        return {
            TopicPartition(topic.name, data.partition_index): tuple(
                OpenProducer(p.producer_id, p.producer_epoch, p.current_txn_start_offset, p.last_timestamp)
                for p in data.active_producers
                if p.current_txn_start_offset >= 0
            )
            for topic in answer.topics
            for data in topic.partitions
            if not data.error_code
        }

    told = ask_leaders(cluster, places, topics, ask)
    return {partition: those for partition, those in told.items() if not isinstance(those, KgroupError)}
