"""A member of a share group, as the records 10 and 14 describe it (KIP-932)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

from kgroup.domain import NO_EPOCH
from kgroup.protocol.share_records import (
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataValue,
    TopicPartitions,
)

Partitions: TypeAlias = Mapping[bytes, tuple[int, ...]]
"""Topic id → partition numbers, ascending; a topic may be there without any, as in Kafka's records."""

NONE: Partitions = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ShareMember:
    """A member: `metadata` is its record 10 as it was written, the rest its record 14."""

    member_id: str
    metadata: ShareGroupMemberMetadataValue
    epoch: int = 0
    previous_epoch: int = NO_EPOCH
    assigned: Partitions = field(default_factory=lambda: NONE)

    @property
    def names(self) -> tuple[str, ...]:
        """The topics it subscribes to, in order."""
        return self.metadata.subscribed_topic_names

    def value(self) -> ShareGroupCurrentMemberAssignmentValue:
        """Return record 14's value."""
        return ShareGroupCurrentMemberAssignmentValue(
            member_epoch=self.epoch,
            previous_member_epoch=self.previous_epoch,
            assigned_partitions=listed(self.assigned),
        )


def listed(partitions: Partitions) -> tuple[TopicPartitions, ...]:
    """Return partitions as records and responses list them."""
    return tuple(
        TopicPartitions(topic_id=topic_id, partitions=numbers) for topic_id, numbers in partitions.items()
    )


def partitions_of(topics: Iterable[TopicPartitions]) -> Partitions:
    """Return what records and responses list; numbers in order."""
    return {topic.topic_id: tuple(sorted(topic.partitions)) for topic in topics}
