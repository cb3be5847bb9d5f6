"""Items in order → events, by `history.fold`, each share of a partition by itself.

A share (a bucket) holds some of a partition's groups; gaps and transaction markers are in every one. What a
run leaves of a fold is kept, and the next run goes on from there.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import Enum, EnumType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kgroup.domain import TopicPartition
from kgroup.errors import StorageError
from kgroup.history.fold.events import Event, Kind, Unowned
from kgroup.history.fold.folding import Fold
from kgroup.history.items import Item, Places, gap_between, unpacked
from kgroup.pipeline.read.rows import Edge
from kgroup.pipeline.schemas import EVENTS, FOLDS, Row
from kgroup.pipeline.tables.place import Place
from kgroup.pipeline.tables.store import OPEN_EVENTS, STATE
from kgroup.pipeline.tables.writing import TableWriter

_FLUSH = 5_000
_ITEMS_AT_ONCE = 1_000
"""An item may be a run of commits on every partition of its group."""
_MOVED = {
    "kgroup.history.commits": "kgroup.history.fold.commits",
    "kgroup.history.fold": "kgroup.history.fold.folding",
    "kgroup.history.ownership": "kgroup.history.fold.ownership",
    "kgroup.history.state": "kgroup.history.fold.state",
    "kgroup.history.step": "kgroup.history.fold.step",
    "kgroup.pipeline.folding": "kgroup.pipeline.tables.folding",
}
"""Modules by the names under which folds of earlier versions were stored."""
_RENAMED = {("kgroup.history.fold.state", "Member"): "RecordedMember"}


class _Unpickler(pickle.Unpickler):
    """Makes values of kgroup's own classes only: a file in a store must not run code."""

    def find_class(self, module: str, name: str) -> object:
        if (module, name) == ("builtins", "getattr"):
            return _member
        module = _MOVED.get(module, module)
        name = _RENAMED.get((module, name), name)
        if module.partition(".")[0] == "kgroup" and "." not in name:
            found = super().find_class(module, name)
            if isinstance(found, type) and found.__module__.startswith("kgroup."):
                return found
        raise pickle.UnpicklingError(f"{module}.{name} does not belong into a store")


def _member(kind: object, name: str) -> Enum:
    """A member of an enumeration, which Python before 3.11.4 stores as an attribute of its class."""
    if isinstance(kind, EnumType) and name in kind.__members__:
        found: Enum = kind.__members__[name]
        return found
    raise pickle.UnpicklingError(f"{name} of {kind} does not belong into a store")


def unpickled(data: bytes) -> Any:
    """A value that a run has stored; StorageError if it is damaged or holds anything foreign."""
    try:
        return _Unpickler(io.BytesIO(data)).load()
    except (pickle.UnpicklingError, AttributeError, EOFError, ImportError, IndexError, TypeError) as error:
        raise StorageError(f"the state of an earlier run cannot be used: {error}") from None


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
        state = self._left(share)
        with TableWriter(self.place, self.run, self.token, share.part, f"{share.bucket:03d}") as writer:
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
            kept = {"part": share.part, "bucket": share.bucket, "state": pickle.dumps(state, protocol=5)}
            writer.write(STATE, pa.Table.from_pylist([kept], schema=FOLDS))
            last = state.fold.finish() if share.bucket == 0 else state.fold.settle()
            writer.write(OPEN_EVENTS, event_rows(list(enumerate(last, state.seq))))
        return [asdict(file) for file in writer.files]

    def _left(self, share: Share) -> BucketFold | None:
        if share.fold is None:
            return None
        (kept,) = pq.ParquetFile(self.place.read(share.fold)).read(columns=["state"]).to_pylist()
        state: BucketFold = unpickled(kept["state"])
        state.fold.learn(self.names)
        return state

    def _items(self, share: Share) -> Iterator[Item | Edge]:
        places: Places = {}
        for path in share.items:
            for batch in pq.ParquetFile(self.place.read(path)).iter_batches(_ITEMS_AT_ONCE):
                for payload in batch.column("payload").to_pylist():
                    yield unpacked(unpickled(payload), places)


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
