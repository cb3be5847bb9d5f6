"""A static member that rejoins without its member id takes its old place over (KIP-345, KIP-814)."""

from __future__ import annotations

from kgroup.coordinator.classic.answers import joined
from kgroup.coordinator.classic.group import SKIP_ASSIGNMENT_SINCE, ClassicGroup
from kgroup.coordinator.classic.rebalance import (
    park_join,
    rebalance_or_complete,
    rebalance_timeout,
    refuse_parked,
)
from kgroup.coordinator.classic.states import ClassicState, Phase
from kgroup.coordinator.classic.timers import renew_session, session_timer
from kgroup.coordinator.state import Step
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse


def rejoin_static(
    step: Step, group: ClassicGroup, request: JoinGroupRequest, instance_id: str
) -> JoinGroupResponse | None:
    """Give the instance's place to a new member id; no rebalance while the selected protocol stays.

    Parked requests of the old id are answered FENCED_INSTANCE_ID.
    """
    # No state of an Empty group has static members; Kafka fails here too.
    if group.is_empty:
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, "an empty group has no static members")
    old_id, old_leader = group.static[instance_id], group.leader
    member = group.members[old_id]
    refuse_parked(step, group, member, ErrorCode.FENCED_INSTANCE_ID, old_id)
    stable = group.state is ClassicState.STABLE
    # A new id for each incarnation: a process that was taken for dead, and is not, is fenced by its old one
    # (SM-33).
    new_id = step.state.ids.classic_member(instance_id)
    group.replace(old_id, new_id)
    step.cancel(session_timer(group, old_id))
    renew_session(step, group, member)
    timeout = rebalance_timeout(request, step.version)
    group.update(member, request.protocols, timeout, request.session_timeout_ms)
    # The purpose of static membership: a bounce within the session costs no rebalance (SM-26, SM-39). Other
    # subscription bytes do not matter by themselves; another protocol would make the others' unreadable.
    if stable and group.selected_protocol() == group.protocol:
        return _keep_place(step, group, new_id, old_id, old_leader)
    park_join(step, group, member)
    leads_on = group.forming is None and old_leader == old_id
    rebalance_or_complete(step, group)
    if leads_on and group.forming is not None and group.forming.phase is Phase.PREPARING:
        group.forming.leader = new_id
    return None


def _keep_place(
    step: Step, group: ClassicGroup, new_id: str, old_id: str, old_leader: str | None
) -> JoinGroupResponse:
    """Commit the new id under the present generation.

    Before version 9 a returning leader is sent the old leader id, so that it does not compute an
    assignment; since then it leads and is sent skip_assignment (KIP-814).
    """
    leader = new_id if old_leader == old_id else old_leader
    step.records.append(group.record_of_now(leader))
    leads = leader == new_id and step.version >= SKIP_ASSIGNMENT_SINCE
    response = joined(group, new_id, to_leader=leads)
    response.leader = (leader if step.version >= SKIP_ASSIGNMENT_SINCE else old_leader) or ""  # type: ignore[misc]
    response.skip_assignment = leads  # type: ignore[misc]
    return response
