"""What consumer, share and streams groups have in common: epochs, members, and a target for each member.

Each kind is declared once, as a `GroupKind`; writing records, replaying them and timers work from that.
Heartbeats and reconciliation are each kind's own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, Self, TypeAlias, TypeVar, cast

from kgroup.coordinator.config import GroupConfig
from kgroup.coordinator.timer_kinds import MemberTimers
from kgroup.protocol.record_kinds import RecordValue
from kgroup.protocol.record_slots import Slots

NEVER_EXPIRES_MS = 2**31 - 1


class Current(Protocol):
    """A member's epochs with what it has now; it is made of two epochs, or of its record."""

    def __init__(self, epoch: int, previous_epoch: int) -> None: ...
    @property
    def epoch(self) -> int: ...
    @property
    def must_revoke(self) -> bool:
        """Whether the member has yet to report that it revoked something."""

    def value(self) -> RecordValue:
        """Return the record's value."""

    @classmethod
    def of(cls, value: Part) -> Self:
        """Return what the record says."""


Part: TypeAlias = Any
"""A record's key or value; the class is known by its slot and its kind of group."""
V = TypeVar("V", bound=RecordValue)
C = TypeVar("C", bound=Current)


@dataclass(frozen=True, slots=True)
class EpochMember(Generic[V, C]):
    """A member: `metadata` is its record as it was written; `current` comes from another one."""

    member_id: str
    metadata: V
    current: C

    @property
    def epoch(self) -> int:
        return self.current.epoch

    @property
    def instance_id(self) -> str | None:
        """The id of a static member; no member of a share group has one."""
        return getattr(self.metadata, "instance_id", None)

    @property
    def is_classic(self) -> bool:
        """Whether the member speaks the classic protocol, as one of a consumer group may."""
        return False

    @property
    def own_session_ms(self) -> int | None:
        """The session timeout that the member brings; None for the group's."""
        return None


AnyMember: TypeAlias = EpochMember[Any, Any]
M = TypeVar("M", bound=AnyMember)
T = TypeVar("T")


class GroupKind(NamedTuple):
    """What writing records, replaying them and timers need to know of one kind of group.

    `session_ms` is the session timeout in a configuration; `new_member` makes a member of which nothing is
    known yet; `target_in` returns the target in a record's value, `target_value` the value for a target.
    """

    name: str
    records: Slots
    timers: MemberTimers
    session_ms: Callable[[GroupConfig], int]
    new_member: Callable[[str], AnyMember]
    target_in: Callable[[Part], object]
    target_value: Callable[[Part], RecordValue]
    no_target: object


@dataclass(slots=True)
class EpochGroup(Generic[M, T]):
    """One group. A new one starts at epoch 1, as does one known only through some of its records.

    Soft: `refresh_deadline_ms` and `refresh_epoch`, which say when topics are refreshed.
    """

    KIND: ClassVar[GroupKind]

    group_id: str
    epoch: int = 1
    metadata_hash: int = 0
    assignment_epoch: int = 1
    assignment_timestamp_ms: int = 0
    members: dict[str, M] = field(default_factory=dict)
    targets: dict[str, T] = field(default_factory=dict)
    refresh_deadline_ms: int = 0
    refresh_epoch: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether the group is Empty: without members."""
        return not self.members

    def target_of(self, member_id: str) -> T:
        return self.targets.get(member_id, cast(T, self.KIND.no_target))

    def topics_expired(self, now_ms: int) -> bool:
        """Return whether the topics must be refreshed: they changed, or an epoch was never written."""
        return now_ms >= self.refresh_deadline_ms or self.epoch < self.refresh_epoch

    def topics_refreshed(self, now_ms: int, epoch: int) -> None:
        """Wait for a change of topics or a lost record before the topics are refreshed again."""
        self.refresh_deadline_ms = now_ms + NEVER_EXPIRES_MS
        self.refresh_epoch = epoch

    def put_group(self, value: Part) -> None:
        """Apply the record of the group epoch."""
        self.epoch, self.metadata_hash = value.epoch, value.metadata_hash

    def put_target(self, member_id: str, value: Part) -> None:
        """Apply a record of a member's target; None removes it."""
        if value is None:
            self.targets.pop(member_id, None)
        else:
            self.targets[member_id] = cast(T, self.KIND.target_in(value))

    def put_member(self, member: M) -> None:
        """Apply a member's metadata or assignment."""
        self.members[member.member_id] = member

    def drop_member(self, member_id: str) -> None:
        """Remove a member; what it had is free."""
        self.members.pop(member_id, None)


AnyGroup: TypeAlias = EpochGroup[Any, Any]
