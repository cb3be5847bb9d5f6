"""A folder of files on this machine or at a URL, as a recorder keeps it: the same calls and promises."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, ClassVar, Protocol

from kgroup.errors import StorageChanged, StorageError, StorageMissing
from kgroup.log.files import replace_file, sync_folder
from kgroup.portable import lock
from kgroup.storage.files import RemoteFile
from kgroup.storage.location import Location
from kgroup.storage.opening import open_store
from kgroup.storage.options import StorageOptions

PART_BYTES = 1 << 20
"""An object is written whole for each line that is added: from this size on another one is begun."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A file in a folder; its name has the folders in between, with slashes."""

    name: str
    bytes: int
    modified_ms: int


class Folder(Protocol):
    """Files by their names below the folder. Every method raises StorageError for what fails."""

    best_bytes: ClassVar[float]
    """The size from which no more is added to a file."""

    def files(self, below: str = "") -> list[Stored]:
        """Return all files, or those below a folder, in no order; none where that does not exist."""
        ...

    def open(self, name: str) -> BinaryIO:
        """Read a file from its start; StorageMissing if there is none."""
        ...

    def write(self, name: str, data: bytes) -> None:
        """Replace a small file as a whole, durable on return."""
        ...

    def append(self, name: str, at: int, data: bytes) -> None:
        """Add to a file behind the first `at` bytes that this object added, durable on return."""
        ...

    def delete(self, name: str) -> None:
        """Remove a file, and the folders that are empty without it."""
        ...

    def move(self, name: str, to: str) -> None:
        """Move a folder with its files, so that what is left after an interruption has its newest file."""
        ...


def folder_at(location: Location, options: StorageOptions) -> Folder:
    """Return the folder at a place."""
    return LocalFolder(location.local) if location.is_local else RemoteFolder(location, options)


def read_small(folder: Folder, name: str) -> bytes | None:
    """Return what is in a small file; None if there is none."""
    try:
        with folder.open(name) as file:
            return file.read()
    except StorageMissing:
        return None


@dataclass(frozen=True, slots=True)
class LocalFolder:
    """A folder on this machine."""

    path: Path
    best_bytes: ClassVar[float] = math.inf

    def files(self, below: str = "") -> list[Stored]:
        with _saying("cannot list", self.path):
            stats = [(path, path.stat()) for path in (self.path / below).rglob("*") if path.is_file()]
        return [
            Stored(path.relative_to(self.path).as_posix(), stat.st_size, int(stat.st_mtime * 1000))
            for path, stat in stats
        ]

    def open(self, name: str) -> BinaryIO:
        try:
            return (self.path / name).open("rb")
        except FileNotFoundError:
            raise StorageMissing(f"there is no {self.path / name}") from None
        except OSError as error:
            raise StorageError(f"cannot read {self.path / name}: {error.strerror}") from None

    def write(self, name: str, data: bytes) -> None:
        with _saying("cannot write", self.path / name):
            replace_file(self.path / name, data)

    def append(self, name: str, at: int, data: bytes) -> None:
        path = self.path / name
        with _saying("cannot record into", path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("ab") as file:
                file.truncate(at)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if not at:
                sync_folder(path.parent)

    def delete(self, name: str) -> None:
        path = self.path / name
        with _saying("cannot remove", path):
            path.unlink()
            while (path := path.parent) != self.path and not any(path.iterdir()):
                path.rmdir()

    def move(self, name: str, to: str) -> None:
        with _saying("cannot set aside", self.path / name):
            (self.path / to).parent.mkdir(parents=True, exist_ok=True)
            (self.path / name).rename(self.path / to)

    @contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """Hold the lock that a file is; BlockingIOError if another process does."""
        with _saying("cannot record into", self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            file = (self.path / name).open("a")
        with file:
            lock(file.fileno())
            yield

    def __str__(self) -> str:
        return str(self.path)


@contextmanager
def _saying(what: str, path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(f"{what} {error.filename or path}: {error.strerror}") from None


@dataclass(slots=True)
class RemoteFolder:
    """A folder at a URL; nothing is written or deleted there unless `check` returns."""

    place: Location
    options: StorageOptions
    check: Callable[[], None] = lambda: None
    best_bytes: ClassVar[float] = PART_BYTES
    _added: tuple[str, bytes] = field(default=("", b""), repr=False)

    def files(self, below: str = "") -> list[Stored]:
        start = len(self.place.path) + 1 if self.place.path else 0
        at = self.place / below
        return [
            Stored(entry.location.path[start:], entry.size, entry.modified_ms)
            for entry in open_store(at, self.options).walk(at)
        ]

    def open(self, name: str) -> BinaryIO:
        try:
            return BytesIO(RemoteFile.at(self.place / name, self.options).read_bytes())
        except StorageChanged:  # it grew meanwhile
            return BytesIO(RemoteFile.at(self.place / name, self.options).read_bytes())

    def write(self, name: str, data: bytes) -> None:
        self.check()
        open_store(self.place, self.options).write(self.place / name, data)

    def create(self, name: str, data: bytes) -> bool:
        """Write a file if there is none; return whether it was written."""
        return open_store(self.place, self.options).create(self.place / name, data)

    def append(self, name: str, at: int, data: bytes) -> None:
        before = self._added[1][:at] if self._added[0] == name else b""
        assert len(before) == at
        self.write(name, before + data)
        self._added = name, before + data

    def delete(self, name: str) -> None:
        self.check()
        open_store(self.place, self.options).delete(self.place / name)

    def move(self, name: str, to: str) -> None:
        # No store renames a folder, and not all of them an object.
        for file in sorted(self.files(name), key=lambda file: file.name):
            with self.open(file.name) as opened:
                self.write(to + file.name.removeprefix(name), opened.read())
            self.delete(file.name)

    def __str__(self) -> str:
        return str(self.place)
