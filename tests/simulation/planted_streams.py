"""Faults to plant in the coordinator of streams groups: each breaks a rule, and some seed must see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kgroup.coordinator import member_timers
from kgroup.coordinator.streams import commit_check, heartbeat, reconcile, target
from kgroup.coordinator.streams.group import StreamsGroup
from kgroup.coordinator.tasks.values import NO_TASKS
from kgroup.protocol import streams_records as r

Plant = Callable[[Any], None]


def nothing(*args: Any, **more: Any) -> None:
    """Takes the place of a step that is forgotten."""


def never(*args: Any) -> bool:
    return False


def task_given_before_it_is_free(patch: Any) -> None:
    patch.setattr(reconcile.Goal, "active_is_elsewhere", never)


def copy_given_beside_the_task(patch: Any) -> None:
    for role in ("standby", "warmup"):
        patch.setattr(reconcile.Goal, f"{role}_is_elsewhere", never)


def task_revocation_not_awaited(patch: Any) -> None:
    patch.setattr(reconcile.Goal, "still_owns", never)


def streams_heartbeat_of_an_old_epoch(patch: Any) -> None:
    patch.setattr(heartbeat, "_refuse_epoch", nothing)


def streams_commit_of_an_old_epoch(patch: Any) -> None:
    patch.setattr(commit_check.OlderStreamsEpoch, "__call__", nothing)


def streams_epoch_stays_when_a_thread_goes(patch: Any) -> None:
    patch.setattr(heartbeat, "write_epoch", nothing)


def task_revocation_may_take_for_ever(patch: Any) -> None:
    patch.setattr(heartbeat, "limit_revocation", nothing)
    patch.setattr(member_timers, "limit_revocation", nothing)


def last_task_forgotten(patch: Any) -> None:
    right = target._compute

    def compute(*args: Any) -> Any:
        found = right(*args)
        for member_id, tasks in found.items():
            for subtopology, numbers in tasks.active.items():
                rest = {**tasks.active, subtopology: numbers - {max(numbers)}}
                kept = {name: left for name, left in rest.items() if left}
                return {**found, member_id: replace(tasks, active=kept or NO_TASKS)}
        return found

    patch.setattr(target, "_compute", compute)


def standby_beside_its_active(patch: Any) -> None:
    right = target._compute

    def compute(*args: Any) -> Any:
        found = right(*args)
        return {member_id: replace(tasks, standby=tasks.active) for member_id, tasks in found.items()}

    patch.setattr(target, "_compute", compute)


def internal_topics_not_asked_for(patch: Any) -> None:
    patch.setattr(heartbeat, "_want", nothing)


def changed_topics_not_noticed(patch: Any) -> None:
    right = heartbeat._look

    def look(step: Any, group: Any, topology: Any) -> Any:
        known = group.configured
        return right(step, group, topology) if known is None else heartbeat.Looked(0, known, False)

    patch.setattr(heartbeat, "_look", look)


def tombstone_of_the_tasks_dropped(patch: Any) -> None:
    def remove(step: Any, group: Any, member_id: str) -> None:
        name = group.group_id
        step.write(r.StreamsGroupCurrentMemberAssignmentKey(group_id=name, member_id=member_id), None)
        step.write(r.StreamsGroupMemberMetadataKey(group_id=name, member_id=member_id), None)

    patch.setattr(heartbeat, "remove_member", remove)


def silent_threads_are_kept(patch: Any) -> None:
    patch.setattr(heartbeat, "renew_session", nothing)
    patch.setattr(member_timers, "renew_session", nothing)


def topology_kept_without_a_record(patch: Any) -> None:
    def write(step: Any, group_id: str, topology: Any) -> None:
        def keep() -> None:
            group = step.state.groups.get(group_id)
            if isinstance(group, StreamsGroup):
                group.topology = topology

        step.defer(keep)

    patch.setattr(heartbeat, "write_topology", write)


FAULTS: tuple[Plant, ...] = (
    task_given_before_it_is_free,
    copy_given_beside_the_task,
    task_revocation_not_awaited,
    streams_heartbeat_of_an_old_epoch,
    streams_commit_of_an_old_epoch,
    streams_epoch_stays_when_a_thread_goes,
    task_revocation_may_take_for_ever,
    last_task_forgotten,
    standby_beside_its_active,
    internal_topics_not_asked_for,
    changed_topics_not_noticed,
    tombstone_of_the_tasks_dropped,
    silent_threads_are_kept,
    topology_kept_without_a_record,
)
