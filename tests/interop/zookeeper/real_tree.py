"""A real ZooKeeper in the place of the tree in memory, for tests that ask it one thing at a time."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from kgroup.zookeeper.store.names import Ensemble, parse_ensemble
from kgroup.zookeeper.store.operations import (
    Change,
    Children,
    Create,
    Exists,
    Failure,
    Get,
    Node,
    Read,
    Result,
    Write,
)
from kgroup.zookeeper.store.session import FOREVER, Session

from .era import eventually

PATIENCE_S = 100
Watcher = Callable[[str, Change], None]


@dataclass
class _Own:
    """A session, what it watches, and what its watches saw that nobody was told yet."""

    session: Session
    watcher: Watcher | None
    watching: dict[str, Callable[[Change], None]] = field(default_factory=dict)
    seen: list[tuple[str, Change]] = field(default_factory=list)

    def saw(self, path: str, change: Change) -> None:
        self.watching.pop(path, None)
        self.seen.append((path, change))

    def watch(self, path: str) -> Callable[[Change], None]:
        """One callable a path: a change that two watches see is told once."""
        return self.watching.setdefault(path, partial(self.saw, path))

    def catch_up(self) -> None:
        """Have every watch speak that has something to say: ZooKeeper tells it before a later answer."""
        self.session.ask(Exists("/"))
        self.session._client.handler.callback_queue.join()  # type: ignore[attr-defined]


class RealTree:
    """A `Tree` that is real, below a chroot of its own: no answer before all watches spoke."""

    _made = itertools.count(1)

    def __init__(self, bootstrap: str) -> None:
        self._sessions: dict[int, _Own] = {}
        whole = parse_ensemble(bootstrap)
        self._base = f"/tree-{next(self._made)}"
        with Session(whole, timeout_s=PATIENCE_S) as session:
            session.ask_all(Create(self._base, b""))
        self._ensemble = Ensemble(whole.servers, self._base)
        self._own = self._opened("")

    def _opened(self, chroot: str) -> Session:
        where = Ensemble(self._ensemble.servers, self._base + chroot)
        made = Session(where, timeout_s=PATIENCE_S, rounds=FOREVER)
        made.open()
        return made

    def close(self) -> None:
        for session in [self._own, *(own.session for own in self._sessions.values())]:
            session.close()

    def open(self, watcher: Watcher | None = None, chroot: str = "") -> int:
        session = self._opened(chroot)
        self._sessions[session.id] = _Own(session, watcher)
        return session.id

    def expire(self, session: int) -> None:
        """End it by its own client, which for the tree and all others is the same."""
        ended = self._sessions.pop(session, None)
        if ended is not None:
            ended.session.close()
            self._tell()

    def alive(self, session: int) -> bool:
        known = self._sessions.get(session)
        if known is None:
            return False
        known.catch_up()
        return known.session.id == session

    def forget_watches(self, session: int) -> list[str]:
        """Cut the connection; the paths of which kazoo says that their watches are lost."""
        own = self._sessions[session]
        wanted = list(own.watching)
        connection: Any = own.session._client._connection
        connection._socket.shutdown(socket.SHUT_RDWR)
        eventually(lambda: not own.watching, "all watches are lost")
        own.catch_up()
        assert own.session.id == session
        assert {change for _, change in own.seen} <= {Change.LOST}
        own.seen.clear()
        return wanted

    def deny(self, path: str) -> None:
        from kazoo.security import make_digest_acl

        client: Any = self._own._client
        client.set_acls(path, [make_digest_acl("somebody", "else", all=True)])

    def walk(self, path: str = "/") -> Iterator[tuple[str, Node]]:
        node, names = self._own.ask(Get(path), Children(path))
        if isinstance(node, Node) and isinstance(names, tuple):
            yield path, node
            for name in names:
                yield from self.walk(f"{path.rstrip('/')}/{name}")

    def ask(
        self, session: int, ops: Sequence[Read] | Sequence[Write], *, watch: bool = False, now_ms: int = 0
    ) -> tuple[Result, ...]:
        own = self._sessions.get(session)
        if own is None:
            return (Failure.SESSION_EXPIRED,) * len(ops)
        reads = [op for op in ops if isinstance(op, Read)]
        if not reads:
            results = own.session.ask_all(*(op for op in ops if isinstance(op, Write)))
            self._tell()
            return results
        if not watch:
            return own.session.ask(*reads)
        found: dict[int, Result] = {}
        for number, op in enumerate(reads):
            own.session.submit(op, partial(found.__setitem__, number), own.watch(op.path))
        own.catch_up()
        eventually(lambda: len(found) == len(reads), "all reads are answered")
        for number, op in enumerate(reads):
            if found[number] is Failure.NO_NODE and not isinstance(op, Exists):
                own.watching.pop(op.path, None)
        return tuple(found[number] for number in range(len(reads)))

    def _tell(self) -> None:
        for own in [own for own in self._sessions.values() if own.watching]:
            own.catch_up()
        for own in list(self._sessions.values()):
            seen, own.seen = own.seen, []
            for path, change in seen:
                if own.watcher is not None:
                    own.watcher(path, change)
