"""Watch a migration: members converted and remaining, unowned partitions, what holds it up.

Polls are samples of the describe answers. The time between two polls is bounded, not guessed: a partition
that changed its owner in between had none for anything from zero to the time between the polls.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated

from kgroup.admin.discovery import Answers, ClusterView
from kgroup.admin.migrate.evidence import gather_all
from kgroup.admin.migrate.models import target_of
from kgroup.admin.migrate.plan import plan_of
from kgroup.admin.models import (
    EMPTY,
    LEFT_FOR_NOW,
    PREPARING,
    REBALANCING,
    STABLE,
    Assignment,
    GroupDescription,
    Member,
    TopicDescription,
)
from kgroup.admin.read.describe import groups_only
from kgroup.admin.read.members import assignment_of, partitions_of
from kgroup.admin.shell import command, list_item
from kgroup.domain import MemberStatus, TopicPartition, count_of, first_of
from kgroup.errors import KgroupError

WATCHING, DONE, STUCK = "watching", "done", "stuck"
SHOWN = 5


@dataclass(frozen=True, slots=True)
class Unowned:
    """Partition-milliseconds without an owner, between these bounds."""

    at_least: int = 0
    at_most: int = 0


@dataclass(frozen=True, slots=True)
class Wait:
    """One thing the migration waits for, and when it was first seen."""

    code: str
    message: str
    hint: str | None
    since_ms: int


@dataclass(frozen=True, slots=True)
class Look:
    """The migration at one moment; times in ms since 1970. `moved` of `members` speak the new protocol."""

    timestamp_ms: int
    group_id: str
    direction: Annotated[str, ("upgrade", "downgrade")]
    status: Annotated[str, ("watching", "done", "stuck")]
    type: str | None = None
    state: str | None = None
    members: int = 0
    moved: int = 0
    remaining: tuple[str, ...] = ()
    group_epoch: int | None = None
    assignment_epoch: int | None = None
    unowned: Assignment = ()
    unowned_partition_ms: Unowned = Unowned()
    waits: tuple[Wait, ...] = ()
    stalled_ms: int = 0


@dataclass(slots=True)
class Tracker:
    """A builder of looks from descriptions; the host provides the moment and the topics' partitions.

    `stuck_after_ms` without any change is stuck; a group without visible members of the old protocol is done
    when as many members exist as ever did (`most`), or after `settle_ms` without a change.
    """

    group_id: str
    direction: str
    stuck_after_ms: int
    settle_ms: int = 10_000
    most: int = 0
    _owners: dict[TopicPartition, str | None] = field(default_factory=dict)
    _known: set[TopicPartition] = field(default_factory=set)
    _unowned: Unowned = field(default_factory=Unowned)
    _seen_ms: int | None = None
    _blind: bool = False
    _signature: object = None
    _changed_ms: int | None = None
    _since: dict[tuple[str, str], int] = field(default_factory=dict)

    def observe(
        self,
        now_ms: int,
        group: GroupDescription,
        partitions: Collection[TopicPartition],
        blockers: Mapping[str, tuple[str, str | None]],
    ) -> Look:
        """Return the look of a description; `blockers` are the plan's, by code, as message and hint."""
        self._account(now_ms, group, partitions)
        signature = _signature(group)
        if self._changed_ms is None or signature != self._signature:
            self._signature, self._changed_ms = signature, now_ms
        self.most = max(self.most, len(group.known_members))
        remaining = [member for member in group.known_members if member.protocol != target_of(self.direction)]
        waits = self._since_when(now_ms, self._waits(group, remaining, blockers))
        stalled_ms = now_ms - self._changed_ms
        status = WATCHING
        over = group.type == target_of(self.direction) and not remaining and group.state in (STABLE, EMPTY)
        if over and (len(group.known_members) >= self.most or stalled_ms >= self.settle_ms):
            status, waits = DONE, ()
        elif stalled_ms >= self.stuck_after_ms:
            status = STUCK
        return Look(
            timestamp_ms=now_ms,
            group_id=self.group_id,
            direction=self.direction,
            status=status,
            type=group.type,
            state=group.state,
            members=len(group.known_members),
            moved=len(group.known_members) - len(remaining),
            remaining=tuple(sorted(member.name for member in remaining)),
            group_epoch=group.group_epoch,
            assignment_epoch=group.assignment_epoch,
            unowned=assignment_of(p for p, owner in self._owners.items() if owner is None),
            unowned_partition_ms=self._unowned,
            waits=waits,
            stalled_ms=stalled_ms,
        )

    def look(self, now_ms: int, seen: Sight | KgroupError) -> Look:
        """Return the look of a poll, or of its failure."""
        if isinstance(seen, KgroupError):
            return self.failed(now_ms, seen)
        return self.observe(now_ms, seen.group, seen.partitions, seen.blockers)

    def failed(self, now_ms: int, error: KgroupError) -> Look:
        """Return a failed look; enough of them in a row are stuck."""
        self._blind = True
        waits = self._since_when(now_ms, [("unreachable", error.message, error.hint)])
        if self._changed_ms is None:
            self._changed_ms = now_ms
        stalled_ms = now_ms - self._changed_ms
        status = STUCK if stalled_ms >= self.stuck_after_ms else WATCHING
        return Look(
            timestamp_ms=now_ms,
            group_id=self.group_id,
            direction=self.direction,
            status=status,
            unowned_partition_ms=self._unowned,
            waits=waits,
            stalled_ms=stalled_ms,
        )

    def _account(self, now_ms: int, group: GroupDescription, partitions: Collection[TopicPartition]) -> None:
        """Bound the time without owner since the last look, partition by partition."""
        # Partitions of a member that left for now have no reader (as replay-log counts it).
        present = [m for m in group.known_members if m.member_epoch != LEFT_FOR_NOW]
        owners = {p: m.member_id for m in present for p in partitions_of(m.assignment)}
        self._known |= set(partitions) | owners.keys()
        if self._seen_ms is not None:
            passed = now_ms - self._seen_ms
            least = most = 0
            for partition, before in self._owners.items():
                after = owners.get(partition)
                least += passed if before is None and after is None and not self._blind else 0
                most += passed if before is None or before != after else 0
            total = self._unowned
            self._unowned = Unowned(total.at_least + least, total.at_most + most)
        self._owners = {partition: owners.get(partition) for partition in self._known}
        self._seen_ms, self._blind = now_ms, False

    def _waits(
        self,
        group: GroupDescription,
        remaining: Collection[Member],
        blockers: Mapping[str, tuple[str, str | None]],
    ) -> list[tuple[str, str, str | None]]:
        waits = [(f"blocked:{code}", message, hint) for code, (message, hint) in blockers.items()]
        if group.state in REBALANCING:
            what = "members to rejoin" if group.state == PREPARING else "the leader's assignment"
            waits.append(("rebalancing", f"{group.state}: the coordinator waits for {what}", None))
        if group.state == EMPTY and group.type != target_of(self.direction):
            hint = command(f"{self.direction} execute", group.group_id)
            waits.append(("empty", "the group is empty and has not changed over", hint))
        for member in group.known_members:
            waits += _held_up(group, member)
        away = [m for m in remaining if m.member_epoch != LEFT_FOR_NOW]
        if away:
            names = ", ".join(sorted(m.called for m in away)[:SHOWN]) + (" …" if len(away) > SHOWN else "")
            waits.append(
                ("not_rolled", f"{len(away)} of {len(group.known_members)} to be restarted: {names}", None)
            )
        elif 0 < len(group.known_members) < self.most:
            there = f"{count_of(len(group.known_members), 'member')}, {self.most} were there"
            waits.append(("fewer_members", f"{there}: a successor has not joined yet", None))
        return waits

    def _since_when(self, now_ms: int, waits: list[tuple[str, str, str | None]]) -> tuple[Wait, ...]:
        """Return the waits, each with the moment since which it has been seen without a break."""
        self._since = {(c, m): self._since.get((c, m), now_ms) for c, m, _ in waits}
        return tuple(Wait(c, m, hint, self._since[c, m]) for c, m, hint in waits)


def _held_up(group: GroupDescription, member: Member) -> Iterator[tuple[str, str, str | None]]:
    owned, target = partitions_of(member.assignment), partitions_of(member.target_assignment)
    if member.state == MemberStatus.LEFT:
        hint = "start its successor under the same instance id, or: "
        hint += command("remove-members", group.group_id, options=f"--instance-id {list_item(member.name)}")
        yield "left", f"{member.called} left for now and keeps {_some(owned)}", hint
    elif member.state == MemberStatus.REVOKING:
        yield "revoking", f"{member.called} has not given up {_some(owned - target)}", None
    elif member.state == MemberStatus.WAITING:
        missing, members = target - owned, group.known_members
        holders = sorted({m.called for m in members if partitions_of(m.assignment) & missing})
        by = f", held by {', '.join(holders)}" if holders else ""
        yield "waiting", f"{member.called} waits for {_some(target - owned)}{by}", None
    elif member.state == MemberStatus.BEHIND:
        epochs = f"epoch {member.member_epoch}, the assignment's is {group.assignment_epoch}"
        yield "behind", f"{member.called} has not confirmed its assignment ({epochs})", None


def _some(partitions: Collection[TopicPartition]) -> str:
    return first_of(sorted(partitions), SHOWN) or "nothing"


def _signature(group: GroupDescription) -> object:
    """Return a value that changes when something moves."""
    members = {(m.member_id, m.protocol, m.member_epoch, m.state, m.assignment) for m in group.known_members}
    return group.type, group.state, group.group_epoch, group.assignment_epoch, frozenset(members)


def watch_migration(
    cluster: ClusterView,
    group_id: str,
    direction: str,
    *,
    interval_s: float,
    stuck_after_s: float,
    stop_after_s: float = float("inf"),
) -> Iterator[Look]:
    """Yield looks until the migration is done or stuck, or time is up; the last look says which.

    A failed look is reported as such; only a failure of the first is raised.
    """
    tracker = Tracker(group_id, direction, int(stuck_after_s * 1000))
    eyes = Eyes(cluster, direction)
    first = True
    for _ in cluster.retry.looks(interval_s, stop_after_s):
        seen = eyes.see([group_id])[group_id]
        if first and isinstance(seen, KgroupError):
            raise seen
        first = False
        look = tracker.look(cluster.now_ms(), seen)
        yield look
        if look.status != WATCHING:
            return


@dataclass(frozen=True, slots=True)
class Sight:
    """One poll of a group: itself, its topics' partitions, the plan's blockers by code."""

    group: GroupDescription
    partitions: frozenset[TopicPartition]
    blockers: Mapping[str, tuple[str, str | None]]


@dataclass(slots=True)
class Eyes:
    """A poller of groups; a plan is made again only when its group has changed."""

    cluster: ClusterView
    direction: str
    _planned_for: dict[str, object] = field(default_factory=dict)
    _blockers: dict[str, Mapping[str, tuple[str, str | None]]] = field(default_factory=dict)

    def see(self, group_ids: Collection[str]) -> Answers[Sight]:
        """Return each group now, or why it cannot be seen; requests grow with the brokers."""
        try:
            groups = groups_only(self.cluster, group_ids)
            there = [group for group in groups.values() if isinstance(group, GroupDescription)]
            names = {
                group.group_id: {t for member in group.known_members for t in member.subscribed_topics or ()}
                for group in there
            }
            topics = self.cluster.topics(set().union(*names.values()))
            blockers = self._plans(there)
        except KgroupError as error:
            return dict.fromkeys(group_ids, error)
        sights: Answers[Sight] = {}
        for group_id, group in groups.items():
            if isinstance(group, KgroupError):
                sights[group_id] = group
                continue
            blocking = blockers[group_id]
            if isinstance(blocking, KgroupError):
                sights[group_id] = blocking
                continue
            # Every partition of the topics that its members name.
            partitions = frozenset(
                TopicPartition(name, known.partition)
                for name in names[group_id]
                if isinstance(topic := topics.get(name), TopicDescription)
                for known in topic.partitions
            )
            sights[group_id] = Sight(group, partitions, blocking)
        return sights

    def _plans(self, groups: Iterable[GroupDescription]) -> Answers[Mapping[str, tuple[str, str | None]]]:
        """Return the blocking checks of each group's plan, as long as the group has not changed over."""
        answers: Answers[Mapping[str, tuple[str, str | None]]] = {}
        changed: dict[str, object] = {}
        for group in groups:
            signature = _signature(group)
            if group.type == target_of(self.direction):
                answers[group.group_id] = {}
            elif self._planned_for.get(group.group_id) == signature:
                answers[group.group_id] = self._blockers[group.group_id]
            else:
                changed[group.group_id] = signature
        for group_id, evidence in gather_all(self.cluster, changed).items() if changed else ():
            if isinstance(evidence, KgroupError):
                answers[group_id] = evidence
                continue
            blockers = {c.code: (c.message, c.hint) for c in plan_of(evidence, self.direction).blockers}
            answers[group_id] = self._blockers[group_id] = blockers
            self._planned_for[group_id] = changed[group_id]
        return answers
