"""Where reading a partition goes on: at a batch that was read, not at the start of its segment.

A position is tried, never trusted: segments are compacted, copied and replaced. It is used if a whole batch
begins there that no offset to be read comes before; bytes before it hold only offsets that were read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from kgroup.errors import StorageError
from kgroup.history.decode.scan import MAX_BATCH_BYTES, Scanner
from kgroup.history.log_items import BadRange
from kgroup.history.sources.layout import AnyFile, base_offset
from kgroup.history.sources.splits import Split
from kgroup.protocol.batches import HEADER_BYTES, LENGTH_OFFSET
from kgroup.storage.files import RangeReader

_LENGTH = struct.Struct(">8xi")
_ENTRY = struct.Struct(">ii")
"""An entry of Kafka's offset index: an offset counted from the segment's base, and the byte of its batch."""


def resumed(splits: Sequence[Split], places: Mapping[int, tuple[str, int]]) -> list[Split]:
    """Return the splits without the bytes whose offsets were read before.

    `places` has, by partition, the segment and the byte where the batch begins that was read last.
    """
    starts: dict[str, int] = {}
    bad: dict[int, tuple[BadRange, ...]] = {}
    left: list[Split] = []
    for split in splits:
        pieces = []
        for piece in split.pieces:
            if piece.path not in starts:
                starts[piece.path] = _start(piece.file, split.after, places.get(split.part))
            start = max(piece.start, starts[piece.path])
            if start < piece.end or piece.start == piece.end:
                pieces.append(replace(piece, start=start))
        # What is known to be damaged is noted whatever is read.
        known = (*bad.pop(split.part, ()), *split.bad)
        if pieces:
            left.append(replace(split, pieces=tuple(pieces), bad=known))
        else:
            bad[split.part] = known
    return left


def _start(file: AnyFile, after: int, last: tuple[str, int] | None) -> int:
    base = base_offset(file)
    if base is None or base > after:
        return 0
    positions = [last[1]] if last is not None and last[0] == file.name else []
    try:
        with file.open("rb") as opened:
            positions += _indexed(file, after - base)
            sound = (at for at in sorted(positions, reverse=True) if _is_batch(opened, at, after))
            return next(sound, 0)
    except OSError as error:
        raise StorageError(f"cannot read {file}: {error.strerror}") from None


def _is_batch(opened: BinaryIO | RangeReader, position: int, after: int) -> bool:
    """Return whether a whole batch begins at a byte, and no later than the first offset to be read."""
    opened.seek(position)
    head = opened.read(HEADER_BYTES)
    if len(head) < HEADER_BYTES:
        return False
    (length,) = _LENGTH.unpack_from(head)
    if not HEADER_BYTES <= length + LENGTH_OFFSET <= MAX_BATCH_BYTES:
        return False
    data = head + opened.read(length + LENGTH_OFFSET - HEADER_BYTES)
    header = next(Scanner("").headers(data, True), None)
    return header is not None and header.position == 0 and header.base_offset <= after + 1


def _indexed(file: AnyFile, relative: int) -> Iterator[int]:
    """Yield the byte that Kafka's index of a local segment has for an offset, counted from its base."""
    if not isinstance(file, Path):
        return
    try:
        opened = file.with_suffix(".index").open("rb")
    except OSError:
        return
    with opened:
        size = opened.seek(0, 2) // _ENTRY.size
        low, high, candidate = 0, size - 1, -1
        while low <= high:
            middle = (low + high) // 2
            opened.seek(middle * _ENTRY.size)
            offset, position = _ENTRY.unpack(opened.read(_ENTRY.size))
            # The index of a segment that grows is longer than its entries, and zero behind them.
            if 0 < offset <= relative:
                low, candidate = middle + 1, position
            else:
                high = middle - 1
        if candidate >= 0:
            yield candidate
