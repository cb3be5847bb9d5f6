"""A split → Arrow tables of its rows, and the items that a fold reads."""

from __future__ import annotations

import base64
import pickle
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute

from kgroup.domain import uuid_text
from kgroup.errors import DecodeError
from kgroup.history.decode import Decoder
from kgroup.history.items import Gap, Item, Marker, packed
from kgroup.history.records import decode_commit_key, group_of, raw_records
from kgroup.history.scan import CONTROL, BatchHeader
from kgroup.history.splits import Split
from kgroup.pipeline.framing import Frames, frames_of
from kgroup.pipeline.schemas import BAD_RANGES, BATCHES, COMMITS, ITEMS, MARKERS
from kgroup.pipeline.schemas import CONTROL as CONTROL_TABLE
from kgroup.pipeline.values import commit_columns

EVERY_BUCKET = -1
MAX_KEYS = 400_000
MAX_NAMES = 50_000
Rows = tuple[str, pa.Table]


class Edge(NamedTuple):
    """Stands among the items where a split begins (`first_offset`, `first_ms`), and where it ends."""

    first_offset: int = -1
    first_ms: int = -1
    last_offset: int = -1


@dataclass(slots=True)
class SplitSummary:
    """What one split held; offsets of `__consumer_offsets`, times in ms. As `history.replay.Coverage`."""

    part: int
    number: int
    source: str
    first_offset: int
    last_offset: int
    records: int
    missing: int
    complete_from: int
    complete_from_ms: int
    first_ms: int
    last_ms: int
    names: dict[str, str] = field(default_factory=dict)
    """Topic ids (as text) with the names that commits tell."""


class KeyTable(dict[bytes, int]):
    """Keys of commits met so far → numbers; their groups, topics and partitions as columns."""

    def __init__(self) -> None:
        self._groups: dict[str, int] = {}
        self._topics: dict[str, int] = {}
        self._fields: list[tuple[int, int, int]] = []
        self.errors: dict[int, str] = {}

    def __missing__(self, key: bytes) -> int:
        """The number of a new key."""
        number = self[key] = len(self._fields)
        try:
            group, topic, partition = decode_commit_key(key)
        except DecodeError as error:
            group, topic, partition = group_of(key) or "", "", -1
            self.errors[number] = error.message
        groups, topics = self._groups, self._topics
        ids = (groups.setdefault(group, len(groups)), topics.setdefault(topic, len(topics)))
        self._fields.append((*ids, partition))
        return number

    def numbers(self, data: bytes, start: Sequence[int], end: Sequence[int]) -> list[int]:
        """The numbers of the keys at these places of `data`, which are valid until the next call."""
        if len(self._fields) > MAX_KEYS:
            self.clear()
            self.__init__()  # type: ignore[misc]
        return [self[data[a:b]] for a, b in zip(start, end, strict=True)]

    def columns(self, numbers: list[int]) -> tuple[pa.Array, pa.Array, pa.Array]:
        """Group, topic (both dictionaries) and partition of each row."""
        table = np.array(self._fields, dtype=np.int32).reshape(-1, 3)[numbers]
        groups, topics = pa.array(list(self._groups), pa.string()), pa.array(list(self._topics), pa.string())
        return (
            pa.DictionaryArray.from_arrays(pa.array(np.ascontiguousarray(table[:, 0])), groups),
            pa.DictionaryArray.from_arrays(pa.array(np.ascontiguousarray(table[:, 1])), topics),
            pa.array(np.ascontiguousarray(table[:, 2])),
        )


class SplitRows:
    """Everything one split holds. `tables` yields it chunk by chunk; `summary` is right afterwards."""

    def __init__(self, split: Split, chosen: frozenset[str], buckets: int = 1, **decoder: Any) -> None:
        self.split = split
        self.chosen = chosen
        self.buckets = buckets
        self.reader = split.reader()
        self.decoder = Decoder(**decoder)
        self._keys = KeyTable()
        self._names: dict[bytes, str] = {}
        self._seq = 0
        self._first: BatchHeader | None = None
        self._bad: list[dict[str, Any]] = []

    def tables(self) -> Iterator[Rows]:
        """Tables by name: `commits`, `control`, `markers`, `batches`, `bad_ranges`, `items`, if wanted."""
        for chunk, headers in self.reader.chunks():
            if self._first is None:
                self._first = headers[0]
                if "items" in self.chosen:
                    edge = Edge(headers[0].base_offset, headers[0].base_timestamp_ms)
                    yield "items", self._items(iter((edge,)))
            if self.chosen & {"commits", "control", "bad_ranges"}:
                data = [h for h in headers if not h.attributes & CONTROL]
                frames = frames_of(chunk, data)
                self._broken(frames)
                yield from self._records(frames)
            if "markers" in self.chosen:
                yield from self._markers(chunk, headers)
            if "batches" in self.chosen:
                yield "batches", self._batches(headers)
            if "items" in self.chosen:
                yield "items", self._items(self.decoder.feed(chunk, headers))
        if "items" in self.chosen and self._first is not None:
            yield "items", self._items(self.decoder.flush())
            yield "items", self._items(iter((Edge(last_offset=self.decoder.next_offset - 1),)))
        if "bad_ranges" in self.chosen:
            yield "bad_ranges", self._bad_ranges()

    @property
    def summary(self) -> SplitSummary | None:
        """What was read; None if nothing was. Needs `items` among the wanted."""
        first, done = self._first, self.decoder
        if first is None:
            return None
        return SplitSummary(
            part=self.split.part,
            number=self.split.number,
            source=self.split.source,
            first_offset=first.base_offset,
            last_offset=done.next_offset - 1,
            records=done.records,
            missing=done.missing,
            complete_from=done.complete_from,
            complete_from_ms=done.complete_from_ms,
            first_ms=first.base_timestamp_ms,
            last_ms=done.last_ms,
            names={uuid_text(topic_id): name for topic_id, name in self._names.items()},
        )

    def _broken(self, frames: Frames) -> None:
        for header, reason in frames.broken:
            self._undecodable(f"the batch at offset {header.base_offset}: {reason}")

    def _undecodable(self, reason: str) -> None:
        source = self.reader.source
        self._bad.append(
            {"part": self.split.part, "source": source, "start": -1, "end": -1, "reason": reason}
        )

    def _records(self, frames: Frames) -> Iterator[Rows]:
        """Commits and group records; what has no usable key is noted as bad."""
        sizes = frames.key_size
        kinds = _kinds(frames)
        commits = np.flatnonzero((kinds == 0) | (kinds == 1))
        if len(commits) and "commits" in self.chosen:
            yield "commits", self._commits(frames, commits)
        others = np.flatnonzero((sizes >= 2) & (kinds != 0) & (kinds != 1))
        if len(others) and "control" in self.chosen:
            yield "control", self._control(frames, others, kinds[others])
        for row in np.flatnonzero(sizes < 2).tolist():
            self._undecodable(f"the record at offset {frames.offset[row]} has no key")

    def _commits(self, frames: Frames, rows: Any) -> pa.Table:
        data, start = frames.data, frames.key[rows]
        numbers = self._keys.numbers(data, start.tolist(), (start + frames.key_size[rows]).tolist())
        size = frames.value_size[rows]
        gone = size < 0
        values = commit_columns(data, frames.value[rows], np.maximum(size, 0))
        group, topic, partition = self._keys.columns(numbers)
        errors = {row: why for row, why in values.errors.items() if not gone[row]}
        if self._keys.errors:
            errors |= {i: self._keys.errors[n] for i, n in enumerate(numbers) if n in self._keys.errors}
        offset = frames.offset[rows]
        for row, why in errors.items():
            self._undecodable(f"the commit at offset {offset[row]}: {why}")
        self._learn(values.topic_id, topic, gone)
        producer = frames.producer[rows]
        metadata: list[str | None] = [None] * len(rows)
        for row, text in values.metadata.items():
            metadata[row] = text

        def stamp(ms: Any) -> pa.Array:
            return pa.array(ms, pa.int64(), mask=gone | (ms < 0)).cast(COMMITS.field("ts").type)

        table = pa.table(
            [
                _full(self.split.part, len(rows)),
                pa.array(offset),
                pa.array(frames.timestamp[rows]).cast(COMMITS.field("ts").type),
                group,
                topic,
                partition,
                pa.array(values.offset, mask=gone),
                pa.array(values.leader_epoch.astype(np.int32), mask=gone | (values.leader_epoch < 0)),
                pa.array(metadata, pa.string()),
                stamp(values.commit_ms),
                stamp(values.expire_ms),
                _ids(values.topic_id, gone),
                pa.array(values.version.astype(np.int16), mask=gone),
                pa.array(gone),
                pa.array(producer, mask=producer < 0),
                pa.array((frames.key_size[rows] + np.maximum(size, 0)).astype(np.int32)),
            ],
            schema=COMMITS,
        )
        if not errors:
            return table
        return table.filter(pa.array([row not in errors for row in range(len(rows))]))

    def _learn(self, ids: Any, topic: pa.DictionaryArray, gone: Any) -> None:
        """Remember which topic has which id, as far as commits tell."""
        rows = np.flatnonzero(ids.any(axis=1) & ~gone)
        if not len(rows) or len(self._names) >= MAX_NAMES:
            return
        packed = np.ascontiguousarray(ids[rows]).view("V16").ravel()
        found, where = np.unique(packed, return_index=True)
        for raw, at in zip(found.tolist(), where.tolist(), strict=True):
            self._names.setdefault(bytes(raw), topic[int(rows[at])].as_py())

    def _control(self, frames: Frames, rows: Any, kinds: Any) -> pa.Table:
        keys, values = frames.slices(rows)
        size = frames.key_size[rows] + np.maximum(frames.value_size[rows], 0)
        return pa.table(
            [
                _full(self.split.part, len(rows)),
                pa.array(frames.offset[rows]),
                pa.array(frames.timestamp[rows]).cast(CONTROL_TABLE.field("ts").type),
                pa.array([group_of(key) for key in keys], pa.string()),
                pa.array(kinds.astype(np.int16)),
                pa.array(frames.value_size[rows] < 0),
                pa.array(keys, pa.binary()),
                pa.array(values, pa.binary()),
                pa.array(size.astype(np.int32)),
            ],
            schema=CONTROL_TABLE,
        )

    def _markers(self, chunk: bytes, headers: Sequence[BatchHeader]) -> Iterator[Rows]:
        rows = []
        for header in (h for h in headers if h.attributes & CONTROL):
            try:
                records = list(raw_records(chunk, header))
            except DecodeError as error:
                self._undecodable(f"the batch at offset {header.base_offset}: {error.message}")
                continue
            for record in records:
                kind = int.from_bytes((record.key or b"")[2:4], "big", signed=True)
                if len(record.key or b"") >= 4 and kind in (0, 1):
                    row = (self.split.part, record.offset, record.timestamp_ms, header.producer_id, kind == 1)
                    rows.append(dict(zip(MARKERS.names, row, strict=True)))
        if rows:
            yield "markers", pa.Table.from_pylist(rows, schema=MARKERS)

    def _batches(self, headers: Sequence[BatchHeader]) -> pa.Table:
        columns = (
            [self.split.part] * len(headers),
            [h.base_offset for h in headers],
            [h.last_offset for h in headers],
            [h.records for h in headers],
            [h.max_timestamp_ms for h in headers],
            [h.end - h.position for h in headers],
        )
        arrays = [pa.array(c, f.type) for c, f in zip(columns, BATCHES, strict=True)]
        return pa.table(arrays, schema=BATCHES)

    def _items(self, items: Iterator[Item | Edge]) -> pa.Table:
        buckets, seqs, payloads = [], [], []
        for item in items:
            buckets.append(self._bucket(item))
            seqs.append(self._seq)
            payloads.append(pickle.dumps(item if isinstance(item, Edge) else packed(item), protocol=5))
            self._seq += 1
        count = len(seqs)
        arrays = (
            _full(self.split.part, count),
            pa.array(buckets, pa.int32()),
            _full(self.split.number, count),
            pa.array(seqs, pa.int64()),
            pa.array(payloads, pa.binary()),
        )
        return pa.table(arrays, schema=ITEMS)

    def _bucket(self, item: Item | Edge) -> int:
        if isinstance(item, Gap | Marker | Edge):
            return EVERY_BUCKET
        return 0 if item.group is None else bucket_of(item.group, self.buckets)

    def _bad_ranges(self) -> pa.Table:
        part = self.split.part
        ranges = [
            {"part": part, "source": b.source, "start": b.start, "end": b.end, "reason": b.reason}
            for b in self.reader.bad
        ]
        return pa.Table.from_pylist([*ranges, *self._bad], schema=BAD_RANGES)


def bucket_of(group: str, buckets: int) -> int:
    """The share of its partition that a group is folded in: the same in every run."""
    return zlib.crc32(group.encode()) % buckets


def _full(value: int, count: int) -> pa.Array:
    return pa.array(np.full(count, value, dtype=np.int32))


def _kinds(frames: Frames) -> Any:
    """The type in each key, -1 where there is none."""
    buffer = np.frombuffer(frames.data + b"\0\0", dtype=np.uint8)
    at = np.clip(frames.key, 0, len(buffer) - 2)
    kind = buffer[at].astype(np.int16) << 8 | buffer[at + 1]
    return np.where(frames.key_size >= 2, kind, -1)


def _ids(ids: Any, gone: Any) -> pa.Array:
    """Topic ids as Kafka prints them; null where there is none."""
    known = ids.any(axis=1) & ~gone
    if not known.any():
        return pa.nulls(len(ids), pa.string())
    # 18 bytes are 24 characters, so that one call does for all; of these 22 belong to the 16 bytes.
    padded = np.zeros((len(ids), 18), dtype=np.uint8)
    padded[:, :16] = ids
    text = np.frombuffer(base64.urlsafe_b64encode(padded.tobytes()), dtype=np.uint8).reshape(-1, 24)[:, :22]
    ends = np.arange(len(ids) + 1, dtype=np.int32) * 22
    packed = pa.StringArray.from_buffers(len(ids), pa.py_buffer(ends), pa.py_buffer(text.tobytes()))
    return pa.compute.if_else(pa.array(known), packed, pa.scalar(None, pa.string()))
