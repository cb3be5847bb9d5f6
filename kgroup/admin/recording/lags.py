"""Lag as looks saw it: stored where it differs from the look before, put together again for a moment.

What follows from a commit and the end of its log (`Ends`) is not stored: most ends move between two looks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter

from kgroup.admin.models import GroupDescription
from kgroup.admin.read.lag import total
from kgroup.admin.read.lag_report import GroupLag, PartitionLag, of_rows
from kgroup.admin.recording.lines import Commits, LagHead, Lags, LagsMoved
from kgroup.domain import TopicPartition, grouped, place_of

_PLACE = attrgetter("topic", "partition")
_MOVES = frozenset({"committed_offset", "log_end_offset", "lag", "last_stable_offset", "time_lag_ms"})
_REST = attrgetter(*(each.name for each in fields(PartitionLag) if each.name not in _MOVES))


@dataclass(frozen=True, slots=True)
class Seen:
    """The lag of all groups at a look, and where the logs of their partitions ended (None is unknown)."""

    at_ms: int = 0
    lags: Mapping[str, GroupLag] = field(default_factory=dict)
    ends: Mapping[TopicPartition, int | None] = field(default_factory=dict)

    def since(self, before: Seen) -> Iterator[Lags | LagsMoved]:
        """Yield what this look adds to the one before; a group that has other partitions begins again."""
        for name, now in self.lags.items():
            was, head = before.lags.get(name), _head(now)
            if was is None or [*map(_PLACE, was.offsets)] != [*map(_PLACE, now.offsets)]:
                yield Lags(self.at_ms, name, head, tuple(map(self._brief, now.offsets)))
                continue
            rows: list[PartitionLag] = []
            moved: list[tuple[str, tuple[int, int, int | None]]] = []
            for row, old in zip(now.offsets, was.offsets, strict=True):
                if not (self._is_plain(row) and before._is_plain(old) and _REST(row) == _REST(old)):
                    rows += [self._brief(row)] if row != old else []
                    continue
                offset, written_ms, was_ms = (
                    row.committed_offset,
                    self._written_ms(row),
                    before._written_ms(old),
                )
                # Of one record the time differs by how long the looks took.
                if offset != old.committed_offset or (written_ms is None) != (was_ms is None):
                    assert offset is not None
                    moved.append((row.topic, (row.partition, offset, written_ms)))
            known = None if head == _head(was) else head
            if rows or moved or known:
                by_topic = ((topic, zip(*those, strict=True)) for topic, those in grouped(moved).items())
                commits = tuple(Commits(topic, *columns) for topic, columns in by_topic)
                yield LagsMoved(self.at_ms, name, known, tuple(rows), commits)

    def group(self, first: Lags, lines: Iterable[LagsMoved]) -> GroupLag:
        """Return the lag of a group from its lines, of which the first has all of its rows."""
        head = first.head
        moved: dict[TopicPartition, tuple[int, int | None]] = {}
        rows = {place_of(row.topic, row.partition): row for row in first.rows}
        for line in lines:
            head = line.head or head
            for row in line.rows:
                place = place_of(row.topic, row.partition)
                rows[place] = row
                moved.pop(place, None)
            for topic, *columns in line.commits:
                moved |= {place_of(topic, n): (at, ms) for n, at, ms in zip(*columns, strict=True)}
        found = tuple(self._filled(place, row, moved.get(place)) for place, row in rows.items())
        sums = total(found, all_rows=head.all_rows)
        group = GroupDescription(
            first.group_id,
            head.type,
            "",
            head.state,
            total_lag=sums.lag,
            errors=head.errors,
            lag_at_least=sums.at_least,
            unknown_partitions=sums.unknown,
            no_offsets=head.no_offsets,
            unreadable_lag=sums.unreadable,
        )
        return of_rows(group, found)

    def _is_plain(self, row: PartitionLag) -> bool:
        """Return whether all that ends decide in a row follows from its commit and the end of the look."""
        end, lag = row.log_end_offset, row.lag
        return (
            lag is not None
            and row.reason is None is row.error
            and end is not None
            and row.committed_offset == end - lag
            and end == self.ends.get(place_of(row.topic, row.partition))
            and row.last_stable_offset == (end if lag else None)
            and (bool(row.work) or row.time_lag_ms == 0)
        )

    def _written_ms(self, row: PartitionLag) -> int | None:
        return None if not row.work or row.time_lag_ms is None else self.at_ms - row.time_lag_ms

    def _brief(self, row: PartitionLag) -> PartitionLag:
        """Return a row without what `_filled` adds, with the record's time for its age."""
        if not self._is_plain(row):
            return row
        written_ms = self._written_ms(row)
        return replace(row, log_end_offset=None, lag=None, last_stable_offset=None, time_lag_ms=written_ms)

    def _filled(
        self, place: TopicPartition, row: PartitionLag, moved: tuple[int, int | None] | None
    ) -> PartitionLag:
        end = self.ends.get(place)
        offset, written_ms = moved or (row.committed_offset, row.time_lag_ms)
        # What is not brief has its own end, or the reason why that is unknown.
        if row.log_end_offset is not None or row.reason is not None or offset is None or end is None:
            return row
        lag, age_ms = end - offset, None if written_ms is None else self.at_ms - written_ms
        return replace(
            row,
            committed_offset=offset,
            log_end_offset=end,
            lag=lag,
            last_stable_offset=end if lag else None,
            time_lag_ms=0 if lag == (row.unreadable or 0) else age_ms,
        )


def _head(lag: GroupLag) -> LagHead:
    known = lag.total_lag is not None or lag.unknown_partitions > 0
    return LagHead(lag.type, lag.state, known, lag.errors, lag.no_offsets)


def without_times(lag: GroupLag) -> GroupLag:
    """Return what `lag` shows without --time: a reason beside a known lag is about its time."""

    def untimed(row: PartitionLag) -> PartitionLag:
        rest = replace(row, time_lag_ms=None, time_lag_at_least_ms=None, time_lag_at_most_ms=None)
        return rest if row.lag is None else replace(rest, reason=None, error=None, error_code=None)

    rest = replace(lag, max_time_lag_ms=None, time_lag_at_least_ms=None, time_lag_at_most_ms=None)
    return replace(rest, offsets=tuple(map(untimed, lag.offsets)))
