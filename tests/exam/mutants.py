"""Each rule and each check removed by hand: the exam must notice, or it examines nothing there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from importlib import import_module
from unittest import mock

from .asking import asked_shortly
from .judging import Answers, Fault, faults
from .machine import Machine
from .playing import Group, played
from .states import DIMENSIONS, PLAYED, SOUND, State, drawn, possible

VIEWS = ("all", "broker")
"""Who looks: one who sees all, and one while a broker is down."""
LAG = "kgroup.admin.read.lag"
TABLES = (
    ("kgroup.admin.read.findings", "_CHECKS"),
    ("kgroup.admin.diagnose.checks", "_LOOKS"),
    ("kgroup.admin.diagnose.checks", "_BY_STATUS"),
)
"""The tables of checks by code, or by status."""
OTHERS = (("kgroup.admin.diagnose.checks", "stopped"), ("kgroup.admin.diagnose.checks", "unread"))
"""Checks that stand in no table."""
ELSEWHERE = frozenset(
    {
        "KG105",
        "KG106",
        "KG107",
        "KG108",
        "KG109",
        "KG113",
        "KG116",
        "KG117",
        "KG118",
        "KG201",
        "KG211",
        "KG303",
        "KG304",
        "KG313",
        "KG314",
        "KG315",
        "KG316",
        "KG317",
        "KG318",
    }
)
"""Codes about what no state of the exam has yet, or that are information: other tests show them."""


def mutants() -> Iterator[tuple[str, mock._patch[object]]]:
    """Yield each mutant's name, and the patch that makes it."""
    statuses = import_module(LAG).status_of.__module__
    rules = import_module(statuses).RULES
    for rule in rules:
        left = tuple(each for each in rules if each is not rule)
        yield f"status{rule.__name__}", mock.patch(f"{statuses}.RULES", left)
    for module, name in TABLES:
        table = getattr(import_module(module), name)
        for key in table:
            if key not in ELSEWHERE:
                rest = {k: v for k, v in table.items() if k != key}
                yield f"{name}[{key}]", mock.patch(f"{module}.{name}", rest)
    for module, name in OTHERS:
        yield name, mock.patch(f"{module}.{name}", lambda *_: iter(()))


def survivors(states: Sequence[State]) -> Iterator[tuple[str, bool]]:
    """Yield each mutant with whether it lives: no fault is found in these states that is not always there."""
    machine = Machine()
    with contextlib.closing(machine):
        groups = played(machine, states)
        before = {view: _found(machine, groups, view) for view in VIEWS}
        for name, patch in mutants():
            with patch:
                yield name, not any(_found(machine, groups, view) - before[view] for view in VIEWS)


def _found(machine: Machine, groups: Sequence[Group], view: str) -> set[tuple[str, Fault]]:
    names = [group.name for group in groups]
    answers = asked_shortly(machine, names, view)
    found: set[tuple[str, Fault]] = set()
    for group in groups:
        full = None if view == "all" else Answers.of(group.name, answers)
        found |= {(group.name, fault) for fault in faults(group, answers, full)}
    return found


def chosen(count: int = 160) -> list[State]:
    """States of every kind: drawn, and each value of each dimension alone."""
    single = [
        possible(State(SOUND.but(**{name: value, "protocol": protocol}).values, seed))
        for protocol in ("classic", "consumer")
        for seed, name in enumerate(PLAYED)
        for value in DIMENSIONS[name]
        if name != "protocol"
    ]
    return [*single, *(drawn(seed) for seed in range(50_000, 50_000 + count - len(single)))]
