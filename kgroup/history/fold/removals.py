"""Why committed offsets were removed: deleted, expired, or gone with their topic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from kgroup.domain import TopicPartition, uuid_text
from kgroup.history.fold.events import duration_text
from kgroup.history.log_items import Committed

Removed = Mapping[TopicPartition, Committed | None]
"""Removed offsets, as they were; None if that is not on record."""
MIN_RETENTION_MS = 60_000
"""The shortest retention a broker accepts (offsets.retention.minutes): younger commits do not expire."""


class Age(StrEnum):
    """How old removed offsets were, compared with the retention."""

    YOUNG = "young"
    """Some were younger, so that the write that removed them is no expiry (KIP-211)."""
    OLD = "old"
    """All of them were as old."""
    NONE = "none"
    """No offset was removed."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Today:
    """What a cluster reports besides its records; None if it was not asked or did not answer.

    `topics` are all existing ones, with their ids as text; `retention_ms` is offsets.retention.minutes. Of a
    recording they were seen at `seen_ms`, and say nothing of what happened later.
    """

    topics: Mapping[str, str] | None = None
    retention_ms: int | None = None
    seen_ms: int | None = None

    def age(self, removed: Iterable[Committed | None], at_ms: int) -> Age:
        """Return how old the offsets were that one write removed."""
        offsets = list(removed)
        ages = [
            at_ms - max(was.commit_timestamp_ms, was.timestamp_ms)
            for was in offsets
            if was is not None and was.expire_timestamp_ms < 0
        ]
        bound = self.retention_ms if self.retention_ms is not None else MIN_RETENTION_MS
        if not offsets:
            return Age.NONE
        if ages and min(ages) < bound:
            return Age.YOUNG
        known = len(ages) == len(offsets) and self.retention_ms is not None
        return Age.OLD if known else Age.UNKNOWN

    def cause_of_removal(self, removed: Removed, age: Age, at_ms: int) -> tuple[bool, str]:
        """Return whether offsets were deleted for certain, and why they are gone since this time."""
        young = age is Age.YOUNG
        later = self.seen_ms is not None and at_ms > self.seen_ms
        if not later and (gone := self._of_other_topics(removed)):
            before = "" if young else ", unless they had expired before"
            return young, f"{'; '.join(gone)}: brokers delete the offsets with a topic{before}"
        ways = "deleted by an admin, or their topic was deleted"
        if young:
            return True, f"{self._young()}: {ways}"
        if age is Age.OLD:
            return False, f"{self._old()}: expired, {ways}"
        return False, f"expired, {ways}: the records do not say"

    def cause_of_deletion(self, age: Age) -> str:
        """Return why a group is gone whose offsets were of this age."""
        match age:
            case Age.YOUNG:
                return f"deleted by an admin: its offsets were {self._young()}"
            case Age.NONE:
                return "removed by the broker, as it was empty and had no offsets, or deleted by an admin"
            case Age.OLD:
                return f"expired when its last offset did, or deleted by an admin: they were {self._old()}"
        return "deleted by an admin, or expired when its last offset did: the records do not say"

    def _young(self) -> str:
        if self.retention_ms is None:
            return "younger than the shortest retention a broker allows"
        return f"younger than {self._bound()}, so they did not expire"

    def _old(self) -> str:
        return f"as old as {self._bound()}"

    def _bound(self) -> str:
        return f"offsets.retention.minutes ({duration_text(self.retention_ms or 0)})"

    def _of_other_topics(self, removed: Removed) -> list[str]:
        """Return what became of the topics, if each of them is gone or recreated."""
        if self.topics is None:
            return []
        said = {}
        for partition, was in sorted(removed.items()):
            now = self.topics.get(partition.topic)
            if now is None:
                said[partition.topic] = f"topic {partition.topic} was deleted: it no longer exists"
            elif was is not None and any(was.topic_id) and now and uuid_text(was.topic_id) != now:
                ids = f"its id was {uuid_text(was.topic_id)} and is {now}"
                said[partition.topic] = f"topic {partition.topic} was deleted and recreated: {ids}"
            else:
                return []
        return list(said.values())
