"""The share coordinator of one `__share_group_state` partition: the deliveries of its share groups
(KIP-932).

Requests are about one partition of one group each; the host takes apart those that name several. An operation
returns the record to append, if any, and the answer; `replay` alone changes state. Kafka's
ShareCoordinatorShard is the source.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias, TypeVar

from kgroup.domain import NO_OFFSET, TopicImage, uuid_text
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol import share_state_records as r
from kgroup.protocol.messages import initialize_share_group_state as initializing
from kgroup.protocol.messages import read_share_group_state as reading
from kgroup.protocol.messages import read_share_group_state_summary as summarizing
from kgroup.protocol.messages import write_share_group_state as writing
from kgroup.share.batches import combine

NOT_KNOWN = -1
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class ShareStateConfig:
    """The most updates after a snapshot; how long a partition may go without one, in ms."""

    updates_per_snapshot: int = 500
    cold_snapshot_ms: int = 300_000


class StateKey(NamedTuple):
    """A partition as one share group reads it."""

    group_id: str
    topic_id: bytes
    partition: int

    def __str__(self) -> str:
        """FindCoordinator's name for it."""
        return f"{self.group_id}:{uuid_text(self.topic_id)}:{self.partition}"

    @property
    def snapshot(self) -> r.ShareSnapshotKey:
        return r.ShareSnapshotKey(group_id=self.group_id, topic_id=self.topic_id, partition=self.partition)

    @property
    def update(self) -> r.ShareUpdateKey:
        return r.ShareUpdateKey(group_id=self.group_id, topic_id=self.topic_id, partition=self.partition)


class Record(NamedTuple):
    """One record of `__share_group_state`; a None value is a tombstone."""

    key: r.StateKey
    value: r.StateValue | None


Change: TypeAlias = tuple[Record | None, Result]
"""What to append, if anything, and the answer once that is done."""


class ShareCoordinator:
    """The state machine; an operation that is refused has decided nothing."""

    def __init__(self, config: ShareStateConfig, image: TopicImage) -> None:
        self.config = config
        self.image = image
        self.states: dict[StateKey, r.ShareSnapshotValue] = {}
        self.redundant_offset = NO_OFFSET
        """Records before it are not needed to load the state; NO_OFFSET while that is unknown."""
        self._leader_epochs: dict[StateKey, int] = {}
        self._state_epochs: dict[StateKey, int] = {}
        self._updates: dict[StateKey, int] = {}
        self._snapshots: dict[StateKey, int] = {}

    def replay(self, record: Record, offset: int) -> None:
        """Apply a record of the log."""
        key = StateKey(record.key.group_id, record.key.topic_id, record.key.partition)
        value = record.value
        if isinstance(record.key, r.ShareSnapshotKey):
            assert not isinstance(value, r.ShareUpdateValue)
            if value is None:
                for by_key in (self.states, self._leader_epochs, self._state_epochs, self._updates):
                    by_key.pop(key, None)
            else:
                self._leader_epochs[key] = max(self._leader_epochs.get(key, 0), value.leader_epoch)
                self._state_epochs[key] = max(self._state_epochs.get(key, 0), value.state_epoch)
                self.states[key] = value
                if self._updates.get(key, 0) >= self.config.updates_per_snapshot:
                    self._updates[key] = 0
            # Each partition's state begins at its newest snapshot; the oldest of these is needed.
            self._snapshots[key] = offset
            self.redundant_offset = min(self._snapshots.values()) or NO_OFFSET
            if value is None:
                del self._snapshots[key]
        elif value is not None:
            assert isinstance(value, r.ShareUpdateValue)
            self._leader_epochs[key] = max(self._leader_epochs.get(key, 0), value.leader_epoch)
            self._updates[key] = self._updates.get(key, 0) + 1
            known = self.states.get(key)
            if known is None:  # its snapshot is gone: the update has all that is known
                known = r.ShareSnapshotValue(
                    snapshot_epoch=value.snapshot_epoch,
                    state_epoch=0,
                    leader_epoch=value.leader_epoch,
                    start_offset=value.start_offset,
                    create_timestamp=0,
                    write_timestamp=0,
                )
            start = known.start_offset if value.start_offset == NO_OFFSET else value.start_offset
            self.states[key] = replace(
                known,
                leader_epoch=known.leader_epoch if value.leader_epoch == -1 else value.leader_epoch,
                start_offset=start,
                delivery_complete_count=value.delivery_complete_count,
                state_batches=combine((*known.state_batches, *value.state_batches), start),
            )

    def initialize(
        self, key: StateKey, asked: initializing.PartitionState, now_ms: int
    ) -> Change[initializing.PartitionResult]:
        """Start at an offset, or where the group's settings say (NO_OFFSET); drop all deliveries."""
        _refuse_negative(key, state_epoch=asked.state_epoch)
        if self._state_epochs.get(key, 0) > asked.state_epoch:
            raise _fenced_state()
        self._refuse_absent(key)
        known = self.states.get(key)
        value = r.ShareSnapshotValue(
            snapshot_epoch=0 if known is None else known.snapshot_epoch + 1,
            state_epoch=asked.state_epoch,
            leader_epoch=0,
            start_offset=asked.start_offset,
            delivery_complete_count=NOT_KNOWN if asked.start_offset == NO_OFFSET else 0,
            create_timestamp=now_ms,
            write_timestamp=now_ms,
        )
        return Record(key.snapshot, value), initializing.PartitionResult(partition=key.partition)

    def read(
        self, key: StateKey, asked: reading.PartitionOfLeader, now_ms: int
    ) -> Change[reading.PartitionResult]:
        """Return all of the state, for the leader of an epoch; it fences those of earlier epochs."""
        _refuse_negative(key, leader_epoch=asked.leader_epoch)
        known = self.states.get(key)
        if known is None:
            raise _invalid("Read operation on uninitialized share partition not allowed.")
        self._refuse_old_leader(key, asked.leader_epoch)
        self._refuse_absent(key)
        record = None
        if self._leader_epochs[key] != asked.leader_epoch:
            state = writing.PartitionState(
                leader_epoch=asked.leader_epoch,
                start_offset=known.start_offset,
                delivery_complete_count=known.delivery_complete_count,
            )
            record = self._changed(key, known, state, asked.leader_epoch, now_ms)
        return record, reading.PartitionResult(
            partition=key.partition,
            state_epoch=known.state_epoch,
            start_offset=known.start_offset,
            state_batches=known.state_batches,
        )

    def write(
        self, key: StateKey, asked: writing.PartitionState, now_ms: int
    ) -> Change[initializing.PartitionResult]:
        """Record what the leader of a partition reports as changed."""
        _refuse_negative(key, leader_epoch=asked.leader_epoch, state_epoch=asked.state_epoch)
        known = self.states.get(key)
        if known is None:
            raise _invalid("Write operation on uninitialized share partition not allowed.")
        self._refuse_old_leader(key, asked.leader_epoch)
        if self._state_epochs.get(key, 0) > asked.state_epoch:
            raise _fenced_state()
        self._refuse_absent(key)
        record = self._changed(key, known, asked, known.leader_epoch, now_ms)
        return record, initializing.PartitionResult(partition=key.partition)

    def delete(self, key: StateKey) -> Change[initializing.PartitionResult]:
        """Remove a partition; an unknown one is no error."""
        _refuse_negative(key)
        self._refuse_absent(key)
        record = Record(key.snapshot, None) if key in self.states else None
        return record, initializing.PartitionResult(partition=key.partition)

    def summary(self, key: StateKey) -> summarizing.PartitionResult:
        """Return where a partition stands; NO_OFFSET for an unknown one."""
        _refuse_negative(key)
        self._refuse_absent(key)
        known = self.states.get(key)
        if known is None:
            return summarizing.PartitionResult(partition=key.partition, start_offset=NO_OFFSET)
        return summarizing.PartitionResult(
            partition=key.partition,
            state_epoch=known.state_epoch,
            leader_epoch=known.leader_epoch,
            start_offset=known.start_offset,
            delivery_complete_count=known.delivery_complete_count,
        )

    def snapshot_cold(self, now_ms: int) -> list[Record]:
        """Return snapshots of partitions that had none for long, so that older records can go."""
        if all(state.create_timestamp != state.write_timestamp for state in self.states.values()):
            return []
        return [
            Record(
                key.snapshot,
                replace(state, snapshot_epoch=state.snapshot_epoch + 1, write_timestamp=now_ms),
            )
            for key, state in self.states.items()
            if now_ms - state.write_timestamp >= self.config.cold_snapshot_ms
        ]

    def topics_deleted(self, topic_ids: Collection[bytes]) -> list[Record]:
        """Return tombstones of all partitions of deleted topics."""
        return [Record(key.snapshot, None) for key in self.states if key.topic_id in topic_ids]

    def _changed(
        self,
        key: StateKey,
        known: r.ShareSnapshotValue,
        asked: writing.PartitionState,
        leader_epoch: int,
        now_ms: int,
    ) -> Record:
        """Return the record of a change: an update, or a snapshot when there have been many."""
        start = max(asked.start_offset, known.start_offset)
        complete = asked.delivery_complete_count
        if asked.start_offset == known.start_offset:
            complete = max(complete, known.delivery_complete_count)
        elif asked.start_offset < known.start_offset:
            complete = known.delivery_complete_count
        if self._updates.get(key, 0) < self.config.updates_per_snapshot:
            update = r.ShareUpdateValue(
                snapshot_epoch=known.snapshot_epoch,
                leader_epoch=leader_epoch,
                start_offset=start,
                delivery_complete_count=complete,
                state_batches=combine(asked.state_batches, start),
            )
            return Record(key.update, update)
        snapshot = r.ShareSnapshotValue(
            snapshot_epoch=known.snapshot_epoch + 1,
            state_epoch=known.state_epoch,
            leader_epoch=leader_epoch,
            start_offset=start,
            delivery_complete_count=complete,
            create_timestamp=now_ms,
            write_timestamp=now_ms,
            state_batches=combine((*known.state_batches, *asked.state_batches), start),
        )
        return Record(key.snapshot, snapshot)

    def _refuse_old_leader(self, key: StateKey, leader_epoch: int) -> None:
        if self._leader_epochs.get(key, 0) > leader_epoch:
            raise Refused(
                ErrorCode.FENCED_LEADER_EPOCH,
                "The leader epoch in the request is older than the epoch on the broker.",
            )

    def _refuse_absent(self, key: StateKey) -> None:
        topic = self.image.by_id.get(key.topic_id)
        if topic is None or key.partition >= topic.partitions:
            raise Refused(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
            )


def _invalid(message: str) -> Refused:
    return Refused(ErrorCode.INVALID_REQUEST, message)


def _fenced_state() -> Refused:
    return Refused(
        ErrorCode.FENCED_STATE_EPOCH,
        "The coordinator rejected the request because the state epoch did not match.",
    )


def _refuse_negative(key: StateKey, *, leader_epoch: int = 0, state_epoch: int = 0) -> None:
    for what, number in (
        ("partition id", key.partition),
        ("leader epoch", leader_epoch),
        ("state epoch", state_epoch),
    ):
        if number < 0:
            raise _invalid(f"The {what} cannot be a negative number.")
