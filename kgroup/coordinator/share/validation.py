"""The checks of a ShareGroupHeartbeat before the group is touched (KIP-932)."""

from __future__ import annotations

from kgroup.coordinator.checks import is_blank
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

LEFT_EPOCH = -1
"""The epoch that a leaving member sends."""


def check_share_heartbeat(request: ShareGroupHeartbeatRequest) -> None:
    """Refuse what no group could accept."""
    for name, text in (
        ("MemberId", request.member_id),
        ("GroupId", request.group_id),
        ("RackId", request.rack_id),
    ):
        if is_blank(text):
            raise _invalid(f"{name} can't be empty.")
    if request.member_epoch == 0:
        if not request.subscribed_topic_names:
            raise _invalid("SubscribedTopicNames must be set in first request.")
    elif request.member_epoch < LEFT_EPOCH:
        raise _invalid("MemberEpoch is invalid.")


def _invalid(message: str) -> Refused:
    return Refused(ErrorCode.INVALID_REQUEST, message)
