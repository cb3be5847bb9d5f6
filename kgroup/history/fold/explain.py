"""Causes of rebalances, rewinds and deletions, as far as the records show them.

The records hold no reason. A cause here is what changed in the same records, or it says what it cannot be.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kgroup.domain import MemberStatus, TopicPartition, count_of, partitions_text
from kgroup.history.fold import applications
from kgroup.history.fold.events import Event, Kind, Unowned
from kgroup.history.fold.ownership import GivenUp
from kgroup.history.fold.view import CONSUMER, SHARE, RecordedMember, View


@dataclass(frozen=True, slots=True)
class Membership:
    """How the members of a group differ between two moments; `replaced` pairs share an instance id."""

    joined: tuple[RecordedMember, ...] = ()
    left: tuple[RecordedMember, ...] = ()
    replaced: tuple[tuple[RecordedMember, RecordedMember], ...] = ()
    kept: tuple[tuple[RecordedMember, RecordedMember], ...] = ()

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
    def resubscribed(self) -> tuple[tuple[RecordedMember, RecordedMember], ...]:
        """Members whose subscription has changed, including replaced ones."""
        pairs = (*self.kept, *self.replaced)
        return tuple((a, b) for a, b in pairs if (a.topics, a.regex) != (b.topics, b.regex))

    @property
    def returned(self) -> tuple[tuple[RecordedMember, RecordedMember], ...]:
        """Members that had left for now and rejoined under their old member id."""
        return tuple(
            (a, b) for a, b in self.kept if a.state == MemberStatus.LEFT and b.state != MemberStatus.LEFT
        )


_REJOIN = (
    "members, subscriptions and metadata are as before: the leader asked to rejoin, as after a change of its "
    "topics, or a member did whose metadata came back the same; the records do not say which"
)


def labels(members: Iterable[RecordedMember]) -> str:
    """Return the members' names; with the client id if the name is a bare UUID, as in KIP-848."""
    return ", ".join(member.label + member.of_client for member in members)


def cause_of_rebalance(
    before: View,
    after: View,
    members: Membership,
    given_up: GivenUp | None = None,
    unowned: Iterable[Unowned] = (),
) -> tuple[str, bool]:
    """Return the cause of a rebalance, from what changed with it; False when the records leave it open.

    For a classic group: `given_up` is what the generation before revoked from members that stayed, and
    `unowned` what has an owner again.
    """
    taken: dict[str, list[TopicPartition]] = {}
    for partition, member in (given_up or {}).items():
        if member.member_id in after.members and partition not in after.members[member.member_id].owned:
            taken.setdefault(member.label, []).append(partition)
    causes = [
        f"generation {before.epoch} took {partitions_text(places)} from {label}, which let go and rejoined "
        "(a cooperative hand-over)"
        for label, places in sorted(taken.items())
    ]
    causes += applications.handed_over(before, after)
    causes += _changes_of_members(before, after, members)
    # All of these at once may be one rebalance: joins and leaves that arrived while it was prepared.
    if causes:
        return "; ".join(causes), True
    # What follows counts only by itself: it also changes as a consequence of members or subscriptions.
    if before.regexes != after.regexes:
        return "topics matching a subscribed regular expression changed", True
    by_epochs = after.kind in (CONSUMER, SHARE)
    if by_epochs and before.metadata_hash != after.metadata_hash:
        return f"the metadata of subscribed topics changed{_of_metadata(before, after)}", True
    if by_epochs:
        return "nothing else changed in these records: the records do not say", False
    had = {TopicPartition(u.topic, u.partition) for u in unowned}
    had |= {p for m in before.members.values() for p in m.assigned}
    topics = {p.topic for p in had}
    now = {p for m in after.members.values() for p in m.assigned}
    if new := [p for p in now - had if p.topic in topics]:
        return f"{partitions_text(new)} came: no member ever had them, and the others are as before", True
    if due := applications.scheduled(before, after):
        return due, True
    return applications.new_work(before, after) or _rejoined(after, members)


def _of_metadata(before: View, after: View) -> str:
    """Return what changed in the metadata of topics, as far as a new target shows it."""
    if after.assignment_epoch < after.epoch:
        return " (created, deleted, more partitions or racks): the next target shows which partitions"
    was, now = ({p for m in view.members.values() for p in m.target or ()} for view in (before, after))
    ways = [f"{partitions_text(now - was)} came"] if now - was else []
    ways += [f"{partitions_text(was - now)} went"] if was - now else []
    return (
        f": {', '.join(ways)}" if ways else ": no partition came or went, so racks, or a topic was recreated"
    )


def _changes_of_members(before: View, after: View, members: Membership) -> list[str]:
    causes = []
    if members.joined:
        causes.append(f"{labels(members.joined)} joined")
    if members.left:
        causes.append(f"{labels(members.left)} left or expired")
    # Within a generation a static member's return causes nothing (KIP-345; SM-26).
    if members.replaced and before.epoch != after.epoch:
        causes.append(f"{labels(new for _, new in members.replaced)} came back under a new member id")
    if members.resubscribed:
        causes.append(f"{labels(new for _, new in members.resubscribed)} changed the subscription")
    if before.assignor != after.assignor and before.assignor and after.assignor:
        causes.append(f"the assignor changed from {before.assignor} to {after.assignor}")
    return causes


def _rejoined(after: View, members: Membership) -> tuple[str, bool]:
    """Return members with other metadata, where membership and subscriptions are unchanged."""
    changed = [(old, new) for old, new in (*members.kept, *members.replaced) if old.metadata != new.metadata]
    how = [(new.label, _difference(after, old, new)) for old, new in changed]
    named = [f"{label} ({difference})" for label, difference in how if difference]
    if not named:
        return _REJOIN, False
    who = "it, or the leader," if len(named) == 1 else "one of them, or the leader,"
    return (
        f"members and subscriptions are as before; other metadata: {', '.join(named)}; {who} asked to rejoin",
        False,
    )


def _difference(view: View, old: RecordedMember, new: RecordedMember) -> str:
    """Return how the metadata of a member differs, "" if only in the generation that every rejoin changes."""
    a, b = old.joined_with, new.joined_with
    own = applications.difference(view, old, new)
    if a is None or b is None:
        if own is not None:
            return own
        return f"{count_of(len(new.metadata), 'byte')}, not the consumer protocol's, so not decoded"
    differences = [own] if own else []
    if old.owned != new.owned:
        differences.append(f"it owned {partitions_text(new.owned)}, {partitions_text(old.owned)} before")
    if a.rack != b.rack:
        differences.append(f"rack {b.rack}, {a.rack} before")
    if own is None and a.user_data != b.user_data:
        differences.append("the assignor's user data")
    return ", ".join(differences)


CAUSES = {
    "rebalance": (Kind.REBALANCE_COMPLETED, Kind.REBALANCE_STARTED, Kind.GROUP_EMPTIED),
    "rewind": (Kind.REWOUND, Kind.START_OFFSET_SET),
    "given up": (Kind.RECORDS_ARCHIVED,),
    "deletion": (Kind.GROUP_DELETED, Kind.OFFSETS_DELETED, Kind.OFFSETS_EXPIRED_OR_DELETED),
    "conversion": (Kind.UPGRADED, Kind.DOWNGRADED),
}
HANDED_OVER = ("hand-over", "held back work")
HANDED_MS, FOLLOWS_MS = 600_000, 60_000
"""How long after a change of members a rebalance may follow from it: Connect holds work back for 5 minutes.

A rebalance whose cause the records leave open has to come sooner.
"""
TOGETHER_MS = 2_000
_OWN_CAUSES = frozenset(
    {
        Kind.MEMBER_JOINED,
        Kind.MEMBER_LEFT_OR_EXPIRED,
        Kind.MEMBER_REPLACED,
        Kind.SUBSCRIPTION_CHANGED,
        Kind.TOPICS_CHANGED,
        Kind.REGEX_RESOLVED,
        Kind.ASSIGNOR_CHANGED,
        Kind.UPGRADED,
        Kind.DOWNGRADED,
        Kind.GROUP_CREATED,
    }
)
_LEADING_UP = frozenset(
    {
        Kind.MEMBER_JOINED,
        Kind.MEMBER_LEFT_FOR_NOW,
        Kind.MEMBER_LEFT_OR_EXPIRED,
        Kind.MEMBER_REPLACED,
        Kind.SUBSCRIPTION_CHANGED,
        Kind.TOPICS_CHANGED,
        Kind.TOPOLOGY_SET,
        Kind.TOPOLOGY_READY,
        Kind.TOPOLOGY_NOT_READY,
        Kind.SETTINGS_CHANGED,
        Kind.REGEX_RESOLVED,
        Kind.ASSIGNOR_CHANGED,
        Kind.REBALANCE_STARTED,
        Kind.UPGRADED,
        Kind.DOWNGRADED,
        Kind.COMMITTED_OUTSIDE,
        Kind.GROUP_EMPTIED,
    }
)


@dataclass(frozen=True, slots=True)
class Blame:
    """The last event of one kind, and the events that led to it, oldest first."""

    about: str
    event: Event
    evidence: tuple[Event, ...]


def blame(events: Sequence[Event], group: str) -> list[Blame]:
    """Return the last rebalance, rewind, deletion and conversion in `events`, all of `group` in order."""
    own = [e for e in events if e.group == group]
    blames = []
    for about, kinds in CAUSES.items():
        at = next((i for i in reversed(range(len(own))) if own[i].kind in kinds), None)
        if at is not None:
            blames.append(_blame(own, at, about))
    return blames


def _blame(own: Sequence[Event], at: int, about: str) -> Blame:
    event = own[at]
    if about == "rebalance" and (root := _root(own, at)) is not None:
        cause = f"{own[root].cause}; what followed from it: {event.cause}"
        led_to = (*_led_to(own, root, about), own[root], *_led_to(own, at, about))
        return Blame(about, replace(event, cause=cause, proven=own[root].proven), led_to)
    if about == "rewind":
        # Rewinds of one reset: with the same cause, within moments.
        others = [
            rewind
            for rewind in own[:at]
            if rewind.kind is Kind.REWOUND
            and (rewind.cause == event.cause or rewind.suspicious == event.suspicious)
            and event.timestamp_ms - rewind.timestamp_ms <= TOGETHER_MS
        ]
        if others:
            places = tuple(sorted({p for rewind in (*others, event) for p in rewind.partitions}))
            went = f"{len(places)} partitions went back, {partitions_text(places)}"
            event = replace(event, detail=f"{went}; the last of them: {event.detail}", partitions=places)
            return Blame(about, event, (*_led_to(own, own.index(others[0]), about), *others))
    return Blame(about, event, tuple(_led_to(own, at, about)))


def _root(own: Sequence[Event], at: int) -> int | None:
    """Return the rebalance that a hand-over follows from: the last one before in which membership changed."""
    event = own[at]
    handed = any(words in (event.cause or "") for words in HANDED_OVER)
    if event.proven and not handed:
        return None
    limit_ms = HANDED_MS if handed else FOLLOWS_MS
    for i in reversed(range(at)):
        if own[i].kind in _OWN_CAUSES or event.timestamp_ms - own[i].timestamp_ms > limit_ms:
            # What happened since the generation before is the cause itself.
            return None
        if own[i].kind is Kind.REBALANCE_COMPLETED:
            break
    else:
        return None
    changed = any(cause.kind in _OWN_CAUSES for cause in _led_to(own, i, "rebalance"))
    return i if changed else _root(own, i)


def _led_to(own: Sequence[Event], at: int, about: str) -> list[Event]:
    """Return what happened between the last quiet moment and the event."""
    if about == "given up":
        return [
            event
            for event in own[:at]
            if event.kind is Kind.RECORDS_RELEASED
            and any(r.overlaps(other) for r in event.records for other in own[at].records)
        ]
    evidence: list[Event] = []
    for event in reversed(own[:at]):
        # The events of one batch belong together, including a rebalance that it completes.
        same_step = event.log_topic == own[at].log_topic and event.offset >= own[at].offset
        if not same_step and event.kind in (Kind.REBALANCE_COMPLETED, Kind.GROUP_CREATED):
            break
        # Offsets are reset and groups deleted while they have no members: earlier events do not matter.
        if about in ("rewind", "deletion") and event.kind is Kind.GROUP_EMPTIED:
            evidence.append(event)
            break
        if event.kind in _LEADING_UP and not (about == "rewind" and event.kind is Kind.REBALANCE_STARTED):
            evidence.append(event)
    return evidence[::-1]
