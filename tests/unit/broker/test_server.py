"""The process: ports, signals, real clients."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from kgroup.broker.server import Server, serve
from kgroup.errors import ErrorCode, KgroupError, StorageError
from kgroup.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from kgroup.protocol.messages.heartbeat import HeartbeatRequest
from kgroup.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from kgroup.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kgroup.protocol.requests import refusal
from kgroup.runtime.cluster import Cluster
from tests.broker_script import Script
from tests.unit.broker.brokers import connected, serving, until

JOIN = JoinGroupRequest(
    group_id="g",
    session_timeout_ms=10_000,
    rebalance_timeout_ms=60_000,
    member_id="",
    protocol_type="consumer",
    protocols=(JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0\xff\xff\xff\xff"),),
)


def test_several_brokers_tell_of_each_other() -> None:
    async def test() -> None:
        async with serving(cluster) as server, connected(server, 2) as client:
            answer = await client.call(MetadataRequest(topics=None))
            assert isinstance(answer, MetadataResponse)
            assert {b.node_id: (b.host, b.port) for b in answer.brokers} == cluster.endpoints
            assert len({b.port for b in answer.brokers}) == 3

    cluster = Cluster(None, brokers=3, offsets_partitions=3)
    asyncio.run(test())


def test_a_port_in_use_is_told() -> None:
    async def test() -> None:
        server = Server(Cluster(None, offsets_partitions=1))
        try:
            with pytest.raises(KgroupError, match=f"port {port} on 127.0.0.1 cannot be used"):
                await server.start(port)
        finally:
            await server.stop()

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        asyncio.run(test())


def test_a_locked_folder_is_told(tmp_path: Path) -> None:
    holder = Cluster(tmp_path, offsets_partitions=1)
    with pytest.raises(StorageError, match="in use by process"):
        serve(Cluster(tmp_path))
    holder.close()


def test_whoever_is_parked_is_answered_at_the_end() -> None:
    async def test() -> None:
        server = Server(cluster)
        await server.start()
        async with connected(server) as client:
            first = await client.call(JOIN)
            assert isinstance(first, JoinGroupResponse)
            client.send(
                JoinGroupRequest(
                    group_id="g",
                    session_timeout_ms=10_000,
                    rebalance_timeout_ms=60_000,
                    member_id=first.member_id,
                    protocol_type="consumer",
                    protocols=JOIN.protocols,
                )
            )
            await until(lambda: any(connection.parked for connection in server.connections))
            await server.stop()
            _, answer = await client.receive(JoinGroupRequest)
            assert isinstance(answer, JoinGroupResponse)
            assert answer.error_code == ErrorCode.NOT_COORDINATOR
            assert await client.closed_by_peer()

    cluster = Cluster(None, offsets_partitions=1, config={"group.initial.rebalance.delay.ms": "60000"})
    asyncio.run(test())


def test_deadlines_are_kept_by_the_event_loop() -> None:
    """A fetch that waits is answered although nobody sends anything."""

    async def test() -> None:
        async with serving(cluster) as server, connected(server) as client:
            part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=100)
            topic = FetchTopic(topic="__consumer_offsets", partitions=(part,))
            answer = await client.call(FetchRequest(max_wait_ms=5, min_bytes=1, topics=(topic,)), 12)
            assert isinstance(answer, FetchResponse)
            assert answer.responses[0].partitions[0].records == b""

    cluster = Cluster(None, offsets_partitions=1)
    asyncio.run(test())


def test_a_script_answers_in_place_of_a_handler() -> None:
    async def test() -> None:
        async with serving(cluster) as server, connected(server) as client:
            script = Script(server.dispatcher)
            beat = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
            script.answer(
                HeartbeatRequest.API,
                lambda call: refusal(call.body, ErrorCode.REBALANCE_IN_PROGRESS),
                times=1,
            )
            codes = [(await client.call(beat)).error_code for _ in range(2)]  # type: ignore[attr-defined]
            assert codes == [ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.UNKNOWN_MEMBER_ID]

    cluster = Cluster(None, offsets_partitions=1)
    asyncio.run(test())


@pytest.fixture
def process(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`serve` in a process of its own, and where it listens."""
    started = subprocess.Popen(
        [sys.executable, "-m", "kgroup.broker", str(tmp_path), "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert started.stdout is not None
    line = started.stdout.readline()
    assert line.startswith("kgroup: serving on 127.0.0.1:")
    try:
        yield started, line.split()[-1]
    finally:
        started.kill()
        started.wait()
        started.stdout.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_it_cleanly(
    process: tuple[subprocess.Popen[str], str], tmp_path: Path, number: signal.Signals
) -> None:
    started, _ = process
    started.send_signal(number)
    assert started.wait(300) == 0
    Cluster(tmp_path).close()


def test_librdkafka_produces_and_consumes(process: tuple[subprocess.Popen[str], str]) -> None:
    _, bootstrap = process
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for done in admin.create_topics([NewTopic("t", 3, 1)]).values():
        done.result(300)
    producer = Producer(
        {"bootstrap.servers": bootstrap, "enable.idempotence": True, "compression.type": "zstd"}
    )
    for number in range(100):
        producer.produce("t", str(number), key=str(number))
    assert producer.flush(10) == 0
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition("t", p, 0) for p in range(3)])
    seen: set[object] = set()
    while len(seen) < 100:
        message = consumer.poll(10)
        assert message is not None
        assert message.error() is None
        seen.add(message.value())
    consumer.commit(offsets=[TopicPartition("t", 0, 7)], asynchronous=False)
    assert consumer.committed([TopicPartition("t", 0)], timeout=100)[0].offset == 7
    consumer.close()
