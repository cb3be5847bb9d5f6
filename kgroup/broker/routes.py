"""From bytes to requests and from answers to bytes, for every version of every API that is served."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from kgroup.broker.dispatch import Dispatcher
from kgroup.broker.memory import Memory
from kgroup.errors import DecodeError
from kgroup.protocol import registry
from kgroup.protocol.codec import Message
from kgroup.protocol.compiler import bounded_reader
from kgroup.protocol.headers import skip_tags
from kgroup.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgroup.protocol.messages.heartbeat import HeartbeatRequest
from kgroup.protocol.messages.offset_commit import OffsetCommitRequest
from kgroup.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from kgroup.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest

REQUEST_ITEMS = 1 << 16  # in all arrays of a request together
HEARTBEATS = frozenset(
    request.API
    for request in (
        HeartbeatRequest,
        ConsumerGroupHeartbeatRequest,
        ShareGroupHeartbeatRequest,
        StreamsGroupHeartbeatRequest,
    )
)
LONGEST_REMEMBERED = 512  # bytes of one
_HEADER = struct.Struct(">hhih")
_FRAME = struct.Struct(">ii")


class NotServed(Exception):
    """A request of an API or a version that is not served, of which no more than this could be read."""

    def __init__(self, key: int, version: int, correlation: int) -> None:
        super().__init__(key, version)
        self.key, self.version, self.correlation = key, version, correlation


@dataclass(slots=True)
class Route:
    """What a connection needs to know about one version of one API."""

    version: int
    read: Callable[[bytes, int, int], tuple[Message, int]]
    flexible_request: bool
    head: bytes  # room for length and correlation id, and the empty tags of a flexible header
    requests: Memory[bytes, Message] | None
    """By their bytes, since clients repeat them all day long; requests never change."""
    answers: Memory[int, tuple[Message, bytes]] | None
    """By their identity, with their encoding."""


class Routes:
    """The routes of everything that is served, made on first use."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._routes: dict[int, Route] = {}

    def find(self, key: int, version: int) -> Route | None:
        """Return None for an API or a version that is not served."""
        index = key << 16 | version
        route = self._routes.get(index)
        if route is None:
            served = self._dispatcher.versions(key)
            if served is None or version not in served:
                return None
            request, response = registry.header_versions(key, version)
            body = registry.request_class(key)
            repeats = key in HEARTBEATS
            answers = repeats or key == OffsetCommitRequest.API
            self._routes[index] = route = Route(
                version,
                bounded_reader(body, version, version >= body.FLEXIBLE, REQUEST_ITEMS),
                request == 2,
                bytes(8 + response),
                Memory() if repeats else None,
                Memory() if answers else None,
            )
        return route

    def read(self, frame: bytes, pos: int) -> tuple[Route, int, str, Message]:
        """Return route, correlation id, client id and body of the request that begins at `pos`.

        Raise NotServed, or DecodeError for bytes that are no request.
        """
        # by hand, as it is done for every request; tests compare it with RequestHeader.decode
        try:
            key, version, correlation, size = _HEADER.unpack_from(frame, pos)
            route = self._routes.get(key << 16 | version) or self.find(key, version)
            if route is None:
                raise NotServed(key, version, correlation)
            pos += 10
            client_id = ""
            if size > 0:
                stop = pos + size
                if stop > len(frame):
                    raise DecodeError("the client id is cut short")
                client_id = frame[pos:stop].decode()
                pos = stop
            if route.flexible_request:
                if frame[pos]:
                    pos = skip_tags(frame, pos, REQUEST_ITEMS)
                else:
                    pos += 1
            # bytes behind the body are allowed: librdkafka sends some, and Kafka ignores them
            requests = route.requests
            if requests is None:
                return route, correlation, client_id, route.read(frame, pos, len(frame))[0]
            said = frame[pos:]
            body = requests.get(said)
            if body is None:
                body, _ = route.read(frame, pos, len(frame))
                if len(said) <= LONGEST_REMEMBERED:
                    requests.keep(said, body)
        except (struct.error, IndexError, UnicodeDecodeError) as error:
            raise DecodeError(str(error)) from None
        return route, correlation, client_id, body


def encoded(route: Route, correlation: int, answer: Message) -> bytearray:
    """Return an answer as bytes; raise any exception for one that has no encoding."""
    answers = route.answers
    known = None if answers is None else answers.get(id(answer))
    # The table holds the answer as well, so that no other can have its identity.
    if known is not None and known[0] is answer:
        out = bytearray(known[1])
    else:
        out = bytearray(route.head)
        answer.encode_into(out, route.version)
        if answers is not None and len(out) <= LONGEST_REMEMBERED:
            answers.keep(id(answer), (answer, bytes(out)))
    _FRAME.pack_into(out, 0, len(out) - 4, correlation)
    return out
