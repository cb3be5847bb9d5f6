"""Which members may commit offsets in a streams group, and at which epoch (KIP-1071, KIP-1251)."""

from __future__ import annotations

from kgroup.coordinator.commit_epochs import EpochRefused, at_older_epoch
from kgroup.coordinator.state import Step
from kgroup.coordinator.streams.group import StreamsGroup, readers_of
from kgroup.coordinator.streams.member import StreamsMember
from kgroup.domain import TopicImage
from kgroup.errors import ErrorCode
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
    older = at_older_epoch(
        step, group, member_id, epoch, transactional=transactional, instance_id=instance_id
    )
    if older is None:
        return None
    member, refusal = older
    # Without a topology the task of a partition is unknown.
    if group.topology is None:
        raise EpochRefused(refusal)
    return OlderStreamsEpoch(member, epoch, group.topology, step.state.image, refusal)


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
