"""Stand-ins for a group's clients in a rehearsal: they answer the coordinator as clients do, and no more.

A client takes over a member as the records describe it, so unlike kgroup.members it begins in mid-life.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from kgroup.admin.models import COOPERATIVE_STICKY
from kgroup.domain import TopicPartition
from kgroup.errors import DecodeError, ErrorCode
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kgroup.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kgroup.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from kgroup.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kgroup.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from kgroup.protocol.subscription import PROTOCOL_TYPE, Assignment, Subscription, version_of

R = TypeVar("R", bound=Message)
JOIN_EPOCH, LEAVE_EPOCH, LEAVE_FOR_NOW_EPOCH = 0, -1, -2
_REJOIN = frozenset(
    {ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID}
)


class CoordinatorLink(Protocol):
    """The target of requests. An answer may come later: `send` returns a ticket for `answer`."""

    group_id: str

    def send(self, body: Message, client_id: str, host: str) -> int: ...

    def answer(self, ticket: int, response: type[R], /) -> R | None: ...


class Refusal(Exception):
    """The coordinator rejects the member: its error code and message."""

    def __init__(self, code: int, message: str | None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(slots=True)
class ConsumerClient:
    """A client of the consumer protocol. `owned`: topic id → partitions; it revokes as required."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    topics: tuple[str, ...]
    regex: str | None = None
    rebalance_timeout_ms: int = 300_000
    epoch: int = JOIN_EPOCH
    owned: Mapping[bytes, tuple[int, ...]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.instance_id or self.member_id

    def join(self, at: CoordinatorLink) -> None:
        """Join the group; raise Refusal when the coordinator rejects it."""
        answer = self._heartbeat(at, JOIN_EPOCH)
        if answer.error_code:
            raise Refusal(answer.error_code, answer.error_message)
        self._take(answer)

    def beat(self, at: CoordinatorLink) -> None:
        """Send one heartbeat, with the owned partitions."""
        if self.epoch < JOIN_EPOCH:
            return
        answer = self._heartbeat(at, self.epoch)
        if answer.error_code:
            self.epoch, self.owned = JOIN_EPOCH, {}
            self.join(at)
        else:
            self._take(answer)

    def leave(self, at: CoordinatorLink) -> None:
        """Stop, as its client does: a static member leaves for now, so that its successor finds the place."""
        self.epoch = LEAVE_EPOCH if self.instance_id is None else LEAVE_FOR_NOW_EPOCH
        request = ConsumerGroupHeartbeatRequest(
            group_id=at.group_id,
            member_id=self.member_id,
            member_epoch=self.epoch,
            instance_id=self.instance_id,
        )
        at.send(request, self.client_id, self.host)

    def _heartbeat(self, at: CoordinatorLink, epoch: int) -> ConsumerGroupHeartbeatResponse:
        joins = epoch == JOIN_EPOCH
        listed = tuple(TopicPartitions(topic_id=t, partitions=ps) for t, ps in self.owned.items())
        request = ConsumerGroupHeartbeatRequest(
            group_id=at.group_id,
            member_id=self.member_id,
            member_epoch=epoch,
            instance_id=self.instance_id,
            rebalance_timeout_ms=self.rebalance_timeout_ms if joins else -1,
            subscribed_topic_names=self.topics if joins else None,
            subscribed_topic_regex=self.regex if joins else None,
            topic_partitions=() if joins else listed,
        )
        return _at_once(at, at.send(request, self.client_id, self.host), ConsumerGroupHeartbeatResponse)

    def _take(self, answer: ConsumerGroupHeartbeatResponse) -> None:
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.owned = {t.topic_id: t.partitions for t in answer.assignment.topic_partitions}


Assign = Callable[[Collection[str]], Mapping[str, Assignment]]


@dataclass(slots=True)
class ClassicClient:
    """A client of the classic protocol with the protocols and timeouts of the one it stands for.

    As leader it distributes the result of `assign`.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    protocols: tuple[JoinGroupRequestProtocol, ...]
    session_timeout_ms: int
    rebalance_timeout_ms: int
    assign: Assign
    generation: int = -1
    assignment: Assignment = field(default_factory=Assignment)
    _joining: int | None = None
    _syncing: int | None = None

    @property
    def name(self) -> str:
        return self.instance_id or self.member_id

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics it subscribes to; none when the bytes are not those of ConsumerProtocol."""
        try:
            return Subscription.decode(self.protocols[0].metadata).topics
        except (DecodeError, IndexError):
            return ()

    def join(self, at: CoordinatorLink) -> None:
        """Join the group or rejoin it; the answer may wait for others. Raise Refusal for a rejection."""
        request = JoinGroupRequest(
            group_id=at.group_id,
            session_timeout_ms=self.session_timeout_ms,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=tuple(self._current(protocol) for protocol in self.protocols),
        )
        self._joining, self._syncing = at.send(request, self.client_id, self.host), None
        self._proceed(at)

    def beat(self, at: CoordinatorLink) -> None:
        """Continue a join under way, else send a heartbeat, and rejoin when it asks for that."""
        if self._joining is not None or self._syncing is not None:
            self._proceed(at)
            return
        request = HeartbeatRequest(
            group_id=at.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )
        code = _at_once(at, at.send(request, self.client_id, self.host), HeartbeatResponse).error_code
        if code in _REJOIN:
            if code == ErrorCode.UNKNOWN_MEMBER_ID:
                self.member_id, self.assignment = "", Assignment()
            self.join(at)

    def leave(self, at: CoordinatorLink) -> None:
        """Stop, as its client does: a static member just falls silent."""
        if self.instance_id is None:
            request = LeaveGroupRequest(
                group_id=at.group_id, members=(MemberIdentity(member_id=self.member_id),)
            )
            at.send(request, self.client_id, self.host)

    def _proceed(self, at: CoordinatorLink) -> None:
        if self._joining is not None:
            joined = at.answer(self._joining, JoinGroupResponse)
            if joined is None:
                return
            self._joining = None
            self.member_id = joined.member_id or self.member_id
            if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED or joined.error_code in _REJOIN:
                self.join(at)
                return
            if joined.error_code:
                raise Refusal(joined.error_code, None)
            self.generation = joined.generation_id
            given: Mapping[str, Assignment] = {}
            if joined.leader == self.member_id and joined.members and not joined.skip_assignment:
                given = self.assign([member.member_id for member in joined.members])
            request = SyncGroupRequest(
                group_id=at.group_id,
                generation_id=self.generation,
                member_id=self.member_id,
                group_instance_id=self.instance_id,
                protocol_type=PROTOCOL_TYPE,
                protocol_name=joined.protocol_name,
                assignments=tuple(
                    SyncGroupRequestAssignment(member_id=m, assignment=a.encode(1)) for m, a in given.items()
                ),
            )
            self._syncing = at.send(request, self.client_id, self.host)
            self._proceed(at)
        elif self._syncing is not None:
            synced = at.answer(self._syncing, SyncGroupResponse)
            if synced is None:
                return
            self._syncing = None
            if synced.error_code:
                self.join(at)
            else:
                self.assignment = Assignment.decode(synced.assignment) if synced.assignment else Assignment()

    def _current(self, protocol: JoinGroupRequestProtocol) -> JoinGroupRequestProtocol:
        """Return the protocol with what is owned now: an eager client revokes everything before it joins."""
        try:
            subscription = Subscription.decode(protocol.metadata)
            owned: tuple[TopicPartition, ...] = ()
            if protocol.name == COOPERATIVE_STICKY:
                owned = self.assignment.partitions
            subscription = replace(subscription, owned=owned, generation=self.generation)
            return JoinGroupRequestProtocol(
                name=protocol.name, metadata=subscription.encode(version_of(protocol.metadata))
            )
        except DecodeError:
            return protocol


def _at_once(at: CoordinatorLink, ticket: int, response: type[R]) -> R:
    """Return the answer to a heartbeat, which comes at once."""
    answer = at.answer(ticket, response)
    assert answer is not None
    return answer


SimulatedClient = ClassicClient | ConsumerClient
