"""Batches of a chunk → where each record's key and value lie, for all batches at once.

The columns the pipeline writes are made by numpy: a million commits are no million Python objects. What a key
or value means is `history.records`' business; a test holds this framing equal to its `raw_records`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgroup.errors import DecodeError
from kgroup.history.records import body_of
from kgroup.history.scan import APPEND_TIME, COMPRESSED, BatchHeader

Ints = NDArray[np.int64]
_MAX_VARINT = 10


@dataclass(frozen=True, slots=True)
class Frames:
    """The records of some batches in log order. `key` and `value` are positions in `data`.

    Lengths are -1 for null. `timestamp` is in ms; `producer` is -1 outside transactions. `broken` names
    batches whose records make no sense, with the reason: none of their records is here.
    """

    data: bytes
    offset: Ints
    timestamp: Ints
    producer: Ints
    key: Ints
    key_size: Ints
    value: Ints
    value_size: Ints
    broken: tuple[tuple[BatchHeader, str], ...] = ()

    def slices(self, which: Ints) -> tuple[list[bytes], list[bytes | None]]:
        """Keys and values of these records as bytes; a null key is empty."""
        data = self.data
        ends = (self.key + np.maximum(self.key_size, 0))[which].tolist()
        keys = [data[a:b] for a, b in zip(self.key[which].tolist(), ends, strict=True)]
        places = zip(self.value[which].tolist(), self.value_size[which].tolist(), strict=True)
        return keys, [None if size < 0 else data[at : at + size] for at, size in places]


def frames_of(chunk: bytes, headers: Sequence[BatchHeader]) -> Frames:
    """The records of these data batches of `chunk`; they must be in log order and no control batches."""
    data, sound, starts, ends, broken = _bodies(chunk, headers)
    buffer = np.frombuffer(data + bytes(_MAX_VARINT), dtype=np.uint8)
    count = np.array([h.records for h in sound], dtype=np.int64)
    limit = np.array(ends, dtype=np.int64)
    found, bad = _walk(buffer, np.array(starts, dtype=np.int64), limit, count)
    broken += [(sound[i], "its records do not fit into it") for i in np.flatnonzero(bad).tolist()]
    batch = found["batch"]
    keep = np.flatnonzero(~bad[batch]) if len(batch) else batch
    column = {name: values[keep] for name, values in found.items()}
    batch = column["batch"]

    def of_batch(values: list[int]) -> Ints:
        return np.array(values, dtype=np.int64)[batch]

    base_ts, max_ts = (
        of_batch([h.base_timestamp_ms for h in sound]),
        of_batch([h.max_timestamp_ms for h in sound]),
    )
    stamped = of_batch([h.attributes & APPEND_TIME for h in sound]) > 0
    offset = of_batch([h.base_offset for h in sound]) + column["delta"]
    # Where each record belongs: behind those of the batches before its own.
    sizes = np.where(bad, 0, count)
    order = np.empty(len(batch), dtype=np.int64)
    order[(np.cumsum(sizes) - sizes)[batch] + column["number"]] = np.arange(len(batch))
    return Frames(
        data=data,
        offset=offset[order],
        timestamp=np.where(stamped, max_ts, base_ts + column["since"])[order],
        producer=of_batch([h.producer_id for h in sound])[order],
        key=column["key"][order],
        key_size=column["key_size"][order],
        value=column["value"][order],
        value_size=column["value_size"][order],
        broken=tuple(broken),
    )


def _bodies(chunk: bytes, headers: Sequence[BatchHeader]) -> tuple[bytes, list[BatchHeader], Any, Any, Any]:
    """The chunk with the decompressed bodies behind it, and where the records of each batch lie in that."""
    extra: list[bytes] = []
    size = len(chunk)
    sound, starts, ends, broken = [], [], [], []
    for header in headers:
        try:
            body, start, end = body_of(chunk, header)
        except DecodeError as error:
            broken.append((header, error.message))
            continue
        if header.attributes & COMPRESSED:
            extra.append(body)
            start, end = size, size + len(body)
            size = end
        sound.append(header)
        starts.append(start)
        ends.append(end)
    return b"".join((chunk, *extra)) if extra else chunk, sound, starts, ends, broken


def _walk(
    buffer: NDArray[np.uint8], start: Ints, limit: Ints, count: Ints
) -> tuple[dict[str, Ints], NDArray[np.bool_]]:
    """Read the n-th record of every batch at once, for n = 0, 1, …; and say which batches are broken."""
    names = ("batch", "number", "delta", "since", "key", "key_size", "value", "value_size")
    parts: dict[str, list[Ints]] = {name: [] for name in names}
    bad = np.zeros(len(start), dtype=bool)
    # Largest first, so that the batches with an n-th record are always a prefix.
    order = np.argsort(-count, kind="stable")
    pos, end, left = start[order].copy(), limit[order], count[order]
    last = len(buffer) - _MAX_VARINT
    for number in range(int(left[0]) if len(left) else 0):
        live = int(np.searchsorted(-left, -number, side="left"))
        pos, end = pos[:live], end[:live]
        size, at = _varint(buffer, pos)
        stop = at + size
        broken = (size < 0) | (stop > end)
        since, at = _varint(buffer, np.minimum(at + 1, last))
        delta, at = _varint(buffer, at)
        key_size, key = _varint(buffer, at)
        at = key + np.maximum(key_size, 0)
        broken |= (key_size > size) | (at > stop)
        value_size, value = _varint(buffer, np.clip(at, 0, last))
        broken |= (value_size > size) | (value + np.maximum(value_size, 0) > stop)
        which = order[:live]
        bad[which[broken]] = True
        row = (which, np.full(live, number), delta, since, key, key_size, value, value_size)
        for name, values in zip(names, row, strict=True):
            parts[name].append(values)
        pos = np.where(broken, np.minimum(pos, last), stop)
    empty = np.zeros(0, dtype=np.int64)
    return {name: np.concatenate(p) if p else empty for name, p in parts.items()}, bad


def _varint(buffer: NDArray[np.uint8], pos: Ints) -> tuple[Ints, Ints]:
    """Zigzag varints at all these positions, and the positions behind them."""
    last = len(buffer) - 1
    byte = buffer[np.minimum(pos, last)].astype(np.int64)
    value, after = byte & 0x7F, pos + 1
    more = np.flatnonzero(byte > 0x7F)
    shift = 7
    while len(more) and shift < 70:
        byte = buffer[np.minimum(after[more], last)].astype(np.int64)
        value[more] |= (byte & 0x7F) << min(shift, 63)
        after[more] += 1
        more = more[byte > 0x7F]
        shift += 7
    # An unsigned shift, as zigzag wants it.
    return (value >> 1 & 0x7FFFFFFFFFFFFFFF) ^ -(value & 1), after
