"""The transaction coordinator of one `__transaction_state` partition (KIP-98, KIP-360, KIP-890).

Deterministic and free of I/O. The host appends an outcome's records as one batch, passes each to `replay`,
writes the markers, and only then answers. State and timers follow from the records alone: a coordinator
that is loaded again resumes where the last one ended.
"""

from collections.abc import Callable, Collection, Mapping
from enum import StrEnum

from kgroup.domain import TopicPartition
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.transaction_records import TransactionLogKey, TransactionLogValue
from kgroup.timers import TimerKey, Timers
from kgroup.transactions import ending, partitions, producers
from kgroup.transactions.config import TransactionConfig
from kgroup.transactions.outcome import Outcome
from kgroup.transactions.state import Status, Transaction, replayed


class TimerKind(StrEnum):
    """The purposes of a transactional id's timers: its transaction, the id, markers still to be written."""

    TIMEOUT = "timeout"
    EXPIRY = "expiry"
    RETRY = "retry"


class TransactionCoordinator:
    """The state machine; `new_producer_id` returns an id that was never used before.

    Operations raise Refused for what they do not do; nothing has changed then.
    """

    def __init__(self, config: TransactionConfig, new_producer_id: Callable[[], int]) -> None:
        self.config = config
        self._new_producer_id = new_producer_id
        self._transactions: dict[str, Transaction] = {}
        self._last_epochs: dict[str, int] = {}  # soft, as in Kafka: what a retried InitProducerId may name
        self._timers = Timers()

    @property
    def transactions(self) -> Mapping[str, Transaction]:
        """Every transactional id that is known; not to be changed."""
        return self._transactions

    def init_producer_id(
        self, transactional_id: str, timeout_ms: int, expected: producers.ProducerEpoch | None, now_ms: int
    ) -> Outcome:
        """Give the id's next producer its epoch, which fences all before it.

        An open transaction is aborted first; CONCURRENT_TRANSACTIONS makes the client retry.
        `expected` is the producer that wants to continue after an error (KIP-360).
        """
        if not transactional_id:
            raise Refused(ErrorCode.INVALID_REQUEST)
        # A transaction delays all readers of committed data: the broker limits for how long.
        if not 0 < timeout_ms <= self.config.max_timeout_ms:
            raise Refused(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        known = self._transactions.get(transactional_id)
        last_epoch = self._last_epochs.get(transactional_id, -1)
        if known is not None:
            producers.refuse_if_other(known, expected)
            # Of a process that died: it is aborted, or readers of committed data would wait for it for ever
            # (KIP-98).
            if known.status is Status.ONGOING:
                return self._fence(known, now_ms, ErrorCode.CONCURRENT_TRANSACTIONS)
        started = producers.next_producer(
            known or Transaction(transactional_id, self._new_producer_id()),
            expected,
            last_epoch,
            timeout_ms,
            now_ms,
            self._new_producer_id,
        )
        self._last_epochs[transactional_id] = started.last_epoch
        made = started.transaction
        return Outcome([made.record()], producer_id=made.producer_id, producer_epoch=made.producer_epoch)

    def add_partitions(
        self,
        transactional_id: str,
        producer: producers.ProducerEpoch,
        added: Collection[TopicPartition],
        version: int,
        now_ms: int,
    ) -> Outcome:
        """Make partitions part of the transaction, which begins with the first; version is the client's."""
        known = self._owned(transactional_id, producer)
        return Outcome(partitions.add(known, added, version, now_ms))

    def verify_partitions(
        self, transactional_id: str, producer: producers.ProducerEpoch, requested: Collection[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """Return for each partition whether the transaction has it: NONE, or TRANSACTION_ABORTABLE."""
        return partitions.verify(self._owned(transactional_id, producer), requested)

    def end(
        self,
        transactional_id: str,
        producer: producers.ProducerEpoch,
        committed: bool,
        version: int,
        now_ms: int,
    ) -> Outcome:
        """Decide the transaction. From version 2 on the answer brings the producer's next id and epoch."""
        known = self._known(transactional_id)
        if version < ending.BUMPS_SINCE:
            status = ending.first_protocol(known, producer, committed)
        else:
            status = ending.second_protocol(known, producer, committed)
        if status is None:
            bumped = version >= ending.BUMPS_SINCE
            return Outcome(
                [],
                producer_id=known.producer_id if bumped else -1,
                producer_epoch=known.producer_epoch if bumped else -1,
            )
        return self._prepare(known, status, version, now_ms)

    def markers_written(self, transactional_id: str, now_ms: int) -> Outcome:
        """Complete a prepared transaction: every partition has its marker, or is gone."""
        known = self._transactions.get(transactional_id)
        if known is None or not known.status.prepared:
            return Outcome()
        return Outcome([known.completed(now_ms).record()])

    def markers_delayed(self, transactional_id: str, now_ms: int) -> None:
        """Note that some marker could not be written; a later `wake` asks for them again."""
        self._timers.arm(TimerKey(TimerKind.RETRY, transactional_id), now_ms + self.config.marker_retry_ms)

    def wake(self, now_ms: int) -> Outcome:
        """Fire the one timer that fell due first; nothing if none has. Call until `next_wake_ms` is later."""
        due = self._timers.pop_due(now_ms)
        known = self._transactions.get(due[0].group_id) if due is not None else None
        if due is None or known is None:
            return Outcome()
        kind = due[0].kind
        # Each checks the status again: a timer that a later record made needless does nothing.
        if kind == TimerKind.TIMEOUT and known.status is Status.ONGOING:
            return self._fence(known, now_ms, ErrorCode.NONE)
        if kind == TimerKind.EXPIRY and known.status.idle:
            return Outcome([known.tombstone()])
        if kind == TimerKind.RETRY and known.status.prepared:
            return Outcome(markers=[ending.markers_of(known)])
        return Outcome()

    def next_wake_ms(self) -> int | None:
        """Return when the next timer falls due, or None."""
        return self._timers.next_ms()

    def loaded(self) -> Outcome:
        """Begin service after the last record was replayed: carry out ends that were decided."""
        prepared = [t for t in self._transactions.values() if t.status.prepared]
        return Outcome(markers=[ending.markers_of(transaction) for transaction in prepared])

    def replay(self, key: TransactionLogKey, value: TransactionLogValue | None) -> None:
        """Apply a record of the log; ValueError for an unknown state."""
        name = key.transactional_id
        if value is None:
            self._transactions.pop(name, None)
            self._last_epochs.pop(name, None)
            for kind in TimerKind:
                self._timers.cancel(TimerKey(kind, name))
            return
        now = self._transactions[name] = replayed(key, value)
        timeout, expiry = TimerKey(TimerKind.TIMEOUT, name), TimerKey(TimerKind.EXPIRY, name)
        # From the start of the transaction, not from its last record: adding partitions gains no time.
        if now.status is Status.ONGOING:
            self._timers.arm(timeout, now.started_ms + now.timeout_ms + 1)
        else:
            self._timers.cancel(timeout)
        if now.status.idle:
            self._timers.arm(expiry, now.updated_ms + self.config.id_expiration_ms)
        else:
            self._timers.cancel(expiry)

    def _known(self, transactional_id: str) -> Transaction:
        if not transactional_id:
            raise Refused(ErrorCode.INVALID_REQUEST)
        known = self._transactions.get(transactional_id)
        if known is None:
            raise Refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return known

    def _owned(self, transactional_id: str, producer: producers.ProducerEpoch) -> Transaction:
        """Return the transaction, if `producer` is its current one and its last end is complete."""
        known = self._known(transactional_id)
        if known.producer_id != producer.producer_id:
            raise Refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if known.producer_epoch != producer.epoch:
            raise Refused(ErrorCode.PRODUCER_FENCED)
        # The last transaction's markers are on their way and would end what is added now.
        if known.status.prepared:
            raise Refused(ErrorCode.CONCURRENT_TRANSACTIONS)
        return known

    def _fence(self, known: Transaction, now_ms: int, code: ErrorCode) -> Outcome:
        """Abort an open transaction under a new epoch that its producer does not know."""
        outcome = self._prepare(known, Status.PREPARE_ABORT, ending.BUMPS_SINCE, now_ms)
        return Outcome(outcome.records, outcome.markers, code)

    def _prepare(self, known: Transaction, status: Status, version: int, now_ms: int) -> Outcome:
        bumps = version >= ending.BUMPS_SINCE
        next_id = self._new_producer_id() if bumps and known.epoch_exhausted else -1
        decided = ending.prepared(known, status, version, next_id, now_ms)
        outcome = Outcome([decided.record()], [ending.markers_of(decided)])
        if bumps:
            self._last_epochs[known.transactional_id] = known.producer_epoch
            after = decided.completed(now_ms)
            outcome.producer_id, outcome.producer_epoch = after.producer_id, after.producer_epoch
        return outcome
