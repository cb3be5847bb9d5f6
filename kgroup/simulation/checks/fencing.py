"""Who may do what, stated a second time and independently: from the records alone (KIP-345, 848, 1251)."""

from __future__ import annotations

from typing import TypeAlias

from kgroup.coordinator.classic.group import ClassicGroup
from kgroup.coordinator.classic.states import ClassicState
from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.share.group import ShareGroup
from kgroup.coordinator.state import Group
from kgroup.coordinator.streams.group import StreamsGroup
from kgroup.domain import TopicImage, TopicPartition
from kgroup.errors import ErrorCode
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgroup.protocol.messages.heartbeat import HeartbeatRequest
from kgroup.protocol.messages.offset_commit import OffsetCommitRequest
from kgroup.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from kgroup.protocol.messages.sync_group import SyncGroupRequest
from kgroup.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from kgroup.simulation.checks import tasks

ByMember: TypeAlias = HeartbeatRequest | SyncGroupRequest
FENCES = frozenset(
    {
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.REBALANCE_IN_PROGRESS,
    }
)
"""Errors for a sender that is not the member it claims to be, or not now."""


def may_commit(group: Group | None, request: OffsetCommitRequest, image: TopicImage) -> bool:
    """Return whether the group must accept this commit: from exactly these members and epochs.

    Classic: a member at the group's generation, unless assignments are being handed out. Consumer: assignment
    epoch ≤ the commit's epoch ≤ member epoch, for each partition (KIP-1251).
    """
    epoch = request.generation_id_or_member_epoch
    if group is None:
        return epoch < 0
    if isinstance(group, ShareGroup):
        return False
    if isinstance(group, ConsumerGroup | StreamsGroup):
        return _may_commit_by_epoch(group, request, epoch, image)
    if epoch < 0 and group.state is ClassicState.EMPTY:
        return True
    if not is_member(group, request.member_id, request.group_instance_id):
        return False
    return epoch == group.generation and group.state is not ClassicState.COMPLETING


def may_commit_in_transaction(
    group: Group | None, request: TxnOffsetCommitRequest, image: TopicImage
) -> bool:
    """Return the same for a commit in a transaction: classic groups accept it in every state (KIP-447)."""
    epoch = request.generation_id
    if isinstance(group, ConsumerGroup | StreamsGroup):
        return _may_commit_by_epoch(group, request, epoch, image)
    if (
        group is None
        or isinstance(group, ShareGroup)
        or not is_member(group, request.member_id, request.group_instance_id)
    ):
        return False
    return epoch == group.generation


def _may_commit_by_epoch(
    group: ConsumerGroup | StreamsGroup,
    request: OffsetCommitRequest | TxnOffsetCommitRequest,
    epoch: int,
    image: TopicImage,
) -> bool:
    if epoch < 0 and not group.members:
        return True
    member = group.members.get(request.member_id)
    if member is None or epoch > member.epoch:
        return False
    if epoch == member.epoch:
        return True
    held = readable(group, request.member_id, image)
    committed = (
        TopicPartition(topic.name, part.partition_index)
        for topic in request.topics
        if (topic_image := image.by_name.get(topic.name)) is not None
        for part in topic.partitions
        if part.partition_index < topic_image.partitions
    )
    return all(held.get(where, epoch + 1) <= epoch for where in committed)


def readable(
    group: ConsumerGroup | StreamsGroup, member_id: str, image: TopicImage
) -> dict[TopicPartition, int]:
    """Return the partitions a member may still read, of topics that exist, with their assignment epochs."""
    if isinstance(group, StreamsGroup):
        return tasks.read_by(group, group.members[member_id], image)
    current = group.members[member_id].current
    return {
        TopicPartition(name, number): since
        for partitions in (current.assigned, current.revoking)
        for topic_id, numbers in partitions.items()
        if (name := image.name_of(topic_id)) is not None
        for number, since in numbers.items()
    }


def is_member(group: Group | None, member_id: str, instance_id: str | None) -> bool:
    """Return whether the ids together name a member of the group."""
    if group is None or isinstance(group, ShareGroup | StreamsGroup) or member_id not in group.members:
        return False
    return instance_id is None or group.static.get(instance_id) == member_id


def may_beat(group: Group | None, request: ByMember) -> bool:
    """Return whether a classic heartbeat or sync is of a member at the group's current generation."""
    if not is_member(group, request.member_id, request.group_instance_id):
        return False
    if isinstance(group, ClassicGroup):
        return request.generation_id == group.generation
    assert group is not None
    return request.generation_id == group.members[request.member_id].epoch


def may_report(
    group: Group | None, request: ConsumerGroupHeartbeatRequest | StreamsGroupHeartbeatRequest
) -> bool:
    """Return whether a newer protocol's heartbeat is of a member at its epoch, or a repetition.

    `group` is as it was before the heartbeat. A heartbeat that joins or leaves is not fenced by epoch. A
    repetition is one whose answer was lost.
    """
    if request.member_epoch <= 0:
        return True
    if isinstance(request, StreamsGroupHeartbeatRequest):
        return isinstance(group, StreamsGroup) and tasks.may_report(group, request)
    if not isinstance(group, ConsumerGroup):
        return False
    if not is_member(group, request.member_id, request.instance_id):
        return False
    current = group.members[request.member_id].current
    if request.member_epoch == current.epoch:
        return True
    if request.member_epoch != current.previous_epoch or request.topic_partitions is None:
        return False
    return all(
        set(topic.partitions) <= current.assigned.get(topic.topic_id, {}).keys()
        for topic in request.topic_partitions
    )


def is_outdated(group: Group | None, request: Message, image: TopicImage) -> bool:
    """Return whether an old request of a group names an epoch at which its member is fenced now.

    A commit of partitions the member has had ever since is not: it cannot be distinguished from a late one.
    """
    match request:
        case OffsetCommitRequest():
            epoch = request.generation_id_or_member_epoch
        case HeartbeatRequest() | SyncGroupRequest():
            epoch = request.generation_id
        case ConsumerGroupHeartbeatRequest() | StreamsGroupHeartbeatRequest():
            epoch = request.member_epoch
        case _:
            return False
    if group is None or epoch <= 0:
        return False
    if isinstance(group, ClassicGroup):
        return epoch < group.generation
    if isinstance(request, OffsetCommitRequest):
        return not may_commit(group, request, image)
    member = group.members.get(request.member_id)
    if member is None:
        return False
    return epoch < min(member.epoch, member.current.previous_epoch)
