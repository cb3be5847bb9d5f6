"""The files of observations: `observed/2026-11-28T130507.ndjson`, `2026-11-28T130507-00001.ndjson`, …

They are named by the time (UTC) at which the first of them begins, with all that was known: what is behind a
number goes on from the file before it. So a reader of a moment begins at the newest name before it, and reads
no more than some times what one look has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kgroup.admin.recording.lines import CODEC, Line
from kgroup.domain import grouped
from kgroup.durations import utc
from kgroup.errors import StorageError
from kgroup.history.sources.folders import Folder
from kgroup.history.sources.layout import OBSERVED
from kgroup.history.typed_json import Foreign

_NAME = re.compile(rf"{OBSERVED}/(\d{{4}}-\d\d-\d\dT\d{{6}})(?:-(\d{{5}}))?\.ndjson")
STAMP = len("2026-11-28T130507")
LEAST_BYTES, TIMES = 1 << 20, 8
"""All that is known is stored again after so many bytes, or after so many times the bytes that it takes."""


@dataclass(frozen=True, slots=True, order=True)
class File:
    """A file of observations, in the order of what they say."""

    began: str
    number: int
    folder: Folder = field(compare=False)

    @property
    def name(self) -> str:
        """Its name below the folder."""
        return f"{OBSERVED}/{self.began}{f'-{self.number:05d}' if self.number else ''}.ndjson"

    def __str__(self) -> str:
        return f"{self.folder}/{self.name}"


class Observed:
    """The observations in a folder, to add to, in files of this run: one that a crash tore is not touched."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._newest = next(reversed(files_of(folder)), File("", 0, folder))
        self._file: File | None = None
        self._refused: File | None = None
        self._size = self._first = self._all = 0

    def begin_at(self, now_ms: int) -> bool:
        """Return whether the next look is one to begin with: nothing is stored yet, or enough, or a day."""
        enough = self._all >= max(LEAST_BYTES, TIMES * self._first)
        return self._file is None or enough or stamp(now_ms)[:10] > self._file.began[:10]

    def append(self, lines: Iterable[Line], now_ms: int, *, begin: bool = False) -> None:
        """Store lines, durable on return; StorageError if that fails, and none of them is stored.

        `begin`: they say all that is known. The first ones of a run must.
        """
        data = b"".join(CODEC.encode(line) + b"\n" for line in lines)
        before = None if begin else self._file
        file, size = before, self._size
        if file is None:
            # What was refused may be there in part: it is written over.
            file = self._refused = self._refused or self._named(stamp(now_ms))
            size = 0
        elif size >= self._folder.best_bytes:
            file, size = self._named(file.began), 0
        self._folder.append(file.name, size, data)
        if before is None:
            self._refused, self._first, self._all = None, len(data), 0
        self._file = self._newest = file
        self._size, self._all = size + len(data), self._all + len(data)

    def _named(self, began: str) -> File:
        # A clock that goes back names no file before one that is there.
        began = max(began, self._newest.began)
        return File(began, self._newest.number + 1 if began == self._newest.began else 0, self._folder)


def stamp(at_ms: int) -> str:
    """Return a time as it stands in the names of files: no file that begins later has a name before it."""
    return utc(at_ms).replace(":", "")[:STAMP]


def begun(folder: Folder) -> list[list[File]]:
    """Return the files in a recording by their beginnings, oldest first: each list is read alone."""
    return [*grouped((file.began, file) for file in files_of(folder)).values()]


def files_of(folder: Folder) -> list[File]:
    """Return the files of observations in a recording, oldest first."""
    named = (_NAME.fullmatch(file.name) for file in folder.files(OBSERVED))
    return sorted(File(match[1], int(match[2] or 0), folder) for match in named if match)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A line that this release cannot read, or that is damaged."""

    file: File
    number: int
    why: str

    @property
    def text(self) -> str:
        """One sentence for a person."""
        return f"{self.file} line {self.number} cannot be read: {self.why}"


def read(files: Iterable[File], *kinds: type) -> Iterator[Line | Unreadable]:
    """Yield the lines of files, or those of some kinds; one that is being written is not there yet."""
    prefixes = tuple(f'["{kind.__name__}",'.encode() for kind in kinds) or b""
    for file in files:
        try:
            with file.folder.open(file.name) as opened:
                for number, line in enumerate(opened, 1):
                    if line.endswith(b"\n") and line.startswith(prefixes):
                        yield _decoded(file, number, line)
        except OSError as error:
            raise StorageError(f"cannot read {file}: {error.strerror}") from None


def newest_first(folder: Folder, *kinds: type, until_ms: int | None = None) -> Iterator[list[Line]]:
    """Yield the lines of some kinds from each beginning on, those behind the newest one first.

    Without what cannot be read, and what is later than `until_ms`.
    """
    for files in reversed(begun(folder)):
        if until_ms is None or files[0].began <= stamp(until_ms):
            lines = (line for line in read(files, *kinds) if not isinstance(line, Unreadable))
            yield [line for line in lines if until_ms is None or line.at_ms <= until_ms]


def _decoded(file: File, number: int, line: bytes) -> Line | Unreadable:
    try:
        return CODEC.decode(line)
    except Foreign as error:
        return Unreadable(file, number, str(error))
