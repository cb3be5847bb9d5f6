"""How many tasks a topology makes, over which topics; messages are Kafka's."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from kgroup.coordinator.streams.partition_counts import PartitionCounts
from kgroup.coordinator.streams.topology import MOST_TASKS, ConfiguredTopology, StatusCode, configure
from kgroup.domain import TopicImage
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.streams_records import (
    CopartitionGroup,
    StreamsGroupTopologyValue,
    Subtopology,
    TopicInfo,
)
from tests.unit.coordinator.streams.applications import REPARTITION, joining, splitting, topics


def configured(image: TopicImage, *parts: Subtopology) -> ConfiguredTopology:
    return configure(StreamsGroupTopologyValue(epoch=0, subtopologies=parts), image)


def test_a_repartition_topic_has_as_many_partitions_as_flow_in_or_as_what_it_is_joined_with() -> None:
    found = configured(topics(orders=3, users=5), splitting(), joining())
    assert found.problem is not None and found.problem.code is StatusCode.MISSING_INTERNAL_TOPICS
    assert [(topic.name, topic.partitions) for topic in found.missing.values()] == [(REPARTITION, 5)]
    assert found.subtopologies is not None
    assert {name: part.tasks for name, part in found.subtopologies.items()} == {"0": 3, "1": 5}
    alone = replace(joining(), source_topics=(), copartition_groups=())
    assert configured(topics(orders=3), splitting(), alone).missing[REPARTITION].partitions == 3


def test_topics_that_are_joined_need_the_same_number_of_partitions() -> None:
    both = Subtopology(
        subtopology_id="0",
        source_topics=("orders", "users"),
        copartition_groups=(CopartitionGroup(source_topics=(0, 1)),),
    )
    found = configured(topics(orders=3, users=5), both)
    assert found.problem is not None
    assert found.problem.code is StatusCode.INCORRECTLY_PARTITIONED_TOPICS
    assert found.problem.detail == (
        "Following topics do not have the same number of partitions: [{orders=3, users=5}]"
    )
    fixed = configured(topics(orders=3, users=5), splitting(), joining(4))
    assert fixed.problem is not None
    assert fixed.problem.detail == (
        f"Number of partitions [4] of repartition topic [{REPARTITION}] "
        "doesn't match number of partitions [5] of the source topic."
    )


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ((joining(),), "never used as a sink topic"),
        (
            (
                Subtopology(
                    subtopology_id="0",
                    repartition_source_topics=(TopicInfo(name=REPARTITION),),
                    repartition_sink_topics=(REPARTITION,),
                ),
            ),
            "loops in the topology",
        ),
        ((Subtopology(subtopology_id="0"),), "No source topics found for subtopology 0"),
    ],
)
def test_topologies_that_no_topics_could_make_work(parts: tuple[Subtopology, ...], said: str) -> None:
    with pytest.raises(Refused, match=said) as refused:
        configured(topics(users=1), *parts)
    assert refused.value.code is ErrorCode.STREAMS_INVALID_TOPOLOGY


@pytest.mark.parametrize("place", [-1, 7])
def test_a_copartition_group_that_names_nothing_is_refused(place: int) -> None:
    part = replace(splitting(), copartition_groups=(CopartitionGroup(source_topics=(place,)),))
    with pytest.raises(Refused, match="names a topic that it has not"):
        configured(topics(orders=1), part)


def test_many_missing_topics_are_counted() -> None:
    part = Subtopology(subtopology_id="0", source_topics=("a", "b", "c", "d", "e"))
    found = configured(topics(), part)
    assert found.problem is not None
    assert found.problem.detail == "Source topics a, b, c and 2 additional topics are missing."


def test_a_topology_of_more_tasks_than_can_be_assigned_is_refused() -> None:
    """A request of 500 kB could ask for 200 million of them."""
    parts = [
        Subtopology(subtopology_id=str(n), source_topics=("big",)) for n in range(MOST_TASKS // 1000 + 1)
    ]
    assert configured(topics(big=1000), *parts[:-1]).is_ready
    with pytest.raises(Refused, match="makes 21000 tasks") as refused:
        configured(topics(big=1000), *parts)
    assert refused.value.code is ErrorCode.STREAMS_INVALID_TOPOLOGY


class _Rounds(PartitionCounts):
    """Goes round the subtopologies until none is open any more, as Kafka does."""

    def _decide_sinks(self, counts: dict[str, int]) -> bool:
        before = -1
        while before < len(counts):
            before = len(counts)
            for subtopology in self._subtopologies:
                if self._has_inflow(subtopology, counts):
                    for sink in subtopology.repartition_sink_topics:
                        if sink not in counts:
                            counts[sink] = self._most_that_flows_in(subtopology, counts)
        return all(name in counts for s in self._subtopologies for name in s.repartition_sink_topics)


@pytest.mark.parametrize("seed", range(200))
def test_each_repartition_topic_gets_the_count_that_kafka_finds_round_by_round(seed: int) -> None:
    chance = random.Random(seed)
    names = [f"r{number}" for number in range(chance.randrange(1, 7))]
    parts = [
        Subtopology(
            subtopology_id=str(number),
            source_topics=tuple(chance.sample(["a", "b", "c"], chance.choice([0, 0, 1, 2]))),
            repartition_source_topics=tuple(
                TopicInfo(name=name, partitions=chance.choice([0] * 8 + [2, 3]))
                for name in chance.choices(names, k=chance.choice([0, 1, 1, 2]))
            ),
            repartition_sink_topics=tuple(chance.choices(names, k=chance.choice([0, 1, 1, 2, 3]))),
        )
        for number in range(chance.randrange(1, 7))
    ]

    def decided(how: type[PartitionCounts]) -> object:
        try:
            return how(parts, topics(a=2, b=3, c=5)).decide()
        except Refused as refused:
            return refused.message

    assert decided(PartitionCounts) == decided(_Rounds)
