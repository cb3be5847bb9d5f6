"""Crash loops of which no member is there at the look: each generation ended at the same record.

A supervisor starts them again later and later, so that mostly none is there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from kgroup.admin.diagnose.facts import LAG, Facts
from kgroup.admin.discovery import ClusterView
from kgroup.admin.models import SHARE, OffsetRow
from kgroup.admin.read.broker_clock import clock_of
from kgroup.admin.read.offsets import list_offsets
from kgroup.admin.read.record_times import times_at
from kgroup.admin.refusals import code_name, is_gone
from kgroup.admin.statuses import ERROR, LOOPS, SUSPECT_MS, PartitionStatus, Status, Unseen
from kgroup.domain import TopicPartition, count_of, grouped
from kgroup.errors import KgroupError
from kgroup.history.fold.events import Kind

Ends = Mapping[TopicPartition, Sequence[int]]
"""When members ended that had a partition."""


def judge_ended(cluster: ClusterView, facts: Sequence[Facts]) -> None:
    """Judge groups without members by what those that ended had committed, in a few requests for all."""
    empty = [(each, _ends(each)) for each in facts if each.group.type != SHARE and LAG not in each.left_out]
    empty = [(each, ends) for each, ends in empty if ends and not each.group.known_members]
    read = {id(each): dict(_unread(each, ends)) for each, ends in empty}
    fresh = {id(each): _uncommitted(each, ends) for each, ends in empty}
    times = times_at(
        cluster, {(p, row.committed_offset or 0) for rows in read.values() for p, row in rows.items()}
    )
    for each, ends in empty:
        stopped, committed_ms = {}, _committed_ms(each)
        for partition, row in read[id(each)].items():
            waits = times.get((partition, row.committed_offset or 0))
            since = max(committed_ms.get(partition, -1), waits if isinstance(waits, int) else -1)
            ended = sum(ms >= since for ms in ends[partition])
            if isinstance(waits, int) and ended >= LOOPS:
                why = f"{count_of(ended, 'generation')} ended at this record: no member gets beyond it"
                stopped[partition] = Status(PartitionStatus.STALLED, ERROR, why)
        if stopped:
            rows = (replace(row, status=stopped.get(p, row.status)) for p, row in each.rows)
            each.group = replace(each.group, offsets=tuple(rows))
        each.fruitless = dict(_fruitless(cluster, each, fresh[id(each)], ends))


def _ends(facts: Facts) -> Ends:
    ended = (event for event in facts.recent if event.kind == Kind.MEMBER_LEFT_OR_EXPIRED)
    found = grouped((partition, event.timestamp_ms) for event in ended for partition in event.partitions)
    return {partition: sorted(those) for partition, those in found.items() if len(those) >= LOOPS}


def _committed_ms(facts: Facts) -> dict[TopicPartition, int]:
    commits = (event for event in facts.history or () if event.kind == Kind.COMMITTED)
    return {partition: event.last_ms for event in commits for partition in event.partitions}


def _unread(facts: Facts, ends: Ends) -> Iterator[tuple[TopicPartition, OffsetRow]]:
    for partition, row, _ in facts.with_status(PartitionStatus.UNREAD):
        if row.work and row.committed_offset is not None and partition in ends:
            yield partition, row


def _uncommitted(facts: Facts, ends: Ends) -> dict[TopicPartition, int]:
    """Return the partitions without a commit, with when the first generation ended."""
    known = {partition for partition, row in facts.rows if row.committed_offset is not None}
    return {partition: those[0] for partition, those in ends.items() if partition not in known}


def _fruitless(
    cluster: ClusterView, facts: Facts, since_ms: Mapping[TopicPartition, int], ends: Ends
) -> Iterator[tuple[TopicPartition, int]]:
    if not since_ms:
        return
    facts.clock = facts.clock or clock_of(cluster, facts.now_ms)
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
