"""The types of group a coordinator keeps."""

from __future__ import annotations

from kgroup.coordinator.classic.group import ClassicGroup
from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.consumer.records import forget_consumer_group
from kgroup.coordinator.state import Group, Step
from kgroup.coordinator.streams.records import forget_streams_group
from kgroup.protocol.group_records import GroupMetadataKey

CLASSIC, CONSUMER, STREAMS = "classic", "consumer", "streams"


def type_of(group: Group) -> str:
    """The group's type, as ListGroups tells it."""
    if isinstance(group, ClassicGroup):
        return CLASSIC
    return CONSUMER if isinstance(group, ConsumerGroup) else STREAMS


def forget_group(step: Step, group: Group) -> None:
    """Write the tombstones of the group itself, in the order replay asks for."""
    if isinstance(group, ClassicGroup):
        step.write(GroupMetadataKey(group=group.group_id), None)
    elif isinstance(group, ConsumerGroup):
        forget_consumer_group(step, group)
    else:
        forget_streams_group(step, group)
