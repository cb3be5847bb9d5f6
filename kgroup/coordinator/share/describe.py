"""ShareGroupDescribe: what the coordinator shows of its share groups (KIP-932)."""

from __future__ import annotations

from kgroup.coordinator.share.group import ShareGroup
from kgroup.coordinator.share.member import ShareMember
from kgroup.coordinator.share.simple import NAME
from kgroup.domain import TopicImage
from kgroup.protocol.messages.share_group_describe import Assignment, DescribedGroup, Member, TopicPartitions


def described(image: TopicImage, group: ShareGroup, operations: int) -> DescribedGroup:
    """Return a group with its members and what they are assigned; deleted topics are omitted."""
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=NAME,
        members=tuple(_member(image, member) for member in group.members.values()),
        authorized_operations=operations,
    )


def _member(image: TopicImage, member: ShareMember) -> Member:
    return Member(
        member_id=member.member_id,
        rack_id=member.metadata.rack_id,
        member_epoch=member.epoch,
        client_id=member.metadata.client_id,
        client_host=member.metadata.client_host,
        subscribed_topic_names=member.names,
        assignment=Assignment(
            topic_partitions=tuple(
                TopicPartitions(topic_id=topic_id, topic_name=name, partitions=numbers)
                for topic_id, numbers in member.current.assigned.items()
                if (name := image.name_of(topic_id)) is not None
            )
        ),
    )
