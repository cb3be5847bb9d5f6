"""Generates a run's groups: kind, size, timeouts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from random import Random

from kgroup.coordinator.assignors.client_side import ClientAssignor, ClientRangeAssignor
from kgroup.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kgroup.coordinator.assignors.round_robin import RoundRobinAssignor
from kgroup.domain import uuid_text
from kgroup.members.classic import ClassicMember, ClassicTimings
from kgroup.members.consumer import ConsumerMember
from kgroup.members.effects import GroupMember
from kgroup.members.streams import Application, StreamsMember
from kgroup.protocol.messages.streams_group_heartbeat import Topology
from kgroup.protocol.streams_records import CopartitionGroup, Endpoint, Subtopology, TopicInfo
from kgroup.simulation.world.process import Process, ProcessSettings
from kgroup.simulation.world.world import World


class Kind(StrEnum):
    """The protocols a group's members use; `MIXED` is a group that is being migrated, either way."""

    EAGER = "eager"
    COOPERATIVE = "cooperative"
    CONSUMER = "consumer"
    MIXED = "mixed"
    STREAMS = "streams"


_WITHOUT_STREAMS = (Kind.EAGER, Kind.COOPERATIVE, Kind.CONSUMER, Kind.MIXED)
"""Choices of seeds from before streams groups existed."""


@dataclass(frozen=True, slots=True)
class Patience:
    """A group's timeouts in ms, as its classic members send them; the broker's settings hold for others."""

    session_ms: int = 45_000
    rebalance_ms: int = 300_000
    heartbeat_ms: int = 3_000

    @property
    def timings(self) -> ClassicTimings:
        return ClassicTimings(self.session_ms, self.rebalance_ms, self.heartbeat_ms)


@dataclass(slots=True)
class SimulatedGroup:
    """A group and its processes. `classic` names those that use the classic protocol now.

    If it `copies`, its processes commit with transactions. `shape` is what a streams group runs.
    """

    group_id: str
    kind: Kind
    topics: tuple[str, ...]
    regex: str | None
    patience: Patience
    assignors: tuple[ClientAssignor, ...]
    processes: list[Process]
    instances: dict[str, str]
    classic: set[str]
    copies: bool = False
    shape: StreamsShape | None = None

    @property
    def static(self) -> list[Process]:
        """The processes whose members are static."""
        return [process for process in self.processes if process.name in self.instances]


def made_up(world: World, rng: Random, number: int, *, may_copy: bool = False) -> SimulatedGroup:
    """Return a group of a random kind and size, with timeouts short enough to be hit, on some of the topics.

    If it `may_copy`, two groups of three commit with transactions. Cooperative ones do not: a static member
    of theirs can read what was given to another (`commits.py`), which no transaction makes exactly once.
    """
    kind = rng.choice(_WITHOUT_STREAMS)
    names = sorted(world.image.by_name)
    topics = tuple(rng.sample(names, rng.randint(1, len(names))))
    patience = Patience(rng.choice((6_000, 8_000, 12_000)), rng.choice((5_000, 10_000, 20_000)), 2_000)
    regex = "t.*" if kind is Kind.CONSUMER and rng.random() < 0.25 else None
    assignors: tuple[ClientAssignor, ...] = (CooperativeStickyAssignor(),)
    if kind is not Kind.COOPERATIVE:
        choices: tuple[tuple[ClientAssignor, ...], ...] = (
            (ClientRangeAssignor(),),
            (RoundRobinAssignor(), ClientRangeAssignor()),
        )
        assignors = rng.choice(choices)
    group = SimulatedGroup(
        group_id=f"{kind}-{number}",
        kind=kind,
        topics=topics,
        regex=regex,
        patience=patience,
        assignors=assignors,
        processes=[],
        instances={},
        classic=set(),
        copies=may_copy and kind is not Kind.COOPERATIVE and rng.random() < 0.67,
    )
    static = rng.choice((0.0, 0.0, 0.5, 1.0))
    for index in range(rng.randint(1, 5)):
        name = f"{group.group_id}-p{index}"
        if rng.random() < static:
            group.instances[name] = f"{group.group_id}-i{index}"
        if kind in (Kind.EAGER, Kind.COOPERATIVE) or (kind is Kind.MIXED and rng.random() < 0.5):
            group.classic.add(name)
        behind = rng.choice((0, 0, 0, 1)) if name in group.instances else rng.choice((0, 0, 1, 3))
        add_process(world, rng, group, name, replace(_made_up_settings(rng, patience), older_by=behind))
    return group


def made_up_application(world: World, rng: Random, number: int) -> SimulatedGroup:
    """Return a streams group of a random topology and size, with timeouts short enough to be hit."""
    names = sorted(name for name in world.image.by_name if "-" not in name)
    topics = tuple(rng.sample(names, rng.randint(1, len(names))))
    patience = Patience(rebalance_ms=rng.choice((5_000, 10_000, 20_000)))
    group_id = f"{Kind.STREAMS}-{number}"
    threads = [f"{group_id}-p{index}" for index in range(rng.randint(1, 6))]
    group = SimulatedGroup(
        group_id=group_id,
        kind=Kind.STREAMS,
        topics=topics,
        regex=None,
        patience=patience,
        assignors=(),
        processes=[],
        instances={},
        classic=set(),
        shape=made_up_shape(rng, group_id, topics, threads),
    )
    for name in threads:
        add_process(world, rng, group, name, _made_up_settings(rng, patience))
    return group


def _made_up_settings(rng: Random, patience: Patience) -> ProcessSettings:
    return ProcessSettings(
        commit_every_ms=rng.choice((3_000, 7_000, 11_000)),
        request_timeout_ms=rng.choice((4_000, 30_000)),
        rebalance_timeout_ms=patience.rebalance_ms,
        handover_ms=rng.choice((0, 50, 700)),
        metadata_every_ms=15_000,
    )


def add_process(
    world: World,
    rng: Random,
    group: SimulatedGroup,
    name: str,
    settings: ProcessSettings,
    on_change: Callable[[Process], None] = lambda process: None,
) -> Process:
    """Return one more process for a group, not started yet."""
    make = _maker(rng, group, name)
    process = world.add(group.group_id, name, make, replace(settings), on_change, copies=group.copies)
    group.processes.append(process)
    return process


def _maker(rng: Random, group: SimulatedGroup, name: str) -> Callable[[int], GroupMember]:
    if group.shape is not None:
        return thread_maker(rng, group.group_id, group.shape, name, group.patience.rebalance_ms)

    def make(incarnation: int) -> GroupMember:
        instance = group.instances.get(name)
        if name in group.classic:
            timings = group.patience.timings
            return ClassicMember(
                group.group_id, group.topics, group.assignors, instance_id=instance, timings=timings
            )
        return ConsumerMember(
            group.group_id,
            uuid_text(rng.randbytes(16)),
            () if group.regex else group.topics,
            group.regex,
            instance_id=instance,
            rebalance_timeout_ms=group.patience.rebalance_ms,
        )

    return make


@dataclass(slots=True)
class StreamsShape:
    """What the processes of a streams group run.

    `processes` has the process of each thread; `other` the threads that run another topology for now.
    """

    topology: Topology
    processes: dict[str, str] = field(default_factory=dict)
    endpoints: set[str] = field(default_factory=set)
    other: set[str] = field(default_factory=set)

    def application(self, name: str, rebalance_timeout_ms: int) -> Application:
        """Return what a thread joins with now."""
        process = self.processes[name]
        endpoint = Endpoint(host=process, port=80) if process in self.endpoints else None
        newer = replace(self.topology, epoch=self.topology.epoch + 1)
        topology = newer if name in self.other else self.topology
        return Application(process, topology, endpoint, rebalance_timeout_ms)


def made_up_topology(rng: Random, group_id: str, topics: tuple[str, ...]) -> Topology:
    """Return a topology that reads these topics, with or without state, often repartitioned."""
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
    """Return an application of these threads, one to three of them per process."""
    shape = StreamsShape(made_up_topology(rng, group_id, topics))
    per_process = rng.choice((1, 1, 2, 3))
    for number, name in enumerate(threads):
        shape.processes[name] = f"{group_id}-process-{number // per_process}"
    shape.endpoints = {process for process in sorted(set(shape.processes.values())) if rng.random() < 0.4}
    return shape


def thread_maker(
    rng: Random, group_id: str, shape: StreamsShape, name: str, rebalance_ms: int
) -> Callable[[int], GroupMember]:
    """Return a maker of a thread's member: each has a new id, and the same process id."""

    def make(incarnation: int) -> GroupMember:
        return StreamsMember(group_id, uuid_text(rng.randbytes(16)), shape.application(name, rebalance_ms))

    return make
