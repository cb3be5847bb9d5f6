"""Sequence numbers of idempotent producers: a retried batch is stored once (KIP-98, KIP-360)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from kgroup.errors import ErrorCode, Refused
from kgroup.log.interface import Log
from kgroup.protocol.batches import Batch
from kgroup.runtime.cluster import Cluster

BATCHES_REMEMBERED = 5  # as many as a producer may have in flight
MAX_SEQUENCE = (1 << 31) - 1


@dataclass(slots=True)
class Producer:
    """A producer's newest batches in one partition, as (first sequence, last sequence, base offset)."""

    epoch: int
    batches: deque[tuple[int, int, int]] = field(default_factory=lambda: deque(maxlen=BATCHES_REMEMBERED))


def last_sequence(batch: Batch) -> int:
    found: int = (batch.base_sequence + batch.count - 1) & MAX_SEQUENCE
    return found


class PartitionProducers:
    """The producers of one partition, known from the batches in its log."""

    def __init__(self, batches: Iterable[Batch]) -> None:
        self._producers: dict[int, Producer] = {}
        for batch in batches:
            if batch.producer_id >= 0:
                self.appended(batch, batch.base_offset)

    def check(self, batch: Batch) -> int | None:
        """The base offset if the batch is stored already, None if it is the next one; else Refused."""
        known = self._producers.get(batch.producer_id)
        if known is None:
            return None
        if batch.producer_epoch < known.epoch:
            raise Refused(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Epoch of producer {batch.producer_id} is {batch.producer_epoch}, "
                f"which is smaller than the last seen epoch {known.epoch}",
            )
        first = batch.base_sequence
        if batch.producer_epoch > known.epoch:
            expected = 0
        else:
            wanted = (first, last_sequence(batch))
            for stored_first, stored_last, base_offset in known.batches:
                if wanted == (stored_first, stored_last):
                    return base_offset
            expected = (known.batches[-1][1] + 1) & MAX_SEQUENCE if known.batches else first
        if first != expected:
            raise Refused(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Out of order sequence number for producer {batch.producer_id}: "
                f"{first} (incoming seq. number), {expected} (expected)",
            )
        return None

    def appended(self, batch: Batch, base_offset: int) -> None:
        """The batch is in the log now."""
        known = self._producers.get(batch.producer_id)
        if known is None or known.epoch != batch.producer_epoch:
            known = self._producers[batch.producer_id] = Producer(batch.producer_epoch)
        if not batch.control:
            known.batches.append((batch.base_sequence, last_sequence(batch), base_offset))


class ProducerStates:
    """The producers of every partition, read from its log when the first idempotent batch comes."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._by_log: dict[tuple[bytes, int], PartitionProducers] = {}

    def of(self, topic: str, partition: int, log: Log) -> PartitionProducers:
        key = self._cluster.catalog.topics[topic].topic_id, partition
        found = self._by_log.get(key)
        if found is None:
            found = self._by_log[key] = PartitionProducers(log.batches(log.start_offset))
        return found
