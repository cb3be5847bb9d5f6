"""The target assignment of a streams group: when and from what it is computed, what is written (KIP-1071)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kgroup.coordinator.records import write_target, write_target_epoch
from kgroup.coordinator.state import State, Step
from kgroup.coordinator.streams.group import StreamsGroup
from kgroup.coordinator.streams.member import StreamsMember
from kgroup.coordinator.streams.records import initial_delay
from kgroup.coordinator.streams.topology import ConfiguredTopology, Problem, StatusCode
from kgroup.coordinator.tasks.java_order import hash_map_order
from kgroup.coordinator.tasks.sticky import NoAssignment, Placed, TaskKind
from kgroup.coordinator.tasks.values import NO_TASK_SET, TaskSet
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.releases import Change

STANDBYS, RACK_TAGS = "num.standby.replicas", "rack.aware.assignment.tags"


class Plan(NamedTuple):
    """The input of a target, besides the members: the group epoch, the topology, the settings.

    One that does not `compute` moves the target to its epoch as it is.
    """

    epoch: int
    topology: ConfiguredTopology
    configs: Mapping[str, str]
    computes: bool = True


def assignment_configs(state: State, group_id: str) -> dict[str, str]:
    """Return what record 17 keeps of the settings that a target is made with."""
    config = state.config_of(group_id)
    configs = {STANDBYS: str(config.streams_standby_replicas)}
    if config.streams_rack_tags:
        configs[RACK_TAGS] = ",".join(config.streams_rack_tags)
    return configs


class Target(NamedTuple):
    """One member's target, its epoch, and why there is none of the group epoch yet."""

    epoch: int
    tasks: TaskSet
    delayed: Problem | None = None


def update_target(
    step: Step,
    group: StreamsGroup,
    plan: Plan,
    member: StreamsMember | None,
    replaced: StreamsMember | None = None,
) -> Target:
    """Return the member's target; compute and write all when behind the plan's epoch and the time has come.

    `member` takes the place of its old state, and of the static member `replaced`, whose target becomes
    its own; None computes for the group as it is.
    """
    stored = NO_TASK_SET if member is None else group.target_of((replaced or member).member_id)
    # Members that start together are to share the tasks at once: each that moves takes its state along.
    if step.is_armed(initial_delay(group.group_id)):
        return Target(group.assignment_epoch, NO_TASK_SET, _delayed("initial rebalance delay"))
    if group.assignment_epoch >= plan.epoch:
        return Target(group.assignment_epoch, stored)
    if not plan.computes and group.assignment_epoch >= group.epoch:
        write_target_epoch(step, group, plan.epoch, group.assignment_timestamp_ms)
        return Target(plan.epoch, stored)
    # As in consumer groups: many changes within an interval cost one computation (KIP-848's batching).
    interval = step.state.config_of(group.group_id).streams_assignment_interval_ms
    if not step.is_due(group.assignment_timestamp_ms, interval):
        return Target(group.assignment_epoch, stored, _delayed("assignment interval"))
    targets = _compute(step, group, plan, member, replaced)
    for member_id, tasks in targets.items():
        moved = replaced is not None and member is not None and member_id == member.member_id
        before = group.targets.get(replaced.member_id if moved and replaced else member_id)
        # None is not the same as nothing: a new member gets a record even of no tasks.
        if before is None or before != tasks:
            write_target(step, group, member_id, tasks)
    write_target_epoch(step, group, plan.epoch, step.now_ms)
    return Target(plan.epoch, NO_TASK_SET if member is None else targets[member.member_id])


def _delayed(why: str) -> Problem:
    return Problem(StatusCode.ASSIGNMENT_DELAYED, f"Assignment delayed due to the configured {why}.")


def _compute(
    step: Step,
    group: StreamsGroup,
    plan: Plan,
    member: StreamsMember | None,
    replaced: StreamsMember | None,
) -> dict[str, TaskSet]:
    members, targets = dict(group.members), dict(group.targets)
    if replaced is not None and member is not None:
        members.pop(replaced.member_id, None)
        targets[member.member_id] = targets.pop(replaced.member_id, NO_TASK_SET)
    if member is not None:
        members[member.member_id] = member
    # While topics are missing no member is assigned anything: earlier tasks are revoked.
    if not plan.topology.is_ready or plan.topology.subtopologies is None:
        return dict.fromkeys(members, NO_TASK_SET)
    by_offset = step.config.kafka.has(Change.TASKS_BY_STATE)
    placed = {
        member_id: Placed(
            members[member_id].process_id,
            # A member's tasks are those it has, since Kafka 4.4; before, those of its target.
            members[member_id].current.assigned.tasks if by_offset else targets.get(member_id, NO_TASK_SET),
            group.offsets_of(member_id).reached,
        )
        for member_id in hash_map_order(members)
    }
    kinds = {
        name: TaskKind(subtopology.tasks, subtopology.is_stateful)
        for name, subtopology in plan.topology.subtopologies.items()
    }
    try:
        # Without settings, as in a log of Kafka 4.2, there are no standbys.
        return step.state.assign_tasks(
            placed,
            kinds,
            int(plan.configs.get(STANDBYS, "0")),
            by_offset,
        )
    except NoAssignment as error:
        # Nothing of this heartbeat happens, and the next one retries: the old target stays.
        message = f"Failed to compute a new target assignment for epoch {plan.epoch}: {error}"
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, message) from None
