"""Members of a group as models, from the two describe answers and whatever protocol they speak."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from kgroup.admin.models import CLASSIC, CONSUMER, LEFT_FOR_NOW, Assignment, Member, TopicAssignment
from kgroup.domain import TopicPartition
from kgroup.errors import DecodeError

if TYPE_CHECKING:
    from kgroup.protocol.subscription import Assignment as Assigned
    from kgroup.protocol.subscription import Subscription

CONSUMER_PROTOCOL = "consumer"
STABLE = "Stable"
CLASSIC_MEMBER = 0


def assignment_of(partitions: Iterable[TopicPartition]) -> Assignment:
    """Partitions by topic, both in order."""
    by_topic: dict[str, list[int]] = {}
    for owned in sorted(partitions):
        by_topic.setdefault(owned.topic, []).append(owned.partition)
    return tuple(TopicAssignment(topic, tuple(numbers)) for topic, numbers in by_topic.items())


def partitions_of(assignment: Assignment | None) -> frozenset[TopicPartition]:
    """The partitions of an assignment; none for None."""
    entries = assignment or ()
    return frozenset(TopicPartition(entry.topic, number) for entry in entries for number in entry.partitions)


def classic_member(wire: Any, group_state: str, protocol_type: str) -> Member:
    """A member out of DescribeGroups.

    Subscription and assignment are decoded for the consumer protocol; bytes of other protocols, and
    bytes that do not decode, are kept as base64. The broker tells the subscription of Stable groups only.
    """
    consumer = protocol_type == CONSUMER_PROTOCOL
    wanted = _subscription(wire.member_metadata) if consumer else None
    assigned = _assignment(wire.member_assignment) if consumer else None
    return Member(
        member_id=wire.member_id,
        instance_id=wire.group_instance_id,
        client_id=wire.client_id,
        host=wire.client_host.removeprefix("/"),
        rack_id=wanted.rack if wanted else None,
        protocol=CLASSIC,
        member_epoch=None,
        state="stable" if group_state == STABLE else "rebalancing",
        subscribed_topics=wanted.topics if wanted else (),
        subscribed_regex=None,
        assignment=assignment_of(assigned.partitions) if assigned else (),
        target_assignment=None,
        user_data_bytes=len(assigned.user_data or b"") if assigned else None,
        raw_metadata=None if wanted else _text(wire.member_metadata),
        raw_assignment=None if assigned else _text(wire.member_assignment),
    )


def consumer_member(wire: Any, assignment_epoch: int) -> Member:
    """A member out of ConsumerGroupDescribe (KIP-848)."""
    has, target = _topics(wire.assignment), _topics(wire.target_assignment)
    return Member(
        member_id=wire.member_id,
        instance_id=wire.instance_id,
        client_id=wire.client_id,
        host=wire.client_host.removeprefix("/"),
        rack_id=wire.rack_id,
        protocol=CLASSIC if wire.member_type == CLASSIC_MEMBER else CONSUMER,
        member_epoch=wire.member_epoch,
        state=_phase(wire.member_epoch, assignment_epoch, has, target),
        subscribed_topics=tuple(wire.subscribed_topic_names),
        subscribed_regex=wire.subscribed_topic_regex or None,
        assignment=has,
        target_assignment=target,
    )


def share_member(wire: Any) -> Member:
    """A member out of ShareGroupDescribe (KIP-932): shared partitions, hence no target and no owner."""
    return Member(
        member_id=wire.member_id,
        instance_id=None,
        client_id=wire.client_id,
        host=wire.client_host.removeprefix("/"),
        rack_id=wire.rack_id,
        protocol="share",
        member_epoch=wire.member_epoch,
        state="stable",
        subscribed_topics=tuple(wire.subscribed_topic_names),
        subscribed_regex=None,
        assignment=_topics(wire.assignment),
        target_assignment=None,
    )


def _phase(epoch: int, assignment_epoch: int, has: Assignment, target: Assignment) -> str:
    """How far the member is on its way to its target; the describe answer counts what it is to revoke."""
    if epoch == LEFT_FOR_NOW:
        return "left"
    owned, wanted = partitions_of(has), partitions_of(target)
    if owned - wanted:
        return "revoking"
    if wanted - owned:
        return "waiting"
    return "stable" if epoch == assignment_epoch else "behind"


def _topics(wire: Any) -> Assignment:
    return assignment_of(
        TopicPartition(entry.topic_name, number)
        for entry in wire.topic_partitions
        for number in entry.partitions
    )


def _subscription(data: bytes) -> Subscription | None:
    from kgroup.protocol.subscription import Subscription

    try:
        return Subscription.decode(data) if data else None
    except DecodeError:
        return None


def _assignment(data: bytes) -> Assigned | None:
    from kgroup.protocol.subscription import Assignment as Assigned

    try:
        return Assigned.decode(data) if data else None
    except DecodeError:
        return None


def _text(data: bytes) -> str | None:
    return base64.b64encode(data).decode("ascii") if data else None
