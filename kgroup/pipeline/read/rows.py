"""Turns a split into Arrow tables of its rows, and the items that folds read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Unpack

import pyarrow as pa

from kgroup.errors import DecodeError
from kgroup.history.decode.decoder import MAX_KEYS, Decoder
from kgroup.history.decode.places import Places
from kgroup.history.decode.records import group_of, raw_records
from kgroup.history.decode.scan import CONTROL, BatchHeader
from kgroup.history.log_items import BadRange, Item, Undecodable
from kgroup.history.selection import Choice
from kgroup.history.sources.splits import Split
from kgroup.pipeline.read.commits import CommitRows, full
from kgroup.pipeline.read.course import Course
from kgroup.pipeline.read.posting import Edge, Post, Posted, Shares
from kgroup.pipeline.schemas import BAD_RANGES, BATCHES, MARKERS
from kgroup.pipeline.schemas import CONTROL as CONTROL_TABLE

Rows = tuple[str, pa.Table]


@dataclass(slots=True)
class SplitSummary:
    """One split's content; offsets of `__consumer_offsets`, times in ms. As `history.replay.Coverage`."""

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
    gaps: int = 0
    gap_end: int = -1
    gap_ms: int = -1
    modulus: int = 0
    names: dict[str, str] = field(default_factory=dict)
    """Topic ids (as text) with the names in commits."""

    @property
    def course(self) -> Course:
        return Course(self.first_offset, self.last_offset, self.missing, self.gaps, self.gap_end, self.gap_ms)


class SplitRows:
    """Everything in one split. `tables` yields it chunk by chunk; `summary` is complete afterwards.

    With `shares`, `everything` yields the items too, as rows for the tasks that fold them.
    """

    def __init__(
        self,
        split: Split,
        chosen: frozenset[str],
        shares: Shares | None = None,
        max_keys: int = MAX_KEYS,
        **choice: Unpack[Choice],
    ) -> None:
        self.split = split
        self.chosen = chosen
        self._post = None if shares is None else Post(split.part, split.number, shares)
        self.reader = split.reader()
        self.places = Places() if chosen & {"commits", "control"} else None
        self.decoder = Decoder(places=self.places, max_keys=max_keys, **choice)
        self._commits = CommitRows(split.part)
        self._first: BatchHeader | None = None
        self._bad: dict[int, BadRange] = {}

    def tables(self) -> Iterator[Rows]:
        """Yield tables by name: `commits`, `control`, `markers`, `batches`, `bad_ranges`, if wanted."""
        for rows in self.everything():
            if not isinstance(rows, list):
                yield rows

    def everything(self) -> Iterator[Rows | list[Posted]]:
        """Yield tables by name, and rows of items."""
        for chunk, headers in self.reader.chunks():
            if self._first is None:
                self._first = headers[0]
            if "markers" in self.chosen:
                yield from self._markers(chunk, headers)
            if "batches" in self.chosen:
                values = (
                    [h.base_offset for h in headers],
                    [h.last_offset for h in headers],
                    [h.records for h in headers],
                    [h.max_timestamp_ms for h in headers],
                    [h.end - h.position for h in headers],
                )
                arrays = [pa.array(v, f.type) for v, f in zip(values, list(BATCHES)[1:], strict=True)]
                part = full(self.split.part, len(headers))
                yield "batches", pa.table([part, *arrays], schema=BATCHES)
            if self._post is not None or self.chosen & {"commits", "control", "bad_ranges"}:
                yield self._items(self._noted(self.decoder.feed(chunk, headers)))
            if self.places is not None:
                yield from self._records(chunk, self.places)
        if self._first is not None:
            yield self._items(self._noted(self.decoder.flush()))
        if "bad_ranges" in self.chosen:
            rows = [
                {"part": self.split.part, **asdict(bad)} for bad in (*self.reader.bad, *self._bad.values())
            ]
            yield "bad_ranges", pa.Table.from_pylist(rows, schema=BAD_RANGES)

    @property
    def summary(self) -> SplitSummary | None:
        """Summary of what was read; None if nothing was. Needs `shares`."""
        first, done, post = self._first, self.decoder, self._post
        if first is None or post is None:
            return None
        gap = post.gap
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
            gaps=post.gaps,
            gap_end=-1 if gap is None else gap.last,
            gap_ms=-1 if gap is None else gap.timestamp_ms,
            modulus=post.modulus,
            names={**post.names, **self._commits.ids.names},
        )

    @property
    def has_share_groups(self) -> bool:
        """Whether a record of a share group was among the items."""
        return self._post is not None and self._post.has_share_groups

    @property
    def edge(self) -> Edge | None:
        """The same for the folds of the partition."""
        summary = self.summary
        if summary is None or self._post is None:
            return None
        return Edge(summary.number, summary.course, summary.first_ms, self._post.ends)

    def _undecodable(self, offset: int, reason: str) -> None:
        """Note once that something at this log offset does not decode."""
        source, said = self.reader.source, f"at offset {offset}: {reason}"
        self._bad.setdefault(offset, BadRange(source, -1, -1, said))

    def _noted(self, items: Iterator[Item]) -> Iterator[Item]:
        """Yield the same items; note batches and commits in them that do not decode."""
        for item in items:
            if isinstance(item, Undecodable) and item.type in (-1, 0, 1):
                self._undecodable(item.offset, item.reason)
            yield item

    def _records(self, chunk: bytes, places: Places) -> Iterator[Rows]:
        """Yield commits and group records."""
        if "commits" in self.chosen:
            table, bad = self._commits.table(chunk, places)
            for offset, reason in bad.items():
                self._undecodable(offset, reason)
            yield "commits", table
        if "control" in self.chosen and places.others:
            offsets, stamps, keys, values, _, _ = zip(*places.others, strict=True)
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
            part = full(self.split.part, len(places.others))
            yield "control", pa.table([part, *arrays], schema=CONTROL_TABLE)

    def _markers(self, chunk: bytes, headers: Sequence[BatchHeader]) -> Iterator[Rows]:
        rows = []
        for header in (h for h in headers if h.attributes & CONTROL):
            try:
                records = list(raw_records(chunk, header))
            except DecodeError:  # the decoder reports it, too
                continue
            for record in records:
                kind = int.from_bytes((record.key or b"")[2:4], "big", signed=True)
                if len(record.key or b"") >= 4 and kind in (0, 1):
                    row = (self.split.part, record.offset, record.timestamp_ms, header.producer_id, kind == 1)
                    rows.append(dict(zip(MARKERS.names, row, strict=True)))
        if rows:
            yield "markers", pa.Table.from_pylist(rows, schema=MARKERS)

    def _items(self, items: Iterator[Item]) -> list[Posted]:
        """Return all of the items, as rows if they are wanted."""
        if self._post is not None:
            return list(self._post.rows(items))
        for _ in items:
            pass
        return []
