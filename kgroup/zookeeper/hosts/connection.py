"""One consumer's connection to a coordinator: bytes to messages, messages to bytes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from kgroup.errors import DecodeError
from kgroup.zookeeper.coordinator.events import Malformed, Received
from kgroup.zookeeper.wire.primitives import Frames

if TYPE_CHECKING:
    from kgroup.zookeeper.hosts.host import LegacyHost

PARTING_S = 5.0
"""How long a connection that is closed may take over what was still to be sent."""


class LegacyConnection(asyncio.Protocol):
    """`number` is the machine's name for it, never used again; once closed it tells the machine nothing."""

    def __init__(self, host: LegacyHost) -> None:
        self.number = 0
        self._host = host
        self._frames = Frames(host.config.max_frame_bytes)
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._host.opened(self)

    def data_received(self, data: bytes) -> None:
        try:
            for payload in self._frames.feed(data):
                if self._transport is None:
                    return
                message, correlation = self._host.wire.from_consumer(payload)
                self._host.step(Received(self.number, message, correlation))
        except DecodeError as error:
            self._host.step(Malformed(self.number, error.message))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._transport is not None:
            self._transport = None
            self._host.lost(self)

    def send(self, frame: bytes) -> int:
        """Send a frame; how many bytes the other side has not taken yet."""
        if self._transport is None or self._transport.is_closing():
            return 0
        self._transport.write(frame)
        return self._transport.get_write_buffer_size()

    def close(self) -> None:
        """End it behind what was sent; a peer that does not take that is cut off."""
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.close()
            if transport.get_write_buffer_size():
                asyncio.get_running_loop().call_later(PARTING_S, transport.abort)

    def abort(self) -> None:
        """End it at once."""
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.abort()
