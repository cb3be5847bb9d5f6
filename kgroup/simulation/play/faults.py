"""Faults of a run: brokers, disks, clocks, networks, processes, operators."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from kgroup.domain import CLASSIC, CONSUMER, TopicPartition, count_of
from kgroup.members.commits import commit_request
from kgroup.protocol.messages.delete_groups import DeleteGroupsRequest
from kgroup.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kgroup.protocol.messages.offset_commit import OffsetCommitRequest
from kgroup.simulation.checks.fencing import is_outdated
from kgroup.simulation.world.brokers import DiskFault
from kgroup.simulation.world.groups import Kind, SimulatedGroup, add_process
from kgroup.simulation.world.network import NetworkConditions
from kgroup.simulation.world.process import Process
from kgroup.simulation.world.world import World

GOOD_CONDITIONS = NetworkConditions()
STAYS_DOWN = 0.12
"""The share of the processes that die at the end and never restart."""
METADATA_KNOWN_MS = 25_000
"""Until then every running client has learnt the topics."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that was injected, for people."""

    at_ms: int
    what: str


class Faults:
    """Injects faults at random times until `stop`, which also repairs whatever can be repaired."""

    def __init__(
        self,
        world: World,
        rng: Random,
        groups: Sequence[SimulatedGroup],
        on_change: Callable[[Process], None],
    ) -> None:
        self._world, self._rng, self._groups = world, rng, groups
        self._on_change = on_change
        self._over = False
        self._topics_made = 0
        self._topics_changed = False
        self.done: list[Fault] = []
        self.jumped_ms = 0
        self._kinds: tuple[tuple[int, Callable[[], str | None]], ...] = (
            (3, self._crash_broker),
            (3, self._move_coordinator),
            (3, self._disk),
            (3, self._stall_broker),
            (1, self._jump_clock),
            (5, self._pause_process),
            (5, self._kill_process),
            (5, self._bounce_process),
            (3, self._stop_for_good),
            (4, self._cut),
            (4, self._hold),
            (3, self._break),
            (4, self._slow_handover),
            (2, self._storm),
            (2, self._topics),
            (2, self._remove_member),
            (1, self._delete_group),
            (1, self._reset_offsets),
            (2, self._twin),
            (4, self._migrate),
            (6, self._stray),
        )
        if any(group.shape is not None for group in groups):
            self._kinds += ((4, self._other_topology), (3, self._internal_topic))

    def start(self, every_ms: int) -> None:
        """Begin; on average one fault occurs in `every_ms`."""
        delay = int(self._rng.expovariate(1 / every_ms))
        self._world.schedule.after(delay, self._next, every_ms)

    def stop(self) -> None:
        """Inject no more faults, and bring back everything that is down or cut off."""
        self._over = True
        brokers, network = self._world.brokers, self._world.network
        for partition in brokers.partitions:
            partition.next_append = None
        for broker in brokers.brokers.values():
            broker.up = True
            brokers.resume(broker, timers_first=True)
        for partition in brokers.partitions:
            if partition.leader is None:
                brokers.lead(partition, self._broker_id())
        network.conditions = GOOD_CONDITIONS
        network.heal()
        for group in self._groups:
            self._heal(group)
        if self._topics_changed:
            self._world.schedule.after(METADATA_KNOWN_MS, self._grow_topics)

    def _heal(self, group: SimulatedGroup) -> None:
        if group.shape is not None:
            group.shape.other.clear()
        for process in list(group.processes):
            process.settings.handover_ms = min(process.settings.handover_ms, 700)
            process.resume()
            if process.name.endswith("-twin"):
                process.stop()
            elif self._rng.random() < STAYS_DOWN:
                process.kill()
            else:
                process.start()

    def _grow_topics(self) -> None:
        """Give every topic one more partition.

        A leader that restarts, and a group that is upgraded by a static member, do not check how topics have
        changed meanwhile (KIP-814; nor does Kafka): they do at the next change.
        """
        for name, topic in sorted(self._world.image.by_name.items()):
            self._world.set_topic(name, topic.partitions + 1)

    def _next(self, every_ms: int) -> None:
        if self._over:
            return
        weights = [weight for weight, _ in self._kinds]
        (kind,) = self._rng.choices([kind for _, kind in self._kinds], weights)
        what = kind()
        if what is not None:
            self.done.append(Fault(self._world.now_ms, what))
        self.start(every_ms)

    def _later(self, delay_ms: int, action: Callable[[], None]) -> None:
        self._world.schedule.after(delay_ms, self._unless_over, action)

    def _unless_over(self, action: Callable[[], None]) -> None:
        if not self._over:
            action()

    def _group(self) -> SimulatedGroup:
        return self._rng.choice(self._groups)

    def _process(self) -> Process:
        return self._rng.choice(self._group().processes)

    def _broker_id(self) -> int:
        return self._rng.randrange(len(self._world.brokers.brokers))

    def _crash_broker(self) -> str | None:
        brokers, rng = self._world.brokers, self._rng
        broker = brokers.brokers[self._broker_id()]
        if not broker.up:
            return None
        brokers.crash(broker)
        self._later(rng.randint(500, 15_000), lambda: setattr(broker, "up", True))
        self._later(rng.randint(100, 6_000), self._elect)
        return f"broker {broker.id} crashes"

    def _elect(self) -> None:
        """Elect running brokers for partitions without a leader; retry while there is none."""
        world = self._world
        up = [broker.id for broker in world.brokers.brokers.values() if broker.up]
        for partition in world.brokers.partitions:
            if partition.leader is None and up:
                world.brokers.lead(partition, self._rng.choice(up), self._rng.choice((0, 50, 2_000)))
        if not up:
            self._later(1_000, self._elect)

    def _move_coordinator(self) -> str | None:
        world, rng = self._world, self._rng
        partition = rng.choice(world.brokers.partitions)
        broker = world.brokers.brokers[self._broker_id()]
        if not broker.up:
            return None
        world.brokers.lead(partition, broker.id, rng.choice((0, 20, 3_000)))
        return f"offsets partition {partition.number} moves to broker {broker.id}"

    def _disk(self) -> str:
        partition = self._rng.choice(self._world.brokers.partitions)
        partition.next_append = self._rng.choice(list(DiskFault))
        self._later(self._rng.randint(2_000, 20_000), self._elect)
        return f"next append to offsets partition {partition.number}: {partition.next_append.value}"

    def _stall_broker(self) -> str:
        brokers, rng = self._world.brokers, self._rng
        broker = brokers.brokers[self._broker_id()]
        brokers.stall(broker)
        length, timers_first = rng.choice((300, 3_000, 14_000)), rng.random() < 0.5
        self._later(length, lambda: brokers.resume(broker, timers_first))
        return f"broker {broker.id} stands still for {length} ms"

    def _jump_clock(self) -> str:
        broker = self._world.brokers.brokers[self._broker_id()]
        jump = self._rng.choice((200, 3_000, 20_000))
        broker.clock_ahead_ms += jump
        self.jumped_ms += jump
        return f"the clock of broker {broker.id} jumps {jump} ms ahead"

    def _pause_process(self) -> str:
        process = self._process()
        length = self._rng.choice((500, 5_000, 15_000, 40_000))
        process.pause()
        self._later(length, process.resume)
        return f"{process.name} stands still for {length} ms"

    def _kill_process(self) -> str:
        process = self._process()
        process.kill()
        self._later(self._rng.choice((100, 4_000, 20_000)), process.start)
        return f"{process.name} is killed"

    def _bounce_process(self) -> str:
        process = self._process()
        process.stop()
        self._later(self._rng.choice((100, 2_000, 20_000)), process.start)
        return f"{process.name} restarts"

    def _stop_for_good(self) -> str:
        process = self._process()
        process.stop(for_good=True)
        self._later(self._rng.choice((100, 2_000, 20_000)), process.start)
        return f"{process.name} leaves for good, and comes back"

    def _cut(self) -> str:
        network, rng = self._world.network, self._rng
        name = self._process().name
        pairs = {(name, broker_id) for broker_id in self._world.brokers.brokers if rng.random() < 0.7}
        length = rng.choice((1_000, 8_000, 30_000))
        network.cut |= pairs
        self._later(length, lambda: network.cut.difference_update(pairs))
        return f"{name} cannot reach brokers {sorted(b for _, b in pairs)} for {length} ms"

    def _hold(self) -> str:
        network = self._world.network
        pair = self._process().name, self._broker_id()
        length = self._rng.choice((200, 2_000, 9_000))
        network.hold(pair)
        self._later(length, lambda: network.release(pair))
        return f"messages between {pair[0]} and broker {pair[1]} are held for {length} ms"

    def _break(self) -> str:
        process = self._process()
        self._world.network.break_all(name=process.name)
        return f"connections of {process.name} break"

    def _storm(self) -> str:
        network = self._world.network
        network.conditions = NetworkConditions(
            5, self._rng.choice((200, 2_000)), self._rng.choice((0.0, 0.02, 0.1))
        )
        self._later(self._rng.randint(1_000, 15_000), lambda: setattr(network, "conditions", GOOD_CONDITIONS))
        return "the network gets bad"

    def _slow_handover(self) -> str:
        process = self._process()
        process.settings.handover_ms = self._rng.choice((3_000, 15_000, 40_000))
        self._later(30_000, lambda: setattr(process.settings, "handover_ms", 50))
        return f"{process.name} takes {process.settings.handover_ms} ms to give partitions up"

    def _topics(self) -> str | None:
        world, rng = self._world, self._rng
        names = sorted(world.image.by_name)
        if not names:
            return None
        self._topics_changed = True
        choice = rng.random()
        if choice < 0.6 or len(names) < 2:
            name = rng.choice(names)
            more = world.image.by_name[name].partitions + rng.randint(1, 3)
            world.set_topic(name, more)
            return f"topic {name} has {count_of(more, 'partition')}"
        if choice < 0.8:
            self._topics_made += 1
            world.set_topic(f"t-new{self._topics_made}", 2)
            return f"topic t-new{self._topics_made} is created"
        name = rng.choice(names)
        world.set_topic(name, 0)
        return f"topic {name} is deleted"

    def _remove_member(self) -> str | None:
        group = self._group()
        instances = sorted(group.instances.values())
        if not instances:
            return None
        instance = self._rng.choice(instances)
        who = MemberIdentity(member_id="", group_instance_id=instance)
        self._world.operator.send(group.group_id, LeaveGroupRequest(group_id=group.group_id, members=(who,)))
        return f"the operator removes {instance}"

    def _delete_group(self) -> str:
        group = self._group()
        for process in group.processes:
            process.stop(for_good=True)
            self._later(self._rng.randint(8_000, 15_000), process.start)
        request = DeleteGroupsRequest(groups_names=(group.group_id,))
        delay = self._rng.randint(500, 8_000)
        self._later(delay, lambda: self._world.operator.send(group.group_id, request))
        return f"the operator stops {group.group_id} and deletes it"

    def _reset_offsets(self) -> str | None:
        group = self._group()
        topic = self._rng.choice(group.topics)
        request: OffsetCommitRequest = commit_request(
            group.group_id, -1, "", None, {TopicPartition(topic, 0): self._rng.randint(0, 50)}
        )
        self._world.operator.send(group.group_id, request, version=9)
        return f"the operator sets an offset of {group.group_id}"

    def _twin(self) -> str | None:
        """Start a second process with another's instance id: one of the two must lose."""
        group = self._group()
        if not group.instances:
            return None
        original = self._rng.choice(group.static)
        name = f"{original.name}-twin"
        twin = next((p for p in group.processes if p.name == name), None)
        if twin is None and not original.name.endswith("-twin"):
            group.instances[name] = group.instances[original.name]
            if original.name in group.classic:
                group.classic.add(name)
            twin = add_process(self._world, self._rng, group, name, original.settings, self._on_change)
        if twin is None:
            return None
        twin.start()
        self._later(self._rng.choice((2_000, 10_000)), twin.kill)
        return f"{name} starts with the instance id of {original.name}"

    def _stray(self) -> str | None:
        """Send a request of long ago again: it must have no effect.

        Only requests older than the member's last step: the protocol cannot distinguish a younger one from
        the member's own.
        """
        group = self._group()
        process = self._rng.choice(group.processes)
        partition = self._world.brokers.partition_of(group.group_id)
        if partition.shard is None or not process.sent:
            return None
        request, version = self._rng.choice(process.sent)
        known = partition.shard.coordinator.state.groups.get(group.group_id)
        if not is_outdated(known, request, self._world.image):
            return None
        self._world.operator.send(group.group_id, request, version)
        return f"an old {type(request).__name__} of {process.name} arrives again"

    def _other_topology(self) -> str | None:
        """Restart a thread with a changed topology, which Kafka 4.3.1 refuses, and later with its own."""
        group = self._rng.choice([group for group in self._groups if group.shape is not None])
        process, shape = self._rng.choice(group.processes), group.shape
        assert shape is not None
        shape.other ^= {process.name}
        process.stop()
        self._later(self._rng.choice((100, 2_000)), process.start)
        return f"{process.name} restarts with {'another' if process.name in shape.other else 'its'} topology"

    def _internal_topic(self) -> str | None:
        """Delete an internal topic: the coordinator has it created again."""
        names = sorted(name for name in self._world.image.by_name if name.startswith(Kind.STREAMS))
        if not names:
            return None
        name = self._rng.choice(names)
        self._topics_changed = True
        self._world.set_topic(name, 0)
        return f"the internal topic {name} is deleted"

    def _migrate(self) -> str | None:
        """Restart a process with the other protocol."""
        mixed = [group for group in self._groups if group.kind is Kind.MIXED]
        if not mixed:
            return None
        group = self._rng.choice(mixed)
        process = self._rng.choice(group.processes)
        process.stop(for_good=process.name not in group.instances)
        group.classic ^= {process.name}
        self._later(self._rng.choice((100, 2_000)), process.start)
        protocol = CLASSIC if process.name in group.classic else CONSUMER
        return f"{process.name} restarts with the {protocol} protocol"
