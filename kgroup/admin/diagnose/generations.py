"""Crash loops of which no member is there at the look: each generation ended at the same record.

A supervisor starts them again later and later, so that mostly none is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

from kgroup.admin.diagnose.facts import LAG, Facts
from kgroup.admin.discovery import ClusterView
from kgroup.admin.models import SHARE, OffsetRow
from kgroup.admin.read.broker_clock import clock_of
from kgroup.admin.read.offsets import list_offsets
from kgroup.admin.read.readable import untimed
from kgroup.admin.read.record_times import times_at
from kgroup.admin.refusals import code_name, is_gone
from kgroup.admin.statuses import ERROR, LOOPS, SUSPECT_MS, PartitionStatus, Status, Unseen
from kgroup.domain import TopicPartition, count_of, grouped
from kgroup.errors import KgroupError
from kgroup.history.fold.events import Event, Kind

Ends = Mapping[TopicPartition, Sequence[int]]
"""When members ended that had a partition, oldest first."""


def judge_ended(cluster: ClusterView, facts: Sequence[Facts]) -> None:
    """Judge groups without members by what those that ended had committed.

    One request per leader for all of them, and one more for each that has partitions without a commit.
    """
    groups = (each for each in facts if each.group.type != SHARE and LAG not in each.left_out)
    empty = [(each, ends) for each in groups if not each.group.known_members and (ends := _ends(each))]
    unread = [dict(_unread(each, ends)) for each, ends in empty]
    oldest = {(partition, row.committed_offset or 0) for rows in unread for partition, row in rows.items()}
    times = times_at(cluster, oldest) if oldest else {}
    clock = cache(lambda: clock_of(cluster, facts[0].now_ms))
    for (each, ends), rows in zip(empty, unread, strict=True):
        stopped = {}
        for partition, row in rows.items():
            waits = times[partition, row.committed_offset or 0]
            if not isinstance(waits, int):
                each.unseen.append(untimed(partition, waits))
            elif (ended := sum(ms >= waits for ms in ends[partition])) >= LOOPS:
                why = f"{count_of(ended, 'generation')} ended at this record: no member gets beyond it"
                stopped[partition] = Status(PartitionStatus.STALLED, ERROR, why)
        if stopped:
            each.group = replace(
                each.group,
                offsets=tuple(replace(row, status=stopped.get(p, row.status)) for p, row in each.rows),
            )
        committed = {partition for partition, row in each.rows if row.committed_offset is not None}
        if fresh := {partition: those[0] for partition, those in ends.items() if partition not in committed}:
            each.clock = each.clock or clock()
            each.fruitless = dict(_fruitless(cluster, each, fresh, ends))


def ended_ms(events: Iterable[Event]) -> dict[TopicPartition, list[int]]:
    """Return when members ended that had a partition."""
    ended = (event for event in events if event.kind == Kind.MEMBER_LEFT_OR_EXPIRED)
    return grouped((partition, event.timestamp_ms) for event in ended for partition in event.partitions)


def read_of_late(facts: Facts) -> dict[TopicPartition, int]:
    """Return when partitions were last committed by members, in the span that counts."""
    commits = (event for event in facts.recent if event.kind == Kind.COMMITTED)
    return {partition: event.last_ms for event in commits for partition in event.partitions}


def _ends(facts: Facts) -> Ends:
    """Return when members ended that committed nothing of a partition any more, where that makes a loop."""
    found = ended_ms(facts.recent)
    read = read_of_late(facts) if found else {}
    since = {p: sorted(ms for ms in those if ms >= read.get(p, -1)) for p, those in found.items()}
    return {partition: those for partition, those in since.items() if len(those) >= LOOPS}


def _unread(facts: Facts, ends: Ends) -> Iterator[tuple[TopicPartition, OffsetRow]]:
    for partition, row, _ in facts.with_status(PartitionStatus.UNREAD):
        if row.work and row.committed_offset is not None and partition in ends:
            yield partition, row


def _fruitless(
    cluster: ClusterView, facts: Facts, since_ms: Mapping[TopicPartition, int], ends: Ends
) -> Iterator[tuple[TopicPartition, int]]:
    """Yield the partitions of which records came since that no member committed, with how many ended then."""
    listed = list_offsets(cluster, since_ms)
    for partition, came in sorted(listed.items()):
        if isinstance(came, KgroupError):
            if is_gone(came):
                continue
            what = f"{partition}: whether records came that no member committed: {came.message}"
            facts.unseen.append(Unseen(LAG, code_name(came), what))
        elif came.offset >= 0 and facts.age_ms(came.timestamp_ms) >= SUSPECT_MS:
            ended = sum(ms >= came.timestamp_ms for ms in ends[partition])
            if ended >= LOOPS:
                yield partition, ended
