"""Kafka's own client of many versions: admin, producer, consumers of every kind."""

from __future__ import annotations

import pytest

from . import java_programs as programs
from .builds import chosen
from .conftest import Play
from .programs import Program

pytestmark = pytest.mark.interop
SINCE: dict[Program, tuple[int, int]] = {
    programs.topics: (2, 3),
    programs.groups_without_members: (2, 3),
    programs.producers: (2, 3),
    programs.transactions: (2, 3),
    programs.dynamic: (2, 3),
    programs.static: (2, 3),
    programs.cooperative: (2, 4),
    programs.next_generation: (3, 7),
}
CASES = [
    pytest.param(version, program, id=f"{version}-{program.__name__}")
    for version in chosen()
    for program, since in SINCE.items()
    if tuple(map(int, version.split(".")[:2])) >= since
]


@pytest.mark.parametrize(("version", "program"), CASES)
def test_java_client_finds_the_same(play: Play, version: str, program: Program) -> None:
    play(program, version)
