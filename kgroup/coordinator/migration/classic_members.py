"""Members of the classic protocol inside a consumer group: join, sync, heartbeat, leave (KIP-848)."""

from __future__ import annotations

from dataclasses import replace

from kgroup.coordinator.classic.answers import refused_join
from kgroup.coordinator.classic.heartbeat import ALIVE, REBALANCING
from kgroup.coordinator.classic.join import MEMBER_ID_REQUIRED_SINCE
from kgroup.coordinator.classic.rebalance import rebalance_timeout
from kgroup.coordinator.consumer.advance import announce, move, refuse_if_full, take_place
from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.consumer.leave import refuse_if_not_holder
from kgroup.coordinator.consumer.member import UNCHANGED_TIMEOUT, ConsumerMember, MemberState, new_member
from kgroup.coordinator.consumer.reconcile import Owned
from kgroup.coordinator.consumer.target import Target, stored_target, update_target
from kgroup.coordinator.member_timers import renew_session
from kgroup.coordinator.migration.downgrade import can_downgrade_by_replacing, downgrade_by_replacing
from kgroup.coordinator.migration.fence import fence
from kgroup.coordinator.state import Step
from kgroup.coordinator.timer_kinds import TimerKind
from kgroup.domain import NO_EPOCH, TopicImage, TopicPartition
from kgroup.errors import DecodeError, ErrorCode, Refused
from kgroup.protocol.group_records import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupMemberMetadataValue,
)
from kgroup.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kgroup.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kgroup.protocol.messages.leave_group import LeaveGroupResponse, MemberIdentity, MemberResponse
from kgroup.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kgroup.protocol.releases import Change
from kgroup.protocol.subscription import PROTOCOL_TYPE, Assignment, Subscription, version_of
from kgroup.timers import TimerKey


def join(step: Step, group: ConsumerGroup, request: JoinGroupRequest) -> JoinGroupResponse:
    """Join a classic member: its generation is its member epoch, and no member computes an assignment.

    A static member that takes the place of the last consumer-protocol member turns the group classic.
    """
    if step.config.migration_policy == "disabled":
        raise Refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    member_id = request.member_id or step.state.ids.consumer_member()
    refuse_if_full(step, group, member_id, request.group_instance_id)
    # One that all classic members list, so that the group can become classic again at any time; those of the
    # consumer protocol list none, and would be gone by then.
    listed = [
        {p.name for p in member.metadata.classic_member_metadata.supported_protocols}
        for member in group.members.values()
        if member.metadata.classic_member_metadata is not None
    ]
    shared = any(all(p.name in names for names in listed) for p in request.protocols)
    if request.protocol_type != PROTOCOL_TYPE or not shared:
        raise Refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if (
        not request.member_id
        and request.group_instance_id is None
        and step.version >= MEMBER_ID_REQUIRED_SINCE
    ):
        # KIP-394, as in a classic group; but no id is stored: any id that comes back is a new member's.
        return refused_join(ErrorCode.MEMBER_ID_REQUIRED, member_id)
    before = _member(step, group, request, member_id)
    # The first protocol listed is the member's favourite; no vote is held, as only the coordinator assigns.
    try:
        subscription = Subscription.decode(request.protocols[0].metadata)
    except DecodeError as error:
        # Kafka 4.3 fails here with an exception of its own; the client gets this code only.
        refuses = step.config.kafka.has(Change.MALFORMED_SUBSCRIPTIONS)
        code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL if refuses else ErrorCode.UNKNOWN_SERVER_ERROR
        raise Refused(code, error.message) from None
    after = replace(before, metadata=_metadata(step, before, request, subscription))
    replaced = group.members.get(group.static.get(request.group_instance_id or "", ""))
    owned = _owned(step.state.image, subscription)
    after, stays = _advance(step, group, replaced, before, after, owned)
    if stays:
        sync_timer = TimerKey(TimerKind.CONSUMER_SYNC, group.group_id, after.member_id)
        step.arm(sync_timer, rebalance_timeout(request, step.version))
    return JoinGroupResponse(
        member_id=after.member_id,
        generation_id=after.epoch,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=request.protocols[0].name,
    )


def _advance(
    step: Step,
    group: ConsumerGroup,
    replaced: ConsumerMember | None,
    before: ConsumerMember,
    after: ConsumerMember,
    owned: Owned,
) -> tuple[ConsumerMember, bool]:
    """Carry the join out; return the member as it is then, and whether its group is still a consumer group.

    `replaced` owns the instance id that the join names, and may be the member itself.
    """
    news = announce(step, group, before, after)
    step.cancel(TimerKey(TimerKind.CONSUMER_JOIN, group.group_id, after.member_id))
    changed = news.subscription_changed
    if replaced is not None and can_downgrade_by_replacing(step, group, replaced):
        # The last member of the consumer protocol came back as a classic one. A static member's bounce must
        # not cost a rebalance (SM-26), so the group turns classic as it stands, unless a target is still due.
        behind = group.assignment_epoch < news.epoch
        if not behind:
            target = Target(group.assignment_epoch, stored_target(group, after))
            after = move(step, group, after, target, owned, subscription_changed=changed)
        downgrade_by_replacing(step, group, replaced, after, rebalance=behind)
        return after, False
    target = update_target(step, group, news.epoch, before, after, homogeneous=news.homogeneous)
    after = move(step, group, after, target, owned, subscription_changed=changed)
    renew_session(step, group, after)
    return after, True


def sync(step: Step, group: ConsumerGroup, request: SyncGroupRequest) -> SyncGroupResponse:
    """Answer with what the member is assigned now, in the encoding of its subscription's version."""
    member, classic = _classic_member(group, request.member_id, request.group_instance_id)
    _refuse_generation(member, request.generation_id)
    # The protocol in the answer to its join: its own first one, as no vote is held here.
    name = classic.supported_protocols[0].name
    if request.protocol_type not in (None, PROTOCOL_TYPE) or request.protocol_name not in (None, name):
        raise Refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    revoking = member.current.state is MemberState.UNREVOKED_PARTITIONS
    # There is a newer target, so this assignment is already outdated. A member that must revoke first still
    # gets it, because it has to learn what is left.
    if group.assignment_epoch > member.epoch and not revoking:
        # An answer, not a refusal: the time to rejoin runs from here.
        _await_rejoin(step, group, member)
        return SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    step.cancel(TimerKey(TimerKind.CONSUMER_SYNC, group.group_id, member.member_id))
    renew_session(step, group, member)
    # By names, as the classic protocol knows no ids; a deleted topic is omitted. In the version of its own
    # subscription, because a client can read no later one. User data only its leader could add.
    image = step.state.image
    partitions = tuple(
        TopicPartition(topic, number)
        for topic_id, numbers in member.current.assigned.items()
        if (topic := image.name_of(topic_id)) is not None
        for number in sorted(numbers)
    )
    version = version_of(classic.supported_protocols[0].metadata)
    return SyncGroupResponse(
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignment=Assignment(partitions).encode(version),
    )


def heartbeat(step: Step, group: ConsumerGroup, request: HeartbeatRequest) -> HeartbeatResponse:
    """Keep the session alive; REBALANCE_IN_PROGRESS when a new join would bring the member further."""
    member, _ = _classic_member(group, request.member_id, request.group_instance_id)
    _refuse_generation(member, request.generation_id)
    renew_session(step, group, member)
    # A newer group epoch alone is no reason: until its target is computed a join would change nothing.
    match member.current.state:
        case _ if member.epoch < group.assignment_epoch:
            must_rejoin = True
        # Its next join reports what it has revoked: no heartbeat of its own could.
        case MemberState.UNREVOKED_PARTITIONS:
            must_rejoin = True
        case MemberState.UNRELEASED_PARTITIONS:
            # A join now would be in vain, as others still own all that it waits for.
            must_rejoin = not _waits_for_others(group, member)
        case _:
            must_rejoin = False
    if not must_rejoin:
        return ALIVE
    _await_rejoin(step, group, member)
    return REBALANCING


def leave(step: Step, group: ConsumerGroup, leavers: tuple[MemberIdentity, ...]) -> LeaveGroupResponse:
    """Remove members of either protocol; bump the group epoch once for all."""
    gone: dict[str, ConsumerMember] = {}
    results = []
    for leaver in leavers:
        code = ErrorCode.NONE
        try:
            member = _leaver(group, leaver)
            gone[member.member_id] = member
        except Refused as refused:
            code = refused.code
        results.append(
            MemberResponse(
                member_id=leaver.member_id, group_instance_id=leaver.group_instance_id, error_code=code
            )
        )
    fence(step, group, gone.values())
    return LeaveGroupResponse(members=tuple(results))


def _leaver(group: ConsumerGroup, leaver: MemberIdentity) -> ConsumerMember:
    member_id, instance_id = leaver.member_id, leaver.group_instance_id
    # The instance alone, as an admin names it (SM-53), or both, which must belong together (SM-54).
    if instance_id is not None:
        member_id = member_id or group.static.get(instance_id, "")
        refuse_if_not_holder(group, member_id, instance_id)
    member = group.members.get(member_id)
    if member is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
    return member


def _member(step: Step, group: ConsumerGroup, request: JoinGroupRequest, member_id: str) -> ConsumerMember:
    """Return the member before this join; a static one without member id takes its old place over."""
    instance_id = request.group_instance_id
    if instance_id is not None:
        holder = group.members.get(group.static.get(instance_id, ""))
        if request.member_id:
            refuse_if_not_holder(group, member_id, instance_id)
        # Even from a member that is alive: the classic protocol fences the earlier one (KIP-345; SM-33).
        elif holder is not None:
            return take_place(step, group, holder, member_id)
    return group.members.get(member_id) or new_member(member_id)


def _metadata(
    step: Step, before: ConsumerMember, request: JoinGroupRequest, subscription: Subscription
) -> ConsumerGroupMemberMetadataValue:
    known = before.metadata
    rebalance_ms = rebalance_timeout(request, step.version)
    # Kafka reads -1 as in a heartbeat here: the timeout is unchanged.
    if rebalance_ms == UNCHANGED_TIMEOUT:
        rebalance_ms = known.rebalance_timeout_ms
    return ConsumerGroupMemberMetadataValue(
        instance_id=known.instance_id if request.group_instance_id is None else request.group_instance_id,
        rack_id=subscription.rack or known.rack_id,
        client_id=step.client_id,
        client_host=step.client_host,
        subscribed_topic_names=tuple(sorted(set(subscription.topics))),
        subscribed_topic_regex="",
        rebalance_timeout_ms=rebalance_ms,
        server_assignor=known.server_assignor,
        classic_member_metadata=ClassicMemberMetadata(
            session_timeout_ms=request.session_timeout_ms,
            supported_protocols=tuple(
                ClassicProtocol(name=p.name, metadata=p.metadata) for p in request.protocols
            ),
        ),
    )


def _classic_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None
) -> tuple[ConsumerMember, ClassicMemberMetadata]:
    if instance_id is not None:
        refuse_if_not_holder(group, member_id, instance_id)
    member = group.members.get(member_id)
    classic = None if member is None else member.metadata.classic_member_metadata
    if member is None or classic is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
    return member, classic


def _refuse_generation(member: ConsumerMember, generation: int) -> None:
    if generation != member.epoch:
        raise Refused(ErrorCode.ILLEGAL_GENERATION)


def _await_rejoin(step: Step, group: ConsumerGroup, member: ConsumerMember) -> None:
    """Give the member its rebalance timeout to rejoin, unless the time is running already."""
    key = TimerKey(TimerKind.CONSUMER_JOIN, group.group_id, member.member_id)
    if not step.is_armed(key):
        step.arm(key, member.metadata.rebalance_timeout_ms)


def _waits_for_others(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Return whether a partition of the member's target still has another owner."""
    assigned = member.current.assigned
    return any(
        number not in assigned.get(topic_id, {}) and group.owner_epoch(topic_id, number) != NO_EPOCH
        for topic_id, numbers in group.target_of(member.member_id).items()
        for number in numbers
    )


def _owned(image: TopicImage, subscription: Subscription) -> Owned:
    """Return what the member reports to own: nothing in version 0, or if eager (it revoked all to join)."""
    owned: dict[bytes, set[int]] = {}
    for partition in subscription.owned:
        topic_id = image.id_of(partition.topic)
        if topic_id is not None:
            owned.setdefault(topic_id, set()).add(partition.partition)
    return {topic_id: frozenset(numbers) for topic_id, numbers in owned.items()}
