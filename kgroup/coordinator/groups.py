"""The types of group a coordinator keeps."""

from __future__ import annotations

from collections.abc import Callable

from kgroup.coordinator.classic.group import ClassicGroup
from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.consumer.records import forget_consumer_group
from kgroup.coordinator.share.group import ShareGroup
from kgroup.coordinator.share.records import forget_share_group
from kgroup.coordinator.state import Group, Step
from kgroup.coordinator.streams.group import StreamsGroup
from kgroup.coordinator.streams.records import forget_streams_group
from kgroup.domain import CLASSIC
from kgroup.protocol.group_records import GroupMetadataKey


def type_of(group: Group) -> str:
    """Return the group's type, as ListGroups reports it."""
    return CLASSIC if isinstance(group, ClassicGroup) else group.KIND.name


def forget_group(step: Step, group: Group) -> None:
    """Write the tombstones of the group itself, in the order replay asks for."""
    _FORGET[type(group)](step, group)


_FORGET: dict[type, Callable[..., None]] = {
    ClassicGroup: lambda step, group: step.write(GroupMetadataKey(group=group.group_id), None),
    ConsumerGroup: forget_consumer_group,
    ShareGroup: forget_share_group,
    StreamsGroup: forget_streams_group,
}
