"""One loop serves everybody: no connection, request or answer takes more of it than its share."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from kgroup.broker.call import Answer, Call
from kgroup.broker.connection import PLAIN_REQUEST_BYTES, TURN_BYTES, TURN_REQUESTS, Serving
from kgroup.broker.routes import REQUEST_ITEMS
from kgroup.broker.server import Server
from kgroup.errors import DecodeError, ErrorCode
from kgroup.protocol.compiler import bounded_reader
from kgroup.protocol.headers import encode_request
from kgroup.protocol.messages.api_versions import ApiVersionsRequest
from kgroup.protocol.messages.heartbeat import HeartbeatRequest
from kgroup.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from kgroup.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kgroup.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from tests.unit.broker.brokers import connected, until
from tests.unit.broker.test_connection import BEAT, run, still_serves

PING = ApiVersionsRequest(client_software_name="a", client_software_version="1")


class Order:
    """The client ids of the requests that are served, by turn of the event loop."""

    def __init__(self, server: Server) -> None:
        self.turns: list[list[str]] = [[]]
        self._handle = server.dispatcher.handle
        server.dispatcher.handle = self._noted  # type: ignore[method-assign]
        self._loop = asyncio.get_running_loop()
        self._turn()

    def all(self) -> Counter[str]:
        return Counter(client for turn in self.turns for client in turn)

    def most_in_a_turn(self, client: str) -> int:
        return max(turn.count(client) for turn in self.turns)

    def _turn(self) -> None:
        self.turns.append([])
        self._loop.call_soon(self._turn)

    def _noted(self, call: Call[Any]) -> Answer:
        self.turns[-1].append(call.client_id)
        return self._handle(call)


def test_pipelined_requests_take_turns_with_those_of_others() -> None:
    """100,000 of them on one connection stopped all others for 16 s."""

    async def test(server: Server) -> None:
        async with connected(server) as greedy, connected(server) as other:
            order = Order(server)
            greedy.send_raw(encode_request(BEAT, 4, 1, "greedy") * 2000)
            for _ in range(5):
                await other.call(PING, 3)
            for _ in range(2000):
                await greedy.receive_frame()
        assert order.all() == {"greedy": 2000, "test": 5}
        # its turn, and the one that bytes just read begin
        assert order.most_in_a_turn("greedy") <= 2 * TURN_REQUESTS

    run(test)


def test_many_greedy_connections_have_one_turn_of_the_loop_between_them() -> None:
    """Else fifty of them make everybody wait for fifty turns."""

    async def test(server: Server) -> None:
        async with AsyncExitStack() as stack:
            greedy = [await stack.enter_async_context(connected(server)) for _ in range(20)]
            other = await stack.enter_async_context(connected(server))
            for each in greedy:
                each.send_raw(encode_request(BEAT, 4, 1, "greedy") * 500)
            await until(
                lambda: all(
                    c._serving is Serving.QUEUED for c in server.connections if c.active and c._buffer
                )
            )
            await other.call(PING, 3)
            order = Order(server)
            for _ in range(5):
                await other.call(PING, 3)
            assert order.most_in_a_turn("greedy") <= 2 * TURN_REQUESTS
            for each in greedy:
                for _ in range(500):
                    await each.receive_frame()
        assert order.most_in_a_turn("test") == 1

    run(test)


def test_a_turn_ends_after_so_many_bytes() -> None:
    async def test(server: Server) -> None:
        topics = tuple(MetadataRequestTopic(name="x" * 200) for _ in range(400))
        frame = encode_request(
            MetadataRequest(topics=topics, allow_auto_topic_creation=False), 12, 1, "greedy"
        )
        assert len(frame) > TURN_BYTES
        async with connected(server) as greedy:
            order = Order(server)
            greedy.send_raw(frame * 30)
            for _ in range(30):
                await greedy.receive_frame()
        assert order.all() == {"greedy": 30}
        assert order.most_in_a_turn("greedy") <= 2

    run(test)


def test_what_came_whole_is_served_although_the_peer_sends_nothing_more() -> None:
    async def test(server: Server) -> None:
        async with connected(server) as client:
            order = Order(server)
            client.send_raw(encode_request(BEAT, 4, 1, "leaving") * 100)
            client.writer.write_eof()
            for _ in range(100):
                await client.receive_frame()
            assert await client.closed_by_peer()
        assert order.all() == {"leaving": 100}

    run(test)


def test_tagged_fields_of_a_header_are_passed_over() -> None:
    async def test(server: Server) -> None:
        head = struct.pack(">hhih", 12, 4, 9, 1) + b"c" + b"\x02\x00\x03abc\x05\x00"
        body = BEAT.encode(4)
        async with connected(server) as client:
            client.send_raw(struct.pack(">i", len(head) + len(body)) + head + body)
            assert (await client.receive(HeartbeatRequest))[0] == 9

    run(test)


def test_a_request_of_too_many_items_closes_its_connection() -> None:
    async def test(server: Server) -> None:
        most = MetadataRequest(
            topics=tuple(MetadataRequestTopic(name="") for _ in range(REQUEST_ITEMS)),
            allow_auto_topic_creation=False,
        )
        async with connected(server) as client:
            assert isinstance(await client.call(most, 8), MetadataResponse)
            assert most.topics is not None
            client.send(MetadataRequest(topics=(*most.topics, most.topics[0])), 8)
            assert await client.closed_by_peer()
        assert await still_serves(server)

    run(test)


def test_items_of_nested_arrays_are_counted_together() -> None:
    topics = tuple(OffsetFetchRequestTopic(name="t", partition_indexes=(1, 2, 3)) for _ in range(4))
    data = OffsetFetchRequest(group_id="g", topics=topics).encode(7)
    assert bounded_reader(OffsetFetchRequest, 7, True, 16)(data, 0, len(data))[0].topics == topics
    with pytest.raises(DecodeError, match="more than 15 items"):
        bounded_reader(OffsetFetchRequest, 7, True, 15)(data, 0, len(data))


@pytest.mark.parametrize("known", [4, 6])
def test_a_long_request_without_records_is_not_even_taken_in(known: int) -> None:
    async def test(server: Server) -> None:
        start = struct.pack(">ihhih", PLAIN_REQUEST_BYTES + 1, 12, 4, 1, -1)
        async with connected(server) as client:
            client.send_raw(start[:known])
            await client.writer.drain()
            client.send_raw(start[known:])
            assert await client.closed_by_peer()
        assert await still_serves(server)

    run(test)


def test_an_answer_that_has_no_encoding_is_refused_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    """A client id as long as a string can be makes a member id that is longer."""
    join = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=30_000,
        rebalance_timeout_ms=60_000,
        member_id="",
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
    )

    async def test(server: Server) -> None:
        async with connected(server) as client, connected(server) as other:
            for version in (4, 9):
                client.send_raw(encode_request(join, version, 5, "x" * 32_767))
                correlation, answer = await client.receive(JoinGroupRequest, version)
                assert isinstance(answer, JoinGroupResponse)
                assert (correlation, answer.error_code) == (5, ErrorCode.UNKNOWN_SERVER_ERROR)
            assert await other.call(BEAT)

    run(test, group_initial_rebalance_delay_ms="0")
    assert [record.exc_info for record in caplog.records] == [None, None]
    assert all("cannot be encoded" in line for line in caplog.messages)


@pytest.fixture
def narrow(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], int, Path]]:
    """A server that may open 128 files, its port, and where it logs."""
    import resource

    said = tmp_path / "stderr"
    with said.open("w") as stderr:
        started = subprocess.Popen(
            [sys.executable, "-m", "kgroup.broker", str(tmp_path / "data"), "0"],
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128)),
        )
    assert started.stdout is not None
    port = int(started.stdout.readline().split(":")[-1])
    yield started, port, said
    started.send_signal(signal.SIGTERM)
    assert started.wait(300) == 0
    started.stdout.close()


def test_more_connections_than_descriptors_harm_nobody_who_is_there(
    narrow: tuple[subprocess.Popen[str], int, Path],
) -> None:
    """22,000 tracebacks in 6 s, and the first commit failed on an import that found no descriptor."""
    started, port, said = narrow
    with socket.create_connection(("127.0.0.1", port)) as first:
        assert called(first, encode_request(PING, 3, 1, "first"))
        others = [socket.create_connection(("127.0.0.1", port)) for _ in range(300)]
        try:
            # whoever came too late is told so by a closed connection
            assert others[-1].recv(1) == b""
            open_files = len(os.listdir(f"/proc/{started.pid}/fd"))
            assert open_files <= 128 - 16
            named = MetadataRequest(topics=(MetadataRequestTopic(name="made-now"),))
            assert b"made-now" in called(first, encode_request(named, 8, 2, "first"))
            assert b"made-now" in called(first, commit())
        finally:
            for other in others:
                other.close()
    text = said.read_text()
    assert "Traceback" not in text
    assert text.count("file descriptors") == 1


def commit() -> bytes:
    from kgroup.protocol.messages import offset_commit as c

    partition = c.OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    topic = c.OffsetCommitRequestTopic(name="made-now", partitions=(partition,))
    return encode_request(c.OffsetCommitRequest(group_id="g", member_id="", topics=(topic,)), 7, 3, "first")


def called(client: socket.socket, request: bytes) -> bytes:
    client.sendall(request)
    with client.makefile("rb") as file:
        (size,) = struct.unpack(">i", file.read(4))
        return file.read(size)


def test_accepting_stops_for_a_while_when_the_system_has_nothing_left(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Said once, tried again later, and nobody who is there notices."""
    from kgroup.broker import listener

    monkeypatch.setattr(listener, "RETRY_S", 0.01)

    class Exhausted:
        """A listening socket in a system without descriptors, until `left` tries are over."""

        def __init__(self, real: socket.socket, left: int) -> None:
            self.real, self.left = real, left

        def accept(self) -> tuple[socket.socket, object]:
            self.left -= 1
            if self.left >= 0:
                raise OSError(24, "Too many open files")
            return self.real.accept()

        def fileno(self) -> int:
            return self.real.fileno()

        def close(self) -> None:
            self.real.close()

    async def test(server: Server) -> None:
        async with connected(server) as there:
            listening = server._listeners[0]
            exhausted = Exhausted(listening._socket, 3)
            listening._socket = exhausted  # type: ignore[assignment]
            async with connected(server) as late:
                assert await there.call(BEAT)
                assert await late.call(BEAT)
            assert exhausted.left < 0

    run(test)
    assert len(caplog.records) == 1
    assert "Too many open files" in caplog.text


def test_everything_that_serving_needs_is_imported_before_it(tmp_path: Path) -> None:
    """An import in the middle of a request fails when no descriptor is left."""
    script = Path(__file__).with_name("serve_and_import.py")
    found = subprocess.run(
        [sys.executable, str(script), str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == []
