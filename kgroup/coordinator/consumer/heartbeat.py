"""ConsumerGroupHeartbeat of a member that joins or stays: it changes and reconciles in one request (KIP-848).

`migration.consumer_members` has already found its group, or created or converted one.
"""

from __future__ import annotations

from dataclasses import replace

from kgroup.coordinator.consumer import client_assignor
from kgroup.coordinator.consumer.advance import advance, refuse_if_full, take_place
from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.consumer.leave import refuse_if_not_holder
from kgroup.coordinator.consumer.member import (
    LEFT_EPOCH,
    UNCHANGED_TIMEOUT,
    ConsumerMember,
    Epochs,
    new_member,
)
from kgroup.coordinator.consumer.quiet import note
from kgroup.coordinator.consumer.reconcile import Owned
from kgroup.coordinator.member_timers import renew_session
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


def heartbeat(step: Step, group: ConsumerGroup, request: Request) -> ConsumerGroupHeartbeatResponse:
    """Carry out a heartbeat; the response has the member's epoch and, when it changed, its assignment."""
    joins = request.member_epoch == 0
    refuse_if_full(step, group, request.member_id, request.instance_id)
    owned = _owned(request)
    before = _member(step, group, request, owned)
    metadata = _metadata(step, before, request)
    after = before if metadata is before.metadata else replace(before, metadata=metadata)
    client_assignor.refuse_if_no_overlap(step, group, after)
    after, epoch = advance(step, group, before, after, owned)
    renew_session(step, group, after)
    response = ConsumerGroupHeartbeatResponse(
        member_id=after.member_id,
        member_epoch=after.epoch,
        heartbeat_interval_ms=step.state.config_of(group.group_id).consumer_heartbeat_interval_ms,
    )
    # The partitions' epochs are compared too: a partition revoked and reassigned in one step is reported.
    reassigned = after.current.assigned != before.current.assigned
    # A client that reports all of itself has lost an answer and asks for all of its state (CP-20).
    if joins or reassigned or _is_full(request):
        response.assignment = _assignment(after.current.assigned)  # type: ignore[misc]
    if step.config.client_assignors:
        _add_client_side(step, group, after, epoch, response)
    if after is before:
        note(step, group, request, after, response)
    return response


def _add_client_side(
    step: Step,
    group: ConsumerGroup,
    member: ConsumerMember,
    epoch: int,
    response: ConsumerGroupHeartbeatResponse,
) -> None:
    """Add what client-side assignors need in the answer: which member computes, and the metadata."""
    if client_assignor.in_use(step, group, epoch, member):
        computes = client_assignor.must_compute(step, group, member)
        response.should_compute_assignment = computes  # type: ignore[misc]
    said = group.assignor_says.get(member.member_id)
    sent = group.metadata_sent.get(member.member_id)
    if said is None or (response.assignment is None and member.epoch == sent):
        return
    group.metadata_sent[member.member_id] = member.epoch
    assigned = response.assignment or _assignment(member.current.assigned)
    response.assignment = Assignment(  # type: ignore[misc]
        topic_partitions=assigned.topic_partitions,
        error=said.error,
        pending_topic_partitions=_pending(group, member),
        metadata_version=said.metadata_version,
        metadata_bytes=said.metadata_bytes,
    )


def _pending(group: ConsumerGroup, member: ConsumerMember) -> tuple[TopicPartitions, ...]:
    """Return partitions of the member's target that others have not revoked yet (CP-19)."""
    assigned = member.current.assigned
    pending = {
        topic_id: tuple(n for n in numbers if n not in assigned.get(topic_id, {}))
        for topic_id, numbers in group.target_of(member.member_id).items()
    }
    return tuple(TopicPartitions(topic_id=t, partitions=n) for t, n in pending.items() if n)


def _member(step: Step, group: ConsumerGroup, request: Request, owned: Owned | None) -> ConsumerMember:
    """Return the heartbeat's member as it is before it; refuse wrong ids and epochs."""
    joins = request.member_epoch == 0
    # Only version 0 leaves the id to the coordinator; a client since then makes its own (KIP-1082, CP-05).
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
        return new_member(member_id)
    _refuse_epoch(member, request.member_epoch, owned)
    return member


def _join_static(step: Step, group: ConsumerGroup, member_id: str, instance_id: str) -> ConsumerMember:
    holder = group.members.get(group.static.get(instance_id, ""))
    if holder is None:
        return group.members.get(member_id) or new_member(member_id)
    # An owner that has not announced its return (epoch -2) may be alive: two would own its partitions. A
    # classic member cannot announce it, and is replaced as in KIP-345.
    if not holder.is_classic and holder.epoch != LEFT_EPOCH:
        raise Refused(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group because the "
            f"instance id is owned by {holder.member_id} member.",
        )
    return take_place(step, group, holder, member_id)


def _refuse_epoch(member: ConsumerMember, epoch: int, owned: Owned | None) -> None:
    """Raise FENCED_MEMBER_EPOCH unless the epoch is the member's, 0, or that of a lost response.

    The member stays in the group (OC-15, where CP-23 removes it), and may try again with epoch 0. A member
    that rejoins with 0 has lost its epoch: it keeps its place, and gets its partitions again (CP-22).
    """
    if epoch in (0, member.epoch):
        return
    current = member.current
    if epoch > current.epoch:
        raise Refused(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The consumer group member has a greater member epoch ({epoch}) than the one known by the group "
            f"coordinator ({current.epoch}). The member must abandon all its partitions and rejoin.",
        )
    # The answer with the newer epoch was lost (CP-24). If the member owns nothing beyond what it has here, it
    # has taken nothing since, and the answer can safely be repeated.
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
    """Return the request's values over the known ones; client id and host are the connection's (CP-16)."""
    known, names = before.metadata, request.subscribed_topic_names
    if _says_nothing_new(step, known, request):
        return known
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
            if request.rebalance_timeout_ms == UNCHANGED_TIMEOUT
            else request.rebalance_timeout_ms
        ),
        server_assignor=known.server_assignor if request.server_assignor is None else request.server_assignor,
        # A member that now speaks the consumer protocol is no longer a classic one.
        classic_member_metadata=None,
        client_assignors=(
            known.client_assignors
            if request.client_assignors is None or not step.config.client_assignors
            else client_assignor.recorded(request.client_assignors)
        ),
    )


def _says_nothing_new(step: Step, known: ConsumerGroupMemberMetadataValue, request: Request) -> bool:
    """Return whether the request changes nothing in `known`, as nearly every heartbeat."""
    return (
        request.subscribed_topic_names is None
        and request.subscribed_topic_regex is None
        and request.rebalance_timeout_ms == UNCHANGED_TIMEOUT
        and request.server_assignor is None
        and request.client_assignors is None
        and request.rack_id is None
        and (request.instance_id is None or request.instance_id == known.instance_id)
        and known.classic_member_metadata is None
        and known.client_id == step.client_id
        and known.client_host == step.client_host
    )


def _owned(request: Request) -> Owned | None:
    if request.topic_partitions is None:
        return None
    return {t.topic_id: frozenset(t.partitions) for t in request.topic_partitions}


def _is_full(request: Request) -> bool:
    subscribes = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    timed = request.rebalance_timeout_ms != UNCHANGED_TIMEOUT
    return timed and subscribes and request.topic_partitions is not None


def _assignment(assigned: Epochs) -> Assignment:
    return Assignment(
        topic_partitions=tuple(
            TopicPartitions(topic_id=topic_id, partitions=tuple(sorted(numbers)))
            for topic_id, numbers in assigned.items()
        )
    )
