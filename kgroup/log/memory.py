"""A log in memory: for tests, simulations and clusters that need not outlive their process."""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Unpack

from kgroup.log.interface import Placed, first_at_or_after, out_of_range, place_batches, place_records
from kgroup.protocol.batches import Appended, Batch, BatchHead


class MemoryLog:
    """A `Log` that keeps its batches in lists.

    `before_append`, if given, is called with the bytes of every append before it happens; what it
    raises leaves the log unchanged, so a test can make appends fail.
    """

    def __init__(self, before_append: Callable[[bytes], None] | None = None) -> None:
        self._before_append = before_append
        self.leader_epoch = 0
        self._start = 0
        self._end = 0
        self._batches: list[bytes] = []
        self._last_offsets: list[int] = []
        self._max_timestamps: list[int] = []

    @property
    def start_offset(self) -> int:
        return self._start

    @property
    def end_offset(self) -> int:
        return self._end

    def append(self, records: Appended, **head: Unpack[BatchHead]) -> int:
        placed = place_records(records, self._end, self.leader_epoch, head)
        self._add([placed])
        return placed.base_offset

    def append_batches(
        self, raw: bytes, *, leader_epoch: int | None = None, append_time_ms: int | None = None
    ) -> tuple[int, int]:
        epoch = self.leader_epoch if leader_epoch is None else leader_epoch
        placed = place_batches(raw, self._end, epoch, append_time_ms)
        self._add(placed)
        return placed[0].base_offset, placed[-1].last_offset

    def _add(self, placed: list[Placed]) -> None:
        if self._before_append is not None:
            self._before_append(b"".join(batch.raw for batch in placed))
        for batch in placed:
            self._batches.append(batch.raw)
            self._last_offsets.append(batch.last_offset)
            self._max_timestamps.append(batch.max_timestamp)
        self._end = placed[-1].last_offset + 1

    def read(self, offset: int, max_bytes: int) -> bytes:
        if not self._start <= offset <= self._end:
            raise out_of_range(offset, self._start, self._end)
        first = index = bisect_left(self._last_offsets, offset)
        size = 0
        while index < len(self._batches):
            size += len(self._batches[index])
            if size > max_bytes and index > first:
                break
            index += 1
        return b"".join(self._batches[first:index])

    def batches(self, start: int = 0) -> Iterator[Batch]:
        first = bisect_left(self._last_offsets, max(start, self._start))
        return iter([Batch(raw) for raw in self._batches[first:]])

    def offset_for_timestamp(self, timestamp_ms: int) -> tuple[int, int] | None:
        for raw, newest in zip(self._batches, self._max_timestamps, strict=True):
            if newest >= timestamp_ms and (entry := first_at_or_after(Batch(raw), timestamp_ms, self._start)):
                return entry
        return None

    def delete_before(self, offset: int) -> None:
        if offset > self._end:
            raise out_of_range(offset, self._start, self._end)
        self._start = max(self._start, offset)
        gone = bisect_left(self._last_offsets, self._start)
        del self._batches[:gone], self._last_offsets[:gone], self._max_timestamps[:gone]

    def configure(self, *, segment_bytes: int, fsync: bool) -> None:
        """Do nothing: there are no segments, and nothing outlives the process."""

    def close(self, *, gone: bool = False) -> None:
        """Do nothing: the log stays readable, as one reopened from a folder would be."""
