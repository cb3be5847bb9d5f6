"""Groups that rebalance repeatedly, and instance ids that change hands (docs/decisions/0083)."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from kgroup.admin.diagnose.facts import Facts
from kgroup.admin.diagnose.wording import Found
from kgroup.admin.models import CLASSIC
from kgroup.admin.read.findings import some
from kgroup.admin.read.outside import from_outside
from kgroup.admin.shell import command
from kgroup.domain import count_of, first_of
from kgroup.durations import utc
from kgroup.history.fold.events import Event, Kind, duration_text
from kgroup.history.fold.view import SIMPLE

FLAPS, REBALANCES, IN_TURN = 3, 5, 3
DEPLOYMENTS = 2
"""How often each process may start within the window: a start and a deployment explain that."""
SILENT_MS, MISSED = 60_000, 3
"""Who has committed nothing for so long, and for so many times as long as usual, has stopped."""
SHORT_LIVED_MS = 60_000
"""A member that leaves this soon after joining was not restarted: deployments leave members running."""


def restless(facts: Facts) -> Iterator[Found]:
    """Yield that the group rebalances more often than deployments explain.

    For a classic group its generations are counted: no record shows when they began.
    """
    kind = Kind.REBALANCE_COMPLETED if facts.group.type == CLASSIC else Kind.REBALANCE_STARTED
    seen = [event for event in facts.recent if event.kind == kind]
    if len(seen) < REBALANCES:
        return
    short, turns = _short_lived(facts)
    comes_and_goes = turns >= IN_TURN
    again, bare = _started_again(facts), _unexplained(facts, seen)
    if not comes_and_goes and not again and bare < REBALANCES:
        return

    causes = Counter(event.cause or event.detail for event in seen).most_common(3)
    within = duration_text(max(seen[-1].timestamp_ms - seen[0].timestamp_ms, 0))
    evidence = [f"the first at {utc(seen[0].timestamp_ms)}, the last at {utc(seen[-1].timestamp_ms)}"]
    evidence += [f"{count_of(count, 'time')}: {cause}" for cause, count in causes]
    if again:
        named = first_of([f"{who} ({count_of(times, 'time')})" for who, times in again])
        evidence.append(f"started again and again: {named}")
    if short:
        gone = f"{count_of(len(short), 'member')} gone within {SHORT_LIVED_MS // 1000} s of joining"
        evidence.append(f"{gone}: {first_of(sorted({e.instance_id or e.member_id or '' for e in short}))}")
        evidence.append(f"the last of them at {utc(short[-1].timestamp_ms)}: {short[-1].cause}")
    if back := sum(event.kind == Kind.DOWNGRADED for event in facts.recent):
        lost = "each time its last member of the consumer protocol was gone"
        evidence.append(f"{count_of(back, 'time')} it became a classic group, {lost}")
    if bare >= REBALANCES:
        evidence.append(f"{bare} while the same members were there")
    since = f"--since {utc(facts.since_ms)}"
    yield (
        f"{count_of(len(seen), 'rebalance')} within {within}"
        + (", and members come and go" if comes_and_goes else ""),
        f"{command('replay-log', facts.group.group_id, options=since)} shows each"
        + ("; members that keep expiring need a longer session.timeout.ms, or do not run" if short else ""),
        evidence,
    )


def _short_lived(facts: Facts) -> tuple[list[Event], int]:
    """Return the ends of members that had joined shortly before, and how many of them came after each other.

    A deployment takes members that are there together, however young they are.
    """
    joined: dict[str | None, int] = {}
    short: list[Event] = []
    turns, ended = 0, -1
    for event in facts.recent:
        if event.kind in (Kind.MEMBER_JOINED, Kind.MEMBER_REPLACED):
            joined[event.member_id] = event.timestamp_ms
        elif event.kind == Kind.MEMBER_LEFT_OR_EXPIRED:
            came = joined.pop(event.member_id, None)
            if came is not None and event.timestamp_ms - came < SHORT_LIVED_MS:
                short.append(event)
                if came >= ended:
                    turns, ended = turns + 1, event.timestamp_ms
    return short, turns


def _started_again(facts: Facts) -> list[tuple[str, int]]:
    """Return the clients that joined more often than deployments explain, most often first.

    Several members of one process, or on one host, may have the same.
    """
    joined, before, at_once = Counter[str](), Counter[str](), Counter[str]()
    at_once.update(member.client for member in facts.recorded_members.values())
    here: defaultdict[str, set[str | None]] = defaultdict(set)
    moves = (event for event in facts.recent if event.kind in _COMING_AND_GOING)
    # Of one generation, who went made room for who came.
    for event in sorted(moves, key=lambda event: (event.offset, event.kind == Kind.MEMBER_JOINED)):
        there = here[event.client]
        if event.kind == Kind.MEMBER_JOINED:
            joined[event.client] += 1
            there.add(event.member_id)
            at_once[event.client] = max(at_once[event.client], len(there))
        elif event.kind == Kind.MEMBER_LEFT_OR_EXPIRED:
            before[event.client] += event.member_id not in there
            there.discard(event.member_id)
    at_once.update(before)
    return [(who, times) for who, times in joined.most_common() if times > DEPLOYMENTS * at_once[who]]


def _unexplained(facts: Facts, seen: Sequence[Event]) -> int:
    """Return the number of rebalances before which nobody came or went since the one before.

    Where compaction took records, those of who did may be among them.
    """
    seen = [event for event in seen if facts.is_whole(event.timestamp_ms)]
    changed = sorted(event.offset for event in facts.recent if event.kind in _COMING_AND_GOING)
    until = [bisect_right(changed, event.offset) for event in seen]
    return sum(a == b for a, b in pairwise([0, *until]))


_COMING_AND_GOING = (Kind.MEMBER_JOINED, Kind.MEMBER_REPLACED, Kind.MEMBER_LEFT_OR_EXPIRED)


def _from_outside(facts: Facts) -> list[Event]:
    # A group of which only offsets are on record never had a member.
    memberless = facts.state is not None and facts.state.kind == SIMPLE
    return from_outside(facts.history or (), facts.since_ms, memberless, empty=not facts.group.known_members)


def reads_outside(facts: Facts) -> bool:
    """Return whether somebody who is no member still commits, as often as before."""

    def bound_ms(event: Event) -> float:
        every_ms = (event.last_ms - event.timestamp_ms) * len(event.partitions) / max(event.count, 1)
        return max(SILENT_MS, MISSED * every_ms)

    return any(facts.age_ms(event.last_ms) < bound_ms(event) for event in _from_outside(facts))


def outside(facts: Facts) -> Iterator[Found]:
    """Yield that others than members commit again and again, or did until of late."""
    if events := _from_outside(facts):
        partitions = {partition for event in events for partition in event.partitions}
        are = "are" if reads_outside(facts) else "were"
        until = "" if are == "are" else f", until {utc(max(event.last_ms for event in events))}"
        yield (
            f"offsets of {some(partitions)} {are} committed again and again by no member of the group{until}",
            (
                "a consumer with assign(), a tool, or MirrorMaker's sync.group.offsets uses this group id: "
                "unless it is meant to, give it one of its own"
            ),
            [f"from {utc(e.timestamp_ms)} to {utc(e.last_ms)}: {e.detail}" for e in events[-FLAPS:]],
        )


def flapping(facts: Facts) -> Iterator[Found]:
    """Yield the instance ids that were taken over repeatedly, with their members."""
    replaced: defaultdict[str, list[Event]] = defaultdict(list)
    for event in facts.recent:
        if event.kind == Kind.MEMBER_REPLACED and event.instance_id:
            replaced[event.instance_id].append(event)
    for instance_id, events in sorted(replaced.items()):
        if len(events) >= FLAPS:
            yield (
                f"{instance_id} was taken over {count_of(len(events), 'time')} since {utc(facts.since_ms)}",
                "give each process a group.instance.id of its own, unless one crashes and returns",
                [f"at {utc(event.timestamp_ms)}: {event.detail}" for event in events[-FLAPS:]],
            )
