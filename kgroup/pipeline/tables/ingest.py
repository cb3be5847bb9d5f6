"""The job that fills a store: segments → tables, in parallel by split, then groups folded into events."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar, Unpack

from kgroup.domain import uuid_bytes, uuid_text
from kgroup.history.choice import Choice
from kgroup.history.sources.splits import Split
from kgroup.pipeline.read.inputs import Input, Segments
from kgroup.pipeline.read.rows import SplitRows
from kgroup.pipeline.schemas import ITEMS, Row
from kgroup.pipeline.spark.workers import Worker, Workers
from kgroup.pipeline.tables.folding import FoldShare, Share
from kgroup.pipeline.tables.place import Place
from kgroup.pipeline.tables.store import REPLACED, STATE, Run, Store, bucket_in, number_in
from kgroup.pipeline.tables.upkeep import compact, due
from kgroup.pipeline.tables.writing import TableFile, TableWriter

if TYPE_CHECKING:
    from pyspark import SparkContext

_MIN_SPLIT_BYTES = 16 << 20
_MAX_SPLIT_BYTES = 512 << 20
ROWS = frozenset({"commits", "control", "markers", "batches", "bad_ranges"})


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

    `workers` have run its tasks, on Spark. `waiting` are partitions that were read up to a file that is cut
    short, which others follow.
    """

    run: int | None
    rows: Mapping[str, int]
    splits: int
    bytes_read: int
    bytes_written: int
    workers: tuple[Worker, ...] = ()
    waiting: tuple[Waiting, ...] = ()


@dataclass(frozen=True, slots=True)
class WriteSplit:
    """Reads one split and writes its rows; returns plain values. Runs on an executor."""

    place: Place
    run: int
    token: str
    tables: frozenset[str]
    buckets: int
    choice: Choice

    def __call__(self, split: Split) -> Row:
        rows = SplitRows(split, self.tables | {ITEMS}, self.buckets, **self.choice)
        with TableWriter(self.place, self.run, self.token, split.part, f"{split.number:05d}") as writer:
            for name, table in rows.tables():
                writer.write(name, table)
        summary = rows.summary
        # Its fields by name; `asdict` would copy each of very many topic names.
        return {
            "part": split.part,
            "number": split.number,
            "files": [asdict(file) for file in writer.files],
            "bytes": rows.reader.bytes_read,
            "summary": None
            if summary is None
            else {field.name: getattr(summary, field.name) for field in fields(summary)},
            "read": rows.reader.files_read,
            "cut": rows.reader.cut,
            "stopped": rows.reader.stopped,
            "waits": split.waits,
        }


W = TypeVar("W")
T = TypeVar("T")


class Each(Protocol):
    """Calls a task with each of these, in any order, anywhere; the results are in the order of the work."""

    def __call__(self, task: Callable[[W], T], work: Sequence[W], /) -> list[T]: ...


def ingest(
    context: SparkContext,
    sources: Sequence[Path] | Input,
    store: Store,
    *,
    split_bytes: int | None = None,
    buckets: int | None = None,
    tables: frozenset[str] = ROWS,
    **choice: Unpack[Choice],
) -> RunReport:
    """Read what is new in `sources` into `store` as one run: all of it, or on failure nothing.

    `sources` are segments and folders, or any other input. Offsets that an earlier run has read are left out,
    so running again adds nothing. Of which groups, `choice` says. `buckets`
    (of the first run) is how many tasks may fold a partition. The size of the input decides on
    `split_bytes` if nobody else does. With all `tables`, a partition is read up to a file that is cut short
    with offsets missing behind it; a later run reads on once it is whole, or gone.
    """
    origin = (sources if isinstance(sources, Input) else Segments.of(sources)).looked_at()
    cores = context.defaultParallelism
    if store.empty:
        buckets = buckets or _buckets(origin.parts(), cores)
    split_bytes = split_bytes or _split_bytes(
        origin.plan(_MAX_SPLIT_BYTES, store.manifest.last_offsets()), cores
    )

    workers = Workers(context)
    report = fill(workers, origin, store, split_bytes, buckets or 1, tables, **choice)
    return replace(report, workers=tuple(sorted(workers.ran)))


def fill(
    each: Each,
    origin: Input,
    store: Store,
    split_bytes: int,
    buckets: int,
    tables: frozenset[str] = ROWS,
    **choice: Unpack[Choice],
) -> RunReport:
    """As `ingest`, wherever `each` lets the tasks run. `buckets` matter in the first run alone."""
    origin = origin.looked_at()
    with store.run() as run:
        manifest = run.manifest
        if store.empty:
            manifest.buckets = buckets
        after, cluster = manifest.last_offsets(), origin.cluster_id()
        manifest.check_cluster(cluster)
        waits = tables == ROWS  # a run that keeps only some tables is gone on with by none
        splits = [replace(split, waits=waits) for split in origin.plan(split_bytes, after)]
        writer = WriteSplit(run.place, run.number, run.token, tables, manifest.buckets, choice)
        results = _read(each, splits, writer)
        if again := _overlapping(results):
            run.clear()
            splits = [replace(s, waits=waits) for s in origin.plan(split_bytes, after, again)]
            results = _read(each, splits, writer)
        results, waiting = _up_to_cuts(results, after, run)
        spans = [result["summary"] for result in results if result["summary"] is not None]
        files = [TableFile(**file) for result in results for file in result["files"]]
        kept = [file for file in files if file.table != ITEMS]
        size = sum(result["bytes"] for result in results)
        read = sorted({path for result in results for path in result["read"]})
        if not spans and manifest.read_before(run.number).issuperset(read):
            return RunReport(None, {}, len(splits), size, 0, waiting=waiting)
        for span in spans:
            manifest.learn(span.pop("names"))
        manifest.names |= {uuid_text(i): name for i, name in origin.topic_names().items()}
        manifest.spans += spans
        kept += _fold(each, store, run, [file for file in files if file.table == ITEMS])
        about = {"sources": origin.labels, "files": read, "bytes_read": size, "cluster_id": cluster}
        run.publish(kept, about)
    if due(store):
        compact(store)
    rows: dict[str, int] = {}
    for file in kept:
        if file.table not in REPLACED:
            rows[file.table] = rows.get(file.table, 0) + file.rows
    written = sum(file.bytes for file in kept)
    return RunReport(run.number, rows, len(splits), size, written, waiting=waiting)


def _split_bytes(whole: Sequence[Split], cores: int) -> int:
    """A split a core, within bounds: each split tells of every group in it, so fewer mean less to fold."""
    return min(_MAX_SPLIT_BYTES, max(_MIN_SPLIT_BYTES, -(-sum(split.size for split in whole) // cores)))


def _buckets(parts: int, parallelism: int) -> int:
    """Enough shares that no core idles, few enough that the rows all shares need stay few."""
    return max(1, min(16, -(-2 * parallelism // max(1, parts))))


def _read(each: Each, splits: Sequence[Split], writer: WriteSplit) -> list[Row]:
    """What the splits hold, in their order."""
    # The largest first, so that no task is left to run alone at the end.
    results = each(writer, sorted(splits, key=lambda split: -split.size))
    return sorted(results, key=lambda result: (result["part"], result["number"]))


def _up_to_cuts(
    results: Sequence[Row], after: Mapping[int, int], run: Run
) -> tuple[list[Row], tuple[Waiting, ...]]:
    """The results up to where files are cut short with offsets missing behind them, and where that is.

    `results` are in order; a cut file may be the last of one, and the missing offsets behind that. What the
    others have written is removed.
    """
    kept: list[Row] = []
    reached, cut = dict(after), dict[int, str]()
    waiting: dict[int, Waiting] = {}
    for result in results:
        part, span = result["part"], result["summary"]
        at = reached.get(part, -1)
        gap = span is not None and span["first_offset"] > at + 1
        if result["waits"] and part not in waiting and gap and cut.get(part):
            waiting[part] = Waiting(part, cut[part], at)
        if part in waiting:
            run.place.delete(file["path"] for file in result["files"])
            continue
        kept.append(result)
        if span is not None:
            reached[part] = span["last_offset"]
            cut[part] = result["cut"]
        else:
            cut[part] = result["cut"] or cut.get(part, "")
        if result["stopped"]:
            waiting[part] = Waiting(part, result["cut"], reached.get(part, -1))
    return kept, tuple(waiting.values())


def _overlapping(results: Sequence[Row]) -> frozenset[int]:
    """Partitions of which two splits hold the same offsets: copies that overlap. `results` are in order."""
    last: dict[int, int] = {}
    found = set()
    spans = [result["summary"] for result in results if result["summary"] is not None]
    for span in spans:
        if span["first_offset"] <= last.get(span["part"], -1):
            found.add(span["part"])
        last[span["part"]] = max(last.get(span["part"], -1), span["last_offset"])
    return frozenset(found)


def _fold(each: Each, store: Store, run: Run, items: Sequence[TableFile]) -> list[TableFile]:
    """Fold the items of this run (files in log order), each share of a partition, on from the run before."""
    shares: dict[tuple[int, int], list[TableFile]] = {}
    for file in items:
        shares.setdefault((file.part, number_in(file.path, "bucket")), []).append(file)
    left = {(number_in(path, "part"), bucket_in(path)): path for path in store.names(STATE)}
    largest_first = sorted(shares.items(), key=lambda share: -sum(file.bytes for file in share[1]))
    work = [
        Share(*number, tuple(file.path for file in files), left.get(number))
        for number, files in largest_first
    ]
    names = {uuid_bytes(text): name for text, name in run.manifest.names.items()}
    told = each(FoldShare(run.place, run.number, run.token, names), work)
    for table in REPLACED:
        run.replace(table, {part for part, _ in shares}, store.names(table))
    return [TableFile(**file) for one in told for file in one]
