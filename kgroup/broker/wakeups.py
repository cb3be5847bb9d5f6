"""Deadlines of the whole process: the shards' timers and anything else that waits for time to pass."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable

from kgroup.coordinator.outcome import Reply
from kgroup.runtime.shard import Shard

FAR = 1 << 62


class Deadline:
    """A callback due at `ms`; `cancel` makes it do nothing."""

    __slots__ = ("callback", "ms")

    def __init__(self, ms: int, callback: Callable[[], None]) -> None:
        self.ms = ms
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None

    def __lt__(self, other: Deadline) -> bool:
        return self.ms < other.ms


class Wakeups:
    """One deadline at a time, earliest first, so that no step ever passes two of them.

    `due_ms` is never later than the earliest deadline. `on_earlier` is called when it moves forward: an
    event loop re-arms its one timer there.
    """

    def __init__(
        self,
        shards: Callable[[], Iterable[Shard]],
        wake: Callable[[Shard, int, int], Iterable[Reply]],
        deliver: Callable[[Iterable[Reply]], None],
    ) -> None:
        self._shards = shards
        self._wake = wake
        self._deliver = deliver
        self._deadlines: list[Deadline] = []
        self.due_ms = FAR
        self.on_earlier: Callable[[], None] | None = None

    def at(self, ms: int, callback: Callable[[], None]) -> Deadline:
        """Call back once when the time has come."""
        deadline = Deadline(ms, callback)
        heapq.heappush(self._deadlines, deadline)
        self.note(ms)
        return deadline

    def note(self, ms: int) -> None:
        """Note that a next deadline may now be `ms`."""
        if ms < self.due_ms:
            self.due_ms = ms
            if self.on_earlier is not None:
                self.on_earlier()

    def next_ms(self) -> int | None:
        """Return the earliest deadline there is; None if there is none."""
        while self._deadlines and self._deadlines[0].callback is None:
            heapq.heappop(self._deadlines)
        earliest_ms = self._deadlines[0].ms if self._deadlines else FAR
        for shard in self._shards():
            wake_ms = shard.next_wake_ms()
            if wake_ms is not None and wake_ms < earliest_ms:
                earliest_ms = wake_ms
        self.due_ms = earliest_ms
        return earliest_ms if earliest_ms < FAR else None

    def look(self) -> None:
        """Note that timers may have moved without a `note`."""
        before = self.due_ms
        self.next_ms()
        if self.due_ms < before and self.on_earlier is not None:
            self.on_earlier()

    def before_request(self, now_ms: int) -> None:
        """Do what fell due before a request that is made now, unless the request lay unread since.

        An event loop that was held up meets both at once and cannot know which came first: there, what is
        due waits until all has been read (Server), and never for a request.
        """
        if self.on_earlier is None:
            self.run(now_ms)

    def run(self, due_ms: int, now_ms: int | None = None) -> None:
        """Do everything due by `due_ms`, in the order of the deadlines and each at its own time.

        A host that is late passes the present time: a member that is then asked to rejoin has all its time
        before it, however long nothing could be received.
        """
        while (due := self.next_ms()) is not None and due <= due_ms:
            for shard in self._shards():
                wake_ms = shard.next_wake_ms()
                if wake_ms is not None and wake_ms <= due:
                    self._deliver(self._wake(shard, due if now_ms is None else now_ms, due))
            while self._deadlines and self._deadlines[0].ms <= due:
                callback = heapq.heappop(self._deadlines).callback
                if callback is not None:
                    callback()
        if self.on_earlier is not None and self.due_ms < FAR:
            self.on_earlier()
