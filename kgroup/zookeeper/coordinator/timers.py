"""Deadlines as data: fired one at a time, the earliest first, expiries before others (era 5.1)."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush

EXPIRY, PLAIN = 0, 1
_FEW = 64


class Timer:
    """One deadline, until it fires or is cancelled."""

    __slots__ = ("action", "due_ms")

    def __init__(self, due_ms: int, action: Callable[[], None]) -> None:
        self.due_ms = due_ms
        self.action: Callable[[], None] | None = action


class Timers:
    """Timers that are armed; what is cancelled takes no room for long."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, int, Timer]] = []
        self._armed = 0
        self._live = 0

    def __len__(self) -> int:
        return self._live

    def arm(self, due_ms: int, action: Callable[[], None], rank: int = PLAIN) -> Timer:
        """Have `action` called at `due_ms`; of one moment EXPIRY goes first, then who was armed first."""
        timer = Timer(due_ms, action)
        self._armed += 1
        self._live += 1
        heappush(self._heap, (due_ms, rank, self._armed, timer))
        return timer

    def cancel(self, timer: Timer | None) -> None:
        """Forget a timer, if there is one and it has not fired."""
        if timer is None or timer.action is None:
            return
        timer.action = None
        self._live -= 1
        if len(self._heap) > _FEW and self._live * 2 < len(self._heap):
            self._heap = [entry for entry in self._heap if entry[3].action is not None]
            heapify(self._heap)

    def next_ms(self) -> int | None:
        """The earliest deadline, or None."""
        while self._heap and self._heap[0][3].action is None:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def fire(self, now_ms: int) -> bool:
        """Fire the one timer that comes first, if it is due; whether one was."""
        due = self.next_ms()
        if due is None or due > now_ms:
            return False
        timer = heappop(self._heap)[3]
        action, timer.action = timer.action, None
        self._live -= 1
        assert action is not None
        action()
        return True
