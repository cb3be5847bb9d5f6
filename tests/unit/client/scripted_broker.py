"""A broker on loopback that answers, goes silent or hangs up, as told; real sockets, no Kafka."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self

from kgroup.errors import DecodeError
from kgroup.protocol.codec import Message
from kgroup.protocol.frame import FrameBuffer
from kgroup.protocol.headers import decode_request, encode_response
from kgroup.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from kgroup.protocol.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker

HANG_UP, SILENT = "hang up", "silent"
Answer = Message | bytes | str


class ScriptedBroker:
    """Answers ApiVersions and Metadata (itself as node 1); `answers` overrides by request class.

    An answer is a response, raw bytes, HANG_UP or SILENT, or a callable that gives one for the request.
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.answers: dict[type[Message], Answer | Callable[[Any], Answer]] = {
            ApiVersionsRequest: lambda _: self.versions(),
            MetadataRequest: lambda _: self.metadata(),
        }
        self.served = {3: range(1, 14), 16: range(6), 17: range(2), 18: range(5), 36: range(3)}
        self.requests: list[Message] = []
        self.connections = 0
        self.open: list[socket.socket] = []
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads: list[threading.Thread] = []
        self.address: tuple[str, int] = self._listener.getsockname()

    def versions(self) -> Message:
        return ApiVersionsResponse(
            api_keys=tuple(
                ApiVersion(api_key=key, min_version=versions[0], max_version=versions[-1])
                for key, versions in self.served.items()
            )
        )

    def metadata(self) -> Message:
        host, port = self.address
        return MetadataResponse(brokers=(MetadataResponseBroker(node_id=1, host=host, port=port),))

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self.down()
        for thread in self._threads:
            thread.join(300)

    def down(self) -> None:
        """Stop listening and cut every connection."""
        with socket.socket() as wake:
            # Closing a listener does not wake a thread that waits in accept; a connection does.
            listener, self._listener = self._listener, None  # type: ignore[assignment]
            if listener:
                wake.connect(self.address)
                listener.close()
        self.cut()

    def cut(self) -> None:
        """Close every connection from the broker's side."""
        for connection in self.open:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        self.open.clear()

    def _start(self, target: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        listener = self._listener
        while True:
            try:
                accepted, _ = listener.accept()
            except OSError:
                return
            if self._listener is None:
                accepted.close()
                return
            self.connections += 1
            self.open.append(accepted)
            self._start(self._serve, accepted)

    def _serve(self, accepted: socket.socket) -> None:
        try:
            if self._tls:
                accepted = self._tls.wrap_socket(accepted, server_side=True)
                self.open.append(accepted)
            buffer = FrameBuffer()
            while data := accepted.recv(65536):
                for frame in buffer.feed(data):
                    if not self._answer(accepted, frame):
                        return
        except (OSError, DecodeError):
            pass  # the client is gone, or speaks another protocol: hang up
        finally:
            accepted.close()

    def _answer(self, accepted: socket.socket, frame: bytes) -> bool:
        header, request = decode_request(frame)
        self.requests.append(request)
        answer = self.answers[type(request)]
        if callable(answer):
            answer = answer(request)
        if answer == HANG_UP:
            return False
        if answer == SILENT:
            return True
        if isinstance(answer, Message):
            answer = encode_response(answer, header.api_version, header.correlation_id)
        assert isinstance(answer, bytes)
        accepted.sendall(answer)
        return True
