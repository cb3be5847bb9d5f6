"""Connections that are not authenticated yet: in a TLS handshake, or before the end of SASL."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable

from kgroup.runtime.complaints import Complaints

log = logging.getLogger(__name__)

ROOM = 512
ROOM_OF_ADDRESS = 256


class Newcomers:
    """Those of all listeners, the oldest first; `timeout_s` bounds a handshake, and SASL.

    At most ROOM in all and ROOM_OF_ADDRESS from one address. One more ends the oldest, of the address or of
    all: an honest client is done in milliseconds, and one that only keeps a place grows old.
    """

    def __init__(self, timeout_s: float, complaints: Complaints) -> None:
        self.timeout_s = timeout_s
        self._complaints = complaints
        self._all: dict[Hashable, tuple[str, Callable[[], None]]] = {}
        self._of: dict[str, dict[Hashable, None]] = {}

    def __len__(self) -> int:
        return len(self._all)

    def enter(self, key: Hashable, address: str, end: Callable[[], None]) -> None:
        """Count a connection; `end` is called when it has to make room for a younger one."""
        self._all[key] = address, end
        mine = self._of.setdefault(address, {})
        mine[key] = None
        if len(mine) > ROOM_OF_ADDRESS:
            self._end(next(iter(mine)), f"{ROOM_OF_ADDRESS} from {address}")
        elif len(self._all) > ROOM:
            self._end(next(iter(self._all)), f"{ROOM} in all")

    def leave(self, key: Hashable) -> None:
        """Drop a connection that is authenticated or gone; doing so again is harmless."""
        entry = self._all.pop(key, None)
        if entry is None:
            return
        address = entry[0]
        del self._of[address][key]
        if not self._of[address]:
            del self._of[address]

    def _end(self, key: Hashable, bound: str) -> None:
        _, end = self._all[key]
        self.leave(key)
        self._complaints.say(
            log, "connections that have not authenticated", f"closes the oldest, as there are {bound}"
        )
        end()
