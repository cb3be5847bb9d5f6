"""A classic group: its last record, and the rebalance that is forming on top of it.

`committed` is hard and set by `replay` alone. All else is soft: after a restart the group is again what its
record says (KIP-345; `__consumer_offsets` record type 2).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kgroup.coordinator.classic.states import ClassicState, Phase
from kgroup.coordinator.outcome import Parked, Record
from kgroup.errors import DecodeError
from kgroup.protocol.group_records import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from kgroup.protocol.messages.join_group import JoinGroupRequestProtocol
from kgroup.protocol.subscription import PROTOCOL_TYPE, subscribed_topics
from kgroup.timers import TimerKey

Protocols = tuple[JoinGroupRequestProtocol, ...]
SKIP_ASSIGNMENT_SINCE = 9
"""First version of JoinGroup in which a leader can skip computing the assignment (KIP-814)."""
NO_REBALANCE_TIMEOUT = -1
"""In records before version 1, which have none."""


@dataclass(slots=True)
class ClassicMember:
    """A member as the coordinator knows it now; `assignment` mirrors the committed one."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    assignment: bytes = b""
    is_new: bool = False
    join: Parked | None = None
    sync: Parked | None = None
    session_timer: TimerKey | None = field(default=None, compare=False, repr=False)
    """Made once: making it takes longer than the rest of a renewal."""

    def metadata(self, protocol: str | None) -> bytes:
        """Return the subscription bytes under the protocol's name, b"" if the member does not list it."""
        return next((p.metadata for p in self.protocols if p.name == protocol), b"")


@dataclass(slots=True)
class Forming:
    """A rebalance under way, and its values until a record commits them."""

    phase: Phase
    from_empty: bool
    generation: int
    protocol_type: str | None
    protocol: str | None
    leader: str | None
    new_member_added: bool = False


NEVER = GroupMetadataValue(protocol_type="", generation=0, protocol=None, leader=None, members=())


@dataclass(slots=True)
class ClassicGroup:
    """One classic group; `state` and the values below it are derived from `forming` and `committed`."""

    group_id: str
    committed: GroupMetadataValue = NEVER
    members: dict[str, ClassicMember] = field(default_factory=dict)
    static: dict[str, str] = field(default_factory=dict)
    pending_joiners: set[str] = field(default_factory=set)
    pending_sync: set[str] = field(default_factory=set)
    forming: Forming | None = None
    state_since_ms: int = -1
    awaiting_join: int = 0
    supporters: dict[str, int] = field(default_factory=dict)
    subscriptions: tuple[bytes, ...] | None = None
    """ConsumerProtocol subscriptions of the newest generation; None without one, or in another protocol."""
    noted_generation: int = -1
    """The generation of `subscriptions`."""
    stable_since_ms: int | None = None
    """When the leader's sync arrived whose record is not replayed yet."""
    sent_generation: int = 0
    """The newest generation sent to members since the log was loaded, whether in the log or not."""
    held: dict[str, ClassicMember] = field(default_factory=dict)
    """Joins of registered instance ids that wait for the others, outside the group (`classic.roster`)."""
    idle: frozenset[str] = frozenset()
    """Members to which the leader of the newest generation does not assign (`classic.roster`)."""
    heirs: dict[str, bytes] = field(default_factory=dict)
    """Standbys that have yet to fetch the assignment of a removed member (`classic.roster`)."""

    @property
    def state(self) -> ClassicState:
        if self.forming is not None:
            preparing = self.forming.phase is Phase.PREPARING
            return ClassicState.PREPARING if preparing else ClassicState.COMPLETING
        return ClassicState.EMPTY if self.is_empty else ClassicState.STABLE

    @property
    def awaits_syncs(self) -> bool:
        """Whether the group is CompletingRebalance; asked for every commit, in less time than `state`."""
        return self.forming is not None and self.forming.phase is Phase.COMPLETING

    @property
    def is_empty(self) -> bool:
        """Whether the group is Empty: without members and without a join under way."""
        return self.forming is None and not self.committed.members

    @property
    def generation(self) -> int:
        return self.committed.generation if self.forming is None else self.forming.generation

    @property
    def protocol_type(self) -> str | None:
        return (self.committed.protocol_type or None) if self.forming is None else self.forming.protocol_type

    @property
    def protocol(self) -> str | None:
        return self.committed.protocol if self.forming is None else self.forming.protocol

    @property
    def leader(self) -> str | None:
        return self.committed.leader if self.forming is None else self.forming.leader

    @property
    def rebalance_timeout_ms(self) -> int:
        """The slowest member's, at least 0 (ClassicGroup.rebalanceTimeoutMs)."""
        return max((0, *(m.rebalance_timeout_ms for m in self.members.values())))

    @property
    def is_simple(self) -> bool:
        """Whether the group only holds offsets: it never had a protocol type, and no join is pending."""
        return self.is_empty and not self.protocol_type and not self.pending_joiners

    def all_joined(self) -> bool:
        """Return whether every member has a parked join and every id handed out has come back."""
        return not self.pending_joiners and self.awaiting_join == len(self.members)

    def park_join(self, member: ClassicMember, parked: Parked) -> Parked | None:
        """Keep the join until the rebalance completes; return an older one that it replaces."""
        before, member.join = member.join, parked
        self.awaiting_join += before is None
        return before

    def take_join(self, member: ClassicMember) -> Parked | None:
        """Return the member's parked join, to be answered; it is no longer parked."""
        parked, member.join = member.join, None
        self.awaiting_join -= parked is not None
        return parked

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Return whether a member with these protocols can join the present members."""
        if self.is_empty:
            return bool(protocol_type and protocols)
        # A rebalance can wait for announced joiners alone: the group still keeps its protocol type.
        if self.protocol_type != protocol_type:
            return False
        return any(self.supporters.get(p.name, 0) == len(self.members) for p in protocols)

    def selected_protocol(self) -> str | None:
        """Return the protocol most members vote for among those all support; None without members."""
        if not self.members:
            return None
        common = {name for name, count in self.supporters.items() if count == len(self.members)}
        # Each member votes for the first protocol of its list that all support. Clients list what they prefer
        # first, so a fleet moves to another assignor by two rolling bounces (KIP-429).
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = next(p.name for p in member.protocols if p.name in common)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=lambda name: votes[name])

    def add(self, member: ClassicMember) -> None:
        self.members[member.member_id] = member
        self._count_support(member, 1)
        self.awaiting_join += member.join is not None
        self.pending_joiners.discard(member.member_id)
        if member.instance_id is not None:
            self.static[member.instance_id] = member.member_id

    def remove(self, member_id: str) -> ClassicMember | None:
        """Remove a member; the oldest member left follows a leader."""
        self.pending_joiners.discard(member_id)
        self.pending_sync.discard(member_id)
        member = self.members.pop(member_id, None)
        if member is None:
            return None
        self._count_support(member, -1)
        self.awaiting_join -= member.join is not None
        if member.instance_id is not None and self.static.get(member.instance_id) == member_id:
            del self.static[member.instance_id]
        if self.forming is not None and self.forming.leader == member_id:
            self.forming.leader = next(iter(self.members), None)
        return member

    def update(self, member: ClassicMember, protocols: Protocols, rebalance_ms: int, session_ms: int) -> None:
        """Update a member from its latest join."""
        self._count_support(member, -1)
        member.protocols = protocols
        self._count_support(member, 1)
        member.rebalance_timeout_ms = rebalance_ms
        member.session_timeout_ms = session_ms

    def replace(self, old_id: str, new_id: str) -> ClassicMember:
        """Give a static member a new id; it keeps its leadership, timeouts and assignment.

        It is no new member, even if the join of its first life is still parked. A new member's join must end
        in good time, because its client is not known to live; this instance has shown that it does.
        """
        member = self.members.pop(old_id)
        member.member_id, member.is_new, member.session_timer = new_id, False, None
        self.members[new_id] = member
        assert member.instance_id is not None
        self.static[member.instance_id] = new_id
        if old_id in self.pending_sync:
            self.pending_sync.remove(old_id)
            self.pending_sync.add(new_id)
        if self.forming is not None and self.forming.leader == old_id:
            self.forming.leader = new_id
        if old_id in self.idle:
            self.idle = self.idle - {old_id} | {new_id}
        if old_id in self.heirs:
            self.heirs[new_id] = self.heirs.pop(old_id)
        return member

    def _count_support(self, member: ClassicMember, by: int) -> None:
        for name in {p.name for p in member.protocols}:
            self.supporters[name] = self.supporters.get(name, 0) + by

    def note_subscriptions(self) -> None:
        """Keep what the members of the generation that begins here subscribe to."""
        self.subscriptions, self.noted_generation = None, self.generation
        if self.protocol_type == PROTOCOL_TYPE and not self.members:
            self.subscriptions = ()
        elif self.protocol_type == PROTOCOL_TYPE and self.protocol is not None:
            self.subscriptions = tuple(m.metadata(self.protocol) for m in self.members.values())

    def subscribed_topics(self) -> frozenset[str] | None:
        """Return the topics of the newest generation; None if unknown (none yet, or not readable).

        The joins of a rebalance that is still forming do not count: their protocol is not chosen, and the
        partitions are read under the generation before.
        """
        if self.subscriptions is None:
            return None
        try:
            return frozenset(topic for data in self.subscriptions for topic in subscribed_topics(data))
        except DecodeError:
            return None

    def record(
        self,
        generation: int,
        *,
        protocol: str | None,
        leader: str | None,
        assignments: dict[str, bytes],
        state_since_ms: int,
    ) -> Record:
        """Return the record that commits the present members under these values."""
        value = GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=generation,
            protocol=protocol,
            leader=leader,
            current_state_timestamp=state_since_ms,
            members=tuple(
                MemberMetadata(
                    member_id=m.member_id,
                    group_instance_id=m.instance_id,
                    client_id=m.client_id,
                    client_host=m.client_host,
                    rebalance_timeout=m.rebalance_timeout_ms,
                    session_timeout=m.session_timeout_ms,
                    subscription=m.metadata(protocol),
                    assignment=assignments.get(m.member_id, b""),
                )
                for m in self.members.values()
            ),
        )
        return Record(GroupMetadataKey(group=self.group_id), value)

    def record_of_now(self, leader: str | None) -> Record:
        """Return the record of the present members with their assignments, under the present generation."""
        return self.record(
            self.generation,
            protocol=self.protocol,
            leader=leader,
            assignments={m.member_id: m.assignment for m in self.members.values()},
            state_since_ms=self.state_since_ms,
        )

    def replay(self, value: GroupMetadataValue) -> None:
        """Apply a record. While a rebalance forms, its members stay; else they become the record's."""
        self.committed = value
        if self.forming is not None:
            return
        self.state_since_ms = value.current_state_timestamp
        # The record says since when syncs were awaited; the group is Stable since the leader's arrived.
        if self.stable_since_ms is not None:
            self.state_since_ms, self.stable_since_ms = self.stable_since_ms, None
        before, self.members, self.static = self.members, {}, {}
        self.awaiting_join, self.supporters = 0, {}
        for stored in value.members:
            member = before.get(stored.member_id)
            if member is None or not _agrees(member, stored, value.protocol):
                member = _member_of(stored, value)
            member.assignment = stored.assignment
            self.add(member)
        # A static member that rejoins within a generation may subscribe to other topics, but goes on reading
        # its assigned partitions. The generation's topics count until the next one.
        if value.generation != self.noted_generation:
            self.note_subscriptions()


def _agrees(member: ClassicMember, stored: MemberMetadata, protocol: str | None) -> bool:
    """Return whether a member in memory is the one in the record, or an older one still in the log."""
    return (
        any(p.name == protocol and p.metadata == stored.subscription for p in member.protocols)
        and member.session_timeout_ms == stored.session_timeout
        and member.rebalance_timeout_ms == stored.rebalance_timeout
    )


def _member_of(stored: MemberMetadata, value: GroupMetadataValue) -> ClassicMember:
    protocol = JoinGroupRequestProtocol(name=value.protocol or "", metadata=stored.subscription)
    return ClassicMember(
        member_id=stored.member_id,
        instance_id=stored.group_instance_id,
        client_id=stored.client_id,
        client_host=stored.client_host,
        rebalance_timeout_ms=(
            stored.session_timeout
            if stored.rebalance_timeout == NO_REBALANCE_TIMEOUT
            else stored.rebalance_timeout
        ),
        session_timeout_ms=stored.session_timeout,
        protocol_type=value.protocol_type,
        protocols=(protocol,),
    )
