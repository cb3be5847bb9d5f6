"""One `__transaction_state` partition: a transaction coordinator, its log, and their order of changes."""

import logging
from collections.abc import Callable

from kgroup.domain import TRANSACTION_TOPIC
from kgroup.errors import DecodeError, ErrorCode, Refused, StorageError
from kgroup.log.interface import Log
from kgroup.protocol.batches import LogRecord
from kgroup.protocol.group_records import encode_key, encode_value
from kgroup.protocol.transaction_records import TransactionLogKey, decode_key, decode_value
from kgroup.runtime.clock import SystemClock
from kgroup.runtime.complaints import Complaints, line_of
from kgroup.transactions.config import TransactionConfig
from kgroup.transactions.coordinator import TransactionCoordinator
from kgroup.transactions.outcome import Markers, Outcome
from kgroup.transactions.state import Record

log = logging.getLogger(__name__)


class TransactionShard:
    """Appends what the coordinator decides, has the markers written, and appends that they are.

    `write_markers` returns whether every partition has its marker now, or is gone; if not, it is called
    again after a while. `new_producer_id` returns an id never used before.
    """

    def __init__(
        self,
        partition: int,
        log: Log,
        config: TransactionConfig,
        new_producer_id: Callable[[], int],
        write_markers: Callable[[Markers], bool],
        complaints: Complaints | None = None,
    ) -> None:
        self.partition = partition
        self.log = log
        self._config = config
        self._new_producer_id = new_producer_id
        self._write_markers = write_markers
        self._complaints = Complaints(SystemClock()) if complaints is None else complaints
        self.coordinator = TransactionCoordinator(config, new_producer_id)

    def load(self) -> None:
        """Rebuild the state from the log, whatever it was before.

        Raises StorageError or DecodeError for a log that cannot be read.
        """
        fresh = TransactionCoordinator(self._config, self._new_producer_id)
        for batch in self.log.batches(self.log.start_offset):
            for stored in [] if batch.control else batch.records:
                key = stored.key or b""
                if int.from_bytes(key[:2], "big") != TransactionLogKey.TYPE:
                    continue  # as in Kafka
                try:
                    fresh.replay(decode_key(key), decode_value(stored.value))
                except ValueError as error:
                    raise DecodeError(f"record at offset {stored.offset}: {error}") from None
        self.coordinator = fresh

    def begin(self, now_ms: int) -> None:
        """Start to serve: carry out ends that were decided before the last stop."""
        self._carry_out(self.coordinator.loaded().markers, now_ms)

    def run(self, operation: Callable[[TransactionCoordinator], Outcome], now_ms: int) -> Outcome:
        """Carry out an operation; return its outcome, which is in the log.

        Refused as the operation says, or with COORDINATOR_NOT_AVAILABLE when nothing could be appended.
        """
        outcome = operation(self.coordinator)
        try:
            self._append(outcome.records, now_ms)
        except StorageError as error:
            subject = f"{TRANSACTION_TOPIC}-{self.partition}"
            self._complaints.say(
                log, subject, f"nothing can be appended, requests are refused: {error.message}"
            )
            self.load()
            self.begin(now_ms)
            raise Refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, error.message) from None
        self._carry_out(outcome.markers, now_ms)
        return outcome

    def wake(self, now_ms: int) -> None:
        """Fire every timer that is due, one deadline after the other."""
        while (due := self.coordinator.next_wake_ms()) is not None and due <= now_ms:
            self.run(lambda coordinator: coordinator.wake(now_ms), now_ms)

    def next_wake_ms(self) -> int | None:
        """Return when `wake` has something to do next, or None."""
        return self.coordinator.next_wake_ms()

    def _carry_out(self, all_markers: list[Markers], now_ms: int) -> None:
        for markers in all_markers:
            name = markers.transactional_id
            written = self._write_markers(markers)
            if written:
                try:
                    self._append(self.coordinator.markers_written(name, now_ms).records, now_ms)
                except StorageError as error:
                    subject = f"{TRANSACTION_TOPIC}-{self.partition}"
                    self._complaints.say(log, subject, f"the end of {name} is tried again: {line_of(error)}")
                    written = False
            if not written:
                self.coordinator.markers_delayed(name, now_ms)

    def _append(self, records: list[Record], now_ms: int) -> None:
        if not records:
            return
        encoded = [LogRecord(encode_key(key), encode_value(value)) for key, value in records]
        self.log.append(encoded, timestamp_ms=now_ms)
        for key, value in records:
            self.coordinator.replay(key, value)
