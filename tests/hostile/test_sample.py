"""A short sample of `make hostile`: every API and version, in this process, without a clock."""

from __future__ import annotations

import asyncio
import logging
import random
from contextlib import suppress

import pytest

from kgroup.broker.server import Server
from kgroup.protocol.headers import decode_response, encode_request
from kgroup.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kgroup.runtime.cluster import Cluster
from tests.hostile.bounds import Crew
from tests.hostile.requests import Maker, every

PING = ApiVersionsRequest(client_software_name="ping", client_software_version="1")


async def ping(port: int) -> None:
    """A newcomer is served."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(encode_request(PING, 3, 7, "ping"))
    size = int.from_bytes(await reader.readexactly(4), "big")
    correlation, answer = decode_response(await reader.readexactly(size), PING.API, 3)
    assert isinstance(answer, ApiVersionsResponse)
    assert (correlation, answer.error_code) == (7, 0)
    writer.close()
    await writer.wait_closed()


async def told(port: int, frames: list[bytes]) -> None:
    """Send all of them on one connection, a new one whenever it is closed."""
    for frame in frames:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(frame)
        writer.write_eof()
        with suppress(ConnectionError):
            await reader.read()
            writer.close()
            await writer.wait_closed()


@pytest.mark.parametrize("seed", range(2))
def test_nothing_that_can_be_sent_harms_the_server(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    """No traceback, nobody else refused, and the server is there at the end."""
    caplog.set_level(logging.ERROR)
    chance = random.Random(seed)
    maker = Maker(chance)
    cluster = Cluster(None, offsets_partitions=3, seed=seed, config={"group.initial.rebalance.delay.ms": "0"})

    async def test() -> None:
        server = Server(cluster)
        (port,) = await server.start()
        try:
            cases = every()
            chance.shuffle(cases)
            for start in range(0, len(cases), 20):
                frames = [maker.frame(key, version) for key, version in cases[start : start + 20]]
                await told(port, frames)
                await ping(port)
        finally:
            await server.stop()

    asyncio.run(test())
    cluster.close()
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []


@pytest.mark.timeout(120, method="thread")  # a server that never comes back cannot be stopped either
@pytest.mark.parametrize("seed", range(2))
def test_members_at_the_bounds_hold_up_nobody(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    """No value of a group's request keeps the server from answering others."""
    caplog.set_level(logging.ERROR)
    chance = random.Random(seed)
    config = {"group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "100"}
    cluster = Cluster(None, offsets_partitions=3, seed=seed, config=config)

    async def test() -> None:
        server = Server(cluster)
        (port,) = await server.start()
        crew = Crew(port, Maker(chance), chance)
        try:
            for _ in range(15):
                assert await asyncio.to_thread(crew.play, 100, 30)
                await ping(port)
        finally:
            crew.close()
            await server.stop()

    asyncio.run(test())
    cluster.close()
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []
