"""The lag of groups: in records, in time, and whether they catch up."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Annotated, TypeAlias

from kgroup.admin.discovery import ClusterView
from kgroup.admin.models import (
    SHARE,
    Description,
    GroupDescription,
    GroupType,
    ItemError,
    OffsetRow,
    OpenProducer,
    PartitionRow,
    RowsWhenUsed,
)
from kgroup.admin.read.broker_clock import Clock, clocks_of
from kgroup.admin.read.describe import describe, describe_each
from kgroup.admin.read.lag import counted
from kgroup.admin.read.readable import CLOCK_UNSURE
from kgroup.admin.read.record_times import Age, Untimed, times_at
from kgroup.admin.refusals import code_name
from kgroup.admin.statuses import Status
from kgroup.domain import TopicPartition, value
from kgroup.errors import KgroupError

Ages: TypeAlias = Mapping[tuple[TopicPartition, int], Age]
Rows: TypeAlias = Mapping[tuple[str, TopicPartition], OffsetRow]
"""Rows by group and partition."""

NOISE = 0.1
"""The part of a rate in which two polls differ by chance: members commit at intervals, not steadily."""
AHEAD_MS = 5_000
"""Clocks may differ by this much, and a record that just came still counts as one."""
SOME_DONE = "some records from the start offset on are done: which one is the oldest that waits is not known"


@dataclass(frozen=True, slots=True)
class Between(Untimed):
    """An age of which only the bounds are known; `most_ms` is None where nothing bounds it."""

    least_ms: int
    most_ms: int | None
    code: str | None = None


@value
class PartitionLag(PartitionRow):
    """One partition a group reads or has committed; a field named as one of OffsetRow has its meaning.

    `time_lag_ms` is the age of the oldest record not yet read, 0 with no lag, None when not requested or
    unknown; where the lag is known, `reason` says why its age is not. Rates are records per second over the
    interval measured. `error` says what could not be read.
    """

    topic: str
    partition: int
    committed_offset: int | None
    log_end_offset: int | None
    lag: int | None
    time_lag_ms: int | None
    consumed_per_s: float | None
    produced_per_s: float | None
    instance_id: str | None
    member_id: str | None
    error: str | None
    error_code: str | None = None
    reason: str | None = None
    log_start_offset: int | None = None
    last_stable_offset: int | None = None
    held_open_by: tuple[OpenProducer, ...] | None = None
    time_lag_at_least_ms: Annotated[
        int | None,
        "where the age has bounds only: of a share group some records beyond the start are done, or this "
        "machine's clock is not the brokers' (`error_code` CLOCK_UNSURE)",
    ] = None
    time_lag_at_most_ms: int | None = None
    status: Annotated[Status | None, "as in `describe`, as unreadable"] = None
    unreadable: int | None = None
    commit_known: Annotated[bool, "as in `describe`"] = True


@value
class GroupLag(RowsWhenUsed[PartitionLag]):
    """One group; a total is None when any part of it is unknown.

    Then the lag is at least `lag_at_least`, the oldest unread record at least `time_lag_at_least_ms` old;
    `unknown_partitions` counts the rows that say why.
    """

    group_id: str
    type: GroupType
    state: str
    total_lag: int | None
    max_time_lag_ms: Annotated[int | None, "null when any part is unknown"]
    consumed_per_s: float | None
    produced_per_s: float | None
    offsets: tuple[PartitionLag, ...]
    lag_at_least: Annotated[int | None, "as in `describe`"] = None
    unknown_partitions: int = 0
    time_lag_at_least_ms: int | None = None
    time_lag_at_most_ms: Annotated[int | None, "where `max_time_lag_ms` is null, and bounds are known"] = None
    errors: tuple[ItemError, ...] = ()
    no_offsets: Annotated[str | None, "as in `describe`"] = None
    """Why a group of its kind has neither committed offsets nor lag."""
    unreadable_lag: Annotated[int, "as in `describe`"] = 0

    @property
    def gain_per_s(self) -> float | None:
        """How fast the lag shrinks (below 0: grows) at the rates measured; 0 within their noise."""
        if self.consumed_per_s is None or self.produced_per_s is None:
            return None
        gain = self.consumed_per_s - self.produced_per_s
        return gain if abs(gain) >= NOISE * max(self.consumed_per_s, self.produced_per_s) else 0.0

    @property
    def catches_up_in_s(self) -> float | None:
        """The time until the lag is gone at the rates measured; None when it does not shrink beyond noise."""
        if self.total_lag is None or (gain := self.gain_per_s) is None:
            return None
        return 0.0 if not self.total_lag else self.total_lag / gain if gain > 0 else None


@dataclass(frozen=True, slots=True)
class LagReport:
    """The lag of several groups; `errors` says which of them, and which parts, could not be read.

    `missing` are the groups not described at all.
    """

    groups: tuple[GroupLag, ...]
    errors: tuple[ItemError, ...] = ()
    missing: frozenset[str] = frozenset()


def measure(
    cluster: ClusterView, group_ids: Iterable[str], *, times: bool = False, interval_s: float | None = None
) -> LagReport:
    """Return each group's lag now; `times` adds lag in time, `interval_s` rates from two polls."""
    names = list(dict.fromkeys(group_ids))
    first: Rows = {}
    if interval_s is not None:
        began = cluster.retry.clock()
        first = by_partition(describe(cluster, names, expected=False, topologies=False))
        cluster.retry.pause(interval_s)
        interval_s = cluster.retry.clock() - began
    asked_ms = cluster.now_ms()
    description = describe(cluster, names, expected=False, topologies=False)
    ages = _ages(cluster, description.groups, asked_ms) if times else None
    return report_of(description, ages, first, interval_s)


def measure_each(
    cluster: ClusterView, group_ids: Iterable[str], *, times: bool = False
) -> Iterator[LagReport]:
    """Yield the same without rates, in rounds: for more groups than memory should hold."""
    asked_ms = cluster.now_ms()
    for description in describe_each(cluster, group_ids, expected=False, topologies=False):
        yield in_time(cluster, description, asked_ms) if times else report_of(description)
        asked_ms = cluster.now_ms()


def in_time(cluster: ClusterView, description: Description, asked_ms: int) -> LagReport:
    """Return the lag of groups described, in records and in time, as of when they were asked for."""
    return report_of(description, _ages(cluster, description.groups, asked_ms))


def report_of(
    description: Description,
    ages: Mapping[str, Ages] | None = None,
    first: Rows = MappingProxyType({}),
    interval_s: float | None = None,
) -> LagReport:
    """Return the lag of groups described, times where `ages` are known, and rates since `first`."""
    groups = tuple(
        _report(group, None if ages is None else ages.get(group.group_id, {}), first, interval_s)
        for group in description.groups
    )
    errors = description.errors + tuple(e for group in description.groups for e in group.errors)
    return LagReport(groups, errors, frozenset(error.item for error in description.errors))


def sampled(
    describe: Callable[[list[str]], Description], group_ids: Iterable[str], interval_s: float | None
) -> LagReport:
    """Return the lag of the groups that `describe` reads, with `interval_s` at which rate."""
    names = list(dict.fromkeys(group_ids))
    if interval_s is None:
        return report_of(describe(names))
    began, first = time.monotonic(), by_partition(describe(names))
    time.sleep(interval_s)
    return report_of(describe(names), first=first, interval_s=time.monotonic() - began)


def by_partition(description: Description) -> Rows:
    """Return the rows of groups described."""
    return {(g.group_id, row.place): row for g in description.groups for row in g.offsets}


def _ages(cluster: ClusterView, groups: Sequence[GroupDescription], asked_ms: int) -> Mapping[str, Ages]:
    """Return the age of the record at each committed offset, for all groups in few requests.

    It may have been read while a slow broker was awaited: how long that took is no part of its age.
    """
    waiting = {
        group.group_id: {
            (row.place, offset)
            for row in group.offsets
            if row.work and row.committed_offset is not None
            for offset in (row.committed_offset, _waits_by(group, row))
        }
        for group in groups
    }
    # A clock that is off shows in whatever was written last, where nothing waits too.
    partitions = {
        group.group_id: [row.place for row in group.offsets] for group in groups if waiting[group.group_id]
    }
    if not partitions:
        return {}
    clocks = clocks_of(cluster, cluster.now_ms(), set().union(*partitions.values()))
    since_ms = max(cluster.now_ms() - asked_ms, 0)
    times = times_at(cluster, set().union(*waiting.values()))
    by_group = {
        group.group_id: clocks(partitions[group.group_id], group.coordinated_by)
        for group in groups
        if waiting[group.group_id]
    }
    return {
        name: {at: _age(clock, times[at], since_ms) for at in waiting[name]}
        for name, clock in by_group.items()
    }


def _age(clock: Clock, written: Age, since_ms: int = 0) -> Age:
    """Return the age of a record so long ago by its own timestamp; none for a timestamp in the future."""
    if not isinstance(written, int):
        return written
    ahead = written - clock.most_ms
    if ahead > AHEAD_MS:
        what = f"the record there is stamped {ahead / 1000:.0f} s in the future"
        return Untimed(f"{what}: its producer's clock is ahead, or this machine's is behind")
    age_ms = max(-ahead - since_ms, 0)
    words = clock.doubt
    if words is None:
        return age_ms
    most_ms = None if clock.is_behind or clock.ahead else age_ms
    return Between(words, max(clock.age_ms(written) - since_ms, 0), most_ms, CLOCK_UNSURE.code)


def _waits_by(group: GroupDescription, row: OffsetRow) -> int:
    """Return an offset at or before which the oldest unread record of a group lies.

    In a share group some records from the start offset on may be done: the lag counts those that are not.
    """
    assert row.committed_offset is not None
    if group.type != SHARE or row.log_end_offset is None or row.lag is None:
        return row.committed_offset
    return max(row.committed_offset, row.log_end_offset - row.lag)


def _oldest(group: GroupDescription, row: OffsetRow, ages: Ages) -> Age | None:
    """Return the age of the oldest unread record, its bounds, or why it is unknown."""
    if not row.work or row.committed_offset is None:
        return 0 if row.work == 0 else None
    young, old = (ages.get((row.place, at)) for at in (_waits_by(group, row), row.committed_offset))
    if young == old or not isinstance(old, int | Between):
        return old
    if not isinstance(young, int | Between):
        return young
    # Out of order, the later record may be the older one.
    (low, high), (least, most) = _bounds(young), _bounds(old)
    why, code = (old.why, old.code) if isinstance(old, Between) else (SOME_DONE, None)
    return Between(why, min(low, least), None if high is None or most is None else max(high, most), code)


def _bounds(age: int | Between) -> tuple[int, int | None]:
    return (age, age) if isinstance(age, int) else (age.least_ms, age.most_ms)


def _report(group: GroupDescription, ages: Ages | None, first: Rows, interval_s: float | None) -> GroupLag:
    if ages is None and not first:
        if (rows := group.to_make) is None:
            return of_rows(group, tuple(map(_plain_row, group.offsets)))
        lag = of_rows(group, ())
        lag.make_later(replace(rows, make=lambda _: tuple(map(_plain_row, group.offsets))))
        return lag

    def measured(row: OffsetRow) -> PartitionLag:
        age = None if ages is None else _oldest(group, row, ages)
        before = first.get((group.group_id, row.place))
        return _plain_row(row) if age is None and before is None else _row(row, age, before, interval_s)

    return of_rows(group, tuple(map(measured, group.offsets)))


def of_rows(group: GroupDescription, rows: tuple[PartitionLag, ...]) -> GroupLag:
    """Return the lag of a group described, whose partitions have these rows."""
    those = counted(rows)
    oldest, all_ages = oldest_of(those)
    return GroupLag(
        group_id=group.group_id,
        type=group.type,
        state=group.state,
        total_lag=group.total_lag,
        max_time_lag_ms=oldest if all_ages and group.total_lag is not None else None,
        consumed_per_s=rate_of(row.consumed_per_s for row in those),
        produced_per_s=rate_of(row.produced_per_s for row in those),
        offsets=rows,
        lag_at_least=group.lag_at_least,
        unknown_partitions=group.unknown_partitions,
        time_lag_at_least_ms=oldest,
        time_lag_at_most_ms=None if all_ages or group.total_lag is None else _at_most(those),
        errors=group.errors,
        no_offsets=group.no_offsets,
        unreadable_lag=group.unreadable_lag,
    )


def _row(row: OffsetRow, age: Age | None, before: OffsetRow | None, interval_s: float | None) -> PartitionLag:
    consumed = produced = None
    if before is not None and interval_s:
        consumed = _rate(before.committed_offset, row.committed_offset, interval_s)
        if consumed is None and row.lag == 0 == before.lag:
            consumed = 0.0  # an empty log, never committed
        produced = _rate(before.log_end_offset, row.log_end_offset, interval_s)
    unread = f"the record there cannot be read: {age.message}" if isinstance(age, KgroupError) else None
    bounds = age if isinstance(age, Between) else None
    code = code_name(age) if isinstance(age, KgroupError) else None if bounds is None else bounds.code
    return replace(
        _plain_row(row),
        time_lag_ms=age if isinstance(age, int) else None,
        consumed_per_s=consumed,
        produced_per_s=produced,
        error=row.error or unread,
        error_code=row.error_code or code,
        reason=row.reason or (None if age is None or isinstance(age, int | KgroupError) else age.why),
        time_lag_at_least_ms=None if bounds is None else bounds.least_ms,
        time_lag_at_most_ms=None if bounds is None else bounds.most_ms,
    )


def _plain_row(row: OffsetRow) -> PartitionLag:
    """Return a row without times and rates, of which there may be a million."""
    return PartitionLag(
        row.topic,
        row.partition,
        row.committed_offset,
        row.log_end_offset,
        row.lag,
        None,
        None,
        None,
        row.instance_id,
        row.member_id,
        row.error,
        row.error_code,
        row.reason,
        row.log_start_offset,
        row.last_stable_offset,
        row.held_open_by,
        None,
        None,
        row.status,
        row.unreadable,
        row.commit_known,
    )


def _rate(before: int | None, after: int | None, interval_s: float) -> float | None:
    return None if before is None or after is None else round((after - before) / interval_s, 3)


def oldest_of(rows: Sequence[PartitionLag]) -> tuple[int | None, bool]:
    """Return the least age of the oldest unread record, and whether every partition's is known."""
    ages = [row.time_lag_at_least_ms if row.time_lag_ms is None else row.time_lag_ms for row in rows]
    known = [age for age in ages if age is not None]
    return max(known, default=None), all(row.time_lag_ms is not None for row in rows)


def _at_most(rows: Sequence[PartitionLag]) -> int | None:
    """Return the greatest age of the oldest unread record; None where a partition's is unknown."""
    ages = [row.time_lag_at_most_ms if row.time_lag_ms is None else row.time_lag_ms for row in rows]
    known = [age for age in ages if age is not None]
    return max(known) if known and len(known) == len(ages) else None


def rate_of(rates: Iterable[float | None]) -> float | None:
    """Return the sum of some rates; None when one of them is not known, or when there are none."""
    known = list(rates)
    return round(sum(r for r in known if r is not None), 3) if known and None not in known else None
