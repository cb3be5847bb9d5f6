"""Merges the copies of one partition, from several brokers, backups or captures, into one log.

Copies differ: compaction takes records out of one, another ends earlier, is damaged, or has what a replaced
leader wrote. Batch by batch the copy with the most records is read. What only another copy has is named, as
a range that is not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from kgroup.errors import DecodeError
from kgroup.history.decode.records import raw_records
from kgroup.history.decode.scan import BatchHeader, Scanner
from kgroup.history.legacy import LEGACY
from kgroup.history.log_items import NOT_READ, BadRange, Problem
from kgroup.history.sources.chunks import file_chunks
from kgroup.history.sources.layout import AnyFile, base_offset, size_of

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Span:
    """The first and the last offset of a copy."""

    first: int
    last: int

    def meets(self, other: Span) -> bool:
        return self.first <= other.last and other.first <= self.last

    def __str__(self) -> str:
        return f"offsets {self.first} to {self.last}"


@dataclass(frozen=True, slots=True)
class Copy:
    """One copy's files, in order; `name` is where it is, for people."""

    name: str
    files: tuple[AnyFile, ...]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Whole batches of a file: those from byte `start` to before `end`, up to the log offset `last`.

    The file's other bytes are not read. Without `end` it reaches to the end of the file, which may grow.
    """

    file: AnyFile
    start: int
    end: int | None
    last: int


@dataclass(frozen=True, slots=True)
class Chosen:
    """What to read of a partition: `files` whole and in order, or the `stretches` of them, if there are any.

    `bad` is what no reader of these finds: damage, and batches of other copies whose records they lack.
    """

    files: tuple[AnyFile, ...]
    stretches: tuple[Stretch, ...] = ()
    bad: tuple[BadRange, ...] = ()


def copies_of(files: Sequence[AnyFile]) -> list[Copy]:
    """Return the copies that these files of a partition are, in order.

    A folder is one copy, except where files in it hold the same offsets.
    """
    folders: dict[str, list[list[AnyFile]]] = {}
    for file in in_order(files):
        chains = folders.setdefault(str(file.parent), [])
        chain = next((older for older in chains if _follows(older[-1], file)), None)
        if chain is None:
            chains.append([file])
        else:
            chain.append(file)
    return [
        Copy(folder if len(chains) == 1 else str(chain[0]), tuple(chain))
        for folder, chains in sorted(folders.items())
        for chain in chains
    ]


def _follows(before: AnyFile, file: AnyFile) -> bool:
    """Return whether a file continues another; names of segments are their first offsets."""
    one, other = base_offset(before), base_offset(file)
    if one is not None and other is not None and one < other:
        return True
    earlier, later = span_of([before]), span_of([file])
    return earlier is None or later is None or earlier.last < later.first


def in_order(files: Iterable[AnyFile]) -> list[AnyFile]:
    """Return segments by their first offset, from their names."""
    return sorted(files, key=lambda file: (file.name, str(file)))


def span_of(files: Sequence[AnyFile]) -> Span | None:
    """Return a copy's offsets, read at its two ends; None if it holds nothing valid."""
    first = next((offset for file in files if (offset := _first(file)) is not None), None)
    last = next((offset for file in reversed(files) if (offset := _last(file)) is not None), None)
    return None if first is None or last is None else Span(first, last)


def _first(file: AnyFile) -> int | None:
    try:
        for _, headers in file_chunks(file, Scanner(str(file), check_crc=False), size=_CHUNK):
            for header in headers:
                return header.base_offset
    except OSError:  # reported by its reader
        pass
    return None


def _last(file: AnyFile) -> int | None:
    """Return the last offset of a segment; reads its end, and more until a valid batch is found."""
    try:
        size, length = size_of(file), _CHUNK
        while size:
            start = max(0, size - length)
            scanner = Scanner(str(file), position=start, check_crc=False)
            with file.open("rb") as opened:
                opened.seek(start)
                data = opened.read(size - start)
            at = scanner.resync(data, 0) if start else 0
            headers = list(scanner.headers(data[at:], final=True)) if at >= 0 else []
            if headers:
                return max(header.last_offset for header in headers)
            if not start:
                break
            length *= 8
    except OSError:
        pass
    return None


def chosen(partitions: Mapping[int, Sequence[AnyFile]]) -> tuple[dict[int, Chosen], list[str]]:
    """Return what to read of each partition, and a sentence for each copy of which nothing is read.

    Copies that hold the same offsets are read for this once more.
    """
    kept: dict[int, Chosen] = {}
    notes: list[str] = []
    for number, files in partitions.items():
        copies = copies_of(files)
        spans = {copy: span for copy in copies if len(copies) > 1 and (span := span_of(copy.files))}
        # Of equal copies the first is read: the one that reaches furthest, or was compacted least.
        ranked = sorted(spans, key=lambda c: (-spans[c].last, spans[c].first, -_bytes(c)))
        if not any(spans[a].meets(spans[b]) for i, a in enumerate(ranked) for b in ranked[:i]):
            in_turn = sorted(spans, key=lambda copy: spans[copy].first)
            rest = [copy for copy in copies if copy not in spans]
            ordered = tuple(file for copy in (*in_turn, *rest) for file in copy.files)
            kept[number] = Chosen(ordered if len(spans) > 1 else tuple(in_order(files)))
            continue
        merge = _Merge(ranked)
        kept[number] = merge.chosen(file for copy in copies if copy not in spans for file in copy.files)
        notes += [f"partition {number}: {note}" for note in merge.notes]
    return kept, notes


def _bytes(copy: Copy) -> int:
    try:
        return sum(size_of(file) for file in copy.files)
    except OSError:
        return 0


class _Batch(NamedTuple):
    """A batch of a copy: its place in a file, and its header with the chunk that holds it."""

    file: AnyFile
    start: int
    end: int
    chunk: bytes
    header: BatchHeader

    @property
    def base(self) -> int:
        return self.header.base_offset

    @property
    def last(self) -> int:
        return self.header.last_offset

    @property
    def leader_epoch(self) -> int:
        """The epoch of the leader that wrote it; -1 where the format has none."""
        at = self.header.position + 12
        old = self.header.attributes & LEGACY
        return -1 if old else int.from_bytes(self.chunk[at : at + 4], "big", signed=True)

    @property
    def checksum(self) -> bytes:
        return self.chunk[self.header.position + 17 : self.header.position + 21]

    @property
    def is_whole(self) -> bool:
        """Whether no record of it was compacted away."""
        return self.header.records == self.last - self.base + 1

    def offsets(self) -> set[int]:
        """Return the offsets of its records, as far as they decode."""
        offsets = set()
        try:
            for record in raw_records(self.chunk, self.header):
                offsets.add(record.offset)
        except DecodeError:
            pass
        return offsets


@dataclass(slots=True)
class _Damage:
    """Damage in a copy that may have held offsets up to before `until`; None: up to any offset."""

    range: BadRange
    until: int | None = None
    missing: bool = False
    """Whether no copy has some of these offsets."""

    @property
    def is_torn_tail(self) -> bool:
        """Whether it is normal at the end of a copy: nothing in it was acknowledged."""
        return self.range.problem is Problem.CUT_SHORT

    @property
    def is_lost(self) -> bool:
        return self.missing and not self.is_torn_tail


class _Cursor:
    """Walks the batches of one copy by offset; `head` is the next one, None at the end."""

    def __init__(self, copy: Copy) -> None:
        self.copy = copy
        self.damage: list[_Damage] = []
        self.used = self.left = False
        self.last = -1
        self._batches = self._read()
        self.head = next(self._batches, None)

    def step(self) -> None:
        """Go to the next batch."""
        self.head = next(self._batches, None)

    def _read(self) -> Iterator[_Batch]:
        passed = 0
        for file in self.copy.files:
            scanner, known = Scanner(str(file)), 0
            try:
                for chunk, headers in file_chunks(file, scanner):
                    origin = scanner.position
                    for header in headers:
                        if len(scanner.bad) > known:
                            self.damage += map(_Damage, scanner.bad[known:])
                            known = len(scanner.bad)
                        if header.last_offset <= self.last:
                            continue
                        for damage in self.damage[passed:]:
                            damage.until = header.base_offset
                        self.last, passed = header.last_offset, len(self.damage)
                        yield _Batch(file, origin + header.position, origin + header.end, chunk, header)
            except OSError as error:
                end = max(scanner.position, _bytes(Copy("", (file,))))
                reason = f"cannot be read: {error.strerror}"
                self.damage.append(_Damage(BadRange(str(file), scanner.position, end, reason)))
            self.damage += map(_Damage, scanner.bad[known:])


@dataclass(slots=True)
class _Left:
    """Batches of a file that are not read, one after the other, and why."""

    cursor: _Cursor
    why: str
    file: AnyFile
    start: int
    end: int
    offsets: Span
    records: int

    @property
    def range(self) -> BadRange:
        count = f"{self.records} record{'s' if self.records != 1 else ''} in {self.offsets}"
        reason = f"{NOT_READ}{count}: {self.why}"
        return BadRange(str(self.file), self.start, self.end, reason, Problem.NOT_READ)


class _Merge:
    """Merges copies, given with the preferred one first."""

    def __init__(self, copies: Sequence[Copy]) -> None:
        self._cursors = [_Cursor(copy) for copy in copies]
        self._stretches: list[Stretch] = []
        self._left: list[_Left] = []
        self._next = -1
        self._current: _Cursor | None = None
        live = [cursor for cursor in self._cursors if cursor.head is not None]
        while live:
            first = min(cursor.head.base for cursor in live if cursor.head)
            end = max(c.head.last for c in live if c.head and c.head.base == first)
            rivals = self._of_one_log([c for c in live if c.head and c.head.base <= end])
            if any(cursor.head and cursor.head.base == first for cursor in rivals):
                self._take(first, rivals)
            live = [cursor for cursor in live if cursor.head is not None]
        for cursor in self._cursors:
            for damage in cursor.damage:
                damage.missing |= damage.until is None and cursor.last + 1 == self._next

    def chosen(self, rest: Iterable[AnyFile]) -> Chosen:
        """Return what to read; `rest` are files without a valid batch, read so that this is reported."""
        used = [cursor for cursor in self._cursors if cursor.used]
        lost = [left.range for left in self._left]
        lost += [d.range for c in self._cursors if not _alone(c, used) for d in c.damage if d.is_lost]
        if len(used) == 1 and not used[0].left:
            return Chosen((*used[0].copy.files, *rest), (), tuple(lost))
        *most, newest = self._stretches
        # The newest file may grow, and its end is judged by its reader.
        lost = [bad for bad in lost if bad.source != str(newest.file) or bad.start < (newest.end or 0)]
        stretches = [*most, replace(newest, end=None), *(Stretch(file, 0, None, -1) for file in rest)]
        return Chosen(tuple(dict.fromkeys(s.file for s in stretches)), tuple(stretches), tuple(lost))

    @property
    def notes(self) -> list[str]:
        """A sentence for each copy that adds nothing, and for damage that others make up for."""
        notes, used = list[str](), [cursor for cursor in self._cursors if cursor.used]
        names = " and ".join(sorted(cursor.copy.name for cursor in used))
        for cursor in self._cursors:
            if not cursor.used and not cursor.left:
                notes.append(f"{cursor.copy.name} is not read, as {names} has all of its records")
            if not _alone(cursor, used):
                made_up = [d.range for d in cursor.damage if not d.missing and not d.is_torn_tail]
                notes += [f"{bad}; {names} has what is missing there" for bad in made_up]
        return notes

    def _of_one_log(self, rivals: list[_Cursor]) -> list[_Cursor]:
        """Return the rivals without copies of what a replaced leader wrote, which end here.

        In one log an offset has one leader epoch (KIP-101); the higher one is what the cluster kept.
        """
        epochs = [-1 if cursor.head is None else cursor.head.leader_epoch for cursor in rivals]
        newest, kept = max(epochs), []
        for cursor, epoch in zip(rivals, epochs, strict=True):
            if epoch in (-1, newest):
                kept.append(cursor)
                continue
            while cursor.head is not None:
                self._leave(cursor, cursor.head, f"their leader, of epoch {epoch}, was replaced without them")
                cursor.step()
        return kept

    def _take(self, first: int, rivals: list[_Cursor]) -> None:
        """Take the batch with the most records, and step past the others' that it stands for."""
        begun = [(c.head, c) for c in rivals if c.head is not None and c.head.base == first]
        batch, best = max(begun, key=lambda pair: (pair[0].header.records, pair[1] is self._current))
        has = set() if batch.is_whole else batch.offsets()
        for cursor in rivals:
            while cursor is not best and cursor.head is not None and cursor.head.base <= batch.last:
                other = cursor.head
                if not batch.is_whole and other.checksum != batch.checksum:
                    more = [o for o in other.offsets() - has if self._next <= o <= batch.last]
                    if more:
                        self._leave(cursor, other, f"{best.copy.name} has others of these offsets", more)
                if other.last > batch.last:
                    break
                cursor.step()
        if self._next >= 0 and (self._next < batch.base or not batch.is_whole):
            for damage in (damage for cursor in self._cursors for damage in cursor.damage):
                damage.missing |= damage.until is None or self._next < damage.until
        self._append(best, batch)
        self._next = batch.last + 1
        best.step()

    def _append(self, cursor: _Cursor, batch: _Batch) -> None:
        before = self._stretches[-1] if cursor is self._current else None
        if before is not None and before.file is batch.file and before.end == batch.start:
            self._stretches[-1] = replace(before, end=batch.end, last=batch.last)
        else:
            self._stretches.append(Stretch(batch.file, batch.start, batch.end, batch.last))
        self._current, cursor.used = cursor, True

    def _leave(self, cursor: _Cursor, batch: _Batch, why: str, offsets: Sequence[int] = ()) -> None:
        """Name records that are not read; one range for batches left for one reason."""
        cursor.left = True
        first, last = (min(offsets), max(offsets)) if offsets else (batch.base, batch.last)
        records = len(offsets) or batch.header.records
        known = next((left for left in reversed(self._left) if left.file is batch.file), None)
        if known is not None and known.why == why:
            known.end, known.offsets = batch.end, Span(known.offsets.first, last)
            known.records += records
        else:
            omitted = _Left(cursor, why, batch.file, batch.start, batch.end, Span(first, last), records)
            self._left.append(omitted)


def _alone(cursor: _Cursor, used: Sequence[_Cursor]) -> bool:
    """Return whether this copy is read whole, so that its reader finds its damage."""
    return used == [cursor] and not cursor.left
