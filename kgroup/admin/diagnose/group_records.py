"""The log's records of some groups, as far as a check-up uses them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from kgroup.domain import TopicPartition, value
from kgroup.history.fold.events import Event, Kind
from kgroup.history.fold.folding import Fold
from kgroup.history.fold.restarts import Restart
from kgroup.history.fold.state import GroupState
from kgroup.history.fold.view import View
from kgroup.history.log_items import Committed, not_read
from kgroup.history.replay import Coverage, replay
from kgroup.history.sources.live import LiveLog, LiveTopic

FEW = 8


@value
class Recorded:
    """The log's records of one group; another process may have read them.

    `state` is the group as they make it, `pending` what each producer committed in a transaction that has not
    ended. Of other committed offsets, which are most of the data, `committed_ms` is when the offset of a
    member's partition last changed, `repeated` since and until when unchanged offsets were committed again
    (since -1: perhaps, as compaction left one commit), `gone` what members own of topics that no longer
    exist, `rebuilt` the partitions that were committed for a former topic of the same name, `unheld_ms` when
    those of a group with members were last committed that none of them has. Of what changed after
    `whole_from_ms` the log has lost nothing to compaction; -1 where it has lost nothing at all.
    """

    events: list[Event] = field(default_factory=list)
    state: View | None = None
    pending: Mapping[int, Mapping[TopicPartition, Committed]] = field(default_factory=dict)
    restarts: Sequence[Restart] = ()
    committed_ms: Mapping[TopicPartition, int] = field(default_factory=dict)
    gone: Mapping[str, frozenset[TopicPartition]] = field(default_factory=dict)
    rebuilt: frozenset[TopicPartition] = frozenset()
    damaged: str | None = None
    whole_from_ms: int = -1
    unheld_ms: Mapping[TopicPartition, int] = field(default_factory=dict)
    repeated: Mapping[TopicPartition, tuple[int, int]] = field(default_factory=dict)


def look_into(topic: LiveTopic, number: int, group_ids: Sequence[str]) -> dict[str, Recorded]:
    """Return the records of each of these groups in one partition; raise KgroupError if unreadable."""
    by_group: dict[str, list[Event]] = {group: [] for group in group_ids}
    # Searching every batch for each name pays for a few names; for many, all is decoded.
    few = len(by_group) <= FEW
    story = replay(
        [LiveLog(topic, number)],
        topic_names=topic.topic_names,
        names=group_ids if few else None,
        wanted=None if few else by_group.__contains__,
    )
    for event in story.events:
        if event.group in by_group:
            by_group[event.group].append(event)
    return recorded_by(topic, story.folds[number], by_group, story.coverage[0])


def recorded_by(
    topic: LiveTopic, fold: Fold, events: Mapping[str, list[Event]], coverage: Coverage
) -> dict[str, Recorded]:
    """Return the records of these groups in one partition by its fold, which may go on, and their events."""
    ids = {name: topic_id for topic_id, name in topic.topic_names.items()}
    states = fold.states  # rebuilt on each access
    known = Recorded(
        damaged=not_read(coverage.source, coverage.bad) if coverage.bad else None,
        whole_from_ms=coverage.complete_from_ms if coverage.complete_from > 0 else -1,
    )
    return {
        group: _recorded(topic, ids, those, states.get(group), fold, known) for group, those in events.items()
    }


def _recorded(
    topic: LiveTopic,
    ids: Mapping[str, bytes],
    events: list[Event],
    state: GroupState | None,
    fold: Fold,
    known: Recorded,
) -> Recorded:
    """Return the records of one group; of the log that has them the rest is `known`."""
    events = [_without_former_topics(event, topic) if event.before else event for event in events]
    if state is None:
        return replace(known, events=events)
    repeated = fold.repeated(state.group_id)
    members, offsets = state.members, state.offsets
    there = state.members_by(topic.topic_names) if members else members
    owned = frozenset[TopicPartition]().union(*(member.holds for member in members.values()))
    held = {m: member.holds - there[m].holds for m, member in members.items()}
    # Of most groups there are none.
    former = {topic_id for topic_id in {at.topic_id for at in offsets.values()} if not topic.knows(topic_id)}
    return Recorded(
        events,
        state.view(),
        state.pending,
        fold.restarts(state.group_id),
        committed_ms={
            partition: since_ms if since_ms >= 0 else offsets[partition].commit_timestamp_ms
            for partition in owned
            if partition in offsets
            for since_ms in (repeated.get(partition, -1),)
        },
        gone={member_id: partitions for member_id, partitions in held.items() if partitions},
        rebuilt=frozenset(
            partition
            for partition, at in (offsets.items() if former else ())
            if at.topic_id in former and partition.topic in ids
        ),
        damaged=known.damaged,
        whole_from_ms=max(known.whole_from_ms, _known_from_ms(events)),
        unheld_ms={
            partition: at.commit_timestamp_ms
            for partition, at in (offsets.items() if members else ())
            if partition not in owned
        },
        repeated={p: (since_ms, offsets[p].commit_timestamp_ms) for p, since_ms in repeated.items()},
    )


def _known_from_ms(events: Sequence[Event]) -> int:
    """Return from when on it is known what changed: after the first record left of a group; -1 for always."""
    seen = (e.timestamp_ms + 1 for e in events if e.kind is Kind.GROUP_CREATED and not e.proven)
    return next(seen, -1)


def _without_former_topics(event: Event, topic: LiveTopic) -> Event:
    """Return the event without the offsets of topics that are gone, or were made again since."""
    before = ((was if topic.knows(topic_id) else -1, topic_id) for was, topic_id in event.before)
    return replace(event, before=tuple(before))
