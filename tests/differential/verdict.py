"""What a program's trace shows: the first operation whose outcome nothing allows to differ, or agreement.

Where an allowed difference sends the two different ways, the program is played once more with a restart
behind it: both begin again with the log that Kafka wrote, and what follows is compared too.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .allowed import reason_for
from .differences import Difference
from .log import reload_differences
from .player import Player

RESTART = {"do": "restart"}
MOST_RESTARTS = 25
Play = Callable[[dict[str, Any]], bytes]


@dataclass
class Verdict:
    """`differences` are those of one operation, or of the reloads at the end; empty when all agrees.

    `operations` counts the events compared, `restarts` how often both had to begin again.
    """

    seed: int
    program: dict[str, Any]
    operations: int = 0
    differences: list[Difference] = field(default_factory=list)
    allowed: Counter[str] = field(default_factory=Counter)
    restarts: int = 0
    ended_early: str | None = None

    @property
    def signature(self) -> str:
        return self.differences[0].signature if self.differences else ""


def judge(trace: bytes, play: Play) -> Verdict:
    """Play a program and its trace, as the JVM gives them; `play` has Kafka play a program again."""
    lines = trace.splitlines()
    program = json.loads(lines[0])
    verdict = Verdict(program["seed"], program)
    player = Player(json.loads(lines[1]))
    _take(verdict, player, player.found)
    at, done = 2, 0  # of the trace's lines, of the program's operations
    while at < len(lines) and not verdict.differences:
        event = json.loads(lines[at])
        at += 1
        done += "op" in event
        verdict.operations += 1
        _take(verdict, player, player.play(event))
        if verdict.ended_early is None or verdict.differences:
            continue
        if player.lasting or verdict.restarts == MOST_RESTARTS:
            break
        # The rest of a passing of time is left out: the restart stands behind its operation.
        done += "op" not in event
        if done == len(verdict.program["ops"]):
            break
        lines = _with_restart(verdict, done, play)
        while (event := json.loads(lines[at])).get("op") != RESTART:
            player.hear(event)
            at += 1
        player.take_over()
        verdict.ended_early = None
    if not verdict.differences:
        verdict.differences = list(reload_differences(player.coordinator, player.log, verdict.seed))
    return verdict


def _with_restart(verdict: Verdict, behind: int, play: Play) -> list[bytes]:
    """The trace of the program with a restart behind so many operations."""
    ops = verdict.program["ops"]
    verdict.program = {**verdict.program, "ops": [*ops[:behind], RESTART, *ops[behind:]]}
    verdict.restarts += 1
    return play(verdict.program).splitlines()


def _take(verdict: Verdict, player: Player, found: list[Difference]) -> None:
    """Sort what was found into the verdict."""
    for one in found:
        entry = reason_for(one, player)
        if entry is None:
            verdict.differences.append(one)
        else:
            verdict.allowed[entry.name] += 1
            if entry.ends:
                verdict.ended_early = entry.name
                player.lasting = player.lasting or entry.lasts
    if verdict.ended_early:
        verdict.differences = []
