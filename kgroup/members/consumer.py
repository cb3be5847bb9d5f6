"""A member of a consumer group: one heartbeat API, reconciled step by step (KIP-848).

Behaves as Kafka's own consumer does towards the coordinator, except that the host confirms each revocation.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypedDict, Unpack

from kgroup.domain import Topic, TopicPartition, grouped
from kgroup.members.beating import BeatingMember, Phase
from kgroup.members.client_assignor import OfferedAssignor, compute, offer
from kgroup.members.effects import (
    Assigned,
    Effect,
    NeedTopics,
    Revoke,
    Send,
    sorted_partitions,
)
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kgroup.protocol.messages.consumer_group_install_assignment import (
    ConsumerGroupInstallAssignmentResponse,
)
from kgroup.protocol.messages.consumer_group_prepare_assignment import (
    ConsumerGroupPrepareAssignmentRequest,
    ConsumerGroupPrepareAssignmentResponse,
)

REGEX_FROM = 1
Ids = frozenset[tuple[bytes, int]]


@dataclass(frozen=True, slots=True)
class Subscribed:
    """What a member subscribes to: topics by name, or by pattern, or both."""

    names: frozenset[str] = frozenset()
    regex: str | None = None


@dataclass(frozen=True, slots=True)
class _Reported:
    """What the coordinator was last sent; None where it must be sent again."""

    subscribed: Subscribed | None = None
    owned: Ids | None = None
    full: bool = False


class Introduction(TypedDict, total=False):
    """What a member sends when it joins, and again when it cannot know whether it arrived."""

    rack: str | None
    server_assignor: str | None
    client_assignors: Sequence[OfferedAssignor]
    rebalance_timeout_ms: int


_BY_DEFAULT = Introduction(rack=None, server_assignor=None, client_assignors=(), rebalance_timeout_ms=300_000)


class ConsumerMember(BeatingMember[ConsumerGroupHeartbeatResponse]):
    """See `GroupMember`. The client makes `member_id`: 22 characters of URL-safe base64, kept for life.

    `assignor_error` and `assignor_metadata` (version, bytes) are the last ones from a client-side assignor.
    """

    def __init__(
        self,
        group_id: str,
        member_id: str,
        topics: Iterable[str] = (),
        regex: str | None = None,
        *,
        instance_id: str | None = None,
        **introduction: Unpack[Introduction],
    ) -> None:
        super().__init__(ConsumerGroupHeartbeatResponse, group_id, member_id, instance_id)
        self.assignor_error = 0
        self.assignor_metadata = (0, b"")
        self._introduction = _BY_DEFAULT | introduction
        self._computation: Message | None = None
        self._subscribed = Subscribed(frozenset(topics), regex)
        self._names: dict[bytes, str] = {}
        self._owned: Ids = frozenset()
        self._target: Ids = frozenset()
        self._giving_up: Ids = frozenset()
        self._reported = _Reported()
        self._sent = _Reported()
        self._interval_ms = 0

    @property
    def owned(self) -> frozenset[TopicPartition]:
        """See `GroupMember.owned`."""
        return frozenset(self._named(self._owned))

    def subscribe(self, topics: Iterable[str], regex: str | None, now_ms: int) -> list[Effect]:
        """Change the subscription; a heartbeat reports it to the coordinator at once."""
        self._subscribed = Subscribed(frozenset(topics), regex)
        return self._beat_soon(now_ms)

    def receive(self, request: Message, response: Message, now_ms: int) -> list[Effect]:
        """See `GroupMember.receive`."""
        if request is not self._computation:
            return super().receive(request, response, now_ms)
        self._computation = None
        if self.phase in (Phase.LEAVING, Phase.DONE):
            return []
        if isinstance(response, ConsumerGroupInstallAssignmentResponse):
            return [] if response.error_code else self._beat_soon(now_ms)
        assert isinstance(response, ConsumerGroupPrepareAssignmentResponse)
        if response.error_code:
            return []  # the coordinator asks again if it still wants to
        self._computation = compute(
            self._introduction["client_assignors"], response, self.group_id, self.member_id, self.epoch
        )
        return [Send(self._computation)]

    def unanswered(self, request: Message, now_ms: int) -> list[Effect]:
        """See `GroupMember.unanswered`."""
        if request is self._computation:
            self._computation = None
        return super().unanswered(request, now_ms)

    def update_topics(self, topics: Mapping[str, Topic], now_ms: int) -> list[Effect]:
        """See `GroupMember.update_topics`. Continues the reconciliation that waited for names."""
        for topic in topics.values():
            self._names[topic.topic_id] = topic.name
        return self._reconcile(now_ms)

    def revoked(self, now_ms: int) -> list[Effect]:
        """See `GroupMember.revoked`. Takes what the target adds and notifies the coordinator at once."""
        if self.phase is not Phase.REVOKING:
            return []
        self._owned -= self._giving_up
        self.phase = Phase.STABLE
        return self._reconcile(now_ms)

    def _request(self, epoch: int) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=epoch,
            instance_id=self.instance_id,
        )

    def _heartbeat(self) -> list[Effect]:
        """See `BeatingMember`: everything when joining or after a lost answer."""
        reported, subscription, said = self._reported, self._subscribed, self._introduction
        request = self._request(self.epoch)
        if not reported.full:
            request = replace(
                request,
                rebalance_timeout_ms=said["rebalance_timeout_ms"],
                rack_id=said["rack"],
                server_assignor=said["server_assignor"],
                client_assignors=offer(said["client_assignors"]),
            )
        if reported.subscribed != subscription:
            # An empty pattern cancels an earlier one.
            had_regex = reported.subscribed is not None and reported.subscribed.regex is not None
            request = replace(
                request,
                subscribed_topic_names=tuple(sorted(subscription.names)),
                subscribed_topic_regex=subscription.regex or ("" if had_regex else None),
            )
        if reported.owned != self._owned:
            topics = grouped(sorted(self._owned)).items()
            owned = tuple(TopicPartitions(topic_id=t, partitions=tuple(ps)) for t, ps in topics)
            request = replace(request, topic_partitions=owned)
        self._sent = _Reported(self._subscribed, self._owned, full=True)
        return [self._send(request)]

    def _on_heartbeat(self, response: ConsumerGroupHeartbeatResponse, now_ms: int) -> list[Effect]:
        self._reported = self._sent
        self.epoch = response.member_epoch
        self.member_id = response.member_id or self.member_id
        self._interval_ms = response.heartbeat_interval_ms
        if response.assignment is not None:
            given = response.assignment
            self._target = frozenset(
                (topic.topic_id, p) for topic in given.topic_partitions for p in topic.partitions
            )
            self.assignor_error = given.error
            self.assignor_metadata = (given.metadata_version, given.metadata_bytes)
        if self.phase in (Phase.JOINING, Phase.ACKNOWLEDGING):
            self.phase = Phase.STABLE
        beat = self._wake_at(now_ms + self._interval_ms)
        effects = self._reconcile(now_ms) if self.phase is Phase.STABLE else []
        if self._reported.subscribed != self._subscribed:
            effects += self._beat_soon(now_ms)
        if response.should_compute_assignment and self._computation is None:
            self._computation = ConsumerGroupPrepareAssignmentRequest(
                group_id=self.group_id, member_id=self.member_id, member_epoch=self.epoch
            )
            effects.append(Send(self._computation))
        return [*beat, *effects]

    def _reconcile(self, now_ms: int) -> list[Effect]:
        """Move one step from what is owned to the target: revoke first, then add."""
        if self.phase is not Phase.STABLE or self._owned == self._target:
            return self._acknowledge(now_ms)
        unnamed = frozenset(topic_id for topic_id, _ in self._target if topic_id not in self._names)
        if unnamed:
            return [NeedTopics(self._subscribed.names or None, unnamed)]
        self._giving_up = self._owned - self._target
        if self._giving_up:
            self.phase = Phase.REVOKING
            return [Revoke(sorted_partitions(self._named(self._giving_up)))]
        added = sorted_partitions(self._named(self._target - self._owned))
        self._owned = self._target
        return [Assigned(added), *self._acknowledge(now_ms)]

    def _acknowledge(self, now_ms: int) -> list[Effect]:
        """Report what is owned now, before the next heartbeat is due."""
        if self.phase is not Phase.STABLE or self._reported.owned == self._owned:
            return []
        self.phase = Phase.ACKNOWLEDGING
        return self._beat_soon(now_ms)

    def _beat_soon(self, now_ms: int) -> list[Effect]:
        if self.phase in (Phase.IDLE, Phase.LEAVING, Phase.DONE) or self._in_flight is not None:
            return []
        return self._heartbeat()

    def _report_all_again(self) -> None:
        self._reported = _Reported()

    def _drop_all(self) -> None:
        self._owned = self._target = self._giving_up = frozenset()

    def _named(self, partitions: Ids) -> list[TopicPartition]:
        return [TopicPartition(self._names[topic_id], partition) for topic_id, partition in partitions]

    def _send(self, request: Message, min_version: int = 0) -> Send:
        return super()._send(request, min_version if self._subscribed.regex is None else REGEX_FROM)
