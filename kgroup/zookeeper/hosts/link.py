"""What a host needs of ZooKeeper: a session of its own, calls in order, each answered once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from kgroup.zookeeper.coordinator.events import Event, Zk

Tell = Callable[[Event], None]


class Link(Protocol):
    """One session; what becomes of it and of its calls is told later, never inside a call."""

    def open(self) -> None:
        """Begin; ZkConnected tells when there is a session."""
        ...

    def call(self, zk: Zk) -> None:
        """Make a call; ZkDone tells its answer."""
        ...

    def close(self) -> None:
        """End the session, and tell nothing more."""
        ...


MakeLink = Callable[[Tell], Link]
