"""Every request the coordinator answers has a response for "no", and it carries the code."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from kgroup.coordinator.coordinator import HANDLERS
from kgroup.errors import ErrorCode
from kgroup.protocol.codec import Message
from kgroup.protocol.messages import (
    consumer_group_describe,
    consumer_group_heartbeat,
    delete_groups,
    describe_groups,
    heartbeat,
    join_group,
    leave_group,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
    share_group_describe,
    share_group_heartbeat,
    streams_group_describe,
    streams_group_heartbeat,
    sync_group,
    txn_offset_commit,
)
from kgroup.protocol.requests import refusal

CODE = ErrorCode.NOT_COORDINATOR
PLACE = offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
TXN_PLACE = txn_offset_commit.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=5)
REQUESTS: list[tuple[Message, int]] = [
    (join_group.JoinGroupRequest(group_id="g", session_timeout_ms=1, member_id="m", protocol_type="c"), 9),
    (sync_group.SyncGroupRequest(group_id="g", generation_id=1, member_id="m"), 5),
    (streams_group_heartbeat.StreamsGroupHeartbeatRequest(group_id="g"), 0),
    (streams_group_describe.StreamsGroupDescribeRequest(group_ids=("g",)), 0),
    (heartbeat.HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 4),
    (leave_group.LeaveGroupRequest(group_id="g"), 5),
    (
        offset_commit.OffsetCommitRequest(
            group_id="g",
            member_id="",
            topics=(offset_commit.OffsetCommitRequestTopic(name="t", partitions=(PLACE,)),),
        ),
        9,
    ),
    (
        txn_offset_commit.TxnOffsetCommitRequest(
            transactional_id="x",
            group_id="g",
            producer_id=1,
            producer_epoch=0,
            topics=(txn_offset_commit.TxnOffsetCommitRequestTopic(name="t", partitions=(TXN_PLACE,)),),
        ),
        5,
    ),
    (
        offset_fetch.OffsetFetchRequest(
            groups=(offset_fetch.OffsetFetchRequestGroup(group_id="g", topics=None),)
        ),
        9,
    ),
    (
        offset_fetch.OffsetFetchRequest(
            group_id="g", topics=(offset_fetch.OffsetFetchRequestTopic(name="t", partition_indexes=(0,)),)
        ),
        1,
    ),
    (offset_fetch.OffsetFetchRequest(group_id="g", topics=None), 7),
    (offset_delete.OffsetDeleteRequest(group_id="g"), 0),
    (list_groups.ListGroupsRequest(), 5),
    (describe_groups.DescribeGroupsRequest(groups=("g",)), 6),
    (delete_groups.DeleteGroupsRequest(groups_names=("g",)), 2),
    (consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=0), 1),
    (consumer_group_describe.ConsumerGroupDescribeRequest(group_ids=("g",)), 1),
    (share_group_heartbeat.ShareGroupHeartbeatRequest(group_id="g", member_id="m"), 1),
    (share_group_describe.ShareGroupDescribeRequest(group_ids=("g",)), 1),
]


def codes_in(value: Any) -> set[int]:
    """Every error code anywhere in a response."""
    if isinstance(value, tuple):
        return set().union(*map(codes_in, value))
    if not is_dataclass(value):
        return set()
    own = {value.error_code} if hasattr(value, "error_code") else set()
    return own.union(*(codes_in(getattr(value, f.name)) for f in fields(value)))


@pytest.mark.parametrize(("request_", "version"), REQUESTS, ids=lambda v: getattr(type(v), "__name__", ""))
def test_the_code_is_on_the_wire(request_: Message, version: int) -> None:
    response = refusal(request_, CODE)
    assert response.API == request_.API
    assert CODE in codes_in(type(response).decode(response.encode(version), version))


def test_every_request_the_coordinator_handles_can_be_refused() -> None:
    tested = {type(request) for request, _ in REQUESTS}
    private = {kind for kind in HANDLERS if kind.API > 1000}
    assert set(HANDLERS) - private <= tested


def test_a_refused_join_names_the_member_that_asked() -> None:
    response: Any = refusal(REQUESTS[0][0], CODE)
    assert (response.member_id, response.protocol_name) == ("m", None)
