"""Rebalance of a classic group: prepare, await joins, complete, await syncs (KIP-134, KIP-345, KIP-394)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kgroup.coordinator.classic.group import ClassicGroup, ClassicMember, Forming
from kgroup.coordinator.classic.states import ClassicState, Phase
from kgroup.coordinator.state import Step
from kgroup.coordinator.timer_kinds import TimerKind
from kgroup.errors import ErrorCode
from kgroup.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from kgroup.protocol.messages.sync_group import SyncGroupResponse
from kgroup.timers import TimerKey


class InitialDelay(NamedTuple):
    """The join timer of a group that was empty: how long this delay is, and how much may follow it."""

    delay_ms: int
    left_ms: int


def session_timer(group: ClassicGroup, member_id: str) -> TimerKey:
    return TimerKey(TimerKind.CLASSIC_SESSION, group.group_id, member_id)


def join_timer(group: ClassicGroup) -> TimerKey:
    return TimerKey(TimerKind.CLASSIC_JOIN, group.group_id)


def sync_timer(group: ClassicGroup) -> TimerKey:
    return TimerKey(TimerKind.CLASSIC_SYNC, group.group_id)


def renew_session(step: Step, group: ClassicGroup, member: ClassicMember) -> None:
    """Start the member's session timeout anew: it has just shown that it lives."""
    step.arm(session_timer(group, member.member_id), member.session_timeout_ms)


def park_join(step: Step, group: ClassicGroup, member: ClassicMember) -> None:
    """Park the join under way; a join of the same member parked earlier is told to ask again.

    Kafka forgets the earlier one's callback, and its connection waits until it times out.
    """
    earlier = group.park_join(member, step.park())
    if earlier is not None:
        refused = refused_join(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id)
        step.answer(earlier, refused)


def rebalance_timeout(request: JoinGroupRequest, version: int) -> int:
    """The request's rebalance timeout in ms; before version 1 the session timeout stands for it."""
    return request.rebalance_timeout_ms if version >= 1 else request.session_timeout_ms


def refused_join(code: ErrorCode, member_id: str) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=code, member_id=member_id, protocol_name=None)


def refuse_parked(step: Step, group: ClassicGroup, member: ClassicMember, code: ErrorCode, echo: str) -> None:
    """Answer the member's parked join and sync, if any, with an error."""
    join = group.take_join(member)
    if join is not None:
        step.answer(join, refused_join(code, echo))
    if member.sync is not None:
        step.answer(member.sync, SyncGroupResponse(error_code=code))
        member.sync = None


def add_member(step: Step, group: ClassicGroup, member: ClassicMember) -> None:
    """Add a member whose join is the request under way, and rebalance."""
    # Who comes during the initial delay prolongs it, so that a fleet that starts is one generation (KIP-134).
    if group.forming is not None and group.forming.phase is Phase.PREPARING and group.forming.from_empty:
        group.forming.new_member_added = True
    # Its join may be parked for longer than its session, which no heartbeat renews by then. A client that
    # died while it waited is found by this timer alone, and must not keep the group waiting for ever.
    member.is_new = True
    first = not group.members
    group.add(member)
    park_join(step, group, member)
    step.arm(session_timer(group, member.member_id), step.config.new_member_timeout_ms)
    if group.forming is None:
        prepare(step, group)
    # The first member decides the protocol type, though nothing is committed until the leader syncs.
    if first and group.forming is not None:
        group.forming.protocol_type = member.protocol_type
    if group.forming is not None and group.forming.leader is None:
        group.forming.leader = member.member_id
    rebalance_or_complete(step, group)


def rebalance_or_complete(step: Step, group: ClassicGroup) -> None:
    """Start a rebalance where none is being prepared; complete one that everybody has joined."""
    if group.forming is None or group.forming.phase is Phase.COMPLETING:
        prepare(step, group)
    else:
        complete_if_all_joined(step, group)


def complete_if_all_joined(step: Step, group: ClassicGroup) -> None:
    """End the join phase early when nobody is missing.

    Not in the initial delay of a group that was empty: who is missing there is not known yet (KIP-134).
    """
    forming = group.forming
    if (
        forming is not None
        and forming.phase is Phase.PREPARING
        and not forming.from_empty
        and group.all_joined()
    ):
        complete(step, group)


def prepare(step: Step, group: ClassicGroup) -> None:
    """Start awaiting joins. An empty group waits group.initial.rebalance.delay.ms first (KIP-134)."""
    from_empty = group.is_empty
    if group.forming is not None:
        _reset_syncs(step, group)
    step.cancel(sync_timer(group))
    group.pending_sync.clear()
    group.forming = Forming(
        Phase.PREPARING, from_empty, group.generation, group.protocol_type, group.protocol, group.leader
    )
    # The leader may have been removed while the group was Stable: whoever is longest in the group follows it.
    if group.forming.leader not in group.members:
        group.forming.leader = next(iter(group.members), None)
    group.state_since_ms = step.now_ms
    if from_empty:
        delay = step.config.initial_rebalance_delay_ms
        left = max(group.rebalance_timeout_ms - delay, 0)
        step.arm(join_timer(group), delay, InitialDelay(delay, left))
    elif group.all_joined():
        complete(step, group)
    else:
        step.arm(join_timer(group), group.rebalance_timeout_ms)


def join_timer_fired(step: Step, group: ClassicGroup, what: object) -> None:
    """Prolong the initial delay when members came during it; else complete with those who joined."""
    forming = group.forming
    if forming is None or forming.phase is not Phase.PREPARING:
        return
    if isinstance(what, InitialDelay) and forming.new_member_added and what.left_ms > 0:
        forming.new_member_added = False
        delay = min(step.config.initial_rebalance_delay_ms, what.left_ms)
        step.arm(join_timer(group), delay, InitialDelay(delay, max(what.left_ms - what.delay_ms, 0)))
    else:
        complete(step, group)


def complete(step: Step, group: ClassicGroup) -> None:
    """End the join phase: drop dynamic members that did not rejoin, start the next generation.

    A static member that did not rejoin stays, with its partitions: only the end of its session, or an admin,
    takes it out (KIP-345; SM-67, SM-69).
    """
    forming = group.forming
    assert forming is not None, "no rebalance to complete"
    step.cancel(join_timer(group))
    for member in [m for m in group.members.values() if m.join is None and m.instance_id is None]:
        drop_member(step, group, member.member_id)
    # Static members alone are left, and none of them has joined: there is nobody to compute an assignment.
    if group.members and not _elect_joined_leader(group, forming):
        step.arm(join_timer(group), group.rebalance_timeout_ms)
        return
    # A generation that was told but never written, as its leader died before it synced, is not given out
    # again: members of both would be taken for one another.
    forming.generation = max(forming.generation, group.told_generation) + 1
    group.state_since_ms = step.now_ms
    if not group.members:
        record = group.record(
            forming.generation, protocol=None, leader=None, assignments={}, state_since_ms=step.now_ms
        )
        step.records.append(record)
        group.forming = None
        return
    group.told_generation = forming.generation
    forming.phase = Phase.COMPLETING
    forming.protocol = group.selected_protocol()
    group.note_subscriptions()
    _answer_joins(step, group)


def drop_member(step: Step, group: ClassicGroup, member_id: str) -> None:
    """Take a member out, with its session timer; its parked requests must have been answered."""
    group.remove(member_id)
    step.cancel(session_timer(group, member_id))


def remove_member(step: Step, group: ClassicGroup, member: ClassicMember) -> None:
    """Take a member out and tell its parked requests UNKNOWN_MEMBER_ID."""
    refuse_parked(step, group, member, ErrorCode.UNKNOWN_MEMBER_ID, "")
    drop_member(step, group, member.member_id)


def after_removal(step: Step, group: ClassicGroup) -> None:
    """Rebalance what is left once members have gone; nothing to do for an empty group."""
    if group.is_empty:
        return
    rebalance_or_complete(step, group)


def session_timer_fired(step: Step, group: ClassicGroup, member_id: str) -> None:
    """Expire a member or a pending joiner; members that wait for an answer are alive, unless new."""
    member = group.members.get(member_id)
    if member_id in group.pending_joiners:
        group.pending_joiners.discard(member_id)
    # Who waits for our answer cannot send heartbeats; an established member is taken for alive until then.
    elif member is None or (not member.is_new and (member.join is not None or member.sync is not None)):
        return
    else:
        remove_member(step, group, member)
    if group.state is not ClassicState.PREPARING:
        if member is not None:
            after_removal(step, group)
    elif group.all_joined():
        # Unlike a member that leaves, one that expires ends the initial delay as well, as in Kafka.
        complete(step, group)


def sync_timer_fired(step: Step, group: ClassicGroup, generation: object) -> None:
    """Remove the members that did not sync in time, static ones too, and rebalance the rest."""
    # Another generation has begun, or everybody has synced: the timer is of a rebalance that is over.
    if generation != group.generation or not group.pending_sync:
        return
    if group.forming is not None and group.forming.phase is Phase.PREPARING:
        return
    # Static ones too, and the leader: a member that joined and then does not fetch its assignment is stuck,
    # and without the leader's sync nobody else gets one either (KAFKA-12890).
    for member_id in sorted(group.pending_sync):
        drop_member(step, group, member_id)
    prepare(step, group)


def joined_members(group: ClassicGroup) -> tuple[JoinGroupResponseMember, ...]:
    """Every member with its subscription under the selected protocol: what the leader is sent."""
    protocol = group.protocol
    return tuple(
        JoinGroupResponseMember(
            member_id=m.member_id, group_instance_id=m.instance_id, metadata=m.metadata(protocol)
        )
        for m in group.members.values()
    )


def joined(group: ClassicGroup, member_id: str, *, to_leader: bool) -> JoinGroupResponse:
    """The answer to a join at the current generation."""
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=group.leader or "",
        member_id=member_id,
        members=joined_members(group) if to_leader else (),
    )


def _answer_joins(step: Step, group: ClassicGroup) -> None:
    for member in group.members.values():
        parked = group.take_join(member)
        if parked is not None:
            to_leader = member.member_id == group.leader
            step.answer(parked, joined(group, member.member_id, to_leader=to_leader))
        renew_session(step, group, member)
        member.is_new = False
        group.pending_sync.add(member.member_id)
    step.arm(sync_timer(group), group.rebalance_timeout_ms, group.generation)


def _elect_joined_leader(group: ClassicGroup, forming: Forming) -> bool:
    leader = group.members.get(forming.leader or "")
    if leader is not None and leader.join is not None:
        return True
    joined_ids: Iterable[str] = (m.member_id for m in group.members.values() if m.join is not None)
    elected = next(iter(joined_ids), None)
    if elected is not None:
        forming.leader = elected
    return elected is not None


def _reset_syncs(step: Step, group: ClassicGroup) -> None:
    for member in group.members.values():
        member.assignment = b""
        if member.sync is not None:
            refused = SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
            step.answer(member.sync, refused)
            member.sync = None
            # While it was parked its session may have run out unnoticed: from here on it must beat again.
            renew_session(step, group, member)
