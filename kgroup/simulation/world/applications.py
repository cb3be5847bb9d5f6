"""Applications of Kafka Streams as a run makes them up: topologies, processes, threads (KIP-1071)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random

from kgroup.domain import uuid_text
from kgroup.members.effects import GroupMember
from kgroup.members.streams import Application, StreamsMember
from kgroup.protocol.messages.streams_group_heartbeat import Topology
from kgroup.protocol.streams_records import CopartitionGroup, Endpoint, Subtopology, TopicInfo


@dataclass(slots=True)
class StreamsShape:
    """What the processes of a streams group run.

    `processes` has the process each thread is of; `other` the threads that run another topology for now.
    """

    topology: Topology
    processes: dict[str, str] = field(default_factory=dict)
    endpoints: set[str] = field(default_factory=set)
    other: set[str] = field(default_factory=set)

    def application(self, name: str, rebalance_timeout_ms: int) -> Application:
        """What a thread joins with now."""
        process = self.processes[name]
        endpoint = Endpoint(host=process, port=80) if process in self.endpoints else None
        newer = replace(self.topology, epoch=self.topology.epoch + 1)
        topology = newer if name in self.other else self.topology
        return Application(process, topology, endpoint, rebalance_timeout_ms)


def made_up_topology(rng: Random, group_id: str, topics: tuple[str, ...]) -> Topology:
    """Reads these topics, merged or one by one, with or without state; often it splits them by key, too."""
    changelog = (TopicInfo(name=f"{group_id}-store-changelog"),)
    again = TopicInfo(name=f"{group_id}-by-key-repartition")
    repartitions = rng.random() < 0.5
    parts = [topics] if rng.random() < 0.3 else [(name,) for name in topics]
    made = [
        Subtopology(
            subtopology_id=str(number),
            source_topics=names,
            state_changelog_topics=changelog if number == 0 and rng.random() < 0.5 else (),
            repartition_sink_topics=(again.name,) if repartitions else (),
        )
        for number, names in enumerate(parts)
    ]
    if repartitions:
        counted = (TopicInfo(name=f"{group_id}-counts-changelog"),) if rng.random() < 0.7 else ()
        made.append(
            Subtopology(
                subtopology_id=str(len(parts)),
                repartition_source_topics=(again,),
                state_changelog_topics=counted,
                copartition_groups=(CopartitionGroup(repartition_source_topics=(0,)),),
            )
        )
    return Topology(epoch=rng.choice((0, 3)), subtopologies=tuple(made))


def made_up_shape(rng: Random, group_id: str, topics: tuple[str, ...], threads: list[str]) -> StreamsShape:
    """An application of these threads, one to three of them to a process."""
    shape = StreamsShape(made_up_topology(rng, group_id, topics))
    each = rng.choice((1, 1, 2, 3))
    for number, name in enumerate(threads):
        shape.processes[name] = f"{group_id}-process-{number // each}"
    shape.endpoints = {process for process in sorted(set(shape.processes.values())) if rng.random() < 0.4}
    return shape


def thread_maker(
    rng: Random, group_id: str, shape: StreamsShape, name: str, rebalance_ms: int
) -> Callable[[int], GroupMember]:
    """Makes the member of a thread: with an id of its own each time, of a process that keeps its id."""

    def make(incarnation: int) -> GroupMember:
        return StreamsMember(group_id, uuid_text(rng.randbytes(16)), shape.application(name, rebalance_ms))

    return make
