"""A disk that fails is told of in the log, now and again; what it had refused may be asked again."""

from __future__ import annotations

import asyncio
import errno
import logging
from pathlib import Path

import pytest

from kgroup.broker.embedded import EmbeddedTransport
from kgroup.domain import OFFSETS_TOPIC
from kgroup.errors import ErrorCode
from kgroup.log import compaction
from kgroup.log.partition import PartitionLog
from kgroup.protocol.messages.heartbeat import HeartbeatRequest
from kgroup.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kgroup.runtime.clock import ManualClock
from kgroup.runtime.cluster import Cluster
from kgroup.runtime.complaints import EVERY_MS
from tests.unit.broker.brokers import connected, create_topic, serving, until


class Disk:
    """The system call that writes, on a disk that may be full."""

    def __init__(self) -> None:
        self.full = False

    def write(self, fd: int, data: bytes) -> int:
        import os

        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return os.write(fd, data)


def commit(transport: EmbeddedTransport) -> int:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    topic = OffsetCommitRequestTopic(name="t", partitions=(partition,))
    answer = transport.request(
        None, OffsetCommitRequest(group_id="g", member_id="", topics=(topic,)), max_version=9
    )
    assert isinstance(answer, OffsetCommitResponse)
    return answer.topics[0].partitions[0].error_code


def test_commits_refused_on_a_full_disk_are_told_of_now_and_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = ManualClock()
    transport = EmbeddedTransport(Cluster(tmp_path, offsets_partitions=1, clock=clock))
    create_topic(transport, "t")
    disk = Disk()
    log = transport.cluster.log(OFFSETS_TOPIC, 0)
    assert isinstance(log, PartitionLog)
    log._active._write = disk.write  # type: ignore[attr-defined]
    caplog.set_level(logging.ERROR)
    assert commit(transport) == ErrorCode.NONE
    disk.full = True
    assert {commit(transport) for _ in range(5)} == {ErrorCode.COORDINATOR_NOT_AVAILABLE}
    assert len(caplog.messages) == 1
    assert "__consumer_offsets-0: nothing can be appended" in caplog.text
    assert "No space left on device" in caplog.text
    clock.advance(EVERY_MS)
    commit(transport)
    assert "(4 more since the last line)" in caplog.messages[1]
    disk.full = False
    assert commit(transport) == ErrorCode.NONE
    assert all(record.exc_info is None for record in caplog.records)
    transport.close()


def test_one_error_does_not_end_compaction_for_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The next pass comes although this one met a descriptor limit, and it is said what happened."""
    tries: list[PartitionLog] = []

    def failing(log: PartitionLog) -> float:
        tries.append(log)
        raise OSError(errno.EMFILE, "Too many open files")

    async def test() -> None:
        cluster = Cluster(tmp_path, offsets_partitions=1, config={"log.cleaner.backoff.ms": "1"})
        monkeypatch.setattr(compaction, "dirty_ratio", failing)
        async with serving(cluster) as server, connected(server) as client:
            await until(lambda: len(tries) >= 3)
            assert await client.call(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"))
        cluster.close()

    asyncio.run(test())
    assert len(caplog.records) == 1
    assert "compaction of __consumer_offsets-0" in caplog.text
    assert "Too many open files" in caplog.text
