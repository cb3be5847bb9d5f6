"""A topic is not created where the first record of a partition would be refused."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from kgroup.broker.embedded import EmbeddedTransport
from kgroup.errors import ErrorCode
from kgroup.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kgroup.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kgroup.runtime.cluster import Cluster


class Disk:
    """`posix_fallocate` of a disk with so many bytes left."""

    def __init__(self) -> None:
        self.free = 1 << 30

    def take(self, _: int, offset: int, size: int) -> None:
        if offset + size > self.free:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_refuses_topics_and_partitions_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk()
    monkeypatch.setattr(os, "posix_fallocate", disk.take)
    transport = EmbeddedTransport(Cluster(tmp_path, offsets_partitions=1))
    catalog = transport.cluster.catalog
    create = CreateTopicsRequest(
        topics=(CreatableTopic(name="orders", num_partitions=3, replication_factor=1),)
    )
    grow = CreatePartitionsRequest(
        topics=(CreatePartitionsTopic(name="orders", count=9, assignments=None),), timeout_ms=1000
    )
    disk.free = 1 << 14
    refused = transport.request(None, create).topics[0]  # type: ignore[attr-defined]
    assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert "no room for 3 new partitions: No space left on device" in refused.error_message
    assert "orders" not in catalog.topics
    disk.free = 1 << 16
    assert transport.request(None, create).topics[0].error_code == 0  # type: ignore[attr-defined]
    refused = transport.request(None, grow).results[0]  # type: ignore[attr-defined]
    assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert catalog.topics["orders"].partitions == 3
    transport.cluster.close()
    again = Cluster(tmp_path)
    assert again.catalog.topics["orders"].partitions == 3
    again.close()


def test_a_cluster_in_memory_needs_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk()
    disk.free = 0
    monkeypatch.setattr(os, "posix_fallocate", disk.take)
    transport = EmbeddedTransport(Cluster(None, offsets_partitions=1))
    create = CreateTopicsRequest(topics=(CreatableTopic(name="t", num_partitions=1, replication_factor=1),))
    assert transport.request(None, create).topics[0].error_code == 0  # type: ignore[attr-defined]
