"""For how long transactions hold a group's offsets open: those that are open now, and those before.

A reader that adds its offsets while it works, and commits once a minute, has them held open nearly always.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from statistics import median_high

from kgroup.admin.diagnose.commits import items_from
from kgroup.admin.diagnose.facts import HELD_OPEN, Facts, missed
from kgroup.admin.discovery import ClusterView
from kgroup.admin.statuses import SPAN_MS, TWICE
from kgroup.domain import value
from kgroup.errors import KgroupError
from kgroup.history.log_items import Marker, PendingCommit
from kgroup.history.sources.live import LiveTopic


@value
class HeldOpen:
    """When each producer wrote the first offset of its open transaction, and how long others took (ms).

    Of those that held offsets open since `from_ms`.
    """

    from_ms: int
    begun_ms: Mapping[int, int]
    took_ms: Sequence[int]

    @property
    def usual_ms(self) -> int:
        """Return for how long a transaction may be open: half of those before ended in half the time."""
        return TWICE * median_high(self.took_ms) if self.took_ms else 0


def look_at_what_is_held_open(cluster: ClusterView, facts: list[Facts]) -> list[Facts]:
    """Read the transactions of the last hour again, of groups with offsets that were seen held open."""
    held = {f.group.group_id: f for f in facts if f.pending and f.recorded is not None}
    if not held:
        return facts
    read: dict[str, HeldOpen | KgroupError] = {}
    try:
        topic = LiveTopic(cluster.transport, cluster.retry.timeout_s)
        for number, names in topic.by_partition(held).items():
            read |= _transactions(topic, number, names, facts[0].now_ms - SPAN_MS)
    except KgroupError as error:
        read = dict.fromkeys(held, error)
    return [f if (seen := read.get(f.group.group_id)) is None else _with(f, seen) for f in facts]


def _with(facts: Facts, seen: HeldOpen | KgroupError) -> Facts:
    if isinstance(seen, KgroupError):
        return facts.also(missed(HELD_OPEN, seen))
    return facts.also(held_open=seen)


def _transactions(
    topic: LiveTopic, number: int, names: Collection[str], from_ms: int
) -> dict[str, HeldOpen | KgroupError]:
    begun: dict[str, dict[int, int]] = {name: {} for name in names}
    took: dict[str, list[int]] = {name: [] for name in names}
    for item in items_from(topic, number, names, from_ms):
        if isinstance(item, PendingCommit):
            begun[item.group].setdefault(item.producer_id, item.commit.timestamp_ms)
        elif isinstance(item, Marker):
            for name, since in begun.items():
                if (first_ms := since.pop(item.producer_id, None)) is not None:
                    took[name].append(item.timestamp_ms - first_ms)
    return {name: HeldOpen(from_ms, begun[name], took[name]) for name in names}
