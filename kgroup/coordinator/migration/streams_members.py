"""StreamsGroupHeartbeat: find its group, and settle what type that group is by then (KIP-1071).

A joining member's heartbeat makes the group, in the place of an empty classic one if there is one. `streams`
handles a member inside a streams group; no other type of group turns into one.
"""

from __future__ import annotations

from kgroup.coordinator.classic.group import ClassicGroup
from kgroup.coordinator.groups import forget_group
from kgroup.coordinator.state import Step
from kgroup.coordinator.streams.group import StreamsGroup
from kgroup.coordinator.streams.heartbeat import heartbeat as stay
from kgroup.coordinator.streams.heartbeat import leave
from kgroup.coordinator.streams.validation import check_streams_heartbeat
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)


def heartbeat(step: Step, request: StreamsGroupHeartbeatRequest) -> StreamsGroupHeartbeatResponse:
    """Carry out a heartbeat of a member that joins (epoch 0), stays (above), or leaves (below)."""
    check_streams_heartbeat(step.config, request)
    group = step.state.groups.get(request.group_id)
    if isinstance(group, StreamsGroup):
        return leave(step, group, request) if request.member_epoch < 0 else stay(step, group, request)
    if group is None and request.member_epoch != 0:
        kind = "Group" if request.member_epoch < 0 else "Streams group"
        raise _not_found(f"{kind} {request.group_id} not found.")
    if group is not None:
        # Kafka upgrades no group with members to a streams group: only its offsets may be taken over.
        if request.member_epoch != 0 or not (isinstance(group, ClassicGroup) and group.is_empty):
            raise _not_found(f"Group {request.group_id} is not a streams group.")
        forget_group(step, group)
    return stay(step, StreamsGroup(request.group_id), request)


def _not_found(message: str) -> Refused:
    return Refused(ErrorCode.GROUP_ID_NOT_FOUND, message)
