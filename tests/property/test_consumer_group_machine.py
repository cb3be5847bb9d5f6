"""Consumer groups under random schedules: what clients are told fits together (CP-26, CP-28)."""

from dataclasses import dataclass, field

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kgroup.coordinator.config import GroupConfig
from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.consumer.member import MemberState
from kgroup.coordinator.outcome import Request
from kgroup.domain import Topic, TopicImage
from kgroup.errors import ErrorCode as E
from kgroup.log.memory import MemoryLog
from kgroup.protocol.messages.consumer_group_heartbeat import (
    Assignor,
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from kgroup.protocol.messages.consumer_group_install_assignment import (
    INVALID_ASSIGNMENT,
    ConsumerGroupInstallAssignmentRequest,
)
from kgroup.protocol.messages.consumer_group_install_assignment import Member as Installed
from kgroup.protocol.messages.consumer_group_install_assignment import TopicPartitions as InstalledPartitions
from kgroup.protocol.messages.consumer_group_prepare_assignment import (
    ConsumerGroupPrepareAssignmentRequest,
    ConsumerGroupPrepareAssignmentResponse,
)
from kgroup.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kgroup.runtime.shard import Shard
from tests.sampled import FULL

SESSION_MS = 45_000
NAMES = ("t0", "t1", "u0")
IDS = {name: name.encode() * 8 for name in NAMES}


@dataclass
class Client:
    """A client as KIP-848 wants it: it owns what it was told, until it said that it gave it up."""

    member_id: str
    instance_id: str | None
    names: tuple[str, ...] | None
    pattern: str | None
    epoch: int = 0
    full: bool = True
    heard_ms: int = 0
    owned: set[tuple[bytes, int]] = field(default_factory=set)
    wanted: set[tuple[bytes, int]] = field(default_factory=set)
    offers: tuple[Assignor, ...] = ()
    asked: bool = False

    def listed(self) -> tuple[TopicPartitions, ...]:
        topics = sorted({topic for topic, _ in self.owned})
        return tuple(
            TopicPartitions(topic_id=t, partitions=tuple(sorted(p for topic, p in self.owned if topic == t)))
            for t in topics
        )


class Machine(RuleBasedStateMachine):
    """Joins, beats, lost answers, leaves, silence, restarts and topic changes, in any order."""

    CONFIG = GroupConfig(assignment_interval_ms=1000)
    OFFERS: tuple[Assignor, ...] = ()

    def __init__(self) -> None:
        super().__init__()
        self.now, self.made, self.tickets = 1000, 0, 0
        self.counts = {"t0": 3, "t1": 2}
        self.created = 1
        self.clients: dict[str, Client] = {}
        self.epochs = (0, 0)
        self.given: dict[tuple[bytes, int], list[tuple[str, int]]] = {}
        self.shard = Shard(0, MemoryLog(), self.CONFIG, 1, self.image())
        self.shard.load(self.now)

    def image(self) -> TopicImage:
        topics = [Topic(name, IDS[name], count) for name, count in self.counts.items()]
        return TopicImage.of(topics, sum(self.counts.values()), self.created)

    @property
    def group(self) -> ConsumerGroup | None:
        found = self.shard.coordinator.state.groups.get("g")
        assert found is None or isinstance(found, ConsumerGroup)
        return found

    def ask(self, body, version=1):
        self.tickets += 1
        (reply,) = self.shard.submit(self.tickets, Request(body, version, "c", "/127.0.0.1"), self.now)
        assert not self.shard.wake(self.now)
        return reply.response

    def beat(self, client: Client, lost: bool = False) -> None:
        """One heartbeat; after an answer that got lost the next one says everything, as clients do."""
        full = client.full
        answer = self.ask(
            ConsumerGroupHeartbeatRequest(
                group_id="g",
                member_id=client.member_id,
                member_epoch=client.epoch,
                instance_id=client.instance_id,
                rebalance_timeout_ms=30_000 if full else -1,
                subscribed_topic_names=client.names if full else None,
                subscribed_topic_regex=client.pattern if full else None,
                topic_partitions=client.listed(),
                client_assignors=client.offers if full else None,
            )
        )
        client.full = lost
        if answer.error_code != E.NONE:
            assert answer.error_code in (E.FENCED_MEMBER_EPOCH, E.UNKNOWN_MEMBER_ID), answer
            self.forget(client)
            return
        client.heard_ms = self.now
        if lost:
            return
        client.asked = answer.should_compute_assignment
        assert answer.member_epoch >= client.epoch
        client.epoch = answer.member_epoch
        if answer.assignment is not None:
            client.wanted = {
                (t.topic_id, p) for t in answer.assignment.topic_partitions for p in t.partitions
            }
            for place in client.wanted - client.owned:
                self.given.setdefault(place, []).append((client.member_id, client.epoch))
            # What is new may be used at once; what is to go stays until the client has given it up.
            client.owned |= client.wanted

    def forget(self, client: Client) -> None:
        self.clients.pop(client.member_id, None)

    def pick(self, data) -> Client:
        return self.clients[data.draw(st.sampled_from(sorted(self.clients)))]

    @rule(pattern=st.sampled_from([None, "t.*", "[tu]0"]), static=st.booleans())
    def join(self, pattern, static) -> None:
        if len(self.clients) >= 5:
            return
        self.made += 1
        names = None if pattern else ("t0", "t1")
        client = Client(f"m{self.made}", f"i{self.made}" if static else None, names, pattern)
        client.offers = self.OFFERS
        self.clients[client.member_id] = client
        self.beat(client)

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), lost=st.booleans())
    def heartbeat(self, data, lost) -> None:
        self.beat(self.pick(data), lost)

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def give_up(self, data) -> None:
        """The client has let go of what it is no longer assigned; its next heartbeat says so."""
        client = self.pick(data)
        client.owned &= client.wanted

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), for_good=st.booleans())
    def leave(self, data, for_good) -> None:
        client = self.pick(data)
        self.forget(client)
        epoch = -1 if for_good or client.instance_id is None else -2
        request = ConsumerGroupHeartbeatRequest(
            group_id="g", member_id=client.member_id, member_epoch=epoch, instance_id=client.instance_id
        )
        assert self.ask(request).error_code in (E.NONE, E.UNKNOWN_MEMBER_ID)

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), older=st.integers(0, 2))
    def commit(self, data, older) -> None:
        """A commit at this epoch or an older one: taken iff assignment epoch ≤ epoch ≤ member epoch.

        AE-04, AE-08: whatever the strict check takes, too. AE-09: at an older epoch, nobody else has been
        given the partition since.
        """
        client = self.pick(data)
        member = self.group.members.get(client.member_id) if self.group else None
        if member is None or not client.owned or client.epoch - older < 1:
            return
        topic, partition = data.draw(st.sampled_from(sorted(client.owned)))
        epoch = client.epoch - older
        request = OffsetCommitRequest(
            group_id="g",
            member_id=client.member_id,
            generation_id_or_member_epoch=epoch,
            topics=(
                OffsetCommitRequestTopic(
                    topic_id=topic,
                    partitions=(OffsetCommitRequestPartition(partition_index=partition, committed_offset=1),),
                ),
            ),
        )
        ((answer,),) = [t.partitions for t in self.ask(request, 10).topics]
        since = member.current.assignment_epoch(topic, partition)
        allowed = epoch == member.epoch or (epoch < member.epoch and since is not None and since <= epoch)
        assert answer.error_code == (E.NONE if allowed else E.STALE_MEMBER_EPOCH)
        if allowed and epoch < member.epoch:
            others = [e for name, e in self.given.get((topic, partition), ()) if name != client.member_id]
            assert all(e <= epoch for e in others)

    @rule(ms=st.sampled_from([1, 500, 1000, 10_001, SESSION_MS]))
    def wait(self, ms) -> None:
        self.now += ms
        self.shard.wake(self.now)
        for client in list(self.clients.values()):
            if self.now - client.heard_ms >= SESSION_MS:
                # A client that cannot reach its coordinator for so long stops by itself.
                self.forget(client)

    @rule(name=st.sampled_from(NAMES))
    def grow(self, name) -> None:
        self.created += name not in self.counts
        self.counts[name] = min(self.counts.get(name, 0) + 1, 6)
        self.shard.topics_changed(self.image(), self.now)

    @rule()
    def restart(self) -> None:
        """CP-55: what the log gives back is what was there."""
        before = hard(self.group)
        self.shard.load(self.now)
        assert hard(self.group) == before
        for client in self.clients.values():
            client.heard_ms = self.now

    @rule()
    def settle(self) -> None:
        """Once everybody beats and gives up what it shall, targets and assignments are the same."""
        for _ in range(30):
            self.now += 1100
            self.shard.wake(self.now)
            for client in list(self.clients.values()):
                self.beat(client)
                client.owned &= client.wanted
        away = [m for m in self.group.members.values() if m.epoch == -2] if self.group else []
        if self.group is None or away or set(self.group.members) != set(self.clients):
            return
        for member in self.group.members.values():
            assert member.current.state is MemberState.STABLE
            assert member.epoch == self.group.assignment_epoch == self.group.epoch
            target = {(t, p) for t, ps in self.group.target_of(member.member_id).items() for p in ps}
            assert self.clients[member.member_id].owned == target

    @invariant()
    def nobody_shares(self) -> None:
        owners = [pair for client in self.clients.values() for pair in client.owned]
        assert len(owners) == len(set(owners))

    @invariant()
    def targets_do_not_overlap(self) -> None:
        group = self.group
        wanted = [
            (topic, number)
            for target in (group.targets.values() if group else ())
            for topic, numbers in target.items()
            for number in numbers
        ]
        assert len(wanted) == len(set(wanted))

    @invariant()
    def epochs_are_in_order(self) -> None:
        """CP-06, AE-17: assignment epoch ≤ member epoch ≤ target epoch ≤ group epoch."""
        group = self.group
        if group is None:
            return
        now = group.epoch, group.assignment_epoch
        assert all(later >= before for before, later in zip(self.epochs, now, strict=True))
        self.epochs = now
        for member in group.members.values():
            current = member.current
            assert member.epoch <= group.assignment_epoch <= group.epoch
            for partitions in (current.assigned, current.revoking):
                epochs = [epoch for numbers in partitions.values() for epoch in numbers.values()]
                assert all(epoch <= max(member.epoch, 0) for epoch in epochs)


class Computing(Machine):
    """Members that compute the target themselves (CP-29 to CP-37): at once, late, badly, or never."""

    CONFIG = GroupConfig(assignment_interval_ms=1000, client_assignors=True)
    OFFERS = (Assignor(name="ours"),)

    def __init__(self) -> None:
        super().__init__()
        self.results: list[tuple[str, ConsumerGroupPrepareAssignmentResponse]] = []

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), metadata=st.sampled_from([b"1", b"2", b"3", None]))
    def change_offer(self, data, metadata) -> None:
        client = self.pick(data)
        client.offers = () if metadata is None else (Assignor(name="ours", metadata_bytes=metadata),)
        client.full = True
        self.beat(client)

    @precondition(lambda self: any(client.asked for client in self.clients.values()))
    @rule(data=st.data())
    def prepare(self, data) -> None:
        asked = sorted(name for name, client in self.clients.items() if client.asked)
        client = self.clients[data.draw(st.sampled_from(asked))]
        request = ConsumerGroupPrepareAssignmentRequest(
            group_id="g", member_id=client.member_id, member_epoch=client.epoch
        )
        answer = self.ask(request, 0)
        if answer.error_code == E.NONE:
            self.results.append((client.member_id, answer))

    @precondition(lambda self: self.results)
    @rule(data=st.data(), fails=st.booleans())
    def install(self, data, fails) -> None:
        """Hand in a result, however old: each partition goes to any member that subscribes to its topic."""
        member_id, prepared = data.draw(st.sampled_from(self.results))
        given = {member.member_id: {} for member in prepared.members}
        for topic in prepared.topics:
            takers = [m.member_id for m in prepared.members if topic.topic_name in m.subscribed_topic_names]
            for number in range(topic.num_partitions):
                taker = given[data.draw(st.sampled_from(takers))]
                taker.setdefault(topic.topic_id, []).append(number)
        failed = prepared.members[0].member_id if fails else None
        client = self.clients.get(member_id)
        request = ConsumerGroupInstallAssignmentRequest(
            group_id="g",
            member_id=member_id,
            member_epoch=client.epoch if client else 0,
            group_epoch=prepared.group_epoch,
            members=tuple(
                Installed(
                    member_id=name,
                    error=int(name == failed),
                    topic_partitions=tuple(
                        InstalledPartitions(topic_id=topic_id, partitions=tuple(numbers))
                        for topic_id, numbers in topics.items()
                    ),
                )
                for name, topics in given.items()
            ),
        )
        answer = self.ask(request, 0)
        assert answer.error_code in (
            E.NONE,
            E.UNKNOWN_MEMBER_ID,
            E.GROUP_ID_NOT_FOUND,
            E.STALE_MEMBER_EPOCH,
            INVALID_ASSIGNMENT,
        )

    @rule()
    def settle(self) -> None:
        """Once nobody offers an assignor the server computes, whatever was computed before."""
        for client in list(self.clients.values()):
            client.offers, client.full = (), True
            self.beat(client)
        super().settle()


def hard(group: ConsumerGroup | None):
    """What a reload must give back."""
    if group is None:
        return None
    return (
        group.epoch,
        group.metadata_hash,
        group.assignment_epoch,
        group.assignment_timestamp_ms,
        group.members,
        group.targets,
        group.resolved,
        group.static,
    )


TestConsumerGroups = Machine.TestCase
TestComputingMembers = Computing.TestCase
TestConsumerGroups.settings = TestComputingMembers.settings = settings(
    max_examples=120 if FULL else 40,
    stateful_step_count=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
