"""Which members may commit and fetch offsets in a consumer group, and at which epoch (KIP-848, KIP-1251)."""

from __future__ import annotations

from kgroup.coordinator.commit_epochs import (
    MEMBER_EPOCHS_SINCE,
    STALE_IN_TRANSACTIONS_SINCE,
    EpochRefused,
    names_no_member,
)
from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.consumer.member import ConsumerMember
from kgroup.coordinator.state import Step
from kgroup.errors import ErrorCode, Refused


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
    empty = group.is_empty
    if names_no_member(epoch, member_id, instance_id, group_is_empty=empty, transactional=transactional):
        return None
    # Before its epoch, in transactions too: epochs of a removed member mean nothing (AE-11).
    member = group.members.get(member_id)
    if member is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
    # Older versions have a generation there; a classic member's is its epoch, so it may use them (KIP-848).
    if not transactional and not member.is_classic and step.version < MEMBER_EPOCHS_SINCE:
        raise Refused(
            ErrorCode.UNSUPPORTED_VERSION,
            "members of a consumer group commit with OffsetCommit version 9 or later",
        )
    # At its own epoch a member may commit what it does not own, such as what it has just revoked (AE-07).
    if epoch == member.epoch:
        return None
    generations = transactional and step.version < STALE_IN_TRANSACTIONS_SINCE
    # A newer epoch than the member ever had. For a static member that is away, at -2, any epoch is (OC-25).
    if epoch > member.epoch:
        raise EpochRefused(stale(member, generations=generations))
    return OlderEpoch(member, epoch, generations)


def stale(member: ConsumerMember, *, generations: bool = False) -> ErrorCode:
    """Return the error for a mismatched epoch: as a generation where no other fits."""
    if member.is_classic or generations:
        return ErrorCode.ILLEGAL_GENERATION
    return ErrorCode.STALE_MEMBER_EPOCH


def refuse_fetch(group: ConsumerGroup, member_id: str | None, epoch: int) -> None:
    """Refuse a fetch that names a member, unless the member is known and exactly at `epoch`."""
    # No member's fetch, but an admin's; "" is a member id like any other, and unknown (KIP-848).
    if member_id is None and epoch < 0:
        return
    member = group.members.get(member_id or "")
    if member is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
    # Exactly: KIP-1251 relaxes commits alone (AE-31). Reading begins at the fetched offset.
    if epoch != member.epoch:
        raise Refused(stale(member))


class OlderEpoch:
    """Accepts a partition the member has had since `epoch` or before; any other refuses the whole commit."""

    def __init__(self, member: ConsumerMember, epoch: int, generations: bool) -> None:
        self._member, self._epoch = member, epoch
        self._refusal = stale(member, generations=generations)

    def __call__(self, topic_id: bytes, partition: int) -> None:
        """Raise EpochRefused; a missing topic id means it is unknown."""
        # A partition it does not have counts as assigned at its own epoch, newer than this one (AE-07).
        assigned_at = self._member.current.assignment_epoch(topic_id, partition)
        if assigned_at is None or self._epoch < assigned_at:
            raise EpochRefused(self._refusal)
