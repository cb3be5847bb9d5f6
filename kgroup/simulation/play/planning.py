"""Play a scenario on a group of each kind and say what it costs: the planning side of the simulator."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from random import Random

from kgroup.coordinator.assignors.client_side import ClientRangeAssignor
from kgroup.coordinator.classic.group import ClassicGroup
from kgroup.coordinator.classic.states import ClassicState
from kgroup.coordinator.config import GroupConfig
from kgroup.coordinator.consumer.group import ConsumerGroup, ConsumerState
from kgroup.domain import uuid_text
from kgroup.errors import KgroupError
from kgroup.members.classic import ClassicMember, ClassicTimings
from kgroup.members.consumer import ConsumerMember
from kgroup.members.effects import Member
from kgroup.simulation.play.scenario import Scenario, ScenarioStep
from kgroup.simulation.play.tally import Tally
from kgroup.simulation.world.process import Process, ProcessSettings
from kgroup.simulation.world.world import World

GROUP, TOPIC = "group", "topic"
CLASSIC, CONSUMER = "classic", "consumer"
SETTLES_WITHIN_MS = 3_600_000
LOOK_EVERY_MS = 1_000


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
    simulated_ms: int
    events: int
    history: tuple[tuple[int, int], ...] = ()


def play(scenario: Scenario, size: Size, protocol: str, *, static: bool, seed: int = 0) -> PlanResult:
    """Let a group come to rest, play the scenario, let it come to rest again.

    Raises KgroupError if it does not come to rest within an hour.
    """
    stage = Stage(size, protocol, static=static, seed=seed)
    stage.settle()
    before, began = stage.epoch(), stage.world.now_ms
    counters = stage.world.brokers.counters
    counted = replace(counters)
    stage.tally.begin()
    for step in scenario.steps:
        stage.play(step)
    stage.settle()
    tally = stage.tally
    tally.end()
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
        simulated_ms=stage.world.now_ms - began,
        events=stage.world.schedule.steps,
        history=tuple((at - began, read) for at, read in tally.history),
    )


class Stage:
    """A group of one kind, and what can be done to it."""

    def __init__(self, size: Size, protocol: str, *, static: bool, seed: int) -> None:
        self._size, self._static = size, static
        self._rng = Random(seed)
        self._protocols: dict[str, str] = {}
        self._protocol = protocol
        self.world = World(
            self._rng,
            {TOPIC: size.partitions},
            _settings(size),
            brokers=1,
            offsets_partitions=1,
            records_per_s=size.records_per_s,
        )
        self.tally = Tally(self.world, size.partitions)
        self.processes: list[Process] = []
        self._starting = 0
        for _ in range(size.members):
            self._start(self._add(), self._rng.randint(0, 5_000))

    def epoch(self) -> int:
        """The group's generation or group epoch: it grows by one with every rebalance."""
        group = self._group()
        if group is None:
            return 0
        return group.generation if isinstance(group, ClassicGroup) else group.epoch

    def settle(self) -> None:
        """Let time pass until the group is at rest and every partition is read."""
        deadline = self.world.now_ms + SETTLES_WITHIN_MS
        while not self._at_rest():
            if self.world.now_ms > deadline:
                raise KgroupError("the group does not come to rest within an hour")
            self._pass(LOOK_EVERY_MS)

    def play(self, step: ScenarioStep) -> None:
        """Carry out one step of a scenario, and let its time pass."""
        count = max(1, round(step.share * self._size.members))
        match step.verb:
            case "restart":
                self._roll(step, self._wanted()[:count], lambda process: None)
            case "upgrade":
                self._roll(step, self._wanted()[:count], self._speak_consumer)
            case "start":
                for _ in range(count):
                    self._start(self._add(), self._rng.randint(0, 1_000))
            case "stop":
                for process in self._wanted()[-count:]:
                    process.stop(for_good=True)
            case "kill":
                for process in self._wanted()[-count:]:
                    process.kill()
                    if step.down_ms:
                        self._start(process, step.down_ms)
                self._pass(step.down_ms)
        self._pass(step.wait_ms)

    def _roll(self, step: ScenarioStep, processes: list[Process], change: Callable[[Process], None]) -> None:
        for first in range(0, len(processes), step.batch):
            batch = processes[first : first + step.batch]
            for process in batch:
                process.stop()
                change(process)
                self._start(process, step.down_ms)
            self._pass(step.down_ms + step.pause_ms)

    def _start(self, process: Process, delay_ms: int) -> None:
        self._starting += 1
        self.world.schedule.after(delay_ms, self._started, process)

    def _started(self, process: Process) -> None:
        self._starting -= 1
        process.start()

    def _speak_consumer(self, process: Process) -> None:
        self._protocols[process.name] = CONSUMER

    def _wanted(self) -> list[Process]:
        return [process for process in self.processes if process.wanted]

    def _pass(self, ms: int) -> None:
        self.world.schedule.run_until(self.world.now_ms + ms)

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
        assert shard is not None
        return shard.coordinator.state.groups.get(GROUP)

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
