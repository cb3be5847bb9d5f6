"""How long static members were away, compared with their sessions (KIP-345; SM-51)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import TypeVar

from kgroup.domain import MemberStatus
from kgroup.history.fold.explain import Membership
from kgroup.history.fold.view import RecordedMember

_T = TypeVar("_T")
MAX_AWAY = 10_000
"""Instance ids kept while they are away: a bound for groups that never reuse one."""


@dataclass(frozen=True, slots=True)
class Restart:
    """A static member that returned after its session had expired, at `offset` of the log.

    `session_ms` is its session timeout, None if no record has it. `took_ms` is from the last sign of life to
    the return: in the consumer protocol from the record with which it left for now; else it is the session
    and the time from its end, too long by at most a heartbeat interval, None without the session. `late_ms`
    is from the session's end to the return. Removal of the member by an admin looks the same.
    """

    instance_id: str
    back_ms: int
    late_ms: int
    session_ms: int | None
    took_ms: int | None
    offset: int


@dataclass(frozen=True, slots=True)
class _Gone:
    """A member whose session expired, or that was removed."""

    ended_ms: int
    session_ms: int | None


@dataclass(slots=True)
class Absences:
    """The static members of one group that are away, and the restarts that took longer than a session."""

    away: dict[str, int] = field(default_factory=dict)
    """Those that left for now, and when."""
    gone: dict[str, _Gone] = field(default_factory=dict)
    restarts: list[Restart] = field(default_factory=list)

    def take(self, members: Membership, timestamp_ms: int, offset: int, committed: Mapping[str, int]) -> None:
        """Note how the members of the group differ after a step.

        `committed` are the last commits of what members own that left, by member id (ms): a commit is a sign
        of life, and one within the session says that the session did not end.
        """
        for member in members.left:
            self._end(member, timestamp_ms, committed.get(member.member_id, -1))
        for old, new in chain(members.kept, members.replaced):
            # Of thousands of members a step touches one: the others are the same objects.
            if old is new or new.instance_id is None:
                continue
            if new.state == MemberStatus.LEFT and old.state != MemberStatus.LEFT:
                _remember(self.away, new.instance_id, timestamp_ms)
            elif new.state != MemberStatus.LEFT:
                self.away.pop(new.instance_id, None)
        for member in members.joined:
            if member.instance_id is None:
                continue
            gone = self.gone.pop(member.instance_id, None)
            if gone is None or timestamp_ms < gone.ended_ms:
                continue
            known, late_ms = gone.session_ms, timestamp_ms - gone.ended_ms
            took_ms = None if known is None else known + late_ms
            self.restarts.append(Restart(member.instance_id, timestamp_ms, late_ms, known, took_ms, offset))
            del self.restarts[:-MAX_AWAY]

    def _end(self, member: RecordedMember, timestamp_ms: int, committed_ms: int) -> None:
        """Note that a member is gone, unless it gave a sign of life within its session."""
        if member.instance_id is None:
            return
        left_ms = self.away.pop(member.instance_id, None)
        session_ms = member.session_timeout_ms if left_ms is None else timestamp_ms - left_ms
        if committed_ms >= 0 and timestamp_ms - committed_ms < session_ms:
            return
        known_ms = session_ms if session_ms > 0 else None
        _remember(self.gone, member.instance_id, _Gone(timestamp_ms, known_ms))


def _remember(by_instance: dict[str, _T], instance_id: str, what: _T) -> None:
    by_instance[instance_id] = what
    if len(by_instance) > MAX_AWAY:
        del by_instance[next(iter(by_instance))]
