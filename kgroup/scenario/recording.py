"""Turns a group's log into a scenario; everything that no record says is listed as unknown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter

from kgroup.domain import MemberStatus, TopicPartition, count_of
from kgroup.durations import iso
from kgroup.errors import ConfigError
from kgroup.history.fold.explain import Membership
from kgroup.history.fold.folding import Note
from kgroup.history.fold.leave_causes import Way
from kgroup.history.fold.transition import GroupStep
from kgroup.history.fold.view import CLASSIC, CONSUMER, KINDS, SIMPLE, RecordedMember, View
from kgroup.history.log_items import CommitRun, Gap, Marker
from kgroup.protocol.subscription import PROTOCOL_TYPE
from kgroup.scenario.forms import duration_written
from kgroup.scenario.recorded import (
    FOR_NOW,
    RESTARTED,
    RETURNS,
    STATES,
    UNKNOWN,
    VERSION,
    Commit,
    DeleteGroup,
    DeleteOffsets,
    Grow,
    Head,
    Heartbeat,
    Member,
    Rebalance,
    Recorded,
    Restart,
    Start,
    Step,
    Stop,
    Subscribe,
)

NEVER_RECORDED = (
    "heartbeats, rejected requests and the reasons of clients leave no record",
    "a commit names no member: the committer may be the owner or any other client",
)
CLASSIC_UNRECORDED = (
    "a classic rebalance is recorded when it completes: when it began and members joined is unknown",
    "of a member's assignors only the one that was chosen is recorded",
)
_REMOVED = (Way.SESSION_ENDED, Way.REMOVED)
"""How an instance id may have gone that came again."""
_PLACE = attrgetter("epoch", "state", "assigned", "revoking")


def record(
    group: str,
    notes: Sequence[Note],
    *,
    since_ms: int | None = None,
    until_ms: int | None = None,
    unread: int = 0,
) -> Recorded:
    """Return what happened in a group from the first time to the second; `notes` are all of its log.

    `unread` is the number of unreadable parts of the log, which the file lists as unknown. ConfigError for a
    kind of group that is not supported yet, or if nothing happened in that time.
    """
    recorder = Recorder(
        group, [f"what {count_of(unread, 'part')} of the log say: not read"] if unread else []
    )
    for note in notes:
        if until_ms is not None and _time_of(note) > until_ms:
            break
        if since_ms is not None and -1 < _time_of(note) < since_ms:
            recorder.pass_by(note)
        else:
            recorder.take(note)
    return recorder.recorded()


def _time_of(note: Note) -> int:
    if isinstance(note, CommitRun):
        return max(part.last.timestamp_ms for part in note.parts)
    return note.timestamp_ms


@dataclass(slots=True)
class Names:
    """Names of members: the instance id, else the client id, numbered if several share it."""

    specs: dict[str, Member] = field(default_factory=dict)
    of: dict[str, str] = field(default_factory=dict)
    """The names of the current members, by member id."""

    def name(self, member: RecordedMember) -> str:
        """Return the name of a member, a free one if it has none yet."""
        if member.member_id not in self.of:
            base, taken = member.instance_id or member.client_id or member.member_id, set(self.of.values())
            free, number = base, 1
            while free in taken or not self._fits(free, member):
                number += 1
                free = f"{base}#{number}"
            self.of[member.member_id] = free
            spec = Member(
                instance_id=member.instance_id,
                client_id=member.client_id or None,
                host=member.host.lstrip("/") or None,
                rack=member.rack_id,
                assignor=member.assignor,
                session_timeout_ms=member.session_timeout_ms if member.session_timeout_ms > 0 else None,
                rebalance_timeout_ms=member.rebalance_timeout_ms if member.rebalance_timeout_ms > 0 else None,
                topics=member.topics or None,
            )
            self.specs.setdefault(free, spec)
        return self.of[member.member_id]

    def forget(self, member: RecordedMember) -> str:
        """Return the name of a member that left: the next member of its client gets it again."""
        return self.of.pop(member.member_id)

    def _fits(self, name: str, member: RecordedMember) -> bool:
        known = self.specs.get(name)
        return known is None or (known.instance_id, known.client_id) == (
            member.instance_id,
            member.client_id or None,
        )


class Recorder:
    """Takes the notes of one group in order."""

    def __init__(self, group: str, unknown: list[str]) -> None:
        self.group = group
        self.began_ms: int | None = None
        self.from_nothing = True
        self.protocol = CLASSIC
        self.steps: list[Step] = []
        self._names = Names()
        self._now_ms = 0
        self._last_ids: dict[str, str] = {}
        self._subscribed: dict[str, tuple[str, ...]] = {}
        self._sizes: dict[str, int] = {}
        self._first_sizes: dict[str, int] = {}
        self._offsets: dict[TopicPartition, int] = {}
        self._there: View | None = None
        self._unknown = unknown
        self._is_classic = False
        self._unclear = self._departures = self._transactions = 0

    def pass_by(self, note: Note) -> None:
        """Process a note before the scenario begins: only its result matters."""
        if isinstance(note, GroupStep):
            self._there = note.after
            self.from_nothing = False
        elif isinstance(note, CommitRun):
            self._offsets |= {part.place: part.last.offset for part in note.parts}

    def take(self, note: Note) -> None:
        """Process the next note."""
        before_ms = self._now_ms
        at_ms = _time_of(note)
        if self.began_ms is None and at_ms >= 0:
            self.began_ms = at_ms
        if self.began_ms is not None and at_ms >= 0:
            self._now_ms = max(at_ms - self.began_ms, before_ms)
        if self._there is not None:
            self._found(self._there)
            self._there = None
        match note:
            case GroupStep():
                self._step(note)
            case CommitRun():
                self._size(part.place for part in note.parts)
                for offsets, commits in _commits(note, self._offsets):
                    self._commit(offsets, commits)
                self._offsets |= {part.place: part.last.offset for part in note.parts}
            case Marker():
                self._transactions += 1
            case Gap():
                self._unknown.append(
                    f"{count_of(note.missing, 'record')} up to offset {note.last}, of this group or another: "
                    f"compacted, or not in this copy; missing before {duration_written(self._now_ms)}"
                )

    def recorded(self) -> Recorded:
        """Return the scenario; ConfigError if nothing happened."""
        if not self.steps:
            raise ConfigError(
                f"there is nothing to play of group {self.group}: no member joined and nothing was committed",
                "without --since and --until it covers the whole log",
            )
        head = Head(
            scenario=VERSION,
            name=self.group,
            summary=f"events in __consumer_offsets of group {self.group}",
            group=self.group,
            protocol=self.protocol,
            began=None if self.began_ms is None else iso(self.began_ms),
            from_nothing=self.from_nothing,
            topics=dict(sorted({**self._sizes, **self._first_sizes}.items())),
            unknown=tuple(self._all_unknown()),
        )
        return Recorded(head, self._names.specs, tuple(self.steps))

    def _all_unknown(self) -> Iterator[str]:
        yield from NEVER_RECORDED
        if self.protocol == CLASSIC:
            yield from CLASSIC_UNRECORDED
        yield "how many partitions topics have: they are counted as far as they were assigned or committed"
        if self._unclear:
            yield (
                f"how members went: {self._unclear} of {self._departures} may have gone in more than one way "
                f"(cause: {UNKNOWN}); kgroup plays the first that is possible"
            )
        collapsed = sum(isinstance(step, Commit) and step.commits is not None for step in self.steps)
        if collapsed:
            yield f"the offsets in {count_of(collapsed, 'run')} of commits: only the last ones are here"
        if self._transactions:
            yield f"{count_of(self._transactions, 'transaction')} with offsets: they are not among the steps"
        if self.began_ms is None:
            yield "when anything happened: the records have no timestamps"
        yield from self._unknown

    def _found(self, view: View) -> None:
        """Make members that existed before the first step join at once."""
        self._check(view)
        if view.kind != CLASSIC:
            return
        for member in view.members.values():
            self._start(member)
        self._unknown.append("how members present at the beginning had joined")
        self._rebalance(view)

    def _check(self, view: View) -> None:
        if view.kind == CONSUMER and not self._is_classic:
            self.protocol = CONSUMER
        if view.kind not in ("", SIMPLE, self.protocol):
            what = f"{self.group} is a {view.kind} group, or was one"
            known = "scenarios are written of classic groups, and of consumer groups"
            raise ConfigError(what, f"{known}; --until ends before another kind began")
        self._is_classic |= view.kind == CLASSIC
        patterns = [member.regex for member in view.members.values() if member.regex]
        if patterns:
            what = f"{self.group} subscribes by a pattern, {patterns[0]}: no scenario has those yet"
            raise ConfigError(what, "--until ends before that")
        if self.protocol == CONSUMER and not self.from_nothing:
            what = f"the beginning of {self.group} is not in what was read"
            raise ConfigError(
                what, "a scenario of a consumer group is of all that happened: leave --since out"
            )
        if view.kind == CONSUMER:
            return
        if view.members and view.protocol_type != PROTOCOL_TYPE:
            what = f"the members of {self.group} speak {view.protocol_type!r}, not {PROTOCOL_TYPE!r}"
            raise ConfigError(what, "scenarios are written of groups of consumers")

    def _step(self, step: GroupStep) -> None:
        before, after = step.before, step.after
        self.from_nothing &= step.solid or bool(self.steps)
        self._check(after)
        if not step.solid and not self.steps:
            if after.kind == CLASSIC:
                self._found(after)
            return
        if step.removed and after.kind:
            self._offsets = {p: at for p, at in self._offsets.items() if p not in step.removed}
            self.steps.append(DeleteOffsets(at_ms=self._now_ms, partitions=step.removed))
        if before.kind in KINDS and after.kind not in KINDS:
            self._offsets.clear()
            self.steps.append(DeleteGroup(at_ms=self._now_ms))
        elif after.kind == CLASSIC:
            self._members(step, Membership.between(before, after))
            if after.epoch != before.epoch and (after.epoch > 0 or after.members):
                first = max(before.epoch, 0) + 1
                if first < after.epoch and self.steps:
                    one = after.epoch == first + 1
                    which = f"generation {first}" if one else f"generations {first} to {after.epoch - 1}"
                    self._unknown.append(f"who was in {which}: no record says, as it did not complete")
                self._rebalance(after)
        elif after.kind == CONSUMER:
            self._heartbeat(step, Membership.between(before, after))

    def _heartbeat(self, step: GroupStep, members: Membership) -> None:
        """Write the records of one heartbeat: who joined, left and moved, and the group's epochs."""
        before, after, steps = step.before, step.after, len(self.steps)
        computed = after.assignment_epoch != before.assignment_epoch or before.kind != CONSUMER
        pairs = [*members.kept, *members.replaced, *((None, new) for new in members.joined)]
        moved = [
            new for old, new in pairs if new.state in STATES and (old is None or _PLACE(old) != _PLACE(new))
        ]
        # They show how many partitions topics have: a target has all of what is subscribed to, and members
        # have those of a target.
        targets = chain.from_iterable(m.target or () for m in after.members.values()) if computed else ()
        known = dict(self._sizes)
        self._size(chain(targets, *(chain(m.assigned, m.revoking) for m in moved)))
        grown = {topic: size for topic, size in self._sizes.items() if known.get(topic, size) < size}
        if grown:
            self.steps.append(Grow(at_ms=self._now_ms, topics=grown))
        self._first_sizes |= {topic: size for topic, size in self._sizes.items() if topic not in known}
        self._members(step, members)
        if len(self.steps) == steps and not moved and not computed and after.epoch == before.epoch:
            return
        if len(moved) > 1:
            self._unknown.append(
                f"which member's heartbeat moved {len(moved)} at {duration_written(self._now_ms)}"
            )
        name, member = self._names.name, moved[-1] if moved else None
        self.steps.append(
            Heartbeat(
                at_ms=self._now_ms,
                epoch=after.epoch,
                assignment_epoch=after.assignment_epoch,
                target={name(m): tuple(sorted(m.target or ())) for m in after.members.values()}
                if computed
                else None,
                member=None if member is None else name(member),
                member_epoch=None if member is None else member.epoch,
                state=None if member is None else member.state,
                owns=() if member is None else tuple(sorted(member.assigned)),
                revoking=() if member is None else tuple(sorted(member.revoking)),
            )
        )

    def _members(self, step: GroupStep, members: Membership) -> None:
        # A leader that comes back leads on; one that is new joined a group that was empty by then.
        leader = next((m for m in members.joined if m.member_id == step.after.leader), None)
        replaced = {} if leader else {new.member_id: old for old, new in members.replaced}
        removed = (old for old, _ in members.replaced) if leader else ()
        for member in sorted((*members.left, *removed), key=self._names.name):
            self._stop(member, [str(way) for way in step.ways.get(member.member_id, _REMOVED)])
        for old, member in members.kept:
            self._subscribe(member)
            if member.state is MemberStatus.LEFT and old.state is not MemberStatus.LEFT:
                self.steps.append(Stop(at_ms=self._now_ms, member=self._names.name(member), cause=FOR_NOW))
        for _, member in members.returned:
            self._start(member)
        came = {member.member_id for member in (*members.joined, *(new for _, new in members.replaced))}
        arrived = [member for member_id, member in step.after.members.items() if member_id in came]
        for member in sorted(arrived, key=lambda m: m is not leader):
            if member.member_id in replaced:
                self._restart(step, replaced[member.member_id], member)
            else:
                self._start(member)

    def _start(self, member: RecordedMember) -> None:
        name = self._names.name(member)
        self._subscribe(member)
        back = self._last_ids.get(name) == member.member_id
        self._last_ids[name] = member.member_id
        self.steps.append(Start(at_ms=self._now_ms, member=name, back=back))

    def _restart(self, step: GroupStep, old: RecordedMember, new: RecordedMember) -> None:
        name = self._names.forget(old)
        self._names.of[new.member_id] = name
        self._last_ids[name] = new.member_id
        self._subscribe(new)
        if old.state is MemberStatus.LEFT:
            self.steps.append(Restart(at_ms=self._now_ms, member=name, cause=RESTARTED))
            return
        same = step.after.kind == CLASSIC and step.after.epoch == step.before.epoch
        generation = step.after.epoch if same else None
        self.steps.append(
            Restart(at_ms=self._now_ms, member=name, cause=UNKNOWN, possible=RETURNS, generation=generation)
        )
        self._departures += 1
        self._unclear += 1

    def _stop(self, member: RecordedMember, ways: list[str]) -> None:
        self._departures += 1
        name = self._names.forget(member)
        known = len(ways) == 1
        self._unclear += not known
        self.steps.append(
            Stop(
                at_ms=self._now_ms,
                member=name,
                cause=ways[0] if known else UNKNOWN,
                possible=() if known else tuple(ways),
            )
        )

    def _subscribe(self, member: RecordedMember) -> None:
        name = self._names.name(member)
        known = self._subscribed.setdefault(name, member.topics)
        if known != member.topics:
            self._subscribed[name] = member.topics
            self.steps.append(Subscribe(at_ms=self._now_ms, member=name, topics=member.topics))

    def _rebalance(self, view: View) -> None:
        name = self._names.name
        shares = {name(m): tuple(sorted(m.assigned)) for m in view.members.values()}
        for share in shares.values():
            self._size(share)
        leader = view.members.get(view.leader or "")
        self.steps.append(
            Rebalance(
                at_ms=self._now_ms,
                generation=view.epoch,
                leader=None if leader is None else name(leader),
                assignor=view.assignor if view.members else None,
                assigned=shares,
            )
        )

    def _size(self, places: Iterable[TopicPartition]) -> None:
        for partition in places:
            self._sizes[partition.topic] = max(self._sizes.get(partition.topic, 0), partition.partition + 1)

    def _commit(self, offsets: Mapping[TopicPartition, int], commits: int) -> None:
        """Write commits; those separated only by records without effect are one step."""
        last = self.steps[-1] if self.steps else None
        if isinstance(last, Commit) and all(at >= last.offsets.get(p, 0) for p, at in offsets.items()):
            self.steps.pop()
            commits += last.commits or len(last.offsets)
            offsets = {**last.offsets, **offsets}
        more = commits if commits > len(offsets) else None
        self.steps.append(Commit(at_ms=self._now_ms, offsets=offsets, commits=more))


def _commits(
    run: CommitRun, known: Mapping[TopicPartition, int]
) -> Iterator[tuple[dict[TopicPartition, int], int]]:
    """Yield the commits of a run that matter: the last ones, and those around each rewind."""
    points: list[tuple[int, TopicPartition, int]] = []
    for part in run.parts:
        if part.first < known.get(part.place, -1):
            points.append((part.first_log_offset, part.place, part.first))
        points.append((part.last.log_offset, part.place, part.last.offset))
    for rewind in run.rewinds:
        partition = TopicPartition(rewind.topic, rewind.partition)
        points += [
            (rewind.log_offset - 1, partition, rewind.before),
            (rewind.log_offset, partition, rewind.after),
        ]
    left = sum(part.commits for part in run.parts)
    at_once: dict[TopicPartition, int] = {}
    for _, partition, offset in sorted(dict.fromkeys(points)):
        if partition in at_once:
            yield at_once, len(at_once)
            left -= len(at_once)
            at_once = {}
        at_once[partition] = offset
    yield at_once, left
