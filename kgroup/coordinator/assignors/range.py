"""The `range` assignor: contiguous ranges, the same ones in every topic with as many partitions.

Same outcome as Kafka 4.3.1's RangeAssignor, which ignores racks and current targets.
"""

from __future__ import annotations

from kgroup.coordinator.assignors.interface import (
    NOTHING,
    Assignment,
    GroupSpec,
    MemberSpec,
    by_subscription,
    partitions_of,
)


class RangeAssignor:
    """Per topic: members in order, the first `partitions % members` of them with one partition more.

    Static members come first, by instance id; the others follow by member id. A static member that
    rejoins under a new member id therefore gets its old partitions.
    """

    name = "range"

    def assign(self, group: GroupSpec) -> dict[str, Assignment]:
        """See `Assignor.assign`. Topics with the same subscribers and partition count are co-partitioned."""
        ordered = sorted(group.members.items(), key=_order)
        targets: list[dict[bytes, tuple[int, ...]]] = [{} for _ in ordered]
        members = [member for _, member in ordered]
        for (subscribers, partitions), topic_ids in _alike_topics(group, members).items():
            _give_ranges(targets, subscribers, partitions, topic_ids)
        return {
            member_id: member.current if target == member.current else target or NOTHING
            for (member_id, member), target in zip(ordered, targets, strict=True)
        }


def _order(entry: tuple[str, MemberSpec]) -> tuple[bool, str]:
    member_id, member = entry
    if member.instance_id is None:
        return True, member_id
    return False, member.instance_id


def _alike_topics(
    group: GroupSpec, members: list[MemberSpec]
) -> dict[tuple[tuple[int, ...], int], list[bytes]]:
    """Return topic ids by (subscribers in order, partition count): all of one entry are assigned alike."""
    classes = by_subscription(members)
    if len(classes) == 1:
        everybody = tuple(range(len(members)))
        pairs = [(topic_id, everybody) for topic_id in sorted(next(iter(classes)))]
    else:
        pairs = _subscribers_of_topics(classes)
    alike: dict[tuple[tuple[int, ...], int], list[bytes]] = {}
    for topic_id, subscribers in pairs:
        alike.setdefault((subscribers, partitions_of(group, topic_id)), []).append(topic_id)
    return alike


def _subscribers_of_topics(
    classes: dict[frozenset[bytes], list[int]],
) -> list[tuple[bytes, tuple[int, ...]]]:
    groups_of: dict[bytes, list[frozenset[bytes]]] = {}
    for subscription in classes:
        for topic_id in subscription:
            groups_of.setdefault(topic_id, []).append(subscription)
    merged: dict[tuple[frozenset[bytes], ...], tuple[int, ...]] = {}
    pairs = []
    for topic_id in sorted(groups_of):
        key = tuple(groups_of[topic_id])
        subscribers = merged.get(key)
        if subscribers is None:
            subscribers = tuple(sorted(index for group in key for index in classes[group]))
            merged[key] = subscribers
        pairs.append((topic_id, subscribers))
    return pairs


def _give_ranges(
    targets: list[dict[bytes, tuple[int, ...]]],
    subscribers: tuple[int, ...],
    partitions: int,
    topic_ids: list[bytes],
) -> None:
    everything = tuple(range(partitions))
    quota, extra = divmod(partitions, len(subscribers))
    start = 0
    for position, index in enumerate(subscribers):
        if start == partitions:
            break
        end = start + quota + (position < extra)
        targets[index].update(dict.fromkeys(topic_ids, everything[start:end]))
        start = end
