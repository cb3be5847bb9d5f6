"""The records of a consumer group, the newest of each key, and the members they make (KIP-848)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from kgroup.domain import MemberStatus, TopicPartition
from kgroup.history.fold.latest_records import EpochRecords, Part, known, places_of, put
from kgroup.history.fold.topic_names import TopicNames
from kgroup.history.fold.view import CLASSIC, CONSUMER, LEFT_FOR_NOW, RecordedMember
from kgroup.protocol import group_records as r
from kgroup.protocol import record_slots
from kgroup.protocol.record_kinds import RecordKey, epochs_in

_STATES = {0: MemberStatus.STABLE, 1: MemberStatus.REVOKING, 2: MemberStatus.WAITING}


@dataclass(slots=True)
class ConsumerRecords(EpochRecords):
    """Those of the types 3 to 8 and 16."""

    KIND = CONSUMER
    PLACES = places_of(record_slots.CONSUMER)

    group: r.ConsumerGroupMetadataValue | None = None
    target_epoch: r.ConsumerGroupTargetAssignmentMetadataValue | None = None
    clients: dict[str, r.ConsumerGroupMemberMetadataValue] = field(default_factory=dict)
    targets: dict[str, r.ConsumerGroupTargetAssignmentMemberValue] = field(default_factory=dict)
    currents: dict[str, r.ConsumerGroupCurrentMemberAssignmentValue] = field(default_factory=dict)
    regexes: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def replay_own(self, key: RecordKey, value: Part, names: TopicNames) -> tuple[Collection[str], bool]:
        """Apply a resolved pattern, or partition metadata of a broker before 4.1, with names of topics."""
        if isinstance(key, r.ConsumerGroupRegularExpressionKey):
            resolved = known(r.ConsumerGroupRegularExpressionValue, value)
            put(self.regexes, key.regular_expression, tuple(resolved.topics) if resolved else None)
            return (), False
        legacy = known(r.ConsumerGroupPartitionMetadataValue, value)
        topics = legacy.topics if legacy is not None else ()
        return (), sum(names.learn(topic.topic_id, topic.topic_name) for topic in topics) > 0

    def member(self, member_id: str, names: TopicNames) -> RecordedMember | None:
        """Return a member as its records make it; None if none of it is left."""
        subscription, now = self.clients.get(member_id), self.currents.get(member_id)
        if subscription is None and now is None:
            return None
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
            assigned=names.partitions(now.assigned_partitions if now is not None else ()),
            revoking=names.partitions(now.partitions_pending_revocation if now is not None else ()),
            target=names.partitions(target.topic_partitions if target is not None else ()),
            assignment_epochs=_epochs(now, names),
        )


def _epochs(
    now: r.ConsumerGroupCurrentMemberAssignmentValue | None, names: TopicNames
) -> dict[TopicPartition, int]:
    """Return the assignment epoch of each owned partition, else the member's."""
    epochs: dict[TopicPartition, int] = {}
    if now is None:
        return epochs
    for topic in (*now.assigned_partitions, *now.partitions_pending_revocation):
        name, listed = names.of(topic.topic_id), epochs_in(topic, max(now.member_epoch, 0))
        epochs |= {TopicPartition(name, number): epoch for number, epoch in listed}
    return epochs
