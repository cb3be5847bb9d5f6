"""A transaction coordinator without a host: records kept in a list, markers written on demand."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from kgroup.domain import TopicPartition
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.group_records import encode_key, encode_value
from kgroup.protocol.transaction_records import (
    TransactionLogKey,
    TransactionLogValue,
    decode_key,
    decode_value,
)
from kgroup.transactions.config import TransactionConfig
from kgroup.transactions.coordinator import TransactionCoordinator
from kgroup.transactions.outcome import Markers, Outcome
from kgroup.transactions.producers import ProducerEpoch
from kgroup.transactions.state import Record, Transaction

A, B = TopicPartition("a", 0), TopicPartition("b", 1)


class Machine:
    """Carries out operations as a host does; after each, a coordinator made from the records is the same."""

    def __init__(self, config: TransactionConfig | None = None, now_ms: int = 1000) -> None:
        self.config = config or TransactionConfig()
        self.now_ms = now_ms
        self.ids = itertools.count(7)
        self.log: list[Record] = []
        self.markers: list[Markers] = []
        self.coordinator = self._fresh()

    def run(self, operation: Callable[[TransactionCoordinator, int], Outcome]) -> Outcome:
        """An outcome with its records replayed; its markers wait in `markers`."""
        outcome = operation(self.coordinator, self.now_ms)
        self._append(outcome)
        return outcome

    def code(self, operation: Callable[[TransactionCoordinator, int], Outcome]) -> ErrorCode:
        """What the client is told."""
        try:
            return self.run(operation).code
        except Refused as refused:
            return refused.code

    def init(self, name: str = "t", expected: tuple[int, int] | None = None, timeout_ms: int = 60_000) -> str:
        """`id/epoch` of the new producer, or the error code's name."""
        wanted = ProducerEpoch(*expected) if expected else None
        try:
            done = self.run(lambda c, now: c.init_producer_id(name, timeout_ms, wanted, now))
        except Refused as refused:
            return refused.code.name
        return done.code.name if done.code else f"{done.producer_id}/{done.producer_epoch}"

    def add(self, producer: tuple[int, int], *partitions: TopicPartition, version: int = 2) -> ErrorCode:
        who = ProducerEpoch(*producer)
        return self.code(lambda c, now: c.add_partitions("t", who, partitions, version, now))

    def end(self, producer: tuple[int, int], committed: bool = True, version: int = 2) -> str:
        """`id/epoch` to go on with ("-1/-1" before version 2), or the error code's name."""
        who = ProducerEpoch(*producer)
        try:
            done = self.run(lambda c, now: c.end("t", who, committed, version, now))
        except Refused as refused:
            return refused.code.name
        return f"{done.producer_id}/{done.producer_epoch}"

    def write_markers(self) -> list[Markers]:
        """Have every marker written; those that were."""
        written, self.markers = self.markers, []
        for each in written:
            self.run(lambda c, now, each=each: c.markers_written(each.transactional_id, now))  # type: ignore[misc]
        return written

    def wait_until(self, now_ms: int) -> None:
        """Let time pass deadline by deadline."""
        while (due := self.coordinator.next_wake_ms()) is not None and due <= now_ms:
            self.now_ms = max(self.now_ms, due)
            self.run(lambda c, now: c.wake(now))
        self.now_ms = now_ms

    def state(self, name: str = "t") -> str:
        known = self.coordinator.transactions.get(name)
        return "-" if known is None else f"{known.status.title} {known.producer_id}/{known.producer_epoch}"

    def transaction(self) -> Transaction:
        return self.coordinator.transactions["t"]

    def crash(self) -> None:
        """Lose everything but the log; decided ends ask for their markers again."""
        self.coordinator, self.markers = self._fresh(), []
        self.markers += self.coordinator.loaded().markers

    def _append(self, outcome: Outcome) -> None:
        for key, value in outcome.records:
            self.log.append((key, value))
            self.coordinator.replay(key, value)
        self.markers += outcome.markers
        assert self._fresh().transactions == self.coordinator.transactions

    def _fresh(self) -> TransactionCoordinator:
        made = TransactionCoordinator(self.config, lambda: next(self.ids))
        for key, value in self.log:
            made.replay(*through_bytes(key, value))
        return made


def through_bytes(
    key: TransactionLogKey, value: TransactionLogValue | None
) -> tuple[TransactionLogKey, TransactionLogValue | None]:
    return decode_key(encode_key(key)), decode_value(encode_value(value))
