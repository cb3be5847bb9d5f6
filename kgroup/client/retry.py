"""When to retry, and when that would be wrong.

A request that may have been processed is repeated only if doing it twice is the same as once.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field
from typing import TypeVar

from kgroup.domain import value
from kgroup.errors import BrokerRefused, ErrorCode, Unreachable

T = TypeVar("T")

NOT_PROCESSED = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    }
)
"""Codes with which a broker reports that it has not touched the request."""

_RETRIABLE = frozenset(int(code) for code in ErrorCode if code.retriable)


def _chance() -> float:
    import random

    return random.random()


class OutcomeUnknown(Unreachable):
    """A request was sent whole and no reply came: the broker may or may not have acted on it.

    `futile` when the broker hung up on the first request of a fresh connection, as it does when it wants
    SASL: a retry would end the same way.
    """

    def __init__(self, message: str, hint: str | None = None, *, futile: bool = False) -> None:
        super().__init__(message, hint)
        self.futile = futile


@value
class Backoff:
    """Exponential delays with jitter: seconds from `first_s`, doubling up to `longest_s`."""

    first_s: float = 0.1
    longest_s: float = 1.0
    jitter: float = 0.2

    def delays(self, chance: Callable[[], float] = _chance) -> Iterator[float]:
        """Yield delays without end, each within `jitter` of its nominal length."""
        delay = self.first_s
        while True:
            yield delay * (1 + self.jitter * (2 * chance() - 1))
            delay = min(delay * 2, self.longest_s)


class Limit:
    """The moment by which a command ends; by default never. What is unanswered then is unseen.

    The time counts from when this is made. Transport and retries share one, so that questions asked in turn
    do not add up.
    """

    def __init__(self, seconds: float = float("inf"), clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.seconds = seconds
        self.begun = clock()
        self.ends = self.begun + seconds

    def left(self) -> float:
        """Return the seconds left, below zero when it is over."""
        return self.ends - self.clock()

    def set(self, seconds: float) -> None:
        """Let it end so many seconds after it was made."""
        self.seconds, self.ends = seconds, self.begun + seconds

    def begin_again(self) -> None:
        """Begin the time again: a person was asked, and no broker."""
        self.begun = self.clock()
        self.set(self.seconds)

    @contextmanager
    def narrowed(self, seconds: float) -> Iterator[None]:
        """End after so many seconds, if not earlier, within the block."""
        before = self.ends
        self.ends = min(before, self.clock() + seconds)
        try:
            yield
        finally:
            self.ends = before

    def over(self) -> Unreachable:
        """Return the error for a request that was not sent because time was up."""
        return Unreachable(f"the time limit of {self.seconds:g} s was reached", "a longer --timeout may help")


@value
class Retry:
    """Repeats a call until `timeout_s` has passed, or `limit` is over.

    Clock, sleep and chance are injectable for tests; the clock is the limit's.
    """

    timeout_s: float = 30.0
    backoff: Backoff = Backoff()
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = _chance
    limit: Limit = field(default_factory=Limit)

    def ends(self) -> float:
        """Return the moment by which a call that begins now ends."""
        return min(self.clock() + self.timeout_s, self.limit.ends)

    def part_ends(self) -> float:
        """Return the moment by which a question about a part of the cluster ends.

        It gets half of the time left: when it stays unanswered, there is time to ask about the other parts.
        """
        return min(self.ends(), self.clock() + self.limit.left() / 2)

    def call(self, attempt: Callable[[float], T], *, idempotent: bool) -> T:
        """Return `attempt(seconds left)`'s result; raise its last error if out of time or unsafe.

        A non-idempotent attempt is repeated only after a code in NOT_PROCESSED.
        """
        deadline, delays = self.ends(), self.backoff.delays(self.chance)
        while True:
            try:
                return attempt(max(deadline - self.clock(), 0.001))
            except (Unreachable, BrokerRefused) as error:
                if not may_repeat(error, idempotent) or self.clock() + (delay := next(delays)) >= deadline:
                    raise
            self.sleep(delay)

    def looks(self, every_s: float, for_s: float = float("inf")) -> Iterator[None]:
        """Yield the moments to poll: now, at intervals, and a last time when time is up."""
        until = min(self.clock() + for_s, self.limit.ends)
        while True:
            yield
            left = until - self.clock()
            if left <= 0:
                return
            self.sleep(min(every_s, left))

    def pause(self, seconds: float) -> None:
        """Sleep because the user asked for it: this time is not the limit's."""
        self.sleep(seconds)
        self.limit.seconds += seconds
        self.limit.ends += seconds


def may_repeat(error: Unreachable | BrokerRefused, idempotent: bool) -> bool:
    """Return whether the failed request may be sent again.

    A broker that cannot be connected to is not retried here: the transport has already tried every address
    it knows, and an operator who mistyped one should not wait.
    """
    if isinstance(error, OutcomeUnknown):
        return idempotent and not error.futile
    if isinstance(error, BrokerRefused):
        if error.code in NOT_PROCESSED:
            return True
        return idempotent and error.code in _RETRIABLE
    return False
