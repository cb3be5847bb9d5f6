"""Turns items of one partition of `__consumer_offsets` into events, and the state of every group.

Pure: no I/O, clock, randomness or logging. Same items, same events, however they were cut into chunks; a
group can be taken out between two items and continue in another fold (`snapshot`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from kgroup.domain import ZERO_UUID, TopicPartition, count_of, partitions_text, uuid_text
from kgroup.history.fold.changes import report_changes
from kgroup.history.fold.commits import Spans, rewound, transaction_ended
from kgroup.history.fold.events import Event, Kind
from kgroup.history.fold.ownership import GivenUp, Ownership
from kgroup.history.fold.removals import Removed, Today
from kgroup.history.fold.restarts import Restart
from kgroup.history.fold.state import GroupState
from kgroup.history.fold.topic_names import TopicNames
from kgroup.history.fold.transition import Carry, GroupStep
from kgroup.history.fold.view import CLASSIC, CONSUMER, KINDS, SHARE, RecordedMember, View, renamed
from kgroup.history.log_items import (
    RUN_OFFSETS,
    CommitRun,
    Committed,
    Gap,
    GroupRecord,
    Item,
    Marker,
    OffsetRemoved,
    PendingCommit,
    Rewind,
    Undecodable,
    other_topic,
)
from kgroup.protocol.group_records import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
)
from kgroup.protocol.share_records import ShareGroupMetadataKey
from kgroup.protocol.streams_records import StreamsGroupMetadataKey


class Holdings(NamedTuple):
    """The members of a group, with what they own, from a time (ms) on."""

    timestamp_ms: int
    members: tuple[RecordedMember, ...]


@dataclass(slots=True)
class _Open:
    """The records of a group in the current batch."""

    batch: int
    before: View
    first_offset: int
    last_offset: int
    timestamp_ms: int
    records: int = 0
    told: bool = False
    """Whether one of them says the group's epoch, or that there is none."""
    removed: dict[TopicPartition, Committed | None] = field(default_factory=dict)


@dataclass(slots=True)
class Group:
    """What the fold keeps of one group."""

    state: GroupState
    solid: bool
    ownership: Ownership = field(default_factory=Ownership)
    carry: Carry = field(default_factory=Carry)
    spans: Spans = field(default_factory=Spans)
    open: _Open | None = None
    first_offset: int = -1
    told: bool = False
    """Whether its epoch is that of a record of its own; else it follows from those of members."""
    gap_end: int = -1
    """Up to where records are missing since its epoch began, or of those that began it; -1 for none."""
    former: dict[TopicPartition, Committed] = field(default_factory=dict)
    """Offsets removed while there were members, as with their topic: the next commit may be of that one."""
    repeated: dict[TopicPartition, int] = field(default_factory=dict)
    """Since when (ms) offsets stand that were committed again: some readers do so while they do not get on.

    -1 where it may be that, as records are missing before the first commit.
    """

    def former_of(self, rewind: Rewind) -> Committed | None:
        """Return what was removed before the offset from which this commit went back; once."""
        return self.former.pop(TopicPartition(rewind.topic, rewind.partition), None)

    def stands(
        self, partition: TopicPartition, since_ms: int, now: Committed, was: Committed | None = None
    ) -> None:
        """Note since when a partition's newest commit has its offset, that `was` may have had before."""
        if was is not None and was.offset == now.offset:
            since_ms = self.repeated.get(partition, was.timestamp_ms)
        if since_ms < now.timestamp_ms:
            self.repeated[partition] = since_ms
        else:
            self.repeated.pop(partition, None)

    def begins_below(self, partition: TopicPartition, offset: int) -> None:
        """Note the first commit after a removal: below what was removed, it is of no former topic."""
        if partition in self.former and offset < self.former[partition].offset:
            del self.former[partition]


_EPOCHS = (GroupMetadataKey, ConsumerGroupMetadataKey, ShareGroupMetadataKey, StreamsGroupMetadataKey)
Note: TypeAlias = GroupStep | CommitRun | Marker | Gap
"""What happened to a group: its records in a batch, commits, the end of a transaction, missing records."""


class Extras(NamedTuple):
    """Inputs of a fold besides records: what a cluster reports, if asked; what the fold is to keep."""

    today: Today = Today()
    keep_owners: bool = False
    keep_notes: bool = False


NO_EXTRAS = Extras()


class Fold:
    """Folds one partition. `apply` returns the complete events; `finish` those still open.

    `topic_names` maps topic ids to names. With `keep_owners`, `owners` records who owned what after each
    change of a group; with `keep_notes`, `notes` are all that happened to each group, in order, and requests
    that share a batch are reported one by one.
    """

    def __init__(
        self,
        log_partition: int,
        topic_names: Mapping[bytes, str] | None = None,
        starts_at: int = 0,
        extras: Extras = NO_EXTRAS,
    ) -> None:
        self.log_partition = log_partition
        self.today = extras.today
        self.names = TopicNames(dict(topic_names or {}))
        self.groups: dict[str, Group] = {}
        self.owners: dict[str, list[Holdings]] | None = {} if extras.keep_owners else None
        self.notes: dict[str, list[Note]] | None = {} if extras.keep_notes else None
        self.missing = 0
        self.gap_end = starts_at - 1
        self.gap_timestamp_ms = -1
        self.whole = starts_at == 0
        self._block = -1
        self._open: dict[str, Group] = {}
        self._spans: dict[str, Group] = {}

    @property
    def block(self) -> int:
        """The block of `RUN_OFFSETS` offsets that is being read; -1 before the first item."""
        return self._block

    @property
    def states(self) -> dict[str, GroupState]:
        """The state of each group of which something is left."""
        return {name: g.state for name, g in self.groups.items() if g.state.kind}

    def repeated(self, group_id: str) -> Mapping[TopicPartition, int]:
        """Return since when (ms) offsets of a group stand that were committed again."""
        group = self.groups.get(group_id)
        return {} if group is None else group.repeated

    def restarts(self, group_id: str) -> tuple[Restart, ...]:
        """Return the static members of a group that returned after their session had expired, in order."""
        group = self.groups.get(group_id)
        return () if group is None else tuple(group.carry.absences.restarts)

    def apply(self, item: Item) -> list[Event]:
        """Process the next item; return the events that it completes, in order."""
        out: list[Event] = []
        if isinstance(item, GroupRecord):
            self._enter(item.batch, out)
            self._record(item, out)
        elif isinstance(item, CommitRun):
            self._enter(item.first_offset, out)
            self._run(item, out)
        elif isinstance(item, OffsetRemoved):
            self._enter(item.batch, out)
            self._removed(item, out)
        elif isinstance(item, PendingCommit):
            self._enter(item.commit.log_offset, out)
            group = self._group(item.group, item.commit.log_offset)
            partition = TopicPartition(item.topic, item.partition)
            group.state.pending.setdefault(item.producer_id, {})[partition] = item.commit
        elif isinstance(item, Marker):
            self._marker(item, out)
        elif isinstance(item, Gap):
            # Events from before the gap are as certain as before, however late they are closed.
            self._close_steps(out)
            self.missing += item.missing
            self.gap_end, self.gap_timestamp_ms = item.last, item.timestamp_ms
            self.whole = False
            for name, group in self.groups.items():
                group.solid, group.gap_end = False, item.last
                group.carry.begun_before_a_gap()
                self._note(name, item)
        elif isinstance(item, Undecodable):
            out.append(self._unreadable(item))
        return out

    def learn(self, names: Mapping[bytes, str]) -> None:
        """Add names of topic ids from elsewhere: events from here on use them."""
        learned = [self.names.learn(topic_id, name) for topic_id, name in names.items()]
        if any(learned):
            self._renamed()

    def leave(self, name: str) -> tuple[Group | None, int]:
        """Return a group, None if there is none, and the block of offsets it is in; the fold drops it."""
        self._open.pop(name, None)
        self._spans.pop(name, None)
        block, self._block = self._block, -1
        return self.groups.pop(name, None), block

    def go_on(self, group: Group, block: int, names: Mapping[str, str]) -> None:
        """Add a group that left a fold, under the names known now; `names` are those by the ids' text."""
        name = group.state.group_id
        self.groups[name] = group
        if group.open is not None:
            self._open[name] = group
        if group.spans.open:
            self._spans[name] = group
        self._block = block
        self._rename(group, names)

    def settle(self, *, spans: bool = True) -> list[Event]:
        """Return the events still open, after a whole batch was read. The fold can continue afterwards.

        Without `spans` those of commits go on, and `commits_so_far` has them.
        """
        out: list[Event] = []
        self._close_steps(out)
        if spans:
            self._close_spans(out)
        return out

    def commits_so_far(self) -> list[Event]:
        """Return the events of commits that are still open."""
        return [
            event
            for name, group in self._spans.items()
            for event in group.spans.so_far(name, self.log_partition, group.state)
        ]

    def finish(self) -> list[Event]:
        """Return the events still open, and one that reports what is missing, if anything is."""
        out = self.settle()
        if self.missing:
            out.append(compacted(self.log_partition, self.missing, self.gap_end, self.gap_timestamp_ms))
        return out

    def _group(self, name: str, offset: int) -> Group:
        group = self.groups.get(name)
        if group is None:
            # After a gap a group's first record need not be its first: nothing proves it was created there.
            group = self.groups[name] = Group(GroupState(name), self.whole, first_offset=offset)
            group.gap_end = -1 if self.whole else self.gap_end
        return group

    def _enter(self, batch: int, out: list[Event]) -> None:
        """Close what does not reach into this batch."""
        if self._open and any(g.open is not None and g.open.batch != batch for g in self._open.values()):
            self._close_steps(out, batch)
        block = batch // RUN_OFFSETS
        if block != self._block:
            self._close_spans(out)
            self._block = block

    def _step(self, group: Group, batch: int, offset: int, timestamp_ms: int, out: list[Event]) -> _Open:
        """Return the open step of a group, begun now if there is none.

        Brokers write several requests into one batch, and stamp the records of each as they write them.
        """
        if group.open is not None and group.open.timestamp_ms != timestamp_ms:
            self._close_step(group, out)
        if group.open is None:
            # Commits before a change are judged by the members there were before it.
            out += group.spans.close(group.state.group_id, self.log_partition, group.state)
            self._spans.pop(group.state.group_id, None)
            group.open = _Open(batch, group.state.view(), offset, offset, timestamp_ms)
            self._open[group.state.group_id] = group
        group.open.last_offset, group.open.timestamp_ms = offset, timestamp_ms
        return group.open

    def _record(self, record: GroupRecord, out: list[Event]) -> None:
        group = self._group(record.group, record.offset)
        step = self._step(group, record.batch, record.offset, record.timestamp_ms, out)
        step.records += 1
        step.told |= isinstance(record.key, _EPOCHS)
        if group.state.replay(record, self.names):
            self._renamed()
        value, opened = record.value, group.open
        if self.notes is None or opened is None:
            return
        # Brokers write several requests into one batch. A heartbeat ends with its member's current
        # assignment, after replacing another (epoch 0) if it did; a departure with the group's epoch, a
        # classic rebalance with its one record.
        if isinstance(value, ConsumerGroupCurrentMemberAssignmentValue):
            ends = value.member_epoch != 0
        elif isinstance(value, ConsumerGroupMetadataValue):
            ends = not opened.before.members.keys() <= group.state.members.keys()
        else:
            ends = isinstance(value, GroupMetadataValue)
        if ends:
            self._close_step(group, out)

    def _removed(self, item: OffsetRemoved, out: list[Event]) -> None:
        group, partition = self._group(item.group, item.offset), TopicPartition(item.topic, item.partition)
        step = self._step(group, item.batch, item.offset, item.timestamp_ms, out)
        step.removed[partition] = was = group.state.offsets.pop(partition, None)
        group.repeated.pop(partition, None)
        if was is not None and group.state.members:
            group.former[partition] = was
        # As the coordinator replays it: a transaction's pending offset must not bring the offset back.
        for pending in group.state.pending.values():
            pending.pop(partition, None)

    def _run(self, run: CommitRun, out: list[Event]) -> None:
        group = self._group(run.group, run.first_offset)
        if group.open is not None:
            self._close_step(group, out)
        state, offsets = group.state, group.state.offsets
        self._note(run.group, run)
        newest = {part.place: part.last for part in run.parts}
        known = self.names.names
        for topic_id, place in {last.topic_id: place for place, last in newest.items()}.items():
            if topic_id not in known and self.names.learn(topic_id, place.topic):
                self._renamed()
        group.spans.add(run, state, group.solid, group.ownership.given_up)
        self._spans[run.group] = group
        rewinds = list(run.rewinds)
        # Keys of two versions may be of one partition.
        begins = not offsets and not group.former and len(newest) == len(run.parts)
        for partition, _, first, at, ts, metadata, since_ms, last in () if begins else run.parts:
            was = offsets.get(partition)
            if was is None:
                group.begins_below(partition, first)
            elif first < was.offset:
                ids = other_topic(was.topic_id, last.topic_id)
                rewinds.append(Rewind(*partition, was.offset, first, at, ts, metadata, ids))
            group.stands(partition, self._begun_ms(since_ms, ts, was), last, was if since_ms == ts else None)
            offsets[partition] = last
        if begins:
            state.offsets = newest
            for part in run.parts:
                since_ms = self._begun_ms(part.since_ms, part.first_timestamp_ms)
                group.stands(part.place, since_ms, part.last)
        rewinds.sort(key=lambda r: r.log_offset)
        solid = group.solid
        out += [rewound(back, state, self.log_partition, solid, group.former_of(back)) for back in rewinds]

    def _begun_ms(self, since_ms: int, first_ms: int, was: Committed | None = None) -> int:
        """Return since when the last offset of a run stands, by the run alone; -1 where that is not known."""
        return since_ms if was is not None or since_ms > first_ms or self.whole else -1

    def _marker(self, marker: Marker, out: list[Event]) -> None:
        """End a transaction: its offsets count from now on, except where a later plain commit came first."""
        self._enter(marker.offset, out)
        # By name, not in the order seen: that would depend on where runs of commits were cut.
        for name in sorted(n for n, g in self.groups.items() if g.state.pending.get(marker.producer_id)):
            group = self.groups[name]
            commits = group.state.pending.pop(marker.producer_id)
            self._note(name, marker)
            out += group.spans.close(name, self.log_partition, group.state)
            places = tuple(sorted(commits))
            # A pending commit counts from its own place in the log, not from the marker's (KIP-98).
            stored = group.state.offsets
            late = tuple(p for p in places if p in stored and stored[p].log_offset > commits[p].log_offset)
            out.append(transaction_ended(marker, group.state, self.log_partition, places, late))
            for partition, commit in sorted(commits.items()) if marker.committed else ():
                was = group.state.offsets.get(partition)
                if partition in late:
                    continue
                if was is None:
                    group.begins_below(partition, commit.offset)
                elif commit.offset < was.offset:
                    topic, number, at, ts = *partition, marker.offset, marker.timestamp_ms
                    ids = other_topic(was.topic_id, commit.topic_id)
                    rewind = Rewind(topic, number, was.offset, commit.offset, at, ts, commit.metadata, ids)
                    how = f" by a transaction of producer {marker.producer_id}"
                    former = group.former_of(rewind)
                    out.append(rewound(rewind, group.state, self.log_partition, group.solid, former, how))
                at_ms = commit.timestamp_ms
                group.stands(partition, self._begun_ms(at_ms, at_ms, was), commit, was)
                group.state.offsets[partition] = commit

    def _close_steps(self, out: list[Event], batch: int | None = None) -> None:
        for group in list(self._open.values()):
            if group.open is not None and group.open.batch != batch:
                self._close_step(group, out)

    def _close_step(self, group: Group, out: list[Event]) -> None:
        """Report what the records of one batch have changed in a group."""
        opened, group.open = group.open, None
        name = group.state.group_id
        self._open.pop(name, None)
        assert opened is not None
        after = group.state.view()
        # A classic record holds the whole group, and a removal leaves nothing: earlier gaps are forgotten.
        if opened.told and opened.before.kind in KINDS and (after.kind == CLASSIC or not after.kind):
            group.solid = True
        sure = opened.told and group.gap_end < opened.first_offset
        follows = sure and group.told and after.epoch == opened.before.epoch + 1
        freed, unowned = group.ownership.change(opened.before.members, after.members, opened.timestamp_ms)
        given_up: GivenUp = {}
        # A static member that returns changes the record and not the generation (KIP-345; SM-26): what its
        # generation revoked still holds.
        if (after.kind, after.epoch) != (opened.before.kind, opened.before.epoch):
            given_up = group.ownership.generation(opened.before.members, after.members, freed)
        step = GroupStep(
            group=name,
            log_partition=self.log_partition,
            first_offset=opened.first_offset,
            last_offset=opened.last_offset,
            timestamp_ms=opened.timestamp_ms,
            before=opened.before,
            after=after,
            freed=freed,
            unowned=unowned,
            given_up=given_up,
            removed=tuple(sorted(opened.removed)),
            age=self.today.age(opened.removed.values(), opened.timestamp_ms),
            offsets=group.state.offsets,
            today=self.today,
            solid=group.solid,
            gap=group.gap_end >= 0 and not follows,
        )
        if after.epoch != opened.before.epoch:
            group.told = opened.told
        if sure:
            group.gap_end = -1
        gone = after.kind not in KINDS and opened.before.kind in KINDS
        # The group's offsets go with it: its removal reports them.
        if opened.removed and not gone:
            self._report_removed(step, opened.removed)
        if opened.records:
            report_changes(step, group.carry)
        out += step.events
        self._note(name, step)
        if self.owners is not None and opened.before.members != after.members:
            held = Holdings(opened.timestamp_ms, tuple(after.members.values()))
            self.owners.setdefault(name, []).append(held)
        if not after.kind:
            group.ownership.free_since.clear()

    def _report_removed(self, step: GroupStep, removed: Removed) -> None:
        proven, cause = self.today.cause_of_removal(removed, step.age, step.timestamp_ms)
        places = step.removed
        step.report(
            Kind.OFFSETS_DELETED if proven else Kind.OFFSETS_EXPIRED_OR_DELETED,
            f"the offsets of {partitions_text(places)} are gone",
            cause=cause,
            proven=proven,
            partitions=places,
            count=len(places),
            before=tuple(
                (-1, ZERO_UUID) if was is None else (was.offset, was.topic_id)
                for was in map(removed.get, places)
            ),
        )

    def _close_spans(self, out: list[Event]) -> None:
        for name, group in self._spans.items():
            out += group.spans.close(name, self.log_partition, group.state)
        self._spans.clear()

    def _note(self, group: str, note: Note) -> None:
        if self.notes is not None:
            self.notes.setdefault(group, []).append(note)

    def _renamed(self) -> None:
        """Use new names: members and free partitions with their ids get the names."""
        names = {uuid_text(topic_id): name for topic_id, name in self.names.names.items()}
        for group in self.groups.values():
            self._rename(group, names)

    def _rename(self, group: Group, names: Mapping[str, str]) -> None:
        if group.state.kind in (CONSUMER, SHARE):
            group.state.recompose(self.names)
        group.ownership.rename(names)
        if group.open is not None:
            group.open.before = renamed(group.open.before, names)

    def _unreadable(self, item: Undecodable) -> Event:
        return Event(
            kind=Kind.RECORD_UNREADABLE,
            group=item.group or "",
            protocol="",
            log_partition=self.log_partition,
            offset=item.offset,
            end_offset=item.offset,
            timestamp_ms=item.timestamp_ms,
            end_timestamp_ms=item.timestamp_ms,
            detail=item.reason,
            proven=False,
        )


def compacted(log_partition: int, missing: int, gap_end: int, gap_timestamp_ms: int) -> Event:
    """Return the event for `missing` records, the last of them before `gap_end`."""
    return Event(
        kind=Kind.LOG_COMPACTED,
        group="",
        protocol="",
        log_partition=log_partition,
        offset=gap_end,
        end_offset=gap_end,
        timestamp_ms=gap_timestamp_ms,
        end_timestamp_ms=gap_timestamp_ms,
        detail=f"{count_of(missing, 'record')} up to offset {gap_end} no longer in the log: earlier events "
        "show only what compaction left",
        count=missing,
    )
