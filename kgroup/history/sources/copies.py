"""Chooses which copies of one partition, from several brokers, are read.

The longest valid one is read, and of the others only those that reach beyond it: backups of several weeks add
up, but replicas of one moment need not be read three times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kgroup.history.decode.scan import Scanner
from kgroup.history.sources.chunks import file_chunks
from kgroup.history.sources.layout import AnyFile, AnyFolder, size_of

_CHUNK = 1 << 20
Copy = tuple[AnyFolder, list[AnyFile]]


@dataclass(frozen=True, slots=True)
class Span:
    """The first and the last offset of a copy."""

    first: int
    last: int

    def covers(self, other: Span) -> bool:
        return self.first <= other.first and other.last <= self.last

    def __str__(self) -> str:
        return f"offsets {self.first} to {self.last}"


def copies_of(files: Sequence[AnyFile]) -> list[Copy]:
    """Return the files of a partition by their folder, in order."""
    found: dict[AnyFolder, list[AnyFile]] = {}
    for file in files:
        found.setdefault(file.parent, []).append(file)
    return sorted(((folder, in_order(own)) for folder, own in found.items()), key=lambda copy: str(copy[0]))


def in_order(files: Sequence[AnyFile]) -> list[AnyFile]:
    """Return segments by their first offset, from their names."""
    return sorted(files, key=lambda file: (file.name, str(file)))


def span_of(files: Sequence[AnyFile]) -> Span | None:
    """Return a copy's offsets, read at its two ends; None if it holds nothing valid."""
    first = next((found for file in files if (found := _first(file)) is not None), None)
    last = next((found for file in reversed(files) if (found := _last(file)) is not None), None)
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


def chosen(partitions: Mapping[int, Sequence[AnyFile]]) -> tuple[dict[int, tuple[AnyFile, ...]], list[str]]:
    """Return the files to read of each partition, in order, and a sentence for each copy that is not.

    If no copy is valid all of them are read, so that one helps where another is damaged.
    """
    kept: dict[int, tuple[AnyFile, ...]] = {}
    said: list[str] = []
    for number, files in partitions.items():
        copies = copies_of(files)
        if len(copies) > 1:
            copies, why = _longest(number, copies)
            said += why
        kept[number] = tuple(in_order([file for _, own in copies for file in own]))
    return kept, said


def _longest(number: int, copies: list[Copy]) -> tuple[list[Copy], list[str]]:
    spans = [(copy, span) for copy in copies if (span := span_of(copy[1])) is not None]
    spans.sort(key=lambda each: (-each[1].last, each[1].first, -_bytes(each[0])))
    taken: list[tuple[Copy, Span]] = []
    left: list[tuple[Copy, str]] = []
    damaged: list[tuple[Copy, Span]] = []
    for copy, span in spans:
        better = next((t for t in taken if t[1].covers(span)), None)
        if better is not None:
            left.append((copy, f"{better[0][0]} has {better[1]}, it {span}"))
        # Validity matters if there is a choice; the only copy that reaches so far is read with its damage.
        elif any(span.covers(s) or s.covers(span) for c, s in spans if c is not copy) and not _sound(copy):
            damaged.append((copy, span))
        else:
            taken.append((copy, span))
    for copy, span in damaged:
        better = next((t for t in taken if t[1].covers(span)), None)
        if better is None:
            return copies, []
        left.append((copy, f"it is damaged, and {better[0][0]} has {better[1]}"))
    names = [f"partition {number}: {copy[0]} is not read, as {why}" for copy, why in left]
    return [copy for copy in copies if not any(copy is c for c, _ in left)], names


def _bytes(copy: Copy) -> int:
    """Return a copy's size: of two equally long copies, the larger one was compacted less."""
    try:
        return sum(size_of(file) for file in copy[1])
    except OSError:
        return 0


def _sound(copy: Copy) -> bool:
    """Return whether a copy reads to its end without damage; a torn tail is normal for brokers."""
    for file in copy[1]:
        scanner = Scanner(str(file))
        try:
            for _, headers in file_chunks(file, scanner):
                for _ in headers:
                    pass
        except OSError:
            return False
        if any("torn tail" not in bad.reason for bad in scanner.bad):
            return False
    return True
