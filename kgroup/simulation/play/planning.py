"""Plays a scenario on a group of each kind and reports the cost: the planning side of the simulator."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Annotated, Any, Protocol

from kgroup.coordinator import roster
from kgroup.coordinator.assignors.client_side import ClientRangeAssignor
from kgroup.coordinator.classic.group import ClassicGroup
from kgroup.coordinator.classic.states import ClassicState
from kgroup.coordinator.config import GroupConfig
from kgroup.coordinator.consumer.group import ConsumerGroup, ConsumerState
from kgroup.coordinator.metrics import Counters
from kgroup.coordinator.outcome import Reply
from kgroup.coordinator.share.group import ShareGroup
from kgroup.coordinator.streams.group import StreamsGroup
from kgroup.domain import CLASSIC, CONSUMER, TopicPartition, uuid_text
from kgroup.members.classic import ClassicMember, ClassicTimings
from kgroup.members.consumer import ConsumerMember
from kgroup.members.effects import GroupMember
from kgroup.protocol.codec import Message
from kgroup.simulation.play.acting import Acting
from kgroup.simulation.play.scenario import Scenario
from kgroup.simulation.play.tally import Tally
from kgroup.simulation.world.brokers import Partition, Watcher
from kgroup.simulation.world.process import Process, ProcessSettings
from kgroup.simulation.world.world import World

GROUP, TOPIC = "group", "topic"
PUSH = "push"
"""The protocol of the ZooKeeper era: the coordinator asks, and members answer."""
BROKER_SESSION_MS = 9_000
"""Kafka's broker.session.timeout.ms: the time until another broker takes over from a dead one."""


@dataclass(frozen=True, slots=True)
class Size:
    """The group of a plan; times in ms. The defaults are those of Kafka's consumer.

    `heartbeat_interval_ms` is for classic members; the other is what the broker sends consumer members, at
    most a third of the session timeout.
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
    """What a scenario cost a group of one kind; `history` is the number of partitions read over time.

    `assignments` counts how often partitions were assigned again, which in a consumer group may be less often
    than the group epoch changes. `registered` is whether the group knew its instance ids before their members
    joined, `target_size` how many of its members are active (docs/registered-ids-and-standbys.md); None is
    all. The two counts of commits are those of `coordinator.metrics.Counters`, exact: 0 in classic groups.
    `messages_per_member_minute` counts requests and answers, by the group's first size.
    """

    protocol: Annotated[str, (CLASSIC, CONSUMER, PUSH)]
    static: bool
    members: int
    partitions: int
    rebalances: int
    assignments: Annotated[int, "how often partitions were assigned"]
    stop_the_world_ms: int
    unowned_partition_ms: int
    partitions_moved: int
    duplicates: int
    commits_only_relaxed_check_accepted: Annotated[
        int, "KIP-1251, see [metrics](metrics.md), as commits_both_checks_refused"
    ]
    commits_both_checks_refused: int
    messages_per_member_minute: float
    simulated_ms: int
    events: int
    history: tuple[tuple[int, int], ...] = ()
    registered: Annotated[bool, "what the group knew of its members, with `--expecting`, as target_size"] = (
        False
    )
    target_size: int | None = None


@dataclass(frozen=True, slots=True)
class Expecting:
    """What a group knows of its members before they join: their ids, or how many should be active."""

    registered: bool = False
    target_size: int | None = None


EXPECTS_NOTHING = Expecting()


class MakePush(Protocol):
    """The protocol push: makes the stage of a group (`kgroup.zookeeper.entry.simulate`)."""

    def __call__(self, size: Size, *, seed: int) -> Acting[Any]: ...


def play(
    scenario: Scenario,
    size: Size,
    protocol: str | MakePush,
    *,
    static: bool,
    seed: int = 0,
    expecting: Expecting = EXPECTS_NOTHING,
) -> PlanResult:
    """Let a group come to rest, play the scenario, let it come to rest again.

    Raises KgroupError if it does not come to rest within an hour.
    """
    stage = (
        Stage(size, protocol, static=static, seed=seed, expecting=expecting)
        if isinstance(protocol, str)
        else protocol(size, seed=seed)
    )
    if not scenario.from_nothing:
        stage.fill(round(scenario.standbys * size.members))
        stage.settle()
    before, began, sent, assigned = stage.epoch(), stage.schedule.now_ms, stage.messages, stage.assignments
    counters = stage.world.brokers.counters if isinstance(stage, Stage) else Counters()
    counted = replace(counters)
    everything = (TopicPartition(TOPIC, number) for number in range(size.partitions))
    stage.tally.begin(everything if scenario.from_nothing else ())
    for step in scenario.steps:
        stage.play(step)
    stage.settle()
    tally = stage.tally
    tally.end()
    passed_ms = stage.schedule.now_ms - began
    return PlanResult(
        protocol=protocol if isinstance(protocol, str) else PUSH,
        static=static,
        members=size.members,
        partitions=size.partitions,
        rebalances=stage.epoch() - before,
        assignments=stage.assignments - assigned,
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
        events=stage.schedule.steps,
        history=tuple((at - began, read) for at, read in tally.history),
        registered=expecting.registered,
        target_size=expecting.target_size,
    )


class Computed(Watcher):
    """Counts the changes of an epoch; each step of a shard changes it at most once."""

    def __init__(self, epoch: Callable[[], int]) -> None:
        self._epoch = epoch
        self._seen = 0
        self.count = 0

    def stepped(self, partition: Partition, request: Message | None, replies: list[Reply]) -> None:
        epoch = self._epoch()
        self.count += epoch > self._seen
        self._seen = max(self._seen, epoch)


class Stage(Acting[Process]):
    """A group of one kind, and what can be done to it."""

    def __init__(
        self, size: Size, protocol: str, *, static: bool, seed: int, expecting: Expecting = EXPECTS_NOTHING
    ) -> None:
        rng = Random(seed)
        self._expecting = expecting
        self._registered: list[str] = []
        self._configured = False
        self._size, self._static = size, static
        self._protocols: dict[str, str] = {}
        self._protocol = protocol
        session = size.session_timeout_ms
        beat = str(min(size.consumer_heartbeat_interval_ms, max(session // 3, 1)))
        config = GroupConfig.of(
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
        self.world = World(
            rng,
            {TOPIC: size.partitions},
            config,
            brokers=2,
            offsets_partitions=1,
            records_per_s=size.records_per_s,
        )
        super().__init__(self.world.schedule, rng, size.members)
        self._computed = Computed(self._assignment_epoch)
        self.world.watch(self._computed)
        self.tally = Tally(self.world, size.partitions)
        if expecting.target_size is not None:
            self._configure_expected()

    @property
    def messages(self) -> int:
        """Requests and answers between brokers and members so far."""
        return self.world.network.messages

    def epoch(self) -> int:
        """Return the group's generation or group epoch: it grows by one with every rebalance."""
        group = self._group()
        if group is None:
            return 0
        return group.generation if isinstance(group, ClassicGroup) else group.epoch

    @property
    def assignments(self) -> int:
        """How often partitions were assigned again so far."""
        return self._computed.count

    def _assignment_epoch(self) -> int:
        """Return the generation or epoch of the newest assignment."""
        group = self._group()
        if group is None:
            return 0
        if isinstance(group, ClassicGroup):
            return group.generation
        return group.assignment_epoch if group.targets else 0

    def _expect(self, processes: list[Process]) -> None:
        self._registered += [_instance(process.name) for process in processes]
        self._configure_expected()

    def _expect_no_more(self, processes: list[Process]) -> None:
        gone = {_instance(process.name) for process in processes}
        self._registered = [name for name in self._registered if name not in gone]
        self._configure_expected()

    def _configure_expected(self) -> None:
        settings = {}
        if self._expecting.registered and self._registered:
            settings[roster.REGISTERED] = ",".join(self._registered)
        if self._expecting.target_size is not None:
            settings[roster.TARGET_SIZE] = str(self._expecting.target_size)
        if settings or self._configured:
            self.world.brokers.configure_group(GROUP, settings)
            self._configured = True

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

    def _member(self, name: str, incarnation: int) -> GroupMember:
        size = self._size
        instance = _instance(name) if self._static else None
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
        assert not isinstance(group, ShareGroup | StreamsGroup), "a plan is for groups of consumers"
        return group

    def _fail_over(self, down_ms: int) -> None:
        """Let the other broker lead once the controller has noticed that the first one died."""
        brokers = self.world.brokers
        partition = brokers.partitions[0]
        if partition.leader is None:
            return
        dead = brokers.brokers[partition.leader]
        other = brokers.brokers[1 - dead.id]
        brokers.crash(dead)
        self.schedule.after(BROKER_SESSION_MS, lambda: brokers.lead(partition, other.id))
        self.schedule.after(max(down_ms, BROKER_SESSION_MS), lambda: setattr(dead, "up", True))

    def _at_rest(self) -> bool:
        group, processes = self._group(), self._wanted()
        if group is None or self._starting or any(not process.running for process in processes):
            return False
        at_rest = ClassicState.STABLE if isinstance(group, ClassicGroup) else ConsumerState.STABLE
        if group.state != at_rest or len(group.members) != len(processes):
            return False
        held = sum(len(process.holding) for process in processes)
        return held == self._size.partitions == sum(len(process.positions) for process in processes)


def compare(
    scenario: Scenario,
    size: Size,
    kinds: Iterable[tuple[str | MakePush, bool]],
    seed: int = 0,
    *,
    expecting: bool = False,
) -> list[PlanResult]:
    """Play the scenario on groups of several kinds: protocol, and whether the members are static.

    With `expecting` each is played once more as a group that expects its members, where supported.
    """
    results = []
    for protocol, static in kinds:
        expected = expectation(scenario, size, protocol, static=static) if expecting else EXPECTS_NOTHING
        results += [
            play(scenario, size, protocol, static=static, seed=seed, expecting=what)
            for what in dict.fromkeys((EXPECTS_NOTHING, expected))
        ]
    return results


def expectation(scenario: Scenario, size: Size, protocol: str | MakePush, *, static: bool) -> Expecting:
    """Return what a group knows before a scenario: static members' ids; a size, if there are standbys."""
    if not isinstance(protocol, str):
        return EXPECTS_NOTHING
    if scenario.standbys or (scenario.from_nothing and not static):
        return Expecting(target_size=size.members)
    return Expecting(registered=static)


def _instance(name: str) -> str:
    return f"{name}-instance"
