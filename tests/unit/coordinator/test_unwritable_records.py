"""A request whose records have no encoding is refused; the shard and everybody parked on it stay."""

from __future__ import annotations

import logging

import pytest

from kgroup.coordinator.config import GroupConfig
from kgroup.coordinator.outcome import Request
from kgroup.errors import ErrorCode
from kgroup.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from kgroup.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kgroup.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kgroup.runtime.shard import Shard
from tests.unit.coordinator.shards import NOW_MS, ask, shard_over

LONGEST_STRING = 32_767
AT_ONCE = GroupConfig(initial_rebalance_delay_ms=0)


def joining(group_id: str, client_id: str = "c") -> Request:
    protocol = JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0\xff\xff\xff\xff")
    body = JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=60_000,
        member_id="",
        protocol_type="consumer",
        protocols=(protocol,),
    )
    return Request(body, 1, client_id, "/127.0.0.1")


def led_by(shard: Shard, client_id: str) -> str:
    """The id of the one member, and leader, of group `g`."""
    assert shard.submit(1, joining("g", client_id), NOW_MS) == []
    (reply,) = shard.wake(NOW_MS)
    assert isinstance(reply.response, JoinGroupResponse)
    assert reply.response.error_code == 0
    return reply.response.member_id


def test_a_member_whose_record_has_no_encoding_is_refused_alone(caplog: pytest.LogCaptureFixture) -> None:
    """A client id as long as a string can be makes a member id that is longer."""
    shard = shard_over(config=AT_ONCE)
    member_id = led_by(shard, "x" * LONGEST_STRING)
    before, stored = shard.coordinator, shard.log.end_offset
    sync = SyncGroupRequest(group_id="g", generation_id=1, member_id=member_id)
    with caplog.at_level(logging.ERROR):
        answer = ask(shard, sync, 1)
    assert isinstance(answer, SyncGroupResponse)
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert shard.coordinator is before
    assert shard.log.end_offset == stored
    (line,) = caplog.messages
    assert "__consumer_offsets-0" in line
    assert all(record.exc_info is None for record in caplog.records)


def test_whoever_is_parked_on_the_shard_still_waits() -> None:
    shard = shard_over(config=GroupConfig(initial_rebalance_delay_ms=3_000))
    assert shard.submit(7, joining("other"), NOW_MS) == []
    retention = OffsetCommitRequest(
        group_id="g",
        member_id="",
        retention_time_ms=(1 << 63) - 1,
        topics=(
            OffsetCommitRequestTopic(
                name="t1", partitions=(OffsetCommitRequestPartition(partition_index=0, committed_offset=5),)
            ),
        ),
    )
    answer = ask(shard, retention, 4)
    assert isinstance(answer, OffsetCommitResponse)
    assert answer.topics[0].partitions[0].error_code == 0
    (released,) = shard.wake(NOW_MS + 3_000)
    assert isinstance(released.response, JoinGroupResponse)
    assert (released.ticket, released.response.error_code) == (7, 0)
