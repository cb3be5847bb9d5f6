"""ConsumerGroupHeartbeat: find its group, and settle what type that group is by then (KIP-848).

A joining member's heartbeat makes the group, or turns a classic one into a consumer group. A member that
leaves may leave a group behind that turns classic. `consumer` handles a member inside a consumer group.
"""

from __future__ import annotations

from kgroup.coordinator.classic.group import ClassicGroup
from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.consumer.heartbeat import heartbeat as stay
from kgroup.coordinator.consumer.leave import go_for_a_while, leaver
from kgroup.coordinator.consumer.member import LEFT_EPOCH
from kgroup.coordinator.consumer.quiet import said_before
from kgroup.coordinator.consumer.validation import check_consumer_heartbeat
from kgroup.coordinator.migration.fence import fence
from kgroup.coordinator.migration.upgrade import refuse_if_not_upgradable, upgrade
from kgroup.coordinator.state import Group, Step
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


def heartbeat(step: Step, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
    """Carry out a heartbeat of a member that joins (epoch 0), stays (above), or leaves (below)."""
    group = step.state.groups.get(request.group_id)
    if isinstance(group, ConsumerGroup):
        again = said_before(step, group, request)
        if again is not None:
            return again
    check_consumer_heartbeat(step.config, request, step.version)
    if request.member_epoch < 0:
        return _leave(step, group, request)
    if isinstance(group, ConsumerGroup):
        return stay(step, group, request)
    # Only a member without an epoch may make a group: any other has one from a deleted group (CP-21).
    if request.member_epoch > 0:
        absent = f"Consumer group {request.group_id} not found."
        raise _not_found(absent if group is None else f"Group {request.group_id} is not a consumer group.")
    # New, at epoch 1: the join bumps it, so that its first member gets epoch 2 (CP-01).
    if group is None:
        return stay(step, ConsumerGroup(request.group_id), request)
    if not isinstance(group, ClassicGroup):
        raise _not_found(f"Group {request.group_id} is not a consumer group.")
    refuse_if_not_upgradable(step, group)
    return stay(step, upgrade(step, group), request)


def _leave(
    step: Step, group: Group | None, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse:
    """Epoch -1 removes the member. Epoch -2: a static member will rejoin, and keeps its partitions."""
    if not isinstance(group, ConsumerGroup):
        missing = "not found." if group is None else "is not a consumer group."
        raise _not_found(f"Group {request.group_id} {missing}")
    member = leaver(group, request)
    if request.member_epoch == LEFT_EPOCH:
        go_for_a_while(step, group, member)
    else:
        fence(step, group, [member])
    return ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)


def _not_found(message: str) -> Refused:
    return Refused(ErrorCode.GROUP_ID_NOT_FOUND, message)
