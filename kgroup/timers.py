"""Deadlines of the machine: kept as data, fired one at a time, in the order they fall due."""

from heapq import heappop, heappush
from typing import NamedTuple


class TimerKey(NamedTuple):
    """The key of a timer; `member_id` is "" for a timer of the whole group."""

    kind: str
    group_id: str
    member_id: str = ""


class Timers:
    """Named deadlines in ms. Arming a name again replaces its deadline.

    A session timer is re-armed by every heartbeat and rarely fires, so moving a deadline back does not touch
    the heap: the entry is pushed again when it comes up too early.
    """

    def __init__(self) -> None:
        self._deadlines: dict[TimerKey, tuple[int, object]] = {}
        self._queued: dict[TimerKey, int] = {}
        self._heap: list[tuple[int, int, TimerKey]] = []
        self._pushes = 0

    def __contains__(self, key: TimerKey) -> bool:
        return key in self._deadlines

    def arm(self, key: TimerKey, deadline_ms: int, what: object = None) -> None:
        """Arm `key` to fall due at `deadline_ms`; `what` is returned then."""
        self._deadlines[key] = (deadline_ms, what)
        queued = self._queued.get(key)
        if queued is None or deadline_ms < queued:
            self._push(deadline_ms, key)

    def cancel(self, key: TimerKey) -> None:
        """Disarm `key`, if it is armed."""
        self._deadlines.pop(key, None)

    def deadline(self, key: TimerKey) -> int | None:
        """Return the deadline of `key`, or None when it is not armed."""
        armed = self._deadlines.get(key)
        return None if armed is None else armed[0]

    def next_ms(self) -> int | None:
        """Return the earliest deadline, or None."""
        while self._heap:
            due, _, key = self._heap[0]
            if self._queued.get(key) != due:
                heappop(self._heap)
                continue
            armed = self._deadlines.get(key)
            if armed is not None and armed[0] == due:
                return due
            heappop(self._heap)
            del self._queued[key]
            if armed is not None:
                self._push(armed[0], key)
        return None

    def armed(self) -> list[tuple[TimerKey, int, object]]:
        """Return every timer with its deadline and its `what`, in no order."""
        return [(key, deadline_ms, what) for key, (deadline_ms, what) in self._deadlines.items()]

    def postpone(self, key: TimerKey, deadline_ms: int) -> None:
        """Move the deadline of `key`, which is armed, to a later time; `what` stays."""
        self._deadlines[key] = (deadline_ms, self._deadlines[key][1])

    def pop_due(self, now_ms: int) -> tuple[TimerKey, object] | None:
        """Remove and return the earliest timer due at or before `now_ms`; ties in arming order."""
        due = self.next_ms()
        if due is None or due > now_ms:
            return None
        _, _, key = heappop(self._heap)
        del self._queued[key]
        return key, self._deadlines.pop(key)[1]

    def _push(self, deadline_ms: int, key: TimerKey) -> None:
        self._pushes += 1
        self._queued[key] = deadline_ms
        heappush(self._heap, (deadline_ms, self._pushes, key))
