"""Raw connections to a broker: every request that is still open has one of its own, as no client would."""

from __future__ import annotations

import selectors
import socket
import time

from kgroup.errors import Unreachable
from kgroup.protocol.codec import Message
from kgroup.protocol.frame import FrameBuffer
from kgroup.protocol.headers import decode_response, encode_request
from kgroup.protocol.messages.api_versions import ApiVersionsRequest


class Wire:
    """Requests out by ticket, responses in by ticket; a connection is used again once it is answered.

    One that `greets` asks for ApiVersions first and waits for the answer: a broker may be slower to take up
    a new connection than to answer on an old one, and rows must arrive in order.
    """

    def __init__(self, host: str, port: int, *, greets: bool = False) -> None:
        self._address = host, port
        self._greets = greets
        self._selector = selectors.DefaultSelector()
        self._idle: dict[str, list[socket.socket]] = {}
        self._open: dict[int, tuple[socket.socket, str, int, int]] = {}
        self._frames: dict[int, FrameBuffer] = {}

    def send(self, ticket: int, client_id: str, message: Message, version: int) -> None:
        idle = self._idle.setdefault(client_id, [])
        connection = idle.pop() if idle else self._connect()
        self._open[connection.fileno()] = connection, client_id, message.API, version
        connection.sendall(encode_request(message, version, ticket, client_id))

    def receive(self, timeout_s: float) -> list[tuple[int, Message]]:
        """What has arrived, or arrives first within the time."""
        found = []
        for key, _ in self._selector.select(timeout_s):
            assert isinstance(key.fileobj, socket.socket)
            for frame in self._frames[key.fd].feed(_received(key.fileobj)):
                connection, client_id, api_key, version = self._open.pop(key.fd)
                found.append(decode_response(bytes(frame), api_key, version))
                self._idle[client_id].append(connection)
        return found

    def collect(self, expected: int, timeout_s: float) -> list[tuple[int, Message]]:
        """Wait for `expected` responses; also those that have arrived besides."""
        found: list[tuple[int, Message]] = []
        until = time.monotonic() + timeout_s
        while len(found) < expected and (left := until - time.monotonic()) > 0:
            found += self.receive(left)
        return found + self.receive(0)

    def close(self) -> None:
        for key in list(self._selector.get_map().values()):
            assert isinstance(key.fileobj, socket.socket)
            key.fileobj.close()
        self._selector.close()

    def _connect(self) -> socket.socket:
        connection = socket.create_connection(self._address, 10)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        frames = self._frames[connection.fileno()] = FrameBuffer()
        if self._greets:
            connection.sendall(encode_request(ApiVersionsRequest(), 0, 0, ""))
            while not list(frames.feed(_received(connection))):
                pass
        self._selector.register(connection, selectors.EVENT_READ)
        return connection


def _received(connection: socket.socket) -> bytes:
    data = connection.recv(1 << 16)
    if not data:
        raise Unreachable("the broker closed the connection")
    return data
