"""What one task reads: pieces of segment files, cut anywhere, read at batch bounds.

A piece owns the batches that begin in it. Its reader starts at the first valid batch at or after its start
and continues to the first valid batch at or after its end: so each batch has one owner, and each damaged
range is found by one reader, however a file is cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kgroup.errors import StorageError
from kgroup.history.decode.scan import BatchHeader, Scanner
from kgroup.history.log_items import BadRange
from kgroup.history.sources.chunks import RANGE_BYTES, next_read
from kgroup.history.sources.copies import Stretch
from kgroup.history.sources.layout import AnyFile, base_offset, size_of
from kgroup.history.sources.logs import SegmentLog

SPLIT_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Piece:
    """The batches of a file that begin at or after `start`, and before `end`.

    No byte outside the stretch `of` is read, if there is one.
    """

    file: AnyFile
    start: int
    end: int
    of: Stretch | None = None

    @property
    def begins(self) -> bool:
        """Whether a batch is known to begin at `start`."""
        return self.start == (0 if self.of is None else self.of.start)

    @property
    def limit(self) -> int | None:
        """Where reading ends; None: at the end of the file."""
        return None if self.of is None else self.of.end

    @property
    def path(self) -> str:
        """Where it is, for people."""
        return str(self.file)


@dataclass(frozen=True, slots=True)
class Split:
    """One task's share of a partition; `number` orders the splits of a partition.

    Batches up to the log offset `after` are skipped. If it `waits`, it is read up to a file that ends inside
    a batch with offsets missing after it: that file may still be written. `bad` is what is known already to
    be damaged, or left out.
    """

    part: int
    number: int
    pieces: tuple[Piece, ...]
    after: int = -1
    waits: bool = False
    bad: tuple[BadRange, ...] = ()

    @property
    def size(self) -> int:
        """The approximate number of bytes."""
        return sum(piece.end - piece.start for piece in self.pieces)

    @property
    def source(self) -> str:
        """Where its partition is, for people."""
        return str(self.pieces[0].file.parent)

    def reader(self) -> SplitReader:
        return SplitReader(self)


def plan_splits(
    logs: Sequence[SegmentLog],
    split_bytes: int = SPLIT_BYTES,
    after: Mapping[int, int] | None = None,
    whole: frozenset[int] = frozenset(),
) -> list[Split]:
    """Return the splits of these logs, in order, of about `split_bytes` each.

    `after` is the last log offset read before, by partition: segments without later ones are skipped.
    Partitions in `whole`, and those whose segments come from several folders and may overlap, are one split.
    """
    splits: list[Split] = []
    for log in logs:
        before = (after or {}).get(log.partition, -1)
        if log.stretches:
            new = [stretch for stretch in log.stretches if stretch.end is None or stretch.last > before]
            pieces = [_whole(stretch.file, stretch) for stretch in new]
        else:
            pieces = [_whole(file) for file in _files_after(log.files, before)]
        # Merged stretches have each offset once.
        several = not log.stretches and len({piece.file.parent for piece in pieces}) > 1
        one = log.partition in whole or several
        packs = [pieces] if one else _packed(pieces, max(1, split_bytes))
        bad = tuple(log.bad)
        for number, pack in enumerate(filter(None, packs)):
            splits.append(Split(log.partition, number, tuple(pack), before, bad=bad))
            bad = ()
    return splits


def _files_after(files: Sequence[AnyFile], before: int) -> list[AnyFile]:
    """Return the segments that may hold offsets after `before`."""
    segments: list[AnyFile] = []
    for i, file in enumerate(files):
        # A segment's name is its first offset. Only within a folder does the next one's name show where this
        # one ends; tiered storage may hold a segment twice.
        base = base_offset(file)
        behind = (base_offset(f) for f in files[i + 1 :] if f.parent == file.parent)
        following = next((b for b in behind if b is not None and (base is None or b > base)), None)
        if following is None or following - 1 > before:
            segments.append(file)
    return segments


def _whole(path: AnyFile, of: Stretch | None = None) -> Piece:
    if of is not None and of.end is not None:
        return Piece(path, of.start, of.end, of)
    try:
        return Piece(path, 0 if of is None else of.start, size_of(path), of)
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}") from None


def _packed(pieces: Sequence[Piece], split_bytes: int) -> Iterator[list[Piece]]:
    """Yield small pieces together, large ones cut."""
    pack: list[Piece] = []
    room = split_bytes
    for piece in pieces:
        start, end = piece.start, piece.end
        # After a cut a reader has to search for a batch: one that fits into a split is left whole.
        while end - start > room and (
            start > piece.start or end - start > split_bytes and not _old_format(piece.file)
        ):
            pack.append(replace(piece, start=start, end=start + room))
            start += room
            yield pack
            pack, room = [], split_bytes
        if end - start > room:
            yield pack
            pack, room = [], split_bytes
        if start < end or piece.start == end:
            pack.append(replace(piece, start=start, end=end))
            room -= end - start
        if room <= 0:
            yield pack
            pack, room = [], split_bytes
    if pack:
        yield pack


def _old_format(path: AnyFile) -> bool:
    """Return whether a file begins with messages of an old format, which may contain what looks like one."""
    try:
        with path.open("rb") as file:
            return file.read(17)[16:] in (b"\0", b"\1")
    except OSError:
        return False


@dataclass(slots=True)
class SplitReader:
    """Reads a split; `chunks` yields the batches that were not read before, `bad` collects damage.

    `chunk_bytes` are read at once, or the best size for 0.
    """

    split: Split
    chunk_bytes: int = RANGE_BYTES
    bad: list[BadRange] = field(default_factory=list)
    source: str = ""
    next_offset: int = field(init=False)
    positions: dict[str, int] = field(default_factory=dict)
    """How far each file was read: the end of the last whole batch."""
    cut: str = ""
    """The file that ends inside a batch, if none of the batches after it was read."""
    place: tuple[str, int] | None = None
    """The name of the file, and the byte in it, where the last batch begins that was found."""
    stopped: bool = False
    """Whether batches after that file were skipped, because offsets are missing between."""

    def __post_init__(self) -> None:
        self.next_offset = self.split.after + 1
        self.bad += self.split.bad

    @property
    def bytes_read(self) -> int:
        return self.split.size

    @property
    def files_read(self) -> list[str]:
        """The files of the split, up to the one before which it stopped, and those with known damage."""
        paths = [piece.path for piece in self.split.pieces]
        read = paths[: paths.index(self.source)] if self.stopped else paths
        return [*read, *(bad.source for bad in self.split.bad)]

    def chunks(self) -> Iterator[tuple[bytes, list[BatchHeader]]]:
        """Yield chunks with their batches, none empty; StorageError if a file cannot be read."""
        for piece in self.split.pieces:
            self.source = piece.path
            try:
                yield from self._piece(piece)
            except OSError as error:
                raise StorageError(f"cannot read {piece.path}: {error.strerror}") from None
            if self.stopped:
                return

    def _piece(self, piece: Piece) -> Iterator[tuple[bytes, list[BatchHeader]]]:
        scanner = Scanner(piece.path, position=piece.start)
        with piece.file.open("rb") as file:
            file.seek(piece.start)
            rest, started, done, at_byte = b"", piece.begins, False, piece.start
            while not done:
                length = next_read(piece.file, rest, self.chunk_bytes)
                read = file.read(length if piece.limit is None else min(length, piece.limit - at_byte))
                at_byte += len(read)
                final = len(read) < length or at_byte == piece.limit
                chunk = rest + read
                if not started:
                    at = scanner.resync(chunk, 0)
                    if at < 0 and not final:
                        rest = chunk
                        if len(rest) > _MAX_BATCH and (cut := len(rest) - _MAX_BATCH):
                            scanner.position += cut
                            rest = rest[cut:]
                        continue
                    if at < 0:
                        return
                    started, chunk = True, chunk[at:]
                    scanner.position += at
                origin = scanner.position
                headers = list(scanner.headers(chunk, final))
                done = _end_at(piece.end, origin, headers, scanner)
                if headers:
                    self.positions[piece.path] = origin + headers[-1].end
                    self.place = piece.file.name, origin + headers[-1].position
                read_to = self.next_offset
                if fresh := self._fresh(headers):
                    if self.cut and self.split.waits and fresh[0].base_offset > read_to:
                        self.next_offset, self.stopped = read_to, True
                        return
                    self.cut = ""
                    yield chunk, fresh
                if final and not done and scanner.consumed < len(chunk):
                    self.cut = piece.path
                done = done or final
                rest = b"" if done else chunk[scanner.consumed :]
        bad = scanner.bad
        foreign = bad and not scanner.batches and bad[0].start == 0
        self.bad += [BadRange(piece.path, 0, bad[-1].end, "not a segment of Kafka's log")] if foreign else bad

    def _fresh(self, headers: list[BatchHeader]) -> list[BatchHeader]:
        """Return those that were not read before, in this split or by an earlier run."""
        fresh, following = [], self.next_offset
        for header in headers:
            if header.last_offset >= following:
                following = header.last_offset + 1
                fresh.append(header)
        self.next_offset = following
        return fresh


_MAX_BATCH = 65 << 20


def _end_at(end: int, origin: int, headers: list[BatchHeader], scanner: Scanner) -> bool:
    """Drop the batches that begin at `end` of the file or later; return whether there were any."""
    if not headers or origin + headers[-1].position < end:
        return False
    ours = sum(origin + header.position < end for header in headers)
    # Damage up to the next batch is ours; its own split finds what lies after that.
    last = origin + headers[ours].position
    scanner.bad = [bad for bad in scanner.bad if bad.start < last]
    del headers[ours:]
    return True
