"""The records of a share group, the newest of each key, and the members they make (KIP-932)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kgroup.domain import MemberStatus, TopicPartition
from kgroup.history.fold.latest_records import known, put
from kgroup.history.fold.topic_names import TopicNames
from kgroup.history.fold.view import SHARE, RecordedMember, ShareView
from kgroup.protocol import share_records as r
from kgroup.protocol.record_kinds import RecordValue


@dataclass(slots=True)
class ShareRecords:
    """One group's records of the types 10 to 15; all empty for a group of another kind."""

    group: r.ShareGroupMetadataValue | None = None
    target_epoch: r.ShareGroupTargetAssignmentMetadataValue | None = None
    partitions: r.ShareGroupStatePartitionMetadataValue | None = None
    clients: dict[str, r.ShareGroupMemberMetadataValue] = field(default_factory=dict)
    targets: dict[str, r.ShareGroupTargetAssignmentMemberValue] = field(default_factory=dict)
    currents: dict[str, r.ShareGroupCurrentMemberAssignmentValue] = field(default_factory=dict)

    @property
    def is_there(self) -> bool:
        """Whether the group is a share group: its epoch, a member or a partition is on record."""
        return self.group is not None or self.partitions is not None or bool(self.clients or self.currents)

    def replay(
        self, key: r.ShareKey, value: RecordValue | None, names: TopicNames
    ) -> tuple[str | None, bool]:
        """Apply a record. Return the member that it is about, and whether it had a name requested before.

        Only type 15 has names of topics.
        """
        if isinstance(key, r.ShareGroupMetadataKey):
            self.group = known(r.ShareGroupMetadataValue, value)
        elif isinstance(key, r.ShareGroupTargetAssignmentMetadataKey):
            self.target_epoch = known(r.ShareGroupTargetAssignmentMetadataValue, value)
        elif isinstance(key, r.ShareGroupStatePartitionMetadataKey):
            self.partitions = listed = known(r.ShareGroupStatePartitionMetadataValue, value)
            if listed is None:
                return None, False
            topics: tuple[r.TopicPartitionsInfo | r.TopicInfo, ...]
            topics = (*listed.initializing_topics, *listed.initialized_topics, *listed.deleting_topics)
            return None, sum(names.learn(topic.topic_id, topic.topic_name) for topic in topics) > 0
        elif isinstance(key, r.ShareGroupMemberMetadataKey):
            put(self.clients, key.member_id, known(r.ShareGroupMemberMetadataValue, value))
            return key.member_id, False
        elif isinstance(key, r.ShareGroupTargetAssignmentMemberKey):
            put(self.targets, key.member_id, known(r.ShareGroupTargetAssignmentMemberValue, value))
            return key.member_id, False
        elif isinstance(key, r.ShareGroupCurrentMemberAssignmentKey):
            put(self.currents, key.member_id, known(r.ShareGroupCurrentMemberAssignmentValue, value))
            return key.member_id, False
        return None, False

    @property
    def ids(self) -> set[str]:
        """The ids of all members."""
        return self.clients.keys() | self.currents.keys()

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
            assigned=_places(now.assigned_partitions if now is not None else (), names),
            target=_places(target.topic_partitions if target is not None else (), names),
        )

    @property
    def epoch(self) -> int:
        # A group of which only some records are left begins at epoch 1, as the coordinator loads it.
        return self.group.epoch if self.group is not None else 1

    @property
    def assignment_epoch(self) -> int:
        return self.target_epoch.assignment_epoch if self.target_epoch is not None else 1

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


def _places(topics: Iterable[r.TopicPartitions], names: TopicNames) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(names.of(t.topic_id), p) for t in topics for p in t.partitions)


def _named(topics: Iterable[r.TopicPartitionsInfo]) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(t.topic_name, p) for t in topics for p in t.partitions)
