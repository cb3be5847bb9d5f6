"""Whatever is asked in whatever order: outcomes replay to the state they left, refusals leave nothing."""

from __future__ import annotations

import copyreg
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from types import MappingProxyType
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kgroup.coordinator.assignors.interface import Assignment, AssignorError, GroupSpec
from kgroup.coordinator.config import GroupConfig
from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.coordinator import HANDLERS, Coordinator
from kgroup.coordinator.outcome import Outcome, Record, Request
from kgroup.domain import Topic, TopicImage
from kgroup.errors import Refused
from kgroup.protocol.codec import Message
from kgroup.protocol.group_records import decode_key, decode_value, encode_key, encode_value
from kgroup.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgroup.protocol.messages.delete_groups import DeleteGroupsRequest
from kgroup.protocol.messages.heartbeat import HeartbeatRequest
from kgroup.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kgroup.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kgroup.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kgroup.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kgroup.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kgroup.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kgroup.protocol.subscription import Subscription
from tests.scenarios.hard_state import same_hard_state

copyreg.pickle(MappingProxyType, lambda empty: (MappingProxyType, (dict(empty),)))  # what deepcopy asks

NAMES = ("t0", "t1")
PATTERNS = ("t.*", "none", "[", "")
clients = st.integers(0, 3)
instances = st.sampled_from([None, None, "i0", "i1"])
subscribed = st.sets(st.sampled_from(NAMES)).map(lambda names: tuple(sorted(names)))
epochs = st.sampled_from(["own", "own", "own", "own", 0, -1, -2, "older", "newer"])


class Moody:
    """An assignor that fails now and then; else it gives every topic to its first subscriber."""

    name = "uniform"

    def __init__(self) -> None:
        self.fails = self.failed = False

    def assign(self, group: GroupSpec) -> dict[str, Assignment]:
        self.failed = self.fails
        if self.fails:
            raise AssignorError("out of order")
        target: dict[str, dict[bytes, tuple[int, ...]]] = {member_id: {} for member_id in group.members}
        for topic_id, topic in group.topics.items():
            first = next((m for m in sorted(target) if topic_id in group.members[m].topic_ids), None)
            if first is not None:
                target[first][topic_id] = tuple(range(topic.partitions))
        return dict(target)


@contextmanager
def refusals_of(kind: type[Message]) -> Iterator[list[Refused]]:
    """The refusals a handler raises meanwhile."""
    real, seen = HANDLERS[kind], []

    def handler(step: Any, body: Any) -> Message | None:
        try:
            return real(step, body)
        except Refused as refused:
            seen.append(refused)
            raise

    HANDLERS[kind] = handler
    try:
        yield seen
    finally:
        HANDLERS[kind] = real


def everything(coordinator: Coordinator) -> Any:
    """All that a later call can tell: groups with what is parked in them, offsets, timers, counters."""
    state = coordinator.state
    return deepcopy(
        (
            state.groups,
            vars(state.offsets),
            state.timers._deadlines,  # deadlines and what they carry, without the heap's leftovers
            state.counters,
            state.converted,
            state.computations,
            state.refused_epochs,
        )
    )


def forget_the_epoch_looked_at(seen: Any) -> None:
    """Clear what an assignor that failed leaves behind, here as in Kafka: the next heartbeat looks again."""
    for group in seen[0].values():
        if isinstance(group, ConsumerGroup):
            group.refresh_epoch = 0


class Machine(RuleBasedStateMachine):
    """Two groups, four clients that speak both protocols, and time."""

    def __init__(self) -> None:
        super().__init__()
        self.now, self.tickets, self.offset, self.version = 1000, 0, 0, 1
        self.counts = dict.fromkeys(NAMES, 2)
        config = GroupConfig(max_size=3, initial_rebalance_delay_ms=500, offset_metadata_max_bytes=4)
        self.coordinator = Coordinator(config, "one", self.image())
        self.twin = Coordinator(config, "two", self.image())
        self.assignor = Moody()
        self.coordinator.state.assignors = {"uniform": self.assignor, "range": self.assignor}
        self.ids: dict[int, str] = {}
        self.known: dict[int, int] = {}
        self.asked: dict[int, int] = {}
        self.settle(self.coordinator.loaded(self.now))

    def image(self) -> TopicImage:
        topics = [Topic(name, name.encode() * 8, count) for name, count in self.counts.items()]
        return TopicImage.of(topics, self.version, self.version)

    def settle(self, outcome: Outcome) -> None:
        producer = outcome.producer.producer_id if outcome.producer else -1
        for one in outcome.records:
            key = decode_key(encode_key(one.key))
            record = Record(key, decode_value(key, encode_value(one.value)))  # type: ignore[arg-type]
            for coordinator in (self.coordinator, self.twin):
                coordinator.replay(record, self.offset, producer)
            self.offset += 1
        for reply in outcome.replies:
            client, body = self.asked.get(reply.ticket, -1), reply.response
            if member_id := getattr(body, "member_id", ""):
                self.ids[client] = member_id
            told = getattr(body, "generation_id", getattr(body, "member_epoch", None))
            if told is not None:
                self.known[client] = told

    def ask(self, client: int, body: Message, version: int) -> None:
        self.tickets += 1
        self.asked[self.tickets] = client
        before = everything(self.coordinator)
        self.assignor.failed = False
        with refusals_of(type(body)) as refused:
            request = Request(body, version, f"c{client}", "/127.0.0.1")
            outcome = self.coordinator.step(self.tickets, request, self.now)
        if refused:
            assert not outcome.records
            assert [reply.ticket for reply in outcome.replies] == [self.tickets]
            after = everything(self.coordinator)
            if self.assignor.failed:
                forget_the_epoch_looked_at(before)
                forget_the_epoch_looked_at(after)
            assert after == before
        self.settle(outcome)

    def epoch(self, client: int, choice: str | int) -> int:
        if isinstance(choice, int):
            return choice
        return self.known.get(client, 0) + {"own": 0, "older": -1, "newer": 1}[choice]

    @rule(client=clients, instance=instances, names=subscribed, anew=st.booleans(), cut=st.booleans())
    def join(self, client, instance, names, anew, cut):
        metadata = Subscription(topics=names).encode()
        protocol = JoinGroupRequestProtocol(name="range", metadata=metadata[:3] if cut and anew else metadata)
        body = JoinGroupRequest(
            group_id="g",
            member_id="" if anew else self.ids.get(client, ""),
            group_instance_id=instance,
            protocol_type="consumer",
            protocols=(protocol,),
            session_timeout_ms=6000,
            rebalance_timeout_ms=9000,
        )
        self.ask(client, body, 9)

    @rule(client=clients, epoch=epochs, share=st.binary(max_size=3))
    def sync(self, client, epoch, share):
        member_id = self.ids.get(client, "")
        assignments = tuple(
            SyncGroupRequestAssignment(member_id=other, assignment=share) for other in self.ids.values()
        )
        body = SyncGroupRequest(
            group_id="g",
            member_id=member_id,
            generation_id=self.epoch(client, epoch),
            protocol_type="consumer",
            protocol_name="range",
            assignments=assignments,
        )
        self.ask(client, body, 5)

    @rule(client=clients, epoch=epochs)
    def heartbeat(self, client, epoch):
        generation = self.epoch(client, epoch)
        member_id = self.ids.get(client, "")
        self.ask(client, HeartbeatRequest(group_id="g", member_id=member_id, generation_id=generation), 4)

    @rule(leavers=st.lists(st.tuples(clients, instances), min_size=1, max_size=2))
    def leave(self, leavers):
        members = tuple(
            MemberIdentity(member_id=self.ids.get(client, ""), group_instance_id=instance)
            for client, instance in leavers
        )
        self.ask(leavers[0][0], LeaveGroupRequest(group_id="g", members=members), 5)

    @rule(
        client=clients,
        epoch=epochs,
        instance=instances,
        names=subscribed,
        full=st.booleans(),
        pattern=st.none() | st.sampled_from(PATTERNS),
        fails=st.booleans(),
    )
    def consumer_heartbeat(self, client, epoch, instance, names, full, pattern, fails):
        number = self.epoch(client, epoch)
        joins = number == 0 or full
        self.assignor.fails = fails and pattern is None
        body = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id=self.ids.get(client) or f"m{client}",
            member_epoch=number,
            instance_id=instance,
            rebalance_timeout_ms=9000 if joins else -1,
            subscribed_topic_names=names if joins else None,
            subscribed_topic_regex=pattern,
            topic_partitions=() if joins else None,
        )
        self.ask(client, body, 1)
        self.assignor.fails = False

    @rule(
        client=clients,
        epoch=epochs,
        topic=st.sampled_from(NAMES),
        metadata=st.sampled_from(["", "m", "longer"]),
    )
    def commit(self, client, epoch, topic, metadata):
        part = OffsetCommitRequestPartition(
            partition_index=0, committed_offset=7, committed_metadata=metadata
        )
        body = OffsetCommitRequest(
            group_id="g",
            member_id=self.ids.get(client, ""),
            topics=(OffsetCommitRequestTopic(name=topic, partitions=(part,)),),
            generation_id_or_member_epoch=self.epoch(client, epoch),
        )
        self.ask(client, body, 9)

    @rule(topic=st.sampled_from(NAMES), producer=st.integers(5, 6))
    def commit_in_a_transaction(self, topic, producer):
        part = TxnOffsetCommitRequestPartition(partition_index=1, committed_offset=9)
        body = TxnOffsetCommitRequest(
            transactional_id="t",
            group_id="g",
            producer_id=producer,
            producer_epoch=0,
            generation_id=-1,
            topics=(TxnOffsetCommitRequestTopic(name=topic, partitions=(part,)),),
        )
        self.ask(-1, body, 5)

    @rule(producer=st.integers(5, 6), committed=st.booleans())
    def end_a_transaction(self, producer, committed):
        for coordinator in (self.coordinator, self.twin):
            coordinator.end_transaction(producer, committed=committed)
        self.offset += 1

    @rule(topic=st.sampled_from(NAMES))
    def delete_offsets(self, topic):
        part = OffsetDeleteRequestPartition(partition_index=0)
        topics = (OffsetDeleteRequestTopic(name=topic, partitions=(part,)),)
        self.ask(-1, OffsetDeleteRequest(group_id="g", topics=topics), 0)

    @rule()
    def delete_the_group(self):
        self.ask(-1, DeleteGroupsRequest(groups_names=("g",)), 2)

    @rule(ms=st.sampled_from([1, 500, 6000, 50_000]))
    def let_time_pass(self, ms):
        self.now += ms
        while (due := self.coordinator.next_wake_ms()) is not None and due <= self.now:
            self.settle(self.coordinator.wake(self.now))

    @rule(name=st.sampled_from(NAMES))
    def change_topics(self, name):
        self.version += 1
        if self.counts.pop(name, None) is None:
            self.counts[name] = 3
        self.twin.state.image = self.image()
        self.settle(self.coordinator.topics_changed(self.image(), self.now))

    @invariant()
    def a_fresh_coordinator_that_replays_the_log_agrees(self):
        same_hard_state(self.coordinator, self.twin)


TestOutcomes = Machine.TestCase
TestOutcomes.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
