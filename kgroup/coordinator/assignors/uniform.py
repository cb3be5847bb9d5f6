"""The `uniform` assignor: sticky, and balanced within one partition.

Same properties as Kafka 4.3.1's UniformAssignor (which ignores racks); which member gets the odd
partition differs, since Kafka's choice follows the order of its hash maps.
"""

from __future__ import annotations

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
    or in slices.
    """
    order = sorted(group.members)
    counts = {
        topic_id: partitions_of(group, topic_id) for topic_id in sorted(group.members[order[0]].topic_ids)
    }
    owned: dict[bytes, list[tuple[int, ...]]] = {topic_id: [] for topic_id in counts}
    targets = [group.members[member_id].current for member_id in order]
    sizes = _survey(targets, owned)
    free = _unowned(owned, counts)
    quota, extra = divmod(sum(counts.values()), len(order))
    larger = _larger_quotas(sizes, quota, extra)
    hungry: list[tuple[int, int]] = []
    for index, size in enumerate(sizes):
        wanted = quota - size + (index in larger)
        if wanted > 0:
            hungry.append((index, wanted))
        elif wanted < 0:
            targets[index], surplus = _trimmed(targets[index], size + wanted)
            free.extend(surplus)
    _feed(targets, hungry, free)
    return dict(zip(order, targets, strict=True))


def _survey(targets: list[Assignment], owned: dict[bytes, list[tuple[int, ...]]]) -> list[int]:
    """Return the targets' sizes, without topics that `owned` does not know; fill `owned` by topic."""
    sizes: list[int] = []
    for index, target in enumerate(targets):
        size = 0
        if not target:
            sizes.append(size)
            continue
        for topic_id, partitions in target.items():
            pieces = owned.get(topic_id)
            if pieces is None:
                targets[index] = {topic: held for topic, held in target.items() if topic in owned}
            else:
                pieces.append(partitions)
                size += len(partitions)
        sizes.append(size)
    return sizes


def _unowned(owned: dict[bytes, list[tuple[int, ...]]], counts: dict[bytes, int]) -> list[Piece]:
    """Return partitions without owner, by topic."""
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


def _larger_quotas(sizes: list[int], quota: int, extra: int) -> set[int]:
    """Return which `extra` members get one more than `quota`: those that have it already, then the last."""
    if not extra:
        return set()
    over = [index for index, size in enumerate(sizes) if size > quota]
    missing = extra - len(over)
    if missing <= 0:
        return set(over[:extra])
    rest = [index for index, size in enumerate(sizes) if size <= quota]
    return {*over, *rest[-missing:]}


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


def _feed(targets: list[Assignment], hungry: list[tuple[int, int]], free: list[Piece]) -> None:
    """Assign the free partitions, in order, to the members (by index) that want so many more."""
    pieces = iter(free)
    topic_id, partitions = next(pieces, NO_PIECE)
    used = 0
    for index, wanted in hungry:
        if not targets[index] and used + wanted < len(partitions):
            # Nearly all members of a new group.
            targets[index] = {topic_id: partitions[used : used + wanted]}
            used += wanted
            continue
        target = dict(targets[index])
        while wanted and partitions:
            share = partitions[used : used + wanted]
            used += len(share)
            wanted -= len(share)
            held = target.get(topic_id)
            target[topic_id] = tuple(sorted(held + share)) if held else share
            if used == len(partitions):
                topic_id, partitions = next(pieces, NO_PIECE)
                used = 0
        targets[index] = target
    if partitions:
        raise AssignorError("Partitions were left unassigned")
