"""The purposes of groups' timers; a key's kind decides what firing it does (`Coordinator.wake`)."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from kgroup.timers import TimerKey


class TimerKind(StrEnum):
    """Texts, so that a key hashes and prints as fast and as plainly as one made of strings."""

    CLASSIC_SESSION = "classic-session"
    CLASSIC_JOIN = "classic-join"
    CLASSIC_SYNC = "classic-sync"
    CLASSIC_HOLD = "classic-hold"
    CONSUMER_SESSION = "consumer-session"
    CONSUMER_REVOCATION = "consumer-revocation"
    CONSUMER_JOIN = "consumer-join"
    CONSUMER_SYNC = "consumer-sync"
    CONSUMER_REGEX = "consumer-regex"
    STREAMS_SESSION = "streams-session"
    STREAMS_REVOCATION = "streams-revocation"
    STREAMS_INITIAL = "streams-initial"
    SHARE_SESSION = "share-session"
    OFFSET_EXPIRY = "offset-expiry"


class MemberTimers(NamedTuple):
    """The timers of one kind of members: each fences its member when it fires.

    Heartbeats renew `session`; `revocation` is of an epoch of the member.
    """

    session: TimerKind
    revocation: TimerKind | None = None
    others: tuple[TimerKind, ...] = ()

    @property
    def all(self) -> tuple[TimerKind, ...]:
        revocation = () if self.revocation is None else (self.revocation,)
        return (self.session, *revocation, *self.others)


CONSUMER_MEMBERS = MemberTimers(
    TimerKind.CONSUMER_SESSION,
    TimerKind.CONSUMER_REVOCATION,
    (TimerKind.CONSUMER_JOIN, TimerKind.CONSUMER_SYNC),
)
STREAMS_MEMBERS = MemberTimers(TimerKind.STREAMS_SESSION, TimerKind.STREAMS_REVOCATION)
SHARE_MEMBERS = MemberTimers(TimerKind.SHARE_SESSION)
_EVERY = (CONSUMER_MEMBERS, STREAMS_MEMBERS, SHARE_MEMBERS)

MEMBER_KINDS = frozenset(kind for kinds in _EVERY for kind in kinds.all)
"""Those of members of groups with targets."""
SESSION_KINDS = (TimerKind.CLASSIC_SESSION, *(kinds.session for kinds in _EVERY))
"""Those that heartbeats renew, of all types of group; a new type has its own here."""
REVOCATION_KINDS = frozenset(kinds.revocation for kinds in _EVERY if kinds.revocation is not None)
"""Those of an epoch of a member."""

SWEEP = TimerKey(TimerKind.OFFSET_EXPIRY, "")
"""The one timer that belongs to no group."""
