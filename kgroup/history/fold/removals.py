"""Why committed offsets were removed: deleted, expired, or gone with their topic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kgroup.domain import TopicPartition, uuid_text
from kgroup.history.fold.events import duration_text
from kgroup.history.items import Committed

Removed = Mapping[TopicPartition, Committed | None]
"""Removed offsets, as they were; None if that is not on record."""
MIN_RETENTION_MS = 60_000
"""The shortest retention a broker accepts (offsets.retention.minutes): younger commits do not expire."""


@dataclass(frozen=True, slots=True)
class Today:
    """What a live cluster reports besides its records; None if it was not asked or did not answer.

    `topics` are all existing ones, with their ids as text; `retention_ms` is offsets.retention.minutes.
    """

    topics: Mapping[str, str] | None = None
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

    def cause_of_removal(self, removed: Removed, young: bool) -> tuple[bool, str]:
        """Return whether offsets were deleted for certain, and why they are gone."""
        if gone := self._of_other_topics(removed):
            before = "" if young else ", unless they had expired before"
            return young, f"{'; '.join(gone)}: brokers delete the offsets with a topic{before}"
        ways = "deleted by an admin, or their topic was deleted"
        if young:
            return True, f"{self._age(young)}: {ways}"
        if self.retention_ms is None:
            return False, f"expired, {ways}: the records do not say"
        return False, f"{self._age(young)}: expired, {ways}"

    def cause_of_deletion(self, young: bool) -> str:
        """Return why a group is gone whose offsets were all `young` or not."""
        if young:
            return f"deleted by an admin: its offsets were {self._age(young)}"
        if self.retention_ms is None:
            return "deleted by an admin, or expired when its last offset did: the records do not say"
        return f"expired when its last offset did, or deleted by an admin: they were {self._age(young)}"

    def _age(self, young: bool) -> str:
        if self.retention_ms is not None:
            bound = f"offsets.retention.minutes ({duration_text(self.retention_ms)})"
            return f"younger than {bound}, so they did not expire" if young else f"as old as {bound}"
        return "younger than the shortest retention a broker allows"

    def _of_other_topics(self, removed: Removed) -> list[str]:
        """Return what became of the topics, if each of them is gone or recreated."""
        if self.topics is None:
            return []
        said = {}
        for place, was in sorted(removed.items()):
            now = self.topics.get(place.topic)
            if now is None:
                said[place.topic] = f"topic {place.topic} was deleted: it no longer exists"
            elif was is not None and any(was.topic_id) and now and uuid_text(was.topic_id) != now:
                ids = f"its id was {uuid_text(was.topic_id)} and is {now}"
                said[place.topic] = f"topic {place.topic} was deleted and recreated: {ids}"
            else:
                return []
        return list(said.values())
