"""The files of observations: `observed/2026-11-28.ndjson`, and the day's others, `2026-11-28-00001.ndjson`.

A day and a run of the recorder begin a file with all that is known; a large one goes on in the next.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kgroup.admin.recording.lines import CODEC, Line
from kgroup.durations import utc
from kgroup.errors import StorageError
from kgroup.history.sources.folders import Folder
from kgroup.history.sources.layout import OBSERVED
from kgroup.history.typed_json import Foreign

_NAME = re.compile(rf"{OBSERVED}/(\d{{4}}-\d\d-\d\d)(?:-(\d{{5}}))?\.ndjson")


@dataclass(frozen=True, slots=True, order=True)
class File:
    """A file of observations, in the order of what they say."""

    day: str
    number: int
    folder: Folder = field(compare=False)

    @property
    def name(self) -> str:
        """Its name below the folder."""
        return f"{OBSERVED}/{self.day}{f'-{self.number:05d}' if self.number else ''}.ndjson"

    def __str__(self) -> str:
        return f"{self.folder}/{self.name}"


class Days:
    """The observations in a folder, to add to, in files of this run: one that a crash tore is not touched."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._newest = next(reversed(files_of(folder)), File("", 0, folder))
        self._file: File | None = None
        self._size = 0

    def begins_day(self, now_ms: int) -> bool:
        """Return whether the next lines begin a file that is read without those before it."""
        return self._file is None or self._day(now_ms) != self._file.day

    def begins_file(self, now_ms: int) -> bool:
        """Return whether the next lines begin another file."""
        return self.begins_day(now_ms) or self._size >= self._folder.best_bytes

    def append(self, lines: Iterable[Line], now_ms: int) -> None:
        """Store lines, durable on return; StorageError if that fails, and none of them is stored."""
        data = b"".join(CODEC.encode(line) + b"\n" for line in lines)
        file, size = self._file, self._size
        if file is None or self.begins_file(now_ms):
            day = self._day(now_ms)
            number = self._newest.number + 1 if day == self._newest.day else 0
            file, size = File(day, number, self._folder), 0
        self._folder.append(file.name, size, data)
        self._file = self._newest = file
        self._size = size + len(data)

    def _day(self, now_ms: int) -> str:
        # A clock that goes back opens no day again that has ended.
        return max(utc(now_ms)[:10], self._newest.day)


def files_of(folder: Folder) -> list[File]:
    """Return the files of observations in a recording, oldest first."""
    named = (_NAME.fullmatch(file.name) for file in folder.files(OBSERVED))
    return sorted(File(each[1], int(each[2] or 0), folder) for each in named if each)


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


def read(file: File, *kinds: type) -> Iterator[Line | Unreadable]:
    """Yield the lines of one file, or those of some kinds."""
    for number, line in lines_of(file, *kinds):
        yield decoded(file, number, line)


def lines_of(file: File, *kinds: type) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of one file as they are; one that is being written is not there yet."""
    wanted = tuple(f'["{kind.__name__}",'.encode() for kind in kinds) or b""
    try:
        with file.folder.open(file.name) as opened:
            for number, line in enumerate(opened, 1):
                if not line.endswith(b"\n"):
                    return
                if line.startswith(wanted):
                    yield number, line
    except OSError as error:
        raise StorageError(f"cannot read {file}: {error.strerror}") from None


def decoded(file: File, number: int, line: bytes) -> Line | Unreadable:
    """Return a line of a file, or why it cannot be read."""
    try:
        return CODEC.decode(line)
    except Foreign as error:
        return Unreadable(file, number, str(error))
