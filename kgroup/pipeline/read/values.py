"""OffsetCommit values, versions 0 to 4, as columns.

Fields at places that a few lengths determine are read for all values at once; any unusual value goes through
`history.records.decode_commit`, and a test holds both equal on all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgroup.domain import ZERO_UUID
from kgroup.errors import DecodeError
from kgroup.history.decode.records import decode_commit
from kgroup.history.log_items import Committed

Ints = NDArray[np.int64]
_PAD = 64


@dataclass(slots=True)
class CommitColumns:
    """Fields of commits by row; times in ms, -1 if a version has none. `topic_id` has 16 bytes per row.

    `metadata` and `errors` are by row number: non-empty metadata, values that do not decode.
    """

    version: Ints
    offset: Ints
    leader_epoch: Ints
    commit_ms: Ints
    expire_ms: Ints
    topic_id: NDArray[np.uint8]
    metadata: dict[int, str]
    errors: dict[int, str]

    def put(self, row: int, commit: Committed) -> None:
        """Set one row to the general decoder's result."""
        self.version[row], self.offset[row] = commit.version, commit.offset
        self.leader_epoch[row], self.commit_ms[row] = commit.leader_epoch, commit.commit_timestamp_ms
        self.expire_ms[row] = commit.expire_timestamp_ms
        self.topic_id[row] = np.frombuffer(commit.topic_id, dtype=np.uint8)
        if commit.metadata:
            self.metadata[row] = commit.metadata


def commit_columns(parts: Sequence[bytes], start: Ints, size: Ints) -> CommitColumns:
    """Return the commits whose values lie in the joined `parts`: at `start`, `size` (0 or more) bytes."""
    padded = b"".join((*parts, bytes(_PAD)))
    buffer = np.frombuffer(padded, dtype=np.uint8)
    last = len(buffer) - 16

    def read(at: Ints, width: int) -> Ints:
        # A number may begin at any byte: an array of all of them, a byte apart.
        every = np.ndarray((last + 1,), f">i{width}", padded, strides=(1,))
        return every[np.clip(at, 0, last)].astype(np.int64)

    version = read(start, 2)
    epoch = np.where(version >= 3, read(start + 10, 4), -1)
    position = start + np.where(version >= 3, 14, 10)
    compact = version == 4
    length = np.where(compact, buffer[np.clip(position, 0, last)].astype(np.int64) - 1, read(position, 2))
    body = position + np.where(compact, 1, 2)
    after = body + np.maximum(length, 0) + 8
    # Version 4 ends with tagged fields: none, or just the topic id (tag 0, 16 bytes).
    tail = start + size - after
    tags = read(after, 1)
    with_id = compact & (tail == 19) & (tags == 1) & (read(after + 1, 2) == 16)
    plain = compact & (tail == 1) & (tags == 0)
    usual = np.where(compact, with_id | plain, (version >= 0) & (tail >= np.where(version == 1, 8, 0)))
    usual &= (length >= 0) & (length < 127) & (version <= 4)
    topic_id = np.zeros((len(start), 16), dtype=np.uint8)
    rows = np.flatnonzero(with_id)
    if len(rows):
        topic_id[rows] = buffer[(after[rows] + 3)[:, None] + np.arange(16)]
    columns = CommitColumns(
        version=version,
        offset=read(start + 2, 8),
        leader_epoch=epoch,
        commit_ms=read(after - 8, 8),
        expire_ms=np.where(version == 1, read(after, 8), -1),
        topic_id=topic_id,
        metadata={},
        errors={},
    )
    # Metadata is text and may be garbled: rows that have any are decoded one by one.
    for row in np.flatnonzero(~usual | (length > 0)).tolist():
        at = int(start[row])
        try:
            columns.put(row, decode_commit(padded[at : at + int(size[row])], -1, -1))
        except DecodeError as error:
            columns.errors[row] = error.message
            columns.topic_id[row] = np.frombuffer(ZERO_UUID, dtype=np.uint8)
    return columns
