"""The lag of each group, partition by partition, with the partition's current reader."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import le, lt, sub
from types import MappingProxyType
from typing import Protocol, TypeVar

from kgroup.admin.discovery import Answers, ClusterView
from kgroup.admin.models import (
    CLASSIC,
    DEAD,
    EMPTY,
    SHARE,
    STABLE,
    Commits,
    GroupDescription,
    Member,
    OffsetRow,
    OpenProducer,
    RowsToMake,
    TopicDescription,
)
from kgroup.admin.read.group_facts import (
    COMMITS_UNREAD,
    GroupFacts,
    patterns_of,
    unassigned_patterns,
    unreadable_of,
)
from kgroup.admin.read.leader_epochs import EpochEnds
from kgroup.admin.read.members import partitions_of
from kgroup.admin.read.offsets import EARLIEST, LATEST, ListedOffset, list_offsets
from kgroup.admin.read.readable import LogView
from kgroup.admin.refusals import code_name, is_gone
from kgroup.admin.statuses import NO_EPOCHS, READ, Epochs, Status, Unseen, status_of
from kgroup.domain import NO_LEADER_EPOCH, TopicPartition, count_of, place_of, value
from kgroup.errors import KgroupError
from kgroup.patterns import compile_regex, matching_topics

Ends = Mapping[TopicPartition, ListedOffset | KgroupError]
_NO_EPOCHS: Mapping[int, int | Unseen] = MappingProxyType({})


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
    return list_offsets(cluster, dict.fromkeys(asked, EARLIEST), topics)


def topics_read(group: GroupDescription, visible: Iterable[str] = ()) -> set[str]:
    """Return the topics that members subscribe to or, as of a regular expression, have partitions of.

    Of `visible` topics those too that match an expression of which no current assignment shows the topics.
    """
    read = {
        topic
        for member in group.known_members
        for has in (member.assignment, member.target_assignment)
        for topic in (*(member.subscribed_topics or ()), *(e.topic for e in has or ()))
    }
    return read.union(*(matching_topics(compile_regex(r), visible) for r in unassigned_patterns(group)))


def topics_matched(group: GroupDescription, visible: Iterable[str]) -> set[str]:
    """Return the visible topics that match the patterns of a group's members."""
    return set[str]().union(*(matching_topics(pattern, visible) for pattern in patterns_of(group).values()))


def never_committed(
    offsets: Commits, members: Sequence[Member], read: Iterable[str], counts: Mapping[str, int | None]
) -> set[TopicPartition]:
    """Return the partitions that members own, or of topics that they read, without a committed offset.

    Partitions that were just added to a topic are among them before they are assigned. `counts` are the
    partitions of each topic.
    """
    owned = {partition for member in members for partition in partitions_of(member.assignment)}
    meant = {place_of(t, n) for t in read for n in range(counts.get(t) or 0)}
    read_ = owned | meant
    return read_.difference(offsets.places) if read_ else read_


@value
class SeenLog:
    """What the rows of one partition have in common, whichever group they are of.

    `answer` is that about its end. `words` and `code` say why the end is unknown. `start` is where the log
    begins, where that was asked for. `stable` is where readers of committed records stop, `held_open_by`
    whose transactions are open there. `epoch` is that of its leader, -1 where not told;
    `epoch_ends` are those of epochs that are over.
    """

    answer: ListedOffset | KgroupError
    end: int | None
    words: str | None
    code: str | None
    start: int | None
    view: LogView | None
    stable: int | None
    held_open_by: tuple[OpenProducer, ...] | None
    epoch: int
    epoch_ends: Mapping[int, int | Unseen]

    def changed(self, offset: int, epoch: int) -> Epochs | Unseen | None:
        """Return the epochs of a commit that is not of this log as it is now, or why that is not known."""
        if epoch <= self.epoch and epoch not in self.epoch_ends:
            return None
        end = self.epoch_ends.get(epoch)
        if isinstance(end, Unseen):
            return end
        epochs = Epochs(epoch, self.epoch, end)
        return epochs if epochs.why(offset) else None


@value
class LogColumns:
    """The ends and leader epochs of the logs of `places`, and where a record can be read behind an offset."""

    places: tuple[TopicPartition, ...]
    ends: list[int | None]
    epochs: list[int]
    starts: list[int]
    stops: list[int]


class Sight(dict[TopicPartition, SeenLog]):
    """What was seen of the logs, for all groups of a round; each is put together at its first use."""

    def __init__(
        self,
        ends: Ends,
        starts: Ends,
        views: Mapping[TopicPartition, LogView] = MappingProxyType({}),
        producers: Mapping[TopicPartition, tuple[OpenProducer, ...]] = MappingProxyType({}),
        epochs: EpochEnds = MappingProxyType({}),
    ) -> None:
        self._ends = ends
        self._starts = starts
        self._views = views
        self._producers = producers
        self._epochs = epochs
        self._columns: dict[int, LogColumns] = {}

    def columns(self, places: tuple[TopicPartition, ...]) -> LogColumns:
        """Return what was seen of the logs of these partitions, in their order."""
        if id(places) not in self._columns:
            logs = [self[partition] for partition in places]
            # Where a transaction holds readers back, each row is to be seen.
            waits = [log.view.waits if log.view and log.stable == log.end else range(0) for log in logs]
            starts = [those.start for those in waits]
            # Seen later than the end, a log may have records beyond it.
            stops = [min(those.stop, log.end or 0) for those, log in zip(waits, logs, strict=True)]
            ends, epochs = [log.end for log in logs], [log.epoch for log in logs]
            self._columns[id(places)] = LogColumns(places, ends, epochs, starts, stops)
        return self._columns[id(places)]

    def any_changed(self, commits: Commits) -> bool:
        """Return whether one of these offsets may not be of its log as it is now."""
        # Most are committed in the leader's present epoch, or in none.
        as_now = not self._epochs and all(map(le, commits.epochs, self.columns(commits.places).epochs))
        return not as_now and any(
            self[partition].changed(offset, epoch) is not None
            for partition, offset, epoch, _ in commits.cells
        )

    def __missing__(self, partition: TopicPartition) -> SeenLog:
        answer, start = self._ends[partition], self._starts.get(partition)
        view = self._views.get(partition)
        end = answer.offset if isinstance(answer, ListedOffset) else None
        words = code = stable = None
        if isinstance(answer, KgroupError):
            code, words = code_name(answer), answer.message
            if is_gone(answer):
                words = answer.detail or "the topic does not exist (deleted?)"
        if view is not None and isinstance(view.stable, int) and end is not None:
            # Seen later than the end, it may have moved beyond that.
            stable = min(view.stable, end)
        # A log that ends at 0 begins there.
        begins = start.offset if isinstance(start, ListedOffset) else 0 if end == 0 else None
        held = self._producers.get(partition) if stable is not None and stable != end else None
        epochs = self._epochs.get(partition, _NO_EPOCHS)
        epoch = answer.leader_epoch if isinstance(answer, ListedOffset) else -1
        log = self[partition] = SeenLog(answer, end, words, code, begins, view, stable, held, epoch, epochs)
        return log


def rows(
    group: GroupDescription,
    offsets: Commits | None,
    sight: Sight,
    unread: Collection[TopicPartition] = (),
    waits_as: Status | None = None,
) -> tuple[OffsetRow, ...]:
    """Return a row per partition with a committed offset or an owner, or among `unread`, in order.

    `offsets` is None when they could not be read; `waits_as` the status of what is behind, where it is known.
    """
    # In a share group several members read a partition: none of them owns it (KIP-932).
    members = () if group.type == SHARE else group.known_members
    owners = {owned: member for member in members for owned in partitions_of(member.assignment)}
    stored = offsets or Commits()
    facts = GroupFacts(group, None if offsets is not None else COMMITS_UNREAD)
    cells: Iterable[tuple[TopicPartition, int | None, int, str | None]] = stored.cells
    if bare := (owners.keys() | set(unread)).difference(stored.places) if owners or unread else ():
        cells = sorted([*cells, *((partition, None, NO_LEADER_EPOCH, None) for partition in bare)])
    return tuple([_row(*cell, owners.get(cell[0]), facts, sight[cell[0]], waits_as) for cell in cells])


def rows_to_make(
    group: GroupDescription, offsets: Commits | None, sight: Sight, unread: Collection[TopicPartition]
) -> RowsToMake | None:
    """Return the same rows, not yet made, if each partition is read to the end, or waits without members."""
    if offsets is None or not offsets.places or unread or group.type == SHARE:
        return None
    seen, committed = sight.columns(offsets.places), offsets.offsets
    if None in seen.ends or sight.any_changed(offsets):
        return None
    waits_as = GroupFacts(group).waits
    lags = list(map(sub, seen.ends, committed))
    if any(lags):
        # What is read to the end has nothing behind it.
        if waits_as is None or min(lags) < 0 or not all(map(le, seen.starts, committed)):
            return None
        # Mostly a record can be read from each offset up to the end.
        late = seen.stops == seen.ends or sum(map(lt, committed, seen.stops)) == len(lags) - lags.count(0)
        if not late:
            return None
    # By what was judged: the views of the logs may move on before they are made.
    make = partial(rows, offsets=offsets, sight=sight, waits_as=waits_as)
    return RowsToMake(offsets.places, offsets.offsets, lags, waits_as or READ, make)


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
    unreadable: int = 0


class Behind(Protocol):
    """The fields of a partition's row that totals use."""

    @property
    def lag(self) -> int | None: ...

    @property
    def gone(self) -> bool: ...

    @property
    def unreadable(self) -> int | None: ...


Row = TypeVar("Row", bound=Behind)


def counted(offsets: Iterable[Row]) -> list[Row]:
    """Return the rows that count: a partition that is gone has nothing to read, and no reader."""
    return [row for row in offsets if row.lag is not None or not row.gone]


def unknown_of(offsets: Iterable[Row]) -> list[Row]:
    """Return the rows whose lag is not known."""
    return [row for row in counted(offsets) if row.lag is None]


def readers_unknown(state: str) -> str:
    """Return why the lag of a group in this state is not known, where no row and no error says it."""
    return f"it is {state}, and which partitions its members read is not known"


def total(offsets: Iterable[Behind], *, all_rows: bool = True, lags: Sequence[int] = ()) -> Total:
    """Return the total of rows, and of others with `lags`; `all_rows` is off where some may have no row."""
    those = counted(offsets)
    known = [*lags, *(row.lag for row in those if row.lag is not None)]
    unknown = len(those) + len(lags) - len(known)
    at_least = sum(known) if known else None
    unreadable = sum([row.unreadable for row in those if row.unreadable])
    return Total(None if unknown or not all_rows else at_least, at_least, unknown, unreadable)


def _row(
    partition: TopicPartition,
    offset: int | None,
    epoch: int,
    metadata: str | None,
    owner: Member | None,
    group: GroupFacts,
    log: SeenLog,
    waits_as: Status | None = None,
) -> OffsetRow:
    """Return the row of a partition; `waits_as` is its status if it is behind, where that is known."""
    end = log.end
    log_start = reason = None
    lag: int | None = 0
    unreadable: int | None = 0
    status: Status | None = READ
    changed = None if offset is None else log.changed(offset, epoch)
    if offset != end or end is None or group.unread is not None or changed is not None:
        status = waits_as
        if offset is not None and end is not None:
            lag, reason = behind(offset, end, changed)
            if status is None and log.view is not None and changed is None:
                status = group.waiting(partition, offset, owner, log.answer, log.view)
        else:
            lag, reason = _uncommitted(log.start, end, log.words, log.view)
            log_start = log.start if offset is None else None
        if status is None:
            facts = group.of(partition, offset, owner, log.answer, log_start, log.view, changed or NO_EPOCHS)
            status = status_of(facts)
            unreadable = unreadable_of(facts, lag)
    waits = lag != 0
    if group.unread is not None:
        lag, reason = None, group.unread.message
    return OffsetRow(
        partition.topic,
        partition.partition,
        offset,
        end,
        lag,
        epoch if epoch >= 0 else None,
        metadata,
        None if owner is None else owner.member_id,
        None if owner is None else owner.instance_id,
        log.words,
        None,
        log_start,
        reason,
        log.code,
        None,
        log.stable if waits else None,
        log.held_open_by if waits else None,
        None,
        status,
        unreadable,
        group.unread is None,
    )


def _uncommitted(
    begins: int | None, log_end: int | None, words: str | None, view: LogView | None
) -> tuple[int | None, str | None]:
    """Return the lag of a partition without a commit, or why it is unknown."""
    if log_end is None:
        return None, words
    if begins is None:
        return None, f"never committed, and where the log begins is not known; it ends at {log_end}"
    # Nothing to read, wherever the reader begins.
    if begins >= log_end or (view is not None and view.readable(begins) is False and view.stable == log_end):
        return 0, None
    earliest = f"earliest would read {count_of(log_end - begins, 'record')} ({begins} to {log_end})"
    return None, f"never committed: auto.offset.reset decides, {earliest}, latest none of them"


def behind(committed: int, end: int, changed: Epochs | Unseen | None = None) -> tuple[int | None, str | None]:
    """Return the lag of a committed offset, or why it is unknown: beyond the end it counts no records.

    So it does beyond where its log was cut since, by the epochs that have `changed`.
    """
    if isinstance(changed, Epochs) and not changed.ahead and (why := changed.why(committed)):
        return None, why
    if committed <= end:
        return end - committed, None
    return None, f"committed offset {committed} is {committed - end} beyond the end {end} of the log"
