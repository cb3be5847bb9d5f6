"""Objects as the readers of segments take files: a name, a folder, a size, and `open` for reading ranges."""

from __future__ import annotations

from dataclasses import dataclass, field

from kgroup.errors import StorageUnreachable
from kgroup.storage.location import Location
from kgroup.storage.opening import open_store
from kgroup.storage.options import StorageOptions
from kgroup.storage.store import Found
from kgroup.storage.waiting import Pending


@dataclass(frozen=True, slots=True, order=True)
class RemoteFile:
    """An object as it was found, with all that is needed to read it: it can be sent to other processes."""

    location: Location
    size: int
    version: str
    options: StorageOptions = field(compare=False, repr=False)

    @classmethod
    def of(cls, entry: Found, options: StorageOptions) -> RemoteFile:
        return cls(entry.location, entry.size, entry.version, options)

    @classmethod
    def at(cls, location: Location, options: StorageOptions) -> RemoteFile:
        """Return the present object; StorageMissing if there is none."""
        return cls.of(open_store(location, options).look(location), options)

    @property
    def found(self) -> Found:
        return Found(self.location, self.size, self.version)

    @property
    def name(self) -> str:
        return self.location.name

    @property
    def parent(self) -> Location:
        return self.location.parent

    def open(self, mode: str = "rb") -> RangeReader:
        """Read it; StorageChanged at the first range that is of another version."""
        assert mode == "rb"
        return RangeReader(self)

    def read_bytes(self) -> bytes:
        """Return all of it, for small ones."""
        return open_store(self.location, self.options).read(self.found, 0, self.size)

    def __str__(self) -> str:
        return str(self.location)


class RangeReader:
    """Reads an object in ranges of the size asked for; for `with`.

    For sequential reads the next range is fetched in the background, so that network and reader work at
    once; two ranges are kept at most. Raises what `Store.read` does.
    """

    def __init__(self, file: RemoteFile) -> None:
        self._file = file
        self._store = open_store(file.location, file.options)
        self._at = 0
        self._runs = False
        self._ahead: tuple[int, int, Pending[bytes]] | None = None

    def __enter__(self) -> RangeReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._ahead = None

    def seek(self, position: int) -> int:
        self._at, self._runs = position, False
        return position

    def read(self, size: int) -> bytes:
        """Return the next `size` bytes, fewer at the end of the object."""
        start, end = self._at, min(self._at + size, self._file.size)
        if start >= end:
            return b""
        ahead, self._ahead = self._ahead, None
        if ahead is None or ahead[:2] != (start, end):
            data = self._store.read(self._file.found, start, end)
        else:
            try:
                data = ahead[2].result(self._file.options.timeout_s + 2)
            except TimeoutError:
                raise StorageUnreachable(f"{self._file} was not read in time", "see --timeout") from None
        after = self._at = start + len(data)
        following = min(after + size, self._file.size)
        # One read may be for the head alone; the second one is from a reader of the whole.
        if after < following and (self._runs or size >= _LARGE):
            fetched = Pending(lambda: self._store.read(self._file.found, after, following))
            self._ahead = (after, following, fetched)
        self._runs = True
        return data


_LARGE = 4 << 20
