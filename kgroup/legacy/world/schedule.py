"""Virtual time and chance: what happens next, and when."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Protocol, TypeVar

T = TypeVar("T")


class Chance(Protocol):
    """What is used of `random.Random`; who makes one decides the run."""

    def random(self) -> float: ...

    def randrange(self, start: int, stop: int) -> int: ...

    def choice(self, seq: Sequence[T]) -> T: ...


class Schedule:
    """Actions by moment; those of one moment in the order they were added. `steps` counts them."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.steps = 0
        self.after_each: Callable[[], None] = lambda: None
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._added = 0

    def at(self, ms: int, action: Callable[[], None]) -> None:
        """Carry `action` out at `ms`, or now if that is past."""
        self._added += 1
        heappush(self._heap, (max(ms, self.now_ms), self._added, action))

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Carry `action` out `delay_ms` from now."""
        self.at(self.now_ms + delay_ms, action)

    def run_until(self, ms: int) -> None:
        """Carry out everything up to `ms`, which is the time then."""
        while self._heap and self._heap[0][0] <= ms:
            self.now_ms, _, action = heappop(self._heap)
            self.steps += 1
            action()
            self.after_each()
        self.now_ms = max(self.now_ms, ms)
