"""What must hold after every event, whatever happened before. `docs/simulation.md` lists the exceptions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kgroup.coordinator.classic.group import ClassicGroup
from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.consumer.member import LEFT_EPOCH, MemberState
from kgroup.coordinator.coordinator import Coordinator
from kgroup.coordinator.outcome import Record, Reply
from kgroup.coordinator.share.group import ShareGroup
from kgroup.coordinator.state import Group
from kgroup.coordinator.streams.group import StreamsGroup
from kgroup.coordinator.streams.member import MemberState as StreamsMemberState
from kgroup.domain import TopicImage, TopicPartition
from kgroup.log.memory import MemoryLog
from kgroup.protocol import group_records as r
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgroup.protocol.messages.delete_groups import DeleteGroupsRequest
from kgroup.protocol.messages.heartbeat import HeartbeatRequest
from kgroup.protocol.messages.offset_commit import OffsetCommitRequest
from kgroup.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from kgroup.protocol.messages.sync_group import SyncGroupRequest
from kgroup.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from kgroup.protocol.streams_records import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMetadataKey,
    StreamsGroupTargetAssignmentMetadataKey,
)
from kgroup.simulation.checks import fencing, tasks
from kgroup.simulation.checks.commits import CommitAudit
from kgroup.simulation.checks.hard_state import difference, group_difference
from kgroup.simulation.checks.violation import Violation
from kgroup.simulation.world.brokers import Partition, Watcher
from kgroup.simulation.world.process import Process
from kgroup.simulation.world.world import World


@dataclass(slots=True)
class Follower:
    """A second coordinator of a partition that only reads the log."""

    coordinator: Coordinator
    next_offset: int = 0
    verified: dict[str, tuple[object, ...]] = field(default_factory=dict)
    revoking: dict[tuple[str, str], int] = field(default_factory=dict)
    live: Coordinator | None = None

    def group(self, group_id: str) -> Group | None:
        return self.coordinator.state.groups.get(group_id)


class Auditor(Watcher):
    """Follows every log, and compares it with what shards do and members believe. Raises `Violation`."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._followers: dict[int, Follower] = {}
        self._commits = CommitAudit(world)
        self._epochs: dict[str, tuple[int, int]] = {}
        self._loads: dict[str, list[tuple[int, int]]] = {}

    @property
    def _image(self) -> TopicImage:
        return self._world.image

    def follower(self, partition: Partition) -> Follower:
        """Return the partition's follower, as far as it has read."""
        follower = self._followers.get(partition.number)
        if follower is None:
            coordinator = Coordinator(self._world.config, "follower", self._image)
            follower = self._followers[partition.number] = Follower(coordinator)
        return follower

    def loaded(self, partition: Partition) -> None:
        """See `brokers.Watcher`: the loaded state is the served one, with every acknowledged commit."""
        self._follow(partition)
        assert partition.shard is not None
        self.equal(partition)
        for group_id, group in self.follower(partition).coordinator.state.groups.items():
            if isinstance(group, ClassicGroup):
                load = self._world.schedule.steps, group.committed.generation
                self._loads.setdefault(group_id, []).append(load)

    def equal(self, partition: Partition) -> None:
        """Check that the shard's whole state is what its log says."""
        assert partition.shard is not None
        follower = self.follower(partition)
        unlike = difference(partition.shard.coordinator, follower.coordinator)
        if unlike is not None:
            raise Violation("reload equals live", unlike)
        self._commits.nothing_lost(follower.coordinator)

    def stepped(self, partition: Partition, request: Message | None, replies: list[Reply]) -> None:
        """See `brokers.Watcher`: the sender was allowed the request, and its effects are in the log."""
        follower = self.follower(partition)
        own: Any = replies[0].response if replies and request is not None else None
        accepted = not getattr(own, "error_code", True)
        if (
            isinstance(request, ConsumerGroupHeartbeatRequest | StreamsGroupHeartbeatRequest)
            and accepted
            and not fencing.may_report(follower.group(request.group_id), request)
        ):
            raise Violation(
                "only members at their epoch act",
                f"heartbeat of {request.member_id} at epoch {request.member_epoch} was accepted",
            )
        touched: set[str] = set()
        if partition.log.end_offset > follower.next_offset:
            touched = self._follow(partition, request)
        assert partition.shard is not None
        live = partition.shard.coordinator
        if live is not follower.live and partition.leader is not None:
            # A shard whose append failed has loaded its log again, and given all members new deadlines.
            follower.live, partition.loaded_ms = live, self._world.brokers.now_ms(partition.leader)
        group_id = getattr(request, "group_id", None)
        if group_id is not None:
            touched.add(group_id)
        for name in sorted(touched):
            self._same(follower, live, name)
        match request:
            case OffsetCommitRequest():
                self._commits.answered(live, follower.coordinator, request, replies)
            case TxnOffsetCommitRequest():
                self._commits.answered_in_transaction(live, request, own)
            case HeartbeatRequest() | SyncGroupRequest() if accepted and not fencing.may_beat(
                live.state.groups.get(request.group_id), request
            ):
                raise Violation(
                    "only members at their epoch act",
                    f"{type(request).__name__} of {request.member_id} at {request.generation_id} "
                    "was accepted",
                )
            case DeleteGroupsRequest():
                self._deleted(live, follower, own)

    def owners_changed(self, process: Process) -> None:
        """Check what a process believes to own now."""
        member = process.member
        if member is None or not process.holding:
            return
        partition = self._world.brokers.partition_of(member.group_id)
        group = self.follower(partition).group(member.group_id)
        # A member at its epoch, or one answer behind, holds only what it may.
        if isinstance(group, ConsumerGroup | StreamsGroup) and _is_current(process, group):
            may_have = fencing.readable(group, member.member_id, self._image)
            beyond = {p for p in process.holding - may_have.keys() if p.topic in self._image.by_name}
            if beyond:
                raise Violation(
                    "one owner at a time",
                    f"{process.name} ({member.member_id}) holds {sorted(map(str, beyond))} "
                    "beyond its assignment",
                )
        self._disjoint(member.group_id, group)

    def _follow(self, partition: Partition, request: Message | None = None) -> set[str]:
        """Read on in the log; return the groups of the records."""
        follower = self.follower(partition)
        touched: set[str] = set()
        targets: set[str] = set()
        log: MemoryLog = partition.log
        for batch in log.batches(follower.next_offset):
            left: set[str] = set()
            marker = batch.end_marker
            if marker is not None:
                follower.coordinator.end_transaction(batch.producer_id, committed=marker.committed)
                self._commits.ended(batch.producer_id, marker.committed, follower.coordinator)
                follower.next_offset = batch.last_offset + 1
                continue
            producer_id = batch.producer_id if batch.transactional else -1
            for stored in batch.records:
                key = r.decode_key(stored.key or b"")
                assert not isinstance(key, r.UnknownKey)
                record = Record(key, r.decode_value(key, stored.value))
                self._before(follower, record, left)
                try:
                    follower.coordinator.replay(record, stored.offset, producer_id)
                except Exception as error:
                    raise Violation("the log can be read", f"{error} at offset {stored.offset}") from error
                group = follower.group(key.group) if isinstance(key, r.OffsetCommitKey) else None
                self._commits.logged(record, request, group, stored.offset, producer_id)
                self._note_revoking(follower, record, batch.max_timestamp)
                if not isinstance(key, r.OffsetCommitKey):
                    touched.add(str(getattr(key, "group_id", None) or getattr(key, "group", "")))
                if isinstance(key, StreamsGroupTargetAssignmentMetadataKey) and record.value is not None:
                    targets.add(key.group_id)
            follower.next_offset = batch.last_offset + 1
        for group_id in sorted(touched):
            follower.verified.pop(group_id, None)
            self._epochs_grow(follower, group_id)
            group = follower.group(group_id)
            if isinstance(group, StreamsGroup):
                tasks.held_once(group)
                if group_id in targets:
                    tasks.covered(group, self._world.images)
        return touched

    def _before(self, follower: Follower, record: Record, left: set[str]) -> None:
        """Check a record that removes or sets back something against the state before.

        `left` are the groups that members left in this batch. An empty group may be deleted, or replaced by
        one of the other protocol that starts from the beginning.
        """
        key = record.key
        value: Any = record.value
        match key:
            case r.ConsumerGroupCurrentMemberAssignmentKey() | StreamsGroupCurrentMemberAssignmentKey() if (
                value is not None
            ):
                group = follower.group(key.group_id)
                if not isinstance(group, ConsumerGroup | StreamsGroup):
                    return
                member = group.members.get(key.member_id)
                if member is not None and member.epoch > value.member_epoch != LEFT_EPOCH:
                    raise Violation(
                        "epochs never go back",
                        f"member {key.member_id} of {key.group_id} from {member.epoch} "
                        f"to {value.member_epoch}",
                    )
            case r.ConsumerGroupMemberMetadataKey() | StreamsGroupMemberMetadataKey() if value is None:
                left.add(key.group_id)
            case r.ConsumerGroupMetadataKey() | StreamsGroupMetadataKey() if (
                value is None and key.group_id not in left
            ):
                self._epochs.pop(key.group_id, None)
            case r.GroupMetadataKey() if value is None:
                group = follower.group(key.group)
                if isinstance(group, ClassicGroup) and not group.committed.members:
                    self._epochs.pop(key.group, None)

    def _note_revoking(self, follower: Follower, record: Record, now_ms: int) -> None:
        key, value = record.key, record.value
        if isinstance(key, StreamsGroupCurrentMemberAssignmentKey):
            where = (key.group_id, key.member_id)
            if getattr(value, "state", None) == StreamsMemberState.UNREVOKED_TASKS:
                follower.revoking[where] = now_ms
            else:
                follower.revoking.pop(where, None)
            return
        if not isinstance(key, r.ConsumerGroupCurrentMemberAssignmentKey):
            return
        where = (key.group_id, key.member_id)
        group = follower.group(key.group_id)
        member = group.members.get(key.member_id) if isinstance(group, ConsumerGroup) else None
        # A static member that left for now keeps its state, but has nothing more to give up.
        revokes = (
            isinstance(value, r.ConsumerGroupCurrentMemberAssignmentValue)
            and value.state == MemberState.UNREVOKED_PARTITIONS
            and bool(value.partitions_pending_revocation)
        )
        if member is not None and revokes and not getattr(member, "is_classic", True):
            follower.revoking[where] = now_ms
        else:
            follower.revoking.pop(where, None)

    def _epochs_grow(self, follower: Follower, group_id: str) -> None:
        group = follower.group(group_id)
        if group is None:
            return
        now = (
            (group.committed.generation, 0)
            if isinstance(group, ClassicGroup)
            else (group.epoch, group.assignment_epoch)
        )
        before = self._epochs.get(group_id, (-1, -1))
        if now[0] < before[0] or (now[1] and now[1] < before[1]):
            raise Violation("epochs never go back", f"group {group_id} from {before} to {now}")
        self._epochs[group_id] = now

    def _same(self, follower: Follower, live: Coordinator, group_id: str) -> None:
        """Check that the group as served is the group as logged, each state once."""
        group = live.state.groups.get(group_id)
        mark: tuple[object, ...] = ()
        if isinstance(group, ConsumerGroup):
            # Stays equal only for an unchanged group: members are immutable.
            mark = (
                group.epoch,
                group.assignment_epoch,
                group.assignment_timestamp_ms,
                group.metadata_hash,
                *group.members.values(),
            )
            if follower.verified.get(group_id) == mark:
                return
        unlike = group_difference(group, follower.group(group_id))
        if unlike is not None:
            raise Violation("reload equals live", f"group {group_id}: {unlike}")
        if mark:
            follower.verified[group_id] = mark

    def fired(self, partition: Partition) -> None:
        """See `brokers.Watcher`: no member may exceed its rebalance timeout to give partitions up."""
        assert partition.leader is not None
        follower = self.follower(partition)
        now_ms = self._world.brokers.now_ms(partition.leader)
        for (group_id, member_id), since in follower.revoking.items():
            group = follower.group(group_id)
            assert isinstance(group, ConsumerGroup | StreamsGroup)
            limit = group.members[member_id].metadata.rebalance_timeout_ms
            if now_ms > max(since, partition.loaded_ms) + limit:
                raise Violation("revocation is limited", f"{member_id} of {group_id} since {since}")

    def _deleted(self, live: Coordinator, follower: Follower, response: Any) -> None:
        for result in response.results:
            if result.error_code:
                continue
            for coordinator in (live, follower.coordinator):
                left = result.group_id in coordinator.state.groups
                if left or result.group_id in set(coordinator.state.offsets.groups()):
                    raise Violation("what is deleted is gone", f"group {result.group_id}")

    def _disjoint(self, group_id: str, group: Group | None) -> None:
        """Check that no two members at the group's epoch hold the same partition.

        Removed members, and classic ones of an older generation, do not know yet that they own nothing: they
        are harmless because they cannot commit. Nor do those of a generation that was lost, although its
        number may be used again.
        """
        held: dict[TopicPartition, str] = {}
        for process in self._world.processes.get(group_id, ()):
            if not process.holding or not _is_current(process, group):
                continue
            if isinstance(group, ClassicGroup) and self._is_of_lost_generation(process, group_id):
                continue
            for partition in process.holding:
                other = held.setdefault(partition, process.name)
                if other != process.name:
                    raise Violation(
                        "one owner at a time", f"{partition} of {group_id}: {other} and {process.name}"
                    )

    def _is_of_lost_generation(self, process: Process, group_id: str) -> bool:
        """Return whether a broker admitted the process to a generation without a record, then failed.

        Kafka too writes a generation when its leader has synced (`GroupMetadataManager`: the record is made
        in SyncGroup, the number grows when the joins are answered): a broker that loads the log continues
        from the generation before, and uses the number again.
        """
        generation = process.epoch
        return any(
            process.joined_step < step and committed < generation
            for step, committed in self._loads.get(group_id, ())
        )


def _is_current(process: Process, group: Group | None) -> bool:
    """Return whether the process is a member of the group as committed, and at its epoch."""
    member = process.member
    if member is None or group is None:
        return False
    if isinstance(group, ShareGroup):
        return False  # no process here reads in one
    if isinstance(group, ConsumerGroup | StreamsGroup):
        known = group.members.get(member.member_id)
        return known is not None and process.epoch in (known.epoch, known.current.previous_epoch)
    return process.epoch == group.committed.generation and any(
        stored.member_id == member.member_id for stored in group.committed.members
    )
