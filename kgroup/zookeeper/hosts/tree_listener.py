"""The tree of a served cluster on a port, for kazoo, ZooKeeper's own shell and Kafka's old tools."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from kgroup.broker.listener import Listener
from kgroup.errors import DecodeError
from kgroup.runtime.complaints import Complaints
from kgroup.zookeeper.store import wire
from kgroup.zookeeper.store.operations import Change, Children, Failure, Get, Node, Write
from kgroup.zookeeper.store.tree import REQUEST_LIMIT, Tree
from kgroup.zookeeper.store.wire import Code, Greeting, Op, Request

log = logging.getLogger(__name__)

LEAST_MS, MOST_MS = 4_000, 40_000
"""Bounds of a session's timeout, as in a server with ZooKeeper's default tick."""
_WITH_STAT = frozenset({Op.EXISTS, Op.GET_DATA, Op.GET_ACL, Op.SET_DATA})


class TreeListener:
    """Serves a tree to any client. A session ends with its connection, or by timeout."""

    def __init__(
        self, tree: Tree, now_ms: Callable[[], int], host: str, port: int, complaints: Complaints
    ) -> None:
        """Listen; OSError if the port (0: any free one) cannot be used."""
        self.tree = tree
        self.now_ms = now_ms
        self.zxid = 0
        self._connections: set[_Connection] = set()
        self._listener = Listener(host, port, lambda: _Connection(self, self._connections), complaints)
        self.address = self._listener.address

    def close(self) -> None:
        """Close the listener, and end all sessions."""
        self._listener.close()
        for connection in list(self._connections):
            connection.end()


class _Connection(asyncio.Protocol):
    """One client; requests are answered in order, events before the answers that follow them."""

    def __init__(self, server: TreeListener, all_of_them: set[_Connection]) -> None:
        self._server = server
        self._all = all_of_them
        self._data = bytearray()
        self._session = 0
        self._timeout_s = MOST_MS / 1000
        self._heard: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._all.add(self)
        self._alive()

    def connection_lost(self, exc: Exception | None) -> None:
        self.end()

    def pause_writing(self) -> None:
        """Stop reading requests of a client that does not read its answers."""
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        if self._transport is not None:
            self._transport.resume_reading()
            self._cut()

    def data_received(self, data: bytes) -> None:
        self._data += data
        self._alive()
        self._cut()

    def end(self) -> None:
        """End the session, its ephemeral nodes with it, and the connection after the last answer."""
        transport, self._transport = self._transport, None
        self._all.discard(self)
        if self._heard is not None:
            self._heard.cancel()
        if self._session:
            self._server.tree.expire(self._session)
        if transport is not None:
            transport.close()

    def _alive(self) -> None:
        if self._heard is not None:
            self._heard.cancel()
        self._heard = asyncio.get_running_loop().call_later(self._timeout_s, self.end)

    def _cut(self) -> None:
        """Answer every whole frame; invalid bytes end the connection, as in ZooKeeper."""
        while self._transport is not None and self._transport.is_reading() and len(self._data) >= 4:
            size = int.from_bytes(self._data[:4], signed=True)
            if not 0 <= size <= REQUEST_LIMIT:
                self._complain(f"a frame of {size} bytes")
                return
            if len(self._data) < 4 + size:
                return
            payload = bytes(self._data[4 : 4 + size])
            del self._data[: 4 + size]
            try:
                if self._session:
                    self._answer(wire.read_request(payload))
                else:
                    self._greet(wire.read_greeting(payload))
            except DecodeError as error:
                self._complain(error.message)

    def _complain(self, why: str) -> None:
        log.warning("a client of the tree is cut off: %s", why)
        self.end()

    def _greet(self, greeting: Greeting) -> None:
        known = greeting.read_only_known
        if greeting.session:
            # It ended with its connection; the client makes another.
            self._send(wire.greeting(Greeting(0, 0, known)))
            self.end()
            return
        timeout_ms = min(max(greeting.timeout_ms, LEAST_MS), MOST_MS)
        self._timeout_s = timeout_ms / 1000
        self._session = self._server.tree.open(self._saw)
        self._send(wire.greeting(Greeting(timeout_ms, self._session, known)))

    def _saw(self, path: str, change: Change) -> None:
        self._send(wire.event(path, change, self._server.zxid))

    def _answer(self, request: Request) -> None:
        zxid = self._server.zxid
        if request.type == Op.CLOSE:
            self._send(wire.failure(request.xid, zxid, Code.OK))
            self.end()
        elif request.type == Op.PING:
            self._send(wire.failure(request.xid, zxid, Code.OK))
        elif not request.known:
            self._send(wire.failure(request.xid, zxid, Code.UNIMPLEMENTED))
        else:
            self._carry_out(request)

    def _carry_out(self, request: Request) -> None:
        tree, session = self._server.tree, self._session
        results = tree.ask(session, request.ops, watch=request.watch, now_ms=self._server.now_ms())
        if any(result is Failure.CONNECTION_LOSS for result in results):
            self._complain("a request over ZooKeeper's limit")
            return
        if request.ops and isinstance(request.ops[0], Write):
            self._server.zxid += 1
        size = children = 0
        if request.type in _WITH_STAT:
            path = request.ops[0].path
            node, names = tree.ask(session, (Get(path), Children(path)))
            size = len(node.data) if isinstance(node, Node) else 0
            children = len(names) if isinstance(names, tuple) else 0
        self._send(wire.answer(request, self._server.zxid, results, size, children))

    def _send(self, frame: bytes) -> None:
        if self._transport is not None:
            self._transport.write(frame)
