"""One seed, one run: a made-up world, faults for some minutes, then rest; every invariant all the time."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from random import Random

from kgroup.coordinator.config import GroupConfig
from kgroup.coordinator.coordinator import Coordinator
from kgroup.simulation.checks.convergence import changes, come_to_rest, snapshot
from kgroup.simulation.checks.hard_state import compacted, difference
from kgroup.simulation.checks.invariants import Auditor
from kgroup.simulation.checks.violation import Violation
from kgroup.simulation.play.faults import METADATA_KNOWN_MS, Fault, Faults
from kgroup.simulation.world.groups import Kind, SimulatedGroup, made_up, made_up_application
from kgroup.simulation.world.process import Process
from kgroup.simulation.world.world import START_MS, World

REST_MS = 150_000
CALM_MS = 14_000
ABSENCE_MS = 2_500
WITH_TRANSACTIONS = 1_000_000
"""From this seed on, members of some groups commit with transactions."""
WITH_STREAMS = 2_000_000
"""From this seed on, most groups are applications of Kafka Streams (KIP-1071)."""


@dataclass(slots=True)
class Run:
    """What came of a seed. `fingerprint` is that of every byte written, and of the number of steps."""

    seed: int
    world: World
    groups: list[SimulatedGroup] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    violation: Violation | None = None

    @property
    def steps(self) -> int:
        return self.world.schedule.steps

    @property
    def simulated_ms(self) -> int:
        return self.world.now_ms - START_MS

    @property
    def fingerprint(self) -> str:
        digest = blake2b(f"{self.steps} {self.world.now_ms}".encode(), digest_size=16)
        for partition in self.world.brokers.partitions:
            for batch in partition.log.batches():
                digest.update(batch.raw)
        return digest.hexdigest()


def run(seed: int) -> Run:
    """Carry a seed out; a violated invariant ends the run and is in its result."""
    rng = Random(seed)
    world = World(
        rng,
        {f"t{n}": rng.randint(1, 6) for n in range(rng.randint(1, 3))},
        GroupConfig.of(_settings(rng) | (_streams_settings(rng) if seed >= WITH_STREAMS else {})),
        brokers=rng.randint(1, 3),
        offsets_partitions=rng.randint(1, 2),
    )
    result = Run(seed, world)
    auditor = Auditor(world)
    try:
        world.watch(auditor)
        _play(rng, result, auditor)
    except Violation as violation:
        result.violation = violation
    except Exception as error:
        result.violation = Violation("nothing crashes", f"{type(error).__name__}: {error}")
        result.violation.__cause__ = error
    return result


def _play(rng: Random, result: Run, auditor: Auditor) -> None:
    world = result.world
    result.groups = _groups(rng, world, result.seed)
    for process in world.everybody():
        process.on_change = auditor.owners_changed
        world.schedule.after(rng.randint(0, 5_000), process.start)
    faults = Faults(world, rng, result.groups, auditor.owners_changed)
    result.faults = faults.done
    faults.start(every_ms=rng.choice((4_000, 12_000, 30_000)))
    world.schedule.run_until(world.now_ms + rng.randint(60_000, 480_000))
    faults.stop()
    world.schedule.run_until(world.now_ms + METADATA_KNOWN_MS)
    come_to_rest(world, result.groups, REST_MS + faults.jumped_ms)
    _nothing_moves(world, result.groups)
    _static_bounce_moves_nothing(world, result.groups)
    for partition in world.brokers.partitions:
        auditor.equal(partition)
        _compaction_changes_nothing(world, auditor, partition.number)


def _groups(rng: Random, world: World, seed: int) -> list[SimulatedGroup]:
    if seed < WITH_STREAMS:
        may_copy = seed >= WITH_TRANSACTIONS
        return [made_up(world, rng, number, may_copy=may_copy) for number in range(rng.randint(1, 3))]
    others = [made_up(world, rng, 1)] if rng.random() < 0.3 else []
    return [made_up_application(world, rng, 0), *others]


def _nothing_moves(world: World, groups: list[SimulatedGroup]) -> None:
    """Groups at rest, left alone for longer than any session, stay as they are."""
    before = snapshot(world, groups)
    world.schedule.run_until(world.now_ms + CALM_MS)
    after = snapshot(world, groups)
    if before != after:
        raise Violation("a group at rest stays so", changes(before, after))


def _static_bounce_moves_nothing(world: World, groups: list[SimulatedGroup]) -> None:
    """One static member of each group is away for less than its session timeout (KIP-345)."""
    bounced: list[Process] = [
        group.static[0] for group in groups if group.static and group.kind is not Kind.MIXED
    ]
    bounced = [process for process in bounced if process.running]
    if not bounced:
        return
    before = snapshot(world, groups)
    for process in bounced:
        process.stop()
        world.schedule.after(ABSENCE_MS, process.start)
    world.schedule.run_until(world.now_ms + ABSENCE_MS)
    come_to_rest(world, groups, REST_MS)
    after = snapshot(world, groups)
    if before != after:
        raise Violation("a static bounce moves nothing", changes(before, after))


def _compaction_changes_nothing(world: World, auditor: Auditor, number: int) -> None:
    partition = world.brokers.partitions[number]
    loaded = Coordinator(world.config, "compacted", world.image)
    try:
        for record, offset, producer_id in compacted(partition.log):
            loaded.replay(record, offset, producer_id)
    except Exception as error:
        raise Violation("a compacted log reads the same", str(error)) from error
    found = difference(auditor.follower(partition).coordinator, loaded)
    if found is not None:
        raise Violation("a compacted log reads the same", found)


def _settings(rng: Random) -> dict[str, str]:
    session = rng.choice((6_000, 9_000))
    return {
        "group.min.session.timeout.ms": "1000",
        "group.initial.rebalance.delay.ms": str(rng.choice((0, 1_000, 3_000))),
        "group.consumer.min.session.timeout.ms": "1000",
        "group.consumer.session.timeout.ms": str(session),
        "group.consumer.min.heartbeat.interval.ms": "500",
        "group.consumer.heartbeat.interval.ms": str(rng.choice((1_500, 2_000))),
        "group.consumer.assignment.interval.ms": str(rng.choice((0, 1_000))),
        "group.consumer.assignors": rng.choice(("uniform,range", "range")),
    }


def _streams_settings(rng: Random) -> dict[str, str]:
    return {
        "group.streams.min.session.timeout.ms": "1000",
        "group.streams.session.timeout.ms": str(rng.choice((6_000, 9_000))),
        "group.streams.min.heartbeat.interval.ms": "500",
        "group.streams.heartbeat.interval.ms": str(rng.choice((1_500, 2_000))),
        "group.streams.initial.rebalance.delay.ms": str(rng.choice((0, 1_000, 3_000))),
        "group.streams.assignment.interval.ms": str(rng.choice((0, 1_000))),
        "group.streams.num.standby.replicas": str(rng.choice((0, 1, 1, 2))),
    }
