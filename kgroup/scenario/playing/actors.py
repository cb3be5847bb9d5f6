"""The played members, each in its own thread, over the wire; and one that leaves no record."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from kgroup.client.settings import ConnectionSettings
from kgroup.client.transport import SocketTransport
from kgroup.errors import KgroupError
from kgroup.members.driver import PARKED_S, Driver, Event
from kgroup.members.effects import Effect, Failed, GroupMember
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse


class Halted(Exception):
    """The member may send nothing more."""


class _Line(SocketTransport):
    """Connections of one member, until it is halted."""

    halted = False

    def request(self, node: int | None, message: Message, **how: Any) -> Message:
        if self.halted:
            raise Halted
        return super().request(node, message, **how)


class Actor:
    """A member that runs from `start` until it fails or is halted; then its connection closes."""

    def __init__(self, name: str, member: GroupMember, settings: ConnectionSettings) -> None:
        self.name = name
        self.member = member
        self.failed: Failed | None = None
        self._transport = _Line(settings)
        self._asked: deque[Callable[[], None]] = deque()
        self._wanted = threading.Condition()
        self._driver = Driver(
            member, self._transport, clock_ms=_now_ms, pause=self._pause, on_event=self._on_event
        )
        self._thread = threading.Thread(target=self._run, name=f"kgroup plays {name}", daemon=True)

    def start(self) -> None:
        """Make it join."""
        self._thread.start()

    def do(self, what: Callable[[GroupMember, int], list[Effect]]) -> None:
        """Make the member do something, given the time, once it has no request in flight."""
        self._ask(lambda: self._driver.act(what(self.member, _now_ms())))

    def halt(self) -> None:
        """Stop it from sending, as if its process were killed."""
        self._transport.halted = True
        self._ask(_end)

    def join(self) -> None:
        """Wait until it has ended; nothing may block it."""
        self._thread.join()

    def _ask(self, what: Callable[[], None]) -> None:
        with self._wanted:
            self._asked.append(what)
            self._wanted.notify()

    def _pause(self, seconds: float) -> bool:
        with self._wanted:
            if not self._asked:
                self._wanted.wait(seconds)
            asked = [*self._asked]
            self._asked.clear()
        for what in asked:
            what()
        return False

    def _run(self) -> None:
        with self._transport, suppress(Halted):
            self._driver.run()

    def _on_event(self, event: Event) -> None:
        if isinstance(event, Failed):
            self.failed = event


class Passer:
    """A member of a classic group that joins once and leaves no record if it is removed in time.

    The cause of a rebalance often has no record; nor do the members of a generation that did not complete.
    """

    def __init__(self, join: JoinGroupRequest, settings: ConnectionSettings, coordinator: int) -> None:
        self.member_id = ""
        self._node = coordinator
        self._request = join
        self._settings = settings
        self._thread = threading.Thread(target=self._run, name="kgroup passes by", daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Wait until its join is answered or its connection is closed."""
        self._thread.join()

    def _run(self) -> None:
        with SocketTransport(self._settings) as transport, suppress(KgroupError):
            first = transport.request(self._node, self._request, min_version=4)
            assert isinstance(first, JoinGroupResponse)
            self.member_id = first.member_id
            again = replace(self._request, member_id=first.member_id)
            transport.request(self._node, again, timeout_s=PARKED_S)


def _end() -> None:
    raise Halted


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000
