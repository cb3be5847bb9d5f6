"""The hosts' time. The coordinator itself gets the time with every call."""

import time
from typing import Protocol


class Clock(Protocol):
    """Milliseconds since the epoch that never go back."""

    def now_ms(self) -> int: ...

    def wait_until(self, deadline_ms: int) -> None:
        """Return when `now_ms()` has reached the deadline; only for hosts without an event loop."""
        ...


class SystemClock:
    """Wall-clock time read once, carried on by the monotonic clock.

    Setting the machine's clock while the process runs changes neither deadlines nor record timestamps.
    """

    __slots__ = ("_offset_ns",)

    def __init__(self) -> None:
        self._offset_ns = time.time_ns() - time.monotonic_ns()

    def now_ms(self) -> int:
        return (time.monotonic_ns() + self._offset_ns) // 1_000_000

    def wait_until(self, deadline_ms: int) -> None:
        while (left := deadline_ms - self.now_ms()) > 0:
            time.sleep(left / 1000)


class MovableClock(SystemClock):
    """System time that can be moved forward: a test's "45 s later", without waiting for them."""

    __slots__ = ()

    def move_to(self, ms: int) -> None:
        """Set the time to `ms`; do nothing for a time that has passed."""
        self._offset_ns += max(ms - self.now_ms(), 0) * 1_000_000


class ManualClock:
    """Time that moves only when it is set, or when a caller waits for it."""

    __slots__ = ("_now_ms",)

    def __init__(self, now_ms: int = 1_000_000) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def advance(self, ms: int) -> None:
        assert ms >= 0, "time does not go back"
        self._now_ms += ms

    def wait_until(self, deadline_ms: int) -> None:
        self._now_ms = max(self._now_ms, deadline_ms)
