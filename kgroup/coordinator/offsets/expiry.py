"""Expiry of offsets: by retention, which differs by type and state of the group, and with their topic."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import TypeAlias

from kgroup.coordinator.classic.group import ClassicGroup
from kgroup.coordinator.classic.states import ClassicState
from kgroup.coordinator.groups import forget_group
from kgroup.coordinator.offset_store import StoredOffset
from kgroup.coordinator.offsets.delete import forget
from kgroup.coordinator.share.group import ShareGroup
from kgroup.coordinator.state import Group, Step
from kgroup.coordinator.timer_kinds import SWEEP
from kgroup.domain import NO_EXPIRY, ZERO_UUID, Topic
from kgroup.protocol.group_records import OffsetCommitKey
from kgroup.protocol.subscription import PROTOCOL_TYPE

MINUTE_MS = 60_000
BaseTime: TypeAlias = Callable[[StoredOffset], int]


def arm_sweep(step: Step) -> None:
    """Schedule the next sweep after offsets.retention.check.interval.ms."""
    step.arm(SWEEP, step.config.retention_check_interval_ms)


def sweep(step: Step) -> None:
    """Write tombstones for every offset past its retention, and for Empty groups that have none left."""
    for group in list(step.state.groups.values()):
        # It has no offsets here, and stays until it is deleted, as in Kafka.
        if isinstance(group, ShareGroup):
            continue
        if _expire(step, group) and group.is_empty:
            forget_group(step, group)
    arm_sweep(step)


def _expire(step: Step, group: Group) -> bool:
    """Expire what is due; return whether the group then has neither offsets nor open transactions."""
    offsets = step.state.offsets
    stored = offsets.of_group(group.group_id)
    base = _base_time(group)
    # A subscribed topic may be read at any time from now: its offsets stay (KIP-211). An offset that a
    # transaction is about to set stays too: its marker would restore it after it expired.
    left = 0
    subscribed: Container[str] = (group.subscribed_topics() or frozenset()) if base is not None else ()
    for topic, by_partition in stored.items():
        for partition, entry in by_partition.items():
            due = (
                base is not None
                and topic not in subscribed
                and not offsets.has_pending(group.group_id, topic, partition)
                and _is_due(step, entry, base)
            )
            if due and forget(step, group.group_id, topic, partition):
                step.state.counters.offset_expiration += 1
            else:
                left += 1
    # An open transaction still needs the group: its marker sets offsets in it.
    return left == 0 and not offsets.has_pending(group.group_id)


def _is_due(step: Step, stored: StoredOffset, base: BaseTime) -> bool:
    # A retention that the commit asked for (OffsetCommit versions 2 to 4; value version 1) replaces the
    # broker's and counts from the commit, whatever the group has been doing since.
    if stored.expire_timestamp != NO_EXPIRY:
        return step.now_ms >= stored.expire_timestamp
    return step.now_ms - base(stored) >= step.config.offsets_retention_minutes * MINUTE_MS


def _base_time(group: Group) -> BaseTime | None:
    """Return when an offset's retention begins; None while the group's offsets do not expire."""
    # Groups that only hold offsets never change their state. For consumer and streams groups Kafka ignores it
    # too, so that an emptied one may lose its offsets sooner than a classic one would.
    if not isinstance(group, ClassicGroup) or not group.protocol_type:
        return _commit_time
    # From when the last member left, not from its last commit: a topic read to its end has no more commits
    # (KIP-211).
    if group.is_empty:
        return _since_empty(group)
    # With members only unsubscribed topics may go, and only while those are known: a rebalance is about to
    # change them, and other types of protocol have their own subscriptions.
    stable = group.state is ClassicState.STABLE and group.protocol_type == PROTOCOL_TYPE
    return _commit_time if stable and group.subscribed_topics() is not None else None


def _commit_time(stored: StoredOffset) -> int:
    return stored.commit_timestamp


def _since_empty(group: ClassicGroup) -> BaseTime:
    # Records before value version 2 do not say when the state began.
    since = group.state_since_ms
    return _commit_time if since < 0 else lambda _: since


def topics_deleted(step: Step, deleted: Mapping[str, Topic]) -> None:
    """Write tombstones for all offsets of deleted topics, pending ones too; an offset of another id stays."""
    offsets = step.state.offsets
    for group_id in list(offsets.groups()):
        named: set[tuple[str, int]] = set()
        for topic, by_partition in offsets.of_group(group_id).items():
            gone = deleted.get(topic)
            if gone is not None:
                # Without an id, as in transactional commits, it is taken for the topic of that name.
                ids = (ZERO_UUID, gone.topic_id)
                named.update((topic, p) for p, entry in by_partition.items() if entry.topic_id in ids)
        named.update(p for p in offsets.pending_partitions(group_id) if p[0] in deleted)
        for topic, partition in sorted(named):
            step.write(OffsetCommitKey(group=group_id, topic=topic, partition=partition), None)
