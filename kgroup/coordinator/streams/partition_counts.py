"""The partition counts that internal topics must have, from those of the existing topics (KIP-1071).

Repartition topics take the largest count of what flows into them; topics that are joined are copartitioned;
a changelog has as many partitions as its subtopology has tasks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from heapq import heappop, heappush

from kgroup.domain import TopicImage
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.streams_records import CopartitionGroup, Subtopology


class WronglyPartitioned(Exception):
    """Topics whose partition counts do not go together; the text is for the application's operator."""


class PartitionCounts:
    """The partition counts of a topology's internal topics, by name, as they are found."""

    def __init__(self, subtopologies: Sequence[Subtopology], image: TopicImage) -> None:
        self._subtopologies = subtopologies
        self._image = image
        self._decided: dict[str, int] = {}
        self._same_fixed: int | None = None  # what all counts are that the application fixed, once compared

    def decide(self) -> Mapping[str, int]:
        """Return the partition counts of all internal topics.

        Raise WronglyPartitioned, and Refused(STREAMS_INVALID_TOPOLOGY) if they cannot be found.
        """
        self._decided.update(self._of_repartition_topics())
        infos = [info for s in self._subtopologies for info in s.repartition_source_topics]
        fixed = dict.fromkeys(info.name for info in infos if info.partitions)
        flexible = {info.name for info in infos if not info.partitions}
        for subtopology in self._subtopologies:
            for group in subtopology.copartition_groups:
                topics = set(_members_of(group, subtopology))
                self._decided.update(self._copartition(topics, fixed, flexible))
        self._decided.update(self._of_changelogs())
        return self._decided

    def _of_repartition_topics(self) -> dict[str, int]:
        counts = {
            info.name: info.partitions
            for subtopology in self._subtopologies
            for info in subtopology.repartition_source_topics
            if info.partitions
        }
        if not self._decide_sinks(counts):
            raise _invalid(
                "Failed to compute number of partitions for all repartition topics. "
                "There may be loops in the topology that cannot be resolved."
            )
        if any(t.name not in counts for s in self._subtopologies for t in s.repartition_source_topics):
            raise _invalid(
                "Failed to compute number of partitions for all repartition topics, because "
                "a repartition source topic is never used as a sink topic."
            )
        return counts

    def _decide_sinks(self, counts: dict[str, int]) -> bool:
        """Add the counts of the topics that subtopologies write; return whether all could be found.

        Kafka goes round the subtopologies until none is open any more, and each takes the largest of the
        counts that are known when it is first served: the round and the place decide. Here only those are
        served that have just got a count, at the same round and place.
        """
        readers: dict[str, list[int]] = {}
        for index, subtopology in enumerate(self._subtopologies):
            for info in subtopology.repartition_source_topics:
                readers.setdefault(info.name, []).append(index)
        served = [(0, index) for index, s in enumerate(self._subtopologies) if self._has_inflow(s, counts)]
        reached = {index for _, index in served}
        while served:
            turn, index = heappop(served)
            subtopology = self._subtopologies[index]
            fresh = [
                name for name in dict.fromkeys(subtopology.repartition_sink_topics) if name not in counts
            ]
            if not fresh:
                continue
            counts.update(dict.fromkeys(fresh, self._most_that_flows_in(subtopology, counts)))
            for reader in (reader for name in fresh for reader in readers.get(name, ())):
                if reader not in reached:
                    reached.add(reader)
                    heappush(served, (turn + (reader <= index), reader))
        return all(name in counts for s in self._subtopologies for name in s.repartition_sink_topics)

    def _has_inflow(self, subtopology: Subtopology, counts: Mapping[str, int]) -> bool:
        return bool(subtopology.source_topics) or any(
            info.name in counts for info in subtopology.repartition_source_topics
        )

    def _most_that_flows_in(self, subtopology: Subtopology, counts: Mapping[str, int]) -> int:
        inflows = [counts.get(info.name) for info in subtopology.repartition_source_topics]
        inflows += [self._count(name) for name in subtopology.source_topics]
        return max(count for count in inflows if count is not None)

    def _copartition(
        self, topics: set[str], fixed: Collection[str], flexible: Collection[str]
    ) -> dict[str, int]:
        """Return the count that the repartition topics among these, which are joined, must have."""
        if not topics:
            return {}
        internal = {name: self._known(name) for name in topics if name in fixed or name in flexible}
        external = {name: self._known(name) for name in topics - internal.keys()}
        if external:
            number = _same(external, external)
        elif fixed:
            # All counts that the application fixed, of this join or of another: Kafka asks for the same.
            # A join does not change them, so that they are compared once.
            if self._same_fixed is None:
                self._same_fixed = _same({name: self._known(name) for name in fixed}, internal)
            number = self._same_fixed
        else:
            number = max(internal.values())
        for name, count in internal.items():
            if name in fixed and count != number:
                raise WronglyPartitioned(
                    f"Number of partitions [{count}] of repartition topic [{name}] "
                    f"doesn't match number of partitions [{number}] of the source topic."
                )
        return dict.fromkeys(internal, number)

    def _of_changelogs(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for subtopology in self._subtopologies:
            infos = subtopology.repartition_source_topics
            read = (*subtopology.source_topics, *(info.name for info in infos))
            if not read:
                raise _invalid(f"No source topics found for subtopology {subtopology.subtopology_id}")
            most = max(self._known(name) for name in read)
            counts.update((info.name, most) for info in subtopology.state_changelog_topics)
        return counts

    def _count(self, topic: str) -> int | None:
        there = self._image.by_name.get(topic)
        return self._decided.get(topic) if there is None else there.partitions

    def _known(self, topic: str) -> int:
        count = self._count(topic)
        if count is None:
            raise Refused(
                ErrorCode.UNKNOWN_SERVER_ERROR, f"Number of partitions is not set for topic: {topic}"
            )
        return count


def _members_of(group: CopartitionGroup, subtopology: Subtopology) -> Iterator[str]:
    """Return the topics that a group names by their places; an invalid place makes the topology invalid."""
    try:
        for index in group.source_topics:
            yield subtopology.source_topics[_at(index)]
        for index in group.repartition_source_topics:
            yield subtopology.repartition_source_topics[_at(index)].name
    except IndexError:
        raise Refused(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"a copartition group of subtopology {subtopology.subtopology_id} names a topic that it has not",
        ) from None


def _at(index: int) -> int:
    if index < 0:
        raise IndexError(index)
    return index


def _same(counts: Mapping[str, int], shown: Mapping[str, int]) -> int:
    """Return the one number that all counts are; an error shows `shown`."""
    numbers = set(counts.values())
    if len(numbers) > 1:
        pairs = ", ".join(f"{name}={shown[name]}" for name in sorted(shown))
        raise WronglyPartitioned(f"Following topics do not have the same number of partitions: [{{{pairs}}}]")
    return numbers.pop()


def _invalid(message: str) -> Refused:
    return Refused(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)
