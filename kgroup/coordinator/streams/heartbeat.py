"""StreamsGroupHeartbeat: join, change, reconcile and leave in one request (KIP-1071).

Which group it is of has been settled: `group` may be one that exists for this step only, and that replaying
its records makes anew. What is soft of it, the next heartbeat finds out again, as in Kafka.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import NamedTuple

from kgroup.coordinator.group_settings import (
    streams_heartbeat_interval_ms,
    streams_initial_delay_ms,
    streams_standby_replicas,
)
from kgroup.coordinator.state import Step
from kgroup.coordinator.streams.endpoints import partitions_by_endpoint
from kgroup.coordinator.streams.group import StreamsGroup
from kgroup.coordinator.streams.member import Current, StreamsMember, tasks_of
from kgroup.coordinator.streams.reconcile import Goal, reconcile
from kgroup.coordinator.streams.records import (
    remove_member,
    write_current,
    write_epoch,
    write_group,
    write_metadata,
    write_topology,
)
from kgroup.coordinator.streams.target import STANDBYS, Plan, Target, update_target
from kgroup.coordinator.streams.timers import cancel_all, initial_delay, limit_revocation, renew_session
from kgroup.coordinator.streams.topology import (
    ConfiguredTopology,
    Problem,
    StatusCode,
    configure,
    refuse_tasks_that_are_none,
    required_topics,
)
from kgroup.coordinator.tasks.values import Tasks, TaskSet
from kgroup.coordinator.topic_hashes import hash_of
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol import streams_records as r
from kgroup.protocol.messages.streams_group_heartbeat import (
    Status,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    TaskIds,
    Topology,
)

Request = StreamsGroupHeartbeatRequest
Response = StreamsGroupHeartbeatResponse
NEVER_EXPIRES_MS = 2**31 - 1


class Looked(NamedTuple):
    """The topics as this heartbeat found them: their hash, the topology over them, whether they changed."""

    metadata_hash: int
    configured: ConfiguredTopology
    changed: bool


def heartbeat(step: Step, group: StreamsGroup, request: Request) -> Response:
    """Carry out a heartbeat of a member that joins or stays; the answer has its tasks when they changed."""
    joins = request.member_epoch == 0
    if joins:
        _refuse_if_full(step, group)
    before = _member(group, request)
    owned = _owned(request)
    _refuse_epoch(before.current, request.member_epoch, owned)
    after = replace(before, metadata=_metadata(step, before.metadata, request))
    changed = after.metadata != before.metadata
    if changed:
        write_metadata(step, group.group_id, after)
    topology = _topology(step, group, request.topology)
    problems = _stale(group, after)
    looked = _look(step, group, topology)
    # Only over topics that are there: without their partitions nobody knows how many tasks there are.
    if looked.configured.is_ready and owned is not None:
        for tasks in (owned.active, owned.standby, owned.warmup):
            refuse_tasks_that_are_none(looked.configured, tasks)
    plan = _plan(step, group, topology, looked, changed=changed or looked.changed)
    if group.is_empty:
        _wait_for_more(step, group)
    target = update_target(step, group, plan, after)
    after = _move(step, group, after, target, owned)
    renew_session(step, group.group_id, after.member_id)
    if request.shutdown_application:
        step.defer(partial(_ask_to_shut_down, group, after.member_id))
    problems += [problem for problem in (target.delayed, looked.configured.problem) if problem is not None]
    problems += _shutdown(group, after.member_id if request.shutdown_application else None)
    if looked.configured.missing:
        step.defer(partial(_want, step, group.group_id, looked.configured))
    anew = joins or after.current.assigned != before.current.assigned
    answer = _response(step, group, request, after, looked.configured, anew=anew)
    return replace(answer, status=tuple(Status(status_code=p.code, status_detail=p.detail) for p in problems))


def leave(step: Step, group: StreamsGroup, request: Request) -> Response:
    """Remove the member that says it goes; its epoch is not compared, as in Kafka."""
    member = group.members.get(request.member_id)
    if request.shutdown_application:
        # At once and not deferred: Kafka hears the request even of a member that it then refuses.
        _ask_to_shut_down(group, request.member_id)
    if member is None:
        raise _unknown(group, request.member_id)
    fence(step, group, member)
    return Response(member_id=request.member_id, member_epoch=request.member_epoch)


def fence(step: Step, group: StreamsGroup, member: StreamsMember) -> None:
    """Remove the member and bump the group epoch; the next heartbeat of another computes the target."""
    remove_member(step, group.group_id, member.member_id)
    write_epoch(step, group, group.epoch + 1)
    cancel_all(step, group.group_id, member.member_id)


def assign_at_last(step: Step, group: StreamsGroup) -> None:
    """Make the first assignment of a group whose initial delay is over."""
    # Everybody has gone, or no heartbeat has looked at the topics since a restart.
    if group.is_empty or group.configured is None:
        return
    update_target(step, group, Plan(group.epoch, group.configured, group.assignment_configs), None)


def _refuse_if_full(step: Step, group: StreamsGroup) -> None:
    # A member that joins anew under its id counts too, as in Kafka, though it adds none.
    if len(group.members) >= step.config.streams_max_size:
        raise Refused(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The streams group has reached its maximum capacity of {step.config.streams_max_size} members.",
        )


def _member(group: StreamsGroup, request: Request) -> StreamsMember:
    member = group.members.get(request.member_id)
    if member is not None:
        return member
    if request.member_epoch != 0:
        raise _unknown(group, request.member_id)
    return StreamsMember(request.member_id, r.StreamsGroupMemberMetadataValue())


def _unknown(group: StreamsGroup, member_id: str) -> Refused:
    return Refused(
        ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.group_id}."
    )


def _owned(request: Request) -> TaskSet | None:
    """What the member says it has; None when it does not say."""
    if request.active_tasks is None or request.standby_tasks is None or request.warmup_tasks is None:
        return None
    return TaskSet(
        tasks_of(request.active_tasks), tasks_of(request.standby_tasks), tasks_of(request.warmup_tasks)
    )


def _refuse_epoch(current: Current, epoch: int, owned: TaskSet | None) -> None:
    """FENCED_MEMBER_EPOCH unless the epoch is the member's, 0, or that of a response which got lost.

    A response was lost if the member is at its previous epoch and has nothing that it was not given since.
    With 0 a member that forgot its epoch comes back: it keeps its place, and is told its tasks again.
    """
    if epoch in (0, current.epoch):
        return
    lost = epoch == current.previous_epoch and owned is not None and _is_within(owned, current)
    if epoch < current.epoch and lost:
        return
    more = "greater" if epoch > current.epoch else "smaller"
    raise Refused(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The streams group member has a {more} member epoch ({epoch}) than the one known by the group "
        f"coordinator ({current.epoch}). The member must abandon all its partitions and rejoin.",
    )


def _is_within(owned: TaskSet, current: Current) -> bool:
    given = current.assigned
    pairs = ((owned.active, given.active), (owned.standby, given.standby), (owned.warmup, given.warmup))
    return all(
        partition in theirs.get(subtopology, ())
        for ours, theirs in pairs
        for subtopology, partitions in ours.items()
        for partition in partitions
    )


def _metadata(
    step: Step, before: r.StreamsGroupMemberMetadataValue, request: Request
) -> r.StreamsGroupMemberMetadataValue:
    """The member's record 19 as it is with this heartbeat; null says that a field is as it was."""
    tags = request.client_tags
    return replace(
        before,
        rack_id=before.rack_id if request.rack_id is None else request.rack_id,
        client_id=step.client_id,
        client_host=step.client_host,
        rebalance_timeout_ms=(
            before.rebalance_timeout_ms
            if request.rebalance_timeout_ms == -1
            else request.rebalance_timeout_ms
        ),
        topology_epoch=before.topology_epoch if request.topology is None else request.topology.epoch,
        process_id=before.process_id if request.process_id is None else request.process_id,
        user_endpoint=before.user_endpoint if request.user_endpoint is None else request.user_endpoint,
        client_tags=before.client_tags if tags is None else _sorted(tags),
    )


def _sorted(tags: tuple[r.KeyValue, ...]) -> tuple[r.KeyValue, ...]:
    if len({tag.key for tag in tags}) < len(tags):
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, "A client tag is given twice.")
    return tuple(sorted(tags, key=lambda tag: tag.key))


def _topology(step: Step, group: StreamsGroup, given: Topology | None) -> r.StreamsGroupTopologyValue:
    """The group's topology; the first one given becomes it, and another one of its epoch is refused."""
    known = group.topology
    if given is None:
        # A member brings its topology when it joins, so the record of it was lost: Kafka fails here too.
        if known is None:
            raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR)
        return known
    offered = _record_of(given)
    if known is None:
        write_topology(step, group.group_id, offered)
        return offered
    # An older one is of a process that is not upgraded yet: it stays, and is told so (`_stale`).
    if known.epoch <= offered.epoch and not _alike(known, offered):
        raise Refused(ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet.")
    return known


def _record_of(given: Topology) -> r.StreamsGroupTopologyValue:
    """Record 23's value; a topology with two subtopologies of one id could not be loaded again."""
    ids = [subtopology.subtopology_id for subtopology in given.subtopologies]
    if len(set(ids)) < len(ids):
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, "The topology has two subtopologies of one id.")
    return r.StreamsGroupTopologyValue(epoch=given.epoch, subtopologies=given.subtopologies)


def _alike(one: r.StreamsGroupTopologyValue, other: r.StreamsGroupTopologyValue) -> bool:
    if one.epoch != other.epoch:
        return False
    mine, theirs = ({s.subtopology_id: s for s in each.subtopologies} for each in (one, other))
    return mine == theirs


def _stale(group: StreamsGroup, member: StreamsMember) -> list[Problem]:
    if group.topology is None or member.metadata.topology_epoch >= group.topology.epoch:
        return []
    return [
        Problem(
            StatusCode.STALE_TOPOLOGY,
            f"The member's topology epoch {member.metadata.topology_epoch} is behind the group's topology "
            f"epoch {group.topology.epoch}.",
        )
    ]


def _look(step: Step, group: StreamsGroup, topology: r.StreamsGroupTopologyValue) -> Looked:
    """Look at the topics the topology needs, if they may have changed since the last look."""
    expired = step.now_ms >= group.refresh_deadline_ms or group.epoch < group.refresh_epoch
    known = group.configured
    if group.topology is not None and known is not None and not expired:
        return Looked(group.metadata_hash, known, False)
    metadata_hash = hash_of(step.state, required_topics(topology))
    changed = metadata_hash != group.metadata_hash
    if known is None or changed or group.topology is None:
        known = configure(topology, step.state.image)
        # At once and not deferred: Kafka keeps what it found out even if it then refuses the heartbeat, and
        # the first assignment, made when the initial delay ends, needs it.
        group.configured = known
    return Looked(metadata_hash, known, changed)


def _plan(
    step: Step,
    group: StreamsGroup,
    topology: r.StreamsGroupTopologyValue,
    looked: Looked,
    *,
    changed: bool,
) -> Plan:
    """What the next target is to be made from; bumps the group epoch when any of it changed."""
    # While topics are missing no epoch of the topology is validated, and the group is NotReady (KIP-1071).
    validated = topology.epoch if looked.configured.is_ready else -1
    configs = {STANDBYS: str(streams_standby_replicas(step.state, group.group_id))}
    changed = changed or validated != group.validated_topology_epoch
    if not changed and configs == group.assignment_configs:
        return Plan(group.epoch, looked.configured, configs)
    epoch = group.epoch + 1
    write_group(step, group.group_id, epoch, looked.metadata_hash, validated, configs)
    step.defer(partial(_bumped, step, group, epoch))
    return Plan(epoch, looked.configured, configs)


def _bumped(step: Step, group: StreamsGroup, epoch: int) -> None:
    """The topics of `epoch` have been looked at: only a change of them asks for it again."""
    step.state.counters.streams_group_rebalance += 1
    group.refresh_deadline_ms = step.now_ms + NEVER_EXPIRES_MS
    group.refresh_epoch = epoch


def _wait_for_more(step: Step, group: StreamsGroup) -> None:
    """Have the first assignment of a group wait: a task moved at once takes its state along for nothing."""
    key, delay = initial_delay(group.group_id), streams_initial_delay_ms(step.state, group.group_id)
    if delay > 0 and not step.is_armed(key):
        step.arm(key, delay)


def _move(
    step: Step, group: StreamsGroup, member: StreamsMember, target: Target, owned: TaskSet | None
) -> StreamsMember:
    """Move the member one step towards its target, and write where it is then."""
    if member.current.is_reconciled_to(target.epoch):
        return member
    goal = Goal(target.epoch, target.tasks, member.process_id, owned, group.owners)
    moved = reconcile(member.current, goal)
    if moved == member.current:
        return member
    member = replace(member, current=moved)
    write_current(step, group.group_id, member)
    # Only by a step: a heartbeat that renewed the limit would let a member keep its tasks for ever (CP-17).
    limit_revocation(step, group.group_id, member)
    return member


def _want(step: Step, group_id: str, configured: ConfiguredTopology) -> None:
    step.state.missing_topics[group_id] = tuple(configured.missing.values())


def _ask_to_shut_down(group: StreamsGroup, member_id: str) -> None:
    group.shutdown_by = group.shutdown_by or member_id


def _shutdown(group: StreamsGroup, asks_now: str | None) -> list[Problem]:
    """Whether a member, the first that did, has asked for the whole application to end."""
    asked = group.shutdown_by or asks_now
    if asked is None:
        return []
    return [
        Problem(
            StatusCode.SHUTDOWN_APPLICATION,
            f"Streams group member {asked} encountered a fatal error and requested a shutdown for the "
            "entire application.",
        )
    ]


def _response(
    step: Step,
    group: StreamsGroup,
    request: Request,
    member: StreamsMember,
    configured: ConfiguredTopology,
    *,
    anew: bool,
) -> Response:
    """The answer but for what holds for the group."""
    endpoint_epoch = group.endpoint_epoch
    if anew and member.metadata.user_endpoint is not None:
        endpoint_epoch += 1
        step.defer(partial(_tell_endpoints, group, endpoint_epoch))
    held = member.current.assigned
    # The endpoints of a whole application are long: only who has an older list of them is told.
    told = endpoint_epoch != request.endpoint_information_epoch
    return Response(
        member_id=member.member_id,
        member_epoch=member.epoch,
        heartbeat_interval_ms=streams_heartbeat_interval_ms(step.state, group.group_id),
        active_tasks=_ids({s: frozenset(ps) for s, ps in held.active.items()}) if anew else None,
        standby_tasks=_ids(held.standby) if anew else None,
        warmup_tasks=_ids(held.warmup) if anew else None,
        # A group that is not there before this step cannot keep the number, and does not tell it.
        endpoint_information_epoch=endpoint_epoch if group.group_id in step.state.groups else 0,
        partitions_by_user_endpoint=(
            partitions_by_endpoint(group, member, configured, step.state.image) if told else None
        ),
    )


def _tell_endpoints(group: StreamsGroup, epoch: int) -> None:
    group.endpoint_epoch = epoch


def _ids(tasks: Tasks) -> tuple[TaskIds, ...]:
    return tuple(
        TaskIds(subtopology_id=subtopology, partitions=tuple(sorted(partitions)))
        for subtopology, partitions in tasks.items()
    )
