"""StreamsGroupHeartbeat: join, change, reconcile and leave in one request (KIP-1071).

Its group has been found: `group` may exist for this step only, and replaying its records makes another. The
next heartbeat finds out its soft state again, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from kgroup.coordinator.member_timers import cancel_all, limit_revocation, renew_session
from kgroup.coordinator.records import (
    remove_member,
    replace_member,
    write_current,
    write_metadata,
    write_target_epoch,
)
from kgroup.coordinator.state import Step
from kgroup.coordinator.streams.endpoints import partitions_by_endpoint
from kgroup.coordinator.streams.group import StreamsGroup, StreamsState
from kgroup.coordinator.streams.member import (
    NOTHING_HELD,
    Current,
    StreamsMember,
    TaskOffsets,
    new_member,
    offsets_of,
    tasks_of,
)
from kgroup.coordinator.streams.reconcile import Goal, reconcile
from kgroup.coordinator.streams.records import initial_delay, write_epoch, write_group, write_topology
from kgroup.coordinator.streams.target import RACK_TAGS, Plan, Target, assignment_configs, update_target
from kgroup.coordinator.streams.topology import (
    ConfiguredTopology,
    Problem,
    StatusCode,
    configure,
    refuse_tasks_that_are_none,
    required_topics,
)
from kgroup.coordinator.streams.validation import LEFT_FOR_A_WHILE
from kgroup.coordinator.tasks.values import NO_TASK_SET, Tasks, TaskSet
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
from kgroup.protocol.releases import Change

Request = StreamsGroupHeartbeatRequest
Response = StreamsGroupHeartbeatResponse
MISSING_TAGS_SINCE = 1
TASK_OFFSET_INTERVAL_MS, ACCEPTABLE_RECOVERY_LAG = 60_000, 10_000
"""Settings that Kafka 4.4 keeps to itself (not documented there)."""
"""The first version of the request whose clients know the status."""


class Moved(NamedTuple):
    """A member before and after its heartbeat, and the static member whose place it took."""

    before: StreamsMember
    after: StreamsMember
    replaced: StreamsMember | None


class Looked(NamedTuple):
    """The topics that this heartbeat found: their hash, the topology over them, whether they changed."""

    metadata_hash: int
    configured: ConfiguredTopology
    changed: bool


def heartbeat(step: Step, group: StreamsGroup, request: Request) -> Response:
    """Carry out a heartbeat of a member that joins or stays; the answer has its tasks when they changed."""
    joins = request.member_epoch == 0
    if joins:
        _refuse_if_full(step, group, request)
    owned = _owned(request)
    # The member whose instance id another member id brings.
    holder = group.static.get(request.instance_id or "")
    replaced = None if holder in (None, request.member_id) else group.members[holder]
    if replaced is not None and step.config.kafka.has(Change.LASTING_TARGETS):
        # At once and not deferred: Kafka does it even if it then refuses the heartbeat.
        group.relabel_copied(replaced.member_id, request.member_id)
    before = _member(step, group, request, owned, replaced)
    after = replace(before, metadata=_metadata(step, before.metadata, request))
    changed = after.metadata != before.metadata
    if changed:
        write_metadata(step, group, after)
        # Whether an assignor may place a static member's tasks otherwise for this change.
        was, now = before.metadata, after.metadata
        changed = request.instance_id is None or (
            (was.topology_epoch, was.rack_id, was.client_tags, was.process_id)
            != (now.topology_epoch, now.rack_id, now.client_tags, now.process_id)
        )
    topology = _topology(step, group, request.topology)
    problems = _stale(group, after)
    looked = _look(step, group, topology)
    # Only over existing topics: without their partitions the number of tasks is unknown.
    if looked.configured.is_ready and owned is not None:
        for tasks in (owned.active, owned.standby, owned.warmup):
            refuse_tasks_that_are_none(looked.configured, tasks)
    _note_offsets(group, request)
    plan = _plan(step, group, topology, looked, after, changed=changed or looked.changed)
    if group.is_empty:
        _wait_for_more(step, group)
    target = update_target(step, group, plan, after, replaced)
    if step.config.kafka.has(Change.LASTING_TARGETS):
        target = _as_copied(step, group, target, after.member_id, unchanged=plan.epoch == group.epoch)
    after = _move(step, group, after, target, owned)
    renew_session(step, group, after)
    if request.shutdown_application:
        step.defer(partial(_ask_to_shut_down, group, after.member_id))
    problems += [problem for problem in (target.delayed, looked.configured.problem) if problem is not None]
    problems += _shutdown(group, after.member_id if request.shutdown_application else None)
    problems += _missing_tags(step, plan.configs, after)
    if looked.configured.missing:
        step.defer(partial(_want, step, group.group_id, looked.configured))
    answer = _response(step, group, request, Moved(before, after, replaced), looked.configured)
    return replace(answer, status=tuple(Status(status_code=p.code, status_detail=p.detail) for p in problems))


def leave(step: Step, group: StreamsGroup, request: Request) -> Response:
    """Remove the member that leaves; its epoch is not compared, as in Kafka.

    A static member that will rejoin keeps its tasks until its session expires.
    """
    if request.shutdown_application:
        # At once and not deferred: Kafka accepts the request even of a member that it then refuses.
        _ask_to_shut_down(group, request.member_id)
    if request.instance_id is not None:
        _refuse_if_not_holder(group, request)
    member = group.members.get(request.member_id)
    if member is None:
        raise _unknown(group, request.member_id)
    if request.member_epoch == LEFT_FOR_A_WHILE:
        # A static member will rejoin: its session runs on, and what it was to revoke is free.
        held = member.current.assigned
        zeroed = {subtopology: dict.fromkeys(numbers, 0) for subtopology, numbers in held.active.items()}
        current = replace(
            member.current,
            epoch=LEFT_FOR_A_WHILE,
            assigned=replace(held, active=zeroed),
            revoking=NOTHING_HELD,
        )
        write_current(step, group, replace(member, current=current))
    else:
        fence(step, group, member)
    return Response(member_id=request.member_id, member_epoch=request.member_epoch)


def fence(step: Step, group: StreamsGroup, member: StreamsMember) -> None:
    """Remove the member and bump the group epoch; the next heartbeat of another computes the target."""
    remove_member(step, group, member.member_id)
    if group.copied_epoch == group.assignment_epoch and member.member_id in group.targets:
        step.defer(partial(group.copied.setdefault, member.member_id, group.targets[member.member_id]))
    write_epoch(step, group, group.epoch + 1)
    if len(group.members) == 1 and step.config.kafka.has(Change.EMPTIED_TARGETS):
        write_target_epoch(step, group, group.epoch + 1, 0)
    cancel_all(step, group, member.member_id)


def assign_at_last(step: Step, group: StreamsGroup) -> None:
    """Make the first assignment of a group whose initial delay is over."""
    # All members have left, or no heartbeat has looked at the topics since a restart.
    if group.is_empty or group.configured is None:
        return
    update_target(step, group, Plan(group.epoch, group.configured, group.assignment_configs), None)


def _refuse_if_full(step: Step, group: StreamsGroup, request: Request) -> None:
    # Before Kafka 4.4 one that is in the group counts too, though it adds none.
    is_in = request.instance_id in group.static or request.member_id in group.members
    if is_in and step.config.kafka.has(Change.RETURNS_IN_FULL_GROUPS):
        return
    if len(group.members) >= step.config.streams_max_size:
        raise Refused(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The streams group has reached its maximum capacity of {step.config.streams_max_size} members.",
        )


def _member(
    step: Step,
    group: StreamsGroup,
    request: Request,
    owned: TaskSet | None,
    replaced: StreamsMember | None,
) -> StreamsMember:
    """Return the heartbeat's member as it is before it; refuse wrong ids and epochs."""
    member = group.members.get(request.member_id)
    if request.instance_id is not None:
        if request.member_epoch != 0:
            _refuse_if_not_holder(group, request)
        elif request.instance_id in group.static:
            return _take_place(step, group, request, replaced)
        elif member is not None:
            return member
    if member is None:
        if request.member_epoch != 0:
            raise _unknown(group, request.member_id)
        return new_member(request.member_id)
    _refuse_epoch(member.current, request.member_epoch, owned)
    return member


def _take_place(
    step: Step, group: StreamsGroup, request: Request, replaced: StreamsMember | None
) -> StreamsMember:
    """Give a static member's place, with its tasks and target, to a member id that may be new."""
    holder = replaced or group.members[request.member_id]
    # One that has not announced its return may be alive: two would own its tasks.
    if holder.epoch != LEFT_FOR_A_WHILE:
        raise Refused(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {request.member_id} with instance id {request.instance_id} cannot join the group "
            f"because the instance id is owned by {holder.member_id} member.",
        )
    current = replace(holder.current, epoch=0, previous_epoch=0)
    member = StreamsMember(request.member_id, holder.metadata, current)
    replace_member(step, group, holder, member)
    return member


def _refuse_if_not_holder(group: StreamsGroup, request: Request) -> None:
    holder = group.static.get(request.instance_id or "")
    if holder is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {request.instance_id} is unknown.")
    if holder != request.member_id:
        raise Refused(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {request.member_id} with instance id {request.instance_id} was fenced by member "
            f"{holder}.",
        )


def _note_offsets(group: StreamsGroup, request: Request) -> None:
    reached, ends = request.task_offsets, request.task_end_offsets
    if reached is None and ends is None:
        return
    before = group.offsets_of(request.member_id)
    # At once and not deferred: Kafka keeps what was reported even if it then refuses the heartbeat.
    group.task_offsets[request.member_id] = TaskOffsets(
        before.reached if reached is None else offsets_of(reached),
        before.ends if ends is None else offsets_of(ends),
    )


def _unknown(group: StreamsGroup, member_id: str) -> Refused:
    return Refused(
        ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.group_id}."
    )


def _owned(request: Request) -> TaskSet | None:
    """Return what the member reports to own; None without report."""
    if request.active_tasks is None or request.standby_tasks is None or request.warmup_tasks is None:
        return None
    return TaskSet(
        tasks_of(request.active_tasks), tasks_of(request.standby_tasks), tasks_of(request.warmup_tasks)
    )


def _refuse_epoch(current: Current, epoch: int, owned: TaskSet | None) -> None:
    """Raise FENCED_MEMBER_EPOCH unless the epoch is the member's, 0, or that of a lost response.

    A response was lost if the member is at its previous epoch and owns only what it was assigned by then.
    With 0 a member that lost its epoch rejoins: it keeps its place, and gets its tasks again.
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
    """Return the member's record 19 with this heartbeat; a null field is unchanged."""
    tags, endpoint = request.client_tags, request.user_endpoint
    replaces_endpoint = request.member_epoch == 0 and step.config.kafka.has(Change.CHANGED_ENDPOINTS)
    return replace(
        before,
        instance_id=before.instance_id if request.instance_id is None else request.instance_id,
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
        user_endpoint=before.user_endpoint if endpoint is None and not replaces_endpoint else endpoint,
        client_tags=before.client_tags if tags is None else _sorted(tags),
    )


def _sorted(tags: tuple[r.KeyValue, ...]) -> tuple[r.KeyValue, ...]:
    if len({tag.key for tag in tags}) < len(tags):
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, "A client tag is given twice.")
    return tuple(sorted(tags, key=lambda tag: tag.key))


def _topology(step: Step, group: StreamsGroup, given: Topology | None) -> r.StreamsGroupTopologyValue:
    """Return the group's topology: the first one given. Another one of its epoch is refused."""
    known = group.topology
    if given is None:
        # A member brings its topology when it joins, so the record of it was lost: Kafka fails here too.
        if known is None:
            raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR)
        return known
    ids = [subtopology.subtopology_id for subtopology in given.subtopologies]
    if len(set(ids)) < len(ids):
        # Its record could not be loaded again.
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, "The topology has two subtopologies of one id.")
    offered = r.StreamsGroupTopologyValue(epoch=given.epoch, subtopologies=given.subtopologies)
    if known is None:
        write_topology(step, group.group_id, offered)
        return offered
    # An older one is of a process that is not upgraded yet: it stays, with a status (`_stale`).
    if known.epoch <= offered.epoch and not _alike(known, offered):
        raise Refused(ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet.")
    return known


def _alike(one: r.StreamsGroupTopologyValue, other: r.StreamsGroupTopologyValue) -> bool:
    if one.epoch != other.epoch:
        return False
    mine, theirs = ({s.subtopology_id: s for s in topology.subtopologies} for topology in (one, other))
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
    """Refresh the topics the topology needs, if they may have changed since."""
    known = group.configured
    if group.topology is not None and known is not None and not group.topics_expired(step.now_ms):
        return Looked(group.metadata_hash, known, False)
    metadata_hash = hash_of(step.state, required_topics(topology))
    changed = metadata_hash != group.metadata_hash
    if known is None or changed or group.topology is None:
        known = configure(topology, step.state.image)
        # At once and not deferred: Kafka keeps what it found even if it then refuses the heartbeat, and the
        # first assignment, made when the initial delay ends, needs it.
        group.configured = known
    return Looked(metadata_hash, known, changed)


def _plan(
    step: Step,
    group: StreamsGroup,
    topology: r.StreamsGroupTopologyValue,
    looked: Looked,
    member: StreamsMember,
    *,
    changed: bool,
) -> Plan:
    """Return what the next target is made from; bump the group epoch if any of it changed."""
    validated = _validated(topology, looked)
    configs = assignment_configs(step.state, group.group_id)
    if changed or validated != group.validated_topology_epoch or configs != group.assignment_configs:
        return _bump(step, group, topology, looked, configs)
    if _has_drifted(step, group, member):
        return _bump(step, group, topology, looked, configs)._replace(computes=False)
    return Plan(group.epoch, looked.configured, configs)


def _bump(
    step: Step,
    group: StreamsGroup,
    topology: r.StreamsGroupTopologyValue,
    looked: Looked,
    configs: Mapping[str, str],
) -> Plan:
    epoch = group.epoch + 1
    write_group(step, group, epoch, looked.metadata_hash, _validated(topology, looked), configs)
    step.defer(partial(_bumped, step, group, epoch))
    return Plan(epoch, looked.configured, configs)


def _validated(topology: r.StreamsGroupTopologyValue, looked: Looked) -> int:
    # While topics are missing no epoch of the topology is validated, and the group is NotReady (KIP-1071).
    return topology.epoch if looked.configured.is_ready else -1


def _has_drifted(step: Step, group: StreamsGroup, member: StreamsMember) -> bool:
    """Return whether a member of a group at rest has other tasks than its target: the copy had others."""
    if not step.config.kafka.has(Change.LASTING_TARGETS):
        return False
    drifted = member.current.assigned.tasks != group.target_of(member.member_id)
    return drifted and group.state is StreamsState.STABLE


def _bumped(step: Step, group: StreamsGroup, epoch: int) -> None:
    step.state.counters.streams_group_rebalance += 1
    group.topics_refreshed(step.now_ms, epoch)


def _wait_for_more(step: Step, group: StreamsGroup) -> None:
    """Delay a group's first assignment: a task moved at once takes its state along for nothing."""
    key = initial_delay(group.group_id)
    delay = step.state.config_of(group.group_id).streams_initial_delay_ms
    if delay > 0 and not step.is_armed(key):
        step.arm(key, delay)


def _move(
    step: Step, group: StreamsGroup, member: StreamsMember, target: Target, owned: TaskSet | None
) -> StreamsMember:
    """Move the member one step towards its target, and write its new state."""
    if member.current.is_reconciled_to(target.epoch):
        return member
    in_place = step.config.kafka.has(Change.ROLES_IN_PLACE)
    goal = Goal(target.epoch, target.tasks, member.process_id, owned, group.owners, in_place)
    moved = reconcile(member.current, goal)
    if moved == member.current:
        return member
    member = replace(member, current=moved)
    write_current(step, group, member)
    # Only by a step: a heartbeat that renewed the limit would let a member keep its tasks for ever (CP-17).
    limit_revocation(step, group, member)
    return member


def _as_copied(step: Step, group: StreamsGroup, target: Target, member_id: str, *, unchanged: bool) -> Target:
    """Return the target that Kafka 4.4 sends a member: from its copy, which a stable group makes again."""
    if group.copied_epoch != target.epoch or (
        group.copied and unchanged and group.state is StreamsState.STABLE
    ):
        step.defer(partial(group.copy_target, target.epoch))
        return target
    if member_id not in group.copied:
        return target
    return target._replace(tasks=group.copied[member_id] or NO_TASK_SET)


def _want(step: Step, group_id: str, configured: ConfiguredTopology) -> None:
    step.state.missing_topics[group_id] = tuple(configured.missing.values())


def _ask_to_shut_down(group: StreamsGroup, member_id: str) -> None:
    group.shutdown_by = group.shutdown_by or member_id


def _shutdown(group: StreamsGroup, asks_now: str | None) -> list[Problem]:
    """Return a problem if a member has asked for the whole application to end."""
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


def _missing_tags(step: Step, configs: Mapping[str, str], member: StreamsMember) -> list[Problem]:
    """Return a problem if the member lacks a tag that spreads standbys."""
    if RACK_TAGS not in configs or step.version < MISSING_TAGS_SINCE:
        return []
    given = {tag.key for tag in member.metadata.client_tags}
    missing = [tag for tag in configs[RACK_TAGS].split(",") if tag not in given]
    if not missing:
        return []
    return [
        Problem(
            StatusCode.MISSING_CLIENT_TAGS,
            f"Missing required client tags for rack-aware standby assignment: [{', '.join(missing)}]. "
            "Configure them via 'client.tag.<tagKey>' in your Streams config.",
        )
    ]


def _response(
    step: Step,
    group: StreamsGroup,
    request: Request,
    moved: Moved,
    configured: ConfiguredTopology,
) -> Response:
    """Return the answer without the group's part."""
    before, member, kafka = moved.before, moved.after, step.config.kafka
    reassigned = member.current.assigned != before.current.assigned
    sends_tasks = request.member_epoch == 0 or reassigned
    endpoint = member.metadata.user_endpoint
    if kafka.has(Change.CHANGED_ENDPOINTS):
        endpoint_changed = endpoint != before.metadata.user_endpoint or (reassigned and endpoint is not None)
    else:
        endpoint_changed = sends_tasks and endpoint is not None
    static = kafka.has(Change.STATIC_STREAMS_MEMBERS)
    endpoint_epoch = group.endpoint_epoch
    if endpoint_changed:
        endpoint_epoch += 1
        step.defer(partial(_set_endpoint_epoch, group, endpoint_epoch))
    held = member.current.assigned.tasks
    # The endpoints of a whole application are long: only a member with an older list gets them.
    outdated = endpoint_epoch != request.endpoint_information_epoch
    return Response(
        member_id=member.member_id,
        member_epoch=member.epoch,
        heartbeat_interval_ms=step.state.config_of(group.group_id).streams_heartbeat_interval_ms,
        task_offset_interval_ms=TASK_OFFSET_INTERVAL_MS if static else 0,
        acceptable_recovery_lag=ACCEPTABLE_RECOVERY_LAG if static else -1,
        active_tasks=_ids(held.active) if sends_tasks else None,
        standby_tasks=_ids(held.standby) if sends_tasks else None,
        warmup_tasks=_ids(held.warmup) if sends_tasks else None,
        # A group that does not exist before this step cannot keep the number, and does not send it.
        endpoint_information_epoch=endpoint_epoch if group.group_id in step.state.groups else 0,
        partitions_by_user_endpoint=(
            partitions_by_endpoint(
                group, member, moved.replaced, configured, step.state.image, warmups=static
            )
            if outdated
            else None
        ),
    )


def _set_endpoint_epoch(group: StreamsGroup, epoch: int) -> None:
    group.endpoint_epoch = epoch


def _ids(tasks: Tasks) -> tuple[TaskIds, ...]:
    return tuple(
        TaskIds(subtopology_id=subtopology, partitions=tuple(sorted(partitions)))
        for subtopology, partitions in tasks.items()
    )
