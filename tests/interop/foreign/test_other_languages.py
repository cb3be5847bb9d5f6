"""sarama and kafka-go (Go), kafkajs (Node): groups, batches and what each has besides."""

from __future__ import annotations

import pytest

from . import other_programs as programs
from .conftest import Play
from .programs import Program

pytestmark = pytest.mark.interop
DRIVERS = {"sarama": "go", "kafka-go": "go", "kafkajs": "kafkajs"}
CASES: list[tuple[str, Program]] = [
    *((client, program) for client in DRIVERS for program in (programs.group, programs.kinds_of_batches)),
    ("sarama", programs.static_sarama),
    ("kafkajs", programs.transactions_kafkajs),
    ("kafkajs", programs.positions_kafkajs),
]


@pytest.mark.parametrize(("library", "program"), CASES, ids=[f"{c}-{p.__name__}" for c, p in CASES])
def test_client_finds_the_same(play: Play, library: str, program: Program) -> None:
    play(program, DRIVERS[library], library)
