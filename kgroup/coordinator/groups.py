"""The two types of group a coordinator keeps."""

from __future__ import annotations

from typing import TypeAlias

from kgroup.coordinator.classic.group import ClassicGroup
from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.consumer.records import forget_consumer_group
from kgroup.coordinator.state import Step
from kgroup.protocol.group_records import GroupMetadataKey

Group: TypeAlias = ClassicGroup | ConsumerGroup


def forget_group(step: Step, group: Group) -> None:
    """Write the tombstones of the group itself, in the order replay asks for."""
    if isinstance(group, ClassicGroup):
        step.write(GroupMetadataKey(group=group.group_id), None)
    else:
        forget_consumer_group(step, group)
