"""A topology over the existing topics: how many tasks it makes, and what is missing or wrong (KIP-1071)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum

from kgroup.coordinator.streams.partition_counts import PartitionCounts, WronglyPartitioned
from kgroup.coordinator.tasks.java_order import hash_map_order
from kgroup.domain import TopicImage
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.streams_records import StreamsGroupTopologyValue, Subtopology, TopicInfo, sources_of

NAMES_SHOWN = 3
MOST_TASKS = 20_000
"""Of a topology. Kafka has no bound, though a request of 500 kB may ask for 200 million of them."""


class StatusCode(IntEnum):
    """The status of a group, as StreamsGroupHeartbeat reports it to members."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5
    MISSING_CLIENT_TAGS = 6


@dataclass(frozen=True, slots=True)
class Problem:
    """Why no task can be assigned, for members to read."""

    code: StatusCode
    detail: str


@dataclass(frozen=True, slots=True)
class ConfiguredSubtopology:
    """A subtopology with its number of tasks; its internal topics have their number of partitions."""

    tasks: int
    subtopology: Subtopology

    @property
    def is_stateful(self) -> bool:
        return bool(self.subtopology.state_changelog_topics)

    @property
    def source_topics(self) -> list[str]:
        """What its tasks read, repartition topics last."""
        return list(dict.fromkeys(sources_of(self.subtopology)))


@dataclass(frozen=True, slots=True)
class ConfiguredTopology:
    """A topology's subtopologies by id, ascending; None if the topics do not allow any.

    `missing` are the internal topics to be created, by name; `problem` is why tasks cannot be assigned yet.
    """

    epoch: int
    subtopologies: Mapping[str, ConfiguredSubtopology] | None
    missing: Mapping[str, TopicInfo] = field(default_factory=dict)
    problem: Problem | None = None

    @property
    def is_ready(self) -> bool:
        return self.problem is None


def required_topics(topology: StreamsGroupTopologyValue) -> list[str]:
    """Return every topic the tasks read, and their changelogs."""
    named = (
        name
        for subtopology in topology.subtopologies
        for name in (
            *sources_of(subtopology),
            *(topic.name for topic in subtopology.state_changelog_topics),
        )
    )
    return list(dict.fromkeys(named))


def configure(topology: StreamsGroupTopologyValue, image: TopicImage) -> ConfiguredTopology:
    """Return the topology over the topics of `image`.

    Raise Refused(STREAMS_INVALID_TOPOLOGY) for one that no topics could make work.
    """
    absent = sorted({name for s in topology.subtopologies for name in s.source_topics} - image.by_name.keys())
    if absent:
        detail = f"Source topics {_named(absent)} are missing."
        problem = Problem(StatusCode.MISSING_SOURCE_TOPICS, detail)
        return ConfiguredTopology(topology.epoch, None, problem=problem)
    # Kafka goes through its subtopologies in the order of a hash map, which decides what a topology that
    # leaves a number open gets.
    by_id = {subtopology.subtopology_id: subtopology for subtopology in topology.subtopologies}
    ordered = [by_id[name] for name in hash_map_order(by_id)]
    try:
        counts = PartitionCounts(ordered, image).decide()
        subtopologies = {name: _configured(by_id[name], counts, image) for name in sorted(by_id)}
        _refuse_too_many(sum(subtopology.tasks for subtopology in subtopologies.values()))
        missing = _missing(subtopologies, topology, image)
    except WronglyPartitioned as error:
        problem = Problem(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, str(error))
        return ConfiguredTopology(topology.epoch, None, problem=problem)
    if not missing:
        return ConfiguredTopology(topology.epoch, subtopologies)
    detail = f"Internal topics are missing: {_named(hash_map_order(missing))}"
    problem = Problem(StatusCode.MISSING_INTERNAL_TOPICS, detail)
    return ConfiguredTopology(topology.epoch, subtopologies, missing, problem)


def _refuse_too_many(tasks: int) -> None:
    if tasks > MOST_TASKS:
        raise Refused(
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
            f"The topology makes {tasks} tasks over the present topics; at most {MOST_TASKS} can be made.",
        )


def _configured(
    subtopology: Subtopology, counts: Mapping[str, int], image: TopicImage
) -> ConfiguredSubtopology:
    sized = replace(
        subtopology,
        repartition_source_topics=tuple(_sized(t, counts) for t in subtopology.repartition_source_topics),
        state_changelog_topics=tuple(_sized(t, counts) for t in subtopology.state_changelog_topics),
    )
    read = ConfiguredSubtopology(0, sized).source_topics
    tasks = max(image.by_name[name].partitions if name in image.by_name else counts[name] for name in read)
    return ConfiguredSubtopology(tasks, sized)


def _sized(topic: TopicInfo, counts: Mapping[str, int]) -> TopicInfo:
    return topic if topic.partitions else replace(topic, partitions=counts[topic.name])


def _missing(
    subtopologies: Mapping[str, ConfiguredSubtopology], topology: StreamsGroupTopologyValue, image: TopicImage
) -> dict[str, TopicInfo]:
    """Return the missing internal topics; raise WronglyPartitioned for one that cannot be used."""
    missing = {
        topic.name: topic
        for configured in subtopologies.values()
        for topic in (
            *configured.subtopology.repartition_source_topics,
            *configured.subtopology.state_changelog_topics,
        )
    }
    for name in hash_map_order(required_topics(topology)):
        if name not in missing or name not in image.by_name:
            continue
        there = image.by_name[name].partitions
        expected = missing.pop(name).partitions
        if there != expected:
            raise WronglyPartitioned(
                f"Existing topic {name} has different number of partitions: "
                f"expected {expected}, found {there}"
            )
    return missing


def _named(names: Iterable[str]) -> str:
    listed = list(names)
    more = len(listed) - NAMES_SHOWN
    return ", ".join(listed[:NAMES_SHOWN]) + (f" and {more} additional topics" if more > 0 else "")


def refuse_tasks_that_are_none(configured: ConfiguredTopology, tasks: Mapping[str, Iterable[int]]) -> None:
    """Raise INVALID_REQUEST for tasks that this topology does not have."""
    assert configured.subtopologies is not None
    for subtopology_id, partitions in tasks.items():
        subtopology = configured.subtopologies.get(subtopology_id)
        if subtopology is None:
            raise Refused(
                ErrorCode.INVALID_REQUEST, f"Subtopology {subtopology_id} does not exist in the topology."
            )
        for partition in partitions:
            if not 0 <= partition < subtopology.tasks:
                raise Refused(
                    ErrorCode.INVALID_REQUEST,
                    f"Task {partition} for subtopology {subtopology_id} is invalid. "
                    f"Number of tasks for this subtopology: {subtopology.tasks}",
                )
