"""Ways to talk to a broker in tests."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from kgroup.broker.embedded import EmbeddedTransport
from kgroup.broker.server import Server
from kgroup.protocol.codec import Message
from kgroup.protocol.headers import decode_response, encode_request
from kgroup.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kgroup.runtime.cluster import Cluster


def create_topic(transport: EmbeddedTransport, name: str, partitions: int = 1, **config: str) -> None:
    settings = tuple(CreatableTopicConfig(name=key, value=value) for key, value in config.items())
    wanted = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=settings)
    answer = transport.request(None, CreateTopicsRequest(topics=(wanted,)))
    assert [topic.error_code for topic in answer.topics] == [0]  # type: ignore[attr-defined]


async def until(condition: Callable[[], object]) -> None:
    """Let the event loop turn until the condition holds; the test's timeout is the limit."""
    while not condition():  # noqa: ASYNC110 - nobody tells us
        await asyncio.sleep(0)


class Client:
    """A raw connection to one broker; `send` and `receive` may be out of step, as a hostile peer's are."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send_raw(self, data: bytes) -> None:
        self.writer.write(data)

    def send(self, message: Message, version: int | None = None, correlation: int = 7) -> None:
        chosen = message.VERSIONS[-1] if version is None else version
        self.send_raw(encode_request(message, chosen, correlation, "test"))

    async def receive_frame(self) -> bytes:
        (size,) = struct.unpack(">i", await asyncio.wait_for(self.reader.readexactly(4), 10))
        return await asyncio.wait_for(self.reader.readexactly(size), 10)

    async def receive(self, kind: type[Message], version: int | None = None) -> tuple[int, Message]:
        """The correlation id and the body of the next response, which answers a request of class `kind`."""
        chosen = kind.VERSIONS[-1] if version is None else version
        return decode_response(await self.receive_frame(), kind.API, chosen)

    async def call(self, message: Message, version: int | None = None) -> Message:
        self.send(message, version)
        return (await self.receive(type(message), version))[1]

    async def closed_by_peer(self) -> bool:
        """Whether the peer closes the connection without another byte."""
        try:
            return await asyncio.wait_for(self.reader.read(1), 10) == b""
        except ConnectionResetError:
            return True


@asynccontextmanager
async def serving(cluster: Cluster) -> AsyncIterator[Server]:
    server = Server(cluster)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@asynccontextmanager
async def connected(server: Server, node: int = 0) -> AsyncIterator[Client]:
    host, port = server.cluster.endpoints[node]
    reader, writer = await asyncio.open_connection(host, port)
    try:
        yield Client(reader, writer)
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
