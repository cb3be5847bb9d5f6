"""A share group: hard state that only records change, and when topics are refreshed (KIP-932)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter
from typing import NamedTuple

from kgroup.coordinator.epoch_group import EpochGroup, GroupKind
from kgroup.coordinator.share.member import (
    NONE,
    Partitions,
    ShareMember,
    listed,
    new_member,
    partitions_of,
)
from kgroup.coordinator.timer_kinds import SHARE_MEMBERS
from kgroup.domain import SHARE
from kgroup.protocol import record_slots
from kgroup.protocol.share_records import (
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberValue,
)


class ShareState(StrEnum):
    """The states ListGroups and ShareGroupDescribe show."""

    EMPTY = "Empty"
    STABLE = "Stable"


class Initialize(NamedTuple):
    """State that the share coordinator is to initialize.

    `offsets` are by topic id and partition; NO_OFFSET leaves the choice to the group's settings.
    """

    state_epoch: int
    offsets: Mapping[bytes, Mapping[int, int]]


def _target_in(value: ShareGroupTargetAssignmentMemberValue) -> Partitions:
    return partitions_of(value.topic_partitions)


def _target_value(target: Partitions) -> ShareGroupTargetAssignmentMemberValue:
    return ShareGroupTargetAssignmentMemberValue(topic_partitions=listed(target))


@dataclass(slots=True)
class ShareGroup(EpochGroup[ShareMember, Partitions]):
    """One share group.

    `kept` has the partitions whose state the share coordinator keeps (record 15), None before there are any.
    """

    KIND = GroupKind(
        SHARE,
        record_slots.SHARE,
        SHARE_MEMBERS,
        attrgetter("share_session_timeout_ms"),
        new_member,
        _target_in,
        _target_value,
        NONE,
    )

    kept: ShareGroupStatePartitionMetadataValue | None = None

    @property
    def state(self) -> ShareState:
        return ShareState.EMPTY if self.is_empty else ShareState.STABLE

    def subscribed_topics(self) -> frozenset[str]:
        """Return names that members subscribe to."""
        return frozenset(name for member in self.members.values() for name in member.names)

    def looked_at_topics(self) -> frozenset[str]:
        """Topics whose changes matter: those subscribed to."""
        return self.subscribed_topics()

    def subscribers_with(self, member: ShareMember) -> Counter[str]:
        """Return how many members subscribe to each topic, with `member` in the place of its old state."""
        members = {**self.members, member.member_id: member}
        return Counter(name for subscriber in members.values() for name in subscriber.names)
