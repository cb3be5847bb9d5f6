"""Readers that have stopped: members that commit nothing while records wait for them.

As Burrow judges: by commit times and log ends, partition by partition. The limit is learnt from how often the
group commits; where that is unknown, from how long a member may take between two polls.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kgroup.admin.diagnose.facts import LAG, Facts, Unseen
from kgroup.admin.diagnose.wording import SHOWN, name_of, one_host, removal_of, whereabouts
from kgroup.admin.discovery import ClusterView
from kgroup.admin.models import CLASSIC, STABLE, OffsetRow
from kgroup.admin.read.findings import some
from kgroup.admin.read.offsets import ListedOffset, list_offsets
from kgroup.admin.refusals import code_name
from kgroup.domain import TopicPartition
from kgroup.durations import utc
from kgroup.errors import KgroupError

if TYPE_CHECKING:
    from kgroup.history.fold.view import RecordedMember

_LOOK = (
    "look at that process and its log: it is dead, hangs, reads without committing, or lacks rights; which, "
    "is unknown, because neither polls nor rejected requests leave a record"
)
QUIET_MS = 15_000
"""No silence is too long before."""
PARTLY_MS = 20_000
"""No silence about one partition of several is too long before."""
INTERVALS, UNUSUAL_MS = 12, 60_000
"""How many of the group's usual intervals a member may be silent; how long where they are unknown."""
AHEAD_MS = 60_000
"""A record stamped so far in the future has a wrong time, which does not show when it arrived."""


@dataclass(frozen=True, slots=True)
class Silent:
    """Partitions that wait for a member, which last committed them, or got them, at `since_ms`.

    `whole`: the member has committed nothing else since. `others`: the rest of the group has.
    """

    member: RecordedMember
    since_ms: int
    silent_ms: int
    whole: bool
    others: bool
    waiting: tuple[TopicPartition, ...]


def look_at_the_silent(cluster: ClusterView, facts: Sequence[Facts]) -> None:
    """Find which records have waited for silent members for long; at most two requests per leader."""
    wanted = [(each, {p for silent in silent_members(each) for p in silent.waiting}) for each in facts]
    places = {place for _, those in wanted for place in those}
    if not places:
        return
    now_ms = facts[0].now_ms
    old = list_offsets(cluster, dict.fromkeys(places, now_ms - QUIET_MS))
    recent = {p for p, at in old.items() if _is_there(at)}
    ahead = list_offsets(cluster, dict.fromkeys(recent, now_ms + AHEAD_MS)) if recent else {}
    for each, those in wanted:
        for place, row in zip(each.places, each.group.offsets, strict=True):
            if place not in those:
                continue
            at = old[place]
            if isinstance(at, KgroupError):
                what = f"how long records of {place} have been unread: {at.message}"
                each.unseen.append(Unseen(LAG, code_name(at), what))
            # The first record written since lies after the first unread one, or there is none.
            elif not 0 <= at.offset <= (row.committed_offset or 0) or _is_there(ahead.get(place)):
                each.old.add(place)


def _is_there(at: ListedOffset | KgroupError | None) -> bool:
    return isinstance(at, ListedOffset) and at.offset >= 0


def silent_members(facts: Facts) -> list[Silent]:
    """Return the members that committed nothing for too long while records wait, longest silence first."""
    group, state = facts.group, facts.state
    if state is None or facts.history is None or (group.type == CLASSIC and group.state != STABLE):
        return []
    behind = {p for p, row in zip(facts.places, group.offsets, strict=True) if row.lag}
    newest = max(facts.committed_ms.values(), default=-1)
    began = max((e.timestamp_ms for e in facts.history if e.kind == "rebalance-completed"), default=-1)
    # Partitions whose last commit in this generation set them back: their reader does not notice.
    behind -= {
        place
        for event in facts.history or ()
        if event.kind == "rewound" and event.timestamp_ms >= began
        for place in event.partitions
        if facts.committed_ms.get(place, began) <= event.timestamp_ms
    }
    usual = _usual_interval_ms(facts)
    found = []
    for member in state.view().members.values() if behind else ():
        last = max([began, *(facts.committed_ms.get(place, -1) for place in member.holds)])
        since = {
            p: max(began, at) for p in member.holds & behind if (at := facts.committed_ms.get(p)) is not None
        }
        poll_ms = max(member.rebalance_timeout_ms, QUIET_MS)
        # Compare with others of the group by the coordinator's clock alone; else with the time now.
        others = newest - last > _bound_ms(usual, poll_ms, UNUSUAL_MS)
        if others or facts.now_ms - last > _bound_ms(usual, poll_ms, poll_ms):
            silent_ms = max(newest, facts.now_ms) - last
            found.append(Silent(member, last, silent_ms, True, others, tuple(sorted(since))))
            continue
        # One fetch may be processed partition by partition.
        bound = max(PARTLY_MS, 2 * INTERVALS * (usual or UNUSUAL_MS // INTERVALS))
        stuck = tuple(sorted(p for p, at in since.items() if newest - at > bound))
        if stuck:
            first = min(since[p] for p in stuck)
            found.append(Silent(member, first, newest - first, False, True, stuck))
    return sorted((s for s in found if s.waiting), key=lambda each: (each.since_ms, name_of(each.member)))


def _bound_ms(usual_ms: int | None, poll_ms: int, unknown_ms: int) -> int:
    """Return the longest silence that means nothing: some usual intervals, at most a poll's."""
    return min(max(QUIET_MS, INTERVALS * usual_ms) if usual_ms is not None else unknown_ms, poll_ms)


def _usual_interval_ms(facts: Facts) -> int | None:
    """Return the average recent time between two commits of a partition; None if there were too few."""
    spans = [e for e in facts.history or () if e.kind == "committed" and e.count > 2 * len(e.partitions)]
    return max(
        (
            (e.last_ms - e.timestamp_ms) * len(e.partitions) // (e.count - len(e.partitions))
            for e in spans[-3:]
        ),
        default=None,
    )


def stopped(facts: Facts) -> Iterator[tuple[str, str, list[str]]]:
    """Yield what has stopped, what to do about it, and its evidence."""
    silent = [each for each in silent_members(facts) if facts.old.intersection(each.waiting)]
    if whole := [each for each in silent if each.whole]:
        yield _stopped_members(facts, whole)
    if partly := [each for each in silent if not each.whole]:
        from kgroup.history.fold.events import duration_text

        places = [place for each in partly for place in each.waiting]
        holder = {place: each for each in partly for place in each.waiting}
        shortest = duration_text(min(each.silent_ms for each in partly))
        stands = "stands" if len(places) == 1 else "stand"
        yield (
            f"{some(places)} {stands} still for {shortest} while the member's others go on",
            "look for the record at that offset in the member's log: it may be one that it cannot process",
            [
                f"{place} stands at offset {row.committed_offset} of {row.log_end_offset}, last committed at "
                f"{utc(facts.committed_ms[place])}, read by {whereabouts(holder[place].member)}"
                for place, row in _rows_of(facts, places)[:SHOWN]
            ],
        )


def _stopped_members(facts: Facts, silent: Sequence[Silent]) -> tuple[str, str, list[str]]:
    from kgroup.history.fold.events import duration_text

    members, known = [each.member for each in silent], facts.group.member_count
    shortest = duration_text(min(each.silent_ms for each in silent))
    go_on = " while others go on" if all(each.others for each in silent) else ""
    if len(silent) == 1:
        who = f"{name_of(members[0])} has committed nothing for {shortest}{go_on}"
    else:
        of = f" of {known}" if known is not None else ""
        who = f"{len(silent)}{of} members have committed nothing for {shortest} and more{go_on}"
        who += one_host(members)
    places = [place for each in silent for place in each.waiting]
    unread = sum(row.lag or 0 for _, row in _rows_of(facts, places))
    evidence = []
    for each in silent[:SHOWN]:
        session_ms, rebalance_ms = each.member.session_timeout_ms, each.member.rebalance_timeout_ms
        terms = [
            f"{what} {duration_text(ms)}"
            for what, ms in (("session", session_ms), ("rebalance timeout", rebalance_ms))
            if ms > 0
        ]
        limits = f" ({', '.join(terms)})" if terms else ""
        last = f"last sign at {utc(each.since_ms)}, {duration_text(each.silent_ms)} ago{limits}"
        evidence.append(f"{whereabouts(each.member)}: {last}")
    return (
        f"{who}: {unread} records wait in {some(places)}",
        f"{_LOOK}; if it is gone, {removal_of(facts.group.group_id, members)}",
        evidence,
    )


def _rows_of(facts: Facts, places: Sequence[TopicPartition]) -> list[tuple[TopicPartition, OffsetRow]]:
    wanted = set(places)
    return [(p, row) for p, row in zip(facts.places, facts.group.offsets, strict=True) if p in wanted]
