"""One segment of a partition's log: a file of batches with its sparse offset and time indexes.

The index files are written when a segment is closed or rolled, and are made again from the log
whenever they are missing or not sane; between, the indexes live in memory only.
"""

import errno
import os
import struct
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from google_crc32c import extend
from google_crc32c import value as crc32c

from kgroup.log.damage import (
    HEAD_BYTES,
    OTHER_BATCHES,
    Damage,
    Damaged,
    damaged_file,
    head_of,
    scan,
    too_short,
)
from kgroup.log.files import INDEX_SUFFIXES, segment_file
from kgroup.log.interface import Placed, first_at_or_after
from kgroup.log.manifest import Listed
from kgroup.portable import BINARY, read_at
from kgroup.protocol.batches import EXTENT, HEADER_BYTES, LENGTH_OFFSET, NO_TIMESTAMP, Batch

INDEX_INTERVAL_BYTES = 4096
_HOP_BYTES = 8 << 10
MAX_RELATIVE_OFFSET = (1 << 31) - 1

_INDEX_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")

Write = Callable[[int, bytes], int]


class SyncFailed(OSError):
    """Bytes were written, but it is unknown whether they are on disk."""


class Segment:
    """The segment of `folder` that starts at `base_offset`; `size` bytes of it are whole batches.

    `suffix` marks the files of a segment still being made (`.cleaned`). `digest` is the checksum of what
    the batches' own do not cover, None if the file was not read whole since it came from elsewhere;
    `indexes` that of its index files, None if they have to be made again.
    """

    def __init__(self, folder: Path, base_offset: int, suffix: str = "", write: Write = os.write) -> None:
        self.folder = folder
        self.base_offset = base_offset
        self.suffix = suffix
        self.size = 0
        self.end_offset = base_offset
        self.max_timestamp = NO_TIMESTAMP
        self.digest: int | None = 0
        self.first: int | None = None
        self.indexes: int | None = None
        self._offset_of_max = base_offset
        self._index_offsets = array("q")
        self._index_positions = array("q")
        self._times = array("q")
        self._time_offsets = array("q")
        self._since_index = 0
        self._write = write
        self._fd: int | None = None

    @property
    def path(self) -> Path:
        return segment_file(self.folder, self.base_offset, ".log" + self.suffix)

    @property
    def listed(self) -> Listed:
        """The manifest's entry for this segment."""
        return Listed(self.base_offset, self.size, self.digest, self.first, self.indexes)

    # -- writing -----------------------------------------------------------------------------------

    def open_for_append(self) -> None:
        """Create or open the log file; raises OSError."""
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | BINARY
        self._fd = os.open(self.path, flags, 0o644)

    def reopen(self) -> int:
        """Open the log file again if it is closed; return its descriptor.

        Raise OSError, also for a file whose length has changed: nothing may be appended to that.
        """
        if self._fd is None:
            fd = os.open(self.path, os.O_RDWR | os.O_APPEND | BINARY)
            size = os.fstat(fd).st_size
            if size != self.size:
                os.close(fd)
                raise OSError(errno.EIO, f"it was left with {self.size} bytes and has {size}")
            self._fd = fd
        return self._fd

    def append(self, raw: bytes, placed: Iterable[Placed], sync: bool = False) -> None:
        """Write batches with one write; raises OSError, with some bytes perhaps written, or SyncFailed."""
        assert self._fd is not None
        written = self._write(self._fd, raw)
        while written < len(raw):
            written += self._write(self._fd, raw[written:])
        if sync:
            try:
                os.fsync(self._fd)
            except OSError as error:
                raise SyncFailed(*error.args) from error
        for batch in placed:
            self.index(batch.raw[:HEAD_BYTES], len(batch.raw), batch.last_offset, batch.max_timestamp)

    def cut_to_size(self) -> None:
        """Drop what a failed append has left behind the last whole batch; raises OSError."""
        assert self._fd is not None
        os.ftruncate(self._fd, self.size)

    def sync(self) -> None:
        """Sync what was appended, also if the file was closed since; raise OSError."""
        was_closed = self._fd is None
        try:
            os.fsync(self.reopen())
        finally:
            if was_closed:
                self.close()

    def index(self, head: bytes, size: int, last_offset: int, max_timestamp: int) -> None:
        """Account for a batch of `size` bytes at the segment's end (Kafka: LogSegment.append)."""
        if self.digest is not None:
            self.digest = extend(self.digest, head)
        if self.first is None:
            self.first = crc32c(head)
        if max_timestamp > self.max_timestamp:
            self.max_timestamp, self._offset_of_max = max_timestamp, last_offset
        if self._since_index > INDEX_INTERVAL_BYTES:
            self._index_offsets.append(last_offset)
            self._index_positions.append(self.size)
            self._index_time()
            self._since_index = 0
        self._since_index += size
        self.size += size
        self.end_offset = last_offset + 1

    def _index_time(self) -> None:
        if self.max_timestamp > (self._times[-1] if self._times else NO_TIMESTAMP):
            self._times.append(self.max_timestamp)
            self._time_offsets.append(self._offset_of_max)

    def write_indexes(self) -> None:
        """Write both index files whole; raises OSError."""
        self._index_time()
        base = self.base_offset
        offsets = zip(self._index_offsets, self._index_positions, strict=True)
        times = zip(self._times, self._time_offsets, strict=True)
        contents = (
            b"".join([_INDEX_ENTRY.pack(offset - base, position) for offset, position in offsets]),
            b"".join([_TIME_ENTRY.pack(timestamp, offset - base) for timestamp, offset in times]),
        )
        for suffix, content in zip(INDEX_SUFFIXES, contents, strict=True):
            segment_file(self.folder, base, suffix + self.suffix).write_bytes(content)
        self.indexes = crc32c(b"".join(contents))

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    # -- loading -----------------------------------------------------------------------------------

    def load(self, end_offset: int, listed: Listed | None = None) -> None:
        """Load a sealed segment that ends where the next one starts.

        Its batches are checked if the indexes have to be made again, or it is longer than `listed`; else when
        they are read. Raise StorageError if it is damaged; or OSError.
        """
        size = self.path.stat().st_size
        if listed is not None and size < listed.size:
            raise damaged_file(self.path, too_short(size, listed.size))
        if (listed is None or listed.size == size) and self._load_indexes(size, end_offset, listed):
            if listed is not None:
                self.digest, self.first = listed.digest, listed.first
                # For a segment of another partition; the other batches are checked when they are read.
                with self.path.open("rb", buffering=0) as file:
                    head = file.read(HEAD_BYTES)
                if self.first is not None and crc32c(head) != self.first:
                    raise damaged_file(self.path, Damage(0, OTHER_BATCHES))
            else:
                self.digest = None
        else:
            damage = self.recover(size, listed)
            if damage is None and self.end_offset > end_offset:
                reason = f"its offsets reach {self.end_offset - 1}, the next segment starts at {end_offset}"
                damage = Damage(0, reason, torn=False)
            if damage is not None:
                raise damaged_file(self.path, damage)
            self.write_indexes()
        self.size = size
        self.end_offset = end_offset

    def _load_indexes(self, size: int, end_offset: int, listed: Listed | None) -> bool:
        """Read both index files; False, with empty indexes, if missing, not sane or not as listed."""
        base = self.base_offset
        paths = [segment_file(self.folder, base, suffix) for suffix in INDEX_SUFFIXES]
        try:
            index, times = (path.read_bytes() for path in paths)
        except FileNotFoundError:
            return False
        if len(index) % _INDEX_ENTRY.size or len(times) % _TIME_ENTRY.size or (size and not times):
            return False
        checksum = crc32c(index + times)
        if listed is not None and listed.indexes != checksum:
            return False
        positions = list(_INDEX_ENTRY.iter_unpack(index))
        timestamps = list(_TIME_ENTRY.iter_unpack(times))
        limit = end_offset - base
        if not (
            _rises(offset for offset, _ in positions)
            and _rises(position for _, position in positions)
            and _rises(timestamp for timestamp, _ in timestamps)
            and all(0 <= offset < limit and 0 < position < size for offset, position in positions)
            and all(0 <= offset < limit for _, offset in timestamps)
        ):
            return False
        self._index_offsets.extend(base + offset for offset, _ in positions)
        self._index_positions.extend(position for _, position in positions)
        self._times.extend(timestamp for timestamp, _ in timestamps)
        self._time_offsets.extend(base + offset for _, offset in timestamps)
        if timestamps:
            self.max_timestamp = self._times[-1]
        self.indexes = checksum
        return True

    def recover(self, size: int, listed: Listed | None = None) -> Damage | None:
        """Read the file's batches, making the indexes again; return where and why that ended early, or None.

        The first ones have to be those `listed`; those appended behind them omit no offset.
        """
        sure = listed is None or listed.digest is None
        appended = size if listed is None else listed.size
        try:
            for position, batch in scan(self.path, 0, size):
                if position >= appended and not sure:
                    if position > appended or listed is None or self.digest != listed.digest:
                        break
                    sure = True
                base, due = batch.base_offset, self.end_offset
                # Compaction leaves gaps.
                follows = due <= base if position < appended else due == base
                if not (follows and base <= batch.last_offset <= self.base_offset + MAX_RELATIVE_OFFSET):
                    return Damage(position, f"offset {base} where {due} is due", torn=False)
                self.index(head_of(batch), batch.size, batch.last_offset, batch.max_timestamp)
        except Damaged as error:
            return error.damage
        if not sure and listed is not None and self.digest != listed.digest:
            return Damage(0, OTHER_BATCHES, torn=False)
        return None

    # -- reading -----------------------------------------------------------------------------------

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Return whole batches from the first that ends at or behind `offset`; empty if there is none."""
        position = self.position_of(offset)
        if position == self.size:
            return b""
        data = self._pread(min(max(max_bytes, HEADER_BYTES), self.size - position), position)
        first, due = self._hop(data, 0, position, self.base_offset)
        if first >= len(data):
            return data if first == len(data) else self._pread(first, position)
        end = first
        while end + HEADER_BYTES <= len(data):
            size, due = self._hop(data, end, position, due)
            if end + size > len(data):
                break
            end += size
        return data[:end] if end < len(data) else data

    def position_of(self, offset: int) -> int:
        """Return where the first batch that ends at or behind `offset` starts; the size if there is none."""
        entry = bisect_right(self._index_offsets, offset) - 1
        position = self._index_positions[entry] if entry >= 0 else 0
        due = self.base_offset
        while position < self.size:
            data = self._pread(min(_HOP_BYTES, self.size - position), position)
            at = 0
            while at + EXTENT.size <= len(data):
                size, due = self._hop(data, at, position, due)
                if due > offset:
                    return position + at
                at += size
            if not at:
                raise damaged_file(self.path, Damage(position, "a batch header is cut"))
            position += at
        return self.size

    def batches(self, offset: int) -> Iterator[Batch]:
        """Yield the verified batches that end at or behind `offset`; StorageError where one is damaged."""
        position, size, due, end = self.position_of(offset), self.size, self.base_offset, self.end_offset
        if position == size:
            return  # a log without records may have no file yet
        digest, computed = None if position else self.digest, 0
        try:
            for at, batch in scan(self.path, position, size):
                if not due <= batch.base_offset <= batch.last_offset < end:
                    raise Damaged(at, f"offset {batch.base_offset} where {due} is due, {end} is the end")
                due, computed = batch.last_offset + 1, extend(computed, head_of(batch))
                yield batch
            if digest is not None and computed != digest:
                raise Damaged(0, OTHER_BATCHES)
        except Damaged as error:
            raise damaged_file(self.path, error.damage) from None

    def offset_for_timestamp(self, timestamp_ms: int, start_offset: int) -> tuple[int, int] | None:
        """Return the first record from `start_offset` on that is not older than `timestamp_ms`."""
        if self.max_timestamp < timestamp_ms:
            return None
        entry = bisect_left(self._times, timestamp_ms) - 1
        after = self._time_offsets[entry] if entry >= 0 else 0
        for batch in self.batches(max(start_offset, after)):
            if batch.max_timestamp >= timestamp_ms and (
                first := first_at_or_after(batch, timestamp_ms, start_offset)
            ):
                return first
        return None

    def _pread(self, size: int, position: int) -> bytes:
        fd = os.open(self.path, os.O_RDONLY | BINARY) if self._fd is None else self._fd
        try:
            data = read_at(fd, size, position)
        finally:
            if self._fd is None:
                os.close(fd)
        if len(data) < size:
            raise damaged_file(self.path, Damage(position + len(data), "the file ends early"))
        return data

    def _hop(self, data: bytes, at: int, position: int, due: int) -> tuple[int, int]:
        """Return the size of the batch there, and the offset behind it; its place must be sane."""
        base, length, delta = EXTENT.unpack_from(data, at)
        size = length + LENGTH_OFFSET
        if size < HEADER_BYTES or position + at + size > self.size:
            raise damaged_file(self.path, Damage(position + at, f"a batch of {size} bytes is claimed"))
        if not due <= base <= base + delta < self.end_offset:
            raise damaged_file(self.path, Damage(position + at, f"offset {base} where {due} is due"))
        return size, base + delta + 1


def _rises(values: Iterable[int]) -> bool:
    previous = -1
    for value in values:
        if value <= previous:
            return False
        previous = value
    return True
