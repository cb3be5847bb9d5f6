"""A consumer group: hard state that only records change, and a few soft fields (KIP-848)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from operator import attrgetter
from typing import NamedTuple

from kgroup.coordinator.assignors.interface import NOTHING, Assignment
from kgroup.coordinator.consumer.member import ConsumerMember, Current, Epochs, MemberState, new_member
from kgroup.coordinator.epoch_group import EpochGroup, GroupKind, Part
from kgroup.coordinator.inconsistency import InconsistentLog
from kgroup.coordinator.timer_kinds import CONSUMER_MEMBERS
from kgroup.domain import CONSUMER, NO_EPOCH
from kgroup.protocol import record_slots
from kgroup.protocol.group_records import (
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberValue,
    TargetTopicPartitions,
)
from kgroup.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kgroup.timers import TimerKey


class ConsumerState(StrEnum):
    """The states ListGroups and ConsumerGroupDescribe show."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class Quiet(NamedTuple):
    """A heartbeat that changed nothing: its request, its member as it was then, its answer, its timer."""

    request: ConsumerGroupHeartbeatRequest
    client_id: str
    client_host: str
    member: ConsumerMember
    response: ConsumerGroupHeartbeatResponse
    session: TimerKey


def listed(partitions: Mapping[bytes, tuple[int, ...]]) -> tuple[TargetTopicPartitions, ...]:
    """Return partitions as records carry them."""
    return tuple(
        TargetTopicPartitions(topic_id=topic_id, partitions=numbers)
        for topic_id, numbers in partitions.items()
    )


def _target_in(value: ConsumerGroupTargetAssignmentMemberValue) -> Assignment:
    # Kafka writes a set in any order; a target that differs in that alone is unchanged.
    return {t.topic_id: tuple(sorted(t.partitions)) for t in value.topic_partitions}


def _target_value(target: Assignment) -> ConsumerGroupTargetAssignmentMemberValue:
    return ConsumerGroupTargetAssignmentMemberValue(topic_partitions=listed(target))


@dataclass(slots=True)
class ConsumerGroup(EpochGroup[ConsumerMember, Assignment]):
    """One consumer group; its first member, whose join bumps epoch 1, gets epoch 2 (CP-01).

    Soft: `metadata_sent` (the epoch at which a member last received a client-side assignor's metadata) and
    `quiet` (heartbeats that changed nothing).
    """

    KIND = GroupKind(
        CONSUMER,
        record_slots.CONSUMER,
        CONSUMER_MEMBERS,
        attrgetter("consumer_session_timeout_ms"),
        new_member,
        _target_in,
        _target_value,
        NOTHING,
    )

    static: dict[str, str] = field(default_factory=dict)
    assignor_says: dict[str, ConsumerGroupTargetAssignmentMemberValue] = field(default_factory=dict)
    resolved: dict[str, ConsumerGroupRegularExpressionValue] = field(default_factory=dict)
    has_partition_metadata: bool = False
    metadata_sent: dict[str, int] = field(default_factory=dict)
    quiet: dict[str, Quiet] = field(default_factory=dict)
    by_name: Counter[str] = field(default_factory=Counter)
    by_regex: Counter[str] = field(default_factory=Counter)
    by_assignor: Counter[str] = field(default_factory=Counter)
    classic_members: int = 0
    _owners: dict[bytes, dict[int, int]] = field(default_factory=dict)

    @property
    def state(self) -> ConsumerState:
        if self.is_empty:
            return ConsumerState.EMPTY
        # In Kafka's order: while a target is still to come, the members' progress says nothing.
        if self.epoch > self.assignment_epoch:
            return ConsumerState.ASSIGNING
        for member in self.members.values():
            current = member.current
            if current.state is not MemberState.STABLE or current.epoch != self.assignment_epoch:
                return ConsumerState.RECONCILING
        return ConsumerState.STABLE

    @property
    def preferred_assignor(self) -> str | None:
        """The server assignor most members ask for; None if no member asks for one."""
        return max(self.by_assignor, key=lambda name: self.by_assignor[name], default=None)

    def subscribed_topics(self) -> frozenset[str]:
        """Return the names subscribed to, and the topics that patterns resolved to."""
        return frozenset(self.by_name).union(*(self.resolved_topics(pattern) for pattern in self.by_regex))

    def looked_at_topics(self) -> frozenset[str]:
        """Topics whose changes matter: those subscribed to."""
        return self.subscribed_topics()

    def resolved_topics(self, pattern: str | None) -> tuple[str, ...]:
        """Return the topics the pattern matched when last resolved; nothing if it never was."""
        value = self.resolved.get(pattern) if pattern else None
        return value.topics if value is not None else ()

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """Return names of the topics the member subscribes to, by name or through its pattern."""
        return frozenset(member.names).union(self.resolved_topics(member.regex))

    def owner_epoch(self, topic_id: bytes, partition: int) -> int:
        """Return the member epoch of the partition's owner, NO_EPOCH if it is free."""
        return self._owners.get(topic_id, {}).get(partition, NO_EPOCH)

    def put_target(self, member_id: str, value: Part) -> None:
        """Apply a record of a member's target, with what a client-side assignor adds to it."""
        EpochGroup.put_target(self, member_id, value)
        if value is not None and (value.error or value.metadata_version or value.metadata_bytes):
            self.assignor_says[member_id] = value
        else:
            self.assignor_says.pop(member_id, None)

    def put_member(self, member: ConsumerMember) -> None:
        """Apply a member's metadata or assignment; raise InconsistentLog for a second owner."""
        before = self.members.get(member.member_id)
        if before is not None:
            self._uncount(before)
        self._count(member)
        if before is None or before.current is not member.current:
            if before is not None:
                self._release(before.current)
            for partitions in (member.current.assigned, member.current.revoking):
                self._own_each(partitions, member.current.epoch)
        self.members[member.member_id] = member

    def drop_member(self, member_id: str) -> None:
        """Remove a member; its partitions are free."""
        member = self.members.pop(member_id, None)
        self.quiet.pop(member_id, None)
        if member is None:
            return
        self._uncount(member)
        self._release(member.current)

    def _count(self, member: ConsumerMember) -> None:
        if member.instance_id is not None:
            self.static[member.instance_id] = member.member_id
        self.by_name.update(member.names)
        if member.regex:
            self.by_regex[member.regex] += 1
        if member.metadata.server_assignor:
            self.by_assignor[member.metadata.server_assignor] += 1
        self.classic_members += member.is_classic

    def _uncount(self, member: ConsumerMember) -> None:
        if member.instance_id is not None and self.static.get(member.instance_id) == member.member_id:
            del self.static[member.instance_id]
        _subtract(self.by_name, member.names)
        _subtract(self.by_regex, (member.regex,) if member.regex else ())
        assignor = member.metadata.server_assignor
        _subtract(self.by_assignor, (assignor,) if assignor else ())
        self.classic_members -= member.is_classic

    def _own_each(self, partitions: Epochs, epoch: int) -> None:
        for topic_id, numbers in partitions.items():
            owners = self._owners.setdefault(topic_id, {})
            for number in numbers:
                held = owners.get(number)
                if held is not None and held >= epoch:
                    raise InconsistentLog(
                        f"group {self.group_id}: partition {number} of topic id {topic_id.hex()} is given "
                        f"away at epoch {epoch}, but owned at epoch {held}"
                    )
                owners[number] = epoch

    def _release(self, current: Current) -> None:
        for partitions in (current.assigned, current.revoking):
            for topic_id, numbers in partitions.items():
                owners = self._owners.get(topic_id)
                if owners is None:
                    continue
                for number in numbers:
                    if owners.get(number) == current.epoch:
                        del owners[number]
                if not owners:
                    del self._owners[topic_id]


def _subtract(counts: Counter[str], names: Iterable[str]) -> None:
    for name in names:
        counts[name] -= 1
        if counts[name] <= 0:
            del counts[name]
