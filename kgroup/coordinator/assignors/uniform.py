"""The `uniform` assignor: sticky, and balanced within one partition.

Same properties as Kafka 4.3.1's UniformAssignor (which ignores racks); which member gets the odd
partition differs, since Kafka's choice follows the order of its hash maps.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain
from operator import attrgetter

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
NO_PIECE: Piece = (b"", ())
Cut = dict[tuple[int, int, int], list[tuple[int, ...]]]
"""Shares by the id of the partitions they were cut of, the place of the first and their size."""


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
    """Trim every member to its quota, then assign what is free to those below theirs.

    The work grows with the number of (member, topic) pairs, not of partitions: tuples change owners whole
    or in slices. Members are put in order only where a choice depends on it.
    """
    topic_ids = sorted(next(iter(group.members.values())).topic_ids)
    counts = {topic_id: partitions_of(group, topic_id) for topic_id in topic_ids}
    partitions = sum(counts.values())
    targets = _owned(group, counts)
    if targets and _is_one_each(targets, partitions):
        return targets
    by_size = _by_size(targets) if targets else {0: list(group.members)}
    held = sum(size * len(member_ids) for size, member_ids in by_size.items())
    free = _unowned(targets, counts) if held < partitions else []
    hungry: list[tuple[list[str], int]] = []
    for member_ids, size, target_size in _unlevel(by_size, *divmod(partitions, len(group.members))):
        if size < target_size:
            hungry.append((member_ids, target_size - size))
            continue
        for member_id in member_ids:
            targets[member_id], surplus = _trimmed(targets[member_id], target_size)
            free.extend(surplus)
    _feed(targets, hungry, free)
    if len(targets) < len(group.members):
        targets = {member_id: member.current for member_id, member in group.members.items()} | targets
    return targets


def _owned(group: GroupSpec, counts: dict[bytes, int]) -> dict[str, Assignment]:
    """Return the present targets without the topics that have no count; empty if none owns a partition."""
    if not any(map(attrgetter("current"), group.members.values())):
        return {}
    targets = {member_id: member.current for member_id, member in group.members.items()}
    if not set().union(*targets.values()) <= counts.keys():
        for member_id, target in targets.items():
            if not target.keys() <= counts.keys():
                targets[member_id] = {topic: held for topic, held in target.items() if topic in counts}
    return targets


def _is_one_each(targets: dict[str, Assignment], partitions: int) -> bool:
    """Return whether each partition has a member of its own, as in most large groups."""
    if partitions > len(targets):
        return False
    topics = list(map(len, targets.values()))
    return sum(topics) == partitions and max(topics) <= 1


def _by_size(targets: dict[str, Assignment]) -> dict[int, list[str]]:
    """Return members by their target's size, ascending."""
    by_size: defaultdict[int, list[str]] = defaultdict(list)
    for member_id, target in targets.items():
        size = 0
        for partitions in target.values():
            size += len(partitions)
        by_size[size].append(member_id)
    return dict(sorted(by_size.items()))


def _unowned(targets: dict[str, Assignment], counts: dict[bytes, int]) -> list[Piece]:
    """Return partitions without owner, by topic."""
    owned: dict[bytes, list[tuple[int, ...]]] = {topic_id: [] for topic_id in counts}
    for target in filter(None, targets.values()):
        for topic_id, partitions in target.items():
            owned[topic_id].append(partitions)
    everything = {count: tuple(range(count)) for count in set(counts.values())}
    free: list[Piece] = []
    for topic_id, count in counts.items():
        if sum(map(len, owned[topic_id])) < count:
            held = set().union(*owned[topic_id])
            full = everything[count]
            free.append((topic_id, tuple(p for p in full if p not in held) if held else full))
    return free


def _unlevel(by_size: dict[int, list[str]], quota: int, extra: int) -> Iterator[tuple[list[str], int, int]]:
    """Yield members whose size has to change, ascending, with their size and the one they should have.

    `extra` members get one more than `quota`: those that have it already, then the last.
    """
    missing = extra - sum(len(member_ids) for size, member_ids in by_size.items() if size > quota)
    # Only some of those above the quota, or only some of the others, are to be larger than the rest.
    mixed = {
        size: sorted(member_ids)
        for size, member_ids in by_size.items()
        if missing and (size > quota) == (missing < 0)
    }
    first = sorted(chain.from_iterable(mixed.values()))[-abs(missing)] if mixed else ""
    for size, member_ids in by_size.items():
        target_size = quota + (size > quota)
        rest = mixed.get(size, member_ids)
        at = bisect_left(rest, first) if size in mixed else len(rest)
        if at < len(rest):
            yield rest[at:], size, target_size + (1 if missing > 0 else -1)
        if at and size != target_size:
            yield sorted(rest[:at]), size, target_size


def _trimmed(target: Assignment, quota: int) -> tuple[Assignment, list[Piece]]:
    """Return the first `quota` partitions of a target in topic order, and the rest of it."""
    kept: dict[bytes, tuple[int, ...]] = {}
    surplus: list[Piece] = []
    for topic_id in sorted(target):
        partitions = target[topic_id]
        if quota:
            kept[topic_id] = partitions[:quota]
        if len(partitions) > quota:
            surplus.append((topic_id, partitions[quota:]))
        quota = max(quota - len(partitions), 0)
    return kept or NOTHING, surplus


def _feed(targets: dict[str, Assignment], hungry: list[tuple[list[str], int]], free: list[Piece]) -> None:
    """Assign the free partitions, in order, to the members that want so many more."""
    cut: Cut = {}
    pieces = iter(free)
    topic_id, partitions = next(pieces, NO_PIECE)
    used = 0
    for member_ids, needed in hungry:
        new = not targets.get(member_ids[0])
        waiting = iter(member_ids)
        for member_id in waiting:
            target = dict(targets.get(member_id, NOTHING))
            missing = needed
            while missing and partitions:
                share = partitions[used : used + missing]
                used += len(share)
                missing -= len(share)
                held = target.get(topic_id)
                target[topic_id] = tuple(sorted(held + share)) if held else share
                if used == len(partitions):
                    topic_id, partitions = next(pieces, NO_PIECE)
                    used = 0
            targets[member_id] = target
            if new:
                # Nearly all members of a new group. As zip asks for a share first, it drops no member.
                for share, another in zip(_shares(partitions, used, needed, cut), waiting, strict=False):
                    targets[another] = {topic_id: share}
                    used += needed
    if partitions:
        raise AssignorError("Partitions were left unassigned")


def _shares(partitions: tuple[int, ...], start: int, size: int, cut: Cut) -> Iterable[tuple[int, ...]]:
    """Return the shares of one size from `start` on that end before the partitions do."""
    places = range(start, len(partitions) - size, size)
    if len(partitions) % size:
        return (partitions[at : at + size] for at in places)
    # Topics of one size are cut alike: shared, a new group has half as many objects. `free` keeps ids valid.
    key = (id(partitions), start, size)
    if key not in cut:
        cut[key] = [partitions[at : at + size] for at in places]
    return cut[key]
