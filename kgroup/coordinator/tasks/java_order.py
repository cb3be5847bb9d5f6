"""The orders of Java's hash maps and priority queues, which decide ties in Kafka's task assignor.

Two coordinators that break ties otherwise give a task to different members, and moving a group from one to
the other would move its state. The orders are fixed: by the documentation of String.hashCode, and by how
java.util.HashMap has placed its entries since Java 8 (trees, of more than eight keys a place, left aside).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T")
DEFAULT_CAPACITY = 16


def string_hash(text: str) -> int:
    """String.hashCode, as an unsigned number."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value


def hash_map_order(keys: Iterable[str], capacity: int = DEFAULT_CAPACITY) -> list[str]:
    """Different `keys`, put into a `new HashMap(capacity)` in this order, in the order it gives them out."""
    entered = list(dict.fromkeys(keys))
    size = 1 << max(capacity - 1, 0).bit_length()
    # It doubles when an entry makes it fuller than three quarters, and keeps the order within a place.
    while len(entered) > int(size * 0.75):
        size *= 2
    places: dict[int, list[str]] = {}
    for key in entered:
        value = string_hash(key)
        places.setdefault((value ^ value >> 16) & (size - 1), []).append(key)
    return [key for place in sorted(places) for key in places[place]]


class PriorityQueue(Generic[T]):
    """java.util.PriorityQueue: the least by `rank` first, and among equals the very same one."""

    def __init__(self, items: Iterable[T], rank: Callable[[T], float]) -> None:
        self._rank = rank
        self._heap: list[T] = []
        for item in items:
            self.add(item)

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, item: T) -> None:
        heap, place = self._heap, len(self._heap)
        heap.append(item)
        while place > 0:
            parent = (place - 1) >> 1
            if self._rank(item) >= self._rank(heap[parent]):
                break
            heap[place] = heap[parent]
            place = parent
        heap[place] = item

    def poll(self) -> T | None:
        """Take out the least; None from an empty queue."""
        heap = self._heap
        if not heap:
            return None
        least, last = heap[0], heap.pop()
        if heap:
            self._sift_down(last)
        return least

    def _sift_down(self, item: T) -> None:
        heap, place, half = self._heap, 0, len(self._heap) >> 1
        while place < half:
            child = 2 * place + 1
            right = child + 1
            if right < len(heap) and self._rank(heap[child]) > self._rank(heap[right]):
                child = right
            if self._rank(item) <= self._rank(heap[child]):
                break
            heap[place] = heap[child]
            place = child
        heap[place] = item
