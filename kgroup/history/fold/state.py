"""The state of a group, of either protocol, as the records up to an offset make it.

Every record type has a place of its own here, and the newest record of a key is all that counts: so replaying
a compacted log ends in the same state as replaying the whole one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from kgroup.domain import MemberStatus, TopicPartition
from kgroup.errors import DecodeError
from kgroup.history.fold.stored import restored
from kgroup.history.fold.topic_names import TopicNames
from kgroup.history.items import Committed, GroupRecord, OtherRecord
from kgroup.protocol import group_records as r
from kgroup.protocol.record_kinds import RecordKey, RecordValue
from kgroup.protocol.subscription import Assignment, Subscription

CLASSIC, CONSUMER, SIMPLE = "classic", "consumer", "simple"
STREAMS, SHARE = "streams", "share"
UNDECODED = (STREAMS, SHARE)
"""Kinds of groups whose records kgroup only counts: that they are there, not what they say."""
KINDS = (CLASSIC, CONSUMER, *UNDECODED)
_KIND_OF = {**dict.fromkeys(range(10, 16), SHARE), **dict.fromkeys(range(17, 24), STREAMS)}
LEFT_FOR_NOW = -2
_STATES = {0: MemberStatus.STABLE, 1: MemberStatus.REVOKING, 2: MemberStatus.WAITING}
T = TypeVar("T")
V = TypeVar("V", bound=RecordValue)
Topics = tuple[tuple[bytes, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class RecordedMember:
    """A member as records describe it. Partitions are by topic name, or by topic id where no name is known.

    `protocol` is what the member speaks; `epoch` is its generation in a classic group. `assigned` leaves out
    `revoking` (still held, to be given up); `target` is None where the group has none (classic).
    `assignment_epochs` are KIP-1251's, by partition. `metadata` is what a classic member joined with and
    `assignment` what it was given, as they came; `joined_with` is the metadata decoded: None if it is not the
    consumer protocol's.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    protocol: str
    epoch: int
    state: MemberStatus
    topics: tuple[str, ...] = ()
    regex: str | None = None
    rack_id: str | None = None
    assignor: str | None = None
    previous_epoch: int = -1
    rebalance_timeout_ms: int = -1
    session_timeout_ms: int = -1
    assigned: frozenset[TopicPartition] = frozenset()
    revoking: frozenset[TopicPartition] = frozenset()
    target: frozenset[TopicPartition] | None = None
    assignment_epochs: Mapping[TopicPartition, int] = field(default_factory=dict)
    user_data: int = 0
    """Bytes of user data in a classic assignment; an upgrade is refused when there are any."""
    given: bytes | None = None
    """A classic assignment that is not the consumer protocol's, as it came: then `assigned` is not known."""
    metadata: bytes = b""
    joined_with: Subscription | None = None
    assignment: bytes = b""

    __setstate__ = restored

    @property
    def owned(self) -> frozenset[TopicPartition]:
        """What a classic member still had when it joined the generation; an eager member has nothing then."""
        return frozenset(self.joined_with.owned) if self.joined_with is not None else frozenset()

    @property
    def label(self) -> str:
        """What people call it: the instance id, else a member id short enough to read."""
        if self.instance_id:
            return self.instance_id
        short = self.member_id
        return short if len(short) <= 24 else f"{short[:23]}…"

    @property
    def holds(self) -> frozenset[TopicPartition]:
        """What nobody else may own: assigned, or not yet given up."""
        return self.assigned | self.revoking


@dataclass(frozen=True, slots=True)
class View:
    """A group at one moment. `epoch` is the generation or group epoch, -1 before there was one."""

    kind: str
    epoch: int
    assignment_epoch: int
    metadata_hash: int
    assignor: str | None
    leader: str | None
    state_timestamp_ms: int
    members: Mapping[str, RecordedMember]
    regexes: Mapping[str, tuple[str, ...]]
    protocol_type: str

    __setstate__ = restored

    @property
    def state(self) -> str:
        """The group's state as Kafka names it, as far as records tell: a classic rebalance leaves none."""
        if not self.kind:
            return "Dead"
        if self.kind in UNDECODED:
            return "Unknown"
        if not self.members:
            return "Empty"
        if self.kind == CLASSIC:
            return "Stable"
        if self.epoch > self.assignment_epoch:
            return "Assigning"
        return "Stable" if self.converged else "Reconciling"

    @property
    def converged(self) -> bool:
        """Whether every member has reached the target of the newest group epoch."""
        done = self.assignment_epoch
        return self.epoch == done and all(
            m.state == MemberStatus.STABLE and m.epoch == done for m in self.members.values()
        )


def renamed(view: View, names: Mapping[str, str]) -> View:
    """The same moment with topic names for ids, as far as `names` (by the id's text) has them."""
    return replace(view, members={m: _renamed(member, names) for m, member in view.members.items()})


def _renamed(member: RecordedMember, names: Mapping[str, str]) -> RecordedMember:
    def of(place: TopicPartition) -> TopicPartition:
        return TopicPartition(names.get(place.topic, place.topic), place.partition)

    return replace(
        member,
        assigned=frozenset(map(of, member.assigned)),
        revoking=frozenset(map(of, member.revoking)),
        target=None if member.target is None else frozenset(map(of, member.target)),
        assignment_epochs={of(place): epoch for place, epoch in member.assignment_epochs.items()},
    )


class GroupState:
    """What `__consumer_offsets` says about one group up to now; only `replay` and commits change it."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.classic: r.GroupMetadataValue | None = None
        self.epoch_value: r.ConsumerGroupMetadataValue | None = None
        self.target_value: r.ConsumerGroupTargetAssignmentMetadataValue | None = None
        self.legacy_metadata: r.ConsumerGroupPartitionMetadataValue | None = None
        self.subscriptions: dict[str, r.ConsumerGroupMemberMetadataValue] = {}
        self.targets: dict[str, r.ConsumerGroupTargetAssignmentMemberValue] = {}
        self.currents: dict[str, r.ConsumerGroupCurrentMemberAssignmentValue] = {}
        self.regexes: dict[str, tuple[str, ...]] = {}
        self.members: dict[str, RecordedMember] = {}
        self.offsets: dict[TopicPartition, Committed] = {}
        self.pending: dict[int, dict[TopicPartition, Committed]] = {}
        self.newest_classic = self.newest_consumer = -1
        self.others: dict[str, set[bytes]] = {}
        self.changed_ms = -1
        self._composed = ""

    @property
    def kind(self) -> str:
        """classic, consumer, streams, share, simple (offsets only), or "" when nothing of it is left."""
        # A conversion removes the other kind's records (CP-67); where compaction left some, the newer win.
        consumer = self.epoch_value is not None or bool(self.subscriptions or self.currents)
        if consumer and (self.classic is None or self.newest_consumer > self.newest_classic):
            return CONSUMER
        if self.classic is not None:
            return CLASSIC
        for kind in UNDECODED:
            if self.others.get(kind):
                return kind
        return SIMPLE if self.offsets or any(self.pending.values()) else ""

    def replay(self, record: GroupRecord, names: TopicNames) -> bool:
        """Take in one record of the group's own state (types 2 to 8 and 16).

        True if it told a topic name that was asked for before (only a legacy record of type 4 can).
        """
        renamed = False
        key, value = record.key, record.value
        self.changed_ms = record.timestamp_ms
        # A tombstone makes no kind newer, and brokers from 4.1 on write type 4 as tombstones only (CP-48).
        if value is not None and record.type == 2:
            self.newest_classic = record.offset
        elif value is not None and record.type != 4:
            self.newest_consumer = record.offset
        if isinstance(key, r.GroupMetadataKey):
            self.classic = _of(r.GroupMetadataValue, value)
        elif isinstance(key, r.ConsumerGroupMetadataKey):
            self.epoch_value = _of(r.ConsumerGroupMetadataValue, value)
        elif isinstance(key, r.ConsumerGroupPartitionMetadataKey):
            renamed = self._learn_legacy(_of(r.ConsumerGroupPartitionMetadataValue, value), names)
        elif isinstance(key, r.ConsumerGroupTargetAssignmentMetadataKey):
            self.target_value = _of(r.ConsumerGroupTargetAssignmentMetadataValue, value)
        elif isinstance(key, r.ConsumerGroupRegularExpressionKey):
            resolved = _of(r.ConsumerGroupRegularExpressionValue, value)
            _put(self.regexes, key.regular_expression, tuple(resolved.topics) if resolved else None)
        self._compose(record.type, self._replay_member(key, value), names)
        return renamed

    def _replay_member(self, key: RecordKey, value: RecordValue | None) -> str | None:
        """Take in what a record says of a member; whose, None if it is about none."""
        if isinstance(key, r.ConsumerGroupMemberMetadataKey):
            _put(self.subscriptions, key.member_id, _of(r.ConsumerGroupMemberMetadataValue, value))
        elif isinstance(key, r.ConsumerGroupTargetAssignmentMemberKey):
            _put(self.targets, key.member_id, _of(r.ConsumerGroupTargetAssignmentMemberValue, value))
        elif isinstance(key, r.ConsumerGroupCurrentMemberAssignmentKey):
            _put(self.currents, key.member_id, _of(r.ConsumerGroupCurrentMemberAssignmentValue, value))
        else:
            return None
        return key.member_id

    def replay_other(self, record: OtherRecord, names: TopicNames) -> None:
        """Take in a record of a kind that is not decoded: only whether its key is there counts."""
        self.changed_ms = record.timestamp_ms
        keys = self.others.setdefault(_KIND_OF[record.type], set())
        (keys.add if record.alive else keys.discard)(record.key)
        self._compose(record.type, None, names)

    def _learn_legacy(self, value: r.ConsumerGroupPartitionMetadataValue | None, names: TopicNames) -> bool:
        self.legacy_metadata = value
        told = value.topics if value is not None else ()
        return sum(names.learn(topic.topic_id, topic.topic_name) for topic in told) > 0

    def _compose(self, record_type: int, member: str | None, names: TopicNames) -> None:
        """Bring `members` up to date with what a record of this type has changed."""
        kind, before = self.kind, self._composed
        if kind != before or kind == CLASSIC and record_type == 2:
            self.recompose(names)
        elif kind == CONSUMER and member is not None:
            if member in self.subscriptions or member in self.currents:
                self.members[member] = self._consumer_member(member, names)
            else:
                self.members.pop(member, None)

    def recompose(self, names: TopicNames) -> None:
        """Make all members anew, for a group that changed its kind, or with names learned since."""
        self._composed = self.kind
        self.members = {}
        if self._composed == CLASSIC and self.classic is not None:
            self.members = classic_members(self.classic)
        elif self._composed == CONSUMER:
            self.members = {m: self._consumer_member(m, names) for m in sorted(self._ids())}

    def _ids(self) -> set[str]:
        return self.subscriptions.keys() | self.currents.keys()

    def _consumer_member(self, member_id: str, names: TopicNames) -> RecordedMember:
        told, now = self.subscriptions.get(member_id), self.currents.get(member_id)
        target = self.targets.get(member_id)
        classic = getattr(told, "classic_member_metadata", None)
        speaks = CLASSIC if classic is not None else CONSUMER
        epoch = now.member_epoch if now is not None else -1
        coded = _STATES.get(getattr(now, "state", 0), MemberStatus.UNKNOWN)
        state = MemberStatus.LEFT if epoch == LEFT_FOR_NOW else coded
        return RecordedMember(
            member_id=member_id,
            instance_id=getattr(told, "instance_id", None),
            client_id=getattr(told, "client_id", ""),
            host=getattr(told, "client_host", ""),
            protocol=speaks,
            epoch=epoch,
            state=state if now is not None else MemberStatus.JOINING,
            topics=tuple(getattr(told, "subscribed_topic_names", ())),
            regex=getattr(told, "subscribed_topic_regex", None) or None,
            rack_id=getattr(told, "rack_id", None),
            assignor=getattr(told, "server_assignor", None),
            previous_epoch=now.previous_member_epoch if now is not None else -1,
            rebalance_timeout_ms=getattr(told, "rebalance_timeout_ms", -1),
            session_timeout_ms=classic.session_timeout_ms if classic is not None else -1,
            assigned=_partitions(now.assigned_partitions if now is not None else (), names),
            revoking=_partitions(now.partitions_pending_revocation if now is not None else (), names),
            target=_partitions(target.topic_partitions if target is not None else (), names),
            assignment_epochs=_epochs(now, names),
        )

    def view(self) -> View:
        """The group now; later records do not change what is returned."""
        kind, classic = self.kind, self.classic
        consumer = kind == CONSUMER
        # A group of which only some records are left begins at epoch 1, as the coordinator loads it.
        epoch = getattr(self.epoch_value, "epoch", 1) if consumer else getattr(classic, "generation", -1)
        return View(
            kind=kind,
            epoch=epoch,
            assignment_epoch=getattr(self.target_value, "assignment_epoch", 1) if consumer else epoch,
            metadata_hash=getattr(self.epoch_value, "metadata_hash", 0) if consumer else 0,
            assignor=self._assignor() if consumer else getattr(classic, "protocol", None),
            leader=None if consumer else getattr(classic, "leader", None),
            state_timestamp_ms=-1 if consumer else getattr(classic, "current_state_timestamp", -1),
            members=dict(self.members),
            regexes=dict(self.regexes) if consumer else {},
            protocol_type="consumer" if consumer else getattr(classic, "protocol_type", "") or "",
        )

    def _assignor(self) -> str | None:
        """The assignor most members ask for; None when none of them asks (the broker's default)."""
        votes = [m.assignor for m in self.members.values() if m.assignor]
        return max(sorted(set(votes)), key=votes.count) if votes else None


def classic_members(value: r.GroupMetadataValue) -> dict[str, RecordedMember]:
    """The members in a classic group's record (GroupMetadata value, any version)."""
    found: dict[str, RecordedMember] = {}
    # Connect's workers, and whoever else uses the protocol, join with bytes of their own.
    consumer = value.protocol_type == "consumer"
    for m in value.members:
        joined = _subscription(m.subscription) if consumer else None
        given = _assignment(m.assignment) if consumer else None
        session = m.session_timeout
        found[m.member_id] = RecordedMember(
            member_id=m.member_id,
            instance_id=m.group_instance_id,
            client_id=m.client_id,
            host=m.client_host,
            protocol=CLASSIC,
            epoch=value.generation,
            state=MemberStatus.STABLE,
            topics=tuple(sorted(joined.topics)) if joined is not None else (),
            rack_id=joined.rack if joined is not None else None,
            # Value version 0 has no rebalance timeout: then the session's is meant (KIP-62).
            rebalance_timeout_ms=m.rebalance_timeout if m.rebalance_timeout >= 0 else session,
            session_timeout_ms=session,
            assigned=frozenset(given.partitions) if given is not None else frozenset(),
            user_data=len(given.user_data or b"") if given is not None else 0,
            given=m.assignment if given is None else None,
            metadata=m.subscription,
            assignment=m.assignment,
            joined_with=joined,
        )
    return found


def _subscription(data: bytes) -> Subscription | None:
    try:
        return Subscription.decode(data)
    except DecodeError:
        return None


def _assignment(data: bytes) -> Assignment | None:
    if not data:
        return Assignment()  # how a leader may give a member nothing
    try:
        return Assignment.decode(data)
    except DecodeError:
        return None


def _partitions(
    topics: Iterable[r.TopicPartitions | r.TargetTopicPartitions], names: TopicNames
) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(names.of(t.topic_id), p) for t in topics for p in t.partitions)


def _epochs(
    now: r.ConsumerGroupCurrentMemberAssignmentValue | None, names: TopicNames
) -> dict[TopicPartition, int]:
    """The assignment epoch of each partition held; the member's epoch where a record has none.

    KIP-1251 has it so for records of older brokers (AE-20), and for lists that do not match (AE-23).
    """
    found: dict[TopicPartition, int] = {}
    if now is None:
        return found
    for topic in (*now.assigned_partitions, *now.partitions_pending_revocation):
        epochs = topic.assignment_epochs or ()
        if len(epochs) != len(topic.partitions):
            epochs = (max(now.member_epoch, 0),) * len(topic.partitions)
        name = names.of(topic.topic_id)
        found |= {TopicPartition(name, p): e for p, e in zip(topic.partitions, epochs, strict=True)}
    return found


def _of(kind: type[V], value: RecordValue | None) -> V | None:
    """A record's value, known by its key to be of this kind; None for a tombstone."""
    assert value is None or isinstance(value, kind)
    return value


def _put(place: dict[str, T], key: str, value: T | None) -> None:
    if value is None:
        place.pop(key, None)
    else:
        place[key] = value
