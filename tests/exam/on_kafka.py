"""A sample of the exam on a real Kafka: each pair of values that can meet there, in as few states."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from random import Random

from .asking import Asked, asked, asked_twice
from .exam import Marks
from .judging import Answers, Fault, faults, needs_time, stuck
from .playing_real import TIMES, RealGroup, played_really, unplayable
from .real_machine import RealMachine
from .states import DIMENSIONS, State, possible

Pair = tuple[str, str]
Note = Callable[[str], object]
AT_ONCE = 100
"""States on one broker: their readers stop when the commands begin, so the answers must not take a minute."""
TRIES = 12
"""Random states in which a pair is looked for before it counts as one that cannot be."""


def covering(
    count: int, release: str, *, longest: int = 120, seed: int = 1
) -> tuple[list[State], dict[Pair, str]]:
    """So many states that meet each pair of values, and the pairs that cannot be met, with the reason."""
    by, left = Random(seed), dict.fromkeys(_pairs(), True)
    chosen: list[State] = []
    without: dict[Pair, str] = {}
    while len(chosen) < count:
        pair = next(iter(left), None)
        tried, why = [], Counter[str]()
        for _ in range(TRIES):
            values = {n: by.choice(v) if by.random() < 0.7 else v[0] for n, v in DIMENSIONS.items()}
            values |= dict(each.split("=") for each in pair or ())
            state = possible(State(tuple(values.values()), by.randrange(10_000)))
            if reason := unplayable(state, release, longest):
                why[reason] += 1
            elif pair is None or pair in set(state.pairs):
                tried.append(state)
            else:
                why["the two do not meet in one cluster"] += 1
        if tried:
            best = max(tried, key=lambda state: sum(each in left for each in state.pairs))
            chosen.append(best)
            for met in best.pairs:
                left.pop(met, None)
        elif pair is not None:
            without[pair] = why.most_common(1)[0][0]
            del left[pair]
    return chosen, without


def _pairs() -> Iterator[Pair]:
    for (one, ones), (other, others) in combinations(DIMENSIONS.items(), 2):
        for a in ones:
            yield from ((f"{one}={a}", f"{other}={b}") for b in others)


def examined_on_kafka(
    release: str, states: Sequence[State], longest: int = 120, note: Note = lambda _: None
) -> Iterator[tuple[State, list[Fault], str]]:
    """Play these states at once, ask, and yield each with its faults, or with why it did not come about.

    One who sees all asks about every state, and then who looks in each state about that.
    """
    with tempfile.TemporaryDirectory() as folder, RealMachine(release, Path(folder)) as machine:
        groups = played_really(machine, states, TIMES[longest], note)
        full = asked(machine.seen("all", "right"), [group.name for group in groups], "all", "right")
        note("one who sees all was answered")
        answers = {group.name: [full] for group in groups}
        views = dict.fromkeys((g.state.visibility, g.state.clock) for g in groups)
        for view in views:
            names = [g.name for g in groups if (g.state.visibility, g.state.clock) == view]
            if view != ("all", "right"):
                seen = asked(machine.seen(*view), names, *view)
                for name in names:
                    answers[name].append(seen)
        note("the others were answered")
        waiting = [group.name for group in groups if needs_time(group) and not group.share]
        later = asked_twice(machine.seen("all", "right"), waiting) if waiting else None
        audit(machine, groups)
        note("the logs were read")
    for group in groups:
        bad = list(_judged(group, answers[group.name]))
        if later is not None and group.name in waiting:
            bad += stuck(group, later)
        yield group.state, bad, "; ".join(group.spoiled)


def audit(machine: RealMachine, groups: Sequence[RealGroup]) -> None:
    """Read all logs: what was thought to be in them must be there."""
    parts = [(group, part) for group in groups for part in group.parts.values() if part.exists]
    found = machine.read([part.place for _, part in parts])
    for group, part in parts:
        if found[part.place] != (expected := [entry.offset for entry in part.readable(0)]):
            where = f"{part.place.topic[len(group.name) + 1 :]}-{part.place.partition}"
            group.spoiled.append(f"{where} has {found[part.place][-9:]} and not {expected[-9:]}")


def _judged(group: RealGroup, looked: Sequence[Asked]) -> Iterator[Fault]:
    full: Answers | None = None
    for each in looked:
        yield from faults(group, each, full)
        full = full or Answers.of(group.name, each)


def marked_on_kafka(
    release: str, states: Sequence[State], note: Note
) -> tuple[Marks, list[tuple[State, str]]]:
    """Mark the answers about these states on a real Kafka; and list what did not come about, with why."""
    marks, spoiled = Marks(), list[tuple[State, str]]()
    for first in range(0, len(states), AT_ONCE):
        for state, bad, why in examined_on_kafka(release, states[first : first + AT_ONCE], note=note):
            if why:
                spoiled.append((state, why))
                continue
            marks.states += 1
            marks.pairs.update(state.pairs)
            if bad:
                marks.wrong.update(state.pairs)
            marks.found += [(state, fault) for fault in bad]
    return marks, spoiled
