"""What the leader of a classic group does between JoinGroup and SyncGroup."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kgroup.coordinator.assignors.client_side import ClientAssignor, MemberSubscription
from kgroup.domain import Topic, TopicPartition, numbers_by_topic
from kgroup.protocol.messages.join_group import JoinGroupResponseMember
from kgroup.protocol.messages.sync_group import SyncGroupRequestAssignment
from kgroup.protocol.subscription import Assignment, Subscription


def subscriptions_of(members: Iterable[JoinGroupResponseMember]) -> dict[str, MemberSubscription]:
    """Member id → what the member wants and has; DecodeError if one is malformed."""
    return {member.member_id: _subscription(member.metadata, member.group_instance_id) for member in members}


def subscribed_topics(subscriptions: Mapping[str, MemberSubscription]) -> frozenset[str]:
    """Every topic that some member wants."""
    return frozenset().union(*(member.topics for member in subscriptions.values()))


Racks = Mapping[str, tuple[tuple[str, ...], ...]]
"""The racks of each partition's replicas, by topic."""


@dataclass(frozen=True, slots=True)
class Led:
    """The topics a leader assigned by: it joins again once they are others, told by ==.

    Racks are assigned by whoever leads; only a leader that has a rack joins again for them (KIP-881).
    """

    partitions: Mapping[str, int]
    racks: Racks = field(compare=False)
    watched: Racks

    @classmethod
    def of(
        cls, known: Mapping[str, Topic], subscriptions: Mapping[str, MemberSubscription], rack: str | None
    ) -> Led:
        """What is known of the topics that some member wants; `rack` is the leader's own."""
        topics = [known[name] for name in subscribed_topics(subscriptions) if name in known]
        racks = {topic.name: topic.racks for topic in topics if topic.racks}
        return cls({topic.name: topic.partitions for topic in topics}, racks, racks if rack else {})


def assign(
    assignor: ClientAssignor, led: Led, subscriptions: Mapping[str, MemberSubscription]
) -> tuple[SyncGroupRequestAssignment, ...]:
    """What the leader's SyncGroup carries: an encoded assignment for every member."""
    targets = assignor.assign(led.partitions, subscriptions, led.racks)
    return tuple(
        SyncGroupRequestAssignment(member_id=member_id, assignment=_assignment(target))
        for member_id, target in sorted(targets.items())
    )


def _assignment(target: Mapping[str, tuple[int, ...]]) -> bytes:
    partitions = tuple(TopicPartition(topic, p) for topic, held in sorted(target.items()) for p in held)
    return Assignment(partitions).encode()


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
