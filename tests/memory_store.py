"""A store in memory behind s3:// URLs, which fails or dies at a write of the test's choice."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from kgroup.errors import StorageChanged, StorageMissing, StorageUnreachable
from kgroup.history.sources.folders import RemoteFolder
from kgroup.storage import opening
from kgroup.storage.location import Location
from kgroup.storage.options import StorageOptions
from kgroup.storage.store import Found

AT = Location.parse("s3://bucket/recording")


class Killed(BaseException):
    """The process ends here: nothing that it would do next happens."""


class MemoryStore:
    """Objects by their paths. `before` and `after` are called with the path at each change of one."""

    def __init__(self, now_ms: Callable[[], int] = lambda: 0) -> None:
        self.objects: dict[str, tuple[bytes, int, int]] = {}
        self.now_ms = now_ms
        self.requests: list[tuple[str, str]] = []
        self.before: Callable[[str], object] = lambda path: None
        self.after: Callable[[str], object] = lambda path: None
        self._count = 0

    def __getitem__(self, name: str) -> bytes:
        return self.objects[f"{AT.path}/{name}"][0]

    @property
    def names(self) -> list[str]:
        return sorted(path.removeprefix(f"{AT.path}/") for path in self.objects)

    def walk(self, folder: Location) -> Iterator[Found]:
        self.requests.append(("list", folder.path))
        for path in list(self.objects):
            if path.startswith(f"{folder.path}/".lstrip("/")):
                yield self._found(path)

    def look(self, location: Location) -> Found:
        if location.path not in self.objects:
            raise StorageMissing(f"there is no {location}")
        return self._found(location.path)

    def read(self, found: Found, start: int, end: int) -> bytes:
        self.requests.append(("read", found.location.path))
        data, version, _ = self.objects[found.location.path]
        if str(version) != found.version:
            raise StorageChanged(f"{found.location} changed while it was read")
        return data[start:end]

    def write(self, location: Location, data: bytes) -> Found:
        self.before(location.path)
        self._count += 1
        self.requests.append(("write", location.path))
        self.objects[location.path] = data, self._count, self.now_ms()
        self.after(location.path)
        return self._found(location.path)

    def create(self, location: Location, data: bytes) -> bool:
        there = location.path in self.objects
        if not there:
            self.write(location, data)
        return not there

    def delete(self, location: Location) -> None:
        self.before(location.path)
        self.objects.pop(location.path, None)
        self.after(location.path)

    def _found(self, path: str) -> Found:
        data, version, at_ms = self.objects[path]
        return Found(Location(AT.scheme, AT.host, path), len(data), str(version), at_ms)

    def down(self) -> None:
        """Let no change succeed any more."""
        self.before = self._unreachable

    def up(self) -> None:
        self.before = lambda path: None

    def _unreachable(self, path: str) -> None:
        raise StorageUnreachable(f"{path} could not be reached")


def opened(monkeypatch: pytest.MonkeyPatch, store: MemoryStore) -> RemoteFolder:
    """The folder at a URL whose store this is, in the rest of the test."""
    monkeypatch.setattr(opening, "_opened", lambda *_: store)
    return RemoteFolder(AT, StorageOptions())
