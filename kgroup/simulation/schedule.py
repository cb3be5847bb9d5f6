"""Virtual time: what happens next, and when."""

from collections.abc import Callable
from heapq import heappop, heappush


class Schedule:
    """Actions by time; those of the same time in the order they were added.

    `steps` counts executed actions: with the seed it identifies one state of a run. `after_each`, if set, is
    called after each of them.
    """

    __slots__ = ("_added", "_heap", "after_each", "now_ms", "steps")

    def __init__(self, start_ms: int = 0) -> None:
        self.now_ms = start_ms
        self.steps = 0
        self.after_each: Callable[[], None] | None = None
        self._heap: list[tuple[int, int, Callable[..., None], tuple[object, ...]]] = []
        self._added = 0

    def at(self, ms: int, action: Callable[..., None], *args: object) -> None:
        """Run `action` at `ms`, or now if that is past."""
        self._added = added = self._added + 1
        now = self.now_ms
        heappush(self._heap, (ms if ms > now else now, added, action, args))

    def after(self, delay_ms: int, action: Callable[..., None], *args: object) -> None:
        """Run `action` `delay_ms` from now."""
        self._added = added = self._added + 1
        now = self.now_ms
        heappush(self._heap, (now + delay_ms if delay_ms > 0 else now, added, action, args))

    def run_until(self, ms: int) -> None:
        """Run everything up to `ms`, which is the time then."""
        heap = self._heap
        while heap and heap[0][0] <= ms:
            self.now_ms, _, action, args = heappop(heap)
            self.steps += 1
            action(*args)
            if self.after_each is not None:
                self.after_each()
        self.now_ms = max(self.now_ms, ms)
