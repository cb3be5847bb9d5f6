"""Items in order → events, by `history.fold`, each share of a partition by itself.

A share (a bucket) holds some of a partition's groups; gaps and transaction markers are in every one. What a
run leaves of a fold is kept, and the next run goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kgroup.domain import TopicPartition
from kgroup.errors import KgroupError, StorageError
from kgroup.history.fold.events import Event, Kind, Unowned
from kgroup.history.fold.folding import Fold
from kgroup.history.fold.snapshot import resumed, snapshot
from kgroup.history.items import Item, gap_between
from kgroup.history.typed_json import Foreign
from kgroup.pipeline.read.commits import full
from kgroup.pipeline.read.rows import Edge, item_codec
from kgroup.pipeline.schemas import EVENTS, FOLDS, ITEM_ROWS, ITEMS, Row
from kgroup.pipeline.tables.place import Place
from kgroup.pipeline.tables.store import OPEN_EVENTS, STATE
from kgroup.pipeline.tables.writing import TableWriter

_FLUSH = 5_000
_ROWS_AT_ONCE = 1_000
"""An item may be a run of commits on every partition of its group."""
_GROUPS_AT_ONCE = 200
_STORED = {field.name: field.type for field in (*FOLDS, *ITEM_ROWS)}


@dataclass(slots=True)
class BucketFold:
    """A fold, how far the log was read, and how many events were numbered."""

    fold: Fold
    last_offset: int
    seq: int = 0

    def apply(self, item: Item | Edge) -> list[Event]:
        """The events that the next item completes; between two splits a gap may show."""
        if not isinstance(item, Edge):
            return self.fold.apply(item)
        if item.last_offset >= 0:
            self.last_offset = item.last_offset
            return []
        read = self.last_offset + 1 if self.last_offset >= 0 else -1
        gap = gap_between(read, item.first_offset, item.first_ms)
        return self.fold.apply(gap) if gap is not None else []


@dataclass(frozen=True, slots=True)
class Share:
    """A share, and the files of its items in the order of the log; paths are relative to the store.

    `fold` is where the run before left off, None in the first.
    """

    part: int
    bucket: int
    items: tuple[str, ...]
    fold: str | None = None


@dataclass(frozen=True, slots=True)
class FoldShare:
    """Folds one share and writes its events; returns the files as plain values. Runs on an executor."""

    place: Place
    run: int
    token: str
    names: Mapping[bytes, str]

    def __call__(self, share: Share) -> list[Row]:
        with TableWriter(self.place, self.run, self.token, share.part, f"{share.bucket:03d}") as writer:
            if share.fold is None:
                self._fold(share, None, writer)
            else:
                left = self._left(share, share.fold)
                with _sound(self.place.uri(share.fold), STATE, "state"):
                    self._fold(share, left, writer)
        return [asdict(file) for file in writer.files]

    def _fold(self, share: Share, state: BucketFold | None, writer: TableWriter) -> None:
        """Write the events of a share's items, and where the fold stopped."""
        events: list[tuple[int, Event]] = []
        for item in self._items(share):
            if state is None:
                start = max(item.first_offset, 0) if isinstance(item, Edge) else 0
                state = BucketFold(Fold(share.part, self.names, start), start - 1)
            for event in state.apply(item):
                events.append((state.seq, event))
                state.seq += 1
            if len(events) >= _FLUSH:
                writer.write("events", event_rows(events))
                events = []
        assert state is not None
        writer.write("events", event_rows(events))
        kept = snapshot(state.fold, state.last_offset, state.seq)
        while rows := list(islice(kept, _GROUPS_AT_ONCE)):
            names, states = zip(*rows, strict=True)
            where = (full(number, len(rows)) for number in (share.part, share.bucket))
            writer.write(STATE, pa.table([*where, names, states], schema=FOLDS))
        last = state.fold.finish() if share.bucket == 0 else state.fold.settle()
        writer.write(OPEN_EVENTS, event_rows(list(enumerate(last, state.seq))))

    def _left(self, share: Share, path: str) -> BucketFold:
        """The fold of the run before."""
        with _sound(self.place.uri(path), STATE, "state"):
            fold, last_offset, seq = resumed(self._values(path, "group_id", "state"))
            if fold.log_partition != share.part:
                raise Foreign(f"it is of partition {fold.log_partition}")
            fold.learn(self.names)
            return BucketFold(fold, last_offset, seq)

    def _items(self, share: Share) -> Iterator[Item | Edge]:
        decode = item_codec().decode
        for path in share.items:
            with _sound(self.place.uri(path), ITEMS, "payload"):
                found = (decode(payload) for (payload,) in self._values(path, "payload"))
                while (item := next(found, None)) is not None:
                    yield item

    def _values(self, path: str, *columns: str) -> Iterator[tuple[Any, ...]]:
        """Some columns of a file, row by row."""
        file = pq.ParquetFile(self.place.read(path))
        for name in columns:
            if file.schema_arrow.field(name).type != _STORED[name]:
                raise Foreign(f"column {name} is not {_STORED[name]}")
        for batch in file.iter_batches(_ROWS_AT_ONCE, columns=list(columns)):
            yield from zip(*(batch.column(name).to_pylist() for name in columns), strict=True)


@contextmanager
def _sound(uri: str, table: str, column: str) -> Iterator[None]:
    """StorageError for what was stored by another than a run, of whatever shape that shows."""
    try:
        yield
    except KgroupError:
        raise
    except Exception as error:
        why = str(error) if isinstance(error, Foreign) else f"{type(error).__name__}: {error}"
        text = f"{uri}: column {column} of table {table} is not what a run leaves there: {why}"
        raise StorageError(text, "read the segments into a new folder") from error


def event_rows(events: list[tuple[int, Event]]) -> pa.Table:
    """Numbered events as rows of the table `events`."""
    rows = [
        {
            "part": e.log_partition,
            "log_offset": e.offset,
            "ts": e.timestamp_ms,
            "seq": seq,
            "group_id": e.group,
            "event": e.kind.value,
            "protocol": e.protocol,
            "end_offset": e.end_offset,
            "end_ts": e.end_timestamp_ms,
            "epoch": e.epoch,
            "previous_epoch": e.previous_epoch,
            "member_epoch": e.member_epoch,
            "member_id": e.member_id,
            "instance_id": e.instance_id,
            "detail": e.detail,
            "cause": e.cause,
            "proven": e.proven,
            "suspicious": e.suspicious,
            "partitions": [{"topic": p.topic, "partition": p.partition} for p in e.partitions],
            "unowned": [{"topic": u.topic, "partition": u.partition, "ms": u.ms} for u in e.unowned],
            "count": e.count,
        }
        for seq, e in events
    ]
    return pa.Table.from_pylist(rows, schema=EVENTS)


def event_of(row: Row) -> Event:
    """The event of a row whose times are in ms; the inverse of `event_rows`."""
    return Event(
        kind=Kind(row["event"]),
        group=row["group_id"],
        protocol=row["protocol"],
        log_partition=row["part"],
        offset=row["log_offset"],
        end_offset=row["end_offset"],
        timestamp_ms=row["ts"],
        end_timestamp_ms=row["end_ts"],
        detail=row["detail"],
        epoch=row["epoch"],
        previous_epoch=row["previous_epoch"],
        member_epoch=row["member_epoch"],
        member_id=row["member_id"],
        instance_id=row["instance_id"],
        cause=row["cause"],
        proven=row["proven"],
        suspicious=row["suspicious"],
        partitions=tuple(TopicPartition(p["topic"], p["partition"]) for p in row["partitions"]),
        unowned=tuple(Unowned(u["topic"], u["partition"], u["ms"]) for u in row["unowned"]),
        count=row["count"],
    )
