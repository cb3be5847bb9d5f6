"""Turns items in order into events, by `history.fold`, one group at a time.

A task gets the items of its shares in the order of groups and, within a group, of the log. It resumes each
group where the run before left it, and stores the new state only of groups with anything new.
"""

from __future__ import annotations

import gc
import zlib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, get_args, get_origin

import pyarrow as pa

from kgroup.domain import uuid_bytes
from kgroup.history.fold.events import Event, Kind, stored_fields
from kgroup.history.fold.folding import Fold, compacted
from kgroup.history.fold.snapshot import Kept, kept
from kgroup.history.fold.topic_names import MAX_NAMES
from kgroup.history.log_items import Gap, Item, Packed, Places, unpacked
from kgroup.pipeline.read.commits import full
from kgroup.pipeline.read.course import Course
from kgroup.pipeline.read.posting import (
    EDGE,
    REPORT,
    Edge,
    Ended,
    Posted,
    Report,
    Said,
    Shares,
    SplitNames,
    first_place,
    hash_of,
)
from kgroup.pipeline.schemas import EVENTS, FOLDS, Row
from kgroup.pipeline.tables.left import Left, StateFile
from kgroup.pipeline.tables.place import Place
from kgroup.pipeline.tables.reports import NamesLearned, ShareFolded
from kgroup.pipeline.tables.store import OPEN_EVENTS, STATE
from kgroup.pipeline.tables.writing import TableFile, TableWriter

_FLUSH = 5_000
_FLUSH_BYTES = 1 << 20
_GAP = Gap(-1, -1, -1, 0)
"""Notifies a group that something is missing; its partition has the details."""


@dataclass(slots=True)
class Log:
    """What a run has read of a partition, from its edges."""

    course: Course
    before: dict[int, int] = field(default_factory=dict)
    """The number of gaps before each split."""
    ends: list[Ended] = field(default_factory=list)
    """Ends of transactions in order, `gaps` counted over the whole partition."""
    digest: int = 0

    def add(self, edge: Edge) -> None:
        before = self.before[edge.number] = self.course.follow(edge.course, edge.first_ms)
        self.ends += [end._replace(gaps=before + end.gaps) for end in edge.ends]
        self.digest = digest(self.digest, edge.number, edge.course)


def digest(before: int, number: int, course: Course) -> int:
    """Return a digest of what the splits of a partition held: it differs if one of them changed."""
    return zlib.crc32(repr((number, course)).encode(), before)


class _Rows:
    """The rows of a task, one ahead."""

    def __init__(self, rows: Iterator[Posted]) -> None:
        self._rows = rows
        self._next = next(rows, None)
        self.task = -1 if self._next is None else self._next[0][0]

    def of_kind(self, kind: int) -> Iterator[tuple[int, Said]]:
        """Yield partitions and contents of the next rows, which are of a kind."""
        while self._next is not None and self._next[0][1] == kind:
            address, (_, said) = self._next
            yield address[2], said
            self._next = next(self._rows, None)

    def group(self, part: int, share: int) -> str | None:
        """Return the group that the next items are about, if it is of this share."""
        if self._next is None or self._next[0][2:4] != (part, share):
            return None
        return self._next[0][4]

    def items(self, part: int, share: int, group: str) -> Iterator[tuple[int, int, Packed]]:
        """Yield place, gaps in its split before it, and content of each item of a group, if it is next."""
        while self._next is not None and self._next[0][2:5] == (part, share, group):
            address, (gaps, said) = self._next
            assert not isinstance(said, (Edge, dict, Report))
            yield address[5], gaps, said
            self._next = next(self._rows, None)


@dataclass(frozen=True, slots=True)
class FoldShares:
    """Folds the shares of one task and writes their events and states. Runs on an executor.

    `names` are known before the run, `given` come from outside the log; `courses` and `states` are where the
    run before ended.
    """

    place: Place
    run: int
    token: str
    shares: Shares
    names: Mapping[str, str]
    given: Mapping[str, str]
    courses: Mapping[int, Course]
    states: Mapping[int, Sequence[StateFile]]

    def __call__(self, posted: Iterator[Posted]) -> Iterator[Report]:
        gc.disable()  # very many objects and no cycles
        try:
            rows = _Rows(posted)
            yield from (report for _, report in rows.of_kind(REPORT) if isinstance(report, Report))
            learned, logs = dict[str, str](), dict[int, Log]()
            for part, message in rows.of_kind(EDGE):
                if isinstance(message, SplitNames):
                    learn(learned, message.names, len(self.names))
                elif isinstance(message, Edge):
                    known = self.courses.get(part)
                    log = logs.setdefault(part, Log(replace(known) if known else Course()))
                    log.add(message)
            names = {**self.names, **learned, **self.given}
            for part, log in sorted(logs.items()):
                for share, task in enumerate(self.shares.of[part]):
                    if task == rows.task:
                        files = _ShareFold(self, part, share, log, names)(rows)
                        yield ShareFolded(part, log.digest, files)
            if rows.task == 0:
                yield NamesLearned(learned)
        finally:
            gc.enable()


def learn(names: dict[str, str], more: Mapping[str, str], known: int = 0) -> None:
    """Add a split's topic names, up to `MAX_NAMES` including the known ones."""
    for topic_id, name in more.items():
        if len(names) + known < MAX_NAMES:
            names.setdefault(topic_id, name)


class _ShareFold:
    """Folds the groups of one share, by name."""

    def __init__(self, task: FoldShares, part: int, share: int, log: Log, names: Mapping[str, str]) -> None:
        self.task = task
        self.part = part
        self.share = share
        self.log = log
        self.names = names
        self.fold = Fold(part, {uuid_bytes(text): name for text, name in names.items()})
        self.writer = TableWriter(task.place, task.run, task.token, part, f"{share:03d}")
        self.places: Places = {}
        self._events: list[tuple[int, Event]] = []
        self._open: list[tuple[str, list[tuple[int, Event]]]] = []
        self._states: list[tuple[int, str, bool, bytes]] = []
        self._kept_bytes = 0

    def __call__(self, rows: _Rows) -> list[TableFile]:
        """Fold the share's `rows`; return its files."""
        with self.writer:
            hashes = self.task.shares.range(self.part, self.share)
            left = Left(self.task.place, self.task.states.get(self.part, ()), *hashes)
            # A transaction of these may end in this run; groups are not notified of what is missing.
            waiting = set(left.pending) if self.log.ends else set[str]()
            if self.share == 0:
                waiting.add("")
            due = iter(sorted(waiting))
            ahead = next(due, None)
            while True:
                group = rows.group(self.part, self.share)
                name = min((candidate for candidate in (group, ahead) if candidate is not None), default=None)
                if name is None:
                    break
                if name == ahead:
                    ahead = next(due, None)
                self._group(name, rows.items(self.part, self.share, name), left)
            self._flush()
        return self.writer.files

    def _group(self, name: str, items: Iterator[tuple[int, int, Packed]], left: Left) -> None:
        before = left.kept(name, self.part)
        after, events = self._folded(name, before, items)
        self._events += events
        group = after.group
        if group is not None or after.seq:
            pending = group is not None and any(group.state.pending.values())
            state = kept().encode(after)
            self._states.append((hash_of(name), name, pending, state))
            self._kept_bytes += len(state)
        last = self.fold.settle()
        course = self.log.course
        if not name and course.missing:
            last.append(compacted(self.part, course.missing, course.gap_end, course.gap_ms))
        if last or before is not None:
            self._open.append((name, list(enumerate(last, after.seq))))
        self.fold.leave(name)
        if max(len(self._events), len(self._open)) >= _FLUSH or self._kept_bytes >= _FLUSH_BYTES:
            self._flush()

    def _folded(
        self, name: str, before: Kept | None, items: Iterable[tuple[int, int, Packed]]
    ) -> tuple[Kept, list[tuple[int, Event]]]:
        """Return a group after its items, which is in the fold, and its events with their numbers."""
        fold, events = self.fold, list[Event]()
        gaps, seq = 0, 0
        if before is not None:
            gaps, seq = before.gaps, before.seq
            if before.group is not None:
                fold.go_on(before.group, before.block, self.names)
        at = -1
        for number, inside, payload in items:
            gaps = self._ended(name, at, number, gaps, events)
            gaps = self._aware(name, gaps, self.log.before[number // first_place(1)] + inside, events)
            item: Item = unpacked(payload, self.places)
            events += fold.apply(item)
            at = number
        gaps = self._ended(name, at, 1 << 62, gaps, events)
        group = fold.groups.get(name)
        after = Kept(self.part, fold.block, seq + len(events), gaps, group)
        return after, list(enumerate(events, seq))

    def _ended(self, name: str, after: int, before: int, gaps: int, events: list[Event]) -> int:
        """Apply the ends of the group's transactions between two places; return the gaps known then."""
        group = self.fold.groups.get(name)
        if group is None or not any(group.state.pending.values()):
            return gaps
        ends = self.log.ends
        for end in ends[bisect_left(ends, after + 1, key=_place) : bisect_left(ends, before, key=_place)]:
            if group.state.pending.get(end.marker.producer_id):
                gaps = self._aware(name, gaps, end.gaps, events)
                events += self.fold.apply(end.marker)
        return gaps

    def _aware(self, name: str, known: int, gaps: int, events: list[Event]) -> int:
        """Notify a group of what is missing before its next item; return how many gaps there are."""
        course = self.log.course
        if name not in self.fold.groups:
            # After a gap nothing proves that a group was created there.
            self.fold.whole = course.first_offset == 0 and not gaps
        elif gaps > known:
            events += self.fold.apply(_GAP)
        return gaps

    def _flush(self) -> None:
        self.writer.write("events", event_rows(self._events))
        self.writer.write(OPEN_EVENTS, open_rows(self.part, self._open))
        if self._states:
            part = full(self.part, len(self._states))
            columns = zip(*self._states, strict=True)
            self.writer.write(STATE, pa.table([part, *map(list, columns)], schema=FOLDS))
        self._events, self._open, self._states, self._kept_bytes = [], [], [], 0


def _place(end: Ended) -> int:
    return end.place


def open_rows(part: int, groups: Iterable[tuple[str, list[tuple[int, Event]]]]) -> pa.Table:
    """Return the open events of groups as rows; a group without any gets a row without an event."""
    tables = []
    for name, events in groups:
        if events:
            tables += event_dicts(events)
        else:
            tables.append({"part": part, "group_id": name})
    return pa.Table.from_pylist(tables, schema=EVENTS)


def event_rows(events: list[tuple[int, Event]]) -> pa.Table:
    """Return numbered events as rows of the table `events`."""
    return pa.Table.from_pylist(event_dicts(events), schema=EVENTS)


def event_dicts(events: list[tuple[int, Event]]) -> list[Row]:
    """Return numbered events as rows: each field in its column."""
    rows: list[Row] = []
    for seq, event in events:
        row: Row = dict(zip(_NAMES, _VALUES(event), strict=True))
        row["seq"], row["event"] = seq, event.kind.value
        for column in _PLACES:
            row[column] = [partition._asdict() for partition in row[column]]
        rows.append(row)
    return rows


def event_of(row: Row) -> Event:
    """Return the event of a row whose times are in ms; the inverse of `event_rows`."""
    return Event(
        **{name: row[column] if back is None else back(row[column]) for name, column, back in _FIELDS}
    )


def _back(kind: object) -> Callable[[Any], Any] | None:
    """Return the conversion from what Arrow returns to a type of an event's fields."""
    if get_origin(kind) is tuple:
        row_class = get_args(kind)[0]
        return lambda rows: tuple(row_class(**row) for row in rows)
    return Kind if kind is Kind else None


_FIELDS = [(name, stored.column, _back(kind)) for name, (kind, stored) in stored_fields().items()]
_NAMES = [column for _, column, _ in _FIELDS]
_VALUES = attrgetter(*(name for name, _, _ in _FIELDS))
_PLACES = [stored.column for kind, stored in stored_fields().values() if get_origin(kind) is tuple]
