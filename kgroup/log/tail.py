"""Telling a torn tail, which may be cut, from damage with good data behind it, which may not."""

from __future__ import annotations

import os
from pathlib import Path

from kgroup.errors import DecodeError
from kgroup.log.segment import MAX_RELATIVE_OFFSET
from kgroup.protocol.batches import HEADER_BYTES, LENGTH_OFFSET, MAGIC_AT, batches_in


def valid_batch_after(path: Path, position: int, next_offset: int) -> bool:
    """Whether any whole, checksummed batch that continues the log starts behind `position`.

    Looks at every byte: the length field at `position` may be what is damaged.
    """
    with path.open("rb", buffering=0) as file:
        data = os.pread(file.fileno(), os.fstat(file.fileno()).st_size - position, position)
    magic = data.find(b"\x02", MAGIC_AT + 1)
    while magic >= 0:
        at = magic - MAGIC_AT
        offset = int.from_bytes(data[at : at + 8], "big")
        size = int.from_bytes(data[at + 8 : at + LENGTH_OFFSET], "big") + LENGTH_OFFSET
        plausible = next_offset <= offset <= next_offset + MAX_RELATIVE_OFFSET
        if plausible and HEADER_BYTES <= size <= len(data) - at and _checks_out(data[at : at + size]):
            return True
        magic = data.find(b"\x02", magic + 1)
    return False


def _checks_out(data: bytes) -> bool:
    try:
        return any(batches_in(data))
    except DecodeError:
        return False
