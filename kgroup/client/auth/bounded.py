"""A deadline for work that cannot be interrupted.

A resolver, a KDC or a cloud's metadata service may keep a call for minutes, whatever timeout it was given.
"""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from kgroup.errors import Unreachable

T = TypeVar("T")


def within(seconds: float, work: Callable[[], T], what: str, hint: str) -> T:
    """Return the result of `work`, or raise its error; Unreachable when it takes longer.

    `what` begins the error: who did not answer.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(max(seconds, 0.001))
    if errors:
        raise errors[0]
    if not results:
        raise Unreachable(f"{what} did not answer in time", hint)
    return results[0]


def until(deadline: float, clock: Callable[[], float] = time.monotonic) -> float:
    """Return the seconds left, never none."""
    return max(deadline - clock(), 0.001)
