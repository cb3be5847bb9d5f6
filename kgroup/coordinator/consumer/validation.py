"""The checks of a ConsumerGroupHeartbeat before the group is touched (KIP-848)."""

from __future__ import annotations

from kgroup.coordinator.checks import is_blank
from kgroup.coordinator.config import GroupConfig
from kgroup.coordinator.consumer.member import GONE_EPOCH, LEFT_EPOCH, UNCHANGED_TIMEOUT
from kgroup.domain import CONSUMER
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

MEMBER_MAKES_ID_SINCE = 1


def check_consumer_heartbeat(
    config: GroupConfig, request: ConsumerGroupHeartbeatRequest, version: int
) -> None:
    """Refuse what no group could accept: INVALID_REQUEST, UNSUPPORTED_ASSIGNOR, UNSUPPORTED_VERSION."""
    if CONSUMER not in config.rebalance_protocols:
        raise Refused(ErrorCode.UNSUPPORTED_VERSION, "The consumer group protocol is not enabled.")
    _ids(request, version)
    _epoch(request)
    assignor = request.server_assignor
    if assignor is not None and assignor not in config.consumer_assignors:
        supported = ", ".join(config.consumer_assignors)
        raise Refused(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {assignor} is not supported. Supported assignors: {supported}.",
        )


def _ids(request: ConsumerGroupHeartbeatRequest, version: int) -> None:
    epoch = request.member_epoch
    has_id = version >= MEMBER_MAKES_ID_SINCE or epoch > 0 or epoch == GONE_EPOCH
    for name, text in (
        ("MemberId", request.member_id if has_id else None),
        ("GroupId", request.group_id),
        ("InstanceId", request.instance_id),
        ("RackId", request.rack_id),
    ):
        if is_blank(text):
            raise _invalid(f"{name} can't be empty.")


def _epoch(request: ConsumerGroupHeartbeatRequest) -> None:
    epoch = request.member_epoch
    if epoch == 0:
        if request.rebalance_timeout_ms == UNCHANGED_TIMEOUT:
            raise _invalid("RebalanceTimeoutMs must be provided in first request.")
        # A joining member owns nothing yet, or has to revoke it first: others may own it by now.
        if request.topic_partitions is None or request.topic_partitions:
            raise _invalid("TopicPartitions must be empty when (re-)joining.")
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            raise _invalid(
                "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
            )
    # Only a static member can leave for a while: any other rejoins under an id of its own (CP-15).
    elif epoch == LEFT_EPOCH and request.instance_id is None:
        raise _invalid("InstanceId can't be null.")
    elif epoch < LEFT_EPOCH:
        raise _invalid("MemberEpoch is invalid.")


def _invalid(message: str) -> Refused:
    return Refused(ErrorCode.INVALID_REQUEST, message)
