"""A partition without records costs no file, whatever is asked about it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kgroup.broker.embedded import EmbeddedTransport
from kgroup.protocol.batches import LogRecord
from kgroup.protocol.codec import Message
from kgroup.protocol.messages import (
    add_partitions_to_txn,
    delete_records,
    describe_producers,
    describe_share_group_offsets,
    elect_leaders,
    fetch,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
)
from kgroup.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kgroup.runtime.clock import ManualClock
from kgroup.runtime.cluster import Cluster
from tests.unit.broker.brokers import create_topic
from tests.unit.broker.share_consumers import Member

COUNT = 300
ALL = range(COUNT)


def reads() -> list[Message]:
    """Every request that names partitions and writes nothing to them."""
    at = [
        list_offsets.ListOffsetsRequest(
            replica_id=-1,
            isolation_level=level,
            topics=(
                list_offsets.ListOffsetsTopic(
                    name="t",
                    partitions=tuple(
                        list_offsets.ListOffsetsPartition(partition_index=p, timestamp=time) for p in ALL
                    ),
                ),
            ),
        )
        for level in (0, 1)
        for time in (-1, -2, -3, -4, 0, 1_000)
    ]
    wanted = fetch.FetchTopic(
        topic="t",
        partitions=tuple(
            fetch.FetchPartition(partition=p, fetch_offset=0, partition_max_bytes=100) for p in ALL
        ),
    )
    transaction = add_partitions_to_txn.AddPartitionsToTxnTransaction(
        transactional_id="x",
        producer_id=1,
        producer_epoch=0,
        topics=(add_partitions_to_txn.AddPartitionsToTxnTopic(name="t", partitions=tuple(ALL)),),
    )
    return [
        *at,
        metadata.MetadataRequest(topics=None),
        fetch.FetchRequest(max_wait_ms=0, min_bytes=1, topics=(wanted,)),
        elect_leaders.ElectLeadersRequest(topic_partitions=None),
        elect_leaders.ElectLeadersRequest(
            topic_partitions=(elect_leaders.TopicPartitions(topic="t", partitions=tuple(ALL)),)
        ),
        offset_for_leader_epoch.OffsetForLeaderEpochRequest(
            topics=(
                offset_for_leader_epoch.OffsetForLeaderTopic(
                    topic="t",
                    partitions=tuple(
                        offset_for_leader_epoch.OffsetForLeaderPartition(partition=p, leader_epoch=0)
                        for p in ALL
                    ),
                ),
            )
        ),
        delete_records.DeleteRecordsRequest(
            topics=(
                delete_records.DeleteRecordsTopic(
                    name="t",
                    partitions=tuple(
                        delete_records.DeleteRecordsPartition(partition_index=p, offset=-1) for p in ALL
                    ),
                ),
            )
        ),
        describe_producers.DescribeProducersRequest(
            topics=(describe_producers.TopicRequest(name="t", partition_indexes=tuple(ALL)),)
        ),
        add_partitions_to_txn.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="", v3_and_below_topics=(), transactions=(transaction,)
        ),
        describe_share_group_offsets.DescribeShareGroupOffsetsRequest(
            groups=(
                describe_share_group_offsets.DescribeShareGroupOffsetsRequestGroup(
                    group_id="g",
                    topics=(
                        describe_share_group_offsets.DescribeShareGroupOffsetsRequestTopic(
                            topic_name="t", partitions=tuple(ALL)
                        ),
                    ),
                ),
            )
        ),
    ]


def used(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("t-"))


def test_what_is_asked_of_unused_partitions_makes_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ElectLeaders of all topics silenced everybody for 7.8 s at 5,000 partitions."""
    transport = EmbeddedTransport(Cluster(tmp_path, offsets_partitions=1, clock=ManualClock()))
    create_topic(transport, "t", COUNT)
    member = Member(transport, "a")
    member.join()
    assert member.fetch(node=0).error_code == 0
    opened: list[str] = []
    of_system = os.open

    def noted(path: str, *how: int, **more: int) -> int:
        opened.append(str(path))
        return of_system(path, *how, **more)

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", noted)
        for request in reads():
            transport.request(None, request)
    assert [path for path in opened if "/t-" in path] == []
    transport.close()
    assert used(tmp_path) == []
    again = EmbeddedTransport(Cluster(tmp_path, offsets_partitions=1, clock=ManualClock()))
    log = again.cluster.log("t", 7)
    assert log is not None
    log.append([LogRecord(None, b"v")])
    assert used(tmp_path) == ["t-7"]
    again.close()
    last = EmbeddedTransport(Cluster(tmp_path, offsets_partitions=1, clock=ManualClock()))
    for request in reads():
        last.request(None, request)
    assert [end for p in ALL if (log := last.cluster.log("t", p)) and (end := log.end_offset)] == [1]
    assert used(tmp_path) == ["t-7"]
    gone = DeleteTopicState(name="t", topic_id=bytes(16))
    last.request(None, DeleteTopicsRequest(timeout_ms=0, topics=(gone,)))
    assert used(tmp_path) == []
    last.close()
