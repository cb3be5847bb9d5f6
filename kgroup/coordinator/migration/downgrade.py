"""From a consumer to a classic group: at once when it is empty, online once only classic members stay."""

from __future__ import annotations

from collections.abc import Collection

from kgroup.coordinator.classic.group import ClassicGroup, ClassicMember
from kgroup.coordinator.classic.join import join
from kgroup.coordinator.classic.rebalance import prepare
from kgroup.coordinator.classic.timers import renew_session
from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.consumer.member import ConsumerMember
from kgroup.coordinator.consumer.records import forget_consumer_group
from kgroup.coordinator.consumer.target import stored_target
from kgroup.coordinator.groups import forget_group
from kgroup.coordinator.member_timers import cancel_all
from kgroup.coordinator.state import Step
from kgroup.coordinator.streams.group import StreamsGroup
from kgroup.domain import TopicImage, TopicPartition
from kgroup.errors import DecodeError, ErrorCode, Refused
from kgroup.protocol.group_records import GroupMetadataValue
from kgroup.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from kgroup.protocol.subscription import PROTOCOL_TYPE, Assignment, version_of

DOWNGRADE_POLICIES = ("bidirectional", "downgrade")


def can_downgrade(step: Step, group: ConsumerGroup, gone: Collection[ConsumerMember]) -> bool:
    """Return whether all members that stay are classic, and the cluster lets the group become classic."""
    stay = len(group.members) - len(gone)
    classic = group.classic_members - sum(member.is_classic for member in gone)
    # An empty group changes its type when a member joins it, and not before.
    if not 0 < stay == classic:
        return False
    return step.config.migration_policy in DOWNGRADE_POLICIES and stay <= step.config.max_size


def can_downgrade_by_replacing(step: Step, group: ConsumerGroup, replaced: ConsumerMember) -> bool:
    """Return whether only classic members stay if a classic member takes this static one's place."""
    if replaced.is_classic or group.classic_members != len(group.members) - 1:
        return False
    return step.config.migration_policy in DOWNGRADE_POLICIES and len(group.members) <= step.config.max_size


def downgrade(step: Step, group: ConsumerGroup, gone: Collection[ConsumerMember]) -> ClassicGroup:
    """Make the group classic with the members that stay, at its epoch as generation, and rebalance it."""
    leavers = {member.member_id for member in gone}
    forget_consumer_group(step, group)
    stay = [member for member in group.members.values() if member.member_id not in leavers]
    classic = _convert(step, group, stay)
    prepare(step, classic)
    return classic


def downgrade_by_replacing(
    step: Step, group: ConsumerGroup, replaced: ConsumerMember, joiner: ConsumerMember, *, rebalance: bool
) -> ClassicGroup:
    """Make the group classic with `joiner` in the place of `replaced`; Stable unless targets are behind."""
    forget_consumer_group(step, group, renamed=(replaced.member_id, joiner.member_id))
    members = [m for m in group.members.values() if m.member_id != replaced.member_id]
    classic = _convert(step, group, [*members, joiner])
    if rebalance:
        prepare(step, classic)
    return classic


def make_way(
    step: Step, group: ConsumerGroup | StreamsGroup, request: JoinGroupRequest
) -> JoinGroupResponse | None:
    """Free the id of an empty group of another type for a classic join: tombstones, then its records."""
    # An id of the old group: a member that sends it must join as a new one.
    if request.member_id:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
    group_id = group.group_id
    # The join must find no group, and its records must follow the tombstones that replay needs first.
    del step.state.groups[group_id]
    response = join(step, None, request)
    created = step.state.groups[group_id]
    assert isinstance(created, ClassicGroup)
    # What the join parked is soft state of the new group, which replaying its record takes from here.
    step.state.converted[group_id] = created
    own, step.records = step.records, []
    forget_group(step, group)
    step.records += own
    step.state.groups[group_id] = group
    return response


def _convert(step: Step, group: ConsumerGroup, members: list[ConsumerMember]) -> ClassicGroup:
    for member_id in group.members:
        cancel_all(step, group, member_id)
    classic = ClassicGroup(
        group.group_id, GroupMetadataValue(protocol_type=PROTOCOL_TYPE, generation=group.epoch, members=())
    )
    for member in members:
        classic.add(_classic_member(member))
    protocol = classic.selected_protocol()
    # The targets, not the present assignments: a classic group does not reconcile its members any more.
    image = step.state.image
    try:
        assignments = {
            member.member_id: _assignment(
                image, group, member, classic.members[member.member_id].metadata(protocol)
            )
            for member in members
        }
    except DecodeError as error:
        raise Refused(
            ErrorCode.GROUP_ID_NOT_FOUND,
            f"Cannot downgrade the classic group {group.group_id}: {error.message}.",
        ) from None
    record = classic.record(
        group.epoch,
        protocol=protocol,
        leader=next(iter(classic.members)),
        assignments=assignments,
        state_since_ms=step.now_ms,
    )
    step.records.append(record)
    assert isinstance(record.value, GroupMetadataValue)
    classic.replay(record.value)
    # Timers and parked joins belong to this object: replaying the record takes it over and makes none.
    step.state.converted[group.group_id] = classic
    for classic_member in classic.members.values():
        renew_session(step, classic, classic_member)
    return classic


def _classic_member(member: ConsumerMember) -> ClassicMember:
    metadata = member.metadata
    classic = metadata.classic_member_metadata
    assert classic is not None, "only members of the classic protocol stay in a downgrade"
    return ClassicMember(
        member_id=member.member_id,
        instance_id=metadata.instance_id,
        client_id=metadata.client_id,
        client_host=metadata.client_host,
        rebalance_timeout_ms=metadata.rebalance_timeout_ms,
        session_timeout_ms=classic.session_timeout_ms,
        protocol_type=PROTOCOL_TYPE,
        protocols=tuple(
            JoinGroupRequestProtocol(name=p.name, metadata=p.metadata) for p in classic.supported_protocols
        ),
    )


def _assignment(
    image: TopicImage, group: ConsumerGroup, member: ConsumerMember, subscription: bytes
) -> bytes:
    """Return the member's target in ConsumerProtocol encoding, in the version of its subscription."""
    partitions = tuple(
        TopicPartition(name, number)
        for topic_id, numbers in stored_target(group, member).items()
        if (name := image.name_of(topic_id)) is not None
        for number in numbers
    )
    return Assignment(partitions).encode(version_of(subscription))
