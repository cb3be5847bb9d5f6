"""Compaction while a cluster runs: one log at a time, and none that keeps the others from their turn."""

from __future__ import annotations

from pathlib import Path

from kgroup.domain import OFFSETS_TOPIC
from kgroup.log.partition import PartitionLog
from kgroup.protocol.batches import LogRecord, end_marker_record
from kgroup.runtime.cleaning import compact_one
from kgroup.runtime.cluster import Cluster


def log_of(cluster: Cluster, partition: int) -> PartitionLog:
    found = cluster.log(OFFSETS_TOPIC, partition)
    assert isinstance(found, PartitionLog)
    return found


def write_history(log: PartitionLog) -> None:
    for number in range(50):
        log.append([LogRecord(b"k", str(number).encode() * 20)])
    log.roll()


def size_of(log: PartitionLog) -> int:
    """The bytes of its segments."""
    return sum(segment.size for segment in log.segments)


def test_an_open_transaction_keeps_no_other_log_from_its_turn(tmp_path: Path) -> None:
    """Its log was rewritten at every turn, the next partition's never."""
    config = {"offsets.topic.segment.bytes": "1000"}
    cluster = Cluster(tmp_path, offsets_partitions=2, config=config)
    held, other = log_of(cluster, 0), log_of(cluster, 1)
    write_history(held)
    held.append([LogRecord(b"k", b"pending")], producer_id=7, producer_epoch=0, transactional=True)
    write_history(held)
    write_history(other)
    sizes = [(size_of(held), size_of(other))]
    while compact_one(cluster):
        sizes.append((size_of(held), size_of(other)))
        assert len(sizes) <= 3
    assert len(sizes) == 3
    assert sizes[1][0] < sizes[0][0]
    assert sizes[2][1] < sizes[1][1]
    held.append([end_marker_record(True)], producer_id=7, producer_epoch=0, transactional=True, control=True)
    assert compact_one(cluster)
    assert size_of(held) < sizes[2][0]
    assert not compact_one(cluster)
    cluster.close()
