"""Lag as looks saw it, as lines and put together again.

What follows from a commit and the end of its log (`Ends`) is not stored: most ends move between two looks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from kgroup.admin.models import GroupDescription
from kgroup.admin.read.lag import total
from kgroup.admin.read.lag_report import GroupLag, PartitionLag, of_rows
from kgroup.admin.recording.lines import Commits, Ends, Lags
from kgroup.domain import TopicPartition, place_of


def lines_of(
    at_ms: int, lag: GroupLag, ends: Mapping[TopicPartition, int | None]
) -> Iterator[Lags | Commits]:
    """Yield the lag of a group at a look, which saw these ends of logs (None is unknown)."""
    rows: list[PartitionLag] = []
    moving: dict[str, list[tuple[int, int | None, int | None]]] = {row.topic: [] for row in lag.offsets}
    for row in lag.offsets:
        if not _is_plain(row, ends.get(row.place)):
            rows.append(row)
            continue
        written_ms = None if not row.work or row.time_lag_ms is None else at_ms - row.time_lag_ms
        moving[row.topic].append((row.partition, row.committed_offset, written_ms))
        rows.append(_without(row))
    all_rows = lag.total_lag is not None or lag.unknown_partitions > 0
    head = lag.group_id, lag.type, lag.state, all_rows, lag.errors, lag.no_offsets
    yield Lags(at_ms, *head, tuple(rows))
    for topic, those in moving.items():
        yield Commits(at_ms, lag.group_id, topic, *(zip(*those, strict=True) if those else ((), (), ())))


def lag_of(at_ms: int, line: Lags, commits: Iterable[Commits], ends: Iterable[Ends]) -> GroupLag:
    """Return the lag of a group at a look, from the lines about it that were the last ones then."""
    ended = {place_of(of.topic, n): end for of in ends for n, end in zip(of.partitions, of.ends, strict=True)}
    moving = {
        place_of(of.topic, n): (offset, written_ms)
        for of in commits
        for n, offset, written_ms in zip(of.partitions, of.offsets, of.written_ms, strict=True)
    }
    rows: list[PartitionLag] = []
    for row in line.rows:
        partition = row.place
        end = ended.get(partition)
        if partition in moving and end is not None:
            row = _filled(row, at_ms, *moving[partition], end)
        rows.append(row)
    sums = total(rows, all_rows=line.all_rows)
    group = GroupDescription(
        line.group_id,
        line.type,
        "",
        line.state,
        total_lag=sums.lag,
        errors=line.errors,
        lag_at_least=sums.at_least,
        unknown_partitions=sums.unknown,
        no_offsets=line.no_offsets,
        unreadable_lag=sums.unreadable,
    )
    return of_rows(group, tuple(rows))


def _is_plain(row: PartitionLag, end: int | None) -> bool:
    """Return whether all that ends decide in a row follows from its commit and the end of the look."""
    lag = row.lag
    return (
        lag is not None
        and row.reason is None is row.error
        and end is not None
        and row.committed_offset == end - lag
        and end == row.log_end_offset
        and row.last_stable_offset == (end if lag else None)
        and (bool(row.work) or row.time_lag_ms == 0)
    )


def _without(row: PartitionLag) -> PartitionLag:
    """Return a row without what `_filled` adds."""
    return replace(
        row,
        committed_offset=None,
        log_end_offset=None,
        lag=None,
        last_stable_offset=None,
        time_lag_ms=None,
    )


def _filled(row: PartitionLag, at_ms: int, offset: int, written_ms: int | None, end: int) -> PartitionLag:
    lag, age_ms = end - offset, None if written_ms is None else at_ms - written_ms
    return replace(
        row,
        committed_offset=offset,
        log_end_offset=end,
        lag=lag,
        last_stable_offset=end if lag else None,
        time_lag_ms=0 if lag == (row.unreadable or 0) else age_ms,
    )


def without_times(lag: GroupLag) -> GroupLag:
    """Return what `lag` shows without --time: a reason beside a known lag is about its time."""

    def untimed(row: PartitionLag) -> PartitionLag:
        rest = replace(row, time_lag_ms=None, time_lag_at_least_ms=None, time_lag_at_most_ms=None)
        return rest if row.lag is None else replace(rest, reason=None, error=None, error_code=None)

    rest = replace(lag, max_time_lag_ms=None, time_lag_at_least_ms=None, time_lag_at_most_ms=None)
    return replace(rest, offsets=tuple(map(untimed, lag.offsets)))
