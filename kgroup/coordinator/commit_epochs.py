"""What the checks of a commit's epoch have in common, for every type of group (KIP-848, KIP-1251)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from kgroup.coordinator.epoch_group import AnyGroup, AnyMember, EpochGroup, M, T
from kgroup.coordinator.metrics import Counters
from kgroup.coordinator.state import Step
from kgroup.domain import NO_EPOCH
from kgroup.errors import ErrorCode, Refused

MEMBER_EPOCHS_SINCE = 9
"""OffsetCommit: the version from which members with epochs can commit."""
STALE_IN_TRANSACTIONS_SINCE = 6
"""TxnOffsetCommit: the version from which an epoch may be refused as stale (KIP-1319)."""


class EpochRefused(Refused):
    """A commit that KIP-1251's check refuses for its epoch, as the strict one did."""

    def count(self, counters: Counters, codes: Iterable[int]) -> None:
        """Count the partitions of the answer that were refused so; `codes` are those of all of them."""
        counters.commits_both_checks_refused += sum(code == self.code for code in codes)


class PartitionCheck(Protocol):
    """Accepts a partition of a commit at an older epoch, or refuses the whole commit."""

    def __call__(self, topic_id: bytes, partition: int) -> None:
        """Raise EpochRefused."""
        ...


def at_older_epoch(
    step: Step,
    group: EpochGroup[M, T],
    member_id: str,
    epoch: int,
    *,
    transactional: bool,
    instance_id: str | None,
) -> tuple[M, ErrorCode] | None:
    """Refuse a commit by its member and epoch; return None where every partition is accepted.

    For an older epoch, return the member, and the error for the partitions that it got later.
    """
    # No member: an admin resets offsets, or a tool imports them (AE-29).
    if epoch < 0 and group.is_empty:
        return None
    # A producer before KIP-447 names no member; its transactional id fences it.
    if transactional and epoch == NO_EPOCH and not member_id and instance_id is None:
        return None
    # Before its epoch, in transactions too: epochs of a removed member mean nothing (AE-11).
    member = group.members.get(member_id)
    if member is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
    # Older versions have a generation there; a classic member's is its epoch, so it may use them (KIP-848).
    if not transactional and not member.is_classic and step.version < MEMBER_EPOCHS_SINCE:
        raise Refused(
            ErrorCode.UNSUPPORTED_VERSION,
            f"members of a {group.KIND.name} group commit with OffsetCommit version 9 or later",
        )
    # At its own epoch a member may commit what it does not own, such as what it has just revoked (AE-07).
    if epoch == member.epoch:
        return None
    refusal = stale(member, generations=transactional and step.version < STALE_IN_TRANSACTIONS_SINCE)
    # A newer epoch than the member ever had. For a static member that is away, at -2, any epoch is (OC-25).
    if epoch > member.epoch:
        raise EpochRefused(refusal)
    return member, refusal


def stale(member: AnyMember, *, generations: bool = False) -> ErrorCode:
    """Return the error for a mismatched epoch: as a generation where no other fits."""
    if member.is_classic or generations:
        return ErrorCode.ILLEGAL_GENERATION
    return ErrorCode.STALE_MEMBER_EPOCH


def refuse_fetch(group: AnyGroup, member_id: str | None, epoch: int) -> None:
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
