"""A consumer group that expects members: which its target waits for, which are active, which take over.

Off without the settings (SM-80 to SM-85, OC-06, OC-07; `coordinator.roster`). Each computation decides
again which members it is for; standbys are the members with a target of no partitions.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import partial

from kgroup.coordinator.assignors.interface import Assignment, GroupSpec
from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.consumer.member import ConsumerMember
from kgroup.coordinator.records import write_target, write_target_epoch
from kgroup.coordinator.roster import Hold, Roster
from kgroup.coordinator.state import Step


def awaits_others(step: Step, group: ConsumerGroup, epoch: int, after: ConsumerMember) -> bool:
    """Return whether the target of `epoch` waits for expected members.

    The first target waits for all of them. A later one waits only while joins of registered ids alone ask
    for it: released partitions must not lie idle for members that are still to join.
    """
    roster = step.state.roster_of(group.group_id)
    if roster is None:
        return False
    hold = _present_hold(step, group)
    first = not group.targets if hold is None else hold.first
    if not _is_awaited(roster, group, after, first=first):
        return False
    if hold is None or hold.epoch != epoch:
        if not (first or _only_joins(roster, group, hold, after)):
            return False
        until_ms = step.now_ms + _wait(roster, group, after) if hold is None else hold.until_ms
        hold = Hold(epoch, until_ms, first)
        step.defer(partial(step.state.holds.__setitem__, group.group_id, hold))
    return step.now_ms < hold.until_ms


def only_active(step: Step, group: ConsumerGroup, spec: GroupSpec) -> GroupSpec:
    """Return the spec without the standbys of a group with a target size (SM-83).

    Active are those with partitions, then those that read anything at all, in the order in which they joined.
    """
    roster = step.state.roster_of(group.group_id)
    if roster is None or roster.target_size is None or len(spec.members) <= roster.target_size:
        return spec
    ranked = sorted(spec.members, key=lambda m: (not spec.members[m].current, not spec.members[m].topic_ids))
    active = set(ranked[: roster.target_size])
    return replace(spec, members={m: member for m, member in spec.members.items() if m in active})


def take_over(step: Step, group: ConsumerGroup, gone: Collection[ConsumerMember], epoch: int) -> None:
    """Give the whole targets of removed members to standbys, as the target of `epoch` (SM-84).

    If too few of them read the topics, the next heartbeat computes the target, as usual.
    """
    roster = step.state.roster_of(group.group_id)
    if roster is None or roster.target_size is None or not group.targets:
        return
    leavers = {member.member_id for member in gone}
    idle = [
        m for m in group.members.values() if m.member_id not in leavers and not group.target_of(m.member_id)
    ]
    filled = True
    for member in gone:
        lost = group.target_of(member.member_id)
        if not lost:
            continue
        heir = next((m for m in idle if _covers(step, group, m, lost)), None)
        filled = filled and heir is not None
        if heir is not None:
            idle.remove(heir)
            write_target(step, group, heir.member_id, lost)
    # A target that was due before is due still.
    if filled and len(leavers) < len(group.members) and group.assignment_epoch == group.epoch:
        write_target_epoch(step, group, epoch, step.now_ms)


def _is_awaited(roster: Roster, group: ConsumerGroup, after: ConsumerMember, *, first: bool) -> bool:
    present = set(group.static)
    if after.instance_id is not None:
        present.add(after.instance_id)
    if not first:
        return bool(roster.missing(present))
    return roster.is_awaited(present, len(group.members.keys() | {after.member_id}))


def _only_joins(roster: Roster, group: ConsumerGroup, hold: Hold | None, after: ConsumerMember) -> bool:
    """Return whether a registered member joins a group whose target is up to date otherwise."""
    joins = after.member_id not in group.members and after.instance_id in roster.registered
    return joins and (
        group.assignment_epoch == group.epoch or (hold is not None and hold.epoch == group.epoch)
    )


def _present_hold(step: Step, group: ConsumerGroup) -> Hold | None:
    """Return the hold in force: none once its target has been computed, or its members are gone."""
    hold = step.state.holds.get(group.group_id)
    return None if hold is None or group.is_empty or group.assignment_epoch >= hold.epoch else hold


def _wait(roster: Roster, group: ConsumerGroup, after: ConsumerMember) -> int:
    if roster.wait_ms is not None:
        return roster.wait_ms
    members = (*group.members.values(), after)
    return max(member.metadata.rebalance_timeout_ms for member in members)


def _covers(step: Step, group: ConsumerGroup, member: ConsumerMember, lost: Assignment) -> bool:
    """Return whether the member reads the topics of the target."""
    by_name = step.state.image.by_name
    return lost.keys() <= {by_name[name].topic_id for name in group.topics_of(member) if name in by_name}
