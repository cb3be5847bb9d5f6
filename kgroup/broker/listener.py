"""A listening socket that takes connections while there are descriptors, and says when there are none left.

asyncio's own accepts in a loop that logs a traceback for each try when descriptors run out.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
from collections.abc import Callable

from kgroup.runtime.complaints import Complaints

log = logging.getLogger(__name__)

BACKLOG = 1024
AT_ONCE = 16  # accepted before the loop does something else
SPARE_FILES = 64  # descriptors that connections leave to the logs
RETRY_S = 1.0


class Listener:
    """Accepts on `host` and `port` (0: any free one) for as long as it is open; OSError if it cannot be had.

    A connection that would take one of the last descriptors is closed at once: segments are opened and
    rolled with those.
    """

    def __init__(
        self, host: str, port: int, make: Callable[[], asyncio.Protocol], complaints: Complaints
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._make = make
        self._complaints = complaints
        self._socket = socket.create_server((host, port), backlog=BACKLOG)
        self._socket.setblocking(False)
        self.address: tuple[str, int] = self._socket.getsockname()[:2]
        self._making: set[asyncio.Task[object]] = set()
        self._retry: asyncio.TimerHandle | None = None
        self._listen()

    def close(self) -> None:
        """Accept nothing more; connections that are there stay."""
        if self._retry is not None:
            self._retry.cancel()
        self._loop.remove_reader(self._socket)
        self._socket.close()

    def _listen(self) -> None:
        self._retry = None
        self._loop.add_reader(self._socket, self._accept)

    def _accept(self) -> None:
        for _ in range(AT_ONCE):
            try:
                accepted, _ = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._complain(
                    f"cannot accept connections ({error.strerror}), tries again every {RETRY_S:g} s"
                )
                self._loop.remove_reader(self._socket)
                self._retry = self._loop.call_later(RETRY_S, self._listen)
                return
            if accepted.fileno() >= highest_file():
                accepted.close()
                self._complain("closes new connections: nearly all file descriptors (ulimit -n) are in use")
                continue
            accepted.setblocking(False)
            making = self._loop.create_task(self._connect(accepted))
            self._making.add(making)
            making.add_done_callback(self._making.discard)

    async def _connect(self, accepted: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._make, accepted)
        except OSError as error:
            accepted.close()
            self._complain(f"lost a connection before it was set up: {error.strerror}")

    def _complain(self, text: str) -> None:
        self._complaints.say(log, f"{self.address[0]}:{self.address[1]}", text)


def highest_file() -> int:
    """Descriptors from this number on are not for connections; the system gives out the lowest free one."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return 1 << 31
    return limit - min(SPARE_FILES, limit // 4)
