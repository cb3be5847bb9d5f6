"""The checks of a check-up beyond the description: log starts, settings, history, a second poll."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from kgroup.admin.codes import CODES, DAMAGED_LOG, SPARE, UNSTORED, UNTRANSACTED
from kgroup.admin.diagnose.deleted_offsets import lost, matching_nothing
from kgroup.admin.diagnose.deliveries import standing_still
from kgroup.admin.diagnose.facts import OPEN_S, SESSION_TIMEOUT, Facts
from kgroup.admin.diagnose.given_up import all_given_up, came_back, given_up, known_deliveries, rejected
from kgroup.admin.diagnose.group_size import full
from kgroup.admin.diagnose.missing_members import awaited, dropping, missing, too_few
from kgroup.admin.diagnose.rebalances import flapping, outside, reads_outside, restless
from kgroup.admin.diagnose.restarts import slow_restarts
from kgroup.admin.diagnose.set_back import set_back
from kgroup.admin.diagnose.stalled_readers import stopped
from kgroup.admin.diagnose.unread import deleted_soon, held_back
from kgroup.admin.diagnose.wording import END_IT, Found, name_of, removal_of, transaction_text, whereabouts
from kgroup.admin.models import (
    CLASSIC,
    COMPLETING,
    CONSUMER,
    CONVERGING,
    SHARE,
    STREAMS,
    Finding,
    Member,
    Node,
    Severity,
)
from kgroup.admin.read.findings import SHOWN, beyond_end, scope_text, some
from kgroup.admin.read.group_facts import computes_target
from kgroup.admin.read.readable import CLOCK_UNSURE
from kgroup.admin.settings import OFFSETS_RETENTION
from kgroup.admin.shell import command
from kgroup.admin.statuses import ERROR, WARN, PartitionStatus, Unseen
from kgroup.domain import MemberStatus, count_of
from kgroup.durations import utc
from kgroup.history.fold.events import Event, Kind
from kgroup.history.fold.view import RecordedMember

STUCK_ONLINE_S = 60
"""The age in the log from which a consumer group's rebalance counts as stuck.

A consumer group keeps reading while its members confirm one by one. A classic group reads nothing during a
rebalance, and its log does not show when it began: it is stuck when patience runs out.
"""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A finding with its `evidence`: facts in words, each with its source."""

    code: str
    severity: Severity
    message: str
    hint: str | None
    evidence: tuple[str, ...] = ()


_FOLLOWING: Mapping[str, frozenset[str]] = {
    UNSTORED: frozenset({"KG101", "KG102", "KG111", "KG112", "KG306", "KG310", "KG320"}),
    UNTRANSACTED: frozenset({"KG111", "KG119", "KG306", "KG310", "KG320"}),
}
"""Findings that come of a coordinator that can store nothing: then they say nothing of the members."""


def diagnoses(facts: Facts) -> Iterator[Diagnosis]:
    """Yield the description's findings, with evidence, and what the facts prove beyond it."""
    diagnoses = list(_diagnoses(facts))
    causes = {diagnosis.code for diagnosis in diagnoses if diagnosis.severity == ERROR} & _FOLLOWING.keys()
    for diagnosis in diagnoses:
        cause = next((code for code in sorted(causes) if diagnosis.code in _FOLLOWING[code]), None)
        if cause is not None:
            hint = f"see {cause} first: while nothing is stored, what members do does not show"
            yield replace(diagnosis, hint=hint)
        elif facts.one_leader is not None and (diagnosis.code, diagnosis.severity) in _STANDING_STILL:
            yield _of_one_leader(diagnosis, facts.one_leader)
        else:
            yield diagnosis


_STANDING_STILL = (("KG306", ERROR), ("KG310", ERROR), ("KG310", WARN))


def _of_one_leader(diagnosis: Diagnosis, leader: Node) -> Diagnosis:
    """Return a finding of partitions that stand still with what they have in common."""
    broker = f"broker {leader.id} at {leader.host}:{leader.port}"
    alike = f"{broker} leads all of them, and no partition that it leads is read; others are"
    hint = f"see whether the clients reach {broker}; else {diagnosis.hint}"
    return replace(diagnosis, hint=hint, evidence=(*diagnosis.evidence, alike))


def _diagnoses(facts: Facts) -> Iterator[Diagnosis]:
    for finding in _described(facts):
        if finding.code == "KG119" and reads_outside(facts):
            continue  # KG120 reports who reads without a membership
        evidence = tuple(_evidence(finding.code, facts))
        yield Diagnosis(finding.code, finding.severity, finding.message, finding.hint, evidence)
    yield from _of_partitions(facts)
    yield from _given_up(facts)
    for code, check in _CHECKS.items():
        for message, hint, shown in check(facts):
            yield Diagnosis(code, CODES[code].severity, message, hint, tuple(shown))


def _given_up(facts: Facts) -> Iterator[Diagnosis]:
    """Yield records that share groups gave up: an error where they finish none between."""
    for message, hint, shown in given_up(facts):
        every = tuple(all_given_up(facts))
        severity = ERROR if every else CODES["KG316"].severity
        yield Diagnosis("KG316", severity, message, hint, (*every, *shown))


def _described(facts: Facts) -> Iterator[Finding]:
    """Yield the description's findings without the partitions that KG319, or an error, reports."""
    recreated = {partition for partition, _ in facts.placed(PartitionStatus.RECREATED)}
    begun = {status.weight for _, _, status in facts.with_status(PartitionStatus.NOT_BEGUN)}
    if facts.untransacted is not None:
        yield facts.untransacted
    for finding in facts.group.findings:
        if finding.code == "KG306" and begun == {ERROR}:
            continue
        if finding.code != "KG301" or not recreated:
            yield finding
            continue
        # An offset of the former topic may lie beyond the end of the new one: the same cause.
        rest = tuple(row for partition, row in facts.rows if partition not in recreated)
        for message, hint in beyond_end(replace(facts.group, offsets=rest), {}):
            yield replace(finding, message=message, hint=hint)


def _evidence(code: str, facts: Facts) -> Iterator[str]:
    """Yield what the facts add to a finding of the description."""
    if code in ("KG101", "KG102"):
        yield from _half_way(facts, code)
    elif code == "KG118":
        yield from known_deliveries(facts)
    elif code == "KG119":
        left = _last(facts.history, Kind.MEMBER_LEFT_OR_EXPIRED)
        if left is not None:
            yield f"the last member was gone at {utc(left.timestamp_ms)}: {left.detail}"
    elif code == "KG103":
        yield from _when_the_absent_expire(facts)
    elif code == "KG304" and facts.retention_ms and facts.history:
        end = utc(_last_write(facts.history) + facts.retention_ms)
        # A classic group's offsets live from when it became empty, others' each from its commit.
        every = "none before" if facts.group.type == CLASSIC else "the last not before"
        yield f"{every} {end}: {OFFSETS_RETENTION} after the group's newest record"


def _half_way(facts: Facts, code: str) -> Iterator[str]:
    """Yield since when members move to their target, and what bounds it."""
    started = next(reversed(facts.starts), None)
    completed = _last(facts.history, Kind.REBALANCE_COMPLETED)
    if started and (completed is None or completed.timestamp_ms < started.timestamp_ms):
        since = f"rebalancing since {utc(started.timestamp_ms)}"
        yield f"{since}, begun by: {started.cause or started.detail} (log offset {started.offset})"
    recorded = facts.recorded_members if code == "KG101" else {}
    for member in recorded.values():
        if member.state == MemberStatus.REVOKING and started:
            yield _deadline(facts, member, started.timestamp_ms)
    for described in facts.group.known_members:
        known = recorded.get(described.member_id)
        if described.state == MemberStatus.REVOKING and known and known.state == MemberStatus.STABLE:
            # Its next heartbeat would have left a record, and begun its time.
            silent = "has sent no heartbeat since its target changed"
            yield f"{whereabouts(known)} {silent}: without one it is removed after {SESSION_TIMEOUT}"


def _when_the_absent_expire(facts: Facts) -> Iterator[str]:
    session = facts.session_ms
    for member in facts.group.known_members:
        if member.state != MemberStatus.LEFT:
            continue
        left = [
            event.timestamp_ms
            for event in facts.history or ()
            if event.kind == Kind.MEMBER_LEFT_FOR_NOW and event.instance_id == member.instance_id
        ]
        if left and session:
            yield f"{member.name} left at {utc(left[-1])}, its session ends at {utc(left[-1] + session)}"
        elif session:
            yield f"{member.name}'s session ends within {session / 1000:g} s ({SESSION_TIMEOUT})"


class _Late(NamedTuple):
    """A member that has to confirm an epoch, as the records and as the description have it.

    `missed` is the start of the first epoch that it did not confirm.
    """

    recorded: RecordedMember | None
    member: Member
    state: MemberStatus
    missed: Event

    @property
    def is_classic(self) -> bool:
        """Whether it confirms by joining again, when a heartbeat tells it to."""
        return self.member.protocol == CLASSIC


class _Waiting(NamedTuple):
    """A rebalance that goes on: since which epoch, and whom it waits for."""

    started: Event
    late: list[_Late]


def _waiting(facts: Facts) -> _Waiting | None:
    """Return what a group of the newer protocols waits for; None where it waits for no confirmation."""
    if facts.group.type not in (CONSUMER, STREAMS) or facts.group.state not in CONVERGING:
        return None
    started = next(reversed(facts.starts), None)
    completed = _last(facts.history, Kind.REBALANCE_COMPLETED)
    if started is None or (completed is not None and completed.timestamp_ms >= started.timestamp_ms):
        return None
    # Only records show what a member has to revoke of a deleted topic: brokers omit it.
    now = {m.member_id: (facts.recorded_members.get(m.member_id), m) for m in facts.group.known_members}
    done = (MemberStatus.STABLE, MemberStatus.WAITING)
    late = [
        _Late(member, view, state, _missed(facts, view.member_epoch) or started)
        for member, view in now.values()
        # The record of one that has nothing more to give up does not say that it is an epoch behind.
        if (state := view.state if member is None or member.state in done else member.state) not in done
    ]
    # What one that left for now has waits until it is back or its session ends: KG103 says so.
    there = [each for each in late if each.state != MemberStatus.LEFT]
    if late and not there:
        return None
    first = min((each.missed for each in there), key=lambda event: event.timestamp_ms, default=started)
    return _Waiting(first, there)


def _is_stuck(facts: Facts, waiting: _Waiting) -> bool | None:
    """Return whether it waits for too long; None where no clock shows that."""
    return facts.is_older(waiting.started.timestamp_ms, STUCK_ONLINE_S * 1000)


def unshown(facts: Facts) -> Iterator[Unseen]:
    """Yield what the checks do not find where the group's records, or the clocks, show too little."""
    waiting = _waiting(facts)
    stuck = False if waiting is None else _is_stuck(facts, waiting)
    if waiting is None or stuck:
        return
    if stuck is None:
        why = "nothing was committed for a minute, or this machine's clock is not the brokers'"
        what = f"for how long it is {facts.group.state} is not known: {why}"
        yield replace(CLOCK_UNSURE, message=what)
    # The first epoch that a member missed began before the first one that is left.
    missed = [each for each in waiting.late if 0 < (each.member.member_epoch or 0) < each.missed.epoch - 1]
    lost = facts.lost(-1, f"since when it is {facts.group.state}") if missed else None
    if lost is not None:
        yield lost


def _stuck(facts: Facts) -> Iterator[Found]:
    if facts.rebalanced_throughout:
        yield _stuck_classic(facts)
        return
    waiting = _waiting(facts)
    if waiting is None or not _is_stuck(facts, waiting):
        return
    started, late = waiting
    age_s = facts.age_ms(started.timestamp_ms) / 1000
    known = [(each, each.recorded) for each in late if each.recorded is not None]
    names = [each.member.called if each.recorded is None else name_of(each.recorded) for each in late]
    waited = [f"{name} ({each.state})" for name, each in zip(names, late, strict=True)]
    deadlines = [_deadline(facts, member, each.missed.timestamp_ms) for each, member in known]
    members = facts.group.known_members
    hint = "the coordinator computes it at a heartbeat: none comes, or its assignor fails, as its log says"
    if late:
        removal = removal_of(facts.group.group_id, [member for _, member in known])
        how = "a member confirms within its rebalance timeout, or is removed then"
        if all(each.is_classic for each in late):
            how = "a classic member rejoins at its next poll, or is removed when its rebalance timeout ends"
        hint = f"{how}; {removal} removes it now"
    elif members and not computes_target(facts.group):
        hint = (
            "only a member that joins has it computed, as no member of the consumer protocol is left to send "
            "heartbeats: start one, or restart a member"
        )
    yield (
        f"{facts.group.state} for {age_s:.0f} s: it waits for {', '.join(waited) or 'the assignment'}",
        hint,
        [
            f"epoch {started.epoch} began at {utc(started.timestamp_ms)} (log offset {started.offset})",
            *deadlines[:SHOWN],
            *facts.clock_words,
        ],
    )


def _missed(facts: Facts, epoch: int | None) -> Event | None:
    """Return the start of the first epoch that a member at this one did not confirm; others may follow.

    None for a member that has confirmed none yet: it missed no epoch before it came.
    """
    if not epoch or epoch < 0:
        return None
    return next((event for event in facts.starts if (event.epoch or 0) > epoch), None)


def _stuck_classic(facts: Facts) -> Found:
    """Return the members of the last generation that may not have rejoined: no wire message names them."""
    group, view = facts.group, facts.state
    present = {member.member_id: member.name for member in group.known_members}
    suspects: list[RecordedMember] = []
    hint = ""
    before = {} if view is None else {m: view.members[m] for m in view.members if m in present}
    evidence = [f"seen {group.state} from the first look to the last, {facts.seen_for_s:.0f} s apart"]
    if facts.history is not None and view is not None and view.epoch > 0:
        completed = _last(facts.history, Kind.REBALANCE_COMPLETED)
        at = f" at {utc(completed.timestamp_ms)}" if completed else ""
        evidence.append(f"generation {view.epoch} was complete{at}: the rebalance began after that")
    if group.state == COMPLETING:
        leader = present.get(view.leader or "") if view is not None else None
        waits = (
            f"the assignment of its leader, {leader} when it was last complete" if leader else "its leader"
        )
    elif before:
        suspects = sorted(before.values(), key=lambda m: _last_commit(facts, m))
        one = "one or more of " if len(suspects) > 1 else ""
        waits = f"{one}{', '.join(map(name_of, suspects))} to rejoin"
        for member in suspects:
            last = _last_commit(facts, member)
            committed = f"last committed at {utc(last)}" if last >= 0 else "has committed nothing"
            late = ""
            if member.rebalance_timeout_ms >= 0:
                timeout = f"rebalance timeout {member.rebalance_timeout_ms / 1000:g} s"
                late = f", removed by {utc(facts.now_ms + member.rebalance_timeout_ms)} ({timeout})"
            evidence.append(f"{whereabouts(member)} {committed}{late}")
        since = [name for member_id, name in present.items() if member_id not in before]
        if since:
            evidence.append(f"not waited for: {', '.join(sorted(since))} joined since")
    elif group.registration is not None and group.registration.missing:
        waits = awaited(group.registration)
        hint = (
            f"start the missing, or remove them from the list: {dropping(group, group.registration.missing)}"
        )
    else:
        waits = "a member to rejoin; the records that would show which were not seen"
    return (
        f"{group.state} for at least {facts.seen_for_s:.0f} s, and nothing is read: it waits for {waits}",
        hint or f"look at that member's process; {removal_of(group.group_id, suspects[:1])} removes it",
        evidence,
    )


def _last_commit(facts: Facts, member: RecordedMember) -> int:
    """Return when a partition the member owned was last committed, in ms; -1 for never."""
    return max(map(facts.last_commit_ms, member.holds), default=-1)


def _deadline(facts: Facts, member: RecordedMember, began_ms: int) -> str:
    who = whereabouts(member)
    if gone := facts.log.gone.get(member.member_id):
        who += f" has to give up {some(gone)} of a topic that was deleted or recreated, and"
    elif member.rebalance_timeout_ms < 0:
        return who
    limit_s, until = member.rebalance_timeout_ms / 1000, utc(began_ms + member.rebalance_timeout_ms)
    if member.protocol != CLASSIC:
        return f"{who} is due by {until} (rebalance timeout {limit_s:g} s)"
    # Its time runs from the heartbeat on that is answered so.
    return (
        f"{who} has to rejoin within {limit_s:g} s of the heartbeat that tells it to (its rebalance "
        f"timeout), which ends at {until} at the earliest; without heartbeats its session ends after "
        f"{member.session_timeout_ms / 1000:g} s"
    )


def _open_for_s(facts: Facts) -> float | None:
    """Return for how long a transaction that does not end holds offsets open; None where none does."""
    since_ms, looked_s, usual_s = facts.open_since_ms, facts.open_for_s, 0.0
    if (held := facts.held_open) is not None:
        usual_s = held.usual_ms / 1000
        first_ms = since_ms
        old = [first_ms] if first_ms is not None and first_ms < held.from_ms else []
        since_ms = min([*held.begun_ms.values(), *old], default=None)
        if since_ms != first_ms and (since_ms is None or first_ms is None or since_ms > first_ms):
            looked_s = 0.0  # what was open at the first look has ended
    age_s = max(facts.age_ms(since_ms) / 1000 if since_ms is not None else 0.0, looked_s)
    enough = age_s >= OPEN_S or 0 < facts.patience_s <= looked_s
    return age_s if facts.pending and enough and age_s >= usual_s else None


def _held_open(facts: Facts) -> Iterator[Found]:
    """Yield offsets of a transaction that does not end, though the group's others did in half the time."""
    age_s = _open_for_s(facts)
    if age_s is None:
        return
    evidence = [
        f"producer {producer} wrote the offsets of {count_of(len(commits), 'partition')} from "
        f"{utc(min(commit.timestamp_ms for commit in commits))} on, and no end of its transaction"
        for producer, commits in sorted(facts.open_commits.items())
    ]
    known = facts.open_commits.keys()
    evidence += [
        transaction_text(transaction)
        + (f", its timeout is {transaction.timeout_ms / 1000:g} s" if transaction.timeout_ms >= 0 else "")
        for transaction in facts.transactions
        if not known or transaction.producer_id in known
    ]
    evidence += facts.clock_words
    partitions = sorted(facts.pending)
    if not facts.transactions:
        # Brokers list only the transactions that this principal may describe.
        evidence.append("owner hidden: requires DESCRIBE on the TransactionalId and Kafka 3.0+")
    yield (
        f"offsets of {some(partitions)} are held open by a transaction for at least {age_s:.0f} s",
        END_IT,
        evidence,
    )


def _of_partitions(facts: Facts) -> Iterator[Diagnosis]:
    """Yield what the statuses of partitions show beyond the description: one finding for each cause."""
    for name, (code, message, hint) in _BY_STATUS.items():
        if not facts.placed(name):
            continue
        if facts.group.type == SHARE and name == PartitionStatus.FALLING_BEHIND:
            code, hint = "KG315", "start more members, as several may read one partition: {doctor} once more"
        for weight in (ERROR, WARN):
            affected = [
                (partition, s.why) for partition, _, s in facts.with_status(name) if s.weight == weight
            ]
            if affected:
                logs = count_of(len(affected), "partition")
                scope = f"{scope_text(partition for partition, _ in affected)} --to-earliest"
                yield Diagnosis(
                    code,
                    weight,
                    message.format(some=some(partition for partition, _ in affected), logs=logs),
                    hint.format(
                        capacity=_capacity(facts),
                        doctor=command("doctor", facts.group.group_id),
                        reset=command("reset-offsets", facts.group.group_id, options=scope),
                    ),
                    tuple(f"{partition}: {why}" for partition, why in affected[:SHOWN]),
                )
    if facts.fruitless:
        yield Diagnosis(
            "KG306",
            ERROR,
            f"{some(facts.fruitless)}: members came and went, and committed nothing",
            "look at the log of a member that ended: it fails on its first record, or does not commit",
            tuple(
                f"{partition}: {count_of(ended, 'generation')} ended while records waited"
                for partition, ended in [*facts.fruitless.items()][:SHOWN]
            ),
        )
    for weight in (ERROR, WARN):
        for message, hint, shown in stopped(facts, weight):
            yield Diagnosis("KG310", weight, message, hint, tuple(shown))
        for message, hint, shown in standing_still(facts, weight):
            yield Diagnosis("KG314", weight, message, hint, tuple(shown))


def _capacity(facts: Facts) -> str:
    """Return what helps a group that falls behind: more members only if they get partitions."""
    spare = next((finding for finding in facts.group.findings if finding.code == SPARE), None)
    if spare is not None:
        other = "more partitions" if spare.hint is None else "another assignor"
        return f"{other} or faster processing: it has members with few or no partitions, see {SPARE}"
    return "more members, more partitions or faster processing, or a higher quota of its clients"


_BY_STATUS: Mapping[PartitionStatus, tuple[str, str, str]] = {
    PartitionStatus.PURGED: (
        "KG308",
        "the log of {logs} begins after the committed offset: those records are gone unread",
        "auto.offset.reset decides where the reader resumes; longer retention keeps it from happening",
    ),
    PartitionStatus.RECREATED: (
        "KG319",
        "{some}: what is committed is of a former topic, or of another cluster's",
        "readers go on there or wait for it. Once the group is empty, read it from its start: {reset}",
    ),
    PartitionStatus.DAMAGED: (
        DAMAGED_LOG,
        "{some}: the log is damaged where its reader goes on",
        (
            "make a replica with a sound copy the leader, as kafka-dump-log.sh on each broker shows; without "
            "one, set the offset beyond the batch, and lose its records"
        ),
    ),
    PartitionStatus.NOT_BEGUN: (
        "KG306",
        "{some}: records came since its owner got it, and nothing is committed",
        (
            "look at that member's log: it does not get there, has no first offset, or does not commit. One "
            "that keeps its offsets elsewhere never does, and nothing here shows what it has read"
        ),
    ),
    PartitionStatus.UNSUBSCRIBED: (
        "KG305",
        "{some}: read until of late, and no member subscribes to it any more, while records wait",
        "start what read it, under a group id of its own; if it is no longer needed, its offsets expire",
    ),
    PartitionStatus.FALLING_BEHIND: (
        "KG320",
        "{some}: records wait longer and longer",
        "{capacity}; {doctor} once more shows whether it gets on",
    ),
}
"""Of statuses that the description reports no finding of: code, message and hint."""


def _expiring(facts: Facts) -> Iterator[Found]:
    """Yield an empty group whose newest record is older than nine tenths of the retention."""
    if facts.group.known_members or not facts.history or not facts.retention_ms:
        return
    if not facts.group.committed_count:
        return
    last = _last_write(facts.history)
    ends = last + facts.retention_ms
    if ends - facts.now_ms < facts.retention_ms // 10:
        renew = command("reset-offsets", facts.group.group_id, options="--all-topics --to-current")
        yield (
            f"nothing was written since {utc(last)}: the last offset expires after {utc(ends)}",
            f"{renew} renews them",
            [f"{OFFSETS_RETENTION} is {facts.retention_ms // 60_000}"],
        )


_CHECKS: Mapping[str, Callable[[Facts], Iterator[Found]]] = {
    "KG110": flapping,
    "KG111": restless,
    "KG112": _stuck,
    "KG113": slow_restarts,
    "KG114": missing,
    "KG115": too_few,
    "KG117": full,
    "KG120": outside,
    "KG122": matching_nothing,
    "KG307": _expiring,
    "KG309": _held_open,
    "KG311": held_back,
    "KG312": deleted_soon,
    "KG313": lost,
    "KG317": rejected,
    "KG318": came_back,
    "KG322": set_back,
}
"""What the facts show beyond the description and the statuses, by code."""


def _last(events: Sequence[Event] | None, kind: str) -> Event | None:
    return next((event for event in reversed(events or ()) if event.kind == kind), None)


def _last_write(events: Sequence[Event]) -> int:
    return max(max(event.timestamp_ms, event.end_timestamp_ms) for event in events)
