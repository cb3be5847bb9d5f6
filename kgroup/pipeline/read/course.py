"""Counts what is missing of a partition, split by split: the same in its groups' folds and in the store."""

from __future__ import annotations

from dataclasses import dataclass

from kgroup.history.log_items import gap_between
from kgroup.pipeline.schemas import Row


@dataclass(slots=True)
class Course:
    """A part of a partition that was read; offsets of the log, times in ms, -1 for none.

    `missing` records are in `gaps` gaps, the last of which ends at `gap_end`.
    """

    first_offset: int = -1
    last_offset: int = -1
    missing: int = 0
    gaps: int = 0
    gap_end: int = -1
    gap_ms: int = -1

    @classmethod
    def of(cls, span: Row) -> Course:
        """Return that of a span as a store keeps it."""
        return cls(*(span[name] for name in cls.__slots__))

    def follow(self, following: Course, first_ms: int) -> int:
        """Continue with what was read next, from `first_ms` on; return how many gaps lie before it."""
        if self.first_offset < 0:
            self.first_offset, self.last_offset = following.first_offset, following.first_offset - 1
        gap = gap_between(self.last_offset + 1, following.first_offset, first_ms)
        if gap is not None:
            self.missing += gap.missing
            self.gaps, self.gap_end, self.gap_ms = self.gaps + 1, gap.last, gap.timestamp_ms
        before = self.gaps
        if following.gaps:
            self.missing += following.missing
            self.gaps += following.gaps
            self.gap_end, self.gap_ms = following.gap_end, following.gap_ms
        self.last_offset = following.last_offset
        return before
