"""When to retry, and when that would be wrong.

A request that may have been processed is repeated only if doing it twice is the same as once.
"""

import random
import time
from collections.abc import Callable, Iterator
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

    def delays(self, chance: Callable[[], float] = random.random) -> Iterator[float]:
        """Yield delays without end, each within `jitter` of its nominal length."""
        delay = self.first_s
        while True:
            yield delay * (1 + self.jitter * (2 * chance() - 1))
            delay = min(delay * 2, self.longest_s)


@value
class Retry:
    """Repeats a call until `timeout_s` has passed; clock, sleep and chance are injectable for tests."""

    timeout_s: float = 30.0
    backoff: Backoff = Backoff()
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = random.random

    def call(self, attempt: Callable[[float], T], *, idempotent: bool) -> T:
        """Return `attempt(seconds left)`'s result; raise its last error if out of time or unsafe.

        A non-idempotent attempt is repeated only after a code in NOT_PROCESSED.
        """
        deadline = self.clock() + self.timeout_s
        for delay in self.backoff.delays(self.chance):
            try:
                return attempt(max(deadline - self.clock(), 0.001))
            except (Unreachable, BrokerRefused) as error:
                if not may_repeat(error, idempotent) or self.clock() + delay >= deadline:
                    raise
            self.sleep(delay)
        raise AssertionError("delays() never ends")

    def looks(self, every_s: float, for_s: float = float("inf")) -> Iterator[None]:
        """Yield the moments to poll: now, at intervals, and a last time when time is up."""
        until = self.clock() + for_s
        while True:
            yield
            left = until - self.clock()
            if left <= 0:
                return
            self.sleep(min(every_s, left))


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
