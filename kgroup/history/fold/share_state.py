"""The records of a share group, the newest of each key, and the members they make (KIP-932)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from kgroup.domain import MemberStatus, TopicPartition
from kgroup.history.fold.latest_records import EpochRecords, Part, known, places_of
from kgroup.history.fold.topic_names import TopicNames
from kgroup.history.fold.view import SHARE, RecordedMember, ShareView
from kgroup.protocol import record_slots
from kgroup.protocol import share_records as r
from kgroup.protocol.record_kinds import RecordKey


@dataclass(slots=True)
class ShareRecords(EpochRecords):
    """Those of the types 10 to 15."""

    KIND = SHARE
    PLACES = places_of(record_slots.SHARE)

    group: r.ShareGroupMetadataValue | None = None
    target_epoch: r.ShareGroupTargetAssignmentMetadataValue | None = None
    clients: dict[str, r.ShareGroupMemberMetadataValue] = field(default_factory=dict)
    targets: dict[str, r.ShareGroupTargetAssignmentMemberValue] = field(default_factory=dict)
    currents: dict[str, r.ShareGroupCurrentMemberAssignmentValue] = field(default_factory=dict)
    partitions: r.ShareGroupStatePartitionMetadataValue | None = None

    @property
    def is_there(self) -> bool:
        """Whether the group is a share group: its epoch, a member or a partition is on record."""
        return self.partitions is not None or self.group is not None or bool(self.ids)

    def replay_own(self, key: RecordKey, value: Part, names: TopicNames) -> tuple[Collection[str], bool]:
        """Apply the partitions with delivery state, which have names of topics."""
        self.partitions = listed = known(r.ShareGroupStatePartitionMetadataValue, value)
        if listed is None:
            return (), False
        topics: tuple[r.TopicPartitionsInfo | r.TopicInfo, ...]
        topics = (*listed.initializing_topics, *listed.initialized_topics, *listed.deleting_topics)
        return (), sum(names.learn(topic.topic_id, topic.topic_name) for topic in topics) > 0

    def member(self, member_id: str, names: TopicNames) -> RecordedMember | None:
        """Return a member as its records make it; None if none of it is left."""
        client, now = self.clients.get(member_id), self.currents.get(member_id)
        if client is None and now is None:
            return None
        target = self.targets.get(member_id)
        return RecordedMember(
            member_id=member_id,
            instance_id=None,
            client_id=client.client_id if client is not None else "",
            host=client.client_host if client is not None else "",
            protocol=SHARE,
            epoch=now.member_epoch if now is not None else -1,
            state=MemberStatus.STABLE if now is not None else MemberStatus.JOINING,
            topics=client.subscribed_topic_names if client is not None else (),
            rack_id=client.rack_id if client is not None else None,
            previous_epoch=now.previous_member_epoch if now is not None else -1,
            assigned=names.partitions(now.assigned_partitions if now is not None else ()),
            target=names.partitions(target.topic_partitions if target is not None else ()),
        )

    @property
    def view(self) -> ShareView:
        """The group's state apart from epochs and members."""
        listed = self.partitions or r.ShareGroupStatePartitionMetadataValue()
        return ShareView(
            initializing=_named(listed.initializing_topics),
            initialized=_named(listed.initialized_topics),
            deleting=tuple(sorted(topic.topic_name for topic in listed.deleting_topics)),
            has_target=self.target_epoch is not None,
        )


def _named(topics: Iterable[r.TopicPartitionsInfo]) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(t.topic_name, p) for t in topics for p in t.partitions)
