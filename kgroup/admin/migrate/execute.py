"""Execute a migration where the cluster allows: empty groups convert by one join and leave.

Any broker converts an empty group for a first member of the other protocol, whatever its migration policy.
Offsets are kept by group id, so they stay; they are read before and after to prove it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, TypeVar

from kgroup.admin.discovery import Answers, ClusterView
from kgroup.admin.migrate.models import UPGRADE, Evidence, MigrationPlan, target_of
from kgroup.admin.models import CLASSIC, CONSUMER, EMPTY, RANGE, Committed, GroupDescription
from kgroup.admin.read.describe import one_group
from kgroup.admin.read.offsets import committed
from kgroup.admin.refusals import check, refused
from kgroup.admin.shell import command
from kgroup.domain import TopicPartition, count_of, uuid_text
from kgroup.errors import ErrorCode, KgroupError, SafetyRefused
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kgroup.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from kgroup.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from kgroup.protocol.subscription import Subscription
from kgroup.security.rights import READ, on_group

JOIN_EPOCH, LEAVE_EPOCH = 0, -1
TIMEOUT_MS = 45_000
NO_MEMBER_ID_UNTIL = 3
"""From version 4 on the first join only returns a member id and is repeated (KIP-394)."""
LEAVE_NAMES_MEMBERS_SINCE = 3
R = TypeVar("R", bound=Message)
REASON = "offline conversion of an empty group with kgroup"


@dataclass(frozen=True, slots=True)
class MovedOffset:
    """A committed offset that differs from the one before; None where nothing is committed."""

    topic: str
    partition: int
    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True)
class Conversion:
    """A finished offline conversion: the type and state after it, and the offsets that changed."""

    group_id: str
    type: str
    state: str
    offsets: int
    offsets_changed: tuple[MovedOffset, ...]
    journal_id: str


@dataclass(frozen=True, slots=True)
class RollStep:
    """One instance to restart with the other protocol; `is_leader` is None where unknown."""

    member_id: str
    instance_id: str | None
    client_id: str | None
    host: str | None
    is_leader: Annotated[bool | None, "null: not known"]


def roll_order(gathered: Evidence, direction: str) -> tuple[RollStep, ...]:
    """Return the restarts in order: static members first, by host; the group's leader last.

    A static successor takes over without a rebalance, so it converts the group at once. The leader is last,
    as each change of leader costs a classic group a full rebalance.
    """
    done = CONSUMER if direction == UPGRADE else CLASSIC
    leader = gathered.logged.leader if gathered.logged is not None else None
    steps = [
        RollStep(m.member_id, m.instance_id, m.client_id, m.host, m.member_id == leader if leader else None)
        for m in gathered.group.known_members
        if m.protocol != done
    ]
    return tuple(
        sorted(
            steps,
            key=lambda s: (
                bool(s.is_leader),
                s.instance_id is None,
                s.host or "",
                s.instance_id or s.client_id or "",
            ),
        )
    )


def convert_empty(cluster: ClusterView, plan: MigrationPlan) -> Conversion:
    """Convert an empty group to the other protocol; its journal entry holds the offsets before.

    Raise SafetyRefused when the group is not empty (any more), BrokerRefused when the broker refuses. The
    joiner has a member id of its own, subscribes to nothing and leaves at once.
    """
    group_id, direction = plan.group_id, plan.direction
    before = before_conversion(cluster, group_id, direction)
    name, image = f"{direction} execute", {"offsets": listed(before)}
    with cluster.change(name, asdict(plan), image) as entry:
        group, changed = convert(cluster, group_id, direction, before)
        entry.results.append(converted(changed))
    return Conversion(group_id, group.type, group.state, len(before), changed, entry.id)


def before_conversion(cluster: ClusterView, group_id: str, direction: str) -> Committed:
    """Return the offsets of a convertible group; raise SafetyRefused when it is not empty (any more)."""
    group = one_group(cluster, group_id)
    if group.type == target_of(direction):
        raise SafetyRefused(f"{group.group_id} is a {group.type} group already")
    if group.state != EMPTY or group.known_members:
        members = "members unknown" if group.members is None else count_of(len(group.members), "member")
        raise SafetyRefused(
            f"{group.group_id} is {group.state}, {members}: only empty groups convert",
            f"roll its clients: {command(f'{direction} execute', group.group_id)}",
        )
    return _offsets(cluster, group_id)


def convert(
    cluster: ClusterView, group_id: str, direction: str, before: Committed
) -> tuple[GroupDescription, tuple[MovedOffset, ...]]:
    """Convert an empty group, within a journal entry; return it and what differs from `before`."""
    needs = [on_group(READ, group_id)]
    if direction == UPGRADE:
        member_id = uuid_text(os.urandom(16))
        joined = _heartbeat(cluster, group_id, member_id, JOIN_EPOCH)
        check(joined.error_code, f"joining {group_id}", joined.error_message, needs)
        left = _heartbeat(cluster, group_id, member_id, LEAVE_EPOCH)
        if left.error_code != ErrorCode.UNKNOWN_MEMBER_ID:
            check(left.error_code, f"leaving {group_id}", left.error_message, needs)
    else:
        join = JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=TIMEOUT_MS,
            rebalance_timeout_ms=TIMEOUT_MS,
            member_id="",
            protocol_type=CONSUMER,
            protocols=(JoinGroupRequestProtocol(name=RANGE, metadata=Subscription(()).encode(1)),),
        )
        answer = _ask(cluster, group_id, join, JoinGroupResponse, (0, NO_MEMBER_ID_UNTIL))
        check(answer.error_code, f"joining {group_id}", needs=needs)
        identity = MemberIdentity(member_id=answer.member_id, reason=REASON)
        leave = LeaveGroupRequest(group_id=group_id, members=(identity,))
        gone = _ask(cluster, group_id, leave, LeaveGroupResponse, (LEAVE_NAMES_MEMBERS_SINCE, None))
        code = gone.error_code or gone.members[0].error_code
        if code != ErrorCode.UNKNOWN_MEMBER_ID:
            check(code, f"leaving {group_id}", needs=needs)
    after = _offsets(cluster, group_id)
    group = one_group(cluster, group_id)
    if group.type != target_of(direction):
        raise refused(ErrorCode.UNKNOWN_SERVER_ERROR, group_id, f"it is still a {group.type} group")
    return group, changes(before, after)


def listed(offsets: Committed) -> list[list[object]]:
    """Return offsets in the journal's form."""
    return [[p.topic, p.partition, o.offset, o.leader_epoch, o.metadata] for p, o in sorted(offsets.items())]


def converted(changed: Iterable[MovedOffset]) -> dict[str, object]:
    """Return the result of a conversion in the journal's form."""
    return {"result": "converted", "offsets_changed": [asdict(moved) for moved in changed]}


def changes(before: Committed, after: Committed) -> tuple[MovedOffset, ...]:
    """Return the partitions with another committed offset, metadata or leader epoch than before."""
    partitions: Mapping[TopicPartition, object] = {**before, **after}
    return tuple(
        MovedOffset(
            partition.topic,
            partition.partition,
            before[partition].offset if partition in before else None,
            after[partition].offset if partition in after else None,
        )
        for partition in sorted(partitions)
        if before.get(partition) != after.get(partition)
    )


def _offsets(cluster: ClusterView, group_id: str) -> Committed:
    offsets = committed(cluster, [group_id])[group_id]
    if isinstance(offsets, KgroupError):
        raise offsets
    return offsets.by_place


def _heartbeat(
    cluster: ClusterView, group_id: str, member_id: str, epoch: int
) -> ConsumerGroupHeartbeatResponse:
    joins = epoch == JOIN_EPOCH
    request = ConsumerGroupHeartbeatRequest(
        group_id=group_id,
        member_id=member_id,
        member_epoch=epoch,
        rebalance_timeout_ms=TIMEOUT_MS if joins else -1,
        subscribed_topic_names=() if joins else None,
        topic_partitions=() if joins else None,
    )
    return _ask(cluster, group_id, request, ConsumerGroupHeartbeatResponse)


def _ask(
    cluster: ClusterView,
    group_id: str,
    request: ConsumerGroupHeartbeatRequest | JoinGroupRequest | LeaveGroupRequest,
    response: type[R],
    versions: tuple[int, int | None] = (0, None),
) -> R:
    """Return the coordinator's answer; retry while the coordinator moves or loads.

    A join that may have been received is not retried: sent twice, it creates two members.
    """

    def ask(node: int, groups: object, left_s: float) -> Answers[R]:
        answer = cluster.ask(node, request, response, versions=versions, timeout_s=left_s)
        code = getattr(answer, "error_code", 0)
        if code in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS):
            return {group_id: refused(code, f"group {group_id}")}
        return {group_id: answer}

    idempotent = not isinstance(request, JoinGroupRequest)
    answer = cluster.ask_coordinators([group_id], ask, idempotent=idempotent)[group_id]
    if isinstance(answer, KgroupError):
        raise answer
    return answer
