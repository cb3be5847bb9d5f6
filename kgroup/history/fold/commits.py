"""Commits of a group between two changes of it, collapsed into one event per kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from kgroup.domain import ZERO_UUID, TopicPartition, count_of, partitions_text, uuid_text
from kgroup.history.fold.events import Event, Kind
from kgroup.history.fold.marks import Mark, mark_in
from kgroup.history.fold.ownership import GivenUp, owners
from kgroup.history.fold.state import GroupState
from kgroup.history.fold.tasks import may_read
from kgroup.history.fold.view import CLASSIC, CONSUMER, STREAMS
from kgroup.history.log_items import CommitRun, Committed, Marker, PartProgress, Rewind
from kgroup.protocol.subscription import PROTOCOL_TYPE

GROUPED = (CLASSIC, CONSUMER, STREAMS)
"""Kinds of groups whose records show who owns what."""


@dataclass(slots=True)
class Span:
    """Commits of one kind: how many, on which partitions, from where to where."""

    kind: Kind
    given_up: bool = False
    """Those on partitions that the newest generation revoked from members that stayed."""
    count: int = 0
    offset: int = -1
    end_offset: int = -1
    timestamp_ms: int = -1
    end_timestamp_ms: int = -1
    moved: dict[TopicPartition, tuple[int, int]] = field(default_factory=dict)
    marks: dict[str, Mark] = field(default_factory=dict)

    def add(self, parts: Sequence[PartProgress]) -> None:
        """Add parts of one run, in the order of their first commits."""
        moved, count, end, end_ms = self.moved, self.count, self.end_offset, self.end_timestamp_ms
        for partition, commits, first, _, _, first_metadata, _, last in parts:
            committed, _, metadata, _, _, _, _, log_offset, at_ms = last
            if first_metadata or metadata:
                for text in (first_metadata, metadata):
                    if mark := mark_in(text):
                        self.marks[mark.plan_id] = mark
            before = moved.get(partition)
            moved[partition] = (first if before is None else before[0], committed)
            count += commits
            if log_offset > end:
                end, end_ms = log_offset, at_ms
        self.count, self.end_offset, self.end_timestamp_ms = count, end, end_ms
        if self.offset < 0:
            self.offset, self.timestamp_ms = parts[0].first_log_offset, parts[0].first_timestamp_ms


@dataclass(slots=True)
class Spans:
    """The open spans of one group."""

    open: dict[tuple[Kind, bool], Span] = field(default_factory=dict)

    def add(self, run: CommitRun, state: GroupState, solid: bool, given_up: GivenUp) -> None:
        """Add a run while the group is in `state`; `solid`: no earlier record of it is missing.

        `given_up` is what the group's generation revoked from members that stayed.
        """
        sort_of = _sorts(state, solid)
        if isinstance(sort_of, Kind):
            self._of(sort_of, letting_go=False).add(run.parts)
            return
        for part in run.parts:
            kind = sort_of(part.place)
            # A cooperative member commits in onPartitionsRevoked, a generation after it lost them (KIP-429).
            letting_go = kind is Kind.COMMITTED_UNOWNED and part.place in given_up
            self._of(Kind.COMMITTED if letting_go else kind, letting_go).add((part,))

    def _of(self, kind: Kind, letting_go: bool) -> Span:
        """Return the open span of a kind, opened now if there is none."""
        span = self.open.get((kind, letting_go))
        if span is None:
            span = self.open[kind, letting_go] = Span(kind, letting_go)
        return span

    def close(self, group: str, log_partition: int, state: GroupState) -> list[Event]:
        """Return the events of the open spans and close them."""
        events = self.so_far(group, log_partition, state)
        self.open = {}
        return events

    def so_far(self, group: str, log_partition: int, state: GroupState) -> list[Event]:
        """Return the events of the open spans, which go on."""
        return [_event(span, group, log_partition, state) for span in self.open.values()]


def _sorts(state: GroupState, solid: bool) -> Kind | Callable[[TopicPartition], Kind]:
    """Return the kind of commits while the group is in this state; or a function of the partition."""
    if not solid or state.kind not in GROUPED:
        return Kind.COMMITTED
    if not state.members:
        return Kind.COMMITTED_OUTSIDE
    classic, kind = state.classic, state.kind
    # What members of other protocols own is not on record by topic name.
    if kind == CLASSIC and classic is not None and classic.protocol_type != PROTOCOL_TYPE:
        return Kind.COMMITTED
    # If records are missing the owner may be in one of them: only solid groups get here.
    # A member that left for now still owns its own: what it committed as it closed is not suspicious.
    owned = frozenset(owners(state.members)) | frozenset(p for m in state.members.values() for p in m.holds)
    topics = {partition.topic for partition in owned}
    unresolved = False
    if kind == CONSUMER:
        named = {topic for m in state.members.values() for topic in m.topics}
        named |= {topic for matched in state.consumer.regexes.values() for topic in matched}
        unresolved = any(p.topic not in named for p in owned)

    def sort(partition: TopicPartition) -> Kind:
        if partition in owned:
            return Kind.COMMITTED
        if kind == STREAMS:
            held = (task for m in state.members.values() if m.streams for task in m.streams.holds.active)
            reads = may_read(state.streams.topology, held, partition)
            return Kind.COMMITTED if reads else Kind.COMMITTED_UNOWNED
        # Records of consumer groups have topic ids, commits have names: unresolved, both may mean one topic.
        return Kind.COMMITTED if unresolved and partition.topic not in topics else Kind.COMMITTED_UNOWNED

    return sort


@lru_cache(maxsize=1 << 7)
def _named(places: tuple[TopicPartition, ...]) -> tuple[tuple[TopicPartition, ...], str]:
    """Return partitions in order, and their text: one object for the groups that commit the same ones."""
    return tuple(sorted(places)), partitions_text(places)


def _event(span: Span, group: str, log_partition: int, state: GroupState) -> Event:
    places, names = _named(tuple(span.moved))
    text = f"{count_of(span.count, 'commit')} on {names}"
    if len(places) == 1:
        first, last = span.moved[places[0]]
        text += f", offset {last}" if first == last else f", offset {first} → {last}"
    cause, unowned = None, span.kind is Kind.COMMITTED_UNOWNED
    if span.kind is Kind.COMMITTED_OUTSIDE:
        text += ", while the group had no members"
        cause = "an admin tool, or a consumer without a membership"
    elif span.given_up:
        text += f", which generation {state.epoch} took from members that stayed"
        cause = "committed on revocation, in onPartitionsRevoked: a cooperative hand-over"
    elif unowned:
        text = f"suspicious: {text}, which no member owned"
    if span.marks:
        cause = "kgroup, " + "; ".join(mark.words for mark in span.marks.values())
    return Event(
        kind=span.kind,
        group=group,
        protocol=state.kind,
        log_partition=log_partition,
        offset=span.offset,
        end_offset=span.end_offset,
        timestamp_ms=span.timestamp_ms,
        end_timestamp_ms=span.end_timestamp_ms,
        detail=text,
        epoch=state.epoch,
        previous_epoch=state.epoch,
        cause=cause,
        suspicious=unowned,
        partitions=places,
        count=span.count,
    )


def rewound(
    rewind: Rewind,
    state: GroupState,
    log_partition: int,
    solid: bool,
    former: Committed | None = None,
    how: str = "",
) -> Event:
    """Return the event of a commit below the previous one; `former` is what was removed before that one."""
    mark = mark_in(rewind.metadata)
    partition = TopicPartition(rewind.topic, rewind.partition)
    holder = next((m for m in state.members.values() if partition in m.holds), None)
    back = rewind.before - rewind.after
    text = f"{partition} went back by {back}, from {rewind.before} to {rewind.after}{how}"
    grouped = state.kind in GROUPED
    new_topic = rewind.topic_ids is not None and all(map(any, rewind.topic_ids))
    if rewind.topic_ids is not None and new_topic:
        was, now = map(uuid_text, rewind.topic_ids)
        text = (
            f"{partition} begins again at {rewind.after}, {rewind.before} before: "
            f"{rewind.topic} is a new topic"
        )
        cause = f"{rewind.topic} was deleted and recreated: its id was {was} and is {now}"
        suspicious, proven = False, True
    # A reset needs an empty group: with members in it, the mark may be copied from the commit before.
    elif mark is not None and not state.members:
        cause, suspicious, proven = f"kgroup, {mark.words}", False, True
    elif not grouped or not solid:
        cause, suspicious, proven = "the records do not say who committed", False, False
    elif not state.members:
        cause = "written while the group had no members: reset by an admin tool, or by a consumer outside it"
        suspicious, proven = False, True
    else:
        who = f"{holder.label} owned it" if holder else "no member owned it"
        cause = f"{who}; a commit names neither member nor epoch, so who wrote it is not in the records"
        if how:
            cause = f"{who}; written{how}"
        if mark is not None:
            cause = f"{who}; the commit's metadata names kgroup, {mark.words}"
        recreated = None if mark is not None else _recreated(rewind, former, state.offsets.get(partition))
        suspicious, proven = recreated is None, False
        if recreated is None:
            text = f"suspicious: {text}"
        else:
            cause = f"a rewind, or {recreated}; {cause}"
    return Event(
        kind=Kind.REWOUND,
        group=state.group_id,
        protocol=state.kind,
        log_partition=log_partition,
        offset=rewind.log_offset,
        end_offset=rewind.log_offset,
        timestamp_ms=rewind.timestamp_ms,
        end_timestamp_ms=rewind.timestamp_ms,
        detail=text,
        epoch=state.epoch,
        previous_epoch=state.epoch,
        member_id=holder.member_id if holder else None,
        instance_id=holder.instance_id if holder else None,
        cause=cause,
        suspicious=suspicious,
        proven=proven,
        partitions=(partition,),
        before=() if new_topic or former is not None else ((rewind.before, ZERO_UUID),),
    )


def _recreated(rewind: Rewind, former: Committed | None, newest: Committed | None) -> str | None:
    """Return how a topic that was recreated explains a commit below the one before; None if it does not."""
    topic, before = rewind.topic, rewind.before
    if former is not None and before >= former.offset:
        ids = former.topic_id, newest.topic_id if newest is not None else former.topic_id
        if all(map(any, ids)) and ids[0] != ids[1]:
            was, now = map(uuid_text, ids)
            there = f"{topic} was deleted and recreated, its id was {was} and is {now}"
            return f"{before} is an offset of the former topic: {there}"
        if not all(map(any, ids)):
            gone = f"the group's offset was removed before it, as brokers do when they delete {topic}"
            return f"{before} is an offset of a former topic: {gone}"
    if rewind.topic_ids is not None:
        return f"{topic} was deleted and recreated: not both commits have its id"
    return None


def transaction_ended(
    marker: Marker,
    state: GroupState,
    log_partition: int,
    places: tuple[TopicPartition, ...],
    late: tuple[TopicPartition, ...],
) -> Event:
    """Return the event of a transaction's end; `late` of its `places` were committed again before."""
    done = "committed" if marker.committed else "aborted"
    void = ""
    if late and marker.committed:
        void = f"; without effect on {partitions_text(late)}, where a later commit counts"
    return Event(
        kind=Kind.TRANSACTION_COMMITTED if marker.committed else Kind.TRANSACTION_ABORTED,
        group=state.group_id,
        protocol=state.kind,
        log_partition=log_partition,
        offset=marker.offset,
        end_offset=marker.offset,
        timestamp_ms=marker.timestamp_ms,
        end_timestamp_ms=marker.timestamp_ms,
        detail=f"producer {marker.producer_id} {done} the offsets of {partitions_text(places)}{void}",
        epoch=state.epoch,
        previous_epoch=state.epoch,
        partitions=places,
        count=len(places),
    )
