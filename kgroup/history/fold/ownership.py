"""Which partitions of a group have an owner, and for how long one had none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kgroup.domain import MemberStatus, TopicPartition
from kgroup.history.fold.events import Unowned
from kgroup.history.fold.view import RecordedMember


def owners(members: Mapping[str, RecordedMember]) -> dict[TopicPartition, str]:
    """Return each partition's owner; one that left for now counts, but does not read."""
    return {p: m.member_id for m in members.values() if m.state != MemberStatus.LEFT for p in m.holds}


GivenUp = dict[TopicPartition, RecordedMember]
"""Partitions that a classic generation revoked from a member that stayed, without a new owner; by member."""


@dataclass(slots=True)
class Ownership:
    """The partitions of one group that lost their owner, and when (ms); kept while the group exists."""

    free_since: dict[TopicPartition, int] = field(default_factory=dict)
    given_up: GivenUp = field(default_factory=dict)

    def generation(
        self,
        before: Mapping[str, RecordedMember],
        after: Mapping[str, RecordedMember],
        freed: frozenset[TopicPartition],
    ) -> GivenUp:
        """Note what a new generation revoked from members that stayed; return the previous one's."""
        old, self.given_up = self.given_up, {}
        holders = owners(before)
        for partition in freed:
            # Note what a new generation revoked from members that stayed; return the previous one's.
            member = after.get(holders.get(partition, ""))
            if member is not None and partition in member.owned:
                self.given_up[partition] = member
        return old

    def change(
        self, before: Mapping[str, RecordedMember], after: Mapping[str, RecordedMember], timestamp_ms: int
    ) -> tuple[frozenset[TopicPartition], tuple[Unowned, ...]]:
        """Note what became free in a step; return what got an owner again, and after how long."""
        # Members that no record touched are the same objects: in a group of thousands few change.
        touched = [m for m in before.keys() | after.keys() if before.get(m) is not after.get(m)]
        had = owners({m: before[m] for m in touched if m in before})
        has = owners({m: after[m] for m in touched if m in after})
        freed = frozenset(p for p in had if p not in has)
        if freed:
            # Another member may own it already: a record of the new owner may come first.
            kept = owners({m: v for m, v in after.items() if m not in set(touched)})
            freed = frozenset(p for p in freed if p not in kept)
        for partition in freed:
            self.free_since.setdefault(partition, timestamp_ms)
        gaps = [
            Unowned(p.topic, p.partition, max(0, timestamp_ms - self.free_since.pop(p)))
            for p in sorted(has)
            if p in self.free_since
        ]
        return freed, tuple(gaps)

    def rename(self, names: Mapping[str, str]) -> None:
        """Replace ids of topics by names."""
        for partition in [p for p in self.free_since if p.topic in names]:
            named = TopicPartition(names[partition.topic], partition.partition)
            self.free_since[named] = self.free_since.pop(partition)
