"""ShareGroupHeartbeat: join, change, be assigned and leave in one request (KIP-932).

A group that a joining heartbeat makes exists for that step only: replaying its records makes another.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from kgroup.coordinator.member_timers import cancel_all, renew_session
from kgroup.coordinator.records import (
    remove_member,
    write_current,
    write_epoch,
    write_metadata,
    write_target,
    write_target_epoch,
)
from kgroup.coordinator.share import state_partitions
from kgroup.coordinator.share.group import ShareGroup
from kgroup.coordinator.share.member import Current, Partitions, ShareMember, listed, new_member
from kgroup.coordinator.share.simple import Reader, assign
from kgroup.coordinator.share.validation import LEFT_EPOCH, check_share_heartbeat
from kgroup.coordinator.state import Step
from kgroup.coordinator.topic_hashes import hash_of
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.messages.share_group_heartbeat import (
    Assignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from kgroup.protocol.releases import Change
from kgroup.protocol.share_records import ShareGroupMemberMetadataValue

Request = ShareGroupHeartbeatRequest
Response = ShareGroupHeartbeatResponse


def heartbeat(step: Step, request: Request) -> Response:
    """Carry out a heartbeat of a member that joins (epoch 0), stays (above), or leaves (-1).

    State that the share coordinator is to initialize is left in `State.to_initialize`.
    """
    check_share_heartbeat(request)
    group = _group(step, request)
    if request.member_epoch == LEFT_EPOCH:
        fence(step, group, _member(group, request))
        return Response(member_id=request.member_id, member_epoch=request.member_epoch)
    return _stay(step, group, request)


def fence(step: Step, group: ShareGroup, member: ShareMember) -> None:
    """Remove the member and bump the group epoch; the next heartbeat of another computes the target."""
    remove_member(step, group, member.member_id)
    others = (other for other in group.members.values() if other.member_id != member.member_id)
    epoch = group.epoch + 1
    write_epoch(step, group, epoch, hash_of(step.state, {name for other in others for name in other.names}))
    if len(group.members) == 1 and step.config.kafka.has(Change.EMPTIED_TARGETS):
        write_target_epoch(step, group, epoch, 0)
    cancel_all(step, group, member.member_id)


class Looked(NamedTuple):
    """The topics that the group subscribes to, by how many members, and the group epoch for that."""

    subscribers: Counter[str]
    epoch: int
    bumped: bool


def _stay(step: Step, group: ShareGroup, request: Request) -> Response:
    joins = request.member_epoch == 0
    most = step.config.share_max_size
    if len(group.members) >= most and request.member_id not in group.members:
        raise Refused(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The share group has reached its maximum capacity of {most} members.",
        )
    before = _member(group, request)
    _refuse_epoch(before, request.member_epoch)
    after = replace(before, metadata=_metadata(step, before.metadata, request))
    is_new = before.member_id not in group.members
    if is_new or after.metadata != before.metadata:
        write_metadata(step, group, after)
    looked = _look(step, group, before, after)
    target = _target(step, group, looked, after)
    after = _reconcile(step, group, after, target, bumped=looked.bumped)
    renew_session(step, group, after)
    missing = state_partitions.missing(step, group, sorted(looked.subscribers))
    if missing:
        asked = state_partitions.start(step, group, looked.epoch, missing)
        step.defer(partial(step.state.to_initialize.__setitem__, group.group_id, asked))
    # A client that reports all of itself has lost an answer and asks for all of its state.
    full = joins or request.subscribed_topic_names is not None
    sent = full or after.current.assigned != before.current.assigned
    return Response(
        member_id=after.member_id,
        member_epoch=after.epoch,
        heartbeat_interval_ms=step.state.config_of(group.group_id).share_heartbeat_interval_ms,
        assignment=Assignment(topic_partitions=listed(after.current.assigned)) if sent else None,
    )


def _group(step: Step, request: Request) -> ShareGroup:
    """Return the group, or the one that a joining member makes; no other type turns into one."""
    group_id = request.group_id
    group = step.state.groups.get(group_id)
    if isinstance(group, ShareGroup):
        return group
    if group is not None:
        raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")
    if request.member_epoch != 0:
        kind = "Group" if request.member_epoch == LEFT_EPOCH else "Share group"
        raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"{kind} {group_id} not found.")
    return ShareGroup(group_id)


def _member(group: ShareGroup, request: Request) -> ShareMember:
    member = group.members.get(request.member_id)
    if member is not None:
        return member
    if request.member_epoch != 0:
        raise Refused(
            ErrorCode.UNKNOWN_MEMBER_ID,
            f"Member {request.member_id} is not a member of group {group.group_id}.",
        )
    return new_member(request.member_id)


def _refuse_epoch(member: ShareMember, epoch: int) -> None:
    """Raise FENCED_MEMBER_EPOCH unless the epoch is the member's, 0, or that of a lost response.

    Unlike a consumer's, a member with a lost response has nothing that others wait for.
    """
    if epoch in (0, member.epoch) or (epoch < member.epoch and epoch == member.current.previous_epoch):
        return
    if epoch > member.epoch:
        raise Refused(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The share group member has a greater member epoch ({epoch}) than the one known by the group "
            f"coordinator ({member.epoch}). The member must abandon all its partitions and rejoin.",
        )
    raise Refused(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The share group member has a smaller member epoch ({epoch}) than the one known by the group "
        f"coordinator ({member.epoch}), and it does not match the previous member epoch "
        f"({member.current.previous_epoch}). The member must abandon all its partitions and rejoin.",
    )


def _metadata(
    step: Step, before: ShareGroupMemberMetadataValue, request: Request
) -> ShareGroupMemberMetadataValue:
    """Return the member's record 10 with this heartbeat; a null field is unchanged."""
    names = request.subscribed_topic_names
    return ShareGroupMemberMetadataValue(
        rack_id=before.rack_id if request.rack_id is None else request.rack_id,
        client_id=step.client_id,
        client_host=step.client_host,
        subscribed_topic_names=before.subscribed_topic_names if names is None else tuple(sorted(set(names))),
    )


def _look(step: Step, group: ShareGroup, before: ShareMember, after: ShareMember) -> Looked:
    """Refresh the topics if they may have changed; bump the group epoch if what is to be assigned did."""
    bump = after.names != before.names
    if group.assignment_epoch >= group.epoch:
        bump = bump or _has_unassigned(group)
    if not bump and not group.topics_expired(step.now_ms):
        return Looked(Counter(group.subscribers_with(before)), group.epoch, False)
    subscribers = group.subscribers_with(after)
    metadata_hash = hash_of(step.state, subscribers)
    bump = bump or metadata_hash != group.metadata_hash
    epoch = group.epoch + bump
    if bump:
        write_epoch(step, group, epoch, metadata_hash)
        step.state.counters.share_group_rebalance += 1
    # At once and not deferred: Kafka keeps what it found even if it then refuses the heartbeat.
    group.topics_refreshed(step.now_ms, epoch)
    return Looked(subscribers, epoch, bump)


def _has_unassigned(group: ShareGroup) -> bool:
    """Return whether a subscribed topic's initialized partitions differ from the assigned ones."""
    if group.kept is None:
        return False
    subscribed = group.subscribed_topics()
    assigned: dict[bytes, set[int]] = {}
    for target in group.targets.values():
        for topic_id, numbers in target.items():
            assigned.setdefault(topic_id, set()).update(numbers)
    return any(
        topic.topic_name in subscribed and assigned.get(topic.topic_id) != set(topic.partitions)
        for topic in group.kept.initialized_topics
    )


@dataclass(frozen=True, slots=True)
class Target:
    """One member's target, and its epoch."""

    epoch: int
    partitions: Partitions


def _target(step: Step, group: ShareGroup, looked: Looked, member: ShareMember) -> Target:
    """Return the member's target; compute and write all when behind the group epoch and the time has come."""
    stored = Target(group.assignment_epoch, group.target_of(member.member_id))
    if group.assignment_epoch >= looked.epoch:
        return stored
    interval = step.state.config_of(group.group_id).share_assignment_interval_ms
    if not step.is_due(group.assignment_timestamp_ms, interval):
        return stored
    by_name = step.state.image.by_name
    members = {**group.members, member.member_id: member}
    readers = {
        member_id: Reader(
            {name: by_name[name].topic_id for name in subscriber.names if name in by_name},
            group.target_of(member_id),
        )
        for member_id, subscriber in members.items()
    }
    kept = state_partitions.kept_of(group)
    assignable = {topic.topic_id: topic.partitions for topic in kept.initialized_topics}
    alike = all(count == len(members) for count in looked.subscribers.values())
    targets = assign(readers, assignable, homogeneous=alike)
    for member_id, partitions in targets.items():
        known = group.targets.get(member_id)
        # None is not the same as nothing: a new member gets a record even of no partitions.
        if known is None or known != partitions:
            write_target(step, group, member_id, partitions)
    write_target_epoch(step, group, looked.epoch, step.now_ms)
    return Target(looked.epoch, targets[member.member_id])


def _reconcile(
    step: Step, group: ShareGroup, member: ShareMember, target: Target, *, bumped: bool
) -> ShareMember:
    """Take the member to its target, without topics it does not subscribe to."""
    if not bumped and member.epoch == target.epoch:
        return member
    subscribed = {topic.topic_id for name in member.names if (topic := step.state.image.by_name.get(name))}
    assigned = {t: numbers for t, numbers in target.partitions.items() if t in subscribed}
    previous = member.current.previous_epoch if target.epoch == member.epoch else member.epoch
    moved = Current(target.epoch, previous, assigned)
    if moved == member.current:
        return member
    member = replace(member, current=moved)
    write_current(step, group, member)
    return member
