"""Play a scenario on a group of each kind and say what it costs: the planning side of the simulator."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from random import Random

from kgroup.coordinator.assignors.client_side import ClientRangeAssignor
from kgroup.coordinator.classic.group import ClassicGroup
from kgroup.coordinator.classic.states import ClassicState
from kgroup.coordinator.config import GroupConfig
from kgroup.coordinator.consumer.group import ConsumerGroup, ConsumerState
from kgroup.coordinator.metrics import Counters
from kgroup.coordinator.streams.group import StreamsGroup
from kgroup.domain import uuid_text
from kgroup.members.classic import ClassicMember, ClassicTimings
from kgroup.members.consumer import ConsumerMember
from kgroup.members.effects import Member
from kgroup.simulation.play.acting import Acting
from kgroup.simulation.play.push import PushStage
from kgroup.simulation.play.scenario import Scenario
from kgroup.simulation.play.tally import Tally
from kgroup.simulation.world.process import Process, ProcessSettings
from kgroup.simulation.world.world import World

GROUP, TOPIC = "group", "topic"
CLASSIC, CONSUMER = "classic", "consumer"
PUSH = "push"
"""The protocol of the ZooKeeper era: the coordinator asks, and members answer."""
BROKER_SESSION_MS = 9_000
"""Kafka's broker.session.timeout.ms: for so long nobody takes over from a broker that dies."""


@dataclass(frozen=True, slots=True)
class Size:
    """The group of a plan; times in ms. The defaults are those of Kafka's consumer.

    `heartbeat_interval_ms` is that of classic members; the other is what the broker tells consumer members,
    at most a third of the session timeout.
    """

    members: int = 12
    partitions: int = 48
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    consumer_heartbeat_interval_ms: int = 5_000
    rebalance_timeout_ms: int = 300_000
    initial_rebalance_delay_ms: int = 3_000
    commit_interval_ms: int = 5_000
    records_per_s: int = 100


@dataclass(frozen=True, slots=True)
class PlanResult:
    """What a scenario cost a group of one kind; `history` is the partitions read, from moment to moment.

    The two counts of commits are those of `coordinator.metrics.Counters`, exact: 0 in classic groups.
    `messages_per_member_minute` counts requests and answers, by the group's first size.
    """

    protocol: str
    static: bool
    members: int
    partitions: int
    rebalances: int
    stop_the_world_ms: int
    unowned_partition_ms: int
    partitions_moved: int
    duplicates: int
    commits_only_relaxed_check_accepted: int
    commits_both_checks_refused: int
    messages_per_member_minute: float
    simulated_ms: int
    events: int
    history: tuple[tuple[int, int], ...] = ()


def play(scenario: Scenario, size: Size, protocol: str, *, static: bool, seed: int = 0) -> PlanResult:
    """Let a group come to rest, play the scenario, let it come to rest again.

    Raises KgroupError if it does not come to rest within an hour.
    """
    stage = _stage(size, protocol, static=static, seed=seed)
    stage.settle()
    before, began, sent = stage.epoch(), stage.world.now_ms, stage.messages
    counters = stage.world.brokers.counters if isinstance(stage, Stage) else Counters()
    counted = replace(counters)
    stage.tally.begin()
    for step in scenario.steps:
        stage.play(step)
    stage.settle()
    tally = stage.tally
    tally.end()
    passed_ms = stage.world.now_ms - began
    return PlanResult(
        protocol=protocol,
        static=static,
        members=size.members,
        partitions=size.partitions,
        rebalances=stage.epoch() - before,
        stop_the_world_ms=tally.stop_the_world_ms,
        unowned_partition_ms=tally.unowned_ms,
        partitions_moved=tally.moved,
        duplicates=tally.duplicates,
        commits_only_relaxed_check_accepted=(
            counters.commits_only_relaxed_check_accepted - counted.commits_only_relaxed_check_accepted
        ),
        commits_both_checks_refused=counters.commits_both_checks_refused
        - counted.commits_both_checks_refused,
        messages_per_member_minute=round(
            (stage.messages - sent) * 60_000 / size.members / max(passed_ms, 1), 1
        ),
        simulated_ms=passed_ms,
        events=stage.world.schedule.steps,
        history=tuple((at - began, read) for at, read in tally.history),
    )


def _stage(size: Size, protocol: str, *, static: bool, seed: int) -> Stage | PushStage:
    return PushStage(size, seed=seed) if protocol == PUSH else Stage(size, protocol, static=static, seed=seed)


class Stage(Acting[Process]):
    """A group of one kind, and what can be done to it."""

    def __init__(self, size: Size, protocol: str, *, static: bool, seed: int) -> None:
        rng = Random(seed)
        self._size, self._static = size, static
        self._protocols: dict[str, str] = {}
        self._protocol = protocol
        self.world = World(
            rng,
            {TOPIC: size.partitions},
            _settings(size),
            brokers=2,
            offsets_partitions=1,
            records_per_s=size.records_per_s,
        )
        super().__init__(self.world.schedule, rng, size.members)
        self.tally = Tally(self.world, size.partitions)
        self.fill()

    @property
    def messages(self) -> int:
        """Requests and answers between brokers and members so far."""
        return self.world.network.messages

    def epoch(self) -> int:
        """The group's generation or group epoch: it grows by one with every rebalance."""
        group = self._group()
        if group is None:
            return 0
        return group.generation if isinstance(group, ClassicGroup) else group.epoch

    def _upgrade(self, process: Process) -> None:
        self._protocols[process.name] = CONSUMER

    def _add(self) -> Process:
        number = len(self.processes)
        name = f"member-{number}"
        size = self._size
        settings = ProcessSettings(
            commit_every_ms=size.commit_interval_ms, rebalance_timeout_ms=size.rebalance_timeout_ms
        )
        process = self.world.add(
            GROUP, name, partial(self._member, name), settings, self.tally.owners_changed
        )
        process.on_position = self.tally.position_known
        self._protocols[name] = self._protocol
        self.processes.append(process)
        return process

    def _member(self, name: str, incarnation: int) -> Member:
        size = self._size
        instance = f"{name}-instance" if self._static else None
        if self._protocols[name] == CONSUMER:
            return ConsumerMember(
                GROUP,
                uuid_text(self._rng.randbytes(16)),
                (TOPIC,),
                instance_id=instance,
                rebalance_timeout_ms=size.rebalance_timeout_ms,
            )
        timings = ClassicTimings(
            size.session_timeout_ms, size.rebalance_timeout_ms, size.heartbeat_interval_ms
        )
        return ClassicMember(GROUP, (TOPIC,), (ClientRangeAssignor(),), instance_id=instance, timings=timings)

    def _group(self) -> ClassicGroup | ConsumerGroup | None:
        shard = self.world.brokers.partitions[0].shard
        group = None if shard is None else shard.coordinator.state.groups.get(GROUP)
        assert not isinstance(group, StreamsGroup), "a plan is for groups of consumers"
        return group

    def _fail_over(self, down_ms: int) -> None:
        """The other broker leads once the controller has missed the one that died."""
        brokers = self.world.brokers
        partition = brokers.partitions[0]
        if partition.leader is None:
            return
        dead = brokers.brokers[partition.leader]
        other = brokers.brokers[1 - dead.id]
        brokers.crash(dead)
        self._schedule.after(BROKER_SESSION_MS, lambda: brokers.lead(partition, other.id))
        self._schedule.after(max(down_ms, BROKER_SESSION_MS), lambda: setattr(dead, "up", True))

    def _at_rest(self) -> bool:
        group, wanted = self._group(), self._wanted()
        if group is None or self._starting or any(not process.running for process in wanted):
            return False
        at_rest = ClassicState.STABLE if isinstance(group, ClassicGroup) else ConsumerState.STABLE
        if group.state != at_rest or len(group.members) != len(wanted):
            return False
        held = sum(len(process.holding) for process in wanted)
        return held == self._size.partitions == sum(len(process.positions) for process in wanted)


def compare(
    scenario: Scenario, size: Size, kinds: Iterable[tuple[str, bool]], seed: int = 0
) -> list[PlanResult]:
    """The same scenario on groups of several kinds: protocol, and whether the members are static."""
    return [play(scenario, size, protocol, static=static, seed=seed) for protocol, static in kinds]


def _settings(size: Size) -> GroupConfig:
    session = size.session_timeout_ms
    beat = str(min(size.consumer_heartbeat_interval_ms, max(session // 3, 1)))
    return GroupConfig.of(
        {
            "group.initial.rebalance.delay.ms": str(size.initial_rebalance_delay_ms),
            "group.min.session.timeout.ms": str(min(6_000, session)),
            "group.max.session.timeout.ms": str(max(1_800_000, session)),
            "group.consumer.session.timeout.ms": str(session),
            "group.consumer.min.session.timeout.ms": str(min(45_000, session)),
            "group.consumer.max.session.timeout.ms": str(max(60_000, session)),
            "group.consumer.heartbeat.interval.ms": beat,
            "group.consumer.min.heartbeat.interval.ms": beat,
        }
    )
