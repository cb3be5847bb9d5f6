"""Assignors over topic names, as the leader of a classic group runs them (ConsumerPartitionAssignor).

The server-side algorithms serve here too; a topic's name takes the place of its id.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from kgroup.coordinator.assignors import rack_range
from kgroup.coordinator.assignors.interface import Assignment, GroupSpec, MemberSpec
from kgroup.coordinator.assignors.rack_range import Racks, needs_racks
from kgroup.coordinator.assignors.range import RangeAssignor
from kgroup.domain import Topic

Owned = Mapping[str, tuple[int, ...]]
"""Topic name → partition numbers, ascending."""


@dataclass(frozen=True, slots=True)
class MemberSubscription:
    """A member as the leader sees it; `generation` is the one `owned` comes from, -1 if not given."""

    topics: frozenset[str]
    owned: Owned = field(default_factory=dict)
    generation: int = -1
    user_data: bytes | None = None
    instance_id: str | None = None
    rack: str | None = None


RacksByTopic = Mapping[str, Racks]
NO_RACKS: RacksByTopic = {}


class ClientAssignor(Protocol):
    """An assignor of the classic protocol, known to other clients by `name`."""

    @property
    def name(self) -> str: ...

    @property
    def cooperative(self) -> bool:
        """Whether members keep their partitions while a rebalance is under way (KIP-429)."""
        ...

    def user_data(self, generation: int) -> bytes | None:
        """Return what a member adds to its subscription, given the generation of what it owns."""
        ...

    def assign(
        self,
        partitions: Mapping[str, int],
        members: Mapping[str, MemberSubscription],
        racks: RacksByTopic = NO_RACKS,
    ) -> dict[str, dict[str, tuple[int, ...]]]:
        """Return member id → topic → partitions for each member; `partitions` are the counts of known topics.

        `racks` are those of their replicas, as far as they are known.
        """
        ...


class ClientRangeAssignor:
    """Java's and librdkafka's `range`: contiguous shares per topic, static members first.

    Java's is rack-aware since Kafka 3.5; without known racks the two are the same.
    """

    name = "range"
    cooperative = False

    def user_data(self, generation: int) -> bytes | None:
        return None

    def assign(
        self,
        partitions: Mapping[str, int],
        members: Mapping[str, MemberSubscription],
        racks: RacksByTopic = NO_RACKS,
    ) -> dict[str, dict[str, tuple[int, ...]]]:
        if needs_racks(members, racks):
            return rack_range.assign(partitions, members, racks)
        return by_topic_name(RangeAssignor().assign(group_spec(partitions, members, {})))


def group_spec(
    partitions: Mapping[str, int],
    members: Mapping[str, MemberSubscription],
    current: Mapping[str, Owned],
) -> GroupSpec:
    """Return the group as a server-side assignor sees it; topics without a partition count are omitted."""
    subscribed = frozenset().union(*(member.topics for member in members.values()))
    topics = {
        name.encode(): Topic(name, name.encode(), count)
        for name, count in partitions.items()
        if name in subscribed
    }
    specs = {}
    for member_id, member in members.items():
        known = frozenset(name.encode() for name in member.topics if name in partitions)
        owned = {name.encode(): held for name, held in current.get(member_id, {}).items() if held}
        specs[member_id] = MemberSpec(known, owned, member.instance_id)
    homogeneous = len({spec.topic_ids for spec in specs.values()}) <= 1
    return GroupSpec(specs, topics, homogeneous)


def by_topic_name(targets: Mapping[str, Assignment]) -> dict[str, dict[str, tuple[int, ...]]]:
    """Return a server-side assignor's answer, by topic name."""
    return {
        member_id: {topic.decode(): target[topic] for topic in sorted(target)}
        for member_id, target in targets.items()
    }
