"""Invariants of commits: who may commit, that commits stay, that they never go back."""

from __future__ import annotations

from kgroup.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kgroup.coordinator.classic.group import ClassicGroup
from kgroup.coordinator.coordinator import Coordinator
from kgroup.coordinator.outcome import Record, Reply
from kgroup.coordinator.state import Group
from kgroup.domain import TopicPartition
from kgroup.errors import ErrorCode
from kgroup.protocol import group_records as r
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.delete_groups import DeleteGroupsRequest
from kgroup.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kgroup.protocol.messages.offset_delete import OffsetDeleteRequest
from kgroup.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from kgroup.protocol.subscription import Assignment
from kgroup.simulation.checks import fencing
from kgroup.simulation.checks.violation import Violation
from kgroup.simulation.world.world import World

Where = tuple[str, str, int]
"""Group, topic and partition."""


class CommitAudit:
    """Keeps every acknowledged commit, and every commit in the log. Raises `Violation`."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._acknowledged: dict[Where, int] = {}
        self._committed: dict[Where, int] = {}
        self._committed_at: dict[Where, int] = {}
        self._set_by_admin: set[Where] = set()
        self._held: dict[int, dict[Where, tuple[int, int]]] = {}

    def logged(
        self, record: Record, request: Message | None, group: Group | None, at: int, producer_id: int
    ) -> None:
        """Check an appended record: a member's commit never goes back; only operators remove one.

        `request` caused the record; `group` is the group as the log before it has it. A record with a
        producer (not -1) counts once its transaction has `ended`. `at` is the record's offset.
        """
        by_admin = is_by_admin(request)
        key, value = record.key, record.value
        if not isinstance(key, r.OffsetCommitKey):
            return
        where = (key.group, key.topic, key.partition)
        before = self._committed.get(where, -1)
        if value is None:
            if key.topic in self._world.image.by_name and not by_admin:
                raise Violation("acknowledged commits stay", f"{where} removed, was {before}")
            self._committed.pop(where, None)
            self._acknowledged.pop(where, None)
            for held in self._held.values():
                held.pop(where, None)
            return
        assert isinstance(value, r.OffsetCommitValue)
        if producer_id >= 0:
            self._held.setdefault(producer_id, {})[where] = value.offset, at
            return
        self._committed_at[where] = at
        if by_admin:
            self._set_by_admin.add(where)
        if _is_given_away(request, group, TopicPartition(key.topic, key.partition)):
            return
        if value.offset < before and not by_admin:
            raise Violation("commits never go back", f"{where} from {before} to {value.offset}")
        self._committed[where] = value.offset

    def ended(self, producer_id: int, committed: bool, follower: Coordinator) -> None:
        """Note an appended marker: committed offsets become visible, aborted ones never do.

        A transaction's commit begins where the previous one ended: nothing is copied twice or skipped, unless
        an operator has set the offset meanwhile.
        """
        transaction = self._world.transactions.of(producer_id)
        for where, (offset, at) in self._held.pop(producer_id, {}).items():
            before = self._committed.get(where)
            if committed and (before is None or self._committed_at[where] < at):
                copied = None
                if transaction is not None:
                    copied = transaction.copied.get(TopicPartition(where[1], where[2]))
                if copied is None:
                    raise Violation("exactly once", f"{where} is held by a transaction that did not copy it")
                if before not in (None, copied[0]) and where not in self._set_by_admin:
                    raise Violation(
                        "exactly once", f"{where} from {copied[0]} to {copied[1]}, after {before}"
                    )
                self._set_by_admin.discard(where)
                self._committed[where] = self._acknowledged[where] = offset
                self._committed_at[where] = at
            stored = follower.state.offsets.get(*where)
            shown = None if stored is None else stored.offset
            if shown != self._committed.get(where):
                raise Violation(
                    "a transaction's offsets show once it commits",
                    f"{where}: {shown}, not {self._committed.get(where)}; committed: {committed}",
                )

    def answered_in_transaction(
        self, live: Coordinator, request: TxnOffsetCommitRequest, response: Message | None
    ) -> None:
        """Check the answer to a commit in a transaction: only members at their epoch are accepted."""
        if not isinstance(response, TxnOffsetCommitResponse):
            return
        codes = {part.error_code for topic in response.topics for part in topic.partitions}
        group = live.state.groups.get(request.group_id)
        allowed = fencing.may_commit_in_transaction(group, request, self._world.image)
        if ErrorCode.NONE in codes and not allowed:
            raise Violation("a fenced member never commits", f"{request}")
        if allowed and fencing.FENCES & codes:
            raise Violation("a member at its epoch may commit", f"{request}: {sorted(codes)}")

    def nothing_lost(self, follower: Coordinator) -> None:
        """Check that every acknowledged commit is there."""
        offsets = follower.state.offsets
        known = set(offsets.groups())
        for (group_id, topic, number), offset in self._acknowledged.items():
            stored = offsets.get(group_id, topic, number) if group_id in known else None
            if group_id in follower.state.groups and (stored is None or stored.offset != offset):
                raise Violation(
                    "acknowledged commits stay", f"{group_id} {topic}-{number}: {offset}, now {stored}"
                )

    def answered(
        self, live: Coordinator, follower: Coordinator, request: OffsetCommitRequest, replies: list[Reply]
    ) -> None:
        """Check the answer to a commit: accepted only from members at their epoch, and written before."""
        for reply in replies:
            response = reply.response
            if not isinstance(response, OffsetCommitResponse):
                continue
            taken = [(t.name, p) for t in response.topics for p in t.partitions if not p.error_code]
            codes = {p.error_code for t in response.topics for p in t.partitions}
            allowed = fencing.may_commit(live.state.groups.get(request.group_id), request, self._world.image)
            if taken and not allowed:
                raise Violation("a fenced member never commits", f"{request}")
            if allowed and fencing.FENCES & codes:
                raise Violation("a member at its epoch may commit", f"{request}: {sorted(codes)}")
            places = {(name, p.partition_index) for name, p in taken}
            for topic, part in ((t, p) for t in request.topics for p in t.partitions):
                if (topic.name, part.partition_index) not in places:
                    continue
                where = (request.group_id, topic.name, part.partition_index)
                for coordinator in (follower, live):
                    stored = coordinator.state.offsets.get(*where)
                    if stored is None or stored.offset != part.committed_offset:
                        raise Violation("acknowledged commits stay", f"{where}: {stored}")
                self._acknowledged[where] = part.committed_offset


def _is_given_away(request: Message | None, group: Group | None, partition: TopicPartition) -> bool:
    """Return whether a static member commits what its cooperative group gave to another member before.

    A member that misses a rebalance stays in the group with the subscription of its last join (KIP-345),
    which does not report what it was assigned since: the leader takes that as free, and the next owner reads
    on before this one, at its next join, gives the partition up and commits (KIP-429). Kafka accepts both
    commits.
    """
    if not isinstance(request, OffsetCommitRequest) or request.group_instance_id is None:
        return False
    if not isinstance(group, ClassicGroup) or group.committed.protocol != CooperativeStickyAssignor.name:
        return False
    return any(
        partition in Assignment.decode(member.assignment).partitions
        for member in group.committed.members
        if member.member_id != request.member_id and member.assignment
    )


def is_by_admin(request: Message | None) -> bool:
    """Return whether a request may set offsets back or remove them, as members never do."""
    if isinstance(request, OffsetCommitRequest):
        return request.generation_id_or_member_epoch < 0
    return isinstance(request, DeleteGroupsRequest | OffsetDeleteRequest)
