"""What a heartbeat or a join does to a consumer group: announce, compute targets, move the member one step.

Members of both protocols go through here, as the join of a classic member is its heartbeat (KIP-848). The
callers decide which member it is and how it is answered: `consumer.heartbeat`, `migration.classic_members`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from kgroup.coordinator.consumer import client_assignor
from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.consumer.member import ConsumerMember, Current, MemberState
from kgroup.coordinator.consumer.reconcile import Goal, Owned, reconcile
from kgroup.coordinator.consumer.subscription import (
    RegexChange,
    Subscriptions,
    refresh,
    update_regex,
)
from kgroup.coordinator.consumer.target import Target, preferred, stored_target, update_target
from kgroup.coordinator.member_timers import limit_revocation
from kgroup.coordinator.records import replace_member, write_current, write_metadata
from kgroup.coordinator.state import Step
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.releases import Change


class News(NamedTuple):
    """The result of a member's announcement: the group epoch, and the present subscriptions."""

    epoch: int
    homogeneous: bool
    subscription_changed: bool


def advance(
    step: Step, group: ConsumerGroup, before: ConsumerMember, after: ConsumerMember, owned: Owned | None
) -> tuple[ConsumerMember, int]:
    """Apply what the member reports of itself, compute targets when due, and move it one step.

    Return the member as it is then, and the group epoch.
    """
    news = announce(step, group, before, after)
    if client_assignor.in_use(step, group, news.epoch, after):
        # A member computes (CP-29): until it installs its result, all members move towards the old target.
        target = Target(group.assignment_epoch, stored_target(group, after))
    else:
        target = update_target(step, group, news.epoch, before, after, homogeneous=news.homogeneous)
    after = move(step, group, after, target, owned, subscription_changed=news.subscription_changed)
    return after, news.epoch


def announce(step: Step, group: ConsumerGroup, before: ConsumerMember, after: ConsumerMember) -> News:
    """Write what the member reports, and bump the group epoch if subscriptions or topics changed."""
    # A static member that takes a place over is not in the group under its new id, but already has its record
    # 5: `take_place` has written it in this batch.
    known = before.member_id in group.members or before.instance_id is not None
    said = after.metadata is not before.metadata
    if (said and after.metadata != before.metadata) or not known:
        write_metadata(step, group, after)
    names_changed = said and set(before.names) != set(after.names)
    offers_changed = said and before.metadata.client_assignors != after.metadata.client_assignors
    regex = update_regex(step, group, before, after)
    changed = names_changed or regex is not RegexChange.NONE
    # An unresolved pattern names no topic. The bump comes with its resolution; one now would compute a target
    # twice. A classic member's join clears the pattern for good and bumps at once.
    bump = changed if after.is_classic else names_changed or regex is RegexChange.UPDATED_AND_RESOLVED
    subscriptions = Subscriptions.with_change(group, before, after)
    epoch = group.epoch
    # What an assignor reads of a member counts as a change (CP-40); rack, client id and host do not (CP-25).
    bump = bump or (offers_changed and step.config.client_assignors)
    bump = bump or _votes_changed(step, group, before, after)
    if bump or group.topics_expired(step.now_ms):
        epoch = refresh(step, group, subscriptions, bump=bump)
    return News(epoch, subscriptions.homogeneous(), changed)


def _votes_changed(step: Step, group: ConsumerGroup, before: ConsumerMember, after: ConsumerMember) -> bool:
    if after.is_classic or not step.config.kafka.has(Change.ASSIGNOR_VOTES_BUMP):
        return False
    default = step.config.consumer_assignors[0]
    return (preferred(group, before, before) or default) != (preferred(group, before, after) or default)


def move(
    step: Step,
    group: ConsumerGroup,
    member: ConsumerMember,
    target: Target,
    owned: Owned | None,
    *,
    subscription_changed: bool,
) -> ConsumerMember:
    """Move the member one step towards its target, and write its new state."""
    moved = _reconcile(step, group, member, target, owned, subscription_changed)
    if moved == member.current:
        return member
    member = replace(member, current=moved)
    write_current(step, group, member)
    # Only a step touches the limit: if each heartbeat renewed it, a member that sends heartbeats but never
    # revokes would keep its partitions for ever (CP-17). A classic member's own join timer limits it instead.
    if not member.is_classic:
        limit_revocation(step, group, member)
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
    # Nearly every heartbeat ends here: the rest costs as much as the group has topics.
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


def take_place(step: Step, group: ConsumerGroup, holder: ConsumerMember, member_id: str) -> ConsumerMember:
    """Give a static member's place, with its partitions and target, to a new member id.

    Epoch 0 makes it reconcile at once; its partitions keep their assignment epochs, so that what the
    old process committed stays acceptable from the new one (AE-25).
    """
    current = replace(holder.current, epoch=0, previous_epoch=0)
    member = ConsumerMember(member_id, holder.metadata, current)
    replace_member(step, group, holder, member)
    return member


def refuse_if_full(step: Step, group: ConsumerGroup, member_id: str, instance_id: str | None) -> None:
    """Raise GROUP_MAX_SIZE_REACHED for a member id that is new to a full group.

    Before Kafka 4.4 a static member that rejoins under a new id counts as new, though it adds no member.
    """
    if instance_id in group.static and step.config.kafka.has(Change.RETURNS_IN_FULL_GROUPS):
        return
    if len(group.members) >= step.config.consumer_max_size and member_id not in group.members:
        raise Refused(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            "The consumer group has reached its maximum capacity of "
            f"{step.config.consumer_max_size} members.",
        )
