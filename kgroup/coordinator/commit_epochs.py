"""What the checks of a commit's epoch have in common, for every type of group (KIP-848, KIP-1251)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from kgroup.coordinator.metrics import Counters
from kgroup.domain import NO_EPOCH
from kgroup.errors import Refused

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


def names_no_member(
    epoch: int, member_id: str, instance_id: str | None, *, group_is_empty: bool, transactional: bool
) -> bool:
    """Return whether the committer names no member, and need not be one."""
    # No member: an admin resets offsets, or a tool imports them (AE-29).
    if epoch < 0 and group_is_empty:
        return True
    # A producer before KIP-447 names no member; its transactional id fences it.
    return transactional and epoch == NO_EPOCH and not member_id and instance_id is None
