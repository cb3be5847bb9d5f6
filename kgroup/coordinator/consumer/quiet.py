"""Heartbeats that repeat the last one, to an unchanged group: nearly all that there are.

Such a heartbeat keeps its member alive and changes nothing else, so its answer is the last one's. Everything
an answer depends on is compared: the request, the member, the epochs, the topics, the settings. Any other
heartbeat is carried out in full.
"""

from __future__ import annotations

from kgroup.coordinator.consumer.group import ConsumerGroup, Quiet
from kgroup.coordinator.consumer.member import ConsumerMember, MemberState
from kgroup.coordinator.member_timers import renew_session, session_timer
from kgroup.coordinator.state import Step
from kgroup.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

_STABLE = MemberState.STABLE


def said_before(
    step: Step, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse | None:
    """Return the answer to a heartbeat that changes nothing, and renew its session; None for any other."""
    quiet = group.quiet.get(request.member_id)
    if (
        quiet is None
        # Comparing fields takes longer than all the rest, and the broker decodes the same bytes once.
        or (quiet.request is not request and quiet.request != request)
        or quiet.member is not group.members.get(request.member_id)
        or quiet.client_host != step.client_host
        or quiet.client_id != step.client_id
        or not _is_settled(step, group, quiet.member)
        or quiet.response.heartbeat_interval_ms
        != step.state.config_of(group.group_id).consumer_heartbeat_interval_ms
    ):
        return None
    renew_session(step, group, quiet.member, quiet.session)
    return quiet.response


def note(
    step: Step,
    group: ConsumerGroup,
    request: ConsumerGroupHeartbeatRequest,
    member: ConsumerMember,
    response: ConsumerGroupHeartbeatResponse,
) -> None:
    """Keep a heartbeat that left its member unchanged, if the next one may be answered so.

    Not the join of a member, nor an answer with an assignment; with client-side assignors answers depend on
    more.
    """
    plain = request.member_epoch > 0 and response.assignment is None
    if plain and not step.config.client_assignors and not step.records and _is_settled(step, group, member):
        group.quiet[member.member_id] = Quiet(
            request, step.client_id, step.client_host, member, response, session_timer(group, member)
        )


def _is_settled(step: Step, group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Return whether the group and the member are at their target."""
    # Any member's heartbeat may cause patterns to be resolved again from time to time.
    return (
        not group.by_regex
        and (current := member.current).state is _STABLE
        and current.epoch == group.assignment_epoch == group.epoch
        and not group.topics_expired(step.now_ms)
    )
