"""A transactional id in its newest record of `__transaction_state`, and the records it turns into."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import TypeAlias

from kgroup.domain import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, TopicPartition, numbers_by_topic
from kgroup.protocol.transaction_records import PartitionsSchema, TransactionLogKey, TransactionLogValue

MAX_EPOCH = (1 << 15) - 1
NO_TIME = -1
LATEST_VERSION = 2
"""The transaction.version we serve: epochs rise with every transaction (KIP-890)."""

Record: TypeAlias = tuple[TransactionLogKey, TransactionLogValue | None]
"""One record of `__transaction_state`; a None value is a tombstone."""


class Status(IntEnum):
    """State of a transactional id, as it is numbered in the log."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def title(self) -> str:
        """Kafka's name for it."""
        return "".join(word.capitalize() for word in self.name.split("_"))

    @property
    def prepared(self) -> bool:
        """Whether the end is decided, and its markers are being written."""
        return self in (Status.PREPARE_COMMIT, Status.PREPARE_ABORT)

    @property
    def idle(self) -> bool:
        """Whether no transaction is under way."""
        return self in (Status.EMPTY, Status.COMPLETE_COMMIT, Status.COMPLETE_ABORT)


@dataclass(frozen=True, slots=True)
class Transaction:
    """Ids and epochs are -1 when unset, times in ms.

    `version` is the client's transaction version; `next_producer_id` takes over when the transaction ends,
    as the epochs of this one are used up.
    """

    transactional_id: str
    producer_id: int
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    timeout_ms: int = 0
    status: Status = Status.EMPTY
    partitions: frozenset[TopicPartition] = field(default_factory=frozenset)
    updated_ms: int = NO_TIME
    started_ms: int = NO_TIME
    version: int = 0

    @property
    def epoch_exhausted(self) -> bool:
        return is_exhausted(self.producer_epoch)

    def record(self) -> Record:
        """Return the record that gives a coordinator exactly this."""
        value = TransactionLogValue(
            producer_id=self.producer_id,
            previous_producer_id=self.previous_producer_id,
            next_producer_id=self.next_producer_id,
            producer_epoch=self.producer_epoch,
            transaction_timeout_ms=self.timeout_ms,
            transaction_status=int(self.status),
            transaction_partitions=None
            if self.status is Status.EMPTY
            else tuple(
                PartitionsSchema(topic=topic, partition_ids=ids)
                for topic, ids in numbers_by_topic(self.partitions).items()
            ),
            transaction_last_update_timestamp_ms=self.updated_ms,
            transaction_start_timestamp_ms=self.started_ms,
            client_transaction_version=self.version,
        )
        return TransactionLogKey(transactional_id=self.transactional_id), value

    def tombstone(self) -> Record:
        """Return the tombstone that removes this id from a coordinator."""
        return TransactionLogKey(transactional_id=self.transactional_id), None

    def with_partitions(self, added: Iterable[TopicPartition], now_ms: int, version: int) -> Transaction:
        """Return it Ongoing, with more partitions; the transaction starts now unless it has."""
        return replace(
            self,
            status=Status.ONGOING,
            previous_producer_id=self.producer_id,
            partitions=self.partitions | frozenset(added),
            started_ms=now_ms if self.status.idle else self.started_ms,
            updated_ms=now_ms,
            version=version,
        )

    def completed(self, now_ms: int) -> Transaction:
        """Return the ended transaction: every partition has its marker."""
        committed = self.status is Status.PREPARE_COMMIT
        moves_on = self.version >= LATEST_VERSION and self.next_producer_id != NO_PRODUCER_ID
        return replace(
            self,
            status=Status.COMPLETE_COMMIT if committed else Status.COMPLETE_ABORT,
            producer_id=self.next_producer_id if moves_on else self.producer_id,
            previous_producer_id=self.producer_id,
            next_producer_id=NO_PRODUCER_ID,
            producer_epoch=0 if moves_on else self.producer_epoch,
            partitions=frozenset(),
            updated_ms=now_ms,
        )


def is_exhausted(epoch: int) -> bool:
    """Return whether an epoch is a producer's last; one more is kept for fencing it."""
    return epoch >= MAX_EPOCH - 1


def replayed(key: TransactionLogKey, value: TransactionLogValue) -> Transaction:
    """Return the transaction in a record; ValueError for a state Kafka does not have."""
    return Transaction(
        transactional_id=key.transactional_id,
        producer_id=value.producer_id,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        producer_epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        status=Status(value.transaction_status),
        partitions=frozenset(
            TopicPartition(topic.topic, partition)
            for topic in value.transaction_partitions or ()
            for partition in topic.partition_ids
        ),
        updated_ms=value.transaction_last_update_timestamp_ms,
        started_ms=value.transaction_start_timestamp_ms,
        version=value.client_transaction_version,
    )
