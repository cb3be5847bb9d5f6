"""AddPartitionsToTxn and AddOffsetsToTxn: what takes part in a transaction."""

from collections.abc import Collection

from kgroup.domain import TopicPartition
from kgroup.errors import ErrorCode
from kgroup.transactions.state import Record, Status, Transaction


def add(known: Transaction, added: Collection[TopicPartition], version: int, now_ms: int) -> list[Record]:
    """Return the record that adds these partitions to the transaction; none if it has them."""
    # A retry, or a producer that sends to a partition again: nothing changes, so nothing is written.
    if known.status is Status.ONGOING and known.partitions.issuperset(added):
        return []
    return [known.with_partitions(added, now_ms, version).record()]


def verify(known: Transaction, requested: Collection[TopicPartition]) -> dict[TopicPartition, ErrorCode]:
    """Return NONE for each partition that the transaction has, TRANSACTION_ABORTABLE for the others."""
    return {
        partition: ErrorCode.NONE if partition in known.partitions else ErrorCode.TRANSACTION_ABORTABLE
        for partition in requested
    }
