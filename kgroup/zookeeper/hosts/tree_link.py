"""A session with a tree in this process, which the brokers of a served cluster share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kgroup.zookeeper.coordinator.events import Event, Zk, ZkConnected, ZkDone, ZkFired
from kgroup.zookeeper.hosts.link import Tell
from kgroup.zookeeper.store.operations import Change
from kgroup.zookeeper.store.tree import Tree


class TreeLink:
    """A session that lasts as long as the process: the tree and who asks it stand still together."""

    def __init__(self, tree: Tree, session_ms: int, now_ms: Callable[[], int], tell: Tell) -> None:
        self._tree = tree
        self._session_ms = session_ms
        self._now_ms = now_ms
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._session = 0
        self._closed = False

    def open(self) -> None:
        self._session = self._tree.open(self._saw)
        self._tell_soon(ZkConnected(self._session, self._session_ms, fresh=True))

    def call(self, zk: Zk) -> None:
        results = self._tree.ask(self._session, zk.ops, watch=zk.watch, now_ms=self._now_ms())
        self._tell_soon(ZkDone(zk.call, results))

    def close(self) -> None:
        self._closed = True
        self._tree.expire(self._session)

    def _saw(self, path: str, change: Change) -> None:
        self._tell_soon(ZkFired(path, change))

    def _tell_soon(self, event: Event) -> None:
        self._loop.call_soon(lambda: None if self._closed else self._tell(event))
