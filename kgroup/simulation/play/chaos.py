"""One seed, one run: a generated world, faults for some minutes, then rest; all invariants, always."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from random import Random

from kgroup.coordinator.classic.group import ClassicGroup
from kgroup.coordinator.classic.states import ClassicState
from kgroup.coordinator.config import GroupConfig
from kgroup.coordinator.consumer.group import ConsumerGroup, ConsumerState
from kgroup.coordinator.coordinator import Coordinator
from kgroup.coordinator.share.group import ShareGroup
from kgroup.coordinator.state import Group
from kgroup.coordinator.streams.group import StreamsGroup, StreamsState, readers_of
from kgroup.domain import TopicPartition, count_of
from kgroup.members.classic import ClassicMember
from kgroup.members.streams import StreamsMember
from kgroup.simulation.checks.hard_state import compacted, difference
from kgroup.simulation.checks.invariants import Auditor
from kgroup.simulation.checks.tasks import internal_topics, sizes_of
from kgroup.simulation.checks.violation import Violation
from kgroup.simulation.play.faults import METADATA_KNOWN_MS, Fault, Faults
from kgroup.simulation.world.groups import Kind, SimulatedGroup, made_up, made_up_application
from kgroup.simulation.world.process import Process
from kgroup.simulation.world.world import START_MS, World

REST_MS = 150_000
CALM_MS = 14_000
"""Longer than any session."""
ABSENCE_MS = 2_500
WITH_TRANSACTIONS = 1_000_000
"""From this seed on, members of some groups commit with transactions."""
WITH_STREAMS = 2_000_000
"""From this seed on, most groups are applications of Kafka Streams (KIP-1071)."""


@dataclass(slots=True)
class Run:
    """The result of a seed. `fingerprint` covers every byte written, and the number of steps."""

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
    """Run a seed; a violated invariant ends the run and is in its result."""
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
    if result.seed < WITH_STREAMS:
        may_copy = result.seed >= WITH_TRANSACTIONS
        result.groups = [made_up(world, rng, n, may_copy=may_copy) for n in range(rng.randint(1, 3))]
    else:
        others = [made_up(world, rng, 1)] if rng.random() < 0.3 else []
        result.groups = [made_up_application(world, rng, 0), *others]
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
    before = snapshot(world, result.groups)
    world.schedule.run_until(world.now_ms + CALM_MS)
    after = snapshot(world, result.groups)
    if before != after:
        raise Violation("a group at rest stays so", changes(before, after))
    _static_bounce_moves_nothing(world, result.groups)
    for partition in world.brokers.partitions:
        auditor.equal(partition)
        loaded = Coordinator(world.config, "compacted", world.image)
        try:
            for record, offset, producer_id in compacted(partition.log):
                loaded.replay(record, offset, producer_id)
        except Exception as error:
            raise Violation("a compacted log reads the same", str(error)) from error
        unlike = difference(auditor.follower(partition).coordinator, loaded)
        if unlike is not None:
            raise Violation("a compacted log reads the same", unlike)


def _static_bounce_moves_nothing(world: World, groups: list[SimulatedGroup]) -> None:
    """Check a short absence of a static member in each group, below its session timeout (KIP-345)."""
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


LOOK_EVERY_MS = 500
REST_LASTS_MS = 6_000
"""Longer than a failed process takes to restart."""


def unrest(world: World, group: SimulatedGroup) -> str | None:
    """Return why the group has not come to rest; None once it has."""
    partition = world.brokers.partition_of(group.group_id)
    if partition.shard is None:
        return "its offsets partition has no leader"
    known = partition.shard.coordinator.state.groups.get(group.group_id)
    running = [process for process in group.processes if process.running]
    if known is None:
        return "the coordinator does not know it" if running else None
    expected = [process for process in group.processes if process.wanted]
    if len(expected) != len(running):
        return f"{count_of(len(expected), 'process', 'es')} wanted, {len(running)} run"
    if running and known.state != _at_rest(world, known):
        return f"it is {known.state}"
    ids = {process.member.member_id for process in running if process.member is not None}
    if ids != known.members.keys():
        return f"members {sorted(known.members)}, but processes {sorted(ids)}"
    for process in group.processes:
        if process.member is None:
            continue
        at = (
            known.members[process.member.member_id].epoch
            if isinstance(known, ConsumerGroup | ShareGroup | StreamsGroup)
            else known.generation
        )
        if process.epoch != at:
            return f"{process.name} is at {process.epoch}, not at {at}"
    due = _wanted(world, group, known)
    held = {p for process in running for p in process.holding if p.topic in world.image.by_name}
    excused = (
        _leads_unawares(running, known) or _was_never_assigned(known) or _never_received_tasks(running, known)
    )
    if running and held != due and not excused:
        missing = sorted(map(str, due - held)) or sorted(map(str, held - due))
        return f"it reads {len(held)} of {count_of(len(due), 'partition')}: {missing[:5]}"
    unread = [p for process in running for p in process.holding if p not in process.positions]
    return f"{count_of(len(unread), 'partition')} without a position" if unread else None


def _at_rest(world: World, known: Group) -> str:
    """Return a group's state at rest; internal topics of a wrong size make it wait for an operator."""
    if not isinstance(known, StreamsGroup):
        return ClassicState.STABLE if isinstance(known, ClassicGroup) else ConsumerState.STABLE
    sizes = sizes_of(world.image)
    topics = None if known.topology is None else internal_topics(known.topology, sizes)
    # Missing ones will be there soon, unless others are in the way.
    if topics is None or any(sizes.get(name, size) != size for name, size in topics.items()):
        return StreamsState.NOT_READY
    return StreamsState.STABLE


def _wanted(world: World, group: SimulatedGroup, known: Group) -> set[TopicPartition]:
    """Return what a group at rest reads."""
    if isinstance(known, StreamsGroup) and _at_rest(world, known) != StreamsState.STABLE:
        return set()
    names = set(group.topics)
    if group.regex:  # t.*, which internal topics do not match
        names = {name for name in world.image.by_name if name.startswith("t")}
    if isinstance(known, StreamsGroup):
        names = set(readers_of(known.topology)) if known.topology is not None else set()
    return {
        TopicPartition(name, number)
        for name in names
        if name in world.image.by_name
        for number in range(world.image.by_name[name].partitions)
    }


def _leads_unawares(running: Sequence[Process], known: Group) -> bool:
    """Return whether the leader rejoined with JoinGroup before version 9, and so watches no topics.

    KIP-814 fixed that: until the next rebalance such a group does not read new partitions.
    """
    leader = known.leader if isinstance(known, ClassicGroup) else None
    return any(
        isinstance(member := process.member, ClassicMember)
        and member.member_id == leader
        and not member.is_leader
        for process in running
    )


def _was_never_assigned(known: Group) -> bool:
    """Return whether the group was converted before a member had synced, and is unchanged since.

    Kafka takes the empty assignment for the member's target at the group's epoch, and computes no other until
    the epoch grows: not when a static member is replaced with the same subscription
    (`ConsumerGroup.fromClassicGroup`, `GroupMetadataManager.replaceMember`).
    """
    if (
        not isinstance(known, ConsumerGroup)
        or known.assignment_timestamp_ms
        or known.epoch != known.assignment_epoch
    ):
        return False
    return any(not any(known.target_of(member_id).values()) for member_id in known.members)


def _never_received_tasks(running: Sequence[Process], known: Group) -> bool:
    """Return whether a thread never received tasks that the coordinator counts as its own.

    Kafka 4.3.1 sends a streams group's member its tasks when it joins and when they change, but not when the
    member reports others: if that one answer is lost, the tasks are not read until the next rebalance
    (`GroupMetadataManager.streamsGroupHeartbeat`; members of consumer groups are sent theirs again).
    """
    if not isinstance(known, StreamsGroup):
        return False
    for member in (process.member for process in running):
        if isinstance(member, StreamsMember) and member.member_id in known.members:
            assigned = known.members[member.member_id].current.assigned.active
            counted = {(part, number) for part, numbers in assigned.items() for number in numbers}
            if member.tasks.active < counted:
                return True
    return False


def come_to_rest(world: World, groups: Sequence[SimulatedGroup], within_ms: int) -> None:
    """Let time pass until all groups have been at rest for a while; Violation if not in time."""
    deadline = world.now_ms + within_ms
    reasons: dict[str, str] = {}
    rest_ms = 0
    while world.now_ms < deadline:
        world.schedule.run_until(world.now_ms + LOOK_EVERY_MS)
        pairs = ((group.group_id, unrest(world, group)) for group in groups)
        reasons = {group_id: reason for group_id, reason in pairs if reason is not None}
        rest_ms = 0 if reasons else rest_ms + LOOK_EVERY_MS
        if rest_ms >= REST_LASTS_MS:
            return
    raise Violation("every group comes to rest", "; ".join(f"{g}: {why}" for g, why in reasons.items()))


def snapshot(world: World, groups: Sequence[SimulatedGroup]) -> dict[str, object]:
    """Return epochs and owners: what may not change while nothing happens."""
    seen: dict[str, object] = {}
    for group in groups:
        shard = world.brokers.partition_of(group.group_id).shard
        known = None if shard is None else shard.coordinator.state.groups.get(group.group_id)
        if isinstance(known, ConsumerGroup | StreamsGroup):
            seen[group.group_id] = (known.epoch, known.assignment_epoch)
        elif isinstance(known, ClassicGroup):
            seen[group.group_id] = known.generation
        for process in group.processes:
            seen[process.name] = process.holding
    return seen


def changes(before: dict[str, object], after: dict[str, object]) -> str:
    """Return what differs between two snapshots, for people."""
    return ", ".join(
        f"{name}: {_text(before.get(name))} → {_text(after.get(name))}"
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    )


def _text(value: object) -> str:
    return str(sorted(map(str, value))) if isinstance(value, frozenset) else str(value)
