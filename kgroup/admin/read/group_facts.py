"""What one look shows of a group's partitions, as facts for `status_of`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from kgroup.admin.models import (
    ASSIGNING,
    CLASSIC,
    REBALANCING,
    RECONCILING,
    SHARE,
    GroupDescription,
    Member,
)
from kgroup.admin.read.members import partitions_of
from kgroup.admin.read.offsets import ListedOffset
from kgroup.admin.read.readable import CLOCK_UNSURE, LogView
from kgroup.admin.refusals import code_name, is_gone, naming
from kgroup.admin.statuses import HISTORY, NO_EPOCHS, Epochs, Owner, PartitionFacts, Status, Unseen, status_of
from kgroup.domain import MemberStatus, TopicPartition
from kgroup.errors import KgroupError
from kgroup.patterns import Pattern, compile_regex, fault_of

COMMITS_UNREAD = Unseen("offsets", "NOT_READ", "what is committed could not be read")
ENDS = "log ends"
NOT_READ = Unseen(
    HISTORY, "NOT_LOOKED_AT", "records wait; whether its reader goes on is in the history, which doctor reads"
)
"""Commands that read no history say so where it decides."""
_MEMBERS = Unseen("members", "NOT_SEEN", "the group's members are not known")
_OWNERS = Unseen("assignments", "NOT_READABLE", "what some members own is not reported in a known form")
_UNRESOLVED = Unseen(
    "subscriptions",
    "NOT_RESOLVED",
    "a pattern matches its topic, and no member has it: none of them sends heartbeats, or they may not "
    "describe it",
)
_SUBSCRIPTIONS = Unseen("subscriptions", "NOT_READABLE", "what some members subscribe to is not known")


class GroupFacts:
    """The facts that all partitions of a group share; `unread` is why its commits could not be read."""

    def __init__(self, group: GroupDescription, unread: Unseen | None = None) -> None:
        self._group = group
        self.unread = unread
        self._shared = group.type == SHARE
        self._members: int | Unseen = _MEMBERS if group.members is None else len(group.members)
        self._rebalances = group.type == CLASSIC and group.state in REBALANCING
        opaque = any(member.assignment is None for member in group.known_members)
        self._nobody: Unseen | None = _OWNERS if opaque and not self._shared else None
        # What a member that left for now has to confirm waits for its session's end, and nothing moves.
        still = {member.state for member in group.known_members} <= {MemberStatus.STABLE, MemberStatus.LEFT}
        self._moving = computes_target(group) or (group.state == RECONCILING and not still)
        self._waiting: dict[tuple[str, bool, bool], Status] = {}
        # Then it is unread, whatever its topic and age.
        empty = self._members == 0 and not self._rebalances and not self._moving and unread is None
        self.waits = status_of(PartitionFacts(1, committed=0, members=0)) if empty else None
        """The status of all that waits, of a group without members."""

    def waiting(
        self,
        partition: TopicPartition,
        offset: int,
        owner: Member | None,
        end: ListedOffset | KgroupError,
        view: LogView,
    ) -> Status | None:
        """Return the status of a partition with records to read from its committed offset on, else None.

        Most partitions of groups that are behind are such: those of one owner, or topic, are judged once.
        """
        if self.unread is not None or offset not in view.waits:
            return None
        if self.waits is not None:
            return self.waits
        owner, waited = owner or self._awaited.get(partition), view.waited(offset)
        if owner is not None and not isinstance(waited, int) and waited is not CLOCK_UNSURE:
            return None
        young = waited == 0
        key = (partition.topic if owner is None else owner.member_id, young, self._settled(partition, owner))
        status = self._waiting.get(key)
        if status is None:
            status = self._waiting[key] = status_of(self.of(partition, offset, owner, end, None, view))
        return status

    def of(
        self,
        partition: TopicPartition,
        offset: int | None,
        owner: Member | None,
        end: ListedOffset | KgroupError,
        log_start: int | None,
        view: LogView | None,
        epochs: Epochs | Unseen = NO_EPOCHS,
    ) -> PartitionFacts:
        """Return the facts of one partition; `log_start` where it was asked for."""
        log_end = end.offset if isinstance(end, ListedOffset) else None
        owner = owner or self._awaited.get(partition)
        begins = log_start if offset is None else offset
        start: int | Unseen = 0 if log_start is None else log_start
        if offset is None and log_start is None:
            start = Unseen("log start", "NOT_READ", f"{partition}: where its log begins is not known")
        stable: int | Unseen | None = log_end
        readable: bool | Unseen = True
        damaged: int | None = None
        waited: int | Unseen = 0
        opened: int | Unseen = 0
        if view is not None and begins is not None and log_end is not None:
            start = start if view.start is None else view.start
            stable = min(view.stable, log_end) if isinstance(view.stable, int) else view.stable
            readable, waited = view.readable(begins), view.waited(begins)
            damaged = view.damaged(begins)
            opened = view.held_back_ms(stable) if isinstance(stable, int) else waited
            if offset is not None and isinstance(stable, int) and offset > stable:
                readable = True  # only a reader of uncommitted records has committed that
        subscribed = True if owner is not None else self._subscribed(partition.topic, offset)
        if owner is None and subscribed is True:
            owner = self._awaited_by_all
        # The coordinator resolves patterns within seconds, when their members send heartbeats.
        resolving = subscribed is _UNRESOLVED and waited == 0
        return PartitionFacts(
            end.offset if isinstance(end, ListedOffset) else _unread(partition, end),
            exists=not is_gone(end),
            committed=self.unread or offset,
            epochs=epochs,
            start=start,
            stable=stable,
            readable=readable,
            damaged=damaged,
            waited_ms=waited,
            open_ms=opened,
            settled=self._settled(partition, owner) and not resolving,
            subscribed=subscribed,
            members=self._members,
            owner=self._nobody if owner is None else _owner(owner),
            shared=self._shared,
            progress=NOT_READ,
        )

    def _settled(self, partition: TopicPartition, owner: Member | None) -> bool:
        """Return whether nothing about a partition's owner is about to change."""
        if self._rebalances:
            return False
        if owner is not None:
            return owner.state != MemberStatus.REVOKING or partition in partitions_of(owner.target_assignment)
        return not self._moving and partition not in self._targets

    @cached_property
    def _targets(self) -> frozenset[TopicPartition]:
        there = (member for member in self._group.known_members if member.state != MemberStatus.LEFT)
        return frozenset().union(*(partitions_of(member.target_assignment) for member in there))

    @cached_property
    def _awaited(self) -> Mapping[TopicPartition, Member]:
        """The members that left for now, by the partitions that they will have when they are back."""
        return {
            partition: member
            for member in self._group.known_members
            if member.state == MemberStatus.LEFT
            for partition in partitions_of(member.target_assignment)
        }

    @cached_property
    def _awaited_by_all(self) -> Member | None:
        """The member that left for now without which nobody has the next target computed."""
        if self._group.state != ASSIGNING or self._moving:
            return None
        return next((m for m in self._group.known_members if m.state == MemberStatus.LEFT), None)

    def _subscribed(self, topic: str, committed: int | None) -> bool | Unseen:
        """Return whether a member subscribes to a topic, by name or by pattern."""
        names, patterns = self._subscriptions
        if topic in names:
            return True
        matching = [regex for regex, pattern in patterns.items() if pattern.fullmatch(topic)]
        if matching:
            resolved = committed is not None or unassigned_patterns(self._group).intersection(matching)
            return True if resolved else _UNRESOLVED
        return _SUBSCRIPTIONS if self._opaque else False

    @cached_property
    def _subscriptions(self) -> tuple[frozenset[str], Mapping[str, Pattern]]:
        names = {topic for m in self._group.known_members for topic in m.subscribed_topics or ()}
        return frozenset(names), patterns_of(self._group)

    @cached_property
    def _opaque(self) -> bool:
        return any(
            member.subscribed_topics is None
            or (member.subscribed_regex and fault_of(member.subscribed_regex))
            for member in self._group.known_members
        )


def computes_target(group: GroupDescription) -> bool:
    """Return whether a member is there whose heartbeats have the target computed that its group waits for.

    Those of the classic protocol do not (KIP-848), and one that left for now sends none.
    """
    there = (member for member in group.known_members if member.state != MemberStatus.LEFT)
    return group.state == ASSIGNING and any(member.protocol != CLASSIC for member in there)


def unassigned_patterns(group: GroupDescription) -> set[str]:
    """Return the regular expressions of which no current assignment shows the topics.

    The coordinator resolves an expression when one of its members sends a heartbeat (KIP-848): not while all
    of them left for now. In a group that is Assigning, the assignment is an older epoch's.
    """
    there = () if group.state == ASSIGNING else group.known_members
    resolved = {member.subscribed_regex for member in there if member.state != MemberStatus.LEFT}
    return patterns_of(group).keys() - resolved


def patterns_of(group: GroupDescription) -> dict[str, Pattern]:
    """Return the regular expressions of a group's members, compiled, without those that no broker reads."""
    regexes = {member.subscribed_regex for member in group.known_members}
    return {regex: compile_regex(regex) for regex in regexes if regex and fault_of(regex) is None}


def _owner(member: Member) -> Owner:
    return Owner(member.name, member.state == MemberStatus.LEFT)


def _unread(partition: TopicPartition, failure: KgroupError) -> Unseen:
    return Unseen(ENDS, code_name(failure), naming(partition, failure.message))


def unreadable_of(facts: PartitionFacts, lag: int | None) -> int | None:
    """Return how many of a partition's lag are shown to hold no record: purged, compacted, or markers."""
    if lag is None or isinstance(facts.committed, Unseen):
        return None
    if facts.start == facts.end:
        return lag
    if facts.readable is False and isinstance(facts.stable, int) and isinstance(facts.end, int):
        return lag - (facts.end - facts.stable)
    # Which records of a share group are done beyond its start offset is not known.
    if isinstance(facts.start, Unseen) or facts.committed is None or facts.shared:
        return 0
    return min(max(facts.start - facts.committed, 0), lag)
