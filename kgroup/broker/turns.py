"""Turns of the event loop: of the connections that want more than one, one is served in each."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable


class Turns:
    """Calls back in the order of `add`, one for each turn of the event loop.

    In between, the loop reads what all others have sent: a request of a connection that sends one at a
    time waits for one turn of one of these, however many they are.
    """

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()

    def add(self, go_on: Callable[[], None]) -> None:
        """Call `go_on` once, when it is its turn."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._next)
        self._waiting.append(go_on)

    def after_unread(self, go_on: Callable[[], None]) -> None:
        """Call `go_on` once, when all that has come by now was read and its connection had its turn."""
        loop = asyncio.get_running_loop()
        # a turn of the loop first does what it was asked for in the last one, and only then reads
        loop.call_soon(loop.call_soon, self.add, go_on)

    def clear(self) -> None:
        """Call nothing back any more."""
        self._waiting.clear()

    def _next(self) -> None:
        if not self._waiting:
            return
        go_on = self._waiting.popleft()
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._next)
        go_on()
