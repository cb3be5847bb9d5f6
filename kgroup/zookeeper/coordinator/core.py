"""What every part of the machine shares: the current time, the effects so far, unanswered calls."""

from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from typing import Protocol

from kgroup.zookeeper.coordinator.config import LegacyConfig
from kgroup.zookeeper.events import Close, CoordinatorEffect, Level, Log, Send, Zk
from kgroup.zookeeper.store.operations import Failure, Read, Result, Write
from kgroup.zookeeper.wire.messages import FromCoordinator

EXPIRY, PLAIN = 0, 1
_FEW = 64


class Timer:
    """One deadline, until it fires or is cancelled."""

    __slots__ = ("action", "due_ms")

    def __init__(self, due_ms: int, action: Callable[[], None]) -> None:
        self.due_ms = due_ms
        self.action: Callable[[], None] | None = action


class Timers:
    """Armed timers; cancelled ones are soon dropped from memory."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, int, Timer]] = []
        self._armed = 0
        self._live = 0

    def __len__(self) -> int:
        return self._live

    def arm(self, due_ms: int, action: Callable[[], None], rank: int = PLAIN) -> Timer:
        """Call `action` at `due_ms`; at equal times EXPIRY timers fire first, then in arming order."""
        timer = Timer(due_ms, action)
        self._armed += 1
        self._live += 1
        heappush(self._heap, (due_ms, rank, self._armed, timer))
        return timer

    def cancel(self, timer: Timer | None) -> None:
        """Cancel a timer, if there is one and it has not fired."""
        if timer is None or timer.action is None:
            return
        timer.action = None
        self._live -= 1
        if len(self._heap) > _FEW and self._live * 2 < len(self._heap):
            self._heap = [entry for entry in self._heap if entry[3].action is not None]
            heapify(self._heap)

    def next_ms(self) -> int | None:
        """Return the earliest deadline, or None."""
        while self._heap and self._heap[0][3].action is None:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def fire(self, now_ms: int) -> bool:
        """Fire the first timer if it is due; return whether one was."""
        due = self.next_ms()
        if due is None or due > now_ms:
            return False
        timer = heappop(self._heap)[3]
        action, timer.action = timer.action, None
        self._live -= 1
        assert action is not None
        action()
        return True


Then = Callable[[Sequence[Result]], None]
IDLE_MS = 30_000
"""How long a connection may stay open without a registration (era 4.1)."""
UNCERTAIN = (Failure.CONNECTION_LOSS, Failure.SESSION_EXPIRED)
"""Failures of the connection to the tree; they say nothing about the tree itself."""


class Asks(Protocol):
    """A caller of ZooKeeper."""

    def ask(self, ops: Sequence[Read] | Sequence[Write], then: Then, *, watch: bool = False) -> None: ...


class Core:
    """One machine's time and effects; `timers` are those that outlive a term."""

    def __init__(self, config: LegacyConfig, broker_id: int) -> None:
        self.config = config
        self.broker_id = broker_id
        self.now_ms = 0
        self.timers = Timers()
        self.connected = False
        self.negotiated_ms = config.zk_session_ms
        self._effects: list[CoordinatorEffect] = []
        self._calls: dict[int, Then] = {}
        self._called = 0
        self._later: list[Callable[[], None]] = []
        self._conns: dict[int, Timer | None] = {}

    def take_effects(self) -> list[CoordinatorEffect]:
        """Return the effects since the last call."""
        effects, self._effects = self._effects, []
        return effects

    def ask(self, ops: Sequence[Read] | Sequence[Write], then: Then, *, watch: bool = False) -> None:
        """Call ZooKeeper; `then` is called later with one result per operation."""
        self._called += 1
        self._calls[self._called] = then
        self._effects.append(Zk(self._called, tuple(ops), watch))  # type: ignore[arg-type]

    def answered(self, call: int, results: Sequence[Result]) -> None:
        """Handle a call's answer; an answer that nothing waits for changes nothing (era 7.11)."""
        then = self._calls.pop(call, None)
        if then is not None:
            then(results)

    def send(self, conn: int, message: FromCoordinator, correlation: int = 0) -> None:
        self._effects.append(Send(conn, message, correlation))

    def close(self, conn: int) -> None:
        """Close a connection and ignore whatever it still sends."""
        self.forget(conn)
        self._effects.append(Close(conn))

    def close_all(self) -> None:
        """Close every connection."""
        for conn in list(self._conns):
            self.close(conn)

    def opened(self, conn: int) -> None:
        """Note a new connection; it must be used in time."""
        self._conns[conn] = self.timers.arm(self.now_ms + IDLE_MS, lambda: self.close(conn))

    def heard(self, conn: int) -> bool:
        """Return whether the connection is open on this side; while unregistered it gets more time."""
        if conn not in self._conns:
            return False
        if self._conns[conn] is not None:
            self.forget(conn)
            self.opened(conn)
        return True

    def registered(self, conn: int) -> None:
        """Note that the connection belongs to a member now: pings decide how long it stays open."""
        self.timers.cancel(self._conns[conn])
        self._conns[conn] = None

    def forget(self, conn: int) -> None:
        """Forget a closed connection."""
        self.timers.cancel(self._conns.pop(conn, None))

    def log(self, level: Level, text: str) -> None:
        self._effects.append(Log(level, text))

    def when_connected(self, action: Callable[[], None]) -> None:
        """Call `action` once ZooKeeper can be asked: at the next connection, or soon if there is one."""
        if self.connected:
            self.timers.arm(self.now_ms + self.negotiated_ms // 6, action)
        else:
            self._later.append(action)

    def reconnected(self) -> None:
        """Run what waited for a connection."""
        later, self._later = self._later, []
        for action in later:
            action()


def reason(result: Result) -> str:
    """Return why a read gave no usable value."""
    return result.value if isinstance(result, Failure) else "what is there makes no sense"


def uncertain(results: Sequence[Result]) -> bool:
    """Return whether the connection failed, so that the outcome is unknown."""
    return any(result in UNCERTAIN for result in results if isinstance(result, Failure))
