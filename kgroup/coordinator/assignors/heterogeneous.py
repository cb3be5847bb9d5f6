"""The `uniform` assignor for members that do not all subscribe to the same topics.

Kafka 4.3.1's approach (UniformHeterogeneousAssignmentBuilder): keep what is owned and still subscribed,
assign what is free to the least loaded subscribers, then move partitions from the most to the least
loaded subscriber of a topic while their loads differ by more than one.

Members are numbered, and a member's place in a heap is the one integer `load * members + number`.
Members with equal subscriptions share a heap, so a topic visits its distinct subscriptions and not
its subscribers.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from heapq import heapify, heappop, heappush, heapreplace
from itertools import chain

from kgroup.coordinator.assignors.interface import (
    NOTHING,
    Assignment,
    GroupSpec,
    by_subscription,
    partitions_of,
)

MAX_PASSES = 16
FREE = -1
# Sorting a heap again costs its length; inserting costs little for each member whose load rose.
FEW = 16


def assign_heterogeneous(group: GroupSpec) -> dict[str, Assignment]:
    """Return a target for every member; see `Assignor.assign`.

    Afterwards no single move within a topic makes two loads more equal, unless `MAX_PASSES` were not
    enough. A balanced group keeps its targets.
    """
    return _Builder(group).build()


class _Builder:
    """The working state: the owner of each partition, and the load of each member."""

    def __init__(self, group: GroupSpec) -> None:
        self._ids = sorted(group.members)
        self._members = [group.members[member_id] for member_id in self._ids]
        self._count = len(self._ids)
        self._loads = [0] * self._count
        classes = by_subscription(self._members)
        self._class_members = list(classes.values())
        self._class_of = [0] * self._count
        self._topic_classes: dict[bytes, list[int]] = {}
        for number, (subscription, indices) in enumerate(classes.items()):
            for index in indices:
                self._class_of[index] = number
            for topic_id in subscription:
                self._topic_classes.setdefault(topic_id, []).append(number)
        counts = {topic_id: partitions_of(group, topic_id) for topic_id in self._topic_classes}
        self._topics = sorted(counts, key=lambda topic_id: self._topic_order(topic_id, counts[topic_id]))
        self._owners = {topic_id: [FREE] * counts[topic_id] for topic_id in self._topics}
        self._touched: dict[bytes, set[int]] = {}
        self._heaps: list[list[int]] = []
        self._highest = 0

    def _topic_order(self, topic_id: bytes, partitions: int) -> tuple[float, int, bytes]:
        subscribers = sum(len(self._class_members[number]) for number in self._topic_classes[topic_id])
        return -partitions / subscribers, subscribers, topic_id

    def build(self) -> dict[str, Assignment]:
        self._keep_owned()
        self._heaps = [
            sorted(self._loads[index] * self._count + index for index in indices)
            for indices in self._class_members
        ]
        for topic_id in self._topics:
            self._give_free(topic_id)
        self._balance()
        return self._targets()

    def _keep_owned(self) -> None:
        for index, member in enumerate(self._members):
            load = 0
            subscription = member.topic_ids
            for topic_id, partitions in member.current.items():
                if topic_id in subscription:
                    load += len(partitions)
                    owners = self._owners[topic_id]
                    for partition in partitions:
                        owners[partition] = index
            self._loads[index] = load

    def _give_free(self, topic_id: bytes) -> None:
        """Assign each free partition to the subscriber that is least loaded at that moment.

        Members with equal loads get one each, by number, and then meet those whose load was one higher: a
        round at a time, not a partition. The heaps are sorted before and after.
        """
        owners = self._owners[topic_id]
        free = owners.count(FREE)
        if not free:
            return
        heaps = [self._heaps[number] for number in self._topic_classes[topic_id]]
        lowest = sorted(chain.from_iterable(heap[:free] for heap in heaps))[:free]
        takers = self._takers(lowest, free)
        rest = iter(takers)
        owners[:] = takers if free == len(owners) else [next(rest) if o == FREE else o for o in owners]
        for index in takers:
            self._loads[index] += 1
        self._touched.setdefault(topic_id, set()).update(takers)
        for heap in heaps:
            raised = bisect_right(heap, lowest[-1])
            indices = [key % self._count for key in heap[:raised]]
            keys = [self._loads[index] * self._count + index for index in indices]
            if raised * FEW < len(heap):
                del heap[:raised]
                for key in keys:
                    insort(heap, key)
            else:
                heap[:raised] = keys
                heap.sort()

    def _takers(self, lowest: list[int], count: int) -> list[int]:
        """Return so many members, each as often as it gets a partition, in the order of the partitions."""
        takers: list[int] = []
        level: list[int] = []
        start = 0
        # The last is beyond every load that can be reached.
        keys = [*lowest, lowest[-1] + (count + 1) * self._count]
        while len(takers) < count:
            load = keys[start] // self._count
            end = bisect_left(keys, (load + 1) * self._count, start)
            level = sorted(level + [key % self._count for key in keys[start:end]])
            start = end
            takers += level * min(keys[start] // self._count - load, count // len(level) + 1)
        return takers[:count]

    def _balance(self) -> None:
        """Go through the topics until a whole round moves nothing.

        First only members above the average give, so that a member below it never gives to one even
        lower while a third has too much.
        """
        shared = [
            topic_id
            for topic_id in self._topics
            if sum(len(self._class_members[number]) for number in self._topic_classes[topic_id]) > 1
        ]
        # No load is above: most topics need no second look.
        self._highest = max(self._loads)
        average, remainder = divmod(sum(self._loads), self._count)
        for limit in (average + 1, average) if remainder else (average,):
            for topic_id in shared:
                self._balance_topic(topic_id, limit)
        quiet = 0
        for _ in range(MAX_PASSES):
            for topic_id in shared:
                quiet = 0 if self._balance_topic(topic_id, 0) else quiet + 1
                if quiet >= len(shared):
                    return

    def _balance_topic(self, topic_id: bytes, limit: int) -> int:
        """Move partitions of one topic from members with more than `limit` while that evens loads out."""
        owners, loads, count = self._owners[topic_id], self._loads, self._count
        takers = [(self._lowest_of_class(number), number) for number in self._topic_classes[topic_id]]
        limit = max(limit, min(takers)[0] // count + 1)
        if self._highest <= limit or max((loads[index] for index in set(owners)), default=0) <= limit:
            return 0
        heapify(takers)
        holdings = self._holdings(topic_id, limit + 1)
        givers = [-(loads[index] * count + index) for index in holdings]
        heapify(givers)
        touched = self._touched.setdefault(topic_id, set())
        moved = 0
        while givers:
            giver, taker = -givers[0] % count, self._least_loaded(takers)
            if loads[giver] <= max(limit, loads[taker] + 1):
                break
            owners[holdings[giver].pop()] = taker
            touched.update((giver, taker))
            moved += 1
            self._shift(giver, taker, takers)
            if holdings[giver]:
                heapreplace(givers, -(loads[giver] * count + giver))
            else:
                heappop(givers)
        self._highest = max(loads)
        return moved

    def _holdings(self, topic_id: bytes, load: int) -> dict[int, list[int]]:
        """Return the topic's partitions of each member with at least `load`; those it owned already first."""
        mine: dict[int, list[int]] = {}
        gained: dict[int, list[int]] = {}
        before: dict[int, set[int]] = {}
        for index in self._touched.get(topic_id, ()):
            before[index] = set(self._members[index].current.get(topic_id, ()))
        for partition, index in enumerate(self._owners[topic_id]):
            if self._loads[index] < load:
                continue
            if index in before and partition not in before[index]:
                gained.setdefault(index, []).append(partition)
            else:
                mine.setdefault(index, []).append(partition)
        for index, partitions in gained.items():
            mine.setdefault(index, []).extend(partitions)
        return mine

    def _lowest_of_class(self, number: int) -> int:
        """Return the first entry of a class's heap whose load is up to date; drop the others."""
        heap, loads, count = self._heaps[number], self._loads, self._count
        while loads[heap[0] % count] != heap[0] // count:
            heappop(heap)
        return heap[0]

    def _least_loaded(self, takers: list[tuple[int, int]]) -> int:
        """Return the least loaded member of the classes in heap `takers`, whose entries may be too low."""
        while True:
            key, number = takers[0]
            lowest = self._lowest_of_class(number)
            if lowest == key:
                return key % self._count
            heapreplace(takers, (lowest, number))

    def _shift(self, giver: int, taker: int, takers: list[tuple[int, int]]) -> None:
        """Count one partition from giver to taker; the giver may now be the lowest of its class."""
        for index, change in ((giver, -1), (taker, 1)):
            self._loads[index] += change
            number = self._class_of[index]
            heappush(self._heaps[number], self._loads[index] * self._count + index)
        number, key = self._class_of[giver], self._loads[giver] * self._count + giver
        if self._lowest_of_class(number) == key:
            heappush(takers, (key, number))

    def _targets(self) -> dict[str, Assignment]:
        """Return current targets where nothing changed; otherwise rebuild the topics that were touched."""
        changed: list[dict[bytes, tuple[int, ...]]] = [{} for _ in range(self._count)]
        # Topics share tuples: hundreds of thousands would cost the garbage collector more than these loops.
        same: dict[tuple[int, ...], tuple[int, ...]] = {}
        for topic_id in sorted(self._touched):
            held: defaultdict[int, list[int]] = defaultdict(list)
            for partition, index in enumerate(self._owners[topic_id]):
                held[index].append(partition)
            for index in self._touched[topic_id]:
                partitions = tuple(held[index])
                changed[index][topic_id] = same.setdefault(partitions, partitions)
        return {member_id: self._target(index, changed[index]) for index, member_id in enumerate(self._ids)}

    def _target(self, index: int, changed: dict[bytes, tuple[int, ...]]) -> Assignment:
        member = self._members[index]
        if not changed and member.topic_ids >= member.current.keys():
            return member.current
        target = {
            topic_id: held
            for topic_id, held in {**member.current, **changed}.items()
            if held and topic_id in member.topic_ids
        }
        return member.current if target == member.current else target or NOTHING
