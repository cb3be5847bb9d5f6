"""A listening socket that accepts connections while there are descriptors, and logs when there are none.

asyncio's own accepts in a loop that logs a traceback for each try when descriptors run out.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from kgroup.broker.authentication.tls import reason
from kgroup.broker.newcomers import Newcomers
from kgroup.log.open_files import spare_files
from kgroup.portable import file_limit
from kgroup.runtime.complaints import Complaints

if TYPE_CHECKING:
    import ssl

log = logging.getLogger(__name__)

BACKLOG = 1024
AT_ONCE = 16  # accepted before the loop does something else
RETRY_S = 1.0
TLS_GOODBYE_S = 3.0  # for the peer to agree that a connection is closed


class Listener:
    """Accepts on `host` and `port` (0: any free one) for as long as it is open; OSError if it cannot be had.

    A connection that would take one of the last descriptors is closed at once: segments are opened and
    rolled with those. With `tls`, a connection is passed to what `make` makes once its handshake is done;
    until then it is one of the newcomers.
    """

    def __init__(
        self,
        host: str,
        port: int,
        make: Callable[[], asyncio.Protocol],
        complaints: Complaints,
        tls: tuple[ssl.SSLContext, Newcomers] | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._make = make
        self._complaints = complaints
        self._tls = tls
        self._socket = _bound(host, port)
        self._socket.setblocking(False)
        self.address: tuple[str, int] = self._socket.getsockname()[:2]
        self._making: dict[asyncio.Task[None], socket.socket] = {}
        self._retry: asyncio.TimerHandle | None = None
        self._listen()

    def close(self) -> None:
        """Stop accepting; existing connections stay, handshakes under way end."""
        if self._retry is not None:
            self._retry.cancel()
        self._loop.remove_reader(self._socket)
        self._socket.close()
        if self._tls is not None:
            for accepted in self._making.values():
                _shut(accepted)

    def refuse(self) -> None:
        """Refuse connections, and keep the port: a socket that does not listen is bound to it."""
        self.close()
        kept = socket.socket(socket.AF_INET6 if ":" in self.address[0] else socket.AF_INET)
        if os.name == "posix":
            kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket = kept  # also if the port was taken meanwhile: the former one is closed
        kept.bind(self.address)

    def accept_again(self) -> None:
        """Listen again after `refuse`; OSError if another took the port."""
        self._socket.close()
        self._socket = _bound(*self.address)
        self._socket.setblocking(False)
        self._listen()

    async def ended(self) -> None:
        """Wait until what was accepted before `close` is a connection, or its handshake has ended."""
        if self._making:
            await asyncio.wait(tuple(self._making))

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
            if accepted.fileno() >= file_limit() - spare_files():
                accepted.close()
                self._complain("closes new connections: nearly all file descriptors (ulimit -n) are in use")
                continue
            accepted.setblocking(False)
            making = self._loop.create_task(self._connect(accepted))
            self._making[making] = accepted
            making.add_done_callback(self._making.pop)

    async def _connect(self, accepted: socket.socket) -> None:
        if self._tls is None:
            try:
                await self._loop.connect_accepted_socket(self._make, accepted)
            except OSError as error:
                accepted.close()
                self._complain(f"lost a connection before it was set up: {error.strerror}")
            return
        context, newcomers = self._tls
        try:
            peer = accepted.getpeername()[0]
        except OSError:
            accepted.close()
            return
        newcomers.enter(accepted, peer, partial(_shut, accepted))
        try:
            await self._loop.connect_accepted_socket(
                self._make,
                accepted,
                ssl=context,
                ssl_handshake_timeout=newcomers.timeout_s,
                ssl_shutdown_timeout=TLS_GOODBYE_S,
            )
        except OSError as error:
            # The error's frames lead back to it: without this the collector has to find asyncio's buffers.
            error.with_traceback(None)
            accepted.close()
            log.info("the TLS handshake of %s failed: %s", peer, reason(error))
        finally:
            newcomers.leave(accepted)

    def _complain(self, text: str) -> None:
        self._complaints.say(log, f"{self.address[0]}:{self.address[1]}", text)


def _shut(accepted: socket.socket) -> None:
    """End a handshake: its task finds the connection closed."""
    with suppress(OSError):
        accepted.shutdown(socket.SHUT_RDWR)


def _bound(host: str, port: int) -> socket.socket:
    if ":" in host:
        return socket.create_server((host, port), family=socket.AF_INET6, backlog=BACKLOG)
    if not host and socket.has_dualstack_ipv6():
        return socket.create_server(
            (host, port), family=socket.AF_INET6, backlog=BACKLOG, dualstack_ipv6=True
        )
    return socket.create_server((host, port), backlog=BACKLOG)
