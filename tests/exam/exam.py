"""The exam itself: states in batches, each in a cluster of its own, and the faults that the judges find."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial

from .asking import Asked, asked, asked_twice, seen
from .judging import Answers, Fault, faults, needs_time, stuck
from .machine import Machine
from .playing import Group, played
from .states import DIMENSIONS, State, drawn

Note = Callable[["Marks"], object]
Examine = Callable[..., Iterable[tuple[State, list[Fault]]]]
BATCH = 50
VIEWS = (
    *((visibility, "right") for visibility in DIMENSIONS["visibility"]),
    ("all", "ahead"),
    ("all", "behind"),
    ("history", "behind"),
    ("all", "apart"),
)
"""Who looks at each batch: one after the other, the one who sees all first."""


@dataclass
class Marks:
    """What was found: faults by state, and how much was asked."""

    states: int = 0
    found: list[tuple[State, Fault]] = field(default_factory=list)
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: Counter[tuple[str, str]] = field(default_factory=Counter)


def batches(seeds: Iterable[int], draw: Callable[[int], State]) -> Iterator[list[State]]:
    """The states of these seeds, as many as one cluster has."""
    batch: list[State] = []
    for seed in seeds:
        batch.append(draw(seed))
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def examined(
    states: Sequence[State], views: Sequence[tuple[str, str]] = VIEWS, alone: int = 5
) -> Iterator[tuple[State, list[Fault]]]:
    """Play these states in one cluster, ask who looks, and yield each state with its faults."""
    machine = Machine()
    try:
        groups = played(machine, states)
        names = [group.name for group in groups]
        looked: list[Asked] = []
        for number, (visibility, clock) in enumerate(views):
            look = seen(machine, visibility, clock)
            looked.append(asked(look, names, visibility, clock, names[:alone] if not number else ()))
        for group in groups:
            yield from _judged(group, looked)
        for share in (False, True):
            waiting = [group for group in groups if needs_time(group) and group.share == share]
            if waiting:
                options = ("--without", "history") if share else ()
                names = [group.name for group in waiting]
                later = asked_twice(seen(machine, "all", "right"), names, *options)
                for group in waiting:
                    yield group.state, list(stuck(group, later))
    finally:
        machine.close()


def _judged(group: Group, looked: Sequence[Asked]) -> Iterator[tuple[State, list[Fault]]]:
    full: Answers | None = None
    for each in looked:
        state = group.state.but(visibility=each.visibility, clock=each.clock)
        yield state, list(faults(group, each, full))
        if full is None:
            full = Answers.of(group.name, each)


def replayed(state: State) -> list[Fault]:
    """The faults of one state, alone in its cluster."""
    seen = (("all", "right"),)
    view = (state.visibility, state.clock)
    looked = examined([state], seen if view in seen else (*seen, view), alone=1)
    return [fault for found, bad in looked if (found.visibility, found.clock) == view for fault in bad]


def shrunk(state: State, still: Callable[[State], bool]) -> State:
    """The same fault with the fewest dimensions that differ from the sound default."""
    for name in list(state.odd):
        smaller = state.but(**{name: DIMENSIONS[name][0]})
        if still(smaller):
            state = smaller
    if state.seed and still(State(state.values, 0)):
        state = State(state.values, 0)
    return state


def marked(
    seeds: Iterable[int],
    views: Sequence[object],
    jobs: int = 1,
    note: Note = lambda _: None,
    draw: Callable[[int], State] = drawn,
    examine: Examine = examined,
) -> Marks:
    """Mark the answers about the states of these seeds, in several processes; `note` gets what is done."""
    marks = Marks()
    work = partial(_examined, views=views, examine=examine)
    with ProcessPoolExecutor(jobs) if jobs > 1 else nullcontext() as pool:
        done = map(work, batches(seeds, draw)) if pool is None else pool.map(work, batches(seeds, draw))
        for batch in done:
            for state, bad in batch:
                marks.states += 1
                marks.pairs.update(state.pairs)
                if bad:
                    marks.wrong.update(state.pairs)
                marks.found += [(state, fault) for fault in bad]
            note(marks)
    return marks


def _examined(
    batch: Sequence[State], views: Sequence[object], examine: Examine
) -> list[tuple[State, list[Fault]]]:
    return list(examine(batch, views))
