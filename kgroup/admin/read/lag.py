"""The lag of each group, partition by partition, with the partition's current reader."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from kgroup.admin.discovery import Answers, ClusterView
from kgroup.admin.models import (
    CLASSIC,
    DEAD,
    EMPTY,
    STABLE,
    CommitUnread,
    GroupDescription,
    Member,
    OffsetRow,
    TopicDescription,
)
from kgroup.admin.read.members import partitions_of
from kgroup.admin.read.offsets import EARLIEST, LATEST, Committed, ListedOffset, list_offsets
from kgroup.admin.refusals import code_name, is_gone
from kgroup.domain import OffsetAndMetadata, TopicPartition, place_of
from kgroup.errors import KgroupError

Ends = Mapping[TopicPartition, ListedOffset | KgroupError]


def log_ends(
    cluster: ClusterView,
    partitions: Iterable[TopicPartition],
    topics: Answers[TopicDescription] | None = None,
) -> Ends:
    """Return the end of each partition's log, or why it is unknown."""
    return list_offsets(cluster, dict.fromkeys(partitions, LATEST), topics)


def log_starts(
    cluster: ClusterView, unread: Iterable[TopicPartition], ends: Ends, topics: Answers[TopicDescription]
) -> Ends:
    """Return the log starts of these partitions; only of those that may hold records."""
    asked = {p for p in unread if isinstance(end := ends.get(p), ListedOffset) and end.offset > 0}
    return list_offsets(cluster, dict.fromkeys(asked, EARLIEST), topics) if asked else {}


def topics_read(members: Iterable[Member]) -> set[str]:
    """Return the topics that members subscribe to or, as of a regular expression, have partitions of."""
    return {
        topic
        for member in members
        for topic in (*(member.subscribed_topics or ()), *(e.topic for e in member.assignment or ()))
    }


def never_committed(
    offsets: Committed, members: Sequence[Member], counts: Mapping[str, int | None]
) -> set[TopicPartition]:
    """Return the partitions that members own or subscribe to and that have no committed offset.

    Partitions that were just added to a topic are among them before they are assigned. `counts` are the
    partitions of each topic.
    """
    owned = {partition for member in members for partition in partitions_of(member.assignment)}
    meant = {place_of(t, n) for t in topics_read(members) for n in range(counts.get(t) or 0)}
    return (owned | meant) - offsets.keys()


def rows(
    offsets: Committed | None,
    members: Iterable[Member],
    ends: Ends,
    starts: Ends,
    unread: Collection[TopicPartition] = (),
) -> tuple[OffsetRow, ...]:
    """Yield a row per partition with a committed offset or an owner, or among `unread`, in order.

    `offsets` is None when they could not be read. `starts` has the log starts of partitions that were
    never committed.
    """
    owners = {owned: member for member in members for owned in partitions_of(member.assignment)}
    stored = offsets or {}
    made = [
        _row(p, stored.get(p), owners.get(p), ends.get(p), starts.get(p))
        for p in sorted(stored.keys() | owners.keys() | set(unread) if owners or unread else stored)
    ]
    if offsets is not None:
        return tuple(made)
    reason = CommitUnread("what is committed could not be read")
    return tuple(replace(row, lag=None, reason=reason) for row in made)


def readers_known(group: GroupDescription) -> bool:
    """Return whether the partitions that the members read are known.

    They are unknown while a classic group rebalances, and where an assignment is in another protocol's bytes.
    """
    if group.state in (EMPTY, DEAD):
        return True
    if group.members is None or (group.type == CLASSIC and group.state != STABLE):
        return False
    return all(member.assignment is not None for member in group.members)


@dataclass(frozen=True, slots=True)
class Total:
    """The known part of a group's total lag: `lag` only when no part of it is unknown.

    `at_least` is the sum of the known parts, None when none is; `unknown` counts the partitions with unknown
    lag. Partitions that no longer exist have nothing to read and do not count.
    """

    lag: int | None
    at_least: int | None
    unknown: int


class Behind(Protocol):
    """The fields of a partition's row that totals use."""

    @property
    def lag(self) -> int | None: ...

    @property
    def gone(self) -> bool: ...


Row = TypeVar("Row", bound=Behind)


def counted(offsets: Iterable[Row]) -> list[Row]:
    """Return the rows that count: a partition that is gone has nothing to read, and no reader."""
    return [row for row in offsets if row.lag is not None or not row.gone]


def total(offsets: Iterable[Behind], *, all_rows: bool = True) -> Total:
    """Return the total of some rows; `all_rows` is off where there may be partitions without a row."""
    those = counted(offsets)
    known = [row.lag for row in those if row.lag is not None]
    unknown = len(those) - len(known)
    at_least = sum(known) if known else None
    return Total(None if unknown or not all_rows else at_least, at_least, unknown)


def _row(
    partition: TopicPartition,
    committed: OffsetAndMetadata | None,
    owner: Member | None,
    end: ListedOffset | KgroupError | None,
    start: ListedOffset | KgroupError | None,
) -> OffsetRow:
    lag: int | None
    reason: str | None
    log_start: int | None
    log_end, failure, words = None, None, None
    if isinstance(end, ListedOffset):
        log_end = end.offset
    elif end is not None:
        failure = end
        words = (end.detail or "the topic does not exist (deleted?)") if is_gone(end) else end.message
    if committed is not None and log_end is not None:
        (lag, reason), log_start = behind(committed.offset, log_end), None
    else:
        # A log that ends at 0 begins there.
        begins = start.offset if isinstance(start, ListedOffset) else 0 if log_end == 0 else None
        lag, reason = None, None
        if log_end is None:
            reason = words or "the end of the log is not known"
        elif begins is None:
            reason = f"never committed, and where the log begins is not known; it ends at {log_end}"
        elif begins >= log_end:
            lag = 0  # nothing to read, wherever the reader begins
        else:
            earliest = f"earliest would read {log_end - begins} records ({begins} to {log_end})"
            reason = f"never committed: auto.offset.reset decides, {earliest}, latest none of them"
        log_start = begins if committed is None else None
    return OffsetRow(
        partition.topic,
        partition.partition,
        None if committed is None else committed.offset,
        log_end,
        lag,
        committed.leader_epoch if committed is not None and committed.leader_epoch >= 0 else None,
        None if committed is None else committed.metadata,
        None if owner is None else owner.member_id,
        None if owner is None else owner.instance_id,
        words,
        None,
        log_start,
        reason,
        None if failure is None else code_name(failure),
    )


def behind(committed: int, end: int) -> tuple[int | None, str | None]:
    """Return the lag of a committed offset, or why it is unknown: beyond the end it counts no records."""
    if committed <= end:
        return end - committed, None
    return None, f"committed offset {committed} is {committed - end} beyond the end {end} of the log"
