"""A member of a classic group: JoinGroup, SyncGroup, Heartbeat, LeaveGroup (KIP-345, KIP-394, KIP-429).

Behaves towards the coordinator as Kafka's own consumer does, except that it has one request in flight at a
time, not counting commits, and that the host confirms each revocation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from kgroup.coordinator.assignors.client_side import ClientAssignor, MemberSubscription
from kgroup.domain import Topic, TopicPartition, numbers_by_topic
from kgroup.errors import DecodeError, ErrorCode
from kgroup.members.asking import AGAIN, MOVED, Asking
from kgroup.members.commits import NAMES_UNTIL, all_failed, commit_errors, commit_request
from kgroup.members.effects import (
    Assigned,
    Committed,
    CoordinatorMoved,
    Effect,
    Failed,
    Left,
    Lost,
    NeedTopics,
    Revoke,
    Send,
    sorted_partitions,
)
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kgroup.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from kgroup.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from kgroup.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kgroup.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from kgroup.protocol.subscription import PROTOCOL_TYPE, Assignment, Subscription

NO_GENERATION = -1
INSTANCE_IDS_FROM = 5
E = ErrorCode
_THROWN_OUT = {E.UNKNOWN_MEMBER_ID, E.ILLEGAL_GENERATION}


class Phase(Enum):
    """A classic member's phase; `REVOKING` waits for the host, the others in -ING for an answer."""

    IDLE = "idle"
    REVOKING = "revoking"
    JOINING = "joining"
    ASSIGNING = "assigning"
    SYNCING = "syncing"
    STABLE = "stable"
    WAITING = "waiting"
    LEAVING = "leaving"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class ClassicTimings:
    """A member's timeouts in milliseconds, with the defaults of Kafka's consumer."""

    session_timeout_ms: int = 45_000
    rebalance_timeout_ms: int = 300_000
    heartbeat_interval_ms: int = 3_000
    retry_backoff_ms: int = 100


class ClassicMember(Asking):
    """See `GroupMember`. `assignors` in order of preference; cooperative only if all of them are."""

    def __init__(
        self,
        group_id: str,
        topics: Iterable[str],
        assignors: Sequence[ClientAssignor],
        *,
        instance_id: str | None = None,
        rack: str | None = None,
        timings: ClassicTimings | None = None,
    ) -> None:
        super().__init__()
        self.group_id = group_id
        self.member_id = ""
        self.instance_id = instance_id
        self.generation = NO_GENERATION
        self.is_leader = False
        self.owned: frozenset[TopicPartition] = frozenset()
        self.phase = Phase.IDLE
        self._subscribed(topics, assignors)
        self._rack = rack
        self._timings = timings or ClassicTimings()
        self._known: Mapping[str, Topic] = {}
        self._led: dict[str, MemberSubscription] = {}
        self._led_by: Led | None = None
        self._protocol: str | None = None
        self._target: frozenset[TopicPartition] = frozenset()

    def _subscribed(self, topics: Iterable[str], assignors: Sequence[ClientAssignor]) -> None:
        self._topics = tuple(sorted(set(topics)))
        self._assignors = {assignor.name: assignor for assignor in assignors}
        self._cooperative = all(assignor.cooperative for assignor in assignors)

    def subscribe(
        self, topics: Iterable[str], assignors: Sequence[ClientAssignor], now_ms: int
    ) -> list[Effect]:
        """Change the topics or assignors from now on; rejoins at once if it is in the group."""
        self._subscribed(topics, assignors)
        return self._rejoin(now_ms) if self.phase is Phase.STABLE else []

    def start(self, now_ms: int) -> list[Effect]:
        """See `GroupMember.start`."""
        return self._rejoin(now_ms)

    def receive(self, request: Message, response: Message, now_ms: int) -> list[Effect]:
        """See `GroupMember.receive`."""
        if isinstance(request, OffsetCommitRequest) and isinstance(response, OffsetCommitResponse):
            return self._on_commit(request, response, now_ms)
        if request is not self._in_flight:
            return []
        self._in_flight = None
        match response:
            case JoinGroupResponse():
                return self._on_join(response, now_ms)
            case SyncGroupResponse():
                return self._on_sync(response, now_ms)
            case HeartbeatResponse():
                return self._on_heartbeat(response, now_ms)
            case LeaveGroupResponse():
                self.phase = Phase.DONE
                return [Left()]
            case _:
                raise TypeError(f"{type(response).__name__} is no answer to a classic member")

    def unanswered(self, request: Message, now_ms: int) -> list[Effect]:
        """See `GroupMember.unanswered`. A join or sync starts over; a heartbeat is sent again."""
        if isinstance(request, OffsetCommitRequest):
            return [Committed(all_failed(request, E.REQUEST_TIMED_OUT))]
        if request is not self._in_flight:
            return []
        self._in_flight = None
        if self.phase is Phase.LEAVING:
            self.phase = Phase.DONE
            return [Left()]
        return [CoordinatorMoved(), *self._retry(now_ms)]

    def wake(self, now_ms: int) -> list[Effect]:
        """See `GroupMember.wake`."""
        if not self._is_woken(now_ms):
            return []
        if self.phase is Phase.WAITING:
            return self._join(now_ms)
        if self.phase in (Phase.STABLE, Phase.REVOKING):
            return [
                self._send(
                    HeartbeatRequest(
                        group_id=self.group_id,
                        generation_id=self.generation,
                        member_id=self.member_id,
                        group_instance_id=self.instance_id,
                    )
                )
            ]
        return []

    def update_topics(self, topics: Mapping[str, Topic], now_ms: int) -> list[Effect]:
        """See `GroupMember.update_topics`. A leader whose topics changed rejoins, to assign again."""
        self._known = topics
        if self.phase is Phase.ASSIGNING:
            return self._assign()
        if self.phase is not Phase.STABLE or not self.is_leader:
            return []
        before, self._led_by = self._led_by, Led.of(self._known, self._led, self._rack)
        return [] if before in (None, self._led_by) else self._rejoin(now_ms)

    def revoked(self, now_ms: int) -> list[Effect]:
        """See `GroupMember.revoked`."""
        if self.phase is not Phase.REVOKING:
            return []
        if not self._cooperative:
            self.owned = frozenset()
            return self._join(now_ms)
        self.owned &= self._target
        self.phase = Phase.STABLE
        return [*self._take_on_target(), *self._join(now_ms)]

    def commit(self, offsets: Mapping[TopicPartition, int], now_ms: int) -> list[Effect]:
        """See `GroupMember.commit`."""
        request = commit_request(self.group_id, self.generation, self.member_id, self.instance_id, offsets)
        return [Send(request, min_version=2, max_version=NAMES_UNTIL)]

    def leave(self, now_ms: int, for_good: bool = False) -> list[Effect]:
        """See `GroupMember.leave`. A static member that does not leave for good just stops sending."""
        owned, self.owned = self.owned, frozenset()
        given_up: list[Effect] = [Revoke(sorted_partitions(owned))] if owned else []
        self._wake_ms = None
        if not self.member_id or (self.instance_id is not None and not for_good) or self.phase is Phase.DONE:
            self.phase = Phase.DONE
            return [*given_up, Left()]
        self.phase = Phase.LEAVING
        me = MemberIdentity(
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            reason="the consumer is being closed",
        )
        request = LeaveGroupRequest(group_id=self.group_id, member_id=self.member_id, members=(me,))
        return [*given_up, self._send(request)]

    def _rejoin(self, now_ms: int) -> list[Effect]:
        """Start a rebalance: an eager member first gives up everything."""
        if self._cooperative or not self.owned:
            return self._join(now_ms)
        self.phase = Phase.REVOKING
        beat = self._wake_at(now_ms + self._timings.heartbeat_interval_ms)
        return [Revoke(sorted_partitions(self.owned)), *beat]

    def _join(self, now_ms: int) -> list[Effect]:
        if self._in_flight is not None:
            self.phase = Phase.WAITING
            return self._wake_at(now_ms + self._timings.retry_backoff_ms)
        self.phase = Phase.JOINING
        self._wake_ms = None
        protocols = tuple(
            JoinGroupRequestProtocol(name=name, metadata=self._subscription(assignor))
            for name, assignor in self._assignors.items()
        )
        return [
            self._send(
                JoinGroupRequest(
                    group_id=self.group_id,
                    session_timeout_ms=self._timings.session_timeout_ms,
                    rebalance_timeout_ms=self._timings.rebalance_timeout_ms,
                    member_id=self.member_id,
                    group_instance_id=self.instance_id,
                    protocol_type=PROTOCOL_TYPE,
                    protocols=protocols,
                ),
                min_version=0 if self.instance_id is None else INSTANCE_IDS_FROM,
            )
        ]

    def _subscription(self, assignor: ClientAssignor) -> bytes:
        return Subscription(
            self._topics,
            assignor.user_data(self.generation),
            sorted_partitions(self.owned),
            self.generation,
            self._rack,
        ).encode()

    def _on_join(self, response: JoinGroupResponse, now_ms: int) -> list[Effect]:
        code = response.error_code
        if code == E.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
            return self._join(now_ms)
        if code:
            return self._on_error(code, now_ms)
        if response.protocol_name not in self._assignors:
            return self._fail(E.INCONSISTENT_GROUP_PROTOCOL, f"the group uses {response.protocol_name!r}")
        self.member_id = response.member_id
        self.generation = response.generation_id
        self.is_leader = response.leader == response.member_id
        self._protocol = response.protocol_name
        self._led = {}
        return self._lead(response) if self.is_leader else self._sync(())

    def _lead(self, response: JoinGroupResponse) -> list[Effect]:
        """As leader: look up the topics of all members, then assign them."""
        try:
            self._led = subscriptions_of(response.members)
        except DecodeError as error:
            return self._fail(E.INCONSISTENT_GROUP_PROTOCOL, f"a member's subscription: {error.message}")
        if response.skip_assignment:
            self._led_by = None
            return self._sync(())
        topics = subscribed_topics(self._led)
        if topics <= self._known.keys():
            return self._assign()
        self.phase = Phase.ASSIGNING
        return [NeedTopics(topics)]

    def _assign(self) -> list[Effect]:
        assert self._protocol is not None
        self._led_by = Led.of(self._known, self._led, self._rack)
        return self._sync(assign(self._assignors[self._protocol], self._led_by, self._led))

    def _sync(self, assignments: tuple[SyncGroupRequestAssignment, ...]) -> list[Effect]:
        self.phase = Phase.SYNCING
        return [
            self._send(
                SyncGroupRequest(
                    group_id=self.group_id,
                    generation_id=self.generation,
                    member_id=self.member_id,
                    group_instance_id=self.instance_id,
                    protocol_type=PROTOCOL_TYPE,
                    protocol_name=self._protocol,
                    assignments=assignments,
                )
            )
        ]

    def _on_sync(self, response: SyncGroupResponse, now_ms: int) -> list[Effect]:
        if response.error_code:
            return self._on_error(response.error_code, now_ms)
        try:
            given = Assignment.decode(response.assignment).partitions if response.assignment else ()
        except DecodeError as error:
            return self._fail(E.INCONSISTENT_GROUP_PROTOCOL, f"the leader's assignment: {error.message}")
        self._target = frozenset(given)
        beat = self._wake_at(now_ms + self._timings.heartbeat_interval_ms)
        if self.owned - self._target:
            self.phase = Phase.REVOKING
            return [Revoke(sorted_partitions(self.owned - self._target)), *beat]
        self.phase = Phase.STABLE
        return [*self._take_on_target(), *beat]

    def _take_on_target(self) -> list[Effect]:
        added = sorted_partitions(self._target - self.owned)
        self.owned = self._target
        return [Assigned(added)]

    def _on_heartbeat(self, response: HeartbeatResponse, now_ms: int) -> list[Effect]:
        """Handle the answer; while a rejoin is being prepared, only removal from the group matters."""
        code = response.error_code
        harmless = code in (E.NONE, E.REBALANCE_IN_PROGRESS)
        if harmless and self.phase is Phase.WAITING:
            return self._join(now_ms)
        if code == E.NONE or (harmless and self.phase is Phase.REVOKING):
            return self._wake_at(now_ms + self._timings.heartbeat_interval_ms)
        return self._on_error(code, now_ms)

    def _on_commit(
        self, request: OffsetCommitRequest, response: OffsetCommitResponse, now_ms: int
    ) -> list[Effect]:
        errors = commit_errors(response)
        current = (
            request.generation_id_or_member_epoch == self.generation and request.member_id == self.member_id
        )
        if not current or self.phase is not Phase.STABLE or self._in_flight is not None:
            return [Committed(errors)]
        serious = {*_THROWN_OUT, E.FENCED_INSTANCE_ID, E.REBALANCE_IN_PROGRESS} & set(errors.values())
        if not serious:
            return [Committed(errors)]
        return [Committed(errors), *self._on_error(min(serious), now_ms)]

    def _on_error(self, code: int, now_ms: int) -> list[Effect]:
        """Return what an error leads to: rejoin, retry, or give up."""
        if code in MOVED:
            return [CoordinatorMoved(), *self._retry(now_ms)]
        if code == E.REBALANCE_IN_PROGRESS:
            return self._rejoin(now_ms)
        if code in _THROWN_OUT:
            if code == E.UNKNOWN_MEMBER_ID:
                self.member_id = ""
            return [*self._lose_all(), *self._join(now_ms)]
        if code in AGAIN:
            return self._retry(now_ms)
        return self._fail(code, E.name_of(code))

    def _retry(self, now_ms: int) -> list[Effect]:
        """Retry after the backoff: a heartbeat as it was, anything else from the join on."""
        if self.phase not in (Phase.STABLE, Phase.REVOKING):
            self.phase = Phase.WAITING
        return self._wake_at(now_ms + self._timings.retry_backoff_ms)

    def _lose_all(self) -> list[Effect]:
        self.generation = NO_GENERATION
        lost, self.owned = self.owned, frozenset()
        return [Lost(sorted_partitions(lost))] if lost else []

    def _fail(self, code: int, message: str) -> list[Effect]:
        lost = self._lose_all()
        self.phase = Phase.DONE
        self._wake_ms = None
        return [*lost, Failed(int(code), message)]


def subscriptions_of(members: Iterable[JoinGroupResponseMember]) -> dict[str, MemberSubscription]:
    """Return what each member wants and has, by member id; DecodeError if one is malformed."""
    return {member.member_id: _subscription(member.metadata, member.group_instance_id) for member in members}


def subscribed_topics(subscriptions: Mapping[str, MemberSubscription]) -> frozenset[str]:
    """Return every topic that some member subscribes to."""
    return frozenset().union(*(member.topics for member in subscriptions.values()))


Racks = Mapping[str, tuple[tuple[str, ...], ...]]
"""The racks of each partition's replicas, by topic."""


@dataclass(frozen=True, slots=True)
class Led:
    """The topics a leader assigned by; it rejoins when they differ (==).

    Every leader assigns by racks, but only a leader with a rack rejoins for them (KIP-881).
    """

    partitions: Mapping[str, int]
    racks: Racks = field(compare=False)
    watched: Racks

    @classmethod
    def of(
        cls, known: Mapping[str, Topic], subscriptions: Mapping[str, MemberSubscription], rack: str | None
    ) -> Led:
        """Return what is known of the topics that some member wants; `rack` is the leader's own."""
        topics = [known[name] for name in subscribed_topics(subscriptions) if name in known]
        racks = {topic.name: topic.racks for topic in topics if topic.racks}
        return cls({topic.name: topic.partitions for topic in topics}, racks, racks if rack else {})


def assign(
    assignor: ClientAssignor, led: Led, subscriptions: Mapping[str, MemberSubscription]
) -> tuple[SyncGroupRequestAssignment, ...]:
    """Return the content of the leader's SyncGroup: an encoded assignment for every member."""
    targets = assignor.assign(led.partitions, subscriptions, led.racks)
    return tuple(
        SyncGroupRequestAssignment(
            member_id=member_id,
            assignment=Assignment(
                tuple(TopicPartition(topic, p) for topic, held in sorted(target.items()) for p in held)
            ).encode(),
        )
        for member_id, target in sorted(targets.items())
    )


def _subscription(metadata: bytes, instance_id: str | None) -> MemberSubscription:
    subscription = Subscription.decode(metadata)
    return MemberSubscription(
        frozenset(subscription.topics),
        numbers_by_topic(subscription.owned),
        subscription.generation,
        subscription.user_data,
        instance_id,
        subscription.rack,
    )
