"""Members that go: for good, for a while (static members), or because they were silent for too long."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.consumer.member import LEFT_EPOCH, NO_PARTITIONS, ConsumerMember
from kgroup.coordinator.consumer.records import remove_member, remove_regex, write_current, write_epoch
from kgroup.coordinator.consumer.subscription import Subscriptions, hash_of
from kgroup.coordinator.consumer.timers import cancel_all
from kgroup.coordinator.migration.downgrade import can_downgrade, downgrade
from kgroup.coordinator.state import Step
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


def leave(
    step: Step, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse:
    """Epoch -1: the member is gone. Epoch -2: a static member will be back, and keeps its partitions."""
    member = _leaver(group, request)
    if request.member_epoch == LEFT_EPOCH:
        write_current(step, group.group_id, _gone_for_a_while(member))
    else:
        fence(step, group, [member])
    return ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)


def _leaver(group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest) -> ConsumerMember:
    if request.instance_id is not None:
        refuse_if_not_holder(group, request.member_id, request.instance_id)
    member = group.members.get(request.member_id)
    if member is None:
        raise Refused(
            ErrorCode.UNKNOWN_MEMBER_ID,
            f"Member {request.member_id} is not a member of group {group.group_id}.",
        )
    return member


def refuse_if_not_holder(group: ConsumerGroup, member_id: str, instance_id: str) -> None:
    """UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID unless the member holds the instance id."""
    holder = group.static.get(instance_id)
    if holder is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if holder != member_id:
        raise Refused(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member {holder}.",
        )


def _gone_for_a_while(member: ConsumerMember) -> ConsumerMember:
    current = member.current
    zeroed = {topic: dict.fromkeys(numbers, 0) for topic, numbers in current.assigned.items()}
    return replace(
        member, current=replace(current, epoch=LEFT_EPOCH, assigned=zeroed, revoking=NO_PARTITIONS)
    )


def fence(step: Step, group: ConsumerGroup, leavers: Iterable[ConsumerMember]) -> None:
    """Remove members and bump the group epoch once; no target is computed until a member's heartbeat.

    When only classic-protocol members stay, the group becomes a classic one instead (KIP-848).
    """
    gone = list(leavers)
    if not gone:
        return
    if can_downgrade(step, group, gone):
        downgrade(step, group, gone)
        return
    for member in gone:
        remove_member(step, group.group_id, member.member_id)
    subscriptions = Subscriptions.without(group, gone)
    for pattern in group.resolved:
        if not subscriptions.patterns[pattern]:
            remove_regex(step, group.group_id, pattern)
    topics = subscriptions.topics(group)
    write_epoch(step, group.group_id, group.epoch + 1, hash_of(step.state, topics))
    for member in gone:
        cancel_all(step, group.group_id, member.member_id)
