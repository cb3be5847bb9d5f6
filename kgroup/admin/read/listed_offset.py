"""What ListOffsets says about a partition, in whatever version it was asked."""

from __future__ import annotations

from dataclasses import dataclass

CONSUMER_REPLICA = -1


@dataclass(frozen=True, slots=True)
class ListedOffset:
    """An offset of a log; -1 when no record matches. `timestamp_ms` is -1 for the ends of the log."""

    offset: int
    timestamp_ms: int
    leader_epoch: int
