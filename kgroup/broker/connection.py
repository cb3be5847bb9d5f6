"""One client's connection: bytes to calls, answers to bytes, in order and one call at a time.

A connection is served in turns: after a few requests, or a good many bytes, all others come first
(docs/decisions/0013-turns-on-the-loop.md).
"""

from __future__ import annotations

import asyncio
import logging
import struct
from enum import Enum, auto
from ipaddress import IPv6Address
from typing import Protocol

from kgroup.broker.call import Call, NoResponse
from kgroup.broker.cut import CutTransport
from kgroup.broker.dispatch import Dispatcher
from kgroup.broker.handlers.api_versions import unsupported
from kgroup.broker.routes import NotServed, Route, Routes, encoded
from kgroup.broker.turns import Turns
from kgroup.errors import DecodeError, ErrorCode
from kgroup.protocol import registry
from kgroup.protocol.codec import Message
from kgroup.protocol.registry import ApiKey
from kgroup.protocol.requests import refusal
from kgroup.runtime.complaints import Complaints
from kgroup.security.principals import ANONYMOUS

log = logging.getLogger(__name__)

READ_AHEAD = 64 * 1024  # bytes taken in while a call is parked or the peer does not read
WRITE_AHEAD = 256 * 1024  # bytes of answers waiting for the peer, beyond which no more is read
TURN_REQUESTS = 16  # served before the others have their turn
TURN_BYTES = 64 * 1024  # taken in and answered, likewise; the last request may go over it
AT_ONCE = 16 * 1024  # bytes that may be served at once; more than that waits for a turn
PLAIN_REQUEST_BYTES = 8 << 20  # the longest request that carries no records
LENGTH = struct.Struct(">i")
KEY_END = 6  # bytes of a frame that hold its length and its API


class Host(Protocol):
    """What the connections of a process share."""

    dispatcher: Dispatcher
    routes: Routes
    turns: Turns
    complaints: Complaints

    def opened(self, connection: Connection) -> None: ...

    def closed(self, connection: Connection) -> None: ...


class Serving(Enum):
    """What happens to the next request."""

    READY = auto()  # it is served as it comes
    QUEUED = auto()  # this connection's next turn is arranged
    PARKED = auto()  # a call waits for its answer


# A member of an Enum takes four times as long to get as a name of the module.
_READY = Serving.READY


class Reading(Enum):
    """Whether the peer's bytes are read."""

    OPEN = auto()
    PAUSED = auto()
    ENDED = auto()  # the peer sends nothing more


class Connection(asyncio.Protocol):
    """Requests are served in order, the next one when the answer to the last is on its way (as Kafka does).

    What a peer can make us keep is bounded: one frame, a read-ahead, one answer. So is its work in one
    turn. Bytes that are no request close this connection and touch nothing else.
    """

    def __init__(self, server: Host, node: int, listener: str = "") -> None:
        self._server = server
        self._dispatcher = server.dispatcher
        self._routes = server.routes
        self._limit = server.dispatcher.cluster.settings.request_max_bytes
        self._longest = min(self._limit, PLAIN_REQUEST_BYTES)
        self.node = node
        self._listener = listener
        self._principal = ANONYMOUS
        self._host = ""
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._needed = 4  # bytes in the buffer before another frame may be complete
        self._out = bytearray()  # answers not sent yet
        self._answers_size = 0  # bytes of all answers of this turn
        self._serving = Serving.READY
        self._reading = Reading.OPEN
        self._peer_reads = True
        self._parked: tuple[Route, int, Call[Message]] | None = None
        self._on_answer = self._answered
        self.active = True  # whether bytes came since `active` was last reset

    @property
    def parked(self) -> bool:
        """Whether a call waits for its answer."""
        return self._serving is Serving.PARKED

    @property
    def is_open(self) -> bool:
        """Whether the peer may still be there."""
        return self._transport is not None and not self._transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=WRITE_AHEAD)
        peer = transport.get_extra_info("peername")
        host = peer[0] if peer else ""
        if ":" in host:
            # As Java's getHostAddress has it: no short forms of IPv6, no IPv4 inside of it.
            ip = IPv6Address(host.partition("%")[0])
            parts = ip.exploded.split(":")
            host = ip.ipv4_mapped or ":".join(f"{int(part, 16):x}" for part in parts)
        self._host = f"/{host}"
        self._server.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._buffer.clear()
        self._out.clear()
        if self._parked is not None and self._parked[2].forget is not None:
            self._parked[2].forget()
        self._serving, self._parked = Serving.READY, None
        self._server.closed(self)

    def data_received(self, data: bytes) -> None:
        self.active = True
        buffer = self._buffer
        if not buffer and len(data) <= AT_ONCE:
            self._take_turn(data)
            return
        buffer += data
        if self._waits():
            if len(buffer) > READ_AHEAD:
                self._pause()
        elif len(buffer) < self._needed:
            return
        elif len(buffer) <= AT_ONCE:
            self._take_turn(buffer)
        else:
            self._queue()

    def eof_received(self) -> bool:
        """Return whether to stay open: only for requests that came whole and wait for their turn."""
        if self._serving is Serving.QUEUED and self._peer_reads:
            self._reading = Reading.ENDED
            return True
        return False

    def pause_writing(self) -> None:
        self._peer_reads = False

    def resume_writing(self) -> None:
        self._peer_reads = True
        if self._has_more():
            self._queue()

    def close(self) -> None:
        """Send what was answered, then close."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close at once, without sending the rest."""
        if self._transport is not None:
            self._transport.abort()

    def cut_after(self, size: int) -> None:
        """Send what was answered and so many bytes more, then close."""
        self._flush()
        if self._transport is not None:
            self._transport = CutTransport(self._transport, size)
            if not size:
                self.close()

    def _take_turn(self, data: bytes | bytearray) -> None:
        """Serve the complete frames in `data` as far as allowed, and keep the rest."""
        pos, end, needed = 0, len(data), 4
        left, self._answers_size = TURN_REQUESTS, 0
        while self._serving is _READY and self._peer_reads and end - pos >= 4:
            size = LENGTH.unpack_from(data, pos)[0]
            stop = pos + 4 + size
            if not 0 <= size <= self._longest and not self._may_be_long(size, data[pos + 4 : pos + KEY_END]):
                self._give_up(f"a frame of {size} bytes")
                return
            if stop > end:
                needed = 4 + size if size <= self._longest or end - pos >= KEY_END else KEY_END
                break
            if not left or pos + self._answers_size > TURN_BYTES:
                self._queue()
                break
            left -= 1
            if type(data) is bytes:
                self._serve(data, pos + 4) if stop == end else self._serve(data[pos + 4 : stop], 0)
            else:
                self._serve(bytes(memoryview(data)[pos + 4 : stop]), 0)
            pos = stop
            if self._transport is None or self._transport.is_closing():
                return
        self._flush()
        if data is self._buffer:
            del self._buffer[:pos]
        elif pos < end:
            self._buffer += data[pos:] if pos else data
        self._needed = needed
        if len(self._buffer) > READ_AHEAD and self._waits():
            self._pause()

    def _may_be_long(self, size: int, key: bytes | bytearray) -> bool:
        """Return whether a frame may have this size, as far as known: one that begins with Produce's key."""
        known = len(key) == KEY_END - 4
        return 0 <= size <= self._limit and (not known or int.from_bytes(key, "big") == ApiKey.PRODUCE)

    def _serve(self, frame: bytes, pos: int) -> None:
        try:
            route, correlation, client_id, body = self._routes.read(frame, pos)
        except NotServed as error:
            if error.key != ApiKey.API_VERSIONS:
                name = registry.name_of(error.key)
                self._give_up(f"a request of {name} v{error.version}, which is not served")
                return
            # Another version of ApiVersions is answered in version 0 (KIP-511).
            oldest = self._routes.find(ApiKey.API_VERSIONS, 0)
            assert oldest is not None
            self._queue_out(encoded(oldest, error.correlation, unsupported(self._dispatcher)))
            return
        except DecodeError as error:
            self._give_up(f"bytes that are no request ({error})")
            return
        call = Call(
            body,
            route.version,
            client_id,
            self._host,
            self.node,
            self._on_answer,
            None,
            self._principal,
            self._listener,
            self,
        )
        answer = self._dispatcher.handle(call)
        if answer is None:
            self._serving, self._parked = Serving.PARKED, (route, correlation, call)
        elif isinstance(answer, NoResponse):
            if answer is NoResponse.CLOSE_CONNECTION:
                self._give_up("a failed request that expects no answer")
        else:
            self._send(route, correlation, call, answer)

    def _send(self, route: Route, correlation: int, call: Call[Message], answer: Message) -> None:
        try:
            out = encoded(route, correlation, answer)
        except Exception as error:  # such as one with too long a string
            name = registry.name_of(call.body.API)
            self._server.complaints.say(
                log,
                f"the answer to {name} v{route.version}",
                f"cannot be encoded, {self._host} is refused: {error}",
            )
            try:
                out = encoded(route, correlation, refusal(call.body, ErrorCode.UNKNOWN_SERVER_ERROR))
            except Exception:
                self._give_up(f"a request of {name} that cannot even be refused")
                return
        self._queue_out(out)

    def _queue_out(self, out: bytearray) -> None:
        self._answers_size += len(out)
        if self._out:
            self._out += out
        else:
            self._out = out
        if len(self._out) > READ_AHEAD:
            self._flush()

    def _flush(self) -> None:
        """Send the answers that are ready, if there are any."""
        if self._out:
            out, self._out = self._out, bytearray()
            if self._transport is not None:
                self._transport.write(out)

    def _answered(self, response: Message | None) -> None:
        """Send the parked call's answer; the next request is served from the event loop, not from here."""
        parked, self._parked = self._parked, None
        if parked is None or self._transport is None:
            return
        self._serving = Serving.READY
        if response is not None:
            self._send(*parked, response)
            self._flush()
        if self._has_more():
            self._serving = Serving.QUEUED  # it has waited already: not behind those that only want more
            asyncio.get_running_loop().call_soon(self._go_on)

    def _queue(self) -> None:
        """Have the next turn after all others, unless one is arranged or a call is parked."""
        if self._serving is Serving.READY:
            self._serving = Serving.QUEUED
            self._server.turns.add(self._go_on)

    def _go_on(self) -> None:
        """Take the turn that was arranged, and read on when nothing waits any more."""
        self._serving = Serving.READY
        if self._transport is None or not self._peer_reads:
            return
        if self._buffer:
            self._take_turn(self._buffer)
        if self._transport.is_closing() or self._serving is Serving.QUEUED:
            return
        if self._reading is Reading.ENDED:
            self.close()
        elif self._reading is Reading.PAUSED and not self._waits():
            self._reading = Reading.OPEN
            self._transport.resume_reading()

    def _waits(self) -> bool:
        """Return whether what is in the buffer is for later."""
        return self._serving is not Serving.READY or not self._peer_reads

    def _has_more(self) -> bool:
        """Whether there is work once nothing waits: requests that were read, or the decision to read on."""
        return bool(self._buffer) or self._reading is not Reading.OPEN

    def _pause(self) -> None:
        if self._reading is not Reading.OPEN:
            return
        if self._transport is not None and not self._transport.is_closing():
            self._reading = Reading.PAUSED
            self._transport.pause_reading()

    def _give_up(self, why: str) -> None:
        log.info("closing the connection of %s: it sent %s", self._host, why)
        self._flush()
        self._buffer.clear()
        self.close()
