"""Members that leave: for good, for a while (static members), or because their session expired."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.consumer.member import LEFT_EPOCH, NO_PARTITIONS, ConsumerMember
from kgroup.coordinator.consumer.records import remove_regex
from kgroup.coordinator.consumer.roster import take_over
from kgroup.coordinator.consumer.subscription import Subscriptions
from kgroup.coordinator.member_timers import cancel_all
from kgroup.coordinator.records import remove_member, write_current, write_epoch, write_target_epoch
from kgroup.coordinator.state import Step
from kgroup.coordinator.topic_hashes import hash_of
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgroup.protocol.releases import Change


def leaver(group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest) -> ConsumerMember:
    """Return the member that leaves; refuse it if unknown, or if another owns its place.

    Its epoch is not compared: any known member may leave, as in Kafka.
    """
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
    """Raise UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID unless the member owns the instance id (SM-32, SM-33)."""
    holder = group.static.get(instance_id)
    if holder is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if holder != member_id:
        raise Refused(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member {holder}.",
        )


def go_for_a_while(step: Step, group: ConsumerGroup, member: ConsumerMember) -> None:
    """Record that a static member will rejoin: it keeps its partitions until its session expires.

    Their assignment epochs become 0 (KIP-1251, AE-24): the process that rejoins has another member id and
    starts from epoch 0, and must be able to commit what was processed before. Partitions it was asked to
    revoke are free at once, as a process that is gone reads nothing. No timer is touched: the session
    runs on, and its end removes the member for good.
    """
    current = member.current
    zeroed = {topic: dict.fromkeys(numbers, 0) for topic, numbers in current.assigned.items()}
    gone = replace(current, epoch=LEFT_EPOCH, assigned=zeroed, revoking=NO_PARTITIONS)
    write_current(step, group, replace(member, current=gone))


def remove(step: Step, group: ConsumerGroup, gone: Collection[ConsumerMember]) -> None:
    """Remove members and bump the group epoch once; a later heartbeat computes the target.

    As in Kafka: the removal needs no assignor, which may fail, and several members that leave one
    after the other cost one computation.
    """
    for member in gone:
        remove_member(step, group, member.member_id)
    subscriptions = Subscriptions.without(group, gone)
    for pattern in group.resolved:
        if not subscriptions.patterns[pattern]:
            remove_regex(step, group.group_id, pattern)
    topics = subscriptions.topics(group)
    write_epoch(step, group, group.epoch + 1, hash_of(step.state, topics))
    if len(gone) == len(group.members) and step.config.kafka.has(Change.EMPTIED_TARGETS):
        write_target_epoch(step, group, group.epoch + 1, 0)
    take_over(step, group, gone, group.epoch + 1)
    for member in gone:
        cancel_all(step, group, member.member_id)
