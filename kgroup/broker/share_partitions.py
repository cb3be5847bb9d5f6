"""Partitions as share groups read them, on the brokers that lead them (KIP-932).

Kafka's SharePartitionManager is the source. A share partition is made when it is first fetched, from the
state that the share coordinator has. It is soft: one that the share coordinator fences, whose topic is gone,
or whose group has no session here any more is dropped, and made again from that state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from kgroup.broker.share_state import ShareState
from kgroup.broker.wakeups import Deadline, Wakeups
from kgroup.broker.watchers import Key, Watcher, Watchers
from kgroup.coordinator.config import BY_DURATION, GroupConfig
from kgroup.durations import iso_duration_ms
from kgroup.errors import ErrorCode, Refused
from kgroup.log.interface import Log
from kgroup.protocol.messages.read_share_group_state import PartitionOfLeader
from kgroup.protocol.messages.share_fetch import AcknowledgementBatch
from kgroup.protocol.messages.write_share_group_state import PartitionState
from kgroup.runtime.cluster import Cluster
from kgroup.share.acquire import Terms
from kgroup.share.coordinator import StateKey
from kgroup.share.partition import SharePartition, Stored, seen_by_members

_FENCED = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_STATE_EPOCH,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""Refusals that show an outdated share partition: it must be made again."""


@dataclass(slots=True)
class Led:
    """A share partition, the broker that leads it, and the timer of its locks."""

    share: SharePartition
    node: int
    deadline: Deadline | None = None


class SharePartitions:
    """The share partitions of all brokers of a cluster, and the fetches waiting for them."""

    def __init__(self, cluster: Cluster, state: ShareState, wakeups: Wakeups) -> None:
        self._cluster = cluster
        self._state = state
        self._wakeups = wakeups
        self._led: dict[StateKey, Led] = {}
        self._watchers = Watchers()

    def settings(self, group_id: str) -> GroupConfig:
        """Return the settings of a group that are in force now."""
        return self._cluster.in_force.of_group(group_id)

    def get(self, key: StateKey) -> SharePartition | None:
        """Return an existing share partition; None for one that was never fetched."""
        led = self._led.get(key)
        return None if led is None else led.share

    def of(self, key: StateKey, log: Log, node: int) -> SharePartition:
        """Return a share partition, made from its stored state if need be; Refused if there is none."""
        led = self._led.get(key)
        if led is not None and led.share.leader_epoch != log.leader_epoch:
            self.drop(key)  # another broker leads it now
            led = None
        settings = self.settings(key.group_id)
        terms = Terms(
            settings.share_lock_ms,
            settings.share_delivery_limit,
            settings.share_max_locks,
            may_renew=settings.share_may_renew,
        )
        if led is None:
            share = self._made(key, log, settings, terms)
            led = self._led[key] = Led(share, node)
        led.share.terms = terms
        if log.start_offset > led.share.flight.start:
            led.share.log_start_moved(log.start_offset)
        return led.share

    def acknowledge(self, key: StateKey, member: str, batches: Iterable[AcknowledgementBatch]) -> None:
        """Settle records as a member says, all or nothing; Refused gives the reason."""
        self._settle(key, lambda share, now_ms: share.acknowledge(member, batches, now_ms))

    def release(self, key: StateKey, member: str) -> None:
        """Make available what a member has acquired; Refused if that could not be stored."""
        self._settle(key, lambda share, now_ms: share.release(member, now_ms))

    def drop(self, key: StateKey) -> None:
        """Drop a share partition with its locks."""
        led = self._led.pop(key, None)
        if led is not None and led.deadline is not None:
            led.deadline.cancel()
        self.changed(key)

    def group_left(self, group_id: str, node: int) -> None:
        """Drop the share partitions of a group that has no session at a broker any more."""
        for key in [k for k, led in self._led.items() if k.group_id == group_id and led.node == node]:
            self.drop(key)

    def topics_changed(self) -> None:
        """Drop the share partitions of deleted topics."""
        by_id = self._cluster.catalog.image.by_id
        for key in [key for key in self._led if key.topic_id not in by_id]:
            self.drop(key)

    def watch(self, keys: Iterable[StateKey], callback: Watcher) -> None:
        """Call back when records of a share partition may have become available, or it is gone."""
        self._watchers.watch(map(_watched, keys), callback)

    def unwatch(self, keys: Iterable[StateKey], callback: Watcher) -> None:
        self._watchers.unwatch(map(_watched, keys), callback)

    def changed(self, key: StateKey) -> None:
        """Wake the fetches that wait for a share partition, and set the timer of its locks."""
        self.arm(key)
        if self._watchers:
            self._watchers.notify(_watched(key))

    def arm(self, key: StateKey) -> None:
        """Have the process end the share partition's next lock in time."""
        led = self._led.get(key)
        due = None if led is None else led.share.next_wake_ms()
        if led is None or due is None:
            return
        armed = led.deadline
        if armed is not None and armed.callback is not None and armed.ms <= due:
            return
        if armed is not None:
            armed.cancel()
        led.deadline = self._wakeups.at(due, partial(self._wake, key))

    def _wake(self, key: StateKey) -> None:
        led = self._led.get(key)
        if led is None:
            return
        led.deadline = None
        now_ms = self._cluster.clock.now_ms()
        available = False
        while (due := led.share.next_wake_ms()) is not None and due <= now_ms:
            available = led.share.wake(now_ms) or available
        if available:
            self.changed(key)
        else:
            self.arm(key)

    def _settle(self, key: StateKey, settle: Callable[[SharePartition, int], None]) -> None:
        led = self._led.get(key)
        if led is None:
            raise Refused(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
            )
        try:
            settle(led.share, self._cluster.clock.now_ms())
        except Refused as refused:
            if refused.code in _FENCED:
                self.drop(key)
            raise
        self.changed(key)

    def _made(self, key: StateKey, log: Log, settings: GroupConfig, terms: Terms) -> SharePartition:
        clock = self._cluster.clock
        asked = PartitionOfLeader(partition=key.partition, leader_epoch=log.leader_epoch)
        try:
            state = self._state.run(key, lambda c: c.read(key, asked, clock.now_ms()))
            start = state.start_offset
            if start < 0:
                # A new group begins where its setting share.auto.offset.reset says.
                start = log.end_offset
                if settings.share_reset == "earliest":
                    start = log.start_offset
                elif settings.share_reset.startswith(BY_DURATION):
                    ago_ms = iso_duration_ms(settings.share_reset.removeprefix(BY_DURATION)) or 0
                    begin = log.offset_for_timestamp(max(clock.now_ms() - ago_ms, 0))
                    start = log.end_offset if begin is None else begin[0]
            stored = Stored(state.state_epoch, start, state.state_batches)
            return SharePartition(key.partition, log.leader_epoch, stored, terms, partial(self._store, key))
        except Refused as refused:
            raise seen_by_members(refused) from None

    def _store(self, key: StateKey, change: PartitionState) -> None:
        now_ms = self._cluster.clock.now_ms()
        self._state.run(key, lambda coordinator: coordinator.write(key, change, now_ms))


def _watched(key: StateKey) -> Key:
    return f"{key.group_id}/{key.topic_id.hex()}", key.partition
