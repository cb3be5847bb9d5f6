"""Messages from processes that work ahead of their parent: how they send results, and how it takes them."""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from multiprocessing.reduction import ForkingPickler
from typing import TYPE_CHECKING, TypeAlias

from kgroup.errors import StorageError

if TYPE_CHECKING:
    if sys.platform == "win32":
        from multiprocessing.connection import PipeConnection

        Connection: TypeAlias = PipeConnection[object, object]
    else:
        from multiprocessing.connection import Connection as Connection

WAITING_BYTES = 64 << 20


class Outbox:
    """Sends messages in a thread of its own, so that work goes on while the receiver is busy."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._waiting: deque[memoryview] = deque()
        self._bytes = 0
        self._changed = threading.Condition()
        threading.Thread(target=self._send, daemon=True).start()

    def put(self, message: object) -> None:
        """Send it as soon as those before it are sent; waits while very much is unsent."""
        data = ForkingPickler.dumps(message)
        with self._changed:
            self._changed.wait_for(lambda: self._bytes < WAITING_BYTES)
            self._waiting.append(data)
            self._bytes += len(data)
            self._changed.notify_all()

    def flush(self) -> None:
        """Wait until everything is sent."""
        with self._changed:
            self._changed.wait_for(lambda: not self._bytes)

    def _send(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
                data = self._waiting.popleft()
            try:
                self._connection.send_bytes(data)
            except OSError:
                os._exit(1)  # the receiver is gone
            with self._changed:
                self._bytes -= len(data)
                self._changed.notify_all()


def taken(connection: Connection, sender: str) -> object:
    """Return the next message of `sender`, as errors name it; StorageError if it was killed meanwhile."""
    try:
        return connection.recv()
    except (EOFError, OSError):
        raise StorageError(f"{sender} was killed", "is there memory for it?") from None
