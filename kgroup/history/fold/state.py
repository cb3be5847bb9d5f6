"""The state of a group, of any protocol, as the records up to an offset make it.

Every record type has its own place here, and only the newest record of a key counts: so replaying a compacted
log ends in the same state as replaying the whole one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from kgroup.domain import MemberStatus, TopicPartition
from kgroup.errors import DecodeError
from kgroup.history.fold.latest_records import known, put
from kgroup.history.fold.share_state import ShareRecords
from kgroup.history.fold.streams_state import StreamsRecords
from kgroup.history.fold.topic_names import TopicNames
from kgroup.history.fold.view import (
    CLASSIC,
    CONSUMER,
    LEFT_FOR_NOW,
    SHARE,
    SIMPLE,
    STREAMS,
    RecordedMember,
    View,
)
from kgroup.history.log_items import Committed, GroupRecord
from kgroup.protocol import group_records as r
from kgroup.protocol.record_kinds import RecordKey, RecordValue
from kgroup.protocol.share_records import ShareKey
from kgroup.protocol.streams_records import StreamsKey
from kgroup.protocol.subscription import Assignment, Subscription

_STATES = {0: MemberStatus.STABLE, 1: MemberStatus.REVOKING, 2: MemberStatus.WAITING}


@dataclass(slots=True, eq=False)
class GroupState:
    """What `__consumer_offsets` says about one group up to now; only `replay` and commits change it."""

    group_id: str
    classic: r.GroupMetadataValue | None = None
    epoch_value: r.ConsumerGroupMetadataValue | None = None
    target_value: r.ConsumerGroupTargetAssignmentMetadataValue | None = None
    legacy_metadata: r.ConsumerGroupPartitionMetadataValue | None = None
    subscriptions: dict[str, r.ConsumerGroupMemberMetadataValue] = field(default_factory=dict)
    targets: dict[str, r.ConsumerGroupTargetAssignmentMemberValue] = field(default_factory=dict)
    currents: dict[str, r.ConsumerGroupCurrentMemberAssignmentValue] = field(default_factory=dict)
    regexes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    members: dict[str, RecordedMember] = field(default_factory=dict)
    offsets: dict[TopicPartition, Committed] = field(default_factory=dict)
    pending: dict[int, dict[TopicPartition, Committed]] = field(default_factory=dict)
    newest_classic: int = -1
    newest_consumer: int = -1
    streams: StreamsRecords = field(default_factory=StreamsRecords)
    newest_streams: int = -1
    share: ShareRecords = field(default_factory=ShareRecords)
    newest_share: int = -1
    _composed: str = ""

    @property
    def kind(self) -> str:
        """classic, consumer, streams, share, simple (offsets only), or "" when nothing of it is left."""
        # A conversion removes the other kind's records (CP-67); if compaction left some, the newest win.
        found, newest = "", -2
        if self.classic is not None:
            found, newest = CLASSIC, self.newest_classic
        consumer = self.epoch_value is not None or self.subscriptions or self.currents
        if consumer and self.newest_consumer >= newest:
            found, newest = CONSUMER, self.newest_consumer
        if self.streams.is_there and self.newest_streams >= newest:
            found, newest = STREAMS, self.newest_streams
        if self.share.is_there and self.newest_share >= newest:
            found = SHARE
        if found:
            return found
        return SIMPLE if self.offsets or any(self.pending.values()) else ""

    def replay(self, record: GroupRecord, names: TopicNames) -> bool:
        """Apply one record of the group's own state (types 2 to 8 and 10 to 23).

        Return True if it has a topic name requested before (only records of types 4 and 15 can).
        """
        renamed = False
        key, value = record.key, record.value
        if isinstance(key, StreamsKey):
            self._replay_streams(record, key, names)
            return False
        if isinstance(key, ShareKey):
            return self._replay_share(record, key, names)
        # A tombstone makes no kind newer, and brokers from 4.1 on write type 4 only as tombstones (CP-48).
        if value is not None and record.type == 2:
            self.newest_classic = record.offset
        elif value is not None and record.type != 4:
            self.newest_consumer = record.offset
        if isinstance(key, r.GroupMetadataKey):
            self.classic = known(r.GroupMetadataValue, value)
        elif isinstance(key, r.ConsumerGroupMetadataKey):
            self.epoch_value = known(r.ConsumerGroupMetadataValue, value)
        elif isinstance(key, r.ConsumerGroupPartitionMetadataKey):
            self.legacy_metadata = legacy = known(r.ConsumerGroupPartitionMetadataValue, value)
            topics = legacy.topics if legacy is not None else ()
            renamed = sum(names.learn(topic.topic_id, topic.topic_name) for topic in topics) > 0
        elif isinstance(key, r.ConsumerGroupTargetAssignmentMetadataKey):
            self.target_value = known(r.ConsumerGroupTargetAssignmentMetadataValue, value)
        elif isinstance(key, r.ConsumerGroupRegularExpressionKey):
            resolved = known(r.ConsumerGroupRegularExpressionValue, value)
            put(self.regexes, key.regular_expression, tuple(resolved.topics) if resolved else None)
        self._compose(record.type, self._replay_member(key, value), names)
        return renamed

    def _replay_member(self, key: RecordKey, value: RecordValue | None) -> str | None:
        """Apply a record of a member; return its id, None if the record is not about a member."""
        if isinstance(key, r.ConsumerGroupMemberMetadataKey):
            put(self.subscriptions, key.member_id, known(r.ConsumerGroupMemberMetadataValue, value))
        elif isinstance(key, r.ConsumerGroupTargetAssignmentMemberKey):
            put(self.targets, key.member_id, known(r.ConsumerGroupTargetAssignmentMemberValue, value))
        elif isinstance(key, r.ConsumerGroupCurrentMemberAssignmentKey):
            put(self.currents, key.member_id, known(r.ConsumerGroupCurrentMemberAssignmentValue, value))
        else:
            return None
        return key.member_id

    def _replay_streams(self, record: GroupRecord, key: StreamsKey, names: TopicNames) -> None:
        if record.value is not None:
            self.newest_streams = record.offset
        touched = self.streams.replay(key, record.value)
        if self.kind != self._composed:
            self.recompose(names)
        elif self._composed == STREAMS:
            for member_id in sorted(touched):
                put(self.members, member_id, self.streams.member(member_id))

    def _replay_share(self, record: GroupRecord, key: ShareKey, names: TopicNames) -> bool:
        if record.value is not None:
            self.newest_share = record.offset
        touched, renamed = self.share.replay(key, record.value, names)
        if self.kind != self._composed:
            self.recompose(names)
        elif self._composed == SHARE and touched is not None:
            put(self.members, touched, self.share.member(touched, names))
        return renamed

    def _compose(self, record_type: int, member: str | None, names: TopicNames) -> None:
        """Update `members` with what a record of this type has changed."""
        kind, before = self.kind, self._composed
        if kind != before or kind == CLASSIC and record_type == 2:
            self.recompose(names)
        elif kind == CONSUMER and member is not None:
            if member in self.subscriptions or member in self.currents:
                self.members[member] = self._consumer_member(member, names)
            else:
                self.members.pop(member, None)

    def recompose(self, names: TopicNames) -> None:
        """Make all members again, for a group that changed its kind, or with names learned since.

        With other names they keep their order: events report members in it, and when names were learned
        depends on where a run began.
        """
        kind = self.kind
        kept = [*self.members] if kind == self._composed else []
        self._composed = kind
        self.members = {}
        if kind == CLASSIC and self.classic is not None:
            self.members = classic_members(self.classic)
        elif kind == CONSUMER:
            every = self.subscriptions.keys() | self.currents.keys()
            self.members = {m: self._consumer_member(m, names) for m in kept or sorted(every)}
        elif kind == STREAMS:
            made = (self.streams.member(m) for m in sorted(self.streams.ids))
            self.members = {member.member_id: member for member in made if member is not None}
        elif kind == SHARE:
            shared = (self.share.member(m, names) for m in kept or sorted(self.share.ids))
            self.members = {member.member_id: member for member in shared if member is not None}

    def members_by(self, topics: Mapping[bytes, str]) -> dict[str, RecordedMember]:
        """Return members and their partitions of these topics, by id: a broker describes no other."""
        if self.kind not in (CONSUMER, SHARE):
            return self.members
        names, there = TopicNames(dict(topics)), set(topics.values())

        def of(places: frozenset[TopicPartition]) -> frozenset[TopicPartition]:
            return frozenset(place for place in places if place.topic in there)

        make = self.share.member if self.kind == SHARE else self._consumer_member
        members = (make(member_id, names) for member_id in self.members)
        return {
            m.member_id: replace(
                m, assigned=of(m.assigned), revoking=of(m.revoking), target=of(m.target or frozenset())
            )
            for m in members
            if m is not None
        }

    def _consumer_member(self, member_id: str, names: TopicNames) -> RecordedMember:
        subscription, now = self.subscriptions.get(member_id), self.currents.get(member_id)
        target = self.targets.get(member_id)
        classic = getattr(subscription, "classic_member_metadata", None)
        speaks = CLASSIC if classic is not None else CONSUMER
        epoch = now.member_epoch if now is not None else -1
        coded = _STATES.get(getattr(now, "state", 0), MemberStatus.UNKNOWN)
        state = MemberStatus.LEFT if epoch == LEFT_FOR_NOW else coded
        return RecordedMember(
            member_id=member_id,
            instance_id=getattr(subscription, "instance_id", None),
            client_id=getattr(subscription, "client_id", ""),
            host=getattr(subscription, "client_host", ""),
            protocol=speaks,
            epoch=epoch,
            state=state if now is not None else MemberStatus.JOINING,
            topics=tuple(getattr(subscription, "subscribed_topic_names", ())),
            regex=getattr(subscription, "subscribed_topic_regex", None) or None,
            rack_id=getattr(subscription, "rack_id", None),
            assignor=getattr(subscription, "server_assignor", None),
            previous_epoch=now.previous_member_epoch if now is not None else -1,
            rebalance_timeout_ms=getattr(subscription, "rebalance_timeout_ms", -1),
            session_timeout_ms=classic.session_timeout_ms if classic is not None else -1,
            assigned=_partitions(now.assigned_partitions if now is not None else (), names),
            revoking=_partitions(now.partitions_pending_revocation if now is not None else (), names),
            target=_partitions(target.topic_partitions if target is not None else (), names),
            assignment_epochs=_epochs(now, names),
        )

    def view(self) -> View:
        """Return the group now; later records do not change what is returned."""
        kind = self.kind
        classic = self.classic if kind == CLASSIC else None
        consumer, streams, share = kind == CONSUMER, kind == STREAMS, kind == SHARE
        by_kind = {STREAMS: self.streams.group, CONSUMER: self.epoch_value, SHARE: self.share.group}
        of = by_kind.get(kind)
        # The assignor most members ask for; None when none asks (the broker's default).
        votes = [m.assignor for m in self.members.values() if m.assignor] if consumer else []
        asked = max(sorted(set(votes)), key=votes.count) if votes else None
        return View(
            kind=kind,
            epoch=self.epoch,
            assignment_epoch=self._assignment_epoch(),
            metadata_hash=of.metadata_hash if of is not None else 0,
            assignor=asked if consumer else getattr(classic, "protocol", None),
            leader=getattr(classic, "leader", None),
            state_timestamp_ms=getattr(classic, "current_state_timestamp", -1),
            members=dict(self.members),
            regexes=dict(self.regexes) if consumer else {},
            protocol_type=kind
            if consumer or streams or share
            else getattr(classic, "protocol_type", "") or "",
            streams=self.streams.view if streams else None,
            share=self.share.view if share else None,
        )

    def _assignment_epoch(self) -> int:
        if self.kind == STREAMS:
            return self.streams.assignment_epoch
        if self.kind == SHARE:
            return self.share.assignment_epoch
        if self.kind == CONSUMER:
            return self.target_value.assignment_epoch if self.target_value is not None else 1
        return self.epoch

    @property
    def epoch(self) -> int:
        """The group's generation or epoch now, -1 if it has none."""
        if self.kind == STREAMS:
            return self.streams.epoch
        if self.kind == SHARE:
            return self.share.epoch
        # A group of which only some records are left begins at epoch 1, as the coordinator loads it.
        if self.kind == CONSUMER:
            return self.epoch_value.epoch if self.epoch_value is not None else 1
        return self.classic.generation if self.classic is not None else -1


def classic_members(value: r.GroupMetadataValue) -> dict[str, RecordedMember]:
    """Return the members in a classic group's record (GroupMetadata value, any version)."""
    found: dict[str, RecordedMember] = {}
    # Connect's workers, and other users of the protocol, join with bytes of their own.
    consumer = value.protocol_type == "consumer"
    for m in value.members:
        joined: Subscription | None = None
        given: Assignment | None = None
        if consumer:
            with suppress(DecodeError):
                joined = Subscription.decode(m.subscription)
            with suppress(DecodeError):
                # A leader may assign nothing by no bytes at all.
                given = Assignment.decode(m.assignment) if m.assignment else Assignment()
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
            # Value version 0 has no rebalance timeout: then the session timeout applies (KIP-62).
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


def _partitions(
    topics: Iterable[r.TopicPartitions | r.TargetTopicPartitions], names: TopicNames
) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(names.of(t.topic_id), p) for t in topics for p in t.partitions)


def _epochs(
    now: r.ConsumerGroupCurrentMemberAssignmentValue | None, names: TopicNames
) -> dict[TopicPartition, int]:
    """Return the assignment epoch of each owned partition; the member's epoch if a record has none.

    So does KIP-1251 for records of older brokers (AE-20), and for lists that do not match (AE-23).
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
