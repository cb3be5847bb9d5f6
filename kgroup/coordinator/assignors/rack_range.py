"""The classic protocol's `range` with known racks: members get partitions with a replica there (KIP-881).

It gives the outcome of RangeAssignor in Kafka 4.3.1's consumer. Shares are as large as without racks, topics
with the same subscribers and partition count stay co-partitioned, and racks decide the rest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

Racks = Sequence[Iterable[str]]
"""The racks of each partition's replicas, by partition number."""


class Racked(Protocol):
    """A member as far as ranges look at it; an empty rack is none."""

    @property
    def topics(self) -> frozenset[str]: ...

    @property
    def instance_id(self) -> str | None: ...

    @property
    def rack(self) -> str | None: ...


@dataclass(slots=True)
class _Topic:
    """The free partitions of one topic, and their readers."""

    name: str
    members: tuple[tuple[str, str | None], ...]
    """Member ids in order, each with its rack."""
    replicas: tuple[frozenset[str], ...]
    needs_racks: bool
    each: int
    with_one_more: int
    free: dict[int, None]
    given: dict[str, list[int]] = field(default_factory=dict)

    def room(self, member: str) -> int:
        """Return how many more partitions the member may get."""
        most = self.each + (1 if self.with_one_more > 0 else 0)
        return max(0, most - len(self.given.get(member, ())))

    def matches_rack(self, rack: str | None, partition: int) -> bool:
        """Return whether a reader there may get it: without a rack, or on one of its."""
        return rack is None or rack in self.replicas[partition]

    def give(self, member: str, partitions: Sequence[int]) -> None:
        held = self.given.setdefault(member, [])
        held += partitions
        if len(held) > self.each:
            self.with_one_more -= 1
        for partition in partitions:
            del self.free[partition]


def needs_racks(members: Mapping[str, Racked], racks: Mapping[str, Racks]) -> bool:
    """Whether racks decide anything: some members are on racks of replicas, and not all replicas on all."""
    subscribed = frozenset().union(*(member.topics for member in members.values()))
    return any(
        _worth_it({m.rack for m in members.values() if m.rack and topic in m.topics}, _sets(racks[topic]))
        for topic in subscribed & racks.keys()
    )


def assign(
    partitions: Mapping[str, int], members: Mapping[str, Racked], racks: Mapping[str, Racks]
) -> dict[str, dict[str, tuple[int, ...]]]:
    """Return member id → topic → partitions for every member; omit topics without a partition count."""
    ordered = sorted(members.items(), key=lambda pair: _order(*pair))
    subscribed = frozenset().union(*(member.topics for member in members.values()))
    topics = [
        _topic(name, partitions[name], ordered, racks.get(name, ()))
        for name in sorted(subscribed)
        if partitions.get(name)
    ]
    if any(topic.needs_racks for topic in topics):
        _by_racks(topics)
    for topic in topics:
        _ranges(topic, lambda rack, partition: True)
    return {
        member_id: {t.name: tuple(sorted(t.given[member_id])) for t in topics if t.given.get(member_id)}
        for member_id in members
    }


def _order(member_id: str, member: Racked) -> tuple[bool, str]:
    if member.instance_id is None:
        return True, member_id
    return False, member.instance_id


def _topic(name: str, count: int, ordered: Sequence[tuple[str, Racked]], racks: Racks) -> _Topic:
    readers = tuple((member_id, m.rack or None) for member_id, m in ordered if name in m.topics)
    # A partition whose replicas are unknown is on no rack.
    replicas = (*_sets(racks[:count]), *(frozenset[str]() for _ in range(count - len(racks))))
    mine = {rack for _, rack in readers if rack is not None}
    least, more = divmod(count, len(readers))
    return _Topic(
        name, readers, replicas, _worth_it(mine, replicas), least, more, dict.fromkeys(range(count))
    )


def _sets(racks: Racks) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(rack for rack in replicas if rack) for replicas in racks)


def _worth_it(mine: set[str], replicas: Iterable[frozenset[str]]) -> bool:
    racks = tuple(replicas)
    everywhere = frozenset().union(*racks)
    return bool(mine & everywhere) and any(some != everywhere for some in racks)


def _by_racks(topics: Iterable[_Topic]) -> None:
    """Assign partitions by rack: for topics alike together, for others one topic at a time."""
    alike: dict[tuple[object, int], list[_Topic]] = defaultdict(list)
    for topic in topics:
        alike[topic.members, len(topic.replicas)].append(topic)
    for same in alike.values():
        if len(same) > 1:
            _together(same)
        elif same[0].needs_racks:
            _ranges(same[0], same[0].matches_rack)


def _together(topics: Sequence[_Topic]) -> None:
    """Assign each partition number of all topics to one member that has replicas of all on its rack."""
    first = topics[0]
    # If no member has a rack, the racks of partitions are ignored.
    if all(rack is None for _, rack in first.members):
        return
    left = dict(first.members)
    for number in range(len(first.replicas)):
        for member, rack in left.items():
            if all(topic.matches_rack(rack, number) and topic.room(member) for topic in topics):
                break
        else:
            continue
        for topic in topics:
            topic.give(member, [number])
        if not any(topic.room(member) for topic in topics):
            del left[member]


def _ranges(topic: _Topic, may: Callable[[str | None, int], bool]) -> None:
    """Assign to each member in order the first partitions it may have, up to its share."""
    for member, rack in topic.members:
        if not topic.free:
            return
        room = topic.room(member)
        taken = [partition for partition in topic.free if may(rack, partition)][:room]
        if taken:
            topic.give(member, taken)
