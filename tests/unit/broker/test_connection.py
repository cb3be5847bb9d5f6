"""Connections: order, hostile peers, bounded memory."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from kgroup.broker.connection import READ_AHEAD, Reading
from kgroup.broker.server import Server
from kgroup.errors import ErrorCode
from kgroup.protocol.headers import encode_request
from kgroup.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kgroup.protocol.messages.find_coordinator import FindCoordinatorRequest
from kgroup.protocol.messages.heartbeat import HeartbeatRequest
from kgroup.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kgroup.runtime.clock import SystemClock
from kgroup.runtime.cluster import Cluster
from tests.broker_script import Script
from tests.unit.broker.brokers import Client, connected, serving, until

BEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


def run(test: Callable[[Server], Awaitable[None]], **config: str) -> None:
    """The test against brokers on real sockets and real time."""

    async def inside() -> None:
        async with serving(cluster) as server:
            await test(server)

    cluster = Cluster(
        None,
        offsets_partitions=2,
        clock=SystemClock(),
        seed=1,
        config={k.replace("_", "."): v for k, v in config.items()},
    )
    try:
        asyncio.run(inside())
    finally:
        cluster.close()


async def still_serves(server: Server) -> bool:
    async with connected(server) as other:
        answer = await other.call(ApiVersionsRequest(client_software_name="a", client_software_version="1"))
        assert isinstance(answer, ApiVersionsResponse)
        return answer.error_code == 0


@pytest.mark.parametrize(
    "garbage",
    [
        pytest.param(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n", id="http"),
        pytest.param(struct.pack(">i", -1), id="negative-length"),
        pytest.param(struct.pack(">i", 100 * 1024 * 1024 + 1), id="too-long"),
        pytest.param(struct.pack(">i", 0), id="empty-frame"),
        pytest.param(struct.pack(">ihhih", 10, 999, 0, 1, -1), id="unknown-api"),
        pytest.param(struct.pack(">ihhih", 10, 12, 99, 1, -1), id="unknown-version"),
        pytest.param(struct.pack(">ihhih", 10, 12, -1, 1, -1), id="negative-version"),
        pytest.param(struct.pack(">ihhih", 10, 12, 0, 1, 500), id="client-id-too-long"),
        pytest.param(struct.pack(">ihhih", 10, 12, 4, 1, -1), id="no-tags"),
        pytest.param(struct.pack(">ihhih", 13, 12, 0, 1, -1) + b"\x7f\xff\0", id="string-too-long"),
        pytest.param(struct.pack(">ihhih", 14, 3, 8, 1, -1) + b"\x7f\xff\xff\xff", id="array-too-long"),
        pytest.param(struct.pack(">ihhih", 12, 12, 0, 1, 2) + b"\xff\xfe", id="client-id-not-utf8"),
    ],
)
def test_garbage_closes_only_its_own_connection(garbage: bytes) -> None:
    async def test(server: Server) -> None:
        async with connected(server) as bystander, connected(server) as hostile:
            hostile.send_raw(garbage)
            assert await hostile.closed_by_peer()
            assert isinstance(await bystander.call(MetadataRequest(topics=None)), MetadataResponse)

    run(test)


def test_an_unknown_version_of_api_versions_is_answered_in_version_0() -> None:
    """KIP-511: the client learns the versions to go on with."""

    async def test(server: Server) -> None:
        async with connected(server) as client:
            client.send_raw(struct.pack(">ihhih", 12, 18, 99, 5, 2) + b"xy")
            correlation, answer = await client.receive(ApiVersionsRequest, 0)
            assert isinstance(answer, ApiVersionsResponse)
            assert (correlation, answer.error_code) == (5, ErrorCode.UNSUPPORTED_VERSION)
            assert [(a.api_key, a.min_version, a.max_version) for a in answer.api_keys] == [(18, 0, 5)]
            assert isinstance(await client.call(ApiVersionsRequest(), 0), ApiVersionsResponse)

    run(test)


def test_half_a_request_waits_for_its_rest() -> None:
    async def test(server: Server) -> None:
        whole = encode_request(MetadataRequest(topics=None), 12, 3, "slow")
        async with connected(server) as client:
            for byte in whole[:-1]:
                client.send_raw(bytes([byte]))
                await client.writer.drain()
            assert await still_serves(server)
            client.send_raw(whole[-1:])
            assert (await client.receive(MetadataRequest, 12))[0] == 3

    run(test)


def test_a_peer_that_leaves_in_the_middle_of_a_request_harms_nobody() -> None:
    async def test(server: Server) -> None:
        async with connected(server) as client:
            client.send_raw(encode_request(BEAT, 4, 1, "gone")[:9])
            await client.writer.drain()
        assert await still_serves(server)

    run(test)


def test_bytes_behind_a_body_are_ignored() -> None:
    """librdkafka sends some; Kafka does not look."""

    async def test(server: Server) -> None:
        frame = encode_request(MetadataRequest(topics=None), 12, 3, "odd")
        async with connected(server) as client:
            client.send_raw(struct.pack(">i", len(frame) - 4 + 3) + frame[4:] + b"abc")
            assert (await client.receive(MetadataRequest, 12))[0] == 3

    run(test)


def test_pipelined_requests_are_answered_in_order() -> None:
    async def test(server: Server) -> None:
        async with connected(server) as client:
            for number in range(500):
                client.send(BEAT if number % 2 else MetadataRequest(topics=()), correlation=number)
            for number in range(500):
                kind = HeartbeatRequest if number % 2 else MetadataRequest
                assert (await client.receive(kind))[0] == number

    run(test)


def test_the_next_request_waits_for_a_parked_answer() -> None:
    async def test(server: Server) -> None:
        script = Script(server.dispatcher)
        script.stall(FindCoordinatorRequest.API)
        async with connected(server) as client, connected(server) as other:
            client.send(FindCoordinatorRequest(coordinator_keys=("g",)), correlation=1)
            client.send(BEAT, correlation=2)
            assert await other.call(BEAT)
            await until(lambda: script.stalled[FindCoordinatorRequest.API])
            script.release(FindCoordinatorRequest.API)
            assert (await client.receive(FindCoordinatorRequest))[0] == 1
            assert (await client.receive(HeartbeatRequest))[0] == 2

    run(test)


def test_what_a_peer_sends_meanwhile_is_bounded() -> None:
    async def test(server: Server) -> None:
        script = Script(server.dispatcher)
        script.stall(MetadataRequest.API)
        async with connected(server) as client:
            client.send(MetadataRequest(topics=None))
            beats = encode_request(BEAT, 4, 1, "eager") * 1000
            pushing = asyncio.ensure_future(_push(client, beats, 50))
            connection = next(iter(server.connections))
            await until(lambda: connection._reading is Reading.PAUSED)
            assert len(connection._buffer) <= READ_AHEAD + 256 * 1024 + 4
            assert await still_serves(server)
            script.release(MetadataRequest.API)
            await client.receive(MetadataRequest)
            for _ in range(1000 * 50):
                await client.receive_frame()
            await pushing

    run(test)


async def _push(client: Client, data: bytes, times: int) -> None:
    for _ in range(times):
        client.send_raw(data)
        await client.writer.drain()


def test_a_peer_that_does_not_read_is_not_served_on() -> None:
    async def test(server: Server) -> None:
        async with connected(server) as client:
            client.writer.transport.pause_reading()  # type: ignore[attr-defined]
            asking = encode_request(MetadataRequest(topics=None), 12, 1, "deaf") * 2000
            pushing = asyncio.ensure_future(_push(client, asking, 200))
            await until(lambda: server.connections)
            connection = next(iter(server.connections))
            await until(lambda: not connection._peer_reads and connection._reading is Reading.PAUSED)
            assert connection._transport is not None
            assert connection._transport.get_write_buffer_size() < 1 << 20
            assert await still_serves(server)
            await until(lambda: len(server.connections) == 1)
            server.close_idle()
            assert server.close_idle() == 1
            with suppress(ConnectionError):
                await pushing

    run(test)


def test_idle_connections_are_closed_and_waiting_ones_are_not() -> None:
    async def test(server: Server) -> None:
        script = Script(server.dispatcher)
        script.stall(MetadataRequest.API)
        async with connected(server) as silent, connected(server) as waiting:
            assert await silent.call(BEAT)
            waiting.send(MetadataRequest(topics=None))
            await until(lambda: script.stalled[MetadataRequest.API])
            server.close_idle()
            assert server.close_idle() == 1
            assert await silent.closed_by_peer()
            script.release(MetadataRequest.API)
            assert await waiting.receive(MetadataRequest)

    run(test)


def test_one_connection_too_many_is_closed() -> None:
    async def test(server: Server) -> None:
        async with connected(server) as first:
            assert await first.call(BEAT)
            async with connected(server) as second:
                assert await second.closed_by_peer()
            assert await first.call(BEAT)

    run(test, max_connections="1")


def test_a_bug_in_a_handler_is_answered_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def test(server: Server) -> None:
        def broken(*_: object) -> None:
            raise RuntimeError("a bug")

        server.dispatcher.tickets.submit = broken  # type: ignore[assignment]
        async with connected(server) as client:
            answer = await client.call(BEAT)
            assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR  # type: ignore[attr-defined]
            assert isinstance(await client.call(MetadataRequest(topics=None)), MetadataResponse)

    run(test)
    assert "a bug" in caplog.text


def test_a_parked_call_is_forgotten_when_its_peer_is_gone() -> None:
    async def test(server: Server) -> None:
        script = Script(server.dispatcher)
        script.stall(MetadataRequest.API)
        gone: list[int] = []
        async with connected(server) as client:
            client.send(MetadataRequest(topics=None))
            await until(lambda: script.stalled[MetadataRequest.API])
            script.stalled[MetadataRequest.API][0].forget = lambda: gone.append(1)
        await until(lambda: not server.connections)
        assert gone == [1]
        script.release(MetadataRequest.API)
        assert await still_serves(server)

    run(test)


def test_connections_start_as_active() -> None:
    """A connection made just before the idle check is not closed by it."""

    async def test(server: Server) -> None:
        async with connected(server) as client:
            await until(lambda: server.connections)
            assert server.close_idle() == 0
            assert await client.call(BEAT)

    run(test)
