"""Record the live topic batch by batch, so that its history outlives compaction.

    DIR/topics.json                                    topic ids
    DIR/__consumer_offsets-7/00000000000000012345.log  segments as Kafka writes them, one a day (UTC)
    DIR/__share_group_state-3/…                        alike, where there are share groups

Batches are kept as the broker sent them, compressed here if they were not. Resumable: what is on disk says
where to continue, and a torn tail is cut off first.

At a URL there is a segment per upload: objects do not grow, so batches wait for one. What waits when the
process is killed is not lost: the next capture begins after the last object.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias

from kgroup.errors import DecodeError, KgroupError, StorageError
from kgroup.history.decode.scan import CONTROL, PACKED, BatchHeader, Scanner
from kgroup.history.sources.chunks import RANGE_BYTES
from kgroup.history.sources.folders import Folder, LocalFolder, RemoteFolder
from kgroup.history.sources.layout import AnyFolder, is_segment
from kgroup.history.sources.live import LiveTopic
from kgroup.history.sources.logs import write_topics_file
from kgroup.protocol.batches import Batch, encode_batch
from kgroup.protocol.compression import Compression
from kgroup.storage.files import RemoteFile
from kgroup.storage.location import Location
from kgroup.storage.opening import open_store

DAY_MS = 86_400_000


class Gone(NamedTuple):
    """Offsets that the broker no longer had when they were requested: so many of these."""

    first: int
    last: int
    missing: int

    @property
    def text(self) -> str:
        """The offsets in words."""
        some = "" if self.missing == self.last - self.first + 1 else f"{self.missing} of the "
        return f"{some}offsets {self.first} to {self.last}"


Noticed: TypeAlias = Callable[[str, Gone], None]
"""Takes what is gone of the log with this name."""


@dataclass(slots=True)
class PartitionCapture:
    """The recording of one partition: `next_offset` is the next to request, -1 before anything was kept."""

    folder: AnyFolder
    next_offset: int = -1
    day: int = -1
    path: AnyFolder | None = None
    taken: int = 0
    """Batches received; `batches` of them are kept."""
    batches: int = 0
    bytes_in: int = 0
    bytes_kept: int = 0
    noticed: Noticed = lambda name, gone: None
    """Called before what lies behind a gap is kept: who is killed in between finds the gap again."""
    whole_from: int = 0
    """The end of the log when its recording began: what compaction took before that is no gap of it."""
    failure: KgroupError | None = None
    """Why the last poll did not reach the end of the partition; None if it did."""
    unchecked_epoch: int | None = None
    """Of a recording that continues: the leader epoch of its last batch, until the broker's is compared."""

    @classmethod
    def resume(cls, folder: Path) -> PartitionCapture:
        """Continue a recording, or begin one; StorageError if the folder cannot be used."""
        try:
            return cls._resumed(folder)
        except OSError as error:
            raise StorageError(f"cannot record into {error.filename or folder}: {error.strerror}") from None

    @classmethod
    def _resumed(cls, folder: Path) -> PartitionCapture:
        folder.mkdir(parents=True, exist_ok=True)
        capture = cls(folder)
        segments = sorted(folder.glob("*.log"))
        # A crash can leave the newest segment without a whole batch: the one before says where to continue.
        while segments and capture.next_offset < 0:
            newest = segments.pop()
            with newest.open("rb+") as file:
                last, whole = last_batch(file, str(newest))
                file.truncate(whole)
            if last is None:
                newest.unlink()
                continue
            capture.path = newest
            capture.continue_after(last)
        return capture

    def continue_after(self, last: LastBatch) -> None:
        """Begin after the last batch that is kept."""
        self.next_offset, self.day = last.header.last_offset + 1, last.header.max_timestamp_ms // DAY_MS
        self.unchecked_epoch = last.leader_epoch

    def append(self, data: bytes, sync: bool = True) -> int:
        """Keep the new batches of a Fetch answer, durable on return; return how many there were.

        StorageError if that fails.
        """
        kept = 0
        for part, holes in self._segments(data):
            if holes:
                gone = Gone(holes[0].start, holes[-1].stop - 1, sum(map(len, holes)))
                self.noticed(self.folder.name, gone)
            self._keep(part, sync)
            kept += len(part)
        self.taken += kept
        return kept

    def _keep(self, batches: list[bytes], sync: bool) -> None:
        """Append batches to the segment `path`."""
        assert isinstance(self.path, Path)
        try:
            with self.path.open("ab") as file:
                for batch in batches:
                    self.bytes_kept += file.write(batch)
                file.flush()
                if sync:
                    os.fsync(file.fileno())
        except OSError as error:
            raise StorageError(f"cannot record into {self.path}: {error.strerror}") from None
        self.batches += len(batches)

    @property
    def waiting(self) -> int:
        """Bytes that are received and not kept yet; none, if each batch is kept at once."""
        return 0

    def flush(self) -> None:
        """Keep what is waiting; StorageError if that fails."""

    def _segments(self, data: bytes) -> Iterator[tuple[list[bytes], list[range]]]:
        """Yield the new batches by the segment they belong to, and the gaps before them; `path` is that
        segment's.
        """
        part: list[bytes] = []
        holes: list[range] = []
        for header in Scanner("fetched").headers(data, final=True):
            # A Fetch answers with whole batches, so the first may end before the requested offset.
            if header.last_offset < self.next_offset:
                continue
            hole = range(max(self.next_offset, self.whole_from), header.base_offset)
            if hole and self.next_offset >= 0:
                holes.append(hole)
            day = header.max_timestamp_ms // DAY_MS
            # Times need not grow with offsets, but segments must: no batch goes back into the day before.
            if self.path is None or day > self.day:
                if part:
                    yield part, holes
                    part, holes = [], []
                self.path = self.folder / f"{header.base_offset:020d}.log"
                self.day = day
            self.next_offset = header.last_offset + 1
            self.bytes_in += header.end - header.position
            raw = data[header.position : header.end]
            # Re-encoded, a compacted batch would lose its holes, and markers are never compressed (KIP-98).
            whole = header.last_offset - header.base_offset + 1 == header.records
            if whole and len(raw) >= 512 and not header.attributes & (PACKED | CONTROL):
                batch = Batch(raw)
                made = encode_batch(
                    batch.records,
                    base_offset=header.base_offset,
                    leader_epoch=batch.partition_leader_epoch,
                    compression=Compression.ZSTD,
                    producer_id=header.producer_id,
                    producer_epoch=header.producer_epoch,
                    base_sequence=batch.base_sequence,
                    transactional=batch.transactional,
                )
                # Under log append time only the header has the broker's timestamp, which would be lost.
                if len(made) < len(raw) and not batch.log_append_time:
                    raw = made
            part.append(raw)
        if part:
            yield part, holes


class OtherLog(DecodeError):
    """A partition of the cluster that does not continue its recording."""


class Readable(Protocol):
    """A file that is read from its start."""

    def read(self, size: int, /) -> bytes: ...


class LastBatch(NamedTuple):
    """The last batch of a recording."""

    header: BatchHeader
    leader_epoch: int


def last_batch(file: Readable, name: str) -> tuple[LastBatch | None, int]:
    """Return the last whole batch of a segment, and where it ends; StorageError for a damaged one.

    Continuing after damage would hide a gap. A torn tail is not damage: it was never acknowledged.
    """
    scanner, whole, last, rest = Scanner(name), 0, None, b""
    while read := file.read(RANGE_BYTES):
        chunk = rest + read
        for header in scanner.headers(chunk, final=False):
            last = LastBatch(header, _leader_epoch(chunk, header))
        whole += scanner.consumed
        rest = chunk[scanner.consumed :]
    if scanner.bad:
        raise StorageError(f"{scanner.bad[0]}", hint="move this file away and start the capture again")
    return last, whole


def _leader_epoch(chunk: bytes, header: BatchHeader) -> int:
    at = header.position + 12
    return int.from_bytes(chunk[at : at + 4], "big", signed=True)


@dataclass(slots=True, kw_only=True)
class UploadedPartition(PartitionCapture):
    """A partition at a URL: an appended batch waits until `flush`, or until an object is full."""

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


def resume(folder: Folder, name: str) -> PartitionCapture:
    """Continue the recording of a partition by its name (`__consumer_offsets-7`), or begin one.

    StorageError if the folder cannot be used.
    """
    if isinstance(folder, LocalFolder):
        return PartitionCapture.resume(folder.path / name)
    assert isinstance(folder, RemoteFolder)
    at, options = folder.place / name, folder.options
    capture = UploadedPartition(at, into=folder)
    objects = [RemoteFile.of(entry, options) for entry in open_store(at, options).walk(at)]
    segments = sorted(file for file in objects if is_segment(file))
    while segments and capture.next_offset < 0:
        with (last := segments.pop()).open() as file:
            batch, _ = last_batch(file, str(last))
        if batch is not None:
            capture.continue_after(batch)
    return capture


OBJECT_BYTES = 16 << 20
"""Bytes from which an object is uploaded."""
_WAITING_BYTES = 64 << 20
CHEAP_S, NAMES_SHARE = 0.02, 50
"""The processor time from which looking up names is not cheap, and how many times as long it pauses then."""


class Capture:
    """Records all partitions of a live topic into a folder; `poll` keeps what has arrived.

    At a URL batches wait until there are enough for an object: `flush` keeps them.
    """

    def __init__(self, topic: LiveTopic, out: Folder, noticed: Noticed) -> None:
        self.topic, self.out, self._noticed = topic, out, noticed
        self.parts: dict[int, PartitionCapture] = {}
        self._begin_new()
        self._named: set[bytes] = set()
        self._unnamed, self._again_s = False, 0.0

    @property
    def failures(self) -> dict[int, KgroupError]:
        """The partitions that the last poll did not read to their end, and why."""
        return {p: part.failure for p, part in self.parts.items() if part.failure is not None}

    def poll(self) -> int:
        """Record everything up to the current end; return the number of batches.

        A partition that cannot be read does not affect others: see `failures`. StorageError if what was read
        cannot be kept.
        """
        before = sum(part.taken for part in self.parts.values())
        # Not when they are learned: who records may have to set the log of another topic aside first.
        self._keep_names()
        self.topic.try_again()
        self._begin_new()
        for partition, part in self.parts.items():
            part.failure = None
            try:
                self._read(partition, part)
            except StorageError:  # this disk's failure, and so every partition's
                raise
            except KgroupError as error:
                part.failure = error
        taken = sum(part.taken for part in self.parts.values()) - before
        self._unnamed = self._unnamed or taken > 0
        if self._unnamed and time.monotonic() >= self._again_s:
            self._learn_names()
        return taken

    def begin(self, partition: int) -> None:
        """Continue the recording of a partition, or begin one; StorageError if that is not possible."""
        part = self.parts[partition] = resume(self.out, f"{self.topic.name}-{partition}")
        part.noticed = self._noticed

    def _begin_new(self) -> None:
        for partition in sorted(set(self.topic.partitions) - self.parts.keys()):
            self.begin(partition)

    def _learn_names(self) -> None:
        """Look up the topics created since; without names ids are shown, so no failure loses anything."""
        began_s = time.thread_time()
        with suppress(KgroupError):
            self.topic.refresh()
        spent_s = time.thread_time() - began_s
        # Of a cluster with very many topics they are not requested at each poll.
        self._again_s = time.monotonic() + (NAMES_SHARE * spent_s if spent_s > CHEAP_S else 0)
        self._unnamed = False

    def flush(self) -> None:
        """Keep all that is waiting; StorageError if that fails."""
        for part in self.parts.values():
            part.flush()
        if self._unnamed:
            self._learn_names()
        self._keep_names()

    def _read(self, partition: int, part: PartitionCapture) -> None:
        first, end = self.topic.bounds(partition)
        self._check_same_log(partition, part, first, end)
        at = max(part.next_offset, first)
        if part.next_offset < 0:
            part.whole_from = end
        while at < end:
            data, _ = self.topic.fetch(partition, at)
            part.append(data)
            if sum(capture.waiting for capture in self.parts.values()) > _WAITING_BYTES:
                self.flush()
            if part.next_offset <= at and data:
                where = f"{self.topic.name}-{partition}"
                raise DecodeError(
                    f"{where} cannot be recorded from offset {at} on: the broker sends no valid batch",
                    hint="kgroup replay-log reads around damage, and names it",
                )
            # Nothing arrived although the end is further on: a leader that lags, and returns more later.
            if part.next_offset <= at:
                return
            at = part.next_offset

    def _check_same_log(self, partition: int, part: PartitionCapture, first: int, end: int) -> None:
        """Raise DecodeError if the partition is not the one that was recorded: what follows may be lost."""
        where, kept = f"{self.topic.name}-{partition}", part.next_offset - 1
        why = None
        if end <= kept:
            why = f"it ends before offset {end}, and what is recorded reaches to {kept}"
        elif part.unchecked_epoch is not None and kept >= first:
            data, _ = self.topic.fetch(partition, kept)
            header = next(Scanner("fetched").headers(data, final=True), None)
            # Compaction may have removed that batch: then there is nothing to compare.
            if header is not None and header.last_offset == kept:
                epoch, ours = _leader_epoch(data, header), part.unchecked_epoch
                if epoch != ours:
                    why = f"offset {kept} is of leader epoch {epoch}, the recorded one of {ours}"
        if why is not None:
            text = f"{where} does not continue what was recorded: {why}"
            hint = "a leader lost records, or this is another cluster: record into a new folder"
            raise OtherLog(text, hint)
        part.unchecked_epoch = None

    def _keep_names(self) -> None:
        if not self.topic.topic_names.keys() <= self._named:
            write_topics_file(self.out, self.topic.topic_names)
            self._named |= self.topic.topic_names.keys()
