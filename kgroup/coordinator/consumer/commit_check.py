"""Which members may commit offsets in a consumer group, and at which epoch (KIP-848, KIP-1251)."""

from __future__ import annotations

from kgroup.coordinator.commit_epochs import EpochRefused, at_older_epoch
from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.consumer.member import ConsumerMember
from kgroup.coordinator.state import Step
from kgroup.errors import ErrorCode


def check_commit(
    step: Step,
    group: ConsumerGroup,
    member_id: str,
    epoch: int,
    *,
    transactional: bool,
    instance_id: str | None = None,
) -> OlderEpoch | None:
    """Refuse a commit by its member and epoch; for an older epoch, return the check of each partition.

    Accepted iff assignment epoch ≤ `epoch` ≤ member epoch (KIP-1251), else `EpochRefused`. Transactional
    commits that name no member are accepted.
    """
    older = at_older_epoch(
        step, group, member_id, epoch, transactional=transactional, instance_id=instance_id
    )
    return None if older is None else OlderEpoch(older[0], epoch, older[1])


class OlderEpoch:
    """Accepts a partition the member has had since `epoch` or before; any other refuses the whole commit."""

    def __init__(self, member: ConsumerMember, epoch: int, refusal: ErrorCode) -> None:
        self._member, self._epoch, self._refusal = member, epoch, refusal

    def __call__(self, topic_id: bytes, partition: int) -> None:
        """Raise EpochRefused; a missing topic id means it is unknown."""
        # A partition it does not have counts as assigned at its own epoch, newer than this one (AE-07).
        assigned_at = self._member.current.assignment_epoch(topic_id, partition)
        if assigned_at is None or self._epoch < assigned_at:
            raise EpochRefused(self._refusal)
