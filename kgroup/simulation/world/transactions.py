"""Transactions of the simulated world: processes that copy, and the coordinator that ends transactions.

A copier reads, writes elsewhere, and commits its positions with the transaction (KIP-98, KIP-447). The
transaction coordinator does what groups can observe: commits outside an open transaction are rejected
(KIP-890: each transaction has its own producer epoch), and ends become markers in the group's partition,
written repeatedly until its leader has answered.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kgroup.domain import EndMarker, TopicPartition, grouped
from kgroup.members.classic import ClassicMember
from kgroup.members.consumer import ConsumerMember
from kgroup.members.effects import GroupMember, Send
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from kgroup.protocol.registry import response_class_of
from kgroup.simulation.world.brokers import Brokers
from kgroup.simulation.world.network import InFlight
from kgroup.simulation.world.process import Process

TIMEOUT_MS = 15_000
"""How long a transaction may stay open before it is aborted for its producer."""
RETRY_MS = 100
ABORTED_SHARE = 0.15
GENERATIONS_SINCE, NAMES_UNTIL = 3, 5


@dataclass(slots=True, eq=False)
class Transaction:
    """One transaction; `copied` holds where its producer's reading of each partition began and ended."""

    producer_id: int
    producer_epoch: int
    group_id: str
    copied: Mapping[TopicPartition, tuple[int, int]]
    committed: bool | None = None
    ended: bool = False
    heard: list[Callable[[bool], None]] = field(default_factory=list)


class Transactions:
    """Tracks each producer's open transaction, and ends it in its group's partition."""

    def __init__(self, brokers: Brokers) -> None:
        self._brokers, self._schedule = brokers, brokers.schedule
        self._ids: dict[str, int] = {}
        self._epochs: dict[int, int] = {}
        self._open: dict[int, Transaction] = {}
        brokers.is_open = self.is_open

    def initialise(self, transactional_id: str) -> int:
        """Return the producer id; abort what the id's last producer left open (InitProducerId)."""
        producer_id = self._ids.setdefault(transactional_id, 1000 + len(self._ids))
        left = self._open.get(producer_id)
        if left is not None:
            self.end(left, False, lambda committed: None)
        return producer_id

    def of(self, producer_id: int) -> Transaction | None:
        """Return the producer's transaction, until its end is in the log."""
        return self._open.get(producer_id)

    def begin(
        self, producer_id: int, group_id: str, copied: Mapping[TopicPartition, tuple[int, int]]
    ) -> Transaction:
        """Open a transaction; the producer has no other."""
        assert producer_id not in self._open
        epoch = self._epochs[producer_id] = self._epochs.get(producer_id, -1) + 1
        made = self._open[producer_id] = Transaction(producer_id, epoch, group_id, copied)
        self._schedule.after(TIMEOUT_MS, self.end, made, False, lambda committed: None)
        return made

    def is_open(self, request: TxnOffsetCommitRequest) -> bool:
        """Return whether the commit belongs to a transaction that is not being ended yet."""
        transaction = self._open.get(request.producer_id)
        return (
            transaction is not None
            and transaction.committed is None
            and transaction.producer_epoch == request.producer_epoch
        )

    def end(self, transaction: Transaction, committed: bool, heard: Callable[[bool], None]) -> None:
        """Commit or abort, whichever came first; call `heard` with the outcome once it is in the log."""
        if transaction.ended:
            heard(bool(transaction.committed))
            return
        transaction.heard.append(heard)
        if transaction.committed is None:
            transaction.committed = committed
            self._schedule.after(1, self._write, transaction)

    def _write(self, transaction: Transaction) -> None:
        committed = bool(transaction.committed)
        marker = EndMarker(transaction.producer_id, transaction.producer_epoch, committed, 0)
        if not self._brokers.write_marker(transaction.group_id, marker):
            self._schedule.after(RETRY_MS, self._write, transaction)
            return
        transaction.ended = True
        del self._open[transaction.producer_id]
        for heard in transaction.heard:
            heard(committed)


class Copier(Process):
    """A process that commits with transactions. After an abort it reads again from what is committed."""

    transactions: Transactions

    def __init__(self, *args: Any, transactions: Transactions, **more: Any) -> None:
        super().__init__(*args, **more)
        self.transactions = transactions
        self._producer_id = -1
        self._from: dict[TopicPartition, int] = {}
        self._begun: Transaction | None = None

    def start(self) -> None:
        """See `Process.start`: its producer first ends what the last one left open."""
        if self.member is None:
            self._producer_id = self.transactions.initialise(self.name)
        super().start()

    def _commit(self, member: GroupMember, offsets: Mapping[TopicPartition, int]) -> None:
        copied = {p: (self._from[p], to) for p, to in offsets.items() if to > self._from.get(p, to)}
        if not copied or self._begun is not None or self.transactions.of(self._producer_id) is not None:
            return
        self._begun = self.transactions.begin(self._producer_id, member.group_id, copied)
        assert isinstance(member, ClassicMember | ConsumerMember)
        topics = grouped(
            (
                partition.topic,
                TxnOffsetCommitRequestPartition(partition_index=partition.partition, committed_offset=to),
            )
            for partition, (_, to) in sorted(copied.items())
        )
        request = TxnOffsetCommitRequest(
            transactional_id=self.name,
            group_id=member.group_id,
            producer_id=self._begun.producer_id,
            producer_epoch=self._begun.producer_epoch,
            generation_id=member.generation if isinstance(member, ClassicMember) else member.epoch,
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            topics=tuple(
                TxnOffsetCommitRequestTopic(name=name, partitions=tuple(parts))
                for name, parts in topics.items()
            ),
        )
        self._send(Send(request, min_version=GENERATIONS_SINCE, max_version=NAMES_UNTIL))

    def _begin_at(self, partition: TopicPartition, committed: int) -> None:
        self._from[partition] = max(committed, 0)
        super()._begin_at(partition, committed)

    def _answered(self, member: GroupMember | None, sent: InFlight, data: bytes) -> None:
        if not isinstance(sent.message, TxnOffsetCommitRequest):
            super()._answered(member, sent, data)
            return
        response = response_class_of(sent.message).decode(data, sent.version)
        assert isinstance(response, TxnOffsetCommitResponse)
        refused = any(part.error_code for topic in response.topics for part in topic.partitions)
        self._end_transaction(sent.message, committed=not refused and self._rng.random() >= ABORTED_SHARE)

    def _unanswered(self, member: GroupMember | None, request: Message) -> None:
        if not isinstance(request, TxnOffsetCommitRequest):
            super()._unanswered(member, request)
            return
        self._coordinator = None
        self._end_transaction(request, committed=False)

    def _end_transaction(self, request: TxnOffsetCommitRequest, *, committed: bool) -> None:
        begun = self._begun
        if begun is not None and begun.producer_epoch == request.producer_epoch:
            self.transactions.end(begun, committed, lambda done: self._awake(self._heard, begun, done))

    def _heard(self, transaction: Transaction, committed: bool) -> None:
        if transaction is not self._begun or self.member is None:
            return
        self._begun = None
        for partition, (_, to) in transaction.copied.items():
            if committed:
                self._from[partition] = to
            else:
                self.positions.pop(partition, None)
        if not committed:
            self._fetch_positions(self.member)
        self._end_once_committed()

    def _end_once_committed(self) -> None:
        if self._begun is None:
            super()._end_once_committed()

    def _end(self) -> None:
        self._begun = None
        super()._end()
