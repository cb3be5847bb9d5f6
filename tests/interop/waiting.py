"""The one way these tests wait: poll until true, or fail with what was last seen."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(predicate: Callable[[], T], timeout: float = 120.0, what: str = "", every: float = 0.05) -> T:
    """Return the first truthy value of `predicate`; AssertionError after `timeout` seconds.

    An AssertionError raised by the predicate counts as "not yet" and is shown when time is up.
    """
    deadline = time.monotonic() + timeout
    while True:
        try:
            seen: object = predicate()
        except AssertionError as failed:
            seen, value = f"AssertionError: {failed}", None
        else:
            value = seen
        if value:
            return value  # type: ignore[return-value]
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout} s: {what or predicate}; last seen: {seen!r}")
        time.sleep(every)
