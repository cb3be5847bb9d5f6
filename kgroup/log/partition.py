"""A partition's log in a folder of Kafka's layout: segments of record batches, rolled by size."""

import contextlib
import os
import shutil
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Unpack

from kgroup.errors import StorageError
from kgroup.log.files import (
    START_OFFSET,
    commit_swap,
    finish_swap,
    remove_segment,
    sync_folder,
    write_checkpoint,
)
from kgroup.log.interface import Placed, out_of_range, place_batches, place_records
from kgroup.log.manifest import MANIFEST, Manifest, draft_manifest, write_manifest
from kgroup.log.open_files import OpenFiles
from kgroup.log.opening import open_segments
from kgroup.log.segment import MAX_RELATIVE_OFFSET, Segment, SyncFailed, Write
from kgroup.log.transactions import Transactions
from kgroup.protocol.batches import Appended, Batch, BatchHead

SEGMENT_BYTES = 100 << 20
"""Default size of a segment (offsets.topic.segment.bytes)."""


class PartitionLog:
    """A `Log` in `folder`; one process at a time may have it open.

    A folder that is missing is created by the first append, or by `create`: a partition without records costs
    no file.

    An append is one write of whole batches: after a killed process the log has all of it or a prefix of its
    batches. With `fsync`, an append also survives a power loss. `torn_tail` is what opening had to cut, None
    for a clean log. Raise StorageError for a folder that cannot be used, or if stored data is missing or
    damaged.
    `write` is the system call; tests replace it. `files` may close the active segment's file between appends.
    """

    def __init__(
        self,
        folder: Path,
        *,
        segment_bytes: int = SEGMENT_BYTES,
        fsync: bool = False,
        write: Write = os.write,
        files: OpenFiles | None = None,
    ) -> None:
        self.folder = folder
        self.segment_bytes = segment_bytes
        self._fsync = fsync
        self._write = write
        self._refusal: str | None = None
        self._transactions = Transactions()
        self._seen_to = 0  # of `_transactions`
        self.leader_epoch = 0
        self._files = OpenFiles() if files is None else files
        self._segments: list[Segment] = []
        self._created = os.path.lexists(folder)
        if not self._created:
            self._active = Segment(folder, 0, write=write)
            self._segments, self._noted, self.torn_tail = [self._active], None, None
            self._start = 0
            return
        try:
            opened = open_segments(folder, write)
            self._segments, self._noted, self.torn_tail = opened.segments, opened.manifest, opened.torn
            self._active = self._segments[-1]
            self._start = min(opened.start_offset, self._active.end_offset)
            self._open_active()
            self._note()
        except OSError as error:
            for segment in self._segments:
                self._close(segment)
            raise _os_error(folder, "opened", error) from None

    def create(self) -> None:
        """Create the folder of a log that has none yet; StorageError."""
        if self._created:
            return
        try:
            self.folder.mkdir(parents=True)
            try:
                self._open_active()
            except OSError:
                self._close(self._active)
                shutil.rmtree(self.folder, ignore_errors=True)
                raise
        except OSError as error:
            raise _os_error(self.folder, "created", error) from None
        self._created = True

    def _open_active(self) -> None:
        """Open the file of the active segment, which is created and listed if missing; raise OSError."""
        missing = not self._active.path.exists()
        self._active.open_for_append()
        self._files.use(self._active)
        if missing:
            self._noted = Manifest(self._start, (self._active.listed,))
            write_manifest(self.folder, self._noted, durable=False)
            if self._fsync:
                sync_folder(self.folder)
                sync_folder(self.folder.parent)

    @property
    def start_offset(self) -> int:
        return self._start

    @property
    def end_offset(self) -> int:
        return self._active.end_offset

    @property
    def segments(self) -> Sequence[Segment]:
        """The segments by offset; the last one is active, the others are sealed."""
        return self._segments

    def _note(self) -> None:
        """Record the folder's content, once all of it is on disk; raise OSError."""
        sealed = tuple(segment.listed for segment in self._segments[:-1])
        manifest = Manifest(self._start, (*sealed, self._active.listed._replace(indexes=None)))
        if manifest != self._noted:
            self._active.sync()
            write_manifest(self.folder, manifest)
            self._noted = manifest

    # -- appending ---------------------------------------------------------------------------------

    def append(self, records: Appended, **head: Unpack[BatchHead]) -> int:
        placed = place_records(records, self._active.end_offset, self.leader_epoch, head)
        self._add(placed.raw, [placed])
        return placed.base_offset

    def append_batches(
        self, raw: bytes, *, leader_epoch: int | None = None, append_time_ms: int | None = None
    ) -> tuple[int, int]:
        epoch = self.leader_epoch if leader_epoch is None else leader_epoch
        placed = place_batches(raw, self._active.end_offset, epoch, append_time_ms)
        self._add(b"".join([batch.raw for batch in placed]), placed)
        return placed[0].base_offset, placed[-1].last_offset

    def _add(self, raw: bytes, placed: list[Placed]) -> None:
        if self._refusal is not None:
            raise StorageError(f"{self.folder} takes no more appends: {self._refusal}", hint=_REOPEN)
        self.create()
        active = self._active
        if active.size and (
            active.size + len(raw) > self.segment_bytes
            or placed[-1].last_offset - active.base_offset > MAX_RELATIVE_OFFSET
        ):
            self.roll()
            active = self._active
        try:
            self._files.use(active)
        except OSError as error:
            raise _os_error(active.path, "opened", error) from None
        try:
            active.append(raw, placed, sync=self._fsync)
        except SyncFailed as error:
            # The kernel may have dropped the pages: the content on disk is unknown until it is read again.
            self._refusal = f"fsync failed ({error.strerror})"
            raise _os_error(active.path, "synced", error) from None
        except OSError as error:
            # If even the undoing fails, nothing may be appended behind it.
            try:
                active.cut_to_size()
            except OSError as second:
                how = f"could not be undone ({second.strerror})"
                self._refusal = f"an append failed ({error.strerror}) and {how}"
            raise _os_error(active.path, "appended to", error) from None

    def roll(self) -> None:
        """Seal the active segment and start a new one; does nothing if the active one is empty."""
        sealed = self._active
        if not sealed.size:
            return
        fresh = Segment(self.folder, sealed.end_offset, write=self._write)
        try:
            sealed.write_indexes()
            sealed.sync()
            fresh.open_for_append()
            noted = Manifest(self._start, tuple(segment.listed for segment in (*self._segments, fresh)))
            write_manifest(self.folder, noted)
        except OSError as error:
            fresh.close()
            with contextlib.suppress(OSError):
                fresh.path.unlink(missing_ok=True)
            raise _os_error(fresh.path, "created", error) from None
        self._close(sealed)
        self._files.use(fresh)
        self._segments.append(fresh)
        self._active, self._noted = fresh, noted

    # -- reading -----------------------------------------------------------------------------------

    def read(self, offset: int, max_bytes: int) -> bytes:
        if not self._start <= offset <= self._active.end_offset:
            raise out_of_range(offset, self._start, self._active.end_offset)
        try:
            for segment in self._segments[self._index_of(offset) :]:
                if data := segment.read(offset, max_bytes):
                    return data
        except OSError as error:
            raise _os_error(self.folder, "read", error) from None
        return b""

    def batches(self, start: int = 0) -> Iterator[Batch]:
        start = max(start, self._start)
        try:
            for segment in self._segments[self._index_of(start) :]:
                yield from segment.batches(start)
        except OSError as error:
            raise _os_error(self.folder, "read", error) from None

    def transactions(self) -> Transactions:
        """Return the transactions of everything appended so far, dropped by compaction or not."""
        for batch in self.batches(self._seen_to):
            self._transactions.saw(batch)
            self._seen_to = batch.last_offset + 1
        return self._transactions

    def offset_for_timestamp(self, timestamp_ms: int) -> tuple[int, int] | None:
        try:
            for segment in self._segments[self._index_of(self._start) :]:
                if entry := segment.offset_for_timestamp(timestamp_ms, self._start):
                    return entry
        except OSError as error:
            raise _os_error(self.folder, "read", error) from None
        return None

    def _index_of(self, offset: int) -> int:
        return max(bisect_right(self._segments, offset, key=lambda segment: segment.base_offset) - 1, 0)

    # -- removing ----------------------------------------------------------------------------------

    def delete_before(self, offset: int) -> None:
        if offset > self._active.end_offset:
            raise out_of_range(offset, self._start, self._active.end_offset)
        if offset <= self._start:
            return
        if offset == self._active.end_offset:
            self.roll()
        try:
            write_checkpoint(self.folder, START_OFFSET, offset)
            self._start = offset
            gone = self._index_of(offset)
            removed, self._segments = self._segments[:gone], self._segments[gone:]
            self._note()
            for segment in removed:
                remove_segment(self.folder, segment.base_offset)
            sync_folder(self.folder)
        except OSError as error:
            raise _os_error(self.folder, "shortened", error) from None

    def swap_in(self, cleaned: Segment, replaced: Sequence[Segment]) -> None:
        """Put a compacted segment, whose files are whole and end in `.cleaned`, in place of sealed ones.

        The segments replaced lie next to each other and the first has the new one's base offset.
        Killed at any point, the next open finds the old segments or the new one.
        """
        first = self._segments.index(replaced[0])
        after = [*self._segments[:first], cleaned, *self._segments[first + len(replaced) :]]
        noted = Manifest(self._start, tuple(segment.listed for segment in after))
        try:
            self._active.sync()
            draft = draft_manifest(self.folder, noted)
        except OSError as error:
            raise _os_error(self.folder, "compacted", error) from None
        try:
            commit_swap(self.folder, cleaned.base_offset)
            draft.replace(self.folder / MANIFEST)
            sync_folder(self.folder)
            for segment in replaced:
                remove_segment(self.folder, segment.base_offset)
            finish_swap(self.folder, cleaned.base_offset)
        except OSError as error:
            self._refusal = f"compaction stopped half-way ({error.strerror})"
            raise _os_error(self.folder, "compacted", error) from None
        cleaned.suffix = ""
        cleaned.end_offset = replaced[-1].end_offset
        self._segments, self._noted = after, noted

    def configure(self, *, segment_bytes: int, fsync: bool) -> None:
        self.segment_bytes, self._fsync = segment_bytes, fsync

    def close(self, *, gone: bool = False) -> None:
        noting = self._created and self._refusal is None and not gone
        self._refusal = self._refusal or "it is closed"
        if noting:
            # The next open makes indexes again from the log: a full disk must not fail a shutdown.
            with contextlib.suppress(OSError):
                self._active.write_indexes()
                self._note()
        self._close(self._active)

    def _close(self, segment: Segment) -> None:
        self._files.forget(segment)
        segment.close()


_REOPEN = "free the disk or repair it, then restart: opening the log brings back all that was acknowledged"


def _os_error(path: Path, action: str, error: OSError) -> StorageError:
    return StorageError(
        f"{path} cannot be {action}: {error.strerror}",
        hint="check free space and the permissions of the data folder",
    )
