"""The types of group a coordinator keeps."""

from __future__ import annotations

from kgroup.coordinator.classic.group import ClassicGroup
from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.consumer.records import forget_consumer_group
from kgroup.coordinator.share.group import ShareGroup
from kgroup.coordinator.share.records import forget_share_group
from kgroup.coordinator.state import Group, Step
from kgroup.coordinator.streams.records import forget_streams_group
from kgroup.protocol.group_records import GroupMetadataKey

CLASSIC, CONSUMER, SHARE, STREAMS = "classic", "consumer", "share", "streams"


def type_of(group: Group) -> str:
    """Return the group's type, as ListGroups reports it."""
    if isinstance(group, ClassicGroup):
        return CLASSIC
    if isinstance(group, ConsumerGroup):
        return CONSUMER
    return SHARE if isinstance(group, ShareGroup) else STREAMS


def forget_group(step: Step, group: Group) -> None:
    """Write the tombstones of the group itself, in the order replay asks for."""
    if isinstance(group, ClassicGroup):
        step.write(GroupMetadataKey(group=group.group_id), None)
    elif isinstance(group, ConsumerGroup):
        forget_consumer_group(step, group)
    elif isinstance(group, ShareGroup):
        forget_share_group(step, group)
    else:
        forget_streams_group(step, group)
