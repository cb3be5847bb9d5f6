"""A capture at a URL: objects do not grow, so batches wait and become a segment of their own.

    URL/topics.json                                    topic ids
    URL/__consumer_offsets-7/00000000000000012345.log  one segment per upload

What waits when the process is killed is not lost: the next capture begins after the last object.
"""

from dataclasses import dataclass, field

from kgroup.history.sources.capture import Keeper, OnDisk, PartitionCapture, last_batch
from kgroup.history.sources.folders import LocalFolder, RemoteFolder
from kgroup.history.sources.layout import is_segment
from kgroup.storage.files import RemoteFile
from kgroup.storage.location import Location
from kgroup.storage.opening import open_store
from kgroup.storage.options import StorageOptions

OBJECT_BYTES = 16 << 20
"""Bytes from which an object is uploaded."""


@dataclass(frozen=True, slots=True)
class Uploads:
    """A folder at a URL to record into."""

    folder: RemoteFolder

    def resume(self, name: str) -> PartitionCapture:
        at, options = self.folder.place / name, self.folder.options
        found = UploadedPartition(at, into=self.folder)
        objects = [RemoteFile.of(each, options) for each in open_store(at, options).walk(at)]
        segments = sorted(file for file in objects if is_segment(file))
        while segments and found.next_offset < 0:
            with (last := segments.pop()).open() as file:
                batch, _ = last_batch(file, str(last))
            if batch is not None:
                found.continue_after(batch)
        return found


def keeper_at(place: Location, options: StorageOptions) -> Keeper:
    """Return what stores a capture at a place."""
    return OnDisk(LocalFolder(place.local)) if place.is_local else Uploads(RemoteFolder(place, options))


@dataclass(slots=True, kw_only=True)
class UploadedPartition(PartitionCapture):
    """As `PartitionCapture`: an appended batch waits until `flush`, or until an object is full."""

    into: RemoteFolder
    _batches: list[bytes] = field(default_factory=list)
    _for: Location | None = None

    @property
    def waiting(self) -> int:
        return sum(map(len, self._batches))

    def _keep(self, batches: list[bytes], sync: bool) -> None:
        assert isinstance(self.path, Location)
        if self.path != self._for:
            self.flush()
            self._for = self.path
        self._batches += batches
        if self.waiting >= OBJECT_BYTES:
            self.flush()
            self.path = None

    def flush(self) -> None:
        if self._for is None or not self._batches:
            return
        data = b"".join(self._batches)
        self.into.write(f"{self._for.parent.name}/{self._for.name}", data)
        self.bytes_kept += len(data)
        self.batches += len(self._batches)
        # The next batch begins another object: this one is never written again.
        if self.path == self._for:
            self.path = None
        self._batches, self._for = [], None
