"""The records that consumer, share and streams groups have alike: in each slot, one class of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from kgroup.protocol import group_records as r
from kgroup.protocol import share_records as s
from kgroup.protocol import streams_records as t
from kgroup.protocol.record_kinds import RecordKey, RecordValue


class GroupKey(Protocol):
    """Makes the key of a record about the whole group."""

    def __call__(self, *, group_id: str) -> RecordKey: ...


class MemberKey(Protocol):
    """Makes the key of a record about a member."""

    def __call__(self, *, group_id: str, member_id: str) -> RecordKey: ...


class GroupValue(Protocol):
    """Makes the value of a group epoch."""

    def __call__(self, *, epoch: int, metadata_hash: int) -> RecordValue: ...


class TargetEpochValue(Protocol):
    """Makes the value of a target epoch."""

    def __call__(self, *, assignment_epoch: int, assignment_timestamp: int) -> RecordValue: ...


class Slots(NamedTuple):
    """The keys of one kind of group, by slot, and the values that all kinds have alike.

    `group` is the group epoch with what else is the group's own, `member` what a member reported, `target`
    and `target_epoch` what was computed for it and when, `current` its epoch with what it has now.
    """

    group: GroupKey
    member: MemberKey
    target_epoch: GroupKey
    target: MemberKey
    current: MemberKey
    group_value: GroupValue
    target_epoch_value: TargetEpochValue

    def by_key(self) -> Iterator[tuple[type[RecordKey], str]]:
        """Return each class of keys with the name of its slot."""
        for name in ("group", "member", "target_epoch", "target", "current"):
            yield getattr(self, name), name


CONSUMER = Slots(
    r.ConsumerGroupMetadataKey,
    r.ConsumerGroupMemberMetadataKey,
    r.ConsumerGroupTargetAssignmentMetadataKey,
    r.ConsumerGroupTargetAssignmentMemberKey,
    r.ConsumerGroupCurrentMemberAssignmentKey,
    r.ConsumerGroupMetadataValue,
    r.ConsumerGroupTargetAssignmentMetadataValue,
)
SHARE = Slots(
    s.ShareGroupMetadataKey,
    s.ShareGroupMemberMetadataKey,
    s.ShareGroupTargetAssignmentMetadataKey,
    s.ShareGroupTargetAssignmentMemberKey,
    s.ShareGroupCurrentMemberAssignmentKey,
    s.ShareGroupMetadataValue,
    s.ShareGroupTargetAssignmentMetadataValue,
)
STREAMS = Slots(
    t.StreamsGroupMetadataKey,
    t.StreamsGroupMemberMetadataKey,
    t.StreamsGroupTargetAssignmentMetadataKey,
    t.StreamsGroupTargetAssignmentMemberKey,
    t.StreamsGroupCurrentMemberAssignmentKey,
    t.StreamsGroupMetadataValue,
    t.StreamsGroupTargetAssignmentMetadataValue,
)
