"""How many tasks a topology makes, over which topics; messages are Kafka's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kgroup.coordinator.streams.topology import ConfiguredTopology, StatusCode, configure
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
