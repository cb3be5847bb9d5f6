"""A transport that ends after so many bytes, for a connection that breaks in the middle of an answer."""

from __future__ import annotations

import asyncio


class CutTransport(asyncio.Transport):
    """A wrapper of another transport that closes it once `left` bytes were written."""

    def __init__(self, transport: asyncio.Transport, left: int) -> None:
        super().__init__()
        self._transport = transport
        self._left = left

    def write(self, data: bytes | bytearray | memoryview[int]) -> None:
        if self._left <= 0:
            return
        self._transport.write(bytes(data[: self._left]))
        self._left -= len(data)
        if self._left <= 0:
            self._transport.close()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def close(self) -> None:
        self._transport.close()

    def abort(self) -> None:
        self._transport.abort()

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    def get_extra_info(self, name: str, default: object = None) -> object:
        return self._transport.get_extra_info(name, default)
