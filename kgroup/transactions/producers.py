"""InitProducerId: the id and epoch of a transactional id's next producer (KIP-98, KIP-360)."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from kgroup.domain import NO_PRODUCER_EPOCH
from kgroup.errors import ErrorCode, Refused
from kgroup.transactions.state import (
    NO_TIME,
    Status,
    Transaction,
    is_exhausted,
)


class ProducerEpoch(NamedTuple):
    """A producer's id and epoch."""

    producer_id: int
    epoch: int


class Started(NamedTuple):
    """The transactional id with its new producer, and the epoch a retry of the request may still name."""

    transaction: Transaction
    last_epoch: int


def refuse_if_other(known: Transaction, expected: ProducerEpoch | None) -> None:
    """Refuse a producer that is not this id's current one, and any while an end is being carried out."""
    # It names a producer to continue as (KIP-360): the present one, the one before if its epochs were used up
    # (the answer with the new id was lost), or any of an id whose epoch was never sent.
    if expected is not None and not (
        known.producer_epoch == NO_PRODUCER_EPOCH
        or expected.producer_id == known.producer_id
        or (expected.producer_id == known.previous_producer_id and is_exhausted(expected.epoch))
    ):
        raise Refused(ErrorCode.PRODUCER_FENCED)
    # Markers of the last end are on their way: they must precede anything of a new transaction.
    if known.status.prepared:
        raise Refused(ErrorCode.CONCURRENT_TRANSACTIONS)


def next_producer(
    known: Transaction,
    expected: ProducerEpoch | None,
    last_epoch: int,
    timeout_ms: int,
    now_ms: int,
    new_producer_id: Callable[[], int],
) -> Started:
    """Return the next epoch, or a new id when this one's epochs are used up."""
    fresh = replace(
        known,
        status=Status.EMPTY,
        previous_producer_id=known.producer_id,
        timeout_ms=timeout_ms,
        partitions=frozenset(),
        started_ms=NO_TIME,
        updated_ms=now_ms,
    )
    # Epochs are int16: a new id takes over before they end, where the last one stays free for fencing.
    if known.epoch_exhausted and (expected is None or expected.epoch == known.producer_epoch):
        rotated = replace(fresh, producer_id=new_producer_id(), producer_epoch=0)
        return Started(rotated, NO_PRODUCER_EPOCH if expected is None else known.producer_epoch)
    bumped = known.producer_epoch + 1
    # A new process: the epoch fences any earlier process under this transactional id (KIP-98).
    if expected is None:
        return Started(replace(fresh, producer_epoch=bumped), NO_PRODUCER_EPOCH)
    # The same process continues after an error that only a new epoch clears (KIP-360).
    if known.producer_epoch in (NO_PRODUCER_EPOCH, expected.epoch):
        return Started(replace(fresh, producer_epoch=bumped), known.producer_epoch)
    if expected.epoch == last_epoch:  # a retry whose first answer was lost: no other producer came between
        return Started(fresh, last_epoch)
    raise Refused(ErrorCode.PRODUCER_FENCED)
