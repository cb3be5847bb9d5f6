"""Crash loops of which no member is there at the look: each generation ended at the same record.

A supervisor starts them again later and later, so that mostly none is there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from kgroup.admin.diagnose.facts import Facts
from kgroup.admin.discovery import ClusterView
from kgroup.admin.read.broker_clock import FUTURE_MS
from kgroup.admin.read.offsets import ListedOffset, list_offsets
from kgroup.admin.read.outside import commits_in
from kgroup.admin.read.readable import TIMES, Came, first_read, future
from kgroup.admin.refusals import code_name, is_gone
from kgroup.admin.statuses import LAG, LOOPS, SUSPECT_MS, Unseen
from kgroup.domain import CLASSIC, TopicPartition
from kgroup.errors import KgroupError
from kgroup.history.fold.events import OF_OFFSETS, Event, Kind, duration_text

GENERATION_MS = 1_000
"""A process takes at least that long to start, to join and to end."""
READS_MS = 5_000
"""Who had a partition for so long has read it."""
_OWNING = (
    Kind.MEMBER_REPLACED,
    Kind.MEMBER_RECONCILED,
    Kind.MEMBER_REVOKING,
    Kind.MEMBER_WAITING,
    Kind.MEMBER_LEFT_FOR_NOW,
)
"""Events that list what a member of the consumer protocol owns."""
Held: TypeAlias = dict[str | None, dict[TopicPartition, int]]
"""Since when each member of the consumer protocol has its partitions without a break, in ms."""
Ends = Mapping[TopicPartition, Sequence[int]]
"""When members ended that had a partition, oldest first."""


def judge_fruitless(
    cluster: ClusterView,
    facts: Facts,
    ends: Ends,
    lates: Sequence[Mapping[str, int]],
    untrusted: Mapping[str, Unseen],
) -> Facts:
    """Note the partitions of which records came that no member committed, with how many ended then.

    `lates` are the ways to take the times of records: by topic, how late they count as stamped. `untrusted`
    are the topics whose times decide nothing, and why.
    """
    held_ms = _held_ms(facts, ends)
    by_late = [dict(_loops(cluster, facts, ends, held_ms, late_ms)) for late_ms in lates]
    loops = [{p: ended for p, ended in ends.items() if isinstance(ended, int)} for ends in by_late]
    fruitless = {p: ended for p, ended in loops[0].items() if all(p in loop for loop in loops)}
    differs = {p for loop in loops for p in loop} - fruitless.keys()
    unsure = [untrusted[p.topic] for p in fruitless if p.topic in untrusted]
    fruitless = {p: ended for p, ended in fruitless.items() if p.topic not in untrusted}
    unread = dict.fromkeys(ended for ends in by_late for ended in ends.values() if isinstance(ended, Unseen))
    unsure += [mistimed(partition, lates[1].get(partition.topic, 0)) for partition in sorted(differs)]
    return facts.also(*(u for u in unread if u not in facts.unseen), *unsure, fruitless=fruitless)


def _loops(
    cluster: ClusterView,
    facts: Facts,
    ends: Ends,
    held_ms: Mapping[TopicPartition, int],
    late_ms: Mapping[str, int],
) -> Iterator[tuple[TopicPartition, int | Unseen]]:
    listed = came_since(cluster, held_ms, late_ms)
    came = {p: at.offset for p, at in listed.items() if isinstance(at, ListedOffset) and at.offset >= 0}
    first: dict[TopicPartition, Came] = {**listed, **dict(first_read(cluster, came))}
    for partition, record in sorted(first.items()):
        if isinstance(record, Unseen):
            yield partition, record
            continue
        if isinstance(record, KgroupError):
            what = f"{partition}: whether records came that no member committed: {record.message}"
            if not is_gone(record):
                yield partition, Unseen(LAG, code_name(record), what)
            continue
        if record.timestamp_ms > facts.now_ms + FUTURE_MS:
            yield partition, future(partition)
            continue
        came_ms = record.timestamp_ms + late_ms.get(partition.topic, 0)
        ended = sum(ms >= came_ms for ms in ends[partition])
        if record.offset >= 0 and facts.age_ms(came_ms) >= SUSPECT_MS and ended >= LOOPS:
            yield partition, ended


def came_since(
    cluster: ClusterView, since_ms: Mapping[TopicPartition, int], late_ms: Mapping[str, int]
) -> Mapping[TopicPartition, ListedOffset | KgroupError]:
    """Return the first record of each partition after its owner got it, at this moment.

    `late_ms` is by topic how late records count as stamped.
    """
    # One of the same moment may be older than the first position that its owner took.
    asked = {p: max(ms + 1 - late_ms.get(p.topic, 0), 0) for p, ms in since_ms.items()}
    return list_offsets(cluster, asked)


def _held_ms(facts: Facts, ends: Ends) -> dict[TopicPartition, int]:
    """Return since when the first member that ended had each partition; its end where no record says."""
    kinds = (Kind.REBALANCE_COMPLETED, Kind.MEMBER_RECONCILED)
    held = dict.fromkeys(ends, -1)
    for event in facts.history or ():
        for partition in event.partitions if event.kind in kinds else ():
            if partition in ends and event.timestamp_ms < ends[partition][0]:
                held[partition] = max(held[partition], event.timestamp_ms)
    return {partition: ms if ms >= 0 else ends[partition][0] for partition, ms in held.items()}


def mistimed(partition: TopicPartition, late_ms: int) -> Unseen:
    """Return why times decide nothing where what was read last is stamped so long before its commit."""
    said = f"{partition}: what was read last is stamped {duration_text(abs(late_ms))} or more"
    if late_ms < 0:
        ahead = f"{said} after it was committed: by how much its producers' clocks are ahead is not known"
        return Unseen(TIMES, "STAMPED_AHEAD", ahead)
    which = "whether producers stamp late, or it is read late, is not known"
    return Unseen(TIMES, "STAMPED_LATE", f"{said} before it was committed: {which}")


def emptied_ms(facts: Facts) -> int:
    """Return when a group without members lost its last one; -1 where that is not in its history."""
    return max((event.last_ms for event in facts.history or () if event.kind not in OF_OFFSETS), default=-1)


def lost_ends(facts: Facts, since_ms: int, emptied_ms: int, where: str) -> Unseen | None:
    """Return that a loop since then may be missing in the history of a group without members."""
    room = emptied_ms >= facts.since_ms and emptied_ms - since_ms >= LOOPS * GENERATION_MS
    return facts.lost(since_ms, f"whether members came and went {where}") if room else None


def hold(held: Held, event: Event, *, anew: bool = False) -> Mapping[TopicPartition, int]:
    """Take what a member has after an event, and return what it had; `anew` if it gets all again each time.

    One that left has nothing: it may come back under the same id.
    """
    had = held.get(event.member_id, {})
    if event.kind in _OWNING:
        since = {} if anew else had
        held[event.member_id] = {p: since.get(p, event.timestamp_ms) for p in event.partitions}
    elif event.kind == Kind.MEMBER_LEFT_OR_EXPIRED:
        held.pop(event.member_id, None)
    return had


def ended_ms(events: Iterable[Event]) -> dict[TopicPartition, list[int]]:
    """Return when members ended that had a partition, and that had started since the one before, or read it.

    When all members stop one after the other, the next one has for a moment what the one before had.
    """
    ended: defaultdict[TopicPartition, list[int]] = defaultdict(list)
    last_ms: dict[TopicPartition, int] = {}
    joined_ms: dict[str | None, int] = {}
    got_ms: Held = {}
    completed_ms = -1
    for event in events:
        at_ms = event.timestamp_ms
        if event.kind in (Kind.MEMBER_JOINED, Kind.MEMBER_REPLACED):
            joined_ms[event.member_id] = at_ms
        if event.kind == Kind.REBALANCE_COMPLETED:
            completed_ms = at_ms
        had = hold(got_ms, event)
        if event.kind == Kind.MEMBER_LEFT_OR_EXPIRED:
            joined = joined_ms.pop(event.member_id, -1)
            for partition in event.partitions:
                since_ms = completed_ms if event.protocol == CLASSIC else had.get(partition, -1)
                if joined > last_ms.get(partition, -1) or since_ms < 0 or at_ms - since_ms >= READS_MS:
                    ended[partition].append(at_ms)
                last_ms[partition] = at_ms
    return ended


def last_commits(facts: Facts) -> dict[TopicPartition, int]:
    """Return when the offset of each partition last changed, by whomever."""
    return _last_of(facts, _commits(facts))


def read_of_late(facts: Facts) -> dict[TopicPartition, int]:
    """Return when the offsets of partitions were last changed by members, in the span that counts."""
    own = (event for event in _commits(facts) if event.kind == Kind.COMMITTED)
    return _last_of(facts, (event for event in own if event.last_ms >= facts.since_ms))


def _commits(facts: Facts) -> Iterator[Event]:
    return commits_in(facts.history or (), empty=not facts.group.known_members)


def _last_of(facts: Facts, commits: Iterable[Event]) -> dict[TopicPartition, int]:
    ended = sorted((event.last_ms, event.partitions) for event in commits)
    last = {partition: ms for ms, partitions in ended for partition in partitions}
    stood = {p: since_ms for p, (since_ms, _) in facts.log.repeated.items() if p in last and since_ms >= 0}
    return {**last, **stood}


def ends_of(facts: Facts) -> Ends:
    """Return when members ended that committed nothing of a partition any more, where that makes a loop."""
    ended = ended_ms(facts.recent)
    read = read_of_late(facts) if ended else {}
    since = {p: sorted(ms for ms in those if ms >= read.get(p, -1)) for p, those in ended.items()}
    return {partition: those for partition, those in since.items() if len(those) >= LOOPS}
