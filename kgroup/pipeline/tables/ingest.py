"""The job that fills a store: segments to tables and items by split, items to events and states by group."""

from __future__ import annotations

import gc
import heapq
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from kgroup.domain import uuid_bytes, uuid_text
from kgroup.errors import KgroupError, StorageChanged
from kgroup.history.selection import Choice
from kgroup.history.sources.splits import Split
from kgroup.pipeline.read.inputs import Input, Segments
from kgroup.pipeline.read.posting import EDGE, REPORT, Posted, Shares, SplitNames, planned, to_tasks
from kgroup.pipeline.read.rows import SplitRows
from kgroup.pipeline.schemas import Row
from kgroup.pipeline.spark.workers import Move, Shuffle, Worker, this_worker
from kgroup.pipeline.tables.delivering import Delivered, deliver
from kgroup.pipeline.tables.folding import FoldShares, digest
from kgroup.pipeline.tables.late import Late, late_segments
from kgroup.pipeline.tables.left import StateFile
from kgroup.pipeline.tables.manifest import FOLDED, FORMATS
from kgroup.pipeline.tables.place import Place
from kgroup.pipeline.tables.refolding import StoredSplit, stored_splits
from kgroup.pipeline.tables.reports import NamesLearned, ShareFolded, SplitRead
from kgroup.pipeline.tables.store import BY_GROUP, DELIVERIES, STATE, Run, Store, number_in
from kgroup.pipeline.tables.upkeep import kept_small
from kgroup.pipeline.tables.writing import TableFile, TableWriter

if TYPE_CHECKING:
    from pyspark import SparkContext

_MIN_SPLIT_BYTES = 16 << 20
_MAX_SPLIT_BYTES = 512 << 20
ROWS = frozenset({"commits", "control", "markers", "batches", "bad_ranges", DELIVERIES})


@dataclass(frozen=True, slots=True)
class Waiting:
    """A partition that was read up to the log offset `last_offset` (-1: none), where `file` is cut short."""

    part: int
    file: str
    last_offset: int

    def __str__(self) -> str:
        read = f"read up to offset {self.last_offset}" if self.last_offset >= 0 else "not read"
        return f"partition {self.part} is {read}: {self.file} is cut short, and what follows it waits"


@dataclass(frozen=True, slots=True)
class RunReport:
    """What a run added: rows by table, and the number of the run; `run` is None if there was nothing new.

    `workers` have run its tasks, on Spark. `waiting` are partitions that were read up to a truncated file
    with others after it, `late` segments that came too late. `unread` is what of `__share_group_state` could
    not be read, and why.
    """

    run: int | None
    rows: Mapping[str, int]
    splits: int
    bytes_read: int
    bytes_written: int
    workers: tuple[Worker, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    late: tuple[Late, ...] = ()
    unread: tuple[tuple[str, KgroupError], ...] = ()


@dataclass(frozen=True, slots=True)
class ReadSplits:
    """Reads splits by their numbers, writes their tables, and yields their items. Runs on an executor.

    Each split sends one row to the driver.
    """

    place: Place
    run: int
    token: str
    tables: frozenset[str]
    shares: Shares
    choice: Choice
    known: frozenset[str]
    splits: Sequence[Split]

    def __call__(self, numbers: Iterator[int]) -> Iterator[Posted]:
        gc.disable()  # very many objects and no cycles
        try:
            for number in numbers:
                yield from self._read(number)
        finally:
            gc.enable()

    def _read(self, number: int) -> Iterator[Posted]:
        split = self.splits[number]
        # What lies in the tables is folded again, and not written again.
        tables = frozenset[str]() if isinstance(split, StoredSplit) else self.tables
        rows = SplitRows(split, tables, self.shares, **self.choice)
        with TableWriter(self.place, self.run, self.token, split.part, f"{split.number:05d}") as writer:
            for item in rows.everything():
                if isinstance(item, list):
                    yield from item
                else:
                    writer.write(*item)
        summary, edge = rows.summary, rows.edge
        if summary is not None and edge is not None:
            new = {uid: name for uid, name in summary.names.items() if uid not in self.known}
            summary.names = {}
            if new:
                yield from to_tasks(range(self.shares.tasks), EDGE, split.part, split.number, SplitNames(new))
            mine = sorted(set(self.shares.of[split.part]))
            yield from to_tasks(mine, EDGE, split.part, split.number, edge)
        report = SplitRead(
            part=split.part,
            number=split.number,
            files=writer.files,
            bytes=rows.reader.bytes_read,
            summary=summary,
            read=rows.reader.files_read,
            place=rows.reader.place,
            cut=rows.reader.cut,
            stopped=rows.reader.stopped,
            waits=split.waits,
            has_share_groups=rows.has_share_groups,
            worker=this_worker(),
        )
        yield from to_tasks((number % self.shares.tasks,), REPORT, split.part, split.number, report)


def ingest(
    context: SparkContext,
    sources: Sequence[Path] | Input,
    store: Store,
    *,
    split_bytes: int | None = None,
    shares: int | None = None,
    tables: frozenset[str] = ROWS,
    **choice: Unpack[Choice],
) -> RunReport:
    """Read what is new in `sources` into `store` as one run: all of it, or on failure nothing.

    `sources` are segments and folders, or any other input. Offsets that an earlier run has read are skipped,
    so running again adds nothing. `choice` selects the groups. The size of the input determines
    `split_bytes`, and the number of `shares` in which a partition's groups are folded, unless given. With all
    `tables`, a partition is read up to a truncated file with offsets missing after it; a later run continues
    once it is whole, or gone.
    """
    origin = (sources if isinstance(sources, Input) else Segments.of(sources)).looked_at()
    cores = context.defaultParallelism
    manifest = store.manifest
    whole = origin.plan(_MAX_SPLIT_BYTES, manifest.last_offsets(), places=manifest.places)
    # One split per core, within bounds; fewer splits mean less to fold.
    per_core = min(_MAX_SPLIT_BYTES, max(_MIN_SPLIT_BYTES, -(-sum(split.size for split in whole) // cores)))
    return fill(Shuffle(context), origin, store, split_bytes or per_core, shares, tables, **choice)


def fill(
    move: Move,
    origin: Input,
    store: Store,
    split_bytes: int,
    shares: int | None = None,
    tables: frozenset[str] = ROWS,
    **choice: Unpack[Choice],
) -> RunReport:
    """As `ingest`, wherever `move` runs the tasks."""
    origin = origin.looked_at()
    with store.run() as run:
        manifest = run.manifest
        after, cluster = manifest.last_offsets(), origin.cluster_id()
        manifest.check_cluster(cluster)
        late = tuple(late_segments(origin, store))
        given = {uuid_text(i): name for i, name in origin.topic_names().items()}
        job = _Job(move, store, run, tables, choice, given, shares)
        waits = tables == ROWS  # no later run continues one that keeps only some tables
        places, stored = dict(manifest.places), _fold_again(store, run) if manifest.outdated else []

        def planned_splits(whole: frozenset[int] = frozenset()) -> list[Split]:
            new = [replace(split, waits=waits) for split in origin.plan(split_bytes, after, whole, places)]
            return _after(stored, new)

        done = job(planned_splits())
        if again := _overlapping(done.reads):
            done = job(planned_splits(again))
        kept, waiting = _up_to_cuts(done.reads, after)
        if len(kept) < len(done.reads):
            # Some of the folded splits have to wait.
            chosen = {(read.part, read.number) for read in kept}
            done = job([split for split in done.splits if (split.part, split.number) in chosen])
        spans = [asdict(read.summary) for read in done.reads if read.summary is not None]
        size = sum(read.bytes for read in done.reads)
        read_files = sorted({path for read in done.reads for path in read.read})
        workers = tuple(sorted({read.worker for read in done.reads}))
        names = {uuid_bytes(uid): name for uid, name in (manifest.names | done.names | given).items()}
        delivered = Delivered(found=True)
        if DELIVERIES in tables:
            delivered = deliver(move, run, origin, names, choice)
        manifest.share_groups = manifest.share_groups or any(read.has_share_groups for read in done.reads)
        if manifest.share_groups and not delivered.found:
            delivered.miss_the_topic()
        unread = tuple(delivered.unread)
        read_before = manifest.read_before(run.number).issuperset(read_files)
        if not spans and not delivered.news and read_before and not run.widened:
            return RunReport(None, {}, len(done.splits), size, 0, workers, waiting, late, unread)
        for span in spans:
            del span["names"]
        manifest.learn(done.names)
        manifest.names |= given
        manifest.spans += spans
        manifest.places |= {read.part: read.place for read in done.reads if read.place is not None}
        about = {"sources": origin.labels, "files": read_files, "bytes_read": size, "cluster_id": cluster}
        about["resumed"] = _resumed(done.splits)
        files = [*done.files, *delivered.files]
        run.publish(files, about)
    kept_small(store, move)
    rows: dict[str, int] = {}
    for file in files:
        if file.table not in BY_GROUP:
            rows[file.table] = rows.get(file.table, 0) + file.rows
    written = sum(file.bytes for file in files)
    return RunReport(run.number, rows, len(done.splits), size, written, workers, waiting, late, unread)


@dataclass(frozen=True, slots=True)
class _Done:
    """The results of a job: of each split, in order, and of the folds."""

    splits: Sequence[Split]
    reads: list[SplitRead]
    files: list[TableFile]
    names: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Job:
    """One pass over splits: read, moved to tasks, folded. A repeated pass undoes the previous one."""

    move: Move
    store: Store
    run: Run
    tables: frozenset[str]
    choice: Choice
    given: Mapping[str, str]
    shares: int | None
    passes: list[int] = field(default_factory=list)

    def __call__(self, splits: Sequence[Split]) -> _Done:
        run, manifest = self.run, self.run.manifest
        if self.passes:
            run.clear()
        self.passes.append(len(splits))
        splits = sorted(splits, key=lambda split: -split.size)
        sizes: dict[int, int] = {}
        for split in splits:
            sizes[split.part] = sizes.get(split.part, 0) + split.size
        shares = planned(sizes, self.move.tasks(sum(sizes.values())), self.shares)
        known = {*manifest.names, *self.given}
        about = (run.place, run.number, run.token)
        read = ReadSplits(*about, self.tables, shares, self.choice, frozenset(known), splits)
        courses = {part: course for part, course in manifest.courses().items() if part in sizes}
        states: dict[int, list[StateFile]] = {part: [] for part in sizes}
        gone = set(run.gone.get(STATE, ()))
        for path, bounds in self.store.bounds(STATE, "key_hash").items():
            if path not in gone and (part := number_in(path, "part")) in states:
                states[part].append(StateFile(path, *bounds))
        fold = FoldShares(*about, shares, manifest.names, self.given, courses, states)
        results = self.move(read, fold, _pieces(splits), shares.tasks) if splits else []
        reads = [result for result in results if isinstance(result, SplitRead)]
        reads.sort(key=lambda read: (read.part, read.number))
        folded = [result for result in results if isinstance(result, ShareFolded)]
        _check_unchanged(reads, folded)
        files = [file for read in reads for file in read.files]
        files += [file for share in folded for file in share.files]
        learned = (result.names for result in results if isinstance(result, NamesLearned))
        return _Done(splits, reads, files, dict(next(learned, {})))


def _fold_again(store: Store, run: Run) -> list[Split]:
    """Return splits with all that was read, for a run that replaces what an older kgroup has folded."""
    stored, manifest = stored_splits(store), run.manifest
    for table in FOLDED:
        run.gone[table] = store.names(table)
        manifest.formats[table] = FORMATS[table]
    manifest.spans = []
    return stored


def _after(stored: Sequence[Split], new: Sequence[Split]) -> list[Split]:
    """Return the new splits after the stored ones of their partitions."""
    counts = Counter(split.part for split in stored)
    return [*stored, *(replace(split, number=split.number + counts[split.part]) for split in new)]


def _resumed(splits: Sequence[Split]) -> list[Row]:
    """Return the files that were not read from their first byte, and the byte where reading began."""
    starts: dict[str, int] = {}
    for piece in (piece for split in splits for piece in split.pieces):
        starts[piece.path] = min(piece.start, starts.get(piece.path, piece.start))
    return [{"file": path, "start": start} for path, start in sorted(starts.items()) if start]


def _pieces(splits: Sequence[Split]) -> list[list[int]]:
    """Return the numbers of the sorted splits, largest first, as pieces of about equal size.

    None is much larger than the largest split: where a partition is hot, small ones share a task.
    """
    count = -(-sum(split.size for split in splits) // max(1, splits[0].size)) or 1
    loads, pieces = [(0, piece) for piece in range(count)], [list[int]() for _ in range(count)]
    for number, split in enumerate(splits):
        load, piece = loads[0]
        heapq.heapreplace(loads, (load + split.size, piece))
        pieces[piece].append(number)
    return [piece for piece in pieces if piece]


def _check_unchanged(reads: Sequence[SplitRead], folded: Sequence[ShareFolded]) -> None:
    """Raise StorageError if a split was read twice, after an executor was lost, and had changed."""
    digests: dict[int, int] = {}
    for read in reads:
        if read.summary is not None:
            digests[read.part] = digest(digests.get(read.part, 0), read.number, read.summary.course)
    for share in folded:
        if digests.get(share.part) != share.digest:
            text = f"partition {share.part} changed while it was read"
            raise StorageChanged(text, "run again: nothing was written")


def _up_to_cuts(
    reads: Sequence[SplitRead], after: Mapping[int, int]
) -> tuple[list[SplitRead], tuple[Waiting, ...]]:
    """Return the splits before truncated files with offsets missing after them, and where those are.

    `reads` are in order; a truncated file may be the last of one, and the missing offsets after that.
    """
    kept: list[SplitRead] = []
    reached, cut = dict(after), dict[int, str]()
    waiting: dict[int, Waiting] = {}
    for read in reads:
        part, span = read.part, read.summary
        at = reached.get(part, -1)
        gap = span is not None and span.first_offset > at + 1
        if read.waits and part not in waiting and gap and cut.get(part):
            waiting[part] = Waiting(part, cut[part], at)
        if part in waiting:
            continue
        kept.append(read)
        if span is not None:
            reached[part] = span.last_offset
            cut[part] = read.cut
        else:
            cut[part] = read.cut or cut.get(part, "")
        if read.stopped:
            waiting[part] = Waiting(part, read.cut, reached.get(part, -1))
    return kept, tuple(waiting.values())


def _overlapping(reads: Sequence[SplitRead]) -> frozenset[int]:
    """Return partitions with two splits that hold the same offsets (copies); `reads` are in order."""
    last: dict[int, int] = {}
    partitions = set()
    for span in (read.summary for read in reads if read.summary is not None):
        if span.first_offset <= last.get(span.part, -1):
            partitions.add(span.part)
        last[span.part] = max(last.get(span.part, -1), span.last_offset)
    return frozenset(partitions)
