"""What a coordinator tells of a group to who operates it: how it stands, and its members (decision 34)."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from kgroup.zookeeper.coordinator.registries import Group, RegisteredConsumer, Stage, has_let_go
from kgroup.zookeeper.wire.messages import (
    DescribeGroupRequest,
    DescribeGroupResponse,
    ErrorMapping,
    Registered,
)

if TYPE_CHECKING:
    from kgroup.zookeeper.coordinator.term import Term

STABLE, REBALANCING, FAILED = "Stable", "Rebalancing", "Failed"
RECOVERING, LEAVING, EMPTY = "Recovering", "Leaving", "Empty"
PAGE_BYTES = 256 * 1024
"""No answer is much longer: who asks is not to be taken for one that does not read."""
MEMBER_BYTES = 18


def describe(term: Term | None, request: DescribeGroupRequest) -> DescribeGroupResponse:
    """The answer of a broker, NOT_COORDINATOR of one that does not coordinate (`term` None)."""
    if term is None:
        return DescribeGroupResponse(ErrorMapping.NOT_COORDINATOR, "", False, ())
    group = term.groups.get(request.group_id)
    if group is None:
        # Soon after an election its consumers may be on their way.
        state = EMPTY if term.core.now_ms >= term.recovery.all_known_ms() else RECOVERING
        return DescribeGroupResponse(ErrorMapping.NONE, state, False, ())
    names = sorted(group.members)
    page: list[Registered] = []
    size = 0
    at = bisect_right(names, request.after)
    while at < len(names) and size < PAGE_BYTES:
        page.append(_registered(group.members[names[at]]))
        size += MEMBER_BYTES + len(names[at].encode()) + len(page[-1].topic_count.encode())
        at += 1
    state = state_of(group, term.core.now_ms)
    return DescribeGroupResponse(ErrorMapping.NONE, state, at < len(names), tuple(page))


def state_of(group: Group, now_ms: int) -> str:
    """How a group stands: Stable only where every member has confirmed what it fetches.

    Empty only where nobody delivers any more and all that was reported is written; until then Leaving.
    """
    if group.stage is not Stage.NORMAL:
        return RECOVERING
    if not group.members:
        delivers = any(not has_let_go(member, now_ms) for member in group.departed.values())
        return LEAVING if delivers or group.changed or group.jobs else EMPTY
    if group.run is not None or group.rebalance_initiated:
        return REBALANCING
    if group.given_up:
        return FAILED
    return STABLE if all(member.started for member in group.members.values()) else REBALANCING


def _registered(member: RegisteredConsumer) -> Registered:
    asked = member.registration
    return Registered(
        member.consumer_id,
        asked.topic_count,
        asked.auto_commit,
        member.started,
        asked.session_timeout_ms,
        member.failed,
        len(member.holds),
    )
