"""A member of a share group, as the records 10 and 14 describe it (KIP-932)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Self, TypeAlias

from kgroup.coordinator.epoch_group import EpochMember
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
class Current:
    """Epochs and partitions of a member; one without a record 14 is at epoch 0."""

    epoch: int = 0
    previous_epoch: int = NO_EPOCH
    assigned: Partitions = field(default_factory=lambda: NONE)

    @property
    def must_revoke(self) -> bool:
        """Never: others may read the same partitions."""
        return False

    def value(self) -> ShareGroupCurrentMemberAssignmentValue:
        """Return record 14's value."""
        return ShareGroupCurrentMemberAssignmentValue(
            member_epoch=self.epoch,
            previous_member_epoch=self.previous_epoch,
            assigned_partitions=listed(self.assigned),
        )

    @classmethod
    def of(cls, value: ShareGroupCurrentMemberAssignmentValue) -> Self:
        """Return what record 14 says."""
        assigned = partitions_of(value.assigned_partitions)
        return cls(value.member_epoch, value.previous_member_epoch, assigned)


@dataclass(frozen=True, slots=True)
class ShareMember(EpochMember[ShareGroupMemberMetadataValue, Current]):
    """A member: `metadata` is its record 10 as it was written, `current` its record 14."""

    current: Current = field(default_factory=Current)

    @property
    def names(self) -> tuple[str, ...]:
        """The topics it subscribes to, in order."""
        return self.metadata.subscribed_topic_names


def new_member(member_id: str) -> ShareMember:
    """Return a member of which nothing is known yet."""
    return ShareMember(member_id, ShareGroupMemberMetadataValue())


def listed(partitions: Partitions) -> tuple[TopicPartitions, ...]:
    """Return partitions as records and responses list them."""
    return tuple(
        TopicPartitions(topic_id=topic_id, partitions=numbers) for topic_id, numbers in partitions.items()
    )


def partitions_of(topics: Iterable[TopicPartitions]) -> Partitions:
    """Return what records and responses list; numbers in order."""
    return {topic.topic_id: tuple(sorted(topic.partitions)) for topic in topics}
