"""The transactions of a log, read from its batch headers and markers (KIP-98)."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from kgroup.protocol.batches import Batch


class AbortedTransaction(NamedTuple):
    """A producer's data batches from `first_offset` on, up to its marker at `last_offset`, are void."""

    producer_id: int
    first_offset: int
    last_offset: int


@dataclass(slots=True)
class Transactions:
    """Aborted transactions in order of their markers, and the open ones' first offsets by producer id."""

    aborted: list[AbortedTransaction] = field(default_factory=list)
    open: dict[int, int] = field(default_factory=dict)
    _by_producer: dict[int, list[AbortedTransaction]] = field(default_factory=dict)
    _stable: list[int] = field(default_factory=list)  # the last stable offset when each was aborted

    def saw(self, batch: Batch) -> None:
        """Add the next batch of the log."""
        if not batch.transactional or batch.producer_id < 0:
            return
        if not batch.control:
            self.open.setdefault(batch.producer_id, batch.base_offset)
            return
        marker = batch.end_marker
        if marker is None:
            return
        first = self.open.pop(batch.producer_id, None)
        if first is not None and not marker.committed:
            aborted = AbortedTransaction(batch.producer_id, first, batch.last_offset)
            self.aborted.append(aborted)
            self._stable.append(self.first_unstable_offset(batch.last_offset + 1))
            self._by_producer.setdefault(batch.producer_id, []).append(aborted)

    def is_aborted(self, producer_id: int, offset: int) -> bool:
        """Return whether the data batch of this producer at this offset belongs to an aborted transaction."""
        known = self._by_producer.get(producer_id, [])
        # A producer has one transaction at a time: they are disjoint and in order.
        at = bisect_right(known, offset, key=lambda aborted: aborted.first_offset) - 1
        return at >= 0 and offset <= known[at].last_offset

    def aborted_in(self, start: int, end: int) -> list[AbortedTransaction]:
        """Return aborted transactions with records from `start` to before `end`, in marker order."""
        first = bisect_left(self.aborted, start, key=lambda aborted: aborted.last_offset)
        aborted = []
        for index in range(first, len(self.aborted)):
            if self.aborted[index].first_offset < end:
                aborted.append(self.aborted[index])
            if self._stable[index] >= end:
                break  # any transaction aborted later began behind it
        return aborted

    def first_unstable_offset(self, end_offset: int) -> int:
        """Return the offset up to which every transaction has ended (the last stable offset)."""
        return min(self.open.values(), default=end_offset)


def transactions_in(batches: Iterable[Batch]) -> Transactions:
    """Return the transactions of a whole log."""
    transactions = Transactions()
    for batch in batches:
        transactions.saw(batch)
    return transactions
