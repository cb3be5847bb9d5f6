"""Why committed offsets were removed: deleted, expired, or gone with their topic."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kgroup.domain import TopicPartition
from kgroup.history.fold.events import duration_text
from kgroup.history.fold.stored import stored
from kgroup.history.items import Committed

MIN_RETENTION_MS = 60_000
"""The shortest retention a broker takes (offsets.retention.minutes): younger commits do not expire."""


@stored
@dataclass(frozen=True, slots=True)
class Today:
    """What a live cluster says beside its records; None where it was not asked or did not tell.

    `topics` are all there are, `retention_ms` is offsets.retention.minutes.
    """

    topics: frozenset[str] | None = None
    retention_ms: int | None = None

    def younger(self, removed: Iterable[Committed | None], at_ms: int) -> bool:
        """Return whether every offset removed was younger than the retention: then none has expired."""
        offsets = list(removed)
        ages = [
            at_ms - max(was.commit_timestamp_ms, was.timestamp_ms)
            for was in offsets
            if was is not None and was.expire_timestamp_ms < 0
        ]
        bound = self.retention_ms if self.retention_ms is not None else MIN_RETENTION_MS
        return bool(ages) and len(ages) == len(offsets) and max(ages) < bound

    def cause_of_removal(self, places: Iterable[TopicPartition], young: bool) -> tuple[bool, str]:
        """Return whether they were deleted for certain, and why the offsets of these partitions are gone."""
        if self.topics is not None:
            gone = sorted({place.topic for place in places} - self.topics)
            if gone and len(gone) == len({place.topic for place in places}):
                what = f"topic {gone[0]} does" if len(gone) == 1 else f"topics {', '.join(gone)} do"
                before = "" if young else ", unless they had expired before"
                return young, f"{what} not exist any more: deleted with its offsets{before}"
        if not young:
            return False, "expired, deleted by an admin, or their topic was deleted: the records do not tell"
        ways = "deleted by an admin, or their topic was deleted"
        if self.retention_ms is not None:
            bound = f"offsets.retention.minutes ({duration_text(self.retention_ms)})"
            return True, f"younger than {bound}, so they did not expire: {ways}"
        return True, f"younger than the shortest retention a broker allows: {ways}"
