"""The statuses that only the history decides: whether a partition's reader goes on.

A description leaves them open, and says so. Time is judged by records: how long the oldest unread one has
waited, beside how long the group takes with its other partitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from kgroup.admin.diagnose.deliveries import undelivered
from kgroup.admin.diagnose.facts import HISTORY, LAG, Facts
from kgroup.admin.discovery import ClusterView
from kgroup.admin.models import CLASSIC, SHARE, OffsetRow
from kgroup.admin.read.broker_clock import Clock, clocks_of
from kgroup.admin.read.group_facts import NOT_READ
from kgroup.admin.read.offsets import list_offsets
from kgroup.admin.read.readable import CLOCK_UNSURE, TIMES
from kgroup.admin.read.record_times import Age, Untimed, times_at
from kgroup.admin.refusals import code_name
from kgroup.admin.statuses import (
    LOOPS,
    READING,
    WARN,
    Owner,
    PartitionFacts,
    PartitionStatus,
    Progress,
    Status,
    Unseen,
    status_of,
    unknown,
)
from kgroup.domain import TopicPartition
from kgroup.durations import utc
from kgroup.errors import KgroupError
from kgroup.history.fold.events import Kind

SAMPLES = 5
"""The number of a group's partitions by which its usual delay is measured."""
At: TypeAlias = tuple[TopicPartition, int]
Times: TypeAlias = Mapping[At, Age]


def judge(cluster: ClusterView, facts: Sequence[Facts]) -> None:
    """Give each partition the status that the history shows, in a few requests per leader for all groups."""
    judged = [each for each in facts if each.group.type != SHARE and LAG not in each.left_out]
    waiting = {id(each): dict(_undecided(each)) for each in judged}
    wanted = {at for each in judged for at in _records_of(each, waiting[id(each)])}
    times = times_at(cluster, wanted) if wanted else {}
    begun_of = {id(each): dict(each.by_status.get(PartitionStatus.NOT_BEGUN, ())) for each in judged}
    aged = {id(each): {*waiting[id(each)], *begun_of[id(each)]} for each in judged}
    clocks = clocks_of(cluster, judged[0].now_ms, set().union(*aged.values())) if any(aged.values()) else None
    for each in judged:
        undecided, begun = waiting[id(each)], begun_of[id(each)]
        if clocks is not None and aged[id(each)]:
            each.clock = clocks(aged[id(each)])
        statuses = {place: _status(each, place, row, undecided, times) for place, row in undecided.items()}
        _set(each, statuses | _fresh(cluster, each, begun) | dict(_former(each)))


def judge_shares(facts: Sequence[Facts]) -> None:
    """Give the partitions of share groups the status that a second look at them shows."""
    for each in facts:
        if each.group.type != SHARE or LAG in each.left_out or not undelivered(each):
            continue
        still = each.still.lags if each.still is not None else {}
        # One look shows nothing, which is reported.
        _set(each, {p: _shared(p in still, each) for p, _ in _undecided(each) if each.patience_s > 0})


def _shared(stands: bool, facts: Facts) -> Status:
    if stands and facts.still is not None:
        why = f"its members finished no record of it in {facts.still.seconds:.0f} s"
        return Status(PartitionStatus.STALLED, WARN, why)
    if facts.grown is not None:
        return Status(PartitionStatus.FALLING_BEHIND, WARN, "more records come than its members finish")
    return READING


def _set(facts: Facts, statuses: Mapping[TopicPartition, Status]) -> None:
    if statuses:
        rows = tuple(
            replace(row, status=statuses[place]) if place in statuses else row for place, row in facts.rows
        )
        facts.group = replace(facts.group, offsets=rows)


def _undecided(facts: Facts) -> Iterator[tuple[TopicPartition, OffsetRow]]:
    """Yield the partitions whose status the history decides, or a clock that doctor knows better."""
    for place, row, status in facts.with_status(PartitionStatus.UNKNOWN):
        if status.unseen in (NOT_READ, CLOCK_UNSURE):
            yield place, row


def _records_of(facts: Facts, undecided: Mapping[TopicPartition, OffsetRow]) -> Iterator[At]:
    """Yield the records whose times decide: the oldest unread ones, and the newest that others have read."""
    if not undecided or facts.history is None:
        return
    for place, row in undecided.items():
        if (at := _oldest(row)) is not None:
            yield place, at
    yield from _samples(facts, undecided)


def _oldest(row: OffsetRow) -> int | None:
    """Return the offset of the oldest record that waits, or that holds back what can be read."""
    return row.last_stable_offset if _held_back(row) else row.committed_offset


def _held_back(row: OffsetRow) -> bool:
    """Return whether all is read that readers of committed records get."""
    end, stable = row.log_end_offset, row.last_stable_offset
    return end is not None and stable is not None and stable < end and row.work == end - stable


def _samples(facts: Facts, undecided: Mapping[TopicPartition, OffsetRow]) -> list[At]:
    """Return the last record read of some other partitions, of the same ones where there are no others."""
    read = [
        (place, row.committed_offset - 1)
        for place, row in facts.rows
        if row.committed_offset
        and place in facts.committed_ms
        # The time of a record that was deleted is not to be had.
        and not (row.status is not None and row.status.name == PartitionStatus.PURGED)
    ]
    others = [at for at in read if at[0] not in undecided]
    newest = sorted(others or read, key=lambda at: -facts.committed_ms[at[0]])
    return newest[:SAMPLES]


def _status(
    facts: Facts,
    place: TopicPartition,
    row: OffsetRow,
    undecided: Mapping[TopicPartition, OffsetRow],
    times: Times,
) -> Status:
    if HISTORY in facts.left_out:
        return Status(PartitionStatus.READING, "ok", "whether its reader goes on was left out")
    if facts.history is None or facts.state is None or row.committed_offset is None:
        missed = next((each for each in facts.unseen if each.look == HISTORY), None)
        what = "its history is not known, which shows whether its reader goes on"
        return unknown(missed or Unseen(HISTORY, "NOT_SEEN", what))
    held, oldest = _held_back(row), _oldest(row)
    waits = times.get((place, oldest)) if oldest is not None else None
    if not isinstance(waits, int):
        return unknown(_untimed(place, waits))
    clock = facts.clock or Clock(facts.now_ms)
    made = _progress(facts, place, waits, undecided, times)
    found = []
    # By the brokers' clock at least, by this machine's at most: where they differ, neither decides.
    for now_ms in dict.fromkeys((waits + clock.age_ms(waits), clock.most_ms)):
        age_ms = max(now_ms - waits, 0)
        known = PartitionFacts(
            row.log_end_offset or 0,
            committed=row.committed_offset,
            stable=row.last_stable_offset,
            readable=not held,
            open_ms=age_ms if held else 0,
            waited_ms=age_ms,
            owner=_owner(facts, row),
            progress=made,
            now_ms=now_ms,
        )
        found.append(status_of(known))
    first, last = found[0], found[-1]
    loops = isinstance(made, Progress) and made.generations >= LOOPS
    if first.name == PartitionStatus.STALLED and not loops:
        # The delays that were not seen may be longer than all others: then it would still be in time.
        for at in _samples(facts, undecided):
            if isinstance(failed := times.get(at), KgroupError):
                return unknown(_untimed(at[0], failed))
    if first.name == last.name and first.weight == last.weight:
        return first
    return unknown(Unseen("clock", "CLOCK_UNSURE", f"{place}: how long records wait: {clock.words}"))


def _untimed(place: TopicPartition, found: Age | None) -> Unseen:
    if isinstance(found, KgroupError):
        return Unseen(TIMES, code_name(found), f"{place}: {found.message}")
    why = found.why if isinstance(found, Untimed) else "the time of its oldest unread record is not known"
    return Unseen(TIMES, "NOT_SEEN", f"{place}: {why}")


def _owner(facts: Facts, row: OffsetRow) -> Owner | None:
    recorded = facts.state.view().members.get(row.member_id or "") if facts.state is not None else None
    name = row.instance_id or row.member_id or ""
    if recorded is None or recorded.rebalance_timeout_ms < 0:
        return Owner(name)
    return Owner(name, poll_ms=recorded.rebalance_timeout_ms)


def _progress(
    facts: Facts,
    place: TopicPartition,
    waits_ms: int,
    undecided: Mapping[TopicPartition, OffsetRow],
    times: Times,
) -> Progress | Unseen | None:
    """Return what the log says of a partition's reading; None where its offset was set back.

    Its reader does not notice that: it reads on where it was. Unseen where its owner committed another
    partition since, whose log could not be read: older records may wait there.
    """
    events = facts.history or ()
    began = facts.completed_ms
    at = facts.committed_ms.get(place, -1)
    member_id = undecided[place].member_id
    rewound = [event for event in events if event.kind == Kind.REWOUND and place in event.partitions]
    if any(began <= event.timestamp_ms >= at for event in rewound):
        return None
    since = max(at, _got_ms(facts, place, member_id))
    delays = [
        facts.committed_ms[where] - written
        for where, offset in _samples(facts, undecided)
        if isinstance(written := times.get((where, offset)), int)
    ]
    others = {where: ms for where, ms in facts.committed_ms.items() if where != place}
    going_on = [
        (where, row)
        for where, row in facts.rows
        if others.get(where, -1) > max(since, waits_ms) and row.member_id == member_id
    ]
    older = [
        where
        for where, row in going_on
        if where in undecided
        and isinstance(first := times.get((where, row.committed_offset or 0)), int)
        and first <= waits_ms
    ]
    dark = [where for where, row in going_on if row.log_end_offset is None and not row.gone]
    if dark and not older:
        what = f"{place}: its owner may read {dark[0]} first, whose log could not be read"
        return Unseen("log ends", "NOT_READ", what)
    return Progress(
        since,
        max(others.values(), default=-1),
        max((facts.committed_ms.get(where, -1) for where in _held_with(facts, place)), default=-1),
        max(0, *delays) if delays else 0,
        _loops(facts, place, undecided[place].instance_id, max(at, waits_ms)),
        str(min(older)) if older else "",
    )


def _held_with(facts: Facts, place: TopicPartition) -> frozenset[TopicPartition]:
    """Return what the owner of a partition holds, that one included."""
    members = facts.state.view().members.values() if facts.state is not None else ()
    return next((member.holds for member in members if place in member.holds), frozenset({place}))


def _got_ms(facts: Facts, place: TopicPartition, member_id: str | None) -> int:
    """Return since when this member owns a partition; -1 where that is before what the history has.

    A classic group assigns anew with each generation, and a process that takes an instance id over gets its
    partitions without one; in the consumer protocol a partition stays where it is.
    """
    if facts.group.type == CLASSIC:
        taken_over = (
            event.timestamp_ms
            for event in facts.history or ()
            if event.kind == Kind.MEMBER_REPLACED and event.member_id == member_id
        )
        return max([facts.completed_ms, *taken_over])
    got = -1
    for event in reversed(facts.history or ()):
        if event.member_id != member_id or event.kind not in _OWNING:
            continue
        if place not in event.partitions:
            break
        got = event.timestamp_ms
    return got


_OWNING = (Kind.MEMBER_RECONCILED, Kind.MEMBER_REVOKING, Kind.MEMBER_WAITING, Kind.MEMBER_LEFT_FOR_NOW)
"""Events that list what a member of the consumer protocol owns."""


def _loops(facts: Facts, place: TopicPartition, instance_id: str | None, since_ms: int) -> int:
    """Return how many owners of a partition ended after this moment, that of its last commit or later."""
    return sum(
        event.timestamp_ms >= since_ms
        and (
            (event.kind == Kind.MEMBER_LEFT_OR_EXPIRED and place in event.partitions)
            or (event.kind == Kind.MEMBER_REPLACED and event.instance_id == instance_id)
        )
        for event in facts.history or ()
    )


def _fresh(
    cluster: ClusterView, facts: Facts, begun: Mapping[TopicPartition, OffsetRow]
) -> dict[TopicPartition, Status]:
    """Return the statuses of partitions without a commit, by what came since their owner got them."""
    if not begun or HISTORY in facts.left_out:
        return {}
    missed = facts.history is None or facts.state is None
    since = {} if missed else {p: _got_ms(facts, p, row.member_id) for p, row in begun.items()}
    known = {place: ms for place, ms in since.items() if ms >= 0}
    # One of the same moment may be older than the first position that its owner took.
    listed = list_offsets(cluster, {place: ms + 1 for place, ms in known.items()}) if known else {}
    what = "when its owner got it is not in its history, so neither is whether records came since"
    found = {place: unknown(Unseen(HISTORY, "NOT_SEEN", what)) for place in begun}
    for place in known:
        came, row = listed[place], begun[place]
        waited: int | Unseen = 0
        if isinstance(came, KgroupError):
            waited = Unseen(TIMES, code_name(came), f"{place}: {came.message}")
        elif came.offset >= 0:
            waited = facts.age_ms(came.timestamp_ms)
        seen = PartitionFacts(row.log_end_offset or 0, waited_ms=waited, owner=_owner(facts, row), start=-1)
        found[place] = status_of(seen)
    return found


def _former(facts: Facts) -> Iterator[tuple[TopicPartition, Status]]:
    """Yield what the history says of partitions whatever else is known of them."""
    for place, row in facts.rows if facts.rebuilt else ():
        if row.status is None or row.status.name in (PartitionStatus.GONE, PartitionStatus.UNLEADERED):
            continue
        if place in facts.rebuilt and row.committed_offset is not None:
            known = PartitionFacts(row.log_end_offset or 0, rebuilt=True, committed=row.committed_offset)
            yield place, status_of(known)
    unsubscribed = facts.by_status.get(PartitionStatus.UNSUBSCRIBED, ())
    stopped = _read_of_late(facts) if unsubscribed else {}
    for place, row in unsubscribed:
        if row.work and place not in facts.rebuilt:
            if facts.history is None and HISTORY not in facts.left_out:
                what = "whether a member read it of late is in its history, which is not known"
                yield place, unknown(Unseen(HISTORY, "NOT_SEEN", what))
            elif place in stopped:
                why = f"no member subscribes to it, it was read until {utc(stopped[place])}, and records wait"
                yield place, Status(PartitionStatus.UNSUBSCRIBED, WARN, why)


def _read_of_late(facts: Facts) -> dict[TopicPartition, int]:
    """Return when partitions were last committed by members, in the span that counts."""
    return {
        place: event.last_ms
        for event in facts.recent
        if event.kind == Kind.COMMITTED
        for place in event.partitions
    }
