"""Where the files of a store lie: a folder of this machine, or a URL; files are named relative to it."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from kgroup.errors import StorageMissing
from kgroup.pipeline.spark.scratch import scratch
from kgroup.storage.location import Location
from kgroup.storage.opening import open_store
from kgroup.storage.options import StorageOptions

if TYPE_CHECKING:
    from kgroup.storage.store import Found, Store


_SMALL_BYTES = 256 << 10
"""The most that is fetched at once: up to here the time is mostly the request's."""


class _Ranges(io.RawIOBase):
    """An object that is read in the requested ranges."""

    def __init__(self, store: Store, entry: Found) -> None:
        self._store, self._found = store, entry
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._found.size}[whence]
        return self._at

    def read(self, size: int = -1) -> bytes:
        end = self._found.size if size < 0 else min(self._at + size, self._found.size)
        data = self._store.read(self._found, self._at, end)
        self._at += len(data)
        return data


@dataclass(frozen=True, slots=True)
class Place:
    """A root and its access; it is sent to tasks. Failures are a StorageError or an OSError."""

    root: Location
    options: StorageOptions

    @classmethod
    def of(cls, root: Path | str | Location, options: StorageOptions | None = None) -> Place:
        """Return the place; a local path is made absolute, as Spark has another working directory."""
        location = root if isinstance(root, Location) else Location.parse(root)
        if location.is_local:
            location = Location("", "", str(location.local.resolve()))
        return cls(location, options or StorageOptions.of({}))

    @property
    def folder(self) -> Path | None:
        """The folder, if it is on this machine."""
        return self.root.local if self.root.is_local else None

    def uri(self, name: str = "") -> str:
        """Return what other libraries open: a path, or a URL."""
        return str(self.root / name if name else self.root)

    def read(self, name: str) -> str | pa.NativeFile:
        """Return what pyarrow reads a file from; of a large remote one, only the requested ranges."""
        if self.root.is_local:
            return self.uri(name)

        store = open_store(self.root, self.options)
        stored = store.look(self.root / name)
        if stored.size <= _SMALL_BYTES:
            return pa.BufferReader(store.read(stored, 0, stored.size))
        return pa.PythonFile(_Ranges(store, stored), mode="r")

    def has(self, name: str) -> bool:
        if self.root.is_local:
            return (self.root.local / name).exists()

        try:
            open_store(self.root, self.options).look(self.root / name)
        except StorageMissing:
            return False
        return True

    @contextmanager
    def written(self, name: str) -> Iterator[Path]:
        """Yield a local file to write; it is at `name` when the block ends well."""
        if self.root.is_local:
            path = self.root.local / name
            path.parent.mkdir(parents=True, exist_ok=True)
            yield path
            return

        with scratch() as folder:
            yield folder / "file"
            open_store(self.root, self.options).write(self.root / name, (folder / "file").read_bytes())

    def names(self, below: str) -> Iterator[str]:
        """Yield the files in a folder and all folders in it."""
        if self.root.is_local:
            root = self.root.local
            yield from (str(path.relative_to(root)) for path in (root / below).rglob("*") if path.is_file())
            return

        skipped = len(self.root.path) + 1 if self.root.path else 0
        for stored in open_store(self.root, self.options).walk(self.root / below):
            yield stored.location.path[skipped:]

    def delete(self, names: Iterable[str]) -> None:
        """Delete files, and local folders that are empty then."""
        if not self.root.is_local:
            store = open_store(self.root, self.options)
            for name in names:
                store.delete(self.root / name)
            return
        for name in names:
            path = self.root.local / name
            path.unlink(missing_ok=True)
            with suppress(OSError):
                while (path := path.parent) != self.root.local:
                    path.rmdir()
