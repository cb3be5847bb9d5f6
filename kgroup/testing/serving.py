"""The brokers of a cluster, in their own thread."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from functools import cached_property
from typing import Any, TypeVar

from kgroup.broker.authentication.settings import ListenerSettings
from kgroup.broker.control.control import Control
from kgroup.broker.control.dispatcher import ControlledDispatcher
from kgroup.broker.server import Server
from kgroup.runtime.cluster import Cluster

T = TypeVar("T")


class Serving:
    """Serves a cluster on free ports of loopback, or on `listeners`, until `stop`."""

    def __init__(self, cluster: Cluster, listeners: Sequence[ListenerSettings] = ()) -> None:
        self.cluster = cluster
        # Windows' default kind of loop has no readers, which listeners need.
        self._loop = asyncio.SelectorEventLoop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="kgroup brokers", daemon=True)
        self._thread.start()
        try:
            self.server = self.do(lambda: Server(cluster, listeners=listeners, make=ControlledDispatcher))
            self.bootstrap = ",".join(f"127.0.0.1:{port}" for port in self.call(self.server.start()))
        except BaseException:
            self._end()
            raise

    @cached_property
    def control(self) -> Control:
        """The verbs, for a cluster whose clock can be moved."""
        return Control(self.server)

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Return a coroutine's result, run in the brokers' thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def do(self, work: Callable[[], T]) -> T:
        """Return a function's result, called in the brokers' thread."""
        return self.call(_made(work))

    def stop(self) -> None:
        """Close every connection, end the thread, and close the cluster."""
        try:
            self.call(self.server.stop())
        finally:
            self._end()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self.cluster.close()


async def _made(make: Callable[[], T]) -> T:
    return make()
