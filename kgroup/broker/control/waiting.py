"""Waiting on the event loop, in real time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
LOOK_S = 0.002


async def until(holds: Callable[[], T], within_s: float) -> T:
    """Return what `holds` returns, once that is true or the time is over."""
    loop = asyncio.get_running_loop()
    end = loop.time() + within_s
    while not (result := holds()) and loop.time() < end:  # noqa: ASYNC110 - there is no event
        await asyncio.sleep(LOOK_S)
    return result
