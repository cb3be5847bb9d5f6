"""The checks of a StreamsGroupHeartbeat before the group is touched (KIP-1071)."""

from __future__ import annotations

from kgroup.coordinator.checks import is_blank
from kgroup.coordinator.config import GroupConfig
from kgroup.domain import STREAMS
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from kgroup.protocol.releases import Change

LEFT_FOR_A_WHILE = -2
"""The epoch of a static member that leaves for a while."""


def check_streams_heartbeat(config: GroupConfig, request: StreamsGroupHeartbeatRequest) -> None:
    """Refuse what no group could accept, in Kafka's order: first unsupported, then invalid requests."""
    if STREAMS not in config.rebalance_protocols:
        raise Refused(ErrorCode.UNSUPPORTED_VERSION, "The streams group protocol is not enabled.")
    if not config.kafka.has(Change.STATIC_STREAMS_MEMBERS):
        _dynamic(request)
    if request.topology is not None and any(s.source_topic_regex for s in request.topology.subtopologies):
        raise _invalid("Regular expressions for source topics are not supported yet.")
    for name, text in (
        ("MemberId", request.member_id),
        ("GroupId", request.group_id),
        ("InstanceId", request.instance_id),
        ("RackId", request.rack_id),
    ):
        if is_blank(text):
            raise _invalid(f"{name} can't be empty.")
    _epoch(request)
    kinds = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    if any(tasks is not None for tasks in kinds) and None in kinds:
        raise _invalid("If one task-type is non-null, all must be non-null.")
    if request.member_epoch != 0 and request.topology is not None:
        raise _invalid("Topology can only be provided when (re-)joining.")


def _dynamic(request: StreamsGroupHeartbeatRequest) -> None:
    if request.instance_id is not None:
        raise _invalid("Static membership is not yet supported.")
    if request.task_offsets is not None:
        raise _invalid("TaskOffsets are not supported yet.")
    if request.task_end_offsets is not None:
        raise _invalid("TaskEndOffsets are not supported yet.")
    if request.warmup_tasks:
        raise _invalid("WarmupTasks are not supported yet.")


def _epoch(request: StreamsGroupHeartbeatRequest) -> None:
    epoch = request.member_epoch
    if epoch == 0:
        if request.rebalance_timeout_ms == -1:
            raise _invalid("RebalanceTimeoutMs must be provided in first request.")
        for name, tasks in (
            ("ActiveTasks", request.active_tasks),
            ("StandbyTasks", request.standby_tasks),
            ("WarmupTasks", request.warmup_tasks),
        ):
            if tasks is None or tasks:
                raise _invalid(f"{name} must be empty when (re-)joining.")
        _topology(request)
    elif epoch == LEFT_FOR_A_WHILE and request.instance_id is None:
        raise _invalid("InstanceId can't be null.")
    elif epoch < LEFT_FOR_A_WHILE:
        raise _invalid(f"MemberEpoch is {epoch}, but must be greater than or equal to -2.")


def _topology(request: StreamsGroupHeartbeatRequest) -> None:
    if request.topology is None:
        raise _invalid("Topology must be non-null when (re-)joining.")
    for subtopology in request.topology.subtopologies:
        for topic in subtopology.state_changelog_topics:
            if topic.partitions != 0:
                raise Refused(
                    ErrorCode.STREAMS_INVALID_TOPOLOGY,
                    f"Changelog topic {topic.name} must have an undefined partition count, "
                    f"but it is set to {topic.partitions}.",
                )


def _invalid(message: str) -> Refused:
    return Refused(ErrorCode.INVALID_REQUEST, message)
