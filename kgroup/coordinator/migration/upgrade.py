"""From a classic to a consumer group: at once when it is empty, else online with its members (KIP-848)."""

from __future__ import annotations

from functools import partial

from kgroup.coordinator.assignors.interface import Assignment as Target
from kgroup.coordinator.classic.group import ClassicGroup, ClassicMember
from kgroup.coordinator.classic.rebalance import refuse_parked
from kgroup.coordinator.classic.timers import hold_timer, join_timer, session_timer, sync_timer
from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.consumer.member import ConsumerMember, Current, epochs_at
from kgroup.coordinator.member_timers import renew_session
from kgroup.coordinator.records import (
    write_current,
    write_epoch,
    write_metadata,
    write_target,
    write_target_epoch,
)
from kgroup.coordinator.state import Step
from kgroup.coordinator.topic_hashes import hash_of
from kgroup.domain import TopicImage
from kgroup.errors import DecodeError, ErrorCode, Refused
from kgroup.protocol.group_records import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupMemberMetadataValue,
    GroupMetadataKey,
)
from kgroup.protocol.subscription import PROTOCOL_TYPE, Assignment, Subscription

UPGRADE_POLICIES = ("bidirectional", "upgrade")


def refuse_if_not_upgradable(step: Step, group: ClassicGroup) -> None:
    """Raise GROUP_ID_NOT_FOUND, with the reason, for a classic group that must stay one; never if empty.

    The code is Kafka's: to a client of the consumer protocol there is no such group.
    """
    if group.is_empty:
        return
    cannot = f"Cannot upgrade classic group {group.group_id} to consumer group because"
    # In the order of Kafka's validateOnlineUpgrade: the message gives the first reason that holds.
    if step.config.migration_policy not in UPGRADE_POLICIES:
        raise _not_found(f"{cannot} online upgrade is disabled.")
    if group.protocol_type != PROTOCOL_TYPE:
        raise _not_found(f"{cannot} the group does not use the consumer embedded protocol.")
    if len(group.members) > step.config.consumer_max_size:
        raise _not_found(f"{cannot} the group size exceeds the consumer group maximum size.")


def upgrade(step: Step, group: ClassicGroup) -> ConsumerGroup:
    """Return the consumer group in place of the classic one, with its members; an empty one always converts.

    It exists for this step only: replaying the step's records makes the real one.
    Raise Refused(GROUP_ID_NOT_FOUND) if a member's subscription or assignment cannot be taken over.
    """
    if not group.is_empty:
        return _convert(step, group)
    _forget(step, group)
    return ConsumerGroup(group.group_id)


def _convert(step: Step, classic: ClassicGroup) -> ConsumerGroup:
    """Return the same members with the same partitions, the generation as their epochs (also KIP-1251's)."""
    group = _converted(step.state.image, classic)
    # The hash of today's topics: the joiner's heartbeat must not see the conversion as a change of theirs.
    group.metadata_hash = hash_of(step.state, group.subscribed_topics())
    # The heartbeat that converts may still be refused (a pattern, a full group, an assignor that fails). The
    # classic group must then rebalance on unaffected, so its parked requests wait for the end.
    step.defer(partial(_send_back, step, classic))
    _forget(step, classic)
    for converted in group.members.values():
        write_metadata(step, group, converted)
    write_epoch(step, group, group.epoch, group.metadata_hash)
    for member_id, target in group.targets.items():
        write_target(step, group, member_id, target)
    # No timestamp: the joiner's target is due at once, whatever the assignment interval.
    write_target_epoch(step, group, group.assignment_epoch, 0)
    for converted in group.members.values():
        write_current(step, group, converted)
        renew_session(step, group, converted)
    return group


def _send_back(step: Step, classic: ClassicGroup) -> None:
    """Ask members that wait for a rebalance of the classic group to rejoin, now the consumer group."""
    for member in classic.members.values():
        refuse_parked(step, classic, member, ErrorCode.REBALANCE_IN_PROGRESS, member.member_id)
    expected = step.state.expected.get(classic.group_id)
    if expected is not None:
        expected.send_back(step, classic, ErrorCode.REBALANCE_IN_PROGRESS)


def _converted(image: TopicImage, classic: ClassicGroup) -> ConsumerGroup:
    cannot = f"Cannot upgrade classic group {classic.group_id} to consumer group because"
    generation = classic.generation
    group = ConsumerGroup(classic.group_id, epoch=generation, assignment_epoch=generation)
    for member in classic.members.values():
        try:
            subscription = Subscription.decode(member.metadata(classic.protocol))
            assignment = Assignment.decode(member.assignment) if member.assignment else Assignment()
        except DecodeError:
            raise _not_found(f"{cannot} the embedded consumer protocol is malformed.") from None
        # Bytes of the client's own assignor: no server-side assignor could go on from them.
        if assignment.user_data:
            raise _not_found(
                f"{cannot} an unsupported custom assignor is in use. Please refer to the documentation or "
                "switch to a default assignor before re-attempting the upgrade."
            )
        target = _by_topic_id(image, assignment)
        assigned = epochs_at(target, generation)
        # Both epochs are the generation: a commit under way with it stays acceptable (AE-26).
        current = Current(generation, generation, assigned=assigned)
        group.targets[member.member_id] = target
        group.put_member(ConsumerMember(member.member_id, classic_metadata(member, subscription), current))
    return group


def classic_metadata(member: ClassicMember, subscription: Subscription) -> ConsumerGroupMemberMetadataValue:
    """Record 5 of a member that speaks the classic protocol inside a consumer group."""
    return ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=subscription.rack,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(set(subscription.topics))),
        subscribed_topic_regex="",
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic_member_metadata=ClassicMemberMetadata(
            session_timeout_ms=member.session_timeout_ms,
            supported_protocols=tuple(
                ClassicProtocol(name=p.name, metadata=p.metadata) for p in member.protocols
            ),
        ),
    )


def _by_topic_id(image: TopicImage, assignment: Assignment) -> Target:
    """Return the partitions under their topics' ids; omit deleted topics."""
    by_topic_id: dict[bytes, list[int]] = {}
    for partition in assignment.partitions:
        topic_id = image.id_of(partition.topic)
        if topic_id is not None:
            by_topic_id.setdefault(topic_id, []).append(partition.partition)
    return {topic_id: tuple(sorted(numbers)) for topic_id, numbers in by_topic_id.items()}


def _forget(step: Step, group: ClassicGroup) -> None:
    timers = (join_timer(group), sync_timer(group), hold_timer(group))
    for key in (*timers, *(session_timer(group, m) for m in group.members)):
        step.cancel(key)
    step.write(GroupMetadataKey(group=group.group_id), None)


def _not_found(message: str) -> Refused:
    return Refused(ErrorCode.GROUP_ID_NOT_FOUND, message)
