"""The `uniform` assignor: sticky, and balanced within one partition.

Same properties as Kafka 4.3.1's UniformAssignor (which ignores racks); which member gets the odd
partition differs, since Kafka's choice follows the order of its hash maps.
"""

from __future__ import annotations

from collections.abc import Iterator

from kgroup.coordinator.assignors.heterogeneous import assign_heterogeneous
from kgroup.coordinator.assignors.interface import (
    NOTHING,
    Assignment,
    AssignorError,
    GroupSpec,
    partitions_of,
)

Piece = tuple[bytes, tuple[int, ...]]
"""Partitions of one topic that have no owner."""


class UniformAssignor:
    """Balance before stickiness, stickiness before anything else."""

    name = "uniform"

    def assign(self, group: GroupSpec) -> dict[str, Assignment]:
        """See `Assignor.assign`. With like subscriptions the moves are the fewest that balance needs."""
        if not group.members:
            return {}
        if group.homogeneous:
            return _assign_homogeneous(group)
        return assign_heterogeneous(group)


def _assign_homogeneous(group: GroupSpec) -> dict[str, Assignment]:
    """Trim every member to its quota, then hand what is free to those below theirs.

    The work is in the number of (member, topic) pairs, not of partitions: tuples change hands whole
    or in slices.
    """
    subscribed = next(iter(group.members.values())).topic_ids
    counts = {topic_id: partitions_of(group, topic_id) for topic_id in sorted(subscribed)}
    order = sorted(group.members)
    targets: dict[str, Assignment] = {
        member_id: _only(group.members[member_id].current, counts) for member_id in order
    }
    free = _unowned(targets, counts)
    quotas = _quotas(targets, sum(counts.values()))
    hungry: list[tuple[str, int]] = []
    for member_id, (size, quota) in quotas.items():
        if size > quota:
            targets[member_id], surplus = _trimmed(targets[member_id], quota)
            free.extend(surplus)
        elif size < quota:
            hungry.append((member_id, quota - size))
    _feed(targets, hungry, free)
    return targets


def _only(current: Assignment, counts: dict[bytes, int]) -> Assignment:
    if counts.keys() >= current.keys():
        return current
    return {topic_id: owned for topic_id, owned in current.items() if topic_id in counts}


def _unowned(targets: dict[str, Assignment], counts: dict[bytes, int]) -> list[Piece]:
    """What nobody owns, topic by topic."""
    owned: dict[bytes, list[tuple[int, ...]]] = {topic_id: [] for topic_id in counts}
    for target in targets.values():
        for topic_id, partitions in target.items():
            owned[topic_id].append(partitions)
    everything: dict[int, tuple[int, ...]] = {}
    free: list[Piece] = []
    for topic_id, count in counts.items():
        pieces = owned[topic_id]
        taken = sum(map(len, pieces))
        if taken == count:
            continue
        full = everything.get(count)
        if full is None:
            full = everything[count] = tuple(range(count))
        if not taken:
            free.append((topic_id, full))
        else:
            held = set().union(*pieces)
            free.append((topic_id, tuple(p for p in full if p not in held)))
    return free


def _quotas(targets: dict[str, Assignment], total: int) -> dict[str, tuple[int, int]]:
    """Each member's (present size, quota); quotas add up to `total` and differ by at most one.

    The larger quota goes to members that fill it already, then to the last of the others.
    """
    quota, extra = divmod(total, len(targets))
    sizes = {member_id: sum(map(len, target.values())) for member_id, target in targets.items()}
    larger = [member_id for member_id, size in sizes.items() if size > quota][:extra]
    if len(larger) < extra:
        rest = [member_id for member_id, size in sizes.items() if size <= quota]
        larger += rest[len(larger) - extra :]
    quotas = {member_id: (size, quota) for member_id, size in sizes.items()}
    for member_id in larger:
        quotas[member_id] = (sizes[member_id], quota + 1)
    return quotas


def _trimmed(target: Assignment, quota: int) -> tuple[Assignment, list[Piece]]:
    """The first `quota` partitions of a target in topic order, and the rest of it."""
    kept: dict[bytes, tuple[int, ...]] = {}
    surplus: list[Piece] = []
    for topic_id in sorted(target):
        partitions = target[topic_id]
        if quota:
            kept[topic_id] = partitions[:quota]
        if len(partitions) > quota:
            surplus.append((topic_id, partitions[quota:]))
        quota = max(quota - len(partitions), 0)
    return kept, surplus


def _feed(targets: dict[str, Assignment], hungry: list[tuple[str, int]], free: list[Piece]) -> None:
    """Hand the free partitions, in order, to the members below their quota."""
    supply = _Supply(free)
    for member_id, wanted in hungry:
        target = dict(targets[member_id])
        for topic_id, partitions in supply.take(wanted):
            held = target.get(topic_id)
            target[topic_id] = tuple(sorted(held + partitions)) if held else partitions
        targets[member_id] = target or NOTHING
    if supply.left():
        raise AssignorError("Partitions were left unassigned")


class _Supply:
    """A queue of free partitions from which any number can be taken."""

    def __init__(self, pieces: list[Piece]) -> None:
        self._pieces = pieces
        self._next = 0
        self._used = 0

    def take(self, wanted: int) -> Iterator[Piece]:
        while wanted and self._next < len(self._pieces):
            topic_id, partitions = self._pieces[self._next]
            end = min(self._used + wanted, len(partitions))
            yield topic_id, partitions[self._used : end]
            wanted -= end - self._used
            self._used = end
            if end == len(partitions):
                self._next += 1
                self._used = 0

    def left(self) -> bool:
        return self._next < len(self._pieces)
