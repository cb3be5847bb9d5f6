"""A member of a consumer group, as the records 5 and 8 describe it (KIP-848, KIP-1251)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import TypeAlias

from kgroup.coordinator.epoch_group import EpochMember
from kgroup.domain import NO_EPOCH
from kgroup.protocol.group_records import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    TopicPartitions,
)
from kgroup.protocol.record_kinds import epochs_in

Epochs: TypeAlias = Mapping[bytes, Mapping[int, int]]
"""Topic id → partition → assignment epoch; never changed in place, no topic without partitions."""

NO_PARTITIONS: Epochs = MappingProxyType({})
GONE_EPOCH = -1
"""Sent by a member that leaves for good."""
LEFT_EPOCH = -2
"""Sent by a static member that leaves for a while (CP-15)."""
UNCHANGED_TIMEOUT = -1
"""A rebalance timeout that is unchanged (CP-16); other fields are null then."""


class MemberState(IntEnum):
    """The distance of a member's assignment from its target, with the numbers of record 8."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127


@dataclass(frozen=True, slots=True)
class Current:
    """Epochs and partitions of a member; a member that has no record 8 yet is at epoch 0."""

    epoch: int = 0
    previous_epoch: int = NO_EPOCH
    state: MemberState = MemberState.STABLE
    assigned: Epochs = field(default_factory=lambda: NO_PARTITIONS)
    revoking: Epochs = field(default_factory=lambda: NO_PARTITIONS)

    @property
    def must_revoke(self) -> bool:
        return self.state is MemberState.UNREVOKED_PARTITIONS

    def assignment_epoch(self, topic_id: bytes, partition: int) -> int | None:
        """Return the epoch at which the member got the partition, assigned or being revoked; else None."""
        for partitions in (self.assigned, self.revoking):
            epoch = partitions.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None

    def value(self) -> ConsumerGroupCurrentMemberAssignmentValue:
        """Return record 8's value; assignment epochs are always written (KIP-1251)."""
        return ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=self.epoch,
            previous_member_epoch=self.previous_epoch,
            state=self.state,
            assigned_partitions=_listed(self.assigned),
            partitions_pending_revocation=_listed(self.revoking),
        )

    @classmethod
    def of(cls, value: ConsumerGroupCurrentMemberAssignmentValue) -> Current:
        """Return what record 8 says; partitions without epochs take the member epoch (older brokers)."""
        default = max(value.member_epoch, 0)
        known = value.state in MemberState.__members__.values()
        return cls(
            value.member_epoch,
            value.previous_member_epoch,
            MemberState(value.state) if known else MemberState.UNKNOWN,
            _epochs(value.assigned_partitions, default),
            _epochs(value.partitions_pending_revocation, default),
        )


@dataclass(frozen=True, slots=True)
class ConsumerMember(EpochMember[ConsumerGroupMemberMetadataValue, Current]):
    """A member: `metadata` is its record 5 as it was written, `current` its record 8."""

    current: Current = field(default_factory=Current)

    @property
    def own_session_ms(self) -> int | None:
        classic = self.metadata.classic_member_metadata
        return None if classic is None else classic.session_timeout_ms

    @property
    def names(self) -> tuple[str, ...]:
        return self.metadata.subscribed_topic_names

    @property
    def regex(self) -> str | None:
        """The pattern subscribed to; None without one."""
        return self.metadata.subscribed_topic_regex or None

    @property
    def is_classic(self) -> bool:
        """Whether the member speaks the classic protocol inside this consumer group."""
        return self.metadata.classic_member_metadata is not None


def new_member(member_id: str) -> ConsumerMember:
    """Return a member of which nothing is known yet."""
    metadata = ConsumerGroupMemberMetadataValue(
        client_id="", client_host="", subscribed_topic_regex="", classic_member_metadata=None
    )
    return ConsumerMember(member_id, metadata)


def epochs_at(partitions: Mapping[bytes, Iterable[int]], epoch: int) -> Epochs:
    """Return the partitions, each assigned at `epoch`."""
    return {topic: dict.fromkeys(numbers, epoch) for topic, numbers in partitions.items()}


def _listed(partitions: Epochs) -> tuple[TopicPartitions, ...]:
    listed = []
    for topic_id, epochs in partitions.items():
        numbers = sorted(epochs)
        listed.append(
            TopicPartitions(
                topic_id=topic_id,
                partitions=tuple(numbers),
                assignment_epochs=tuple(epochs[n] for n in numbers),
            )
        )
    return tuple(listed)


def _epochs(listed: tuple[TopicPartitions, ...], default: int) -> Epochs:
    """Return each partition with its epoch."""
    return {topic.topic_id: dict(epochs_in(topic, default)) for topic in listed}
