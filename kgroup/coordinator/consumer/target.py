"""The target assignment of a consumer group: when and by what it is computed, what is written (KIP-848)."""

from __future__ import annotations

from typing import NamedTuple

from kgroup.coordinator.assignors.interface import NOTHING, Assignment, AssignorError, GroupSpec, MemberSpec
from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.consumer.member import ConsumerMember
from kgroup.coordinator.consumer.roster import awaits_others, only_active
from kgroup.coordinator.records import write_target, write_target_epoch
from kgroup.coordinator.state import Step
from kgroup.domain import Topic
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.releases import Change


class Target(NamedTuple):
    """One member's target, and the epoch it is of."""

    epoch: int
    partitions: Assignment


def update_target(
    step: Step,
    group: ConsumerGroup,
    group_epoch: int,
    before: ConsumerMember,
    after: ConsumerMember,
    *,
    homogeneous: bool,
) -> Target:
    """Return the member's target; compute and write all when behind `group_epoch` and the time has come.

    Within the assignment interval of the last computation the old target stays in force.
    """
    # Many joins within an interval cost one computation (KIP-848's assignment batching): early ones reconcile
    # towards the old target, and the next heartbeat after the interval computes. No timer does: a group
    # without heartbeats has no member to answer.
    behind = group.assignment_epoch < group_epoch
    # An early join is held as any other: a later check would not know that it was one.
    if not behind or awaits_others(step, group, group_epoch, after) or not may_compute(step, group):
        return Target(group.assignment_epoch, stored_target(group, after))
    targets = _compute(step, group, group_epoch, before, after, homogeneous)
    for member_id, partitions in targets.items():
        stored = (
            _written(step, group, after) if member_id == after.member_id else group.targets.get(member_id)
        )
        # None is not the same as nothing: a new member gets a record even of no partitions.
        if stored is not partitions and stored != partitions:
            write_target(step, group, member_id, partitions)
    write_target_epoch(step, group, group_epoch, step.now_ms)
    return Target(group_epoch, targets[after.member_id])


def _written(step: Step, group: ConsumerGroup, member: ConsumerMember) -> Assignment | None:
    """Return the member's target in the log; since Kafka 4.4 a static member's by its instance id."""
    if member.instance_id is not None and step.config.kafka.has(Change.TARGETS_MOVE):
        holder = group.static.get(member.instance_id, member.member_id)
        return group.targets.get(holder, group.targets.get(member.member_id))
    return group.targets.get(member.member_id)


def stored_target(group: ConsumerGroup, member: ConsumerMember) -> Assignment:
    """Return the target in force for the member; a static one inherits that of its instance id."""
    if member.member_id not in group.targets and member.instance_id is not None:
        return group.target_of(group.static.get(member.instance_id, member.member_id))
    return group.target_of(member.member_id)


def may_compute(step: Step, group: ConsumerGroup) -> bool:
    """Return whether the assignment interval since the last computation is over."""
    interval = step.state.config_of(group.group_id).assignment_interval_ms
    return step.is_due(group.assignment_timestamp_ms, interval)


def _compute(
    step: Step,
    group: ConsumerGroup,
    epoch: int,
    before: ConsumerMember,
    after: ConsumerMember,
    homogeneous: bool,
) -> dict[str, Assignment]:
    name = preferred(group, before, after) or step.config.consumer_assignors[0]
    spec = group_spec(step, group, after, homogeneous)
    try:
        targets = step.state.assignors[name].assign(only_active(step, group, spec))
    except AssignorError as error:
        # The old target stays (CP-47): nothing of this heartbeat is written, and the next one retries. That
        # one refreshes the topics even if it changes nothing, because its epoch was never written.
        group.refresh_epoch = epoch
        message = f"Failed to compute a new target assignment for epoch {epoch}: {error}"
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, message) from None
    standbys = dict.fromkeys(spec.members.keys() - targets.keys(), NOTHING)
    return targets | standbys if standbys else targets


def preferred(group: ConsumerGroup, before: ConsumerMember, after: ConsumerMember) -> str | None:
    """Return the assignor that most members ask for, once `after` has replaced `before`."""
    votes = group.by_assignor.copy()
    votes.subtract(filter(None, (before.metadata.server_assignor,)))
    votes.update(filter(None, (after.metadata.server_assignor,)))
    return max(+votes, key=lambda name: votes[name], default=None)


def group_spec(step: Step, group: ConsumerGroup, after: ConsumerMember, homogeneous: bool) -> GroupSpec:
    """Return the group as an assignor sees it, with `after` in the place of its old state."""
    members = dict(group.members)
    replaced = group.static.get(after.instance_id) if after.instance_id is not None else None
    if replaced is not None:
        members.pop(replaced, None)
    members[after.member_id] = after
    by_name = step.state.image.by_name
    topics: dict[bytes, Topic] = {}
    alike: dict[tuple[tuple[str, ...], str | None], frozenset[bytes]] = {}
    specs: dict[str, MemberSpec] = {}
    for member_id, member in members.items():
        subscription = (member.names, member.regex)
        ids = alike.get(subscription)
        if ids is None:
            subscribed = [by_name[name] for name in group.topics_of(member) if name in by_name]
            topics.update((topic.topic_id, topic) for topic in subscribed)
            ids = alike[subscription] = frozenset(topic.topic_id for topic in subscribed)
        metadata = member.metadata
        specs[member_id] = MemberSpec(
            ids, stored_target(group, member), metadata.instance_id, metadata.rack_id
        )
    return GroupSpec(specs, topics, homogeneous)
