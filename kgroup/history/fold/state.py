"""The state of a group, of any protocol, as the records up to an offset make it.

Every record type has its own place here, and only the newest record of a key counts: so replaying a compacted
log ends in the same state as replaying the whole one.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from kgroup.domain import MemberStatus, TopicPartition
from kgroup.errors import DecodeError
from kgroup.history.fold.consumer_state import ConsumerRecords
from kgroup.history.fold.latest_records import EpochRecords, known, put
from kgroup.history.fold.share_state import ShareRecords
from kgroup.history.fold.streams_state import StreamsRecords
from kgroup.history.fold.topic_names import TopicNames
from kgroup.history.fold.view import (
    CLASSIC,
    CONSUMER,
    SHARE,
    SIMPLE,
    STREAMS,
    RecordedMember,
    View,
)
from kgroup.history.log_items import Committed, GroupRecord
from kgroup.protocol import group_records as r
from kgroup.protocol.share_records import ShareKey
from kgroup.protocol.streams_records import StreamsKey
from kgroup.protocol.subscription import PROTOCOL_TYPE, Assignment, Subscription


@dataclass(slots=True, eq=False)
class GroupState:
    """What `__consumer_offsets` says about one group up to now; only `replay` and commits change it."""

    group_id: str
    classic: r.GroupMetadataValue | None = None
    newest_classic: int = -1
    consumer: ConsumerRecords = field(default_factory=ConsumerRecords)
    streams: StreamsRecords = field(default_factory=StreamsRecords)
    share: ShareRecords = field(default_factory=ShareRecords)
    members: dict[str, RecordedMember] = field(default_factory=dict)
    offsets: dict[TopicPartition, Committed] = field(default_factory=dict)
    pending: dict[int, dict[TopicPartition, Committed]] = field(default_factory=dict)
    _composed: str = ""

    @property
    def kind(self) -> str:
        """classic, consumer, streams, share, simple (offsets only), or "" when nothing of it is left."""
        return self._present()[0]

    def _present(self) -> tuple[str, EpochRecords | None]:
        """Return the group's kind, and its records; None for a kind without epochs."""
        # A conversion removes the other kind's records (CP-67); if compaction left some, the newest win.
        kind, newest, own = "", -2, None
        if self.classic is not None:
            kind, newest = CLASSIC, self.newest_classic
        for records in (self.consumer, self.streams, self.share):
            if records.is_there and records.newest >= newest:
                kind, newest, own = records.KIND, records.newest, records
        if not kind and (self.offsets or any(self.pending.values())):
            kind = SIMPLE
        return kind, own

    def replay(self, record: GroupRecord, names: TopicNames) -> bool:
        """Apply one record of the group's own state (types 2 to 8 and 10 to 23).

        Return True if it has a topic name requested before (only records of types 4 and 15 can).
        """
        key, value = record.key, record.value
        if isinstance(key, r.GroupMetadataKey):
            # A tombstone makes no kind newer.
            if value is not None:
                self.newest_classic = record.offset
            self.classic = known(r.GroupMetadataValue, value)
            if self.kind != self._composed or self.kind == CLASSIC:
                self.recompose(names)
            return False
        records: EpochRecords = self.consumer
        if isinstance(key, StreamsKey):
            records = self.streams
        elif isinstance(key, ShareKey):
            records = self.share
        # Brokers from 4.1 on write type 4 only as tombstones (CP-48).
        if value is not None and record.type != 4:
            records.newest = record.offset
        touched, renamed = records.replay(key, value, names)
        if self.kind != self._composed:
            self.recompose(names)
        elif self._composed == records.KIND:
            for member_id in sorted(touched):
                put(self.members, member_id, records.member(member_id, names))
        return renamed

    def recompose(self, names: TopicNames) -> None:
        """Make all members again, for a group that changed its kind, or with names learned since.

        With other names they keep their order: events report members in it, and when names were learned
        depends on where a run began.
        """
        kind, records = self._present()
        kept = [*self.members] if kind == self._composed else []
        self._composed = kind
        self.members = {}
        if kind == CLASSIC and self.classic is not None:
            self.members = classic_members(self.classic)
        elif records is not None:
            made = (records.member(m, names) for m in kept or sorted(records.ids))
            self.members = {member.member_id: member for member in made if member is not None}

    def members_by(self, topics: Mapping[bytes, str]) -> dict[str, RecordedMember]:
        """Return members and their partitions of these topics, by id: a broker describes no other."""
        records = self._present()[1]
        if records is None or records is self.streams:
            return self.members
        names, there = TopicNames(dict(topics)), set(topics.values())

        def of(places: frozenset[TopicPartition]) -> frozenset[TopicPartition]:
            return frozenset(partition for partition in places if partition.topic in there)

        members = (records.member(member_id, names) for member_id in self.members)
        return {
            m.member_id: replace(
                m, assigned=of(m.assigned), revoking=of(m.revoking), target=of(m.target or frozenset())
            )
            for m in members
            if m is not None
        }

    def view(self) -> View:
        """Return the group now; later records do not change what is returned."""
        kind, records = self._present()
        classic = self.classic if kind == CLASSIC else None
        # The assignor most members ask for; None when none asks (the broker's default).
        votes = [m.assignor for m in self.members.values() if m.assignor] if kind == CONSUMER else []
        asked = max(sorted(set(votes)), key=votes.count) if votes else None
        return View(
            kind=kind,
            epoch=self.epoch,
            assignment_epoch=self.epoch if records is None else records.assignment_epoch,
            metadata_hash=getattr(records.group, "metadata_hash", 0) if records is not None else 0,
            assignor=asked if kind == CONSUMER else getattr(classic, "protocol", None),
            leader=getattr(classic, "leader", None),
            state_timestamp_ms=getattr(classic, "current_state_timestamp", -1),
            members=dict(self.members),
            regexes=dict(self.consumer.regexes) if kind == CONSUMER else {},
            protocol_type=kind if records is not None else getattr(classic, "protocol_type", "") or "",
            streams=self.streams.view if kind == STREAMS else None,
            share=self.share.view if kind == SHARE else None,
        )

    @property
    def epoch(self) -> int:
        """The group's generation or epoch now, -1 if it has none."""
        records = self._present()[1]
        if records is not None:
            return records.epoch
        return self.classic.generation if self.classic is not None else -1


def classic_members(value: r.GroupMetadataValue) -> dict[str, RecordedMember]:
    """Return the members in a classic group's record (GroupMetadata value, any version)."""
    members: dict[str, RecordedMember] = {}
    # Connect's workers, and other users of the protocol, join with bytes of their own.
    consumer = value.protocol_type == PROTOCOL_TYPE
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
        members[m.member_id] = RecordedMember(
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
    return members
