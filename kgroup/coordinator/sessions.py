"""Members and their sessions, for a host that moves time: it renews sessions and waits for rejoins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from kgroup.coordinator.classic.group import ClassicGroup
from kgroup.coordinator.classic.states import ClassicState
from kgroup.coordinator.state import Group, State
from kgroup.coordinator.timer_kinds import MEMBER_KINDS, REVOCATION_KINDS, SESSION_KINDS, TimerKind
from kgroup.timers import TimerKey

_OF_ONE_MEMBER = MEMBER_KINDS.difference(SESSION_KINDS)


class MemberName(NamedTuple):
    """A member of any group, with all its names."""

    group_id: str
    member_id: str
    instance_id: str | None
    client_id: str


def members(state: State) -> Iterator[MemberName]:
    """Return the members of all groups."""
    for group in state.groups.values():
        if isinstance(group, ClassicGroup):
            for classic in group.members.values():
                yield MemberName(group.group_id, classic.member_id, classic.instance_id, classic.client_id)
        else:
            for member_id, member in group.members.items():
                yield MemberName(group.group_id, member_id, member.instance_id, member.metadata.client_id)


def session_of(state: State, member: MemberName) -> TimerKey | None:
    """Return the timer that ends the member's session; None for a removed one."""
    keys = (TimerKey(kind, member.group_id, member.member_id) for kind in SESSION_KINDS)
    return next((key for key in keys if key in state.timers), None)


def prolong(
    state: State, lives: Callable[[str, str], bool], by_ms: int, prolonged: dict[TimerKey, int]
) -> None:
    """Extend the sessions of the members that live (group, member) by so much.

    `prolonged` has the deadlines of earlier extensions: a session that still has one of those is left alone.
    """
    for key, deadline_ms, _ in state.timers.armed():
        if key.kind in SESSION_KINDS and prolonged.get(key) != deadline_ms and lives(*key[1:]):
            prolonged[key] = deadline_ms + by_ms
            state.timers.postpone(key, deadline_ms + by_ms)


def awaited(state: State, by_ms: int) -> Iterator[tuple[str, str]]:
    """Return members (group, member) whose next request stops a timer of a rebalance that fires by then."""
    for key, deadline_ms, what in state.timers.armed():
        group = state.groups.get(key.group_id)
        if deadline_ms <= by_ms and group is not None:
            for member_id in _awaited(group, key, what):
                yield key.group_id, member_id


def _awaited(group: Group, key: TimerKey, what: object) -> Iterable[str]:
    if isinstance(group, ClassicGroup):
        if key.kind == TimerKind.CLASSIC_JOIN and group.state is ClassicState.PREPARING:
            return [member.member_id for member in group.members.values() if member.join is None]
        # The leader's sync makes the group Stable, and the other syncs are still to come.
        current = key.kind == TimerKind.CLASSIC_SYNC and what == group.generation
        return group.pending_sync if current and group.state is not ClassicState.PREPARING else ()
    member = group.members.get(key.member_id)
    if member is None or key.kind not in _OF_ONE_MEMBER:
        return ()
    return () if key.kind in REVOCATION_KINDS and member.epoch != what else (key.member_id,)
