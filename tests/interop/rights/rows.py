"""All rows: every case with its rule sets; and how a world plays them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from . import group_cases, late_cases, topic_cases
from .cases import Case, Names
from .grants import Grant, grants_for
from .visible import Seen
from .world import World

ONE_IN = 4
CASES = (*topic_cases.CASES, *group_cases.CASES, *late_cases.CASES)


@dataclass(frozen=True, slots=True)
class Row:
    """One request under one set of rules."""

    case: Case
    names: Names
    grant: Grant

    @property
    def name(self) -> str:
        return f"{self.case.name}: {self.grant.name}"


def rows() -> Iterator[Row]:
    """In the order in which they are played."""
    for at, case in enumerate(CASES):
        shared = Names(case.name)
        for turn, grant in enumerate(grants_for(case.needs(shared), at)):
            if not case.changes:
                yield Row(case, shared, grant)
                continue
            own = Names(f"{case.name}-{turn}")
            yield Row(case, own, list(grants_for(case.needs(own), at))[turn])


def sample() -> list[Row]:
    """Of each case the row without rules, that with exactly those it needs, and one in four of the others."""
    kept: list[Row] = []
    for at, (_, of_case) in enumerate(groupby(rows(), lambda row: row.case)):
        every = list(of_case)
        none, exact, others = every[0], every[1], every[2:]
        kept += [none, exact, *(row for turn, row in enumerate(others) if (turn + at) % ONE_IN == 0)]
    return kept


def play(world: World, chosen: Iterable[Row] | None = None) -> dict[str, Seen]:
    """What bob sees, by the row's name, of all rows or those chosen; topics are there for all."""
    known = list(rows())
    world.create_topics(sorted({name for row in known for name in (row.names.a, row.names.b)}))
    group_cases.have_coordinators(world)
    ready: set[Names] = set()
    seen: dict[str, Seen] = {}
    for row in known if chosen is None else chosen:
        if row.case.prepare is not None and row.names not in ready:
            row.case.prepare(world, row.names)
        ready.add(row.names)
        request = row.case.request(world, row.names)
        world.set_acls(row.grant.acls)
        seen[row.name] = world.play(request, row.case.version)
    world.set_acls(())
    return seen
