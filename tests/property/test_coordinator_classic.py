"""Classic groups under random schedules: what must hold after every step, whoever does what and when."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kgroup.coordinator.classic.group import ClassicGroup
from kgroup.coordinator.config import GroupConfig
from kgroup.coordinator.outcome import Reply, Request
from kgroup.domain import Topic, TopicImage
from kgroup.errors import ErrorCode as E
from kgroup.errors import StorageError
from kgroup.log.memory import MemoryLog
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.heartbeat import HeartbeatRequest
from kgroup.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from kgroup.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kgroup.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kgroup.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kgroup.runtime.shard import Shard
from tests.sampled import FULL
from tests.scenarios.hard_state import reloaded, same_hard_state

TOPIC = Topic("t", b"t" * 16, 2)
CONFIG = GroupConfig(
    min_session_timeout_ms=1, initial_rebalance_delay_ms=300, max_size=4, retention_check_interval_ms=10**9
)
INSTANCES = (None, "A", "B")
ACTORS = st.integers(0, 4)


class ClassicGroups(RuleBasedStateMachine):
    """Five clients, some static, that come, go and fall silent, over a disk that fails."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_000_000
        self.failing = False
        self.log = MemoryLog(self._before_append)
        self.shard = Shard(0, self.log, CONFIG, 1, TopicImage.of([TOPIC]))
        self.shard.load(self.now)
        self.tickets = 0
        self.open: dict[int, tuple[int, Message]] = {}
        self.ids = dict.fromkeys(range(5), "")
        self.generations = dict.fromkeys(range(5), -1)
        self.highest = 0

    def _before_append(self, _: bytes) -> None:
        if self.failing:
            self.failing = False
            raise StorageError("the disk is full")

    def _send(self, actor: int, body: Message, version: int) -> None:
        self.tickets += 1
        self.open[self.tickets] = actor, body
        self._take(self.shard.submit(self.tickets, Request(body, version, f"c{actor}", "/h"), self.now))

    def _take(self, replies: list[Reply]) -> None:
        for reply in replies:
            actor, body = self.open.pop(reply.ticket)  # KeyError: a second reply to one request
            code = getattr(reply.response, "error_code", 0)
            if isinstance(reply.response, JoinGroupResponse) and code in (E.NONE, E.MEMBER_ID_REQUIRED):
                self.ids[actor] = reply.response.member_id
                self.generations[actor] = reply.response.generation_id
            elif code in (E.UNKNOWN_MEMBER_ID, E.FENCED_INSTANCE_ID):
                self.ids[actor] = ""
            assert type(reply.response).API == body.API

    def _instance(self, actor: int) -> str | None:
        return INSTANCES[actor % len(INSTANCES)]

    @rule(
        actor=ACTORS,
        version=st.sampled_from([3, 8, 9]),
        protocols=st.sampled_from(["ab", "ba", "b"]),
        rebalance_ms=st.sampled_from([8_000, 8_000, 8_000, 1, 0, -1, -(2**31)]),
    )
    def join(self, actor: int, version: int, protocols: str, rebalance_ms: int) -> None:
        instance = self._instance(actor) if version >= 5 else None
        session = 5_000 + 1000 * actor
        body = JoinGroupRequest(
            group_id="g",
            session_timeout_ms=session,
            rebalance_timeout_ms=rebalance_ms,
            member_id=self.ids[actor],
            group_instance_id=instance,
            protocol_type="consumer",
            protocols=tuple(JoinGroupRequestProtocol(name=n, metadata=n.encode()) for n in protocols),
        )
        self._send(actor, body, version)

    @rule(actor=ACTORS)
    def restart_client(self, actor: int) -> None:
        self.ids[actor] = ""

    @rule(actor=ACTORS)
    def sync(self, actor: int) -> None:
        given_ids = [member_id for member_id in self.ids.values() if member_id]
        assignments = (SyncGroupRequestAssignment(member_id=m, assignment=m.encode()) for m in given_ids)
        body = SyncGroupRequest(
            group_id="g",
            generation_id=self.generations[actor],
            member_id=self.ids[actor],
            assignments=tuple(assignments),
        )
        self._send(actor, body, 3)

    @rule(actor=ACTORS)
    def beat(self, actor: int) -> None:
        generation = self.generations[actor]
        self._send(
            actor, HeartbeatRequest(group_id="g", generation_id=generation, member_id=self.ids[actor]), 4
        )

    @rule(actor=ACTORS)
    def leave(self, actor: int) -> None:
        self._send(
            actor, LeaveGroupRequest(group_id="g", members=(MemberIdentity(member_id=self.ids[actor]),)), 5
        )

    @rule(instances=st.sampled_from([("A",), ("B",), ("A", "B"), ("Z",)]))
    def remove(self, instances: tuple[str, ...]) -> None:
        members = tuple(MemberIdentity(member_id="", group_instance_id=name) for name in instances)
        self._send(4, LeaveGroupRequest(group_id="g", members=members), 5)

    @rule(actor=ACTORS, offset=st.integers(0, 9))
    def commit(self, actor: int, offset: int) -> None:
        partition = OffsetCommitRequestPartition(partition_index=offset % 2, committed_offset=offset)
        topic = OffsetCommitRequestTopic(name="t", topic_id=TOPIC.topic_id, partitions=(partition,))
        body = OffsetCommitRequest(
            group_id="g",
            generation_id_or_member_epoch=self.generations[actor],
            member_id=self.ids[actor],
            topics=(topic,),
        )
        self._send(actor, body, 9)

    @rule(ms=st.sampled_from([1, 300, 2_500, 5_000, 8_000, 300_000]))
    def wait(self, ms: int) -> None:
        until = self.now + ms
        while (due := self.shard.next_wake_ms()) is not None and due <= until:
            self.now = max(self.now, due)
            self._take(self.shard.wake(self.now))
        self.now = until

    @rule()
    def fail_next_append(self) -> None:
        self.failing = True

    @rule()
    def fail_over(self) -> None:
        self._take(self.shard.abandon())
        self.shard.load(self.now)

    def _group(self) -> ClassicGroup | None:
        group = self.shard.coordinator.state.groups.get("g")
        assert group is None or isinstance(group, ClassicGroup)
        return group

    @invariant()
    def log_and_memory_agree(self) -> None:
        same_hard_state(self.shard.coordinator, reloaded(self.shard, self.now).coordinator)

    @invariant()
    def committed_generations_never_go_back(self) -> None:
        group = self._group()
        committed = 0 if group is None else group.committed.generation
        assert committed >= self.highest
        self.highest = committed

    @invariant()
    def static_members_are_consistent(self) -> None:
        """SM-24: each entry of the map names a live member, and each static member has one entry."""
        group = self._group()
        if group is not None:
            held = {m.instance_id: m.member_id for m in group.members.values() if m.instance_id is not None}
            assert held == group.static
            assert sum(m.instance_id is not None for m in group.members.values()) == len(group.static)
            assert not any(pending in group.members for pending in group.pending_joiners)  # SM-29

    @invariant()
    def counts_are_what_they_count(self) -> None:
        group = self._group()
        if group is None:
            return
        members = group.members.values()
        assert group.awaiting_join == sum(member.join is not None for member in members)
        names = {name for name, count in group.supporters.items() if count}
        counted = {name: sum(name in {p.name for p in m.protocols} for m in members) for name in names}
        assert counted == {name: group.supporters[name] for name in names}
        assert all(member_id == member.member_id for member_id, member in group.members.items())

    @invariant()
    def whoever_waits_is_known(self) -> None:
        """Every open request is parked with a member, and nobody is parked twice."""
        group = self._group()
        parked = [
            slot.ticket
            for member in (group.members.values() if group is not None else ())
            for slot in (member.join, member.sync)
            if slot is not None
        ]
        assert sorted(parked) == sorted(self.open)

    @invariant()
    def groups_with_a_generation_have_a_leader(self) -> None:
        group = self._group()
        if group is not None and group.state in ("Stable", "CompletingRebalance"):
            assert group.leader in group.members
            assert group.protocol in {p.name for m in group.members.values() for p in m.protocols}

    def teardown(self) -> None:
        """In the end every request has been answered, exactly once."""
        self.failing = False
        self.wait(1_000_000)
        assert not self.open


ClassicGroups.TestCase.settings = settings(
    max_examples=200 if FULL else 60,
    stateful_step_count=70,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestClassicGroups = ClassicGroups.TestCase
