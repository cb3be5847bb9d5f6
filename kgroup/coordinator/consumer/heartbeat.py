"""ConsumerGroupHeartbeat: join, stay, change and reconcile in one request (KIP-848)."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from kgroup.coordinator.consumer import client_assignor
from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.consumer.leave import leave, refuse_if_not_holder
from kgroup.coordinator.consumer.member import (
    LEFT_EPOCH,
    ConsumerMember,
    Current,
    Epochs,
    MemberState,
    no_metadata,
)
from kgroup.coordinator.consumer.reconcile import Goal, Owned, reconcile
from kgroup.coordinator.consumer.records import replace_member, write_current, write_metadata
from kgroup.coordinator.consumer.settings import heartbeat_interval_ms
from kgroup.coordinator.consumer.subscription import (
    RegexChange,
    Subscriptions,
    metadata_expired,
    refresh,
    update_regex,
)
from kgroup.coordinator.consumer.target import Target, stored_target, update_target
from kgroup.coordinator.consumer.timers import limit_revocation, renew_session
from kgroup.coordinator.consumer.validation import validate
from kgroup.coordinator.migration.upgrade import group_to_join, group_to_leave
from kgroup.coordinator.state import Step
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.group_records import ConsumerGroupMemberMetadataValue
from kgroup.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

Request = ConsumerGroupHeartbeatRequest
NOT_GIVEN = -1


def heartbeat(step: Step, request: Request) -> ConsumerGroupHeartbeatResponse:
    """Carry out a heartbeat; the response has the member's epoch and, when it changed, its assignment."""
    validate(step, request)
    joins = request.member_epoch == 0
    if request.member_epoch < 0:
        return leave(step, group_to_leave(step, request.group_id), request)
    group = group_to_join(step, request.group_id, request.member_id, joins=joins)
    refuse_if_full(step, group, request.member_id)
    owned = _owned(request)
    before = _member(step, group, request, owned)
    after = replace(before, metadata=_metadata(step, before, request))
    client_assignor.refuse_if_no_overlap(step, group, after)
    after, epoch = advance(step, group, before, after, owned)
    renew_session(step, group.group_id, after)
    response = ConsumerGroupHeartbeatResponse(
        member_id=after.member_id,
        member_epoch=after.epoch,
        heartbeat_interval_ms=heartbeat_interval_ms(step.state, group.group_id),
    )
    assigned_anew = after.current.assigned != before.current.assigned
    if joins or assigned_anew or _is_full(request):
        response.assignment = _assignment(after.current.assigned)  # type: ignore[misc]
    if step.config.client_assignors:
        _add_client_side(step, group, after, epoch, response)
    return response


def _add_client_side(
    step: Step,
    group: ConsumerGroup,
    member: ConsumerMember,
    epoch: int,
    response: ConsumerGroupHeartbeatResponse,
) -> None:
    """What only client-side assignors need in the answer: who computes, and what the assignor says."""
    if client_assignor.in_use(step, group, epoch, member):
        shall = client_assignor.shall_compute(step, group, member)
        response.should_compute_assignment = shall  # type: ignore[misc]
    said = group.assignor_says.get(member.member_id)
    if said is None or (response.assignment is None and member.epoch == group.told.get(member.member_id)):
        return
    group.told[member.member_id] = member.epoch
    assigned = response.assignment or _assignment(member.current.assigned)
    response.assignment = Assignment(  # type: ignore[misc]
        topic_partitions=assigned.topic_partitions,
        error=said.error,
        pending_topic_partitions=_pending(group, member),
        metadata_version=said.metadata_version,
        metadata_bytes=said.metadata_bytes,
    )


def _pending(group: ConsumerGroup, member: ConsumerMember) -> tuple[TopicPartitions, ...]:
    """Partitions of the member's target that others have not let go of yet (CP-19)."""
    assigned = member.current.assigned
    pending = {
        topic_id: tuple(n for n in numbers if n not in assigned.get(topic_id, {}))
        for topic_id, numbers in group.target_of(member.member_id).items()
    }
    return tuple(TopicPartitions(topic_id=t, partitions=n) for t, n in pending.items() if n)


def advance(
    step: Step, group: ConsumerGroup, before: ConsumerMember, after: ConsumerMember, owned: Owned | None
) -> tuple[ConsumerMember, int]:
    """Take over what the member says of itself, compute targets when due, and move it one step.

    Returns the member as it is then, and the group epoch.
    """
    news = announce(step, group, before, after)
    if client_assignor.in_use(step, group, news.epoch, after):
        target = Target(group.assignment_epoch, stored_target(group, after))
    else:
        target = update_target(step, group, news.epoch, before, after, homogeneous=news.homogeneous)
    after = move(step, group, after, target, owned, subscription_changed=news.subscription_changed)
    return after, news.epoch


class News(NamedTuple):
    """What came of a member's announcement: the group epoch, and what the subscriptions are now."""

    epoch: int
    homogeneous: bool
    subscription_changed: bool


def announce(step: Step, group: ConsumerGroup, before: ConsumerMember, after: ConsumerMember) -> News:
    """Write what the member says of itself, and bump the group epoch when subscriptions or topics changed."""
    known = before.member_id in group.members or before.instance_id is not None
    if after.metadata != before.metadata or not known:
        write_metadata(step, group.group_id, after)
    names_changed = set(before.names) != set(after.names)
    offers_changed = before.metadata.client_assignors != after.metadata.client_assignors
    regex = update_regex(step, group, before, after)
    changed = names_changed or regex is not RegexChange.NONE
    bump = changed if after.is_classic else names_changed or regex is RegexChange.UPDATED_AND_RESOLVED
    subscriptions = Subscriptions.with_change(group, before, after)
    epoch = group.epoch
    bump = bump or (offers_changed and step.config.client_assignors)
    if bump or metadata_expired(step, group):
        epoch = refresh(step, group, subscriptions, bump=bump)
    return News(epoch, subscriptions.homogeneous(), changed)


def move(
    step: Step,
    group: ConsumerGroup,
    member: ConsumerMember,
    target: Target,
    owned: Owned | None,
    *,
    subscription_changed: bool,
) -> ConsumerMember:
    """Move the member one step towards its target, and write where it is then."""
    moved = _reconcile(step, group, member, target, owned, subscription_changed)
    if moved == member.current:
        return member
    member = replace(member, current=moved)
    write_current(step, group.group_id, member)
    if not member.is_classic:
        limit_revocation(step, group.group_id, member)
    return member


def _reconcile(
    step: Step,
    group: ConsumerGroup,
    member: ConsumerMember,
    target: Target,
    owned: Owned | None,
    subscription_changed: bool,
) -> Current:
    current = member.current
    stable = current.state is MemberState.STABLE
    if stable and current.epoch == target.epoch and not subscription_changed:
        return current
    by_name, names = step.state.image.by_name, group.topics_of(member)
    subscribed = {topic.topic_id for name in names if (topic := by_name.get(name)) is not None}
    goal = Goal(
        target.epoch,
        target.partitions,
        subscribed,
        owned,
        subscription_changed,
        group.owner_epoch,
        names_nothing=not names,
    )
    return reconcile(current, goal)


def refuse_if_full(step: Step, group: ConsumerGroup, member_id: str) -> None:
    """GROUP_MAX_SIZE_REACHED for a member id that is new to a full group."""
    if len(group.members) >= step.config.consumer_max_size and member_id not in group.members:
        raise Refused(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            "The consumer group has reached its maximum capacity of "
            f"{step.config.consumer_max_size} members.",
        )


def _member(step: Step, group: ConsumerGroup, request: Request, owned: Owned | None) -> ConsumerMember:
    """The member the heartbeat is of, as it is before it; refused unless its ids and epoch are right."""
    joins = request.member_epoch == 0
    member_id = request.member_id or step.state.ids.consumer_member()
    if request.instance_id is not None and joins:
        return _join_static(step, group, member_id, request.instance_id)
    if request.instance_id is not None:
        refuse_if_not_holder(group, member_id, request.instance_id)
    member = group.members.get(member_id)
    if member is None:
        if not joins:
            raise Refused(
                ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.group_id}."
            )
        return ConsumerMember(member_id, no_metadata())
    _refuse_epoch(member, request.member_epoch, owned)
    return member


def _join_static(step: Step, group: ConsumerGroup, member_id: str, instance_id: str) -> ConsumerMember:
    holder = group.members.get(group.static.get(instance_id, ""))
    if holder is None:
        return group.members.get(member_id) or ConsumerMember(member_id, no_metadata())
    if not holder.is_classic and holder.epoch != LEFT_EPOCH:
        raise Refused(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group because the "
            f"instance id is owned by {holder.member_id} member.",
        )
    return take_place(step, group, holder, member_id)


def take_place(step: Step, group: ConsumerGroup, holder: ConsumerMember, member_id: str) -> ConsumerMember:
    """Give a static member's place, with its partitions and target, to a new member id."""
    current = replace(holder.current, epoch=0, previous_epoch=0)
    member = ConsumerMember(member_id, holder.metadata, current)
    replace_member(step, group.group_id, holder, member, group.target_of(holder.member_id))
    return member


def _refuse_epoch(member: ConsumerMember, epoch: int, owned: Owned | None) -> None:
    """FENCED_MEMBER_EPOCH unless the epoch is the member's, 0, or that of a response which got lost."""
    if epoch in (0, member.epoch):
        return
    current = member.current
    if epoch > current.epoch:
        raise Refused(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The consumer group member has a greater member epoch ({epoch}) than the one known by the group "
            f"coordinator ({current.epoch}). The member must abandon all its partitions and rejoin.",
        )
    if epoch == current.previous_epoch and owned is not None and _all_assigned(owned, current.assigned):
        return
    raise Refused(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a smaller member epoch ({epoch}) than the one known by the group "
        f"coordinator ({current.epoch}). The member must abandon all its partitions and rejoin.",
    )


def _all_assigned(owned: Owned, assigned: Epochs) -> bool:
    return all(partitions <= assigned.get(topic, {}).keys() for topic, partitions in owned.items())


def _metadata(step: Step, before: ConsumerMember, request: Request) -> ConsumerGroupMemberMetadataValue:
    known, names = before.metadata, request.subscribed_topic_names
    return ConsumerGroupMemberMetadataValue(
        instance_id=known.instance_id if request.instance_id is None else request.instance_id,
        rack_id=known.rack_id if request.rack_id is None else request.rack_id,
        client_id=step.client_id,
        client_host=step.client_host,
        subscribed_topic_names=known.subscribed_topic_names if names is None else tuple(sorted(set(names))),
        subscribed_topic_regex=(
            known.subscribed_topic_regex
            if request.subscribed_topic_regex is None
            else request.subscribed_topic_regex
        ),
        rebalance_timeout_ms=(
            known.rebalance_timeout_ms
            if request.rebalance_timeout_ms == NOT_GIVEN
            else request.rebalance_timeout_ms
        ),
        server_assignor=known.server_assignor if request.server_assignor is None else request.server_assignor,
        classic_member_metadata=None,
        client_assignors=(
            known.client_assignors
            if request.client_assignors is None or not step.config.client_assignors
            else client_assignor.recorded(request.client_assignors)
        ),
    )


def _owned(request: Request) -> Owned | None:
    if request.topic_partitions is None:
        return None
    return {t.topic_id: frozenset(t.partitions) for t in request.topic_partitions}


def _is_full(request: Request) -> bool:
    subscribes = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    return request.rebalance_timeout_ms != NOT_GIVEN and subscribes and request.topic_partitions is not None


def _assignment(assigned: Epochs) -> Assignment:
    return Assignment(
        topic_partitions=tuple(
            TopicPartitions(topic_id=topic_id, partitions=tuple(sorted(numbers)))
            for topic_id, numbers in assigned.items()
        )
    )
