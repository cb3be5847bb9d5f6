"""Readers that have stopped, by the statuses of their partitions: who, since when, and what waits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kgroup.admin.diagnose.facts import Facts
from kgroup.admin.diagnose.wording import Found, name_of, one_host, removal_of, whereabouts
from kgroup.admin.models import CLASSIC, OffsetRow
from kgroup.admin.read.findings import SHOWN, some
from kgroup.admin.statuses import ERROR, Loop, PartitionStatus, Weight
from kgroup.domain import TopicPartition, count_of
from kgroup.durations import utc
from kgroup.history.fold.events import Kind, duration_text
from kgroup.history.fold.view import RecordedMember

_LOOK = (
    "look at that process and its log: it is dead, hangs, is paused, reads without committing, or lacks "
    "rights; which, is unknown, because neither polls nor rejected requests leave a record"
)
_REPEATS = (
    "look at its log: it lives and commits where it stands, so it fails on a record, is paused, waits for "
    "something, or commits the offset of the last record instead of the next"
)

REPEATS_MS = 60_000
"""Who last committed so long ago commits nothing any more."""


@dataclass(frozen=True, slots=True)
class Silent:
    """Partitions that wait for a member, which last committed them, or got them, at `since_ms`.

    `whole`: the member has committed nothing else since. `others`: the rest of the group has.
    """

    member: RecordedMember
    since_ms: int
    silent_ms: int
    whole: bool
    others: bool
    waiting: tuple[TopicPartition, ...]


def _silent_members(facts: Facts, weight: Weight) -> list[Silent]:
    """Return the members with stalled partitions of this weight, longest silence first."""
    rows = facts.with_status(PartitionStatus.STALLED)
    stalled = {p for p, _, status in rows if status.weight == weight and not isinstance(status, Loop)}
    if not stalled:
        return []
    last_ms = {partition: _last_sign_ms(facts, partition) for partition in facts.log.committed_ms}
    newest = max(last_ms.values(), default=-1)
    began_ms = _began_ms(facts)
    silent = []
    for member in facts.recorded_members.values():
        waiting = tuple(sorted(member.holds & stalled))
        if not waiting:
            continue
        began = began_ms.get(member.member_id, -1)
        since = min(max(began, last_ms.get(partition, -1)) for partition in waiting)
        last = max([began, *(last_ms.get(partition, -1) for partition in member.holds)])
        whole = last <= since or stalled.issuperset(member.holds)
        since = last if whole else since
        silent_ms = max(facts.age_ms(since), newest - since)
        silent.append(Silent(member, since, silent_ms, whole, newest > since, waiting))
    return sorted(silent, key=lambda reader: (reader.since_ms, name_of(reader.member)))


def _began_ms(facts: Facts) -> Mapping[str | None, int]:
    """Return since when each member may have what it has, by its id."""
    if facts.group.type == CLASSIC:
        return dict.fromkeys(facts.recorded_members, facts.completed_ms)
    # In the consumer protocol partitions stay where they are while others come and go.
    joined = (event for event in facts.history or () if event.kind == Kind.MEMBER_JOINED)
    return {event.member_id: event.timestamp_ms for event in joined}


def stopped(facts: Facts, weight: Weight) -> Iterator[Found]:
    """Yield what has stopped, certainly or perhaps, what to do about it, and its evidence."""
    silent = _silent_members(facts, weight)
    looping = [row for row in facts.with_status(PartitionStatus.STALLED) if isinstance(row[2], Loop)]
    if looping and weight == ERROR:
        names = some(partition for partition, _, _ in looping)
        yield (
            f"{names}: members came and went, and committed nothing of what waits there",
            "look for the record at that offset in the log of a member that ended: each may fail on it",
            [
                f"{partition} stands at offset {row.committed_offset} of {row.log_end_offset}: {status.why}"
                for partition, row, status in looping[:SHOWN]
            ],
        )
    if whole := [reader for reader in silent if reader.whole]:
        yield _stopped_members(facts, whole)
    if partly := [reader for reader in silent if not reader.whole]:
        partitions = [partition for reader in partly for partition in reader.waiting]
        holder = {partition: reader for reader in partly for partition in reader.waiting}
        shortest = duration_text(min(reader.silent_ms for reader in partly))
        stands = "stands" if len(partitions) == 1 else "stand"
        yield (
            f"{some(partitions)} {stands} still for {shortest} while the member's others go on",
            "look for the record at that offset in the member's log: it cannot process it, or pauses there",
            [
                f"{partition} stands at offset {row.committed_offset} of {row.log_end_offset}, "
                f"{_committed(facts, partition)}, "
                f"read by {whereabouts(holder[partition].member)}"
                for partition, row in _rows_of(facts, partitions)[:SHOWN]
            ],
        )


def _repeats(facts: Facts, partition: TopicPartition) -> bool:
    """Return whether its owner commits again and again where it stands."""
    since_ms, until_ms = facts.log.repeated.get(partition, (-1, -1))
    return since_ms >= 0 and facts.age_ms(until_ms) <= REPEATS_MS


def _last_sign_ms(facts: Facts, partition: TopicPartition) -> int:
    """Return when a partition's owner got on or, if it commits nothing any more, when it last did."""
    got_on_ms = facts.log.committed_ms[partition]
    return got_on_ms if _repeats(facts, partition) else facts.last_commit_ms(partition)


def _committed(facts: Facts, partition: TopicPartition) -> str:
    if _repeats(facts, partition):
        return f"committed at {utc(facts.log.committed_ms[partition])} and again and again since"
    return f"last committed at {utc(_last_sign_ms(facts, partition))}"


def _stopped_members(facts: Facts, silent: Sequence[Silent]) -> Found:
    members, known = [reader.member for reader in silent], facts.group.member_count
    shortest = duration_text(min(reader.silent_ms for reader in silent))
    repeats = all(_repeats(facts, partition) for reader in silent for partition in reader.waiting)
    nothing = "committed the same offsets again and again" if repeats else "committed nothing"
    go_on = " while others go on" if all(reader.others for reader in silent) else ""
    if len(silent) == 1:
        who = f"{name_of(members[0])} has {nothing} for {shortest}{go_on}"
    else:
        of = f" of {known}" if known is not None else ""
        who = f"{len(silent)}{of} members have {nothing} for {shortest} and more{go_on}"
        who += one_host(members)
    partitions = [partition for reader in silent for partition in reader.waiting]
    unread = sum(row.lag or 0 for _, row in _rows_of(facts, partitions))
    evidence = []
    for reader in silent[:SHOWN]:
        session_ms, rebalance_ms = reader.member.session_timeout_ms, reader.member.rebalance_timeout_ms
        terms = [
            f"{what} {duration_text(ms)}"
            for what, ms in (("session", session_ms), ("rebalance timeout", rebalance_ms))
            if ms > 0
        ]
        limits = f" ({', '.join(terms)})" if terms else ""
        last = f"last sign at {utc(reader.since_ms)}, {duration_text(reader.silent_ms)} ago{limits}"
        if repeats:
            last = f"offset of {reader.waiting[0]} {_committed(facts, reader.waiting[0])}"
        evidence.append(f"{whereabouts(reader.member)}: {last}")
    return (
        f"{who}: {count_of(unread, 'record')} {'waits' if unread == 1 else 'wait'} in {some(partitions)}",
        _REPEATS if repeats else f"{_LOOK}; if it is gone, {removal_of(facts.group.group_id, members)}",
        evidence,
    )


def _rows_of(facts: Facts, partitions: Sequence[TopicPartition]) -> list[tuple[TopicPartition, OffsetRow]]:
    chosen = set(partitions)
    return [(partition, row) for partition, row in facts.rows if partition in chosen]
