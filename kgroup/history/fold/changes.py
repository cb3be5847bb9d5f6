"""Turns the difference between two states of a group into events; the fold calls it per batch."""

from __future__ import annotations

from kgroup.domain import count_of, partitions_text
from kgroup.history.fold import applications
from kgroup.history.fold.events import Event, Kind, duration_text
from kgroup.history.fold.explain import Membership, cause_of_rebalance, labels
from kgroup.history.fold.leave_causes import last_commit
from kgroup.history.fold.member_events import (
    report_finished,
    report_gone,
    report_members,
    report_reconciliation,
    report_regressed,
    report_settings,
    report_started,
)
from kgroup.history.fold.removals import Age
from kgroup.history.fold.share_changes import report_share
from kgroup.history.fold.streams_changes import report_streams
from kgroup.history.fold.transition import Carry, GroupStep, Start
from kgroup.history.fold.view import CLASSIC, CONSUMER, KINDS, SHARE, SIMPLE, STREAMS


def report_changes(step: GroupStep, carry: Carry) -> list[Event]:
    """Return all events of a step, in the order in which they make sense to a reader."""
    before, after = step.before, step.after
    members = Membership.between(before, after)
    carry.absences.take(members, step.timestamp_ms, step.first_offset, _signs_of_life(step, carry, members))
    # One group that continues (KIP-848, "Supporting Online Consumer Group Upgrade"), not two groups.
    if before.kind == CLASSIC and after.kind == CONSUMER:
        _converted(step, carry, members, Kind.UPGRADED)
        _consumer(step, carry, members)
    elif before.kind == CONSUMER and after.kind == CLASSIC:
        _converted(step, carry, members, Kind.DOWNGRADED)
        # Remaining members must rejoin first; the generation that this makes is a record of its own.
        report_gone(step, carry, members)
    elif before.kind in KINDS and after.kind in KINDS and before.kind != after.kind:
        # A change into or out of another group type that is not a conversion of its members.
        carry.started.clear()
        carry.conversion = None
        was = "" if before.members else ": the group was empty"
        step.report(
            Kind.DOWNGRADED if after.kind == CLASSIC else Kind.UPGRADED,
            f"{before.kind} → {after.kind}{was}",
            cause=f"a first member of the {after.kind} protocol joined, and the group had no others",
        )
        _own(step, carry, members)
    elif after.kind in KINDS and before.kind not in KINDS:
        _created(step, carry, members)
    elif after.kind in KINDS:
        _REPORTS[after.kind](step, carry, members)
    elif before.kind in KINDS and after.kind not in KINDS:
        _deleted(step, carry)
    return step.events


def _signs_of_life(step: GroupStep, carry: Carry, members: Membership) -> dict[str, int]:
    """Return the last commit of what each member owned that left, made while it was there; by member id."""
    joined = carry.lives.joined
    return {m.member_id: last_commit(m, joined.get(m.member_id), step.offsets) for m in members.left}


def _own(step: GroupStep, carry: Carry, members: Membership) -> None:
    """Report the changes of a group that is new as one of its kind."""
    if step.after.kind != CLASSIC or step.after.members:
        _REPORTS[step.after.kind](step, carry, members)


def _created(step: GroupStep, carry: Carry, members: Membership) -> None:
    after = step.after
    if not step.solid:
        # For members from before the first remaining record, it is unknown who joined and why.
        count = len(after.members)
        what = f"first seen here, with {count_of(count, 'member')}: earlier records are gone"
        step.report(Kind.GROUP_CREATED, what, proven=False, previous_epoch=-1)
        if after.kind == CLASSIC and after.members:
            _completed(step, _GONE, proven=False)
        elif not after.converged:
            carry.started.append(Start(step.timestamp_ms, _GONE, proven=False))
        return
    known = "; its offsets were there before it" if step.before.kind == SIMPLE else ""
    step.report(Kind.GROUP_CREATED, f"{_KIND_NAMES[after.kind]} created{known}", previous_epoch=-1)
    _own(step, carry, members)


_GONE = "the records before it are gone"
_KIND_NAMES = {
    CLASSIC: "classic group",
    CONSUMER: "consumer group (KIP-848)",
    STREAMS: "streams group (KIP-1071)",
    SHARE: "share group (KIP-932)",
}


def _deleted(step: GroupStep, carry: Carry) -> None:
    carry.started.clear()
    carry.conversion = None
    with_offsets = f", with the offsets of {partitions_text(step.removed)}" if step.removed else ""
    # Expiry removes no offset younger than the retention (KIP-211), but an admin may.
    cause, proven = step.today.cause_of_deletion(step.age), step.age is Age.YOUNG
    if step.before.kind == SHARE:
        cause, proven = "deleted by an admin: a share group does not expire", True
    step.report(
        Kind.GROUP_DELETED,
        f"group removed{with_offsets}",
        partitions=step.removed,
        epoch=-1,
        cause=cause,
        proven=proven,
    )


def _converted(step: GroupStep, carry: Carry, members: Membership, kind: Kind) -> None:
    up = kind is Kind.UPGRADED
    how = "classic → consumer" if up else "consumer → classic"
    if not step.before.members:
        step.report(kind, f"{how}: the group was empty", cause="a first member of the other protocol joined")
        return
    if up:
        cause = f"{labels(members.joined) or 'a member'} joined with the consumer protocol"
    else:
        gone = (*members.left, *(old for old, _ in members.replaced))
        cause = f"{labels(gone)}, the last member of the consumer protocol, left, expired or was replaced"
    count = len(step.after.members)
    step.report(kind, f"{how}, {count_of(count, 'member')}", cause=cause)
    carry.started.clear()
    carry.conversion = f"the {'upgrade' if up else 'downgrade'} at offset {step.first_offset}"


def _classic(step: GroupStep, carry: Carry, members: Membership) -> None:
    before, after = step.before, step.after
    report_regressed(step)
    report_members(step, carry, members)
    report_settings(step, members)
    if before.leader and after.leader and before.leader != after.leader:
        # A leader that restarts stays the leader under its new member id (KIP-345; SM-39).
        leader = after.members.get(after.leader)
        same = any(new is leader and old.member_id == before.leader for old, new in members.replaced)
        if leader is not None and not same:
            step.report(Kind.LEADER_CHANGED, f"{leader.label} leads the group now", leader)
    # A static member that returns to a stable group causes no rebalance (KIP-345; SM-26, SM-39).
    if after.epoch == before.epoch:
        return
    if not after.members:
        carry.started.clear()
        cause = f"{labels(members.left)} left or expired" if members.left else None
        step.report(Kind.GROUP_EMPTIED, "no members left", cause=cause, proven=False)
        return
    cause, proven = cause_of_rebalance(before, after, members, step.given_up, step.unowned)
    # A downgrade rebalances by itself, with nothing in the group changed.
    if not proven and carry.conversion:
        cause, proven = f"{carry.conversion}: the remaining members had to rejoin", True
    carry.conversion = None
    cause, proven = step.caused(cause, proven)
    _completed(step, cause, proven=proven)


def _completed(step: GroupStep, cause: str, *, proven: bool) -> None:
    step.report(
        Kind.REBALANCE_COMPLETED,
        _classic_rebalance(step),
        cause=cause,
        proven=proven,
        unowned=step.unowned,
        partitions=tuple(sorted(p for m in step.after.members.values() for p in m.assigned)),
    )


def _classic_rebalance(step: GroupStep) -> str:
    after, skipped = step.after, step.after.epoch - step.before.epoch - 1
    count = len(after.members)
    text = f"generation {after.epoch}, {count_of(count, 'member')}, {after.assignor}"
    parts = [
        applications.share(after, m) or f"{m.label} {partitions_text(m.assigned)}"
        for m in after.members.values()
    ]
    text += ": " + "; ".join(sorted(parts)[:8]) + ("; …" if count > 8 else "")
    # From value version 2 on (SM-19) the record says when its state began: at the last join.
    if after.state_timestamp_ms >= 0 and step.timestamp_ms - after.state_timestamp_ms > 1000:
        waited = duration_text(step.timestamp_ms - after.state_timestamp_ms)
        leader = after.members.get(after.leader or "")
        whose = f" ({leader.label})" if leader is not None else ""
        text += f"; {waited} from the last join to the leader's assignment{whose}"
    if skipped > 0 and step.before.epoch >= 0 and step.before.kind == after.kind:
        text += f"; {skipped} before it did not complete, or their records are gone"
    return text


def _consumer(step: GroupStep, carry: Carry, members: Membership) -> None:
    before, after = step.before, step.after
    report_regressed(step)
    report_members(step, carry, members)
    for _, new in members.returned:
        step.report(Kind.MEMBER_JOINED, f"{labels((new,))} came back", new)
    report_settings(step, members)
    for regex, topics in after.regexes.items():
        if before.regexes.get(regex) != topics:
            matching = ", ".join(topics) or "no topics"
            step.report(Kind.REGEX_RESOLVED, f"{regex} matches {matching}")
    for regex in before.regexes.keys() - after.regexes.keys():
        step.report(Kind.REGEX_REMOVED, f"no member subscribes to {regex} any more")
    if after.epoch > before.epoch or before.kind != CONSUMER:
        cause, proven = cause_of_rebalance(before, after, members)
        # If members changed too, the metadata changed because other topics are subscribed to now.
        if not members.joined and not members.left and before.metadata_hash != after.metadata_hash:
            step.report(Kind.TOPICS_CHANGED, "the metadata of subscribed topics changed", cause=cause)
        report_started(step, carry, cause, proven=proven)
    if after.assignment_epoch > before.assignment_epoch or before.kind != CONSUMER:
        step.report_target([f"{m.label} {partitions_text(m.target or ())}" for m in after.members.values()])
    report_reconciliation(step, carry, members)
    report_finished(step, carry)


_REPORTS = {CLASSIC: _classic, CONSUMER: _consumer, STREAMS: report_streams, SHARE: report_share}
