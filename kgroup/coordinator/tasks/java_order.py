"""The orders of Java's hash maps and priority queues, which decide ties in Kafka's task assignor.

Two coordinators that break ties otherwise give a task to different members, and moving a group from one to
the other would move its state. The orders are fixed: by the documentation of String.hashCode, and by how
java.util.HashMap has placed its entries since Java 8 (trees, of many keys in one place, excluded).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from kgroup.domain import java_string_hash

T = TypeVar("T")
DEFAULT_CAPACITY = 16
LEAST_WITH_TREES = 64
"""A smaller table doubles where a larger one plants a tree (MIN_TREEIFY_CAPACITY)."""


def string_hash(text: str) -> int:
    """Return String.hashCode as an unsigned number."""
    return java_string_hash(text) & 0xFFFFFFFF


def hash_map_order(
    keys: Iterable[str], capacity: int = DEFAULT_CAPACITY, *, computed: bool = False
) -> list[str]:
    """Return `keys` in the order of a `new HashMap(capacity)` that they were put into in this order.

    With `computed` they were put in by computeIfAbsent.
    """
    table = HashTable(string_hash, capacity)
    for key in keys:
        (table.compute if computed else table.add)(key)
    return list(table)


class HashTable(Generic[T]):
    """The keys of a java.util.HashMap, in the order in which it returns them.

    `hash_of` is hashCode, as an unsigned number of 32 bits.
    """

    def __init__(self, hash_of: Callable[[T], int], capacity: int = DEFAULT_CAPACITY) -> None:
        self._hash_of = hash_of
        self._size = 1 << max(capacity - 1, 0).bit_length()
        self._places: dict[T, tuple[int, int]] = {}
        self._added = 0

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: T) -> bool:
        return key in self._places

    def __iter__(self) -> Iterator[T]:
        """Return the present keys, place by place."""
        mask = self._size - 1

        def place(key: T) -> tuple[int, int]:
            value, rank = self._places[key]
            return value & mask, rank

        return iter(sorted(self._places, key=place))

    def add(self, key: T) -> None:
        """Add an entry as `put` does: behind those with the same place."""
        self._add(key, end=1, most=8)
        self._grow()

    def compute(self, key: T) -> None:
        """Add an entry as `computeIfAbsent` does: before those with the same place, and growing late."""
        self._grow()
        self._add(key, end=-1, most=7)

    def _add(self, key: T, *, end: int, most: int) -> None:
        """Add at this end of the key's place; a place that has `most` already makes a small table grow."""
        if key in self._places:
            return
        value = self._hash_of(key)
        value ^= value >> 16
        crowded = False
        if self._size < LEAST_WITH_TREES:
            mask = self._size - 1
            crowded = sum(not (value ^ other) & mask for other, _ in self._places.values()) >= most
        self._added += 1
        self._places[key] = value, end * self._added
        if crowded:
            self._size *= 2

    def _grow(self) -> None:
        # It doubles when an entry makes it fuller than three quarters, and keeps the order within a place.
        while len(self._places) > int(self._size * 0.75):
            self._size *= 2

    def remove(self, key: T) -> None:
        """Remove an entry; the table stays as large as it is."""
        del self._places[key]


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
        heap, index = self._heap, len(self._heap)
        heap.append(item)
        while index > 0:
            parent = (index - 1) >> 1
            if self._rank(item) >= self._rank(heap[parent]):
                break
            heap[index] = heap[parent]
            index = parent
        heap[index] = item

    def poll(self) -> T | None:
        """Remove and return the least; None from an empty queue."""
        heap = self._heap
        if not heap:
            return None
        least, last = heap[0], heap.pop()
        if heap:
            self._sift_down(last)
        return least

    def _sift_down(self, item: T) -> None:
        heap, index, half = self._heap, 0, len(self._heap) >> 1
        while index < half:
            child = 2 * index + 1
            right = child + 1
            if right < len(heap) and self._rank(heap[child]) > self._rank(heap[right]):
                child = right
            if self._rank(item) <= self._rank(heap[child]):
                break
            heap[index] = heap[child]
            index = child
        heap[index] = item
