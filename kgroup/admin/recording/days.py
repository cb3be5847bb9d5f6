"""The files of observations: `observed/2026-11-28.ndjson`, appended, synchronized, resumed and read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kgroup.admin.recording.lines import CODEC, Line
from kgroup.durations import utc
from kgroup.errors import StorageError
from kgroup.history.sources.layout import OBSERVED
from kgroup.history.typed_json import Foreign

BLOCK = 1 << 16


class Days:
    """The observations in a folder, to add to. The next line replaces a torn one: it was not acknowledged."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / OBSERVED
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.path = next(reversed(files_of(folder)), None)
            self._size = 0 if self.path is None else _whole(self.path)
        except OSError as error:
            raise StorageError(f"cannot record into {error.filename or folder}: {error.strerror}") from None

    def begins_file(self, now_ms: int) -> bool:
        """Return whether the next lines begin another file."""
        return self.path is None or self._path(now_ms) != self.path

    def append(self, lines: Iterable[Line], now_ms: int) -> None:
        """Store lines, durable on return; StorageError if that fails, and none of them is stored."""
        data = b"".join(CODEC.encode(line) + b"\n" for line in lines)
        path = self._path(now_ms)
        size = self._size if path == self.path else 0
        try:
            with path.open("ab") as file:
                file.truncate(size)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise StorageError(f"cannot record into {path}: {error.strerror}") from None
        self.path, self._size = path, size + len(data)

    def _path(self, now_ms: int) -> Path:
        day = self.folder / f"{utc(now_ms)[:10]}.ndjson"
        # A clock that goes back opens no file again that has ended.
        return day if self.path is None else max(day, self.path)


def files_of(folder: Path) -> list[Path]:
    """Return the files of observations in a recording, oldest first."""
    return sorted((folder / OBSERVED).glob("????-??-??.ndjson"))


def _whole(path: Path) -> int:
    """Return the size up to the end of the last whole line."""
    with path.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        while end:
            begin = max(end - BLOCK, 0)
            file.seek(begin)
            at = file.read(end - begin).rfind(b"\n")
            if at >= 0:
                return begin + at + 1
            end = begin
    return 0


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A line that this release cannot read, or that is damaged."""

    file: Path
    number: int
    why: str

    @property
    def text(self) -> str:
        """One sentence for a person."""
        return f"{self.file} line {self.number} cannot be read: {self.why}"


def read(file: Path, *kinds: type) -> Iterator[Line | Unreadable]:
    """Yield the lines of one file, or those of some kinds."""
    for number, line in lines_of(file, *kinds):
        yield decoded(file, number, line)


def lines_of(file: Path, *kinds: type) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of one file as they are; one that is being written is not there yet."""
    wanted = tuple(f'["{kind.__name__}",'.encode() for kind in kinds) or b""
    try:
        with file.open("rb") as opened:
            for number, line in enumerate(opened, 1):
                if not line.endswith(b"\n"):
                    return
                if line.startswith(wanted):
                    yield number, line
    except OSError as error:
        raise StorageError(f"cannot read {file}: {error.strerror}") from None


def decoded(file: Path, number: int, line: bytes) -> Line | Unreadable:
    """Return a line of a file, or why it cannot be read."""
    try:
        return CODEC.decode(line)
    except Foreign as error:
        return Unreadable(file, number, str(error))
