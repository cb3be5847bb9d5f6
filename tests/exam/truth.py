"""What is true of a state, by what was played: each partition's status, and what is broken in the group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from statistics import median_high

from kgroup.domain import TopicPartition

from .machine import FULL
from .playing import LIMIT, POLL_MS, Group, Part

PROMPT_MS, SUSPECT_MS, OPEN_MS = 15_000, 30_000, 15_000
HELD_MS = 10_000
"""From this age on, a transaction that holds committed offsets open does not end."""
TIMES = 10
FUTURE_MS = 60_000
LATE_MS = 60_000
"""Whose records are all read so much later may have producers whose clocks are late."""
SPAN_MS = 3_600_000
"""How far back the doctor reads what happened, unless it is told otherwise."""
TWICE = 2
SOME = 3
COMPARED = 5
"""As many of the last commits of each partition show how often they come."""
RESOLVED_MS = 60_000
"""Dead members are in a consumer group that long at most by Kafka's defaults; here they stay."""
LOOPS = 3
"""Generations of an owner that end at the same record make a loop."""
NEAR_ITS_END = 0.75
CERTAIN_MS = 700_000
"""So long after it began to take too little, a reader is seen to fall behind."""
TAKEN = 3
"""So often within minutes, an instance id has more than one process."""
LATE_MS = 60_000
"""What is read so long after it was written may have been written later."""
NEAR = 1_500
"""Commands may judge either way so near to a bound: a state is seen within some time, not at one moment."""
Said = tuple[str, str]
"""A status and its weight."""


TIMED = ("reading", "stalled", "falling-behind", "not-begun", "held-back", "moving")
"""Statuses that go by how long records have waited: where their times are wrong, they may be unknown."""


@dataclass(frozen=True)
class Truth:
    """The statuses that each partition may have, and what the group's verdict must say.

    `waits`: records wait for 15 s or more with a live owner, where only the history decides. `work`: whether
    something can be read that is not. `broken` are the codes of invariants, one of each set must be found.
    """

    statuses: dict[TopicPartition, frozenset[Said]]
    waits: frozenset[TopicPartition]
    work: frozenset[TopicPartition]
    broken: tuple[frozenset[str], ...]
    holding: frozenset[str]
    """The codes of invariants that hold: none of them may be found."""
    named: dict[str, tuple[str, ...]]
    """The members that the finding of a code must name: no other member may be."""
    error: bool | None = False
    """Whether an invariant is broken that is an error; None where wrong times leave that open."""
    blind: bool = False
    """Whether nothing shows that times are wrong which leave an error open."""
    open: frozenset[TopicPartition] = frozenset()
    """Partitions that may be left out."""

    @property
    def sick(self) -> bool | None:
        """Whether the verdict is an error; None near a bound."""
        must = self.error or any(all(w == "error" for _, w in said) for said in self.statuses.values())
        may = self.error is None or any(any(w == "error" for _, w in said) for said in self.statuses.values())
        return True if must else None if may else False


def truth_over(group: Group, moments: Sequence[int]) -> Truth:
    """What is true at one of these moments, while nothing happened but that time passed."""
    found = []
    for group.look_ms in moments:
        found.append(truth_of(group))
    places = frozenset().union(*(each.statuses for each in found))
    statuses = {
        place: frozenset().union(*(each.statuses.get(place, ()) for each in found)) for place in places
    }
    left_out = frozenset().union(*(each.open | (places - each.statuses.keys()) for each in found))
    waits = frozenset[TopicPartition]().union(*(each.waits for each in found))
    holding = frozenset.intersection(*(each.holding for each in found))
    return replace(found[-1], statuses=statuses, waits=waits, holding=holding, open=left_out)


def truth_of(group: Group) -> Truth:
    """What is true at the moment of the look."""
    scope = {p: _in_scope(group, part) for p, part in group.parts.items()}
    places = {p: part for p, part in group.parts.items() if scope[p] is not False}
    open_ = frozenset(p for p in places if scope[p] is None)
    waits, work = set(), set()
    statuses = {}
    for place, part in places.items():
        said = _status(group, part)
        left = said[0][0] == "unread" and not group.members and len(_ended(group, part, 0)) >= LOOPS
        if group.state.stamps != "right" and (left or said[0][0] in TIMED):
            said = [*said, ("unknown", "unknown")]
            newest = max((e.ms for e in part.entries), default=0) + group.stamps_ms(place.topic)
            if said[0][0] == "stalled" and newest <= group.look_ms + FUTURE_MS + NEAR:
                # Nothing shows that its times are ahead; later they count as old.
                said.append(("reading", "ok"))
            if group.state.log == "compacted" and place.topic == group.main:
                # What was read is gone, which would show that its times are wrong.
                said += [("stalled", "warn"), ("stalled", "error"), ("falling-behind", "warn")]
            if said[0][0] == "not-begun" and not _is_read(group, place.topic):
                # Nothing shows that its times are wrong.
                said += [("not-begun", "info"), ("not-begun", "error")]
        elif said[0][0] in TIMED and any(
            # What readers usually take goes by the other topic, too.
            _may_be_late(group, topic)
            for topic in ({place.topic} if len(said) == 1 else {group.main, group.side})
        ):
            said = [*said, ("unknown", "unknown")]
        statuses[place] = frozenset(said)
        at = part.committed if part.committed is not None else part.start
        waiting = part.readable(at)
        if part.exists and (waiting or max(part.stable, at) < part.end):
            work.add(place)
        # Which records of a share group are done beyond its start offset, which moves late, is in its log.
        if waiting and (group.share or group.look_ms - waiting[0].ms >= PROMPT_MS - NEAR):
            waits.add(place)
        if said[0][0] == "held-back" and group.look_ms - _opened_ms(part) >= OPEN_MS - NEAR:
            waits.add(place)
    error: bool | None = _stuck(group) or frozenset({"KG122"}) in _broken(group)
    fruitless = list(_fruitless(group, NEAR))
    if group.state.stamps == "right":
        error = error or bool(fruitless)
    elif not error and not group.members and any(_ended_fresh(group)):
        error = None
    blind = error is None and not any(_is_read(group, part.place.topic) for part in fruitless)
    if any(_held_open(group, NEAR)) or any(map(_all_given_up, group.parts.values())):
        error = True
    elif not error and (group.waits_for_still or any(_held_open(group, -NEAR))):
        # It is an error after a while, by the log.
        error, blind = None, True
    holding = frozenset(_holding(group))
    return Truth(
        statuses,
        frozenset(waits),
        frozenset(work),
        tuple(_broken(group)),
        holding,
        dict(_named(group)),
        error,
        blind,
        open_,
    )


def _may_be_late(group: Group, topic: str) -> bool:
    """Whether all that was read of a topic was read minutes later, and no younger record shows its clock."""
    parts = [part for part in group.parts.values() if part.place.topic == topic and part.exists]
    delays = [part.commits[-1].ms - part.commits[-1].written_ms for part in parts if part.commits]
    newest = max((e.ms for part in parts for e in part.entries if e.offset >= part.start), default=0)
    return min(delays, default=0) > LATE_MS - NEAR and newest < group.look_ms - LATE_MS + NEAR


def _is_read(group: Group, topic: str) -> bool:
    """Whether a record that was read shows when the topic's records come: of a former topic none is left.

    Nor is one looked at of a partition that none of the members has.
    """
    parts = (part for part in group.parts.values() if part.place.topic == topic and part.exists)
    parts = (part for part in parts if not group.members or group.owner(part.place) is not None)
    return any(part.committed and part.committed <= part.end for part in parts)


def _in_scope(group: Group, part: Part) -> bool | None:
    """Whether the group reads a partition, or did; None where that may be seen or not."""
    if part.committed is not None or (group.share and part.exists):
        return True  # a share group has begun with all that its members subscribe to
    if group.moving and group.classic:
        return False  # what members subscribe to is not shown meanwhile
    if not part.exists:
        # Brokers omit what a consumer group's member has of a topic that is gone; no pattern matches it.
        return group.classic and group.owner(part.place) is not None
    if group.owner(part.place) is not None:
        return True
    if _unresolved(group, part):
        if not part.entries:
            return None
        waited = group.look_ms - part.entries[0].ms
        shown = group.state.stamps == "right" and abs(waited - RESOLVED_MS) > NEAR
        return waited < RESOLVED_MS if shown else None
    return any(subscribes(group, m, part.place.topic) for m in group.members)


def _unresolved(group: Group, part: Part) -> bool:
    """Whether a topic matches a pattern of members that all died before they could ask for it."""
    if group.state.subscription != "pattern" or group.state.protocol != "consumer" or not group.members:
        return False
    return part.committed is None and all(group.dead(member) for member in group.members)


def subscribes(group: Group, member: object, topic: str) -> bool:
    """Whether a member reads a topic: a pattern of the classic protocol is names by then."""
    topics, regex = member.topics, member.regex  # type: ignore[attr-defined]
    if regex is not None and not member.classic:  # type: ignore[attr-defined]
        return regex == f"{group.name}-.*" and topic.startswith(f"{group.name}-")
    return topic in topics


def _status(group: Group, part: Part) -> list[Said]:
    committed = part.committed
    if not part.exists:
        return [("gone", "warn")]
    if committed is not None and (part.rebuilt or _is_ahead(group, part)):
        return [("recreated", "error")]
    if committed is not None and (committed > part.end or part.lost):
        return [("beyond-end", "error")]
    if group.share:
        return _of_share(group, part)
    owner = group.owner(part.place)
    first = part.start if committed is None else committed
    waiting = part.readable(first)
    if committed is not None and committed != part.end and part.start > committed:
        if waiting or (owner is None and not group.moving):
            return [("purged", "error")]
        # Who had read a classic group's partition is not shown while it moves; a consumer group's may stay.
        return [("purged", "warn"), *([("purged", "error")] if owner is None and not group.classic else [])]
    if waiting and not part.reached(first):
        return [("damaged", "error")]
    if first == part.end or (not waiting and part.stable == part.end):
        return [("idle", "ok")]
    if not waiting:
        opened = group.look_ms - _opened_ms(part)
        parts = [p for p in group.parts.values() if p.commits and p.exists]
        bounds = (
            {max(OPEN_MS, TWICE * wait) for wait in _waits(group, parts, part)}
            if group.members
            else {OPEN_MS}
        )
        weights = {weight for bound in bounds for weight in _around(opened, bound, "info", "error")}
        return [("held-back", weight) for weight in sorted(weights)]
    return _of_owner(group, part)


def _is_ahead(group: Group, part: Part) -> bool:
    """Whether what is committed has a leader epoch that no leader of its log has reached."""
    return part.exists and part.epoch > group.machine.epoch_of(part.place)


def _opened_ms(part: Part) -> int:
    return next(e.ms for e in part.entries if e.kind == "open" and e.offset >= part.stable)


def _of_share(group: Group, part: Part) -> list[Said]:
    """Of a share group nothing shows who reads what: its members together finish records, or do not."""
    waiting = part.readable(part.start if part.committed is None else part.committed)
    if not waiting:
        return (
            [("idle", "ok"), ("purged", "error")] if part.start > (part.committed or 0) else [("idle", "ok")]
        )
    if part.committed is not None and part.start > part.committed:
        return [("purged", "error")]
    if not group.members:
        return [("unread", "warn")]
    found = _finishing(group, part, waiting[0].ms)
    if group.state.owner == "overloaded" and part.place == group.subject:
        return [each for said in found for each in (_overloaded(group) if said[0] == "reading" else [said])]
    return found


def _finishing(group: Group, part: Part, came_ms: int) -> list[Said]:
    """Whether members of a share group finish records of a partition: by how long none was."""
    near = NEAR if group.state.stamps == "right" else SUSPECT_MS
    found = [said for slack in (-near, 0, near) for said in _unfinished(group, part, came_ms - slack)]
    alike = [p for p in group.parts.values() if p.place.topic == part.place.topic and p.commits]
    late_ms = min((p.commits[-1].ms - p.commits[-1].written_ms for p in alike), default=0)
    if late_ms > LATE_MS - NEAR:
        # What was read last was read late, or stamped late: so may be what waits.
        others = [
            said
            for late in (late_ms, late_ms - SUSPECT_MS)
            for slack in (-near, 0, near)
            for said in _unfinished(group, part, min(came_ms + late, group.look_ms) - slack)
        ]
        if set(others) != set(found) or len(set(found)) > 1:
            found.append(("unknown", "unknown"))
    return list(dict.fromkeys(found))


def _unfinished(group: Group, part: Part, came_ms: int) -> Iterator[Said]:
    """Yield the same if what waits came then, by each way to take how long records take."""
    finished_ms = part.commits[-1].ms if part.commits else 0
    began = max(came_ms, finished_ms)
    if sum(end.ms >= began for end in group.ends) < LOOPS:
        # Who ends again and again finishes nothing, however often it begins.
        began = max(began, group.filled_ms)
    ended = Counter(back.offset for back in part.back if back.ms > max(finished_ms, came_ms))
    waited, alone = group.look_ms - came_ms, group.look_ms - began
    for wait in _waits(group, [p for p in group.parts.values() if p.commits], part):
        for near in (-NEAR, NEAR):
            fails = max(ended.values(), default=0) >= LOOPS and alone + near >= PROMPT_MS
            if waited < PROMPT_MS:
                yield "reading", "ok"
            elif fails or alone + near > max(POLL_MS, group.lock_ms, TWICE * wait):
                yield "stalled", "error"
            elif alone + near > max(SUSPECT_MS, group.lock_ms, TWICE * wait):
                yield "stalled", "warn"
            else:
                yield "reading", "ok"


def _all_given_up(part: Part) -> bool:
    """Whether members of a share group gave up record after record, and finished none since."""
    since = part.commits[-1].ms if part.commits else 0
    return len({b.offset for b in part.back if b.deliveries >= LIMIT and b.ms > since}) >= LOOPS


def _of_owner(group: Group, part: Part) -> list[Said]:
    if group.moving and group.classic and part.committed is not None:
        came_ms = part.readable(part.committed)[0].ms
        if len(_ended(group, part, came_ms)) >= LOOPS:
            return [("stalled", "error")]
    if group.moving:
        # A member of a consumer group may go on meanwhile with what stays its own.
        return [("moving", "info"), *([] if group.classic else _of_settled(group, part))]
    if group.waits_for_still and group.owner(part.place) is None:
        # Nobody has it, and one that died keeps the rebalance open that might have moved it.
        return [("moving", "info"), *_of_settled(group, part)]
    return _of_settled(group, part)


def _of_settled(group: Group, part: Part) -> list[Said]:
    owner, committed = group.owner(part.place), part.committed
    waiting = part.readable(part.start if committed is None else committed)
    if not group.members:
        if committed is not None and len(_ended(group, part, waiting[0].ms)) >= LOOPS:
            return [("stalled", "error")]
        return [("unread", "warn")]
    if owner is None and _unresolved(group, part):
        if group.state.stamps != "right":
            return [("moving", "info"), ("unknown", "unknown")]
        names = _around(group.look_ms - waiting[0].ms, PROMPT_MS, "moving", "unknown")
        return [(name, "info" if name == "moving" else name) for name in names]
    if owner is None:
        readers = [m for m in group.members if subscribes(group, m, part.place.topic)]
        if readers:
            # The coordinator may mean it for one that left for now, or not have assigned it at all. Only
            # heartbeats of the consumer protocol have that done: without others it waits for that one, too.
            assigns = any(not m.left and not m.classic for m in group.members)
            away = any(m.left for m in (readers if assigns else group.members))
            return [("unread", "error"), *([("absent", "warn")] if away else [])]
        late = [c for c in part.commits if c.ms > group.look_ms - SPAN_MS]
        if late and not any(c.member for c in late):
            # The log does not say whether a tool committed, or a reader with assign().
            return [("unsubscribed", "info"), ("unsubscribed", "warn")]
        return [("unsubscribed", "warn" if late else "info")]
    if owner.left:
        return [("absent", "warn")]
    if committed is None:
        # The record that a member ended is written when those that are left have shared out what it had.
        found = [
            each for slack in (0, NEAR) for each in _not_begun(group, part, owner.got_ms[part.place], slack)
        ]
    else:
        found = _of_reader(group, part)
    return _or_restores(group, part, found)


def _or_restores(group: Group, part: Part, found: list[Said]) -> list[Said]:
    """The same of an owner that may restore state: nothing shows that until its first commit."""
    owner = group.owner(part.place)
    if owner is None or not group.keeps_state:
        return found
    came_ms = owner.got_ms[part.place] - (part.commits[-1].ms if part.commits else 0)
    first = min((e.ms for e in part.readable(part.committed or part.start)), default=0)
    loops = len(_ended(group, part, first)) >= LOOPS
    if loops or came_ms < -NEAR:
        return found
    other = [("unknown", "unknown") if said[0] == "stalled" or said[1] == "error" else said for said in found]
    return list(dict.fromkeys(other if came_ms > NEAR and not group.ends else [*found, *other]))


def _not_begun(group: Group, part: Part, since: int, slack_ms: int) -> list[Said]:
    ended = _ended(group, part, 0)
    if len(ended) >= LOOPS:
        since = min(since, ended[0] + slack_ms)
    came = [e.ms for e in part.readable(part.start) if e.ms > since]
    if not came:
        return [("not-begun", "info")]
    loops = sum(ms >= came[0] for ms in ended) >= LOOPS
    rest = [p for p in group.parts.values() if p is not part and p.commits and p.exists]
    waits = {0} if loops else _waits(group, rest, part)
    bounds = {SUSPECT_MS if loops else max(POLL_MS, TWICE * wait) for wait in waits}
    waited = group.look_ms - came[0]
    found = [weight for bound in bounds for weight in _around(waited, bound, "info", "error")]
    if not loops:
        found = [weight for told in found for weight in (_passed_over(group, part, came[0], since) or [told])]
    return [("not-begun", weight) for weight in dict.fromkeys(found)]


def _passed_over(group: Group, part: Part, came_ms: int, since: int) -> list[str]:
    """The weights that a partition without a commit may have because its owner commits others."""
    owner, began, near = group.owner(part.place), max(came_ms, since), group.look_ms - came_ms
    rest = [p for p in group.parts.values() if p is not part and p.commits and p.exists]
    own = [p for p in rest if group.owner(p.place) is owner]
    delays = [p.commits[-1].ms - p.commits[-1].written_ms for p in rest]
    if not own or near < SUSPECT_MS - NEAR:
        return []
    for p in own:
        waiting = p.readable(p.committed or 0)
        if waiting and waiting[0].ms <= came_ms + NEAR and p.commits[-1].ms > began - NEAR:
            return ["info", "error"]
    newest = max(p.commits[-1].ms for p in own) - began
    waits = _waits(group, rest, part)
    bounds = [max(PROMPT_MS, TIMES * delay, TWICE * wait) for delay, wait in product(set(delays), waits)]
    if newest > max(bounds) + NEAR and near > SUSPECT_MS + NEAR:
        return ["error"]
    return ["info", "error"] if newest > min(bounds) - NEAR else []


def _of_reader(group: Group, part: Part) -> list[Said]:
    """Whether the owner goes on: by how long records wait, beside what the group did meanwhile."""
    owner = group.owner(part.place)
    committed = part.committed
    if owner is None or committed is None:
        return []
    waiting = part.readable(committed)
    waited = group.look_ms - waiting[0].ms
    since = max(
        part.commits[-1].ms, max(owner.got_ms.values()) if owner.classic else owner.got_ms[part.place]
    )
    began = max(since, waiting[0].ms)
    alone = group.look_ms - began
    rest = [p for p in group.parts.values() if p is not part and p.commits and p.exists]
    newest = max((p.commits[-1].ms for p in rest if group.owner(p.place) is not None), default=-1)
    delays = [p.commits[-1].ms - p.commits[-1].written_ms for p in (*rest, part)]
    own = [p.commits[-1].ms for p in rest if group.owner(p.place) is owner]
    silent = max(own, default=-1) <= began
    found: list[Said] = []
    # Where times are wrong, what a reader takes is known to half a minute.
    near = NEAR if group.state.stamps == "right" else SUSPECT_MS
    waits = _waits(group, (*rest, part), part)
    # The last records of some partitions show what it usually takes, of whichever.
    for delay, wait in product(set(delays), waits):
        usual = max(TIMES * delay, TWICE * wait)
        found += [
            _reading(waited + slack, alone + slack, newest - began + slack, usual, silent, TWICE * wait)
            for slack in (-near, 0, near)
        ]
    ends = [end.ms for end in group.ends if part.place in end.places]
    ended = len(_ended(group, part, waiting[0].ms))
    # Whether one that came and went on its own had it is not known of each client.
    certain = group.state.membership != "flapping"
    if ended >= LOOPS and certain and waited > PROMPT_MS + NEAR:
        found = [("stalled", "error")]
    elif ends:
        # So soon it may be a restart as others are.
        found += [("stalled", "error"), ("stalled", "warn"), ("reading", "ok")]
    older = [
        p.readable(p.commits[-1].offset)[0].ms - waiting[0].ms
        for p in rest
        if group.owner(p.place) is owner
        and p.readable(p.committed or 0)
        and p.commits[-1].ms > began
        and not p.rebuilt  # then it is not its owner's commit
    ]
    # It reads the others first only while it reads.
    bounds = [
        max(SUSPECT_MS, TIMES * usual, TWICE * wait) for usual in (min(delays), max(delays)) for wait in waits
    ]
    idle = group.look_ms - max(own, default=-1)
    reads = idle < min(bounds) - NEAR and waited > PROMPT_MS + NEAR
    if older and min(older) < -NEAR and reads and not ends:
        return [("falling-behind", "warn")]
    if older and min(older) <= NEAR and idle <= max(bounds) + NEAR:
        found.append(("falling-behind", "warn"))
    if group.state.owner == "overloaded" and part.place == group.subject:
        found = [each for said in found for each in (_overloaded(group) if said[0] == "reading" else [said])]
    return list(dict.fromkeys(found))


def _overloaded(group: Group) -> list[Said]:
    """What a reader is that takes half of what comes, by how long it has done so."""
    falls, reads = ("falling-behind", "warn"), ("reading", "ok")
    if group.share and (group.fed_ms < CERTAIN_MS or group.takes_ms > SUSPECT_MS):
        # It takes too little from the first record on, and is long with those that came before.
        return [falls, reads]
    if group.since_ms >= CERTAIN_MS and group.state.stamps == "right":
        return [falls]
    return [falls, reads] if group.since_ms > 2 * SUSPECT_MS else [reads]


def _ended(group: Group, part: Part, since_ms: int) -> list[int]:
    """When members ended that had a partition, since a moment and since it was last committed."""
    since_ms = max(since_ms, part.commits[-1].ms if part.commits else 0)
    return [end.ms for end in group.ends if part.place in end.places and end.ms >= since_ms]


def _waits(group: Group, parts: Sequence[Part], of: Part) -> set[int]:
    """How long a commit of late came after the one before, and after its first record, as a rule.

    As it is, and as it looks where the times of records are wrong or cannot be read.
    """
    owned = [part for part in parts if group.owner(part.place) is not None]
    wrong = group.state.stamps != "right" or any(part.damaged or part.start for part in parts)
    found = set()
    for came in (True, False) if wrong else (True,):
        own = [*_steps([of], came)] if of.commits else []
        for each in (parts, owned):
            waits = own if len(own) >= SOME else [*_steps(each, came)]
            found.add(median_high(waits) if waits else 0)
    return found


def _steps(parts: Sequence[Part], came: bool) -> Iterator[int]:
    """Yield how long the last commits of partitions came after what went before."""
    since = max((part.commits[-1].ms for part in parts), default=0) - SPAN_MS
    for part in parts:
        last = [commit for commit in part.commits if commit.ms >= since][-COMPARED - 1 :]
        for a, b in pairwise(last):
            first = next((e.ms for e in part.entries if e.offset >= a.offset and e.kind != "marker"), a.ms)
            if b.offset > a.offset:
                yield b.ms - (max(a.ms, first) if came and first <= b.ms else a.ms)


def _reading(waited: int, alone: int, others: int, usual: int, silent: bool, poll: int) -> Said:
    """The status of one whose owner commits nothing; `silent`: of no other partition either."""
    suspect, poll = max(SUSPECT_MS, usual), max(POLL_MS, poll)
    if waited < PROMPT_MS:
        return "reading", "ok"
    if others > min(max(PROMPT_MS, usual), poll) or alone > poll:
        return "stalled", "error"
    if silent and alone > 2 * suspect:
        return "stalled", "error"
    if alone > suspect:
        return "stalled", "warn"
    return "reading", "ok"


def _around(ms: int, bound: int, below: str, above: str) -> list[str]:
    """The weight on this side of a bound, or both where it is near."""
    if abs(ms - bound) <= NEAR:
        return [below, above]
    return [above if ms > bound else below]


def _stuck(group: Group) -> bool:
    """Whether a rebalance lasts too long; one that waits for a member that left for now has until its end.

    A classic group that rebalances is stuck only by a second look, after a while.
    """
    if group.state.membership != "stuck" or not (group.moving and group.overdue) or group.classic:
        return False
    return bool(group.awaited)


def _held_open(group: Group, slack_ms: int) -> Iterator[Part]:
    """Yield what a transaction holds open: whoever gets it has no offset to begin at until that ends."""
    for part in group.parts.values():
        if part.held_ms is not None and group.look_ms - part.held_ms >= HELD_MS + slack_ms:
            yield part


def _ended_fresh(group: Group) -> Iterator[Part]:
    """Yield what members ended with again and again, and never committed."""
    for part in group.parts.values():
        if part.exists and not part.commits and len(_ended(group, part, 0)) >= LOOPS:
            yield part


def _fruitless(group: Group, slack_ms: int) -> Iterator[Part]:
    """Yield what members came and went with that committed nothing of it; none of them is left."""
    for part in () if group.members else _ended_fresh(group):
        ended = _ended(group, part, 0)
        got = next(end.got_ms for end in group.ends if part.place in end.places)
        came = [e.ms for e in part.readable(part.start) if e.ms > got]
        late = came and group.look_ms - came[0] >= SUSPECT_MS + slack_ms
        if late and sum(ms >= came[0] for ms in ended) >= LOOPS:
            yield part


def _broken(group: Group) -> list[frozenset[str]]:
    """The invariants that are broken, by the codes of which one must be among the findings."""
    found = []
    state = group.state
    hidden = group.moving and group.classic  # no answer shows what members subscribe to meanwhile
    if state.subscription == "two-applications" and len(group.members) > 1 and not hidden:
        found.append(frozenset({"KG121"}))
    idle = any(m.regex is not None and not m.classic and not m.owned for m in group.members)
    if state.subscription == "pattern-of-nothing" and idle:
        found.append(frozenset({"KG122"}))
    late = [ms for ms in group.outside_ms if ms > group.look_ms - SPAN_MS]
    if len(late) > 1 and late[-1] - late[0] > 10_000:
        found.append(frozenset({"KG120"}))
    if state.membership == "flapping" and group.members:
        found.append(frozenset({"KG111"}))
    # What members commit out of order, for a moment, does not count.
    span = range(group.look_ms - SPAN_MS, group.look_ms - (SUSPECT_MS + NEAR if group.members else 0) + 1)
    if any(_set_back_ms(part) in span for part in group.parts.values() if _is_below(part)):
        found.append(frozenset({"KG322"}))
    if state.stamps == "right" and any(_fruitless(group, NEAR)):
        found.append(frozenset({"KG306"}))
    if any(_held_open(group, NEAR)):
        found.append(frozenset({"KG309"}))
    if _stuck(group):
        found.append(frozenset({"KG112"}))
    if group.moving:
        found.append(frozenset({"KG102", "KG112"} if group.classic else {"KG101"}))
    if state.membership == "full" and len(group.members) == FULL:
        found.append(frozenset({"KG117"}))
    back = [each for part in group.parts.values() for each in part.back if each.ms > group.look_ms - SPAN_MS]
    if any(each.deliveries >= LIMIT for each in back):
        found.append(frozenset({"KG316"}))
    if state.owner == "releasing" and any(each.deliveries < LIMIT for each in back):
        # What a member had whose session ended comes back at once, or with its lock.
        found.append(frozenset({"KG318"}))
    if group.taken_over >= TAKEN and group.members:
        found.append(frozenset({"KG110"}))
    if any(m.left for m in group.members):
        found.append(frozenset({"KG103"}))
    if _half_way(group):
        found.append(frozenset({"KG201"}))
    # The time of a damaged batch cannot be read. A marker has its coordinator's, and stands before records
    # that producers stamped late.
    marked = state.log == "transactions" and state.stamps != "right"
    timed = [part for part in group.parts.values() if not _meets_damage(part) and not marked]
    if any(_outlived(group, part, NEAR) for part in timed) and not group.share:
        found.append(frozenset({"KG312"}))
    return found


def _named(group: Group) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the code of each finding about some of the members, with their names."""
    if _stuck(group):
        yield "KG112", tuple(m.instance or m.member_id for m in group.awaited)
    if _half_way(group):
        yield "KG201", tuple(m.instance or m.member_id for m in group.members if m.classic)


def _half_way(group: Group) -> bool:
    """Whether members of both protocols are in it: then it is a consumer group."""
    return group.mixed and any(m.classic for m in group.members) and not group.classic


def _is_below(part: Part) -> bool:
    """Whether the committed offset is below one that was committed before, in the same log."""
    before = max((commit.offset for commit in part.commits), default=0)
    return part.exists and not part.rebuilt and (part.committed or 0) < before <= part.end


def _meets_damage(part: Part) -> bool:
    """Whether the oldest record that is not read is in a damaged batch."""
    waiting = part.readable(part.committed or 0)
    return bool(waiting) and waiting[0].offset in part.damaged


def _set_back_ms(part: Part) -> int:
    """When the first commit came after the one with the highest offset."""
    highest = max(part.commits, key=lambda commit: commit.offset)
    return part.commits[part.commits.index(highest) + 1].ms


def _outlived(group: Group, part: Part, slack_ms: int) -> bool:
    """Whether the oldest record that is not read has three quarters of its retention behind it."""
    # The cleaner deletes nothing by age, and a topic that is made again has the broker's retention: none.
    keeps = group.state.log in ("compacted", "recreated") and part.place.topic == group.main
    if part.committed is None or not part.exists or part.lost or keeps:
        return False
    waiting = part.readable(part.committed)
    if slack_ms < 0:  # whether a reader of uncommitted records waits for those of an open transaction, may be
        waiting = [e for e in part.entries if e.offset >= part.committed and e.kind in ("data", "open")]
    # A broker goes by the times that producers gave.
    age_ms = (
        group.look_ms - waiting[0].ms - group.stamps_ms(part.place.topic, waiting[0].offset) if waiting else 0
    )
    return bool(waiting) and age_ms > group.retention_ms * NEAR_ITS_END + slack_ms


def _holding(group: Group) -> Iterator[str]:
    """Yield the codes of the invariants that nothing in what was played breaks."""
    state = group.state
    calm = state.membership == "stable" and state.owner != "looping"
    yield "KG123"
    if not any(_is_below(part) for part in group.parts.values()):
        yield "KG322"
    if not any(_held_open(group, -NEAR)):
        yield "KG309"
    if not group.taken_over:
        yield "KG110"
    # A roll rebalances a group as often as what ends in it.
    rolled = group.mixed or state.log in ("grown", "deleted", "recreated")
    if calm and state.owner != "none" and not rolled:
        yield "KG111"
    if not group.moving and state.owner != "hung" and not group.waits_for_still:
        yield "KG112"
    if len(group.members) != FULL:
        yield "KG117"
    if not group.outside_ms:
        yield "KG120"
    if state.subscription != "two-applications" and calm:
        yield "KG121"
    if state.subscription != "pattern-of-nothing":
        yield "KG122"
    if not any(m.left for m in group.members):
        yield "KG103"
    if not _half_way(group):
        yield "KG201"
    if not any(each.deliveries >= LIMIT for part in group.parts.values() for each in part.back):
        yield "KG316"
    # A share group may have finished any record but the first.
    if not any(_outlived(group, part, -NEAR) for part in group.parts.values()):
        yield "KG312"
