"""A split → Arrow tables of its rows, and the items that a fold reads."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple, Unpack

import pyarrow as pa

from kgroup.domain import TopicPartition
from kgroup.errors import DecodeError
from kgroup.history.choice import Choice
from kgroup.history.decode.decoder import MAX_KEYS, Decoder
from kgroup.history.decode.places import Places
from kgroup.history.decode.records import group_of, raw_records
from kgroup.history.decode.scan import CONTROL, BatchHeader
from kgroup.history.items import Gap, Item, Marker, RawRecord, Undecodable
from kgroup.history.sources.splits import Split
from kgroup.history.typed_json import Codec
from kgroup.pipeline.read.commits import CommitRows, full
from kgroup.pipeline.schemas import BAD_RANGES, BATCHES, ITEM_ROWS, ITEMS, MARKERS, Row
from kgroup.pipeline.schemas import CONTROL as CONTROL_TABLE
from kgroup.protocol.group_records import record_classes
from kgroup.protocol.record_kinds import RecordKey, RecordValue

Rows = tuple[str, pa.Table]


class Edge(NamedTuple):
    """Stands among the items where a split begins (`first_offset`, `first_ms`), and where it ends."""

    first_offset: int = -1
    first_ms: int = -1
    last_offset: int = -1


@cache
def item_codec() -> Codec[Item | Edge]:
    """How items are stored between the two steps of a run."""
    keys, values = zip(*record_classes().values(), strict=True)
    return Codec(Item | Edge, {RecordKey: keys, RecordValue: values}, shared=(TopicPartition,))


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


class SplitRows:
    """Everything one split holds. `tables` yields it chunk by chunk; `summary` is right afterwards."""

    def __init__(
        self,
        split: Split,
        chosen: frozenset[str],
        buckets: int = 1,
        max_keys: int = MAX_KEYS,
        **choice: Unpack[Choice],
    ) -> None:
        self.split = split
        self.chosen = chosen
        self.buckets = buckets
        self.reader = split.reader()
        self.places = Places() if chosen & {"commits", "control"} else None
        self.decoder = Decoder(places=self.places, max_keys=max_keys, **choice)
        self._commits = CommitRows(split.part)
        self._first: BatchHeader | None = None
        self._bad: dict[int, Row] = {}

    def tables(self) -> Iterator[Rows]:
        """Tables by name: `commits`, `control`, `markers`, `batches`, `bad_ranges`, `items`, if wanted."""
        for chunk, headers in self.reader.chunks():
            if self._first is None:
                self._first = headers[0]
                yield from self._items(iter((Edge(headers[0].base_offset, headers[0].base_timestamp_ms),)))
            if "markers" in self.chosen:
                yield from self._markers(chunk, headers)
            if "batches" in self.chosen:
                yield "batches", self._batches(headers)
            if self.chosen & {"commits", "control", "bad_ranges", ITEMS}:
                yield from self._items(self._noted(self.decoder.feed(chunk, headers)))
            if self.places is not None:
                yield from self._records(chunk, self.places)
        if self._first is not None:
            yield from self._items(self._noted(self.decoder.flush()))
            yield from self._items(iter((Edge(last_offset=self.decoder.next_offset - 1),)))
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
            names=dict(self._commits.ids.names),
        )

    def _undecodable(self, offset: int, reason: str) -> None:
        """Note once that something at this log offset makes no sense."""
        source, said = self.reader.source, f"at offset {offset}: {reason}"
        bad = {"part": self.split.part, "source": source, "start": -1, "end": -1, "reason": said}
        self._bad.setdefault(offset, bad)

    def _noted(self, items: Iterator[Item]) -> Iterator[Item | Edge]:
        """The same items; what they say of batches and commits that do not decode is noted."""
        for item in items:
            if isinstance(item, Undecodable) and item.type in (-1, 0, 1):
                self._undecodable(item.offset, item.reason)
            yield item

    def _records(self, chunk: bytes, places: Places) -> Iterator[Rows]:
        """Commits and group records."""
        if "commits" in self.chosen:
            table, bad = self._commits.table(chunk, places)
            for offset, reason in bad.items():
                self._undecodable(offset, reason)
            yield "commits", table
        if "control" in self.chosen and places.others:
            yield "control", self._control(places.others)

    def _control(self, records: Sequence[RawRecord]) -> pa.Table:
        offsets, stamps, keys, values, _, _ = zip(*records, strict=True)
        part = full(self.split.part, len(records))
        columns = (
            offsets,
            stamps,
            map(group_of, keys),
            [int.from_bytes(key[:2], "big", signed=True) for key in keys],
            [value is None for value in values],
            keys,
            values,
            [len(key) + len(value or b"") for key, value in zip(keys, values, strict=True)],
        )
        fields = list(CONTROL_TABLE)[1:]
        arrays = [pa.array(column, field.type) for column, field in zip(columns, fields, strict=True)]
        return pa.table([part, *arrays], schema=CONTROL_TABLE)

    def _markers(self, chunk: bytes, headers: Sequence[BatchHeader]) -> Iterator[Rows]:
        rows = []
        for header in (h for h in headers if h.attributes & CONTROL):
            try:
                records = list(raw_records(chunk, header))
            except DecodeError:  # the decoder comes across it, too
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
            [h.base_offset for h in headers],
            [h.last_offset for h in headers],
            [h.records for h in headers],
            [h.max_timestamp_ms for h in headers],
            [h.end - h.position for h in headers],
        )
        arrays = [pa.array(c, f.type) for c, f in zip(columns, list(BATCHES)[1:], strict=True)]
        return pa.table([full(self.split.part, len(headers)), *arrays], schema=BATCHES)

    def _items(self, items: Iterator[Item | Edge]) -> Iterator[Rows]:
        """All of the items, as rows if they are wanted."""
        shares: dict[int, list[bytes]] = {}
        encode = item_codec().encode
        for item in items:
            if ITEMS not in self.chosen:
                continue
            payload = encode(item)
            for bucket in self._buckets(item):
                shares.setdefault(bucket, []).append(payload)
        for bucket, payloads in shares.items():
            yield ITEMS, pa.table([full(bucket, len(payloads)), payloads], schema=ITEM_ROWS)

    def _buckets(self, item: Item | Edge) -> Sequence[int]:
        """The shares of the partition that fold an item: what no single group is meant by is for all."""
        if isinstance(item, Gap | Marker | Edge):
            return range(self.buckets)
        return (0 if item.group is None else bucket_of(item.group, self.buckets),)

    def _bad_ranges(self) -> pa.Table:
        part = self.split.part
        ranges = [
            {"part": part, "source": b.source, "start": b.start, "end": b.end, "reason": b.reason}
            for b in self.reader.bad
        ]
        return pa.Table.from_pylist([*ranges, *self._bad.values()], schema=BAD_RANGES)


def bucket_of(group: str, buckets: int) -> int:
    """The share of its partition that a group is folded in: the same in every run."""
    return zlib.crc32(group.encode()) % buckets
