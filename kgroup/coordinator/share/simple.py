"""Kafka's SimpleAssignor: as many members to one partition as to another, as many partitions to each member.

What a member has stays if that allows it. The orders of Java's hash tables break ties, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import ceil
from typing import NamedTuple, TypeAlias

from kgroup.coordinator.share.member import NONE, Partitions
from kgroup.coordinator.tasks.java_order import DEFAULT_CAPACITY, HashTable, hash_map_order

NAME = "simple"
Place: TypeAlias = tuple[bytes, int]
"""A partition: topic id and number."""


class Reader(NamedTuple):
    """A member: the existing topics it subscribes to, by name, and its target so far."""

    topics: Mapping[str, bytes]
    target: Partitions


def assign(
    readers: Mapping[str, Reader], assignable: Mapping[bytes, Iterable[int]], *, homogeneous: bool
) -> dict[str, Partitions]:
    """Return a target for each member, of the partitions that are `assignable` in each topic.

    `homogeneous` is whether the coordinator found that all members subscribe to the same topics.
    """
    order = hash_map_order(readers)
    members = [readers[member_id] for member_id in order]
    targets: list[dict[bytes, set[int]]] = [
        {topic_id: set(numbers) for topic_id, numbers in member.target.items()} for member in members
    ]
    if homogeneous:
        _homogeneous(members, targets, assignable)
    else:
        topics = dict.fromkeys(t for member in members for t in member.topics.values())
        if not topics:
            return dict.fromkeys(order, NONE)
        for topic_id in topics:
            places = [(topic_id, number) for number in sorted(assignable.get(topic_id, ()))]
            subscribers = [at for at, member in enumerate(members) if topic_id in member.topics.values()]
            _Sharing(targets, subscribers, {topic_id}, places, lambda partition: partition[1]).carry_out()
    return {
        member_id: {topic_id: tuple(sorted(numbers)) for topic_id, numbers in target.items()}
        for member_id, target in zip(order, targets, strict=True)
    }


def _homogeneous(
    members: Sequence[Reader], targets: list[dict[bytes, set[int]]], assignable: Mapping[bytes, Iterable[int]]
) -> None:
    subscribed = members[0].topics
    names = hash_map_order(subscribed, max(int(len(subscribed) / 0.75) + 1, DEFAULT_CAPACITY))
    topics = [subscribed[name] for name in names]
    for target in targets:
        for topic_id in target.keys() - set(topics):
            del target[topic_id]
    places = [(topic_id, number) for topic_id in topics for number in sorted(assignable.get(topic_id, ()))]
    _Sharing(targets, range(len(members)), set(topics), places, _place_hash).carry_out()


class _Sharing:
    """One assignment under way: `places`, all of some topics, among the members that subscribe to these.

    Members are known by their number. `targets` are changed in place.
    """

    def __init__(
        self,
        targets: list[dict[bytes, set[int]]],
        members: Sequence[int],
        topics: set[bytes],
        places: Sequence[Place],
        hash_of: Callable[[Place], int],
    ) -> None:
        self.targets = targets
        self.members = members
        self.places = places
        self.sharing = -(-len(members) // len(places)) if places else 0
        """How many members each place should have."""
        self.wanted = [0] * len(targets)
        """How many places each member should have."""
        portion = self.sharing * len(places) / len(members)
        for at, member in enumerate(members):
            self.wanted[member] = ceil(portion * (at + 1)) - ceil(portion * at)
        self.by_place: dict[Place, HashTable[int]] = {}
        self.order: HashTable[Place] = HashTable(hash_of, int((len(places) + 1) / 0.75 + 1))
        self.by_member: dict[int, HashTable[Place]] = {}
        for member, target in enumerate(targets):
            for topic_id in (topic for topic in _in_order(target) if topic in topics):
                for number in sorted(target[topic_id]):
                    self._of_place((topic_id, number)).add(member)
                    self.by_member.setdefault(member, HashTable(hash_of)).add((topic_id, number))
        self._hash_of = hash_of

    def carry_out(self) -> None:
        """Take the surplus from members, then from places; assign what is missing."""
        for member, places in self.by_member.items():
            for partition in list(places)[: max(len(places) - self.wanted[member], 0)]:
                self._take(partition, member)
        for partition, members in self.by_place.items():
            for member in list(members)[: max(len(members) - self.sharing, 0)]:
                self._take(partition, member)
        for partition in self.places:
            self._of_place(partition)
        self._give()

    def _of_place(self, partition: Place) -> HashTable[int]:
        if partition not in self.by_place:
            self.by_place[partition] = HashTable(int)
            self.order.compute(partition)
        return self.by_place[partition]

    def _take(self, partition: Place, member: int) -> None:
        topic_id, number = partition
        self.targets[member][topic_id].discard(number)
        self.by_place[partition].remove(member)
        self.by_member[member].remove(partition)

    def _give(self) -> None:
        """Go round the members with too few, once through the places; some may stay with too few."""
        unfilled = [member for member in sorted(self.members) if self._has(member) < self.wanted[member]]
        at, any_given = 0, False
        for partition in self.order:
            missing = self.sharing - len(self.by_place[partition])
            while missing > 0 and unfilled:
                if at >= len(unfilled):
                    if not any_given:
                        break
                    at, any_given = 0, False
                member = unfilled[at]
                at += 1
                if member in self.by_place[partition]:
                    continue
                topic_id, number = partition
                self.targets[member].setdefault(topic_id, set()).add(number)
                # Kafka does not note it with the place, which is not visited again.
                self.by_member.setdefault(member, HashTable(self._hash_of)).add(partition)
                missing, any_given = missing - 1, True
                if self._has(member) >= self.wanted[member]:
                    at -= 1
                    del unfilled[at]

    def _has(self, member: int) -> int:
        return len(self.by_member.get(member, ()))


def _in_order(topics: Iterable[bytes]) -> HashTable[bytes]:
    table: HashTable[bytes] = HashTable(_uuid_hash)
    for topic_id in topics:
        table.add(topic_id)
    return table


def _uuid_hash(topic_id: bytes) -> int:
    """Return Uuid.hashCode as an unsigned number."""
    value = int.from_bytes(topic_id[:8], "big") ^ int.from_bytes(topic_id[8:], "big")
    return (value >> 32 ^ value) & 0xFFFFFFFF


def _place_hash(partition: Place) -> int:
    """Return TopicIdPartition.hashCode as an unsigned number."""
    return (31 * _uuid_hash(partition[0]) + partition[1]) & 0xFFFFFFFF
