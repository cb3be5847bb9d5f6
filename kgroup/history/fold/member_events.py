"""Members that join, change and leave, and rebalances that end: events of all kinds of groups."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from kgroup.domain import MemberStatus, TopicPartition, partitions_text
from kgroup.history.fold import applications
from kgroup.history.fold.events import Kind, duration_text
from kgroup.history.fold.explain import Membership, labels
from kgroup.history.fold.leave_causes import Way, way_out
from kgroup.history.fold.tasks import TaskSets
from kgroup.history.fold.transition import Carry, Fields, GroupStep, Start
from kgroup.history.fold.view import CLASSIC, CONSUMER, RecordedMember

SLOW_MS = 1000
"""From here on a rebalance names the member that held it up."""
_TAKEN_OVER = "it was restarted, or two run with one instance id: the records do not say"


def report_members(step: GroupStep, carry: Carry, members: Membership) -> None:
    """Report who joined, who left, and who was replaced, in this order."""
    report_joined(step, carry, members)
    report_gone(step, carry, members)


def report_gone(step: GroupStep, carry: Carry, members: Membership) -> None:
    """Report members that left, and those that were replaced."""
    for member in members.left:
        report_left(step, member, carry)
    report_replaced(step, members)


def report_joined(step: GroupStep, carry: Carry, members: Membership) -> None:
    """Report members that were not there before."""
    for member in members.joined:
        speaks = " (classic member)" if step.after.kind == CONSUMER and member.protocol == CLASSIC else ""
        where = f" from {member.host.lstrip('/')}" if member.host else ""
        known = f" as client {member.client_id}" if member.client_id and not member.instance_id else ""
        of = f", process {member.streams.process_id}" if member.streams is not None else ""
        gone = carry.lives.begin(member.member_id, step.timestamp_ms)
        # A process keeps its member id as long as it lives; a new one has a new id.
        again = (
            f"back under its member id {_ago(step, gone)} after it was gone: its process lived on"
            if gone is not None
            else None
        )
        step.report(
            Kind.MEMBER_JOINED,
            f"{member.label}{speaks} joined{known}{where}{of}",
            member,
            cause=again,
            client=member.client,
        )


def report_left(step: GroupStep, member: RecordedMember, carry: Carry) -> None:
    """Report a member that is gone, with what it owned."""
    held = f", held {partitions_text(member.holds)}" if member.holds else ""
    if member.streams is not None:
        held = f", held {member.streams.holds.text}"
    elif share := applications.share(step.before, member):
        held += f" ({share})"
    joined = carry.lives.end(member.member_id, step.timestamp_ms)
    since = _given_up(step, carry, member)
    ways, cause = way_out(member, step.timestamp_ms, joined, step.offsets)
    if since is not None:
        # A member that does not revoke within its rebalance timeout is fenced (KIP-848; CP-17, CP-28).
        due = partitions_text(member.revoking) if member.streams is None else member.streams.revoking.text
        held += f", had to give up {due} for {_ago(step, since)}"
    elif (told := _told_to_rejoin(step, carry, member)) is not None:
        held += f", had not rejoined for {_ago(step, told)}"
    late_since = told if since is None else since
    if late_since is not None and step.timestamp_ms - late_since >= member.rebalance_timeout_ms > 0:
        held += f", its whole rebalance timeout of {duration_text(member.rebalance_timeout_ms)}"
        ways = (Way.FENCED, *ways)
        if since is None:
            cause = "removed for that, unless it left, or an admin removed it"
    step.ways[member.member_id] = ways
    step.report(
        Kind.MEMBER_LEFT_OR_EXPIRED,
        f"{labels((member,))} is gone{held}",
        member,
        cause=cause,
        partitions=tuple(sorted(member.holds)),
        proven=False,
        client=member.client,
    )


def _ago(step: GroupStep, since: int) -> str:
    return duration_text(max(0, step.timestamp_ms - since))


def _told_to_rejoin(step: GroupStep, carry: Carry, member: RecordedMember) -> int | None:
    """Return since when a classic member of a consumer group is told to rejoin; None if it is not."""
    missed = member.protocol == CLASSIC and step.before.kind == CONSUMER and carry.started
    return carry.started[0].at_ms if missed and member.epoch < step.before.assignment_epoch else None


def report_replaced(step: GroupStep, members: Membership) -> None:
    """Report members that replaced others with their instance ids."""
    for old, new in members.replaced:
        # Only a member that left for now (epoch -2, CP-15) is known to be gone; else two processes may share
        # the id, and the newer fences the older (KIP-345; SM-33).
        away = old.state == MemberStatus.LEFT
        if old.protocol != new.protocol:
            how = f"now speaks the {new.protocol} protocol, under a new member id"
        elif away:
            how = "came back under a new member id"
        else:
            # Other clients or hosts are other processes.
            was, now = (f"client {m.client_id} on {m.host.lstrip('/')}" for m in (old, new))
            holders = (
                f": the first process that had it was {now}, and brokers do not record which one has it now"
            )
            if not new.client_id:
                holders = ""
            elif was != now:
                holders = f": {now} took it over from {was}"
            # ClassicGroup.replaceStaticMember changes only the member id (KIP-345; SM-33).
            elif step.after.kind != CLASSIC:
                holders = f": {now} as before"
            how = f"has a new member id{holders}; a process with the old one is fenced"
        step.report(
            Kind.MEMBER_REPLACED,
            f"{new.label} {how}",
            new,
            cause=None if away else _TAKEN_OVER,
            proven=away,
            partitions=tuple(sorted(new.holds)),
        )


def report_settings(step: GroupStep, members: Membership) -> None:
    """Report other subscriptions, clients, hosts, racks and assignors."""
    for _, new in members.resubscribed:
        now = ", ".join(new.topics) or "no topics"
        regex = f", regex {new.regex}" if new.regex else ""
        step.report(Kind.SUBSCRIPTION_CHANGED, f"{new.label} subscribes to {now}{regex}", new)
    for old, new in members.kept:
        # Without a client id record 5 has not been read: the member's first one updates nothing.
        if (old.client_id, old.host, old.rack_id) != (new.client_id, new.host, new.rack_id) and old.client_id:
            text = f"{new.label} is {new.client_id} on {new.host.lstrip('/')} now"
            step.report(Kind.MEMBER_UPDATED, text, new)
    before, after = step.before.assignor, step.after.assignor
    if before != after and before and after:
        step.report(Kind.ASSIGNOR_CHANGED, f"assignor {before} → {after}")


def report_regressed(step: GroupStep) -> bool:
    """Report an epoch that went back: only lost or foreign records explain it."""
    if step.after.epoch >= step.before.epoch or step.before.kind != step.after.kind:
        return False
    step.report(
        Kind.EPOCH_REGRESSED,
        f"suspicious: the group's epoch went back from {step.before.epoch} to {step.after.epoch}",
        suspicious=True,
    )
    return True


def count_revoking(step: GroupStep, carry: Carry, member: RecordedMember) -> None:
    """Note since when a member has to give something up."""
    # Counted from the first record on: further epochs do not give a member more time (CP-17).
    if member.state == MemberStatus.REVOKING:
        carry.revoking.setdefault(member.member_id, step.timestamp_ms)
    else:
        _given_up(step, carry, member)


def _given_up(step: GroupStep, carry: Carry, member: RecordedMember) -> int | None:
    """Return since when a member had to give up what it has given up now; None if it had not to."""
    since = carry.revoking.pop(member.member_id, None)
    if since is not None:
        took = step.timestamp_ms - since
        carry.slowest = max(carry.slowest or (0, ""), (took, member.label))
    return since


def report_started(step: GroupStep, carry: Carry, cause: str, *, proven: bool) -> None:
    """Report a new epoch, which begins a rebalance."""
    before, after = step.before.epoch, step.after.epoch
    cause, proven = step.caused(cause, proven)
    carry.started.append(Start(step.timestamp_ms, cause, proven))
    epochs = f"epoch {before} → {after}" if before >= 0 else f"epoch {after}"
    step.report(Kind.REBALANCE_STARTED, epochs, cause=cause, proven=proven)


def report_reconciliation(step: GroupStep, carry: Carry, members: Membership) -> None:
    """Report each member's step towards its target, with the partitions that are read again."""
    old = {new.member_id: old for old, new in (*members.kept, *members.replaced)}
    for member in sorted(step.after.members.values(), key=lambda m: m.label):
        was = old.get(member.member_id)
        if was is member:
            continue
        got = sorted(u for u in step.unowned if TopicPartition(u.topic, u.partition) in member.holds)
        more: Fields = {
            "unowned": tuple(got),
            "partitions": tuple(sorted(member.holds)),
            "member_epoch": member.epoch,
        }
        count_revoking(step, carry, member)
        if member.state == MemberStatus.LEFT and (was is None or was.state != MemberStatus.LEFT):
            text = f"{labels((member,))} left for now and keeps {_text(_parts(member).holds)}"
            step.report(Kind.MEMBER_LEFT_FOR_NOW, text, member, **more)
        # One that rejoins, or comes back from -2 (CP-15), begins at epoch 0 again: only a lower epoch above 0
        # is a regression.
        elif was is not None and 0 < member.epoch < was.epoch:
            text = f"suspicious: the epoch of {member.label} went back from {was.epoch} to {member.epoch}"
            step.report(Kind.EPOCH_REGRESSED, text, member, suspicious=True, **more)
        # A conversion writes the place of each member anew, also of those that it does not move.
        elif was is None or _place(was) != _place(member) or step.before.kind != step.after.kind:
            _report_place(step, was, member, more)


def _report_place(step: GroupStep, was: RecordedMember | None, member: RecordedMember, more: Fields) -> None:
    now, who = _parts(member), labels((member,))
    given = _parts(was).holds - now.holds if was is not None else None
    gave = f", gave up {_text(given)}" if given else ""
    has = f"{'owns' if member.streams is None else 'has'} {_text(now.has)}"
    if member.state == MemberStatus.REVOKING:
        step.report(Kind.MEMBER_REVOKING, f"{who} has to give up {_text(now.revoking)}", member, **more)
    elif member.state == MemberStatus.WAITING:
        text = f"{who} {has}, waits for {_text(now.target - now.has)}{gave}"
        step.report(Kind.MEMBER_WAITING, text, member, **more)
    elif member.state == MemberStatus.STABLE and member.epoch > 0:
        step.report(Kind.MEMBER_RECONCILED, f"{who} {has} at epoch {member.epoch}{gave}", member, **more)


Units: TypeAlias = Any
"""A set of partitions, or tasks."""


class _Parts(NamedTuple):
    """What a member has, must give up and should have, and the first two together: partitions, or tasks."""

    has: Units
    revoking: Units
    target: Units
    holds: Units


def _parts(member: RecordedMember) -> _Parts:
    tasks = member.streams
    if tasks is not None:
        return _Parts(tasks.has, tasks.revoking, tasks.target, tasks.holds)
    return _Parts(member.assigned, member.revoking, member.target or frozenset(), member.holds)


def _text(parts: Units) -> str:
    return str(parts.text) if isinstance(parts, TaskSets) else partitions_text(parts)


def _place(member: RecordedMember) -> tuple[MemberStatus, int, object]:
    return member.state, member.epoch, _parts(member).holds


def report_finished(step: GroupStep, carry: Carry, how: str = "") -> None:
    """Report that the group converged (`how`: and with what), or lost its last member."""
    after = step.after
    if not after.members:
        if step.before.members:
            carry.started.clear()
            gone = labels(step.before.members.values())
            step.report(Kind.GROUP_EMPTIED, "no members left", cause=f"{gone} left or expired", proven=False)
        return
    # Without a start on record (in a gap, or before a conversion) there is no rebalance to complete.
    if not after.converged or not carry.started:
        return
    took = max(0, step.timestamp_ms - carry.started[0].at_ms)
    cause = "; then ".join(dict.fromkeys(start.cause for start in carry.started))
    proven = all(start.proven for start in carry.started)
    if carry.slowest is not None and carry.slowest[0] >= SLOW_MS:
        longest, who = carry.slowest
        how += f"; the longest wait for partitions was {duration_text(longest)}, for {who}"
    carry.slowest = None
    carry.started.clear()
    carry.conversion = None
    count = len(after.members)
    everyone = "the only member" if count == 1 else f"all {count} members"
    step.report(
        Kind.REBALANCE_COMPLETED,
        f"{everyone} reached epoch {after.epoch}, {duration_text(took)} after it began{how}",
        cause=cause,
        proven=proven,
        unowned=step.unowned,
    )
