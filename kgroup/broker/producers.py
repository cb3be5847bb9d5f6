"""The producers known to each partition: epochs, sequence numbers and open transactions.

A retried batch is stored once, a fenced producer writes no more, and readers learn how far records are
decided and which are aborted (KIP-98, KIP-360, KIP-890).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from kgroup.domain import NO_PRODUCER_EPOCH
from kgroup.errors import DecodeError, ErrorCode, Refused
from kgroup.log.interface import DamagedLog, Log
from kgroup.log.transactions import Transactions
from kgroup.protocol.batches import Batch
from kgroup.runtime.cluster import Cluster

BATCHES_REMEMBERED = 5  # as many as a producer may have in flight
MAX_SEQUENCE = (1 << 31) - 1
NO_SEQUENCE = -1


@dataclass(slots=True)
class Producer:
    """A producer's newest batches in one partition, as (first sequence, last sequence, base offset)."""

    epoch: int
    batches: deque[tuple[int, int, int]] = field(default_factory=lambda: deque(maxlen=BATCHES_REMEMBERED))
    last_timestamp: int = -1
    coordinator_epoch: int = -1

    @property
    def last_sequence(self) -> int:
        return self.batches[-1][1] if self.batches else NO_SEQUENCE


def last_sequence(batch: Batch) -> int:
    sequence: int = (batch.base_sequence + batch.count - 1) & MAX_SEQUENCE
    return sequence


class PartitionProducers:
    """The producers of one partition, known from the batches in its log and never behind it."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._next_offset = log.start_offset
        self._transactions = Transactions()
        self.known: dict[int, Producer] = {}
        self.catch_up()

    def catch_up(self) -> None:
        """Read what others have appended."""
        end = self._log.end_offset
        if self._next_offset < end:
            try:
                for batch in self._log.batches(self._next_offset):
                    self._saw(batch)
            except DecodeError as error:
                raise DamagedLog(error.message, hint="restore the partition's segments") from None
            self._next_offset = end

    @property
    def last_stable_offset(self) -> int:
        """Up to here, every transaction has ended."""
        if not self._transactions.open:
            return self._log.end_offset
        return max(self._transactions.first_unstable_offset(self._log.end_offset), self._log.start_offset)

    def aborted_between(self, start: int, end: int) -> list[tuple[int, int]]:
        """Return producer id and first offset of each aborted transaction with records between the two."""
        return [(t.producer_id, t.first_offset) for t in self._transactions.aborted_in(start, end)]

    def transaction_start(self, producer_id: int) -> int:
        """Return the first offset of the producer's open transaction, -1 for none."""
        return self._transactions.open.get(producer_id, -1)

    def check(self, batch: Batch, *, starts_at_zero: bool = False) -> int | None:
        """Return the base offset if the batch is stored already, None if it is the next one; else Refused.

        With `starts_at_zero`, an unknown producer is not an old one whose records are gone.
        """
        known = self.known.get(batch.producer_id)
        if known is None:
            if batch.producer_epoch < NO_PRODUCER_EPOCH:
                raise fenced(batch.producer_id, batch.producer_epoch, NO_PRODUCER_EPOCH)
            if starts_at_zero and batch.base_sequence:
                raise Refused(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"Invalid sequence number for new producer {batch.producer_id}: {batch.base_sequence}",
                )
            return None
        if batch.producer_epoch < known.epoch:
            raise fenced(batch.producer_id, batch.producer_epoch, known.epoch)
        first = batch.base_sequence
        if batch.producer_epoch > known.epoch:
            expected = 0
        else:
            sequences = (first, last_sequence(batch))
            for stored_first, stored_last, base_offset in known.batches:
                if sequences == (stored_first, stored_last):
                    return base_offset
            expected = (known.last_sequence + 1) & MAX_SEQUENCE
        if first != expected and known.epoch != NO_PRODUCER_EPOCH:
            raise Refused(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Out of order sequence number for producer {batch.producer_id}: "
                f"{first} (incoming seq. number), {expected} (expected)",
            )
        if not batch.transactional and batch.producer_id in self._transactions.open:
            raise Refused(
                ErrorCode.INVALID_TXN_STATE, f"Expected transactional write from producer {batch.producer_id}"
            )
        return None

    def check_marker(self, producer_id: int, epoch: int, *, newer: bool) -> None:
        """Refuse the marker of a fenced producer; with `newer` one that ends no open transaction, too.

        A repeated marker is not refused (KIP-1228).
        """
        known = self.known.get(producer_id)
        if known is None or epoch > known.epoch:
            return
        repeated = epoch == known.epoch and producer_id not in self._transactions.open
        if epoch < known.epoch or (newer and not repeated):
            raise fenced(producer_id, epoch, known.epoch)

    def appended(self, batch: Batch, base_offset: int) -> None:
        """Note that the checked batch is in the log now, at this offset."""
        if self._next_offset != base_offset:
            self.catch_up()
            return
        batch.base_offset = base_offset
        self._saw(batch)
        self._next_offset = base_offset + batch.count

    def _saw(self, batch: Batch) -> None:
        if batch.producer_id < 0:
            return
        self._transactions.saw(batch)
        known = self.known.get(batch.producer_id)
        if known is None or known.epoch != batch.producer_epoch:
            known = self.known[batch.producer_id] = Producer(batch.producer_epoch)
        known.last_timestamp = batch.max_timestamp
        if not batch.control:
            known.batches.append((batch.base_sequence, last_sequence(batch), batch.base_offset))
        elif (marker := batch.end_marker) is not None:
            known.coordinator_epoch = marker.coordinator_epoch


def fenced(producer_id: int, epoch: int, current: int) -> Refused:
    return Refused(
        ErrorCode.INVALID_PRODUCER_EPOCH,
        f"Epoch of producer {producer_id} is {epoch}, which is smaller than the last seen epoch {current}",
    )


class ProducerStates:
    """The producers of every partition, read from its log on first use."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._by_log: dict[tuple[bytes, int], PartitionProducers] = {}

    def of(self, topic: str, partition: int, log: Log) -> PartitionProducers:
        """Return the producers of a partition as of the end of its log."""
        key = self._cluster.catalog.topics[topic].topic_id, partition
        producers = self._by_log.get(key)
        if producers is None:
            producers = self._by_log[key] = PartitionProducers(log)
        else:
            producers.catch_up()
        return producers
