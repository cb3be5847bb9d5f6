"""Members of a group as models, from the two describe answers and any protocol they speak."""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar

from kgroup.admin.models import (
    CLASSIC,
    CONSUMER,
    LEFT_FOR_NOW,
    STABLE,
    STREAMS,
    Assignment,
    ClientTag,
    Described,
    Member,
    StreamsProcess,
    StreamsTopology,
    SubtopologyTasks,
    SubtopologyTopics,
    Tasks,
    TopicAssignment,
    TopologyDescription,
)
from kgroup.domain import MemberStatus, TopicPartition, numbers_by_topic
from kgroup.errors import DecodeError

if TYPE_CHECKING:
    from kgroup.protocol import streams_records
    from kgroup.protocol.messages import consumer_group_describe, share_group_describe, streams_group_describe
    from kgroup.protocol.messages.describe_groups import DescribedGroupMember

T = TypeVar("T")
CLASSIC_MEMBER = 0


def assignment_of(partitions: Iterable[TopicPartition]) -> Assignment:
    """Return partitions by topic, both in order."""
    return tuple(TopicAssignment(topic, numbers) for topic, numbers in numbers_by_topic(partitions).items())


def partitions_of(assignment: Assignment | None) -> frozenset[TopicPartition]:
    """Return the partitions of an assignment; none for None."""
    entries = assignment or ()
    return frozenset(TopicPartition(entry.topic, number) for entry in entries for number in entry.partitions)


def classic_member(
    wire: DescribedGroupMember, group_state: str, protocol_type: str, reports_instances: bool = True
) -> Member:
    """Return a member from DescribeGroups.

    Subscription and assignment are decoded for the consumer protocol; bytes of other protocols, and bytes
    that do not decode, are kept as base64. The broker reports both for Stable groups only.
    `reports_instances` is False for Kafka 2.3, whose answer has the assignment in both places.
    """
    from kgroup.protocol.subscription import PROTOCOL_TYPE, Subscription
    from kgroup.protocol.subscription import Assignment as Assigned

    consumer = protocol_type == PROTOCOL_TYPE
    metadata = metadata_of(wire, reports_instances)
    subscription = _decoded(Subscription.decode, metadata) if consumer else None
    assigned = _decoded(Assigned.decode, wire.member_assignment) if consumer else None
    # A leader that assigns a member nothing may send no bytes for it; a rebalancing broker has none.
    nothing = consumer and group_state == STABLE and not wire.member_assignment
    return Member(
        member_id=wire.member_id,
        instance_id=wire.group_instance_id,
        client_id=wire.client_id,
        host=wire.client_host.removeprefix("/"),
        rack_id=subscription.rack if subscription else None,
        protocol=CLASSIC,
        member_epoch=None,
        state=MemberStatus.STABLE if group_state == STABLE else MemberStatus.REBALANCING,
        subscribed_topics=subscription.topics if subscription else None,
        assignment=assignment_of(assigned.partitions) if assigned else () if nothing else None,
        user_data_bytes=len(assigned.user_data or b"") if assigned else None,
        raw_metadata=None if subscription else text_of(metadata),
        raw_assignment=None if assigned else text_of(wire.member_assignment),
        instance_id_known=reports_instances,
    )


def metadata_of(wire: DescribedGroupMember, reports_instances: bool) -> bytes:
    """Return a DescribeGroups member's metadata; empty where the assignment is in its place.

    Kafka 2.3 answers so, for every member (seen on 2.3.1); 2.4 and later do not.
    """
    misplaced = not reports_instances and wire.member_metadata == wire.member_assignment
    return b"" if misplaced else bytes(wire.member_metadata)


def consumer_member(wire: consumer_group_describe.Member, assignment_epoch: int) -> Member:
    """Return a member from ConsumerGroupDescribe (KIP-848)."""
    has, target = _topics(wire.assignment), _topics(wire.target_assignment)
    return Member(
        member_id=wire.member_id,
        instance_id=wire.instance_id,
        client_id=wire.client_id,
        host=wire.client_host.removeprefix("/"),
        rack_id=wire.rack_id,
        protocol=CLASSIC if wire.member_type == CLASSIC_MEMBER else CONSUMER,
        member_epoch=wire.member_epoch,
        state=_phase(wire.member_epoch, assignment_epoch, partitions_of(has), partitions_of(target)),
        subscribed_topics=tuple(wire.subscribed_topic_names),
        subscribed_regex=wire.subscribed_topic_regex or None,
        assignment=has,
        target_assignment=target,
    )


def share_member(wire: share_group_describe.Member) -> Member:
    """Return a member from ShareGroupDescribe (KIP-932): it shares partitions, so none has an owner."""
    return Member(
        member_id=wire.member_id,
        instance_id=None,
        client_id=wire.client_id,
        host=wire.client_host.removeprefix("/"),
        rack_id=wire.rack_id,
        protocol="share",
        member_epoch=wire.member_epoch,
        state=MemberStatus.STABLE,
        subscribed_topics=tuple(wire.subscribed_topic_names),
        assignment=_topics(wire.assignment),
    )


Sources = Mapping[tuple[str, int], tuple[TopicPartition, ...]]
"""The partitions a task reads, by subtopology and number; without the tasks for which they are unknown."""


def streams_member(
    wire: streams_group_describe.Member,
    assignment_epoch: int,
    topics: tuple[str, ...] | None,
    sources: Sources,
) -> Member:
    """Return a member from StreamsGroupDescribe (KIP-1071); `topics` are what the topology reads."""
    tasks, target = _tasks(wire.assignment), _tasks(wire.target_assignment)
    at = wire.user_endpoint
    tags = sorted(wire.client_tags, key=lambda tag: tag.key)
    return Member(
        member_id=wire.member_id,
        instance_id=wire.instance_id,
        client_id=wire.client_id,
        host=wire.client_host.removeprefix("/"),
        rack_id=wire.rack_id,
        protocol=CLASSIC if wire.is_classic else STREAMS,
        member_epoch=wire.member_epoch,
        state=_phase(wire.member_epoch, assignment_epoch, set(_each(tasks)), set(_each(target))),
        subscribed_topics=topics,
        assignment=_read_by(tasks, sources),
        target_assignment=_read_by(target, sources),
        tasks=tasks,
        target_tasks=target,
        process=StreamsProcess(
            process_id=wire.process_id,
            topology_epoch=wire.topology_epoch,
            endpoint=None if at is None else f"{at.host}:{at.port}",
            client_tags=tuple(ClientTag(tag.key, tag.value) for tag in tags),
        ),
    )


def streams_topology(
    epoch: int,
    parts: Iterable[streams_records.Subtopology | streams_group_describe.Subtopology],
    described: Described,
    description: TopologyDescription | None = None,
) -> StreamsTopology:
    """Return a topology from StreamsGroupDescribe or from record 23, all names in order."""
    return StreamsTopology(
        epoch,
        description=description,
        described=described,
        subtopologies=tuple(
            SubtopologyTopics(
                part.subtopology_id,
                tuple(sorted(part.source_topics)),
                tuple(sorted(topic.name for topic in part.repartition_source_topics)),
                tuple(sorted(topic.name for topic in part.state_changelog_topics)),
            )
            for part in sorted(parts, key=lambda part: part.subtopology_id)
        ),
    )


def _read_by(tasks: Tasks, sources: Sources) -> Assignment | None:
    """Return the source partitions of the active tasks; None when those of one are unknown."""
    active = [(entry.subtopology_id, number) for entry in tasks.active for number in entry.partitions]
    if any(task not in sources for task in active):
        return None
    return assignment_of(partition for task in active for partition in sources[task])


def _tasks(wire: streams_group_describe.Assignment) -> Tasks:
    def of(entries: Iterable[streams_group_describe.TaskIds]) -> tuple[SubtopologyTasks, ...]:
        tasks = (SubtopologyTasks(e.subtopology_id, tuple(sorted(e.partitions))) for e in entries)
        return tuple(sorted(tasks, key=lambda e: e.subtopology_id))

    return Tasks(of(wire.active_tasks), of(wire.standby_tasks), of(wire.warmup_tasks))


def _each(tasks: Tasks) -> Iterator[tuple[str, str, int]]:
    """Yield every task by its role, subtopology and number."""
    for role in ("active", "standby", "warmup"):
        for entry in getattr(tasks, role):
            for number in entry.partitions:
                yield role, entry.subtopology_id, number


def _phase(
    epoch: int, assignment_epoch: int, has: Collection[Hashable], target: Collection[Hashable]
) -> MemberStatus:
    """Return the member's progress to its target; the describe answer counts what it is to revoke."""
    if epoch == LEFT_FOR_NOW:
        return MemberStatus.LEFT
    owned, target_set = set(has), set(target)
    if owned - target_set:
        return MemberStatus.REVOKING
    if epoch != assignment_epoch:
        # One that waits for what others have confirms the epoch all the same.
        return MemberStatus.BEHIND
    return MemberStatus.WAITING if target_set - owned else MemberStatus.STABLE


def _topics(wire: consumer_group_describe.Assignment | share_group_describe.Assignment) -> Assignment:
    return assignment_of(
        TopicPartition(entry.topic_name, number)
        for entry in wire.topic_partitions
        for number in entry.partitions
    )


def _decoded(decode: Callable[[bytes], T], data: bytes) -> T | None:
    try:
        return decode(data) if data else None
    except DecodeError:
        return None


def text_of(data: bytes) -> str | None:
    """Return bytes as base64; None for none."""
    return base64.b64encode(data).decode("ascii") if data else None


def in_order(members: Iterable[Member]) -> tuple[Member, ...]:
    """Return members by name."""
    return tuple(sorted(members, key=lambda m: (m.name, m.member_id)))
