"""What kgroup writes into the metadata of its commits, so that a history can name the actor.

`kgroup plan=1f0c9a2e by=alice@ops-1 why=replay after INC-4411`: plan id, who, and why if a reason was given.
At most MARK_LIMIT characters, far below the broker's offset.metadata.max.bytes (4096 by default).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MARK_LIMIT = 200
_MARK = re.compile(r"kgroup plan=(?P<plan>\S+) by=(?P<by>\S+)(?: why=(?P<why>.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Mark:
    """Who moved an offset by which plan, and why."""

    plan_id: str
    actor: str
    reason: str | None = None

    @property
    def text(self) -> str:
        """The metadata to commit; a long reason is cut."""
        actor = re.sub(r"\s+", "_", self.actor)[:80] or "unknown"
        why = " ".join((self.reason or "").split())
        return (f"kgroup plan={self.plan_id} by={actor}" + (f" why={why}" if why else ""))[:MARK_LIMIT]

    @property
    def words(self) -> str:
        """The mark for people: who, by which plan, and why."""
        return f"by {self.actor}, plan {self.plan_id}" + (f": {self.reason}" if self.reason else "")


def mark_in(metadata: str) -> Mark | None:
    """Return the mark in a commit's metadata; None for a commit that kgroup did not make."""
    match = _MARK.fullmatch(metadata) if metadata.startswith("kgroup ") else None
    return Mark(match["plan"], match["by"], match["why"]) if match else None
