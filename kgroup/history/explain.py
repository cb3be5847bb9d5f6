"""Causes: what set off a rebalance, a rewind or a deletion, as far as the records say.

The records hold no reason. A cause here is what changed in the same records, or it says what it cannot be.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kgroup.history.events import Event, Kind, duration_text
from kgroup.history.state import Member, View

MIN_RETENTION_MS = 60_000
"""The shortest retention a broker takes (offsets.retention.minutes): younger commits do not expire."""


@dataclass(frozen=True, slots=True)
class Membership:
    """How the members of a group differ between two moments; `replaced` pairs share an instance id."""

    joined: tuple[Member, ...] = ()
    left: tuple[Member, ...] = ()
    replaced: tuple[tuple[Member, Member], ...] = ()
    kept: tuple[tuple[Member, Member], ...] = ()

    @classmethod
    def between(cls, before: View, after: View) -> Membership:
        old = {m: v for m, v in before.members.items() if m not in after.members}
        new = {m: v for m, v in after.members.items() if m not in before.members}
        gone = {v.instance_id: v for v in old.values() if v.instance_id}
        replaced = tuple((gone[v.instance_id], v) for v in new.values() if v.instance_id in gone)
        taken = {v.member_id for pair in replaced for v in pair}
        return cls(
            joined=tuple(v for m, v in sorted(new.items()) if m not in taken),
            left=tuple(v for m, v in sorted(old.items()) if m not in taken),
            replaced=replaced,
            kept=tuple((before.members[m], after.members[m]) for m in before.members if m in after.members),
        )

    @property
    def resubscribed(self) -> tuple[tuple[Member, Member], ...]:
        """Members whose subscription is another one now, replaced ones too."""
        pairs = (*self.kept, *self.replaced)
        return tuple((a, b) for a, b in pairs if (a.topics, a.regex) != (b.topics, b.regex))

    @property
    def returned(self) -> tuple[tuple[Member, Member], ...]:
        """Members that had left for now and came back under their old member id."""
        return tuple((a, b) for a, b in self.kept if a.state == "left" and b.state != "left")


_REJOIN = (
    "members and subscriptions are as before: a member asked to rejoin (the leader, or one with changed "
    "metadata); the records do not tell which"
)


def labels(members: Iterable[Member]) -> str:
    return ", ".join(m.label for m in members)


def cause_of_rebalance(before: View, after: View, members: Membership) -> tuple[str, bool]:
    """What set off a rebalance, from what changed with it; False when nothing visible did."""
    found = []
    if members.joined:
        found.append(f"{labels(members.joined)} joined")
    if members.left:
        found.append(f"{labels(members.left)} left or expired")
    if members.replaced and before.epoch != after.epoch:
        found.append(f"{labels(new for _, new in members.replaced)} came back under a new member id")
    if members.resubscribed:
        found.append(f"{labels(new for _, new in members.resubscribed)} changed the subscription")
    if before.assignor != after.assignor and before.assignor and after.assignor:
        found.append(f"the assignor changed from {before.assignor} to {after.assignor}")
    if found:
        return "; ".join(found), True
    if before.regexes != after.regexes:
        return "topics matching a subscribed regular expression changed", True
    if after.kind == "consumer" and before.metadata_hash != after.metadata_hash:
        return "the metadata of subscribed topics changed (created, deleted, more partitions or racks)", True
    if after.kind == "consumer":
        return "nothing else changed in these records: the records do not tell", False
    return _REJOIN, False


def way_out(member: Member) -> str:
    """How a member may have gone: the records hold only that it is gone."""
    if member.protocol == "classic" and member.instance_id:
        return "expired, or removed by an admin: static members do not leave when they close"
    if member.state == "left":
        return "did not come back before its session ended, or was removed for good"
    return "left, expired, or was removed: the records do not tell"


def silent_since(member: Member) -> str:
    """The earliest moment a crash can have been, for a member that may have expired."""
    if member.session_timeout_ms <= 0:
        return ""
    return f"; if it expired, it was silent for {duration_text(member.session_timeout_ms)} before this"


CAUSES = {
    "rebalance": (Kind.REBALANCE_COMPLETED, Kind.REBALANCE_STARTED, Kind.GROUP_EMPTIED),
    "rewind": (Kind.REWOUND,),
    "deletion": (Kind.GROUP_DELETED, Kind.OFFSETS_DELETED, Kind.OFFSETS_EXPIRED_OR_DELETED),
    "conversion": (Kind.UPGRADED, Kind.DOWNGRADED),
}
_LEADING_UP = frozenset(
    {
        Kind.MEMBER_JOINED, Kind.MEMBER_LEFT_FOR_NOW, Kind.MEMBER_LEFT_OR_EXPIRED, Kind.MEMBER_REPLACED,
        Kind.SUBSCRIPTION_CHANGED, Kind.TOPICS_CHANGED, Kind.REGEX_RESOLVED, Kind.ASSIGNOR_CHANGED,
        Kind.REBALANCE_STARTED, Kind.UPGRADED, Kind.DOWNGRADED, Kind.COMMITTED_OUTSIDE, Kind.GROUP_EMPTIED,
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Blame:
    """The last event of one sort, and the events that led to it, oldest first."""

    about: str
    event: Event
    evidence: tuple[Event, ...]


def blame(events: Sequence[Event], group: str) -> list[Blame]:
    """The last rebalance, rewind, deletion and conversion of `group`; `events` are all of it, in order."""
    own = [e for e in events if e.group == group]
    found = []
    for about, kinds in CAUSES.items():
        at = next((i for i in reversed(range(len(own))) if own[i].kind in kinds), None)
        if at is not None:
            found.append(Blame(about, own[at], tuple(_led_to(own, at, about))))
    return found


def _led_to(own: Sequence[Event], at: int, about: str) -> list[Event]:
    """What happened between the last quiet moment and the event."""
    evidence: list[Event] = []
    for event in reversed(own[:at]):
        same_step = event.offset >= own[at].offset
        if not same_step and event.kind in (Kind.REBALANCE_COMPLETED, Kind.GROUP_CREATED):
            break
        if about in ("rewind", "deletion") and event.kind is Kind.GROUP_EMPTIED:
            evidence.append(event)
            break
        if event.kind in _LEADING_UP and not (about == "rewind" and event.kind is Kind.REBALANCE_STARTED):
            evidence.append(event)
    return evidence[::-1]
