"""The two types of group a coordinator keeps."""

from typing import TypeAlias

from kgroup.coordinator.classic.group import ClassicGroup
from kgroup.coordinator.consumer.group import ConsumerGroup

Group: TypeAlias = ClassicGroup | ConsumerGroup
