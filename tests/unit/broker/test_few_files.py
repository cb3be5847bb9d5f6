"""A server with more partitions than files it may open: everyone is served, a restart loses nothing."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from kgroup.client.settings import ConnectionSettings, parse_bootstrap
from kgroup.client.transport import SocketTransport
from kgroup.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kgroup.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kgroup.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from kgroup.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tests.unit.broker.test_produce_fetch import BY_NAME, batch, fetch_request, values

PARTITIONS = 200
GROUPS = 55
FILES = 128


@contextmanager
def serving(folder: Path, soft: int = FILES, *, stop: int = signal.SIGTERM) -> Iterator[Broker]:
    """A server whose hard limit is FILES; at the end `stop` is sent to it."""
    with (folder.parent / "stderr").open("a") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "kgroup.broker", str(folder), "0"],
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, FILES)),
        )
    assert process.stdout is not None
    try:
        port = process.stdout.readline().split(":")[-1].strip()
        with connected(port) as transport:
            yield Broker(transport, port, process.pid)
        process.send_signal(stop)
        assert process.wait(300) == (0 if stop == signal.SIGTERM else -stop)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def connected(port: str) -> SocketTransport:
    return SocketTransport(ConnectionSettings(parse_bootstrap(f"127.0.0.1:{port}")))


class Broker:
    """One connection to a server that runs."""

    def __init__(self, transport: SocketTransport, port: str, pid: int) -> None:
        self.transport, self.port, self.pid = transport, port, pid

    def open_files(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def create(self, partitions: int) -> None:
        wanted = CreatableTopic(name="t", num_partitions=partitions, replication_factor=1)
        answer = self.transport.request(None, CreateTopicsRequest(topics=(wanted,)))
        assert answer.topics[0].error_code == 0  # type: ignore[attr-defined]

    def produce(self, value: bytes) -> None:
        """To every partition, acknowledged, one request each."""
        for partition in range(PARTITIONS):
            data = PartitionProduceData(index=partition, records=batch(value))
            topic = TopicProduceData(name="t", partition_data=(data,))
            request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=(topic,))
            answer = self.transport.request(0, request, max_version=BY_NAME)
            assert isinstance(answer, ProduceResponse)
            assert answer.responses[0].partition_responses[0].error_code == 0

    def fetched(self) -> list[list[bytes | None]]:
        """The values of every partition."""
        found = []
        for partition in range(PARTITIONS):
            request = fetch_request(0, partition=partition)
            answer = self.transport.request(0, request, max_version=BY_NAME)
            data = answer.responses[0].partitions[0]  # type: ignore[attr-defined]
            assert data.error_code == 0
            found.append(values(data))
        return found

    def commit(self, offset: int) -> None:
        """For each group, by a connection of its own."""
        for number in range(GROUPS):
            place = OffsetCommitRequestPartition(partition_index=number, committed_offset=offset)
            topic = OffsetCommitRequestTopic(name="t", partitions=(place,))
            request = OffsetCommitRequest(group_id=f"g{number}", member_id="", topics=(topic,))
            with connected(self.port) as transport:
                answer = transport.request(0, request, max_version=8)
            assert isinstance(answer, OffsetCommitResponse)
            assert answer.topics[0].partitions[0].error_code == 0

    def committed(self) -> list[int]:
        wanted = tuple(OffsetFetchRequestGroup(group_id=f"g{n}", topics=None) for n in range(GROUPS))
        answer = self.transport.request(0, OffsetFetchRequest(groups=wanted), max_version=9)
        assert isinstance(answer, OffsetFetchResponse)
        return [group.topics[0].partitions[0].committed_offset for group in answer.groups]


@pytest.mark.timeout(900)
def test_more_partitions_than_files_are_served_and_survive_restarts(tmp_path: Path) -> None:
    """At 944 partitions and 1,024 files nobody could connect, commits failed, and a restart did not help."""
    folder = tmp_path / "data"
    with serving(folder) as broker:
        broker.create(PARTITIONS)
        broker.produce(b"one")
        broker.commit(1)
        with ExitStack() as others:
            for _ in range(20):
                others.enter_context(connected(broker.port)).request(None, OffsetFetchRequest(groups=()))
            broker.produce(b"two")
            assert broker.open_files() < FILES - 16
        assert broker.fetched() == [[b"one", b"two"]] * PARTITIONS
    with serving(folder, stop=signal.SIGKILL) as broker:
        assert broker.committed() == [1] * GROUPS
        assert broker.fetched() == [[b"one", b"two"]] * PARTITIONS
        broker.produce(b"three")
        broker.commit(3)
    with serving(folder) as broker:
        assert broker.committed() == [3] * GROUPS
        assert broker.fetched() == [[b"one", b"two", b"three"]] * PARTITIONS
    said = (tmp_path / "stderr").read_text()
    assert "Traceback" not in said
    assert "Too many open files" not in said


@pytest.mark.timeout(600)
def test_a_server_raises_its_soft_limit(tmp_path: Path) -> None:
    with serving(tmp_path / "data", 64) as broker:
        limits = Path(f"/proc/{broker.pid}/limits").read_text()
        (line,) = (line for line in limits.splitlines() if "open files" in line)
        assert line.split()[3:5] == [str(FILES)] * 2
