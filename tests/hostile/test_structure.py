"""The work of a request grows with its length and no faster, whatever its structure; counted, not timed."""

from __future__ import annotations

import random
import sys
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import kgroup
from kgroup.broker.call import Call
from kgroup.broker.dispatch import Dispatcher
from kgroup.broker.handlers import ALL
from kgroup.broker.rights import guarded
from kgroup.broker.routes import NotServed, Routes, encoded
from kgroup.coordinator.streams.topology import StatusCode
from kgroup.protocol import registry
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kgroup.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from kgroup.runtime.clock import ManualClock
from kgroup.runtime.cluster import Cluster
from tests.hostile import structure
from tests.hostile.structure import ARRAYS, Case

SMALL, TIMES, TOPICS = 20, 4, 20
SLACK = 1.6
"""How much faster than the items the work may grow: sorting, and what every request costs."""
OURS = str(Path(kgroup.__file__).parent)
CHAIN = Case(
    StreamsGroupHeartbeatRequest.API,
    0,
    ("topology.subtopologies",),
    5 * SMALL,
    0,
    tuple(
        {
            "group_id!": True,
            "group_id=": "g",
            "member_id!": True,
            "member_id=": "m",
            "member_epoch!": True,
            "member_epoch=": 0,
            "rebalance_timeout_ms!": True,
            "rebalance_timeout_ms=": 1000,
            "instance_id?": True,
            "process_id?": False,
            "user_endpoint?": True,
            "client_tags#": "none",
            "active_tasks#": "none",
            "standby_tasks#": "none",
            "warmup_tasks#": "none",
            "active_tasks?": False,
            "standby_tasks?": False,
            "warmup_tasks?": False,
            "topology.epoch!": True,
            "topology.subtopologies.subtopology_id": "place",
            "topology.subtopologies.subtopology_id@": False,
            "topology.subtopologies.source_topics#": "first",
            "topology.subtopologies.source_topics": "same",
            "topology.subtopologies.source_topics@": False,
            "topology.subtopologies.source_topic_regex#": "none",
            "topology.subtopologies.state_changelog_topics#": "none",
            "topology.subtopologies.copartition_groups#": "none",
            "topology.subtopologies.repartition_source_topics#": "others",
            "topology.subtopologies.repartition_source_topics.name": "place",
            "topology.subtopologies.repartition_source_topics.name@": False,
            "topology.subtopologies.repartition_source_topics.partitions!": True,
            "topology.subtopologies.repartition_source_topics.partitions=": 0,
            "topology.subtopologies.repartition_source_topics.topic_configs#": "none",
            "topology.subtopologies.repartition_sink_topics#": "one",
            "topology.subtopologies.repartition_sink_topics": "next",
            "topology.subtopologies.repartition_sink_topics@": False,
        }.items()
    ),
)


class Counted:
    """A broker in memory, and how many lines of kgroup it executes."""

    def __init__(self) -> None:
        self.cluster = Cluster(None, offsets_partitions=1, seed=1, clock=ManualClock())
        self.dispatcher = Dispatcher(self.cluster, guarded(self.cluster, ALL))
        self.routes = Routes(self.dispatcher)
        self.lines = 0
        names = (*(f"s{n}" for n in range(TOPICS)), structure.BIG)
        topics = tuple(CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names)
        self.dispatcher.handle(Call(CreateTopicsRequest(topics=topics), 7))

    def _line(self, frame: FrameType, event: str, _: Any) -> Any:
        self.lines += event == "line"
        return self._line

    def _call(self, frame: FrameType, event: str, _: Any) -> Any:
        return self._line if frame.f_code.co_filename.startswith(OURS) else None

    def serve(self, case: Case) -> Message | None:
        """Read, carry out and encode the request of a case; None for one that has no answer yet."""
        whole = structure.frame(case)
        traced = sys.gettrace()
        sys.settrace(self._call)
        try:
            route, correlation, client_id, body = self.routes.read(whole, 4)
            answer = self.dispatcher.handle(Call(body, route.version, client_id))
            if not isinstance(answer, Message):
                return None
            encoded(route, correlation, answer)
            return answer
        finally:
            sys.settrace(traced)


def work_of(case: Case) -> int:
    """How many lines a case costs a broker that has not seen anything yet."""
    broker = Counted()
    try:
        broker.serve(case)
        return broker.lines
    finally:
        broker.cluster.close()


def grows(case: Case) -> float:
    """How much faster than the items the work grows: 1 is as fast."""
    work_of(case)  # what is done once in a process, such as compiling a codec
    return work_of(replace(case, items=TIMES * case.items)) / work_of(case) / TIMES


def sample() -> list[Case]:
    """Return a case of every API that has arrays."""
    chance = random.Random(1)
    return [
        Case(
            key,
            registry.request_class(key).VERSIONS[-1],
            (chance.choice(arrays),),
            SMALL,
            chance.randrange(1 << 31),
        )
        for key, arrays in ARRAYS.items()
    ]


@pytest.mark.parametrize("case", sample(), ids=str)
def test_the_work_of_a_request_grows_no_faster_than_the_request(case: Case) -> None:
    try:
        assert grows(case) < SLACK
    except NotServed:
        pytest.skip("not of this release")


def test_a_chain_of_subtopologies_costs_no_more_than_its_length() -> None:
    """189 kB of it silenced everybody for 22 s."""
    broker = Counted()
    answer: Any = broker.serve(CHAIN)
    broker.cluster.close()
    assert answer.error_code == 0
    assert StatusCode.MISSING_INTERNAL_TOPICS in [one.status_code for one in answer.status]
    assert grows(CHAIN) < SLACK
