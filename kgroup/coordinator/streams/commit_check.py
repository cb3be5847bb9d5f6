"""Which members may commit and fetch offsets in a streams group, and at which epoch (KIP-1071, KIP-1251)."""

from __future__ import annotations

from kgroup.coordinator.commit_epochs import (
    MEMBER_EPOCHS_SINCE,
    STALE_IN_TRANSACTIONS_SINCE,
    EpochRefused,
    names_no_member,
)
from kgroup.coordinator.state import Step
from kgroup.coordinator.streams.group import StreamsGroup, readers_of
from kgroup.coordinator.streams.member import StreamsMember
from kgroup.domain import TopicImage
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.streams_records import StreamsGroupTopologyValue


def check_streams_commit(
    step: Step,
    group: StreamsGroup,
    member_id: str,
    epoch: int,
    *,
    transactional: bool,
    instance_id: str | None = None,
) -> OlderStreamsEpoch | None:
    """Refuse a commit by its member and epoch; for an older epoch, return the check of each partition.

    Accepted iff the epoch in which the partition's task was assigned ≤ `epoch` ≤ member epoch (KIP-1251),
    else `EpochRefused`. A static member's id plays no part: Kafka 4.3.1 has none in streams groups.
    """
    empty = group.is_empty
    if names_no_member(epoch, member_id, instance_id, group_is_empty=empty, transactional=transactional):
        return None
    # Before its epoch, in transactions too: epochs of a removed member mean nothing (AE-11).
    member = group.members.get(member_id)
    if member is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
    if not transactional and step.version < MEMBER_EPOCHS_SINCE:
        raise Refused(
            ErrorCode.UNSUPPORTED_VERSION,
            "members of a streams group commit with OffsetCommit version 9 or later",
        )
    if epoch == member.epoch:
        return None
    generations = transactional and step.version < STALE_IN_TRANSACTIONS_SINCE
    code = ErrorCode.ILLEGAL_GENERATION if generations else ErrorCode.STALE_MEMBER_EPOCH
    # Without a topology the task of a partition is unknown.
    if epoch > member.epoch or group.topology is None:
        raise EpochRefused(code)
    return OlderStreamsEpoch(member, epoch, group.topology, step.state.image, code)


def refuse_streams_fetch(group: StreamsGroup, member_id: str | None, epoch: int) -> None:
    """Refuse a fetch that names a member, unless the member is known and exactly at `epoch`."""
    # No member's fetch, but an admin's; "" is a member id like any other, and unknown (KIP-848).
    if member_id is None and epoch < 0:
        return
    member = group.members.get(member_id or "")
    if member is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
    if epoch != member.epoch:
        raise Refused(ErrorCode.STALE_MEMBER_EPOCH)


class OlderStreamsEpoch:
    """Accepts a partition whose task the member has had since `epoch` or before; others refuse the commit."""

    def __init__(
        self,
        member: StreamsMember,
        epoch: int,
        topology: StreamsGroupTopologyValue,
        image: TopicImage,
        code: ErrorCode,
    ) -> None:
        self._current, self._epoch = member.current, epoch
        self._sources = readers_of(topology)
        self._image, self._refusal = image, code

    def __call__(self, topic_id: bytes, partition: int) -> None:
        """Raise EpochRefused, also for a topic that the topology does not read."""
        source = self._sources.get(self._image.name_of(topic_id) or "")
        # A topic that the topology does not read belongs to no task, so no epoch says which member owned it.
        if source is not None:
            for tasks in (self._current.assigned.active, self._current.revoking.active):
                assigned_at = tasks.get(source.subtopology_id, {}).get(partition)
                if assigned_at is not None:
                    if self._epoch >= assigned_at:
                        return
                    break
        raise EpochRefused(self._refusal)
