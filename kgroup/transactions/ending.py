"""EndTxn: whether a transaction may end as its producer wants, and the records of its end.

The first protocol ends a transaction under the producer's epoch, so a late request of an ended
transaction may fall into the next one. From transaction version 2 on, each end raises the epoch
(KIP-890): a request with the epoch before is a retry of the last end, one with the present epoch is new.
"""

from dataclasses import replace

from kgroup.domain import EndMarker
from kgroup.errors import ErrorCode, Refused
from kgroup.transactions.outcome import Markers
from kgroup.transactions.producers import ProducerEpoch
from kgroup.transactions.state import LATEST_VERSION, MAX_EPOCH, Status, Transaction

BUMPS_SINCE = LATEST_VERSION
COORDINATOR_EPOCH = 0
"""Of every marker: a partition of `__transaction_state` never changes its leader while the process lives."""


def first_protocol(known: Transaction, producer: ProducerEpoch, committed: bool) -> Status | None:
    """Return the status to write, None if the transaction has ended so already; Refused for anything else."""
    if known.producer_id != producer.producer_id:
        raise Refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if known.producer_epoch != producer.epoch:
        raise Refused(ErrorCode.PRODUCER_FENCED)
    if known.status is Status.ONGOING:
        return _decision(committed)
    if known.status is _result(committed):
        return None
    raise _refused(known, committed)


def second_protocol(known: Transaction, producer: ProducerEpoch, committed: bool) -> Status | None:
    """As `first_protocol`, for producers whose epoch rises with every transaction.

    They may also abort when nothing was added: they cannot know whether their first batch arrived.
    """
    # The end it retries used up its epochs, and gave it a new id in the lost answer.
    overflowed = (
        known.previous_producer_id == producer.producer_id
        and producer.epoch == MAX_EPOCH - 1
        and known.producer_epoch == 0
    )
    bumped = known.producer_epoch == producer.epoch + 1
    if known.producer_id != producer.producer_id and not overflowed:
        raise Refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    current = known.producer_epoch == producer.epoch
    # An end under way has raised the epoch: only its retry comes with the one before.
    if known.status.prepared:
        valid = bumped
    # Complete: the retry of its end, or an end of the transaction that would be next.
    elif known.status in (Status.COMPLETE_COMMIT, Status.COMPLETE_ABORT):
        valid = bumped or overflowed or current
    else:
        valid = current
    if not valid:
        raise Refused(ErrorCode.PRODUCER_FENCED)
    if known.status is Status.ONGOING:
        return _decision(committed)
    if known.status.idle:
        # A retry is answered as the first time, if it asks for the same end; a commit and an abort of one
        # transaction cannot both have been meant.
        if bumped or overflowed:
            if known.status is _result(committed):
                return None
        elif not committed:
            return Status.PREPARE_ABORT
    raise _refused(known, committed)


def prepared(
    known: Transaction, status: Status, version: int, next_producer_id: int, now_ms: int
) -> Transaction:
    """Return the transaction with its end decided; nothing can stop it from here on."""
    bumps = version >= BUMPS_SINCE
    return replace(
        known,
        status=status,
        previous_producer_id=known.producer_id,
        next_producer_id=next_producer_id,
        producer_epoch=min(known.producer_epoch + 1, MAX_EPOCH) if bumps else known.producer_epoch,
        started_ms=now_ms if known.status.idle else known.started_ms,
        updated_ms=now_ms,
        version=version,
    )


def markers_of(decided: Transaction) -> Markers:
    """Return the markers that carry out a decided end."""
    committed = decided.status is Status.PREPARE_COMMIT
    marker = EndMarker(decided.producer_id, decided.producer_epoch, committed, COORDINATOR_EPOCH)
    return Markers(decided.transactional_id, marker, decided.partitions, decided.version)


def _decision(committed: bool) -> Status:
    return Status.PREPARE_COMMIT if committed else Status.PREPARE_ABORT


def _result(committed: bool) -> Status:
    return Status.COMPLETE_COMMIT if committed else Status.COMPLETE_ABORT


def _refused(known: Transaction, committed: bool) -> Refused:
    # Decided as it asks, and under way: it must retry. Anything else it asks for can never be.
    if known.status is _decision(committed):
        return Refused(ErrorCode.CONCURRENT_TRANSACTIONS)
    return Refused(ErrorCode.INVALID_TXN_STATE)
