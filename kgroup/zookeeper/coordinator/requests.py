"""Requests that wait for their answers, each ending exactly once; and the pings (era 5.1 to 5.4, 6.4)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from kgroup.zookeeper.coordinator.registries import RegisteredConsumer
from kgroup.zookeeper.coordinator.timers import EXPIRY, Timer, Timers
from kgroup.zookeeper.wire.codec import MAX_CORRELATION
from kgroup.zookeeper.wire.messages import PingRequest, RequestKey

if TYPE_CHECKING:
    from kgroup.zookeeper.coordinator.registries import RegisteredConsumer
    from kgroup.zookeeper.coordinator.term import Term


class Watcher:
    """One request of a member that has been sent; `serial` counts what was sent on its connection."""

    __slots__ = ("expired", "kind", "member", "serial", "settled", "timer")

    def __init__(
        self, member: RegisteredConsumer, kind: RequestKey, serial: int, expired: Callable[[Watcher], None]
    ) -> None:
        self.member = member
        self.kind = kind
        self.serial = serial
        self.settled = False
        self.timer: Timer | None = None
        self.expired = expired

    @property
    def correlation(self) -> int:
        """What header mode calls it; 16 bits last for longer than anything stays unanswered."""
        return self.serial % (MAX_CORRELATION + 1)


class Purgatory:
    """The watchers of all members, by kind; `ended` counts how each came to its end."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self.ended = {"satisfied": 0, "expired": 0, "dropped": 0}
        self.started = 0

    def watch(
        self, member: RegisteredConsumer, kind: RequestKey, now_ms: int, expired: Callable[[Watcher], None]
    ) -> Watcher:
        """Call `expired` unless an answer comes within two thirds of the session (era 5.1, 7.5)."""
        member.serial += 1
        self.started += 1
        watcher = Watcher(member, kind, member.serial, expired)
        watcher.timer = self._timers.arm(now_ms + member.answer_ms, lambda: self._expire(watcher), EXPIRY)
        member.unanswered.setdefault(kind, deque()).append(watcher)
        return watcher

    def pending(self, member: RegisteredConsumer, kind: RequestKey) -> bool:
        """Whether a request of this kind waits for its answer, and may yet have it."""
        waiting = member.unanswered.get(kind)
        return waiting is not None and len(waiting) > 0 and not waiting[-1].settled

    def answer(self, member: RegisteredConsumer, kind: RequestKey, correlation: int | None) -> Watcher | None:
        """The request this answers, None if there is none; `settled` before if the answer came too late.

        Answers of one kind come in the order of their requests. An expired watcher stays until its answer has
        come, or the late answer would pass for that of the next request (era 5.3).
        """
        waiting = member.unanswered.get(kind)
        if not waiting:
            return None
        watcher = waiting.popleft()
        while correlation is not None and watcher.correlation != correlation and waiting:
            watcher = waiting.popleft()
        if correlation is not None and watcher.correlation != correlation:
            return None
        return watcher

    def satisfy(self, watcher: Watcher) -> None:
        """The answer came in time."""
        assert not watcher.settled
        self._settle(watcher, "satisfied")

    def drop(self, member: RegisteredConsumer) -> None:
        """The member is gone: nothing of it is awaited any more."""
        for waiting in member.unanswered.values():
            for watcher in waiting:
                if not watcher.settled:
                    self._settle(watcher, "dropped")
        member.unanswered.clear()

    def _settle(self, watcher: Watcher, how: str) -> None:
        watcher.settled = True
        self._timers.cancel(watcher.timer)
        self.ended[how] += 1

    def _expire(self, watcher: Watcher) -> None:
        self.ended["expired"] += 1
        watcher.settled = True
        watcher.expired(watcher)


class Pings:
    """Asks every member each third of its session, counted from its registration so that nothing drifts."""

    def __init__(self, term: Term) -> None:
        self._term = term

    def stop(self, member: RegisteredConsumer) -> None:
        """No more pings to this member."""
        self._term.timers.cancel(member.ping_timer)
        member.ping_timer = None

    def answered(self, watcher: Watcher) -> None:
        """The member is there, and may deliver for another session; its misses are forgotten (era 5.3)."""
        watcher.member.failed = 0
        watcher.member.answered_at_ms = self._term.core.now_ms

    def start(self, member: RegisteredConsumer) -> None:
        """Send the first ping at once."""
        core = self._term.core
        if not self._term.purgatory.pending(member, RequestKey.PING):
            watcher = self._term.purgatory.watch(member, RequestKey.PING, core.now_ms, self._expired)
            core.send(member.conn, PingRequest(member.consumer_id, member.failed), watcher.correlation)
        member.pings += 1
        due = member.registered_at_ms + member.pings * member.session_ms // 3
        member.ping_timer = self._term.timers.arm(due, lambda: self.start(member))

    def _expired(self, watcher: Watcher) -> None:
        member = watcher.member
        member.failed += 1
        if member.failed > self._term.core.config.max_failed_pings:
            self._term.fail(member, f"no answer to {member.failed} pings")
