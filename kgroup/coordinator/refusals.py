"""The response that carries an error code, for every request the coordinator answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kgroup.domain import NO_OFFSET
from kgroup.errors import ErrorCode
from kgroup.protocol.codec import Message
from kgroup.protocol.messages import (
    consumer_group_describe,
    consumer_group_heartbeat,
    consumer_group_install_assignment,
    consumer_group_prepare_assignment,
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


def refusal(request: Message, code: ErrorCode, message: str | None = None) -> Message:
    """Return the response to `request` that refuses all of it with `code`.

    If the protocol has a place for `message`, it is there; if errors stand per item, on each item.
    """
    return _REFUSALS[type(request)](request, code, message)


def _join(request: join_group.JoinGroupRequest, code: ErrorCode, _: str | None) -> Message:
    return join_group.JoinGroupResponse(error_code=code, member_id=request.member_id, protocol_name=None)


def _heartbeat_848(_: Message, code: ErrorCode, message: str | None) -> Message:
    return consumer_group_heartbeat.ConsumerGroupHeartbeatResponse(error_code=code, error_message=message)


def _prepare_assignment(_: Message, code: ErrorCode, message: str | None) -> Message:
    return consumer_group_prepare_assignment.ConsumerGroupPrepareAssignmentResponse(
        error_code=code, error_message=message
    )


def _install_assignment(_: Message, code: ErrorCode, message: str | None) -> Message:
    return consumer_group_install_assignment.ConsumerGroupInstallAssignmentResponse(
        error_code=code, error_message=message
    )


def _leave(_: Message, code: ErrorCode, __: str | None) -> Message:
    return leave_group.LeaveGroupResponse(error_code=code)


def _offset_commit(request: offset_commit.OffsetCommitRequest, code: ErrorCode, _: str | None) -> Message:
    return offset_commit.OffsetCommitResponse(
        topics=tuple(
            offset_commit.OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=tuple(
                    offset_commit.OffsetCommitResponsePartition(
                        partition_index=p.partition_index, error_code=code
                    )
                    for p in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


def _txn_offset_commit(
    request: txn_offset_commit.TxnOffsetCommitRequest, code: ErrorCode, _: str | None
) -> Message:
    return txn_offset_commit.TxnOffsetCommitResponse(
        topics=tuple(
            txn_offset_commit.TxnOffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=tuple(
                    txn_offset_commit.TxnOffsetCommitResponsePartition(
                        partition_index=p.partition_index, error_code=code
                    )
                    for p in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


def _offset_fetch(request: offset_fetch.OffsetFetchRequest, code: ErrorCode, _: str | None) -> Message:
    """Return the error on each group (version 8+), on top (2-7), or on each partition (1)."""
    return offset_fetch.OffsetFetchResponse(
        error_code=code,
        topics=tuple(
            offset_fetch.OffsetFetchResponseTopic(
                name=topic.name,
                partitions=tuple(
                    offset_fetch.OffsetFetchResponsePartition(
                        partition_index=index, committed_offset=NO_OFFSET, error_code=code
                    )
                    for index in topic.partition_indexes
                ),
            )
            for topic in request.topics or ()
        ),
        groups=tuple(
            offset_fetch.OffsetFetchResponseGroup(group_id=group.group_id, error_code=code)
            for group in request.groups
        ),
    )


def _describe_groups(
    request: describe_groups.DescribeGroupsRequest, code: ErrorCode, message: str | None
) -> Message:
    return describe_groups.DescribeGroupsResponse(
        groups=tuple(
            describe_groups.DescribedGroup(group_id=group_id, error_code=code, error_message=message)
            for group_id in request.groups
        )
    )


def _consumer_describe(
    request: consumer_group_describe.ConsumerGroupDescribeRequest, code: ErrorCode, message: str | None
) -> Message:
    return consumer_group_describe.ConsumerGroupDescribeResponse(
        groups=tuple(
            consumer_group_describe.DescribedGroup(group_id=group_id, error_code=code, error_message=message)
            for group_id in request.group_ids
        )
    )


def _streams_heartbeat(_: Message, code: ErrorCode, message: str | None) -> Message:
    return streams_group_heartbeat.StreamsGroupHeartbeatResponse(error_code=code, error_message=message)


def _streams_describe(
    request: streams_group_describe.StreamsGroupDescribeRequest, code: ErrorCode, message: str | None
) -> Message:
    return streams_group_describe.StreamsGroupDescribeResponse(
        groups=tuple(
            streams_group_describe.DescribedGroup(group_id=group_id, error_code=code, error_message=message)
            for group_id in request.group_ids
        )
    )


def _share_heartbeat(_: Message, code: ErrorCode, message: str | None) -> Message:
    return share_group_heartbeat.ShareGroupHeartbeatResponse(error_code=code, error_message=message)


def _share_describe(
    request: share_group_describe.ShareGroupDescribeRequest, code: ErrorCode, message: str | None
) -> Message:
    return share_group_describe.ShareGroupDescribeResponse(
        groups=tuple(
            share_group_describe.DescribedGroup(group_id=group_id, error_code=code, error_message=message)
            for group_id in request.group_ids
        )
    )


def _delete_groups(request: delete_groups.DeleteGroupsRequest, code: ErrorCode, _: str | None) -> Message:
    return delete_groups.DeleteGroupsResponse(
        results=tuple(
            delete_groups.DeletableGroupResult(group_id=group_id, error_code=code)
            for group_id in request.groups_names
        )
    )


_REFUSALS: dict[type[Message], Callable[[Any, ErrorCode, str | None], Message]] = {
    join_group.JoinGroupRequest: _join,
    sync_group.SyncGroupRequest: lambda r, code, m: sync_group.SyncGroupResponse(error_code=code),
    heartbeat.HeartbeatRequest: lambda r, code, m: heartbeat.HeartbeatResponse(error_code=code),
    leave_group.LeaveGroupRequest: _leave,
    offset_commit.OffsetCommitRequest: _offset_commit,
    offset_fetch.OffsetFetchRequest: _offset_fetch,
    offset_delete.OffsetDeleteRequest: lambda r, code, m: offset_delete.OffsetDeleteResponse(error_code=code),
    txn_offset_commit.TxnOffsetCommitRequest: _txn_offset_commit,
    list_groups.ListGroupsRequest: lambda r, code, m: list_groups.ListGroupsResponse(error_code=code),
    describe_groups.DescribeGroupsRequest: _describe_groups,
    delete_groups.DeleteGroupsRequest: _delete_groups,
    consumer_group_heartbeat.ConsumerGroupHeartbeatRequest: _heartbeat_848,
    consumer_group_describe.ConsumerGroupDescribeRequest: _consumer_describe,
    consumer_group_prepare_assignment.ConsumerGroupPrepareAssignmentRequest: _prepare_assignment,
    consumer_group_install_assignment.ConsumerGroupInstallAssignmentRequest: _install_assignment,
    share_group_heartbeat.ShareGroupHeartbeatRequest: _share_heartbeat,
    share_group_describe.ShareGroupDescribeRequest: _share_describe,
    streams_group_heartbeat.StreamsGroupHeartbeatRequest: _streams_heartbeat,
    streams_group_describe.StreamsGroupDescribeRequest: _streams_describe,
}
