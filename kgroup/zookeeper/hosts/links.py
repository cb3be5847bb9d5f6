"""A host's session with ZooKeeper: in a tree of this process or with a real ensemble."""

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import partial
from typing import Protocol

from kgroup.zookeeper.events import (
    CoordinatorEvent,
    Zk,
    ZkConnected,
    ZkDone,
    ZkExpired,
    ZkFired,
    ZkSuspended,
)
from kgroup.zookeeper.store.names import Ensemble
from kgroup.zookeeper.store.operations import Change, Read, Result
from kgroup.zookeeper.store.session import FOREVER, Security, Session, State
from kgroup.zookeeper.store.tree import Tree

OnEvent = Callable[[CoordinatorEvent], None]


class Link(Protocol):
    """One session; its events and the answers to calls always come later, never inside a call."""

    def open(self) -> None:
        """Begin; ZkConnected reports the session."""
        ...

    def call(self, zk: Zk) -> None:
        """Make a call; ZkDone reports its answer."""
        ...

    def close(self) -> None:
        """End the session, and report nothing more."""
        ...


MakeLink = Callable[[OnEvent], Link]


class TreeLink:
    """A session that lasts as long as the process: the tree and its user pause together."""

    def __init__(self, tree: Tree, session_ms: int, now_ms: Callable[[], int], on_event: OnEvent) -> None:
        self._tree = tree
        self._session_ms = session_ms
        self._now_ms = now_ms
        self._on_event = on_event
        self._loop = asyncio.get_running_loop()
        self._session = 0
        self._closed = False

    def open(self) -> None:
        self._session = self._tree.open(lambda path, change: self._report_soon(ZkFired(path, change)))
        self._report_soon(ZkConnected(self._session, self._session_ms, fresh=True))

    def call(self, zk: Zk) -> None:
        results = self._tree.ask(self._session, zk.ops, watch=zk.watch, now_ms=self._now_ms())
        self._report_soon(ZkDone(zk.call, results))

    def close(self) -> None:
        self._closed = True
        self._tree.expire(self._session)

    def _report_soon(self, event: CoordinatorEvent) -> None:
        self._loop.call_soon(lambda: None if self._closed else self._on_event(event))


log = logging.getLogger(__name__)


class SessionLink:
    """One session after another, for as long as it is open.

    kazoo answers on one thread and reports watches on another. A watch that fires before its own read is
    answered waits for that answer; otherwise its owner would not know what it is about.
    """

    def __init__(self, ensemble: Ensemble, security: Security, session_ms: int, on_event: OnEvent) -> None:
        self._on_event = on_event
        self._loop = asyncio.get_running_loop()
        self._session = Session(
            ensemble,
            security,
            timeout_s=None,
            session_s=session_ms / 1000,
            rounds=FOREVER,
            on_state=self._changed,
        )
        self._closed = False
        self._last = 0
        self._watchers: dict[str, Callable[[Change], None]] = {}
        self._reading: Counter[str] = Counter()
        self._early: defaultdict[str, list[Change]] = defaultdict(list)

    def open(self) -> None:
        self._session.begin()

    def call(self, zk: Zk) -> None:
        if isinstance(zk.ops[0], Read):
            self._read(zk)
        else:
            self._session.submit_all(
                zk.ops, lambda results: self._hand_over(self._on_event, ZkDone(zk.call, results))
            )

    def close(self) -> None:
        self._closed = True
        self._session.close()

    def _read(self, zk: Zk) -> None:
        """Send reads one after another; the answer is complete when each has its own."""
        results: dict[int, Result] = {}

        def answered(number: int, result: Result) -> None:
            results[number] = result
            if len(results) == len(zk.ops):
                self._on_event(ZkDone(zk.call, tuple(results[n] for n in range(len(zk.ops)))))
                for op in zk.ops if zk.watch else ():
                    self._reading[op.path] -= 1
                    if not self._reading[op.path]:
                        del self._reading[op.path]
                        for change in self._early.pop(op.path, ()):
                            self._on_event(ZkFired(op.path, change))

        for number, op in enumerate(zk.ops):
            watch = None
            if zk.watch:
                self._reading[op.path] += 1
                # One callable per path: kazoo keeps a set of them, so a path that is read often has one
                # watch.
                watch = self._watchers.setdefault(op.path, partial(self._hand_over, self._saw, op.path))
            self._session.submit(op, partial(self._hand_over, answered, number), watch)

    def _saw(self, path: str, change: Change) -> None:
        if self._reading[path]:
            self._early[path].append(change)
        else:
            self._watchers.pop(path, None)
            self._on_event(ZkFired(path, change))

    def _changed(self, state: State) -> None:
        """Read the session on kazoo's thread, which has its state now; the loop hears of it in order."""
        event: CoordinatorEvent
        match state:
            case State.SUSPENDED:
                event = ZkSuspended()
            case State.LOST:
                event = ZkExpired()
            case State.CONNECTED:
                session, negotiated_ms = self._session.id, self._session.negotiated_ms
                if negotiated_ms is None:
                    # Without it the time to stop leading is unknown: it is better not to lead at all.
                    log.error("ZooKeeper has not reported its session timeout: no election")
                    return
                event = ZkConnected(session, negotiated_ms, fresh=session != self._last)
                self._last = session
        self._hand_over(self._on_event, event)

    def _hand_over(self, action: Callable[..., None], *args: object) -> None:
        if self._closed:
            return
        try:
            self._loop.call_soon_threadsafe(lambda: None if self._closed else action(*args))
        except RuntimeError:
            # The loop has ended, and the caller with it.
            self._closed = True
