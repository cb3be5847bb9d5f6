"""What every place for files can do, and what is said of a file in it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from kgroup.storage.location import Location


@dataclass(frozen=True, slots=True, order=True)
class Found:
    """A file or an object as it was seen: its bytes, and `version`, which another content has not.

    `modified_ms` is when it was written by the store's clock, -1 where that was not looked up.
    """

    location: Location
    size: int
    version: str
    modified_ms: int = field(default=-1, compare=False)


class Store(Protocol):
    """One bucket, container, name node or this machine; locations are those of this place.

    Every method raises StorageMissing for what is not there, StorageDenied where we are not let in,
    StorageUnreachable when nothing answered in time, StorageError for what else fails.
    """

    def walk(self, folder: Location) -> Iterator[Found]:
        """Everything below a folder, in no order, as a stream; nothing where the folder is not there.

        StorageMissing if the bucket is not there.
        """
        ...

    def look(self, location: Location) -> Found:
        """Return what is there now."""
        ...

    def read(self, entry: Found, start: int, end: int) -> bytes:
        """Return the bytes from `start` to before `end`, cut at the object's own end.

        StorageChanged if it is another version than the one that was found.
        """
        ...

    def write(self, location: Location, data: bytes) -> Found:
        """Put a whole object there, in the place of what was there; readers see the old one or the new."""
        ...

    def create(self, location: Location, data: bytes) -> bool:
        """Put a whole object there if nothing is; return whether it was put."""
        ...

    def delete(self, location: Location) -> None:
        """Take an object away; nothing happens if there is none."""
        ...
