"""A share group: hard state that only records change, and when topics are refreshed (KIP-932)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from kgroup.coordinator.share.member import NONE, Partitions, ShareMember
from kgroup.protocol.share_records import ShareGroupStatePartitionMetadataValue

PROTOCOL_TYPE = "share"


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


@dataclass(slots=True)
class ShareGroup:
    """One share group. A new one starts at epoch 1, as does one known only through some of its records.

    `kept` has the partitions whose state the share coordinator keeps (record 15), None before there are any.
    Soft: `refresh_deadline_ms` and `refresh_epoch` (when topics are refreshed).
    """

    group_id: str
    epoch: int = 1
    metadata_hash: int = 0
    assignment_epoch: int = 1
    assignment_timestamp_ms: int = 0
    members: dict[str, ShareMember] = field(default_factory=dict)
    targets: dict[str, Partitions] = field(default_factory=dict)
    kept: ShareGroupStatePartitionMetadataValue | None = None
    refresh_deadline_ms: int = 0
    refresh_epoch: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether the group is Empty: without members."""
        return not self.members

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
        return Counter(name for each in members.values() for name in each.names)

    def target_of(self, member_id: str) -> Partitions:
        return self.targets.get(member_id, NONE)

    def put_member(self, member: ShareMember) -> None:
        """Apply a member's metadata or assignment."""
        self.members[member.member_id] = member

    def drop_member(self, member_id: str) -> None:
        """Remove a member."""
        self.members.pop(member_id, None)
