"""The purposes of groups' timers; a key's kind decides what firing it does (`Coordinator.wake`)."""

from __future__ import annotations

from enum import StrEnum

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


MEMBER_KINDS = (
    TimerKind.CONSUMER_SESSION,
    TimerKind.CONSUMER_REVOCATION,
    TimerKind.CONSUMER_JOIN,
    TimerKind.CONSUMER_SYNC,
)
"""Those of a consumer group's members: each fences its member when it fires."""

STREAMS_MEMBER_KINDS = (TimerKind.STREAMS_SESSION, TimerKind.STREAMS_REVOCATION)
"""Those of a streams group's members, likewise."""

SESSION_KINDS = (
    TimerKind.CLASSIC_SESSION,
    TimerKind.CONSUMER_SESSION,
    TimerKind.STREAMS_SESSION,
    TimerKind.SHARE_SESSION,
)
"""Those that heartbeats renew, of all types of group; a new type has its own here."""

SWEEP = TimerKey(TimerKind.OFFSET_EXPIRY, "")
"""The one timer that belongs to no group."""
