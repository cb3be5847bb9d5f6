"""python -m tests.exam --count 20000 [--first SEED] | --replay TEXT: the generated exam."""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from . import plans
from .exam import VIEWS, Marks, examined, marked, replayed, shrunk
from .judging import JUDGES, Fault
from .known import is_known
from .states import State, drawn, drawn_for_plans

KINDS = 40
"""How many kinds of faults are shrunk and shown."""


def main() -> int:
    """Run the exam as the command line says."""
    options = argparse.ArgumentParser(prog="python -m tests.exam", description=__doc__)
    options.add_argument("--count", type=int, default=1000, help="how many states")
    options.add_argument("--first", type=int, default=1, help="the first seed")
    options.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    options.add_argument("--replay", help="one state, as a failure prints it")
    options.add_argument("--mutants", action="store_true", help="remove each rule and check, one by one")
    options.add_argument("--plans", action="store_true", help="the plans of changes, and what follows")
    options.add_argument("--full-sight", action="store_true", help="one viewer only, who sees all")
    options.add_argument("--new", action="store_true", help="only what is not known (known.py)")
    options.add_argument("--no-shrink", action="store_true", help="print failures as they were found")
    options.add_argument("--kafka", metavar="RELEASE", help="on a real Kafka, with real clients")
    given = options.parse_args()
    if given.kafka is not None:
        return on_kafka(given.kafka, given.count, given.first, given.replay)
    replay = plans.replayed if given.plans else replayed
    if given.replay is not None:
        bad = replay(State.parse(given.replay))
        print(*(f"{fault.judge}: {fault.why}" for fault in bad), sep="\n")
        return 1 if bad else 0
    if given.mutants:
        return mutants(of_plans=given.plans)
    began = time.perf_counter()
    views: Sequence[object] = plans.VIEWS if given.plans else VIEWS
    views = views[:1] if given.full_sight else views
    draw, examine = (drawn_for_plans, plans.examined) if given.plans else (drawn, examined)
    played = -(-given.count // len(views))

    def note(marks: Marks) -> None:
        passed = time.perf_counter() - began
        print(
            f"{marks.states} states, {len(marks.found)} faults, {passed:.0f} s", file=sys.stderr, flush=True
        )

    seeds = range(given.first, given.first + played)
    marks = marked(seeds, views, given.jobs, note, draw, examine)
    words = f"{marks.states} states: {played} groups, each asked about by {len(views)} who see more or less"
    print(f"{words}; {time.perf_counter() - began:.0f} s")
    if given.new:
        marks.found = [(s, f) for s, f in marks.found if not is_known(f.judge, f.why)]
    report(marks, None if given.no_shrink else replay)
    return 1 if marks.found else 0


def on_kafka(release: str, count: int, first: int, replay: str | None) -> int:
    """Play a sample, or one state, on a real Kafka; print what is wrong, and what cannot be played there."""
    from .on_kafka import covering, marked_on_kafka

    began = time.perf_counter()
    states = [State.parse(text) for text in replay.split(";")] if replay else []
    without: dict[tuple[str, str], str] = {}
    if not replay:
        states, without = covering(count, release, seed=first)

    def note(words: str) -> None:
        print(f"{time.perf_counter() - began:.0f} s: {words}", file=sys.stderr, flush=True)

    marks, spoiled = marked_on_kafka(release, states, note)
    if not replay:
        print("pairs that no state has there:")
        for why, many in Counter(without.values()).most_common():
            print(f"  {many}: {why}")
    for state, why in spoiled:
        print(f"not judged: {state}: {why}")
    print(f"Kafka {release}: {marks.states} of {len(states)} states; {time.perf_counter() - began:.0f} s")
    report(marks, None)
    return 1 if marks.found else 0


def mutants(*, of_plans: bool) -> int:
    """Print of each mutant whether the exam fails with it."""
    from .mutants import chosen, survivors, survivors_of_plans

    alive = 0
    for name, lives in survivors_of_plans() if of_plans else survivors(chosen()):
        print(f"{'LIVES' if lives else 'found'}  {name}", flush=True)
        alive += lives
    return 1 if alive else 0


def kind_of(fault: Fault) -> str:
    """What faults of one kind have in common: numbers and ids are left out."""
    return fault.judge + ": " + re.sub(r"x\d{4}[-\w]*|\b\d[\d.]*\b|member-id \S+", "#", fault.why)[:160]


def report(marks: Marks, replay: Callable[[State], list[Fault]] | None) -> None:
    """Print counts per judge, the pairs that fail most, and one smallest state of each kind of fault."""
    counts = Counter(fault.judge for _, fault in marks.found)
    print(*(f"{judge}: {counts[judge]}" for judge in JUDGES), sep="   ")
    print(f"{len(marks.pairs)} pairs of values met; most often wrong:")
    for pair, wrong in marks.wrong.most_common(8):
        print(f"  {wrong} of {marks.pairs[pair]}: {' with '.join(pair)}")
    kinds: defaultdict[str, list[tuple[State, Fault]]] = defaultdict(list)
    for state, fault in marks.found:
        kinds[kind_of(fault)].append((state, fault))
    for kind, those in sorted(kinds.items(), key=lambda each: -len(each[1]))[:KINDS]:
        state, fault = min(those, key=lambda each: len(each[0].odd))
        if replay is not None:
            state = shrunk(state, lambda s, kind=kind: kind in map(kind_of, _safely(s, replay)))  # type: ignore[misc]
        print(f"{len(those)} x {fault.judge}: {fault.why}\n    --replay '{state}'")
    if len(kinds) > KINDS:
        print(f"and {len(kinds) - KINDS} kinds more")


def _safely(state: State, replay: Callable[[State], list[Fault]]) -> list[Fault]:
    """The faults of a state; none where the smaller state cannot be played."""
    try:
        return replay(state)
    except AssertionError:
        return []


if __name__ == "__main__":
    sys.exit(main())
