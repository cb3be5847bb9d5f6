"""Checks on a request before its group is looked up, whichever broker received it.

Kafka's GroupCoordinatorService checks this before it finds out whether it leads the group's partition: it
does not answer NOT_COORDINATOR to a request that no coordinator would accept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kgroup.coordinator.checks import refuse_if_no_group_id
from kgroup.coordinator.config import GroupConfig
from kgroup.coordinator.consumer.validation import check_consumer_heartbeat
from kgroup.coordinator.share.validation import check_share_heartbeat
from kgroup.coordinator.streams.validation import check_streams_heartbeat
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgroup.protocol.messages.heartbeat import HeartbeatRequest
from kgroup.protocol.messages.join_group import JoinGroupRequest
from kgroup.protocol.messages.leave_group import LeaveGroupRequest
from kgroup.protocol.messages.offset_delete import OffsetDeleteRequest
from kgroup.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from kgroup.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from kgroup.protocol.messages.sync_group import SyncGroupRequest

SYNC_NAMES_PROTOCOL_SINCE = 5


def admit(config: GroupConfig, request: Message, version: int) -> None:
    """Raise Refused for a request that no coordinator with this configuration accepts."""
    check = _CHECKS.get(type(request))
    if check is not None:
        check(config, request, version)


def check_join(config: GroupConfig, request: JoinGroupRequest) -> None:
    """Raise INVALID_GROUP_ID, or INVALID_SESSION_TIMEOUT outside the broker's limits (SM-23)."""
    refuse_if_no_group_id(request.group_id)
    # If too short, heartbeats overload the broker; if too long, the group waits for a dead member.
    if not config.min_session_timeout_ms <= request.session_timeout_ms <= config.max_session_timeout_ms:
        raise Refused(ErrorCode.INVALID_SESSION_TIMEOUT)


def check_sync(request: SyncGroupRequest, version: int) -> None:
    """Raise INCONSISTENT_GROUP_PROTOCOL without the protocol's type or name, before INVALID_GROUP_ID."""
    if version >= SYNC_NAMES_PROTOCOL_SINCE and None in (request.protocol_type, request.protocol_name):
        raise Refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    refuse_if_no_group_id(request.group_id)


def _check_group_id(_: GroupConfig, request: Any, __: int) -> None:
    refuse_if_no_group_id(request.group_id)


_CHECKS: dict[type[Message], Callable[[GroupConfig, Any, int], None]] = {
    JoinGroupRequest: lambda config, request, version: check_join(config, request),
    SyncGroupRequest: lambda config, request, version: check_sync(request, version),
    HeartbeatRequest: _check_group_id,
    LeaveGroupRequest: _check_group_id,
    OffsetDeleteRequest: _check_group_id,
    ConsumerGroupHeartbeatRequest: check_consumer_heartbeat,
    ShareGroupHeartbeatRequest: lambda _, request, __: check_share_heartbeat(request),
    StreamsGroupHeartbeatRequest: lambda config, request, version: check_streams_heartbeat(config, request),
}
