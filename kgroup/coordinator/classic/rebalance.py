"""Rebalance of a classic group: prepare, await joins, complete, await syncs (KIP-134, KIP-345, KIP-394)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kgroup.coordinator.classic.answers import joined, refused_join
from kgroup.coordinator.classic.group import ClassicGroup, ClassicMember, Forming
from kgroup.coordinator.classic.states import ClassicState, Phase
from kgroup.coordinator.classic.timers import (
    InitialDelay,
    join_timer,
    renew_session,
    session_timer,
    sync_timer,
)
from kgroup.coordinator.state import Step
from kgroup.errors import ErrorCode
from kgroup.numbers import INT32_MAX
from kgroup.protocol.messages.join_group import JoinGroupRequest
from kgroup.protocol.messages.sync_group import SyncGroupResponse


def park_join(step: Step, group: ClassicGroup, member: ClassicMember) -> None:
    """Park the join under way; an earlier parked join of the same member is asked to retry.

    Kafka drops the earlier one's callback, and its connection waits until it times out.
    """
    earlier = group.park_join(member, step.park())
    if earlier is not None:
        refused = refused_join(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id)
        step.answer(earlier, refused)


def rebalance_timeout(request: JoinGroupRequest, version: int) -> int:
    """Return the request's rebalance timeout in ms; before version 1 its session timeout."""
    return request.rebalance_timeout_ms if version >= 1 else request.session_timeout_ms


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
    # A join during the initial delay prolongs it, so that a fleet that starts is one generation (KIP-134).
    if group.forming is not None and group.forming.phase is Phase.PREPARING and group.forming.from_empty:
        group.forming.new_member_added = True
    # Its join may be parked for longer than its session, which no heartbeat renews meanwhile. Only this timer
    # finds a client that died while it waited, and must not block the group for ever.
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
    """Start a rebalance if none is being prepared; complete one that all members have joined."""
    if group.forming is None or group.forming.phase is Phase.COMPLETING:
        prepare(step, group)
    else:
        complete_if_all_joined(step, group)


def complete_if_all_joined(step: Step, group: ClassicGroup, *, ends_delay: bool = False) -> None:
    """End the join phase early when no member is missing.

    Not in the initial delay of a group that was empty: the missing members are not known yet (KIP-134),
    unless its settings name those it expects, or the caller's event ends the delay.
    """
    forming = group.forming
    if forming is None or forming.phase is not Phase.PREPARING or not group.all_joined():
        return
    expected = step.state.expected.get(group.group_id)
    waits = not ends_delay if expected is None else expected.is_awaited(group)
    if not (waits and forming.from_empty):
        complete(step, group)


def prepare(step: Step, group: ClassicGroup) -> None:
    """Start awaiting joins. An empty group waits group.initial.rebalance.delay.ms first (KIP-134)."""
    from_empty = group.is_empty
    if group.forming is not None:
        _reset_syncs(step, group)
    step.cancel(sync_timer(group))
    group.pending_sync.clear()
    group.forming = forming = Forming(
        Phase.PREPARING, from_empty, group.generation, group.protocol_type, group.protocol, group.leader
    )
    expected = step.state.expected.get(group.group_id)
    wait_ms = expected.begin(step, group, forming) if expected is not None else None
    # The leader may have been removed while the group was Stable: the oldest member follows it.
    if forming.leader not in group.members:
        forming.leader = next(iter(group.members), None)
    group.state_since_ms = step.now_ms
    delay = step.config.initial_rebalance_delay_ms
    # Joins do not prolong the wait for expected members.
    if wait_ms is not None:
        step.arm(join_timer(group), max(wait_ms, delay))
    elif from_empty:
        step.arm(join_timer(group), delay, InitialDelay(delay, _left_ms(group.rebalance_timeout_ms, delay)))
    # Every member waits already, as when the only member rejoins: there is none to wait for.
    elif group.all_joined():
        complete(step, group)
    # The slowest member's time to finish what it processes, and to rejoin (KIP-62; SM-70).
    else:
        step.arm(join_timer(group), group.rebalance_timeout_ms)


def join_timer_fired(step: Step, group: ClassicGroup, what: object) -> None:
    """Prolong the initial delay if members came during it (KIP-134); else complete with those who joined."""
    forming = group.forming
    # The phase ended as this timer fell due: it belongs to a rebalance that is over.
    if forming is None or forming.phase is not Phase.PREPARING:
        return
    if isinstance(what, InitialDelay) and forming.new_member_added and what.left_ms > 0:
        forming.new_member_added = False
        delay = min(step.config.initial_rebalance_delay_ms, what.left_ms)
        step.arm(join_timer(group), delay, InitialDelay(delay, _left_ms(what.left_ms, what.delay_ms)))
    else:
        complete(step, group)


def _left_ms(bound_ms: int, delay_ms: int) -> int:
    # Kafka subtracts in 32 bits: with a negative delay, a bound near the maximum overflows.
    left_ms = bound_ms - delay_ms
    return left_ms if 0 <= left_ms <= INT32_MAX else 0


def complete(step: Step, group: ClassicGroup) -> None:
    """End the join phase: remove dynamic members that did not rejoin, start the next generation.

    A static member that did not rejoin stays, with its partitions: only the end of its session, or an admin,
    removes it (KIP-345; SM-67, SM-69).
    """
    forming = group.forming
    assert forming is not None, "no rebalance to complete"
    step.cancel(join_timer(group))
    for member in [m for m in group.members.values() if m.join is None and m.instance_id is None]:
        drop_member(step, group, member.member_id)
    # Only static members are left, and none of them has joined: no member can compute an assignment.
    if group.members and not _elect_joined_leader(group, forming):
        step.arm(join_timer(group), group.rebalance_timeout_ms)
        return
    # A generation that was sent but never written, because its leader died before it synced, is not used
    # again: members of both would be confused.
    forming.generation = max(forming.generation, group.sent_generation) + 1
    group.state_since_ms = step.now_ms
    # No member will sync, so it is written now: a restart must find the group Empty, without members.
    if not group.members:
        record = group.record(
            forming.generation, protocol=None, leader=None, assignments={}, state_since_ms=step.now_ms
        )
        step.records.append(record)
        group.forming = None
        return
    group.sent_generation = forming.generation
    forming.phase = Phase.COMPLETING
    forming.protocol = group.selected_protocol()
    expected = step.state.expected.get(group.group_id)
    if expected is not None:
        expected.choose_idle(group, forming)
    group.note_subscriptions()
    _answer_joins(step, group)


def drop_member(step: Step, group: ClassicGroup, member_id: str) -> None:
    """Remove a member, with its session timer; its parked requests must have been answered."""
    group.remove(member_id)
    step.cancel(session_timer(group, member_id))


def remove_member(step: Step, group: ClassicGroup, member: ClassicMember) -> None:
    """Remove a member; answer its parked requests UNKNOWN_MEMBER_ID without its id, so it starts over."""
    refuse_parked(step, group, member, ErrorCode.UNKNOWN_MEMBER_ID, "")
    drop_member(step, group, member.member_id)


def after_removal(step: Step, group: ClassicGroup, gone: Sequence[ClassicMember]) -> None:
    """Rebalance the members that are left after a removal, unless standbys take over.

    Nothing to do for an empty group.
    """
    expected = step.state.expected.get(group.group_id)
    if group.is_empty or (expected is not None and expected.take_over(step, group, gone)):
        return
    rebalance_or_complete(step, group)


def session_timer_fired(step: Step, group: ClassicGroup, member_id: str) -> None:
    """Expire a member or a pending joiner; members that wait for an answer are alive, unless new."""
    member = group.members.get(member_id)
    if member_id in group.pending_joiners:
        group.pending_joiners.discard(member_id)
    # A member that waits for our answer cannot send heartbeats; an established one counts as alive until
    # then.
    elif member is None or (not member.is_new and (member.join is not None or member.sync is not None)):
        return
    else:
        remove_member(step, group, member)
    if group.state is not ClassicState.PREPARING:
        # A pending joiner had no part in the generation: no member has to rejoin for it.
        if member is not None:
            after_removal(step, group, (member,))
    else:
        # Unlike a member that leaves, one that expires ends the initial delay as well, as in Kafka.
        complete_if_all_joined(step, group, ends_delay=True)


def sync_timer_fired(step: Step, group: ClassicGroup, generation: object) -> None:
    """Remove the members that did not sync in time, static ones too, and rebalance the rest."""
    # Another generation has begun, or all have synced: the timer belongs to a rebalance that is over.
    if generation != group.generation or not group.pending_sync:
        return
    if group.forming is not None and group.forming.phase is Phase.PREPARING:
        return
    # Static ones too, and the leader: a member that joined and does not fetch its assignment is stuck, and
    # without the leader's sync no other gets one either (KAFKA-12890).
    for member_id in sorted(group.pending_sync):
        drop_member(step, group, member_id)
    prepare(step, group)


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
            # While it was parked its session may have run out unnoticed: from here on it must send
            # heartbeats.
            renew_session(step, group, member)
