"""What a program's trace shows: the first operation whose outcome nothing allows to differ, or agreement."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from .allowed import reason_for
from .differences import Difference
from .log import reload_differences
from .player import Player


@dataclass
class Verdict:
    """`differences` are those of one operation, or of the reloads at the end; empty when all agrees."""

    seed: int
    program: dict[str, Any]
    operations: int = 0
    differences: list[Difference] = field(default_factory=list)
    allowed: Counter[str] = field(default_factory=Counter)
    ended_early: str | None = None

    @property
    def signature(self) -> str:
        return self.differences[0].signature if self.differences else ""


def judge(trace: bytes) -> Verdict:
    """Play a program and its trace, as the JVM gives them."""
    lines = trace.splitlines()
    program = json.loads(lines[0])
    verdict = Verdict(program["seed"], program)
    player = Player(json.loads(lines[1]))
    ended = _take(verdict, player, player.found)
    for line in lines[2:]:
        if ended:
            break
        verdict.operations += 1
        ended = _take(verdict, player, player.play(json.loads(line)))
    if not verdict.differences:
        verdict.differences = list(reload_differences(player.coordinator, player.log, verdict.seed))
    return verdict


def _take(verdict: Verdict, player: Player, found: list[Difference]) -> bool:
    """Sort what was found into the verdict; whether the program ends here."""
    for one in found:
        entry = reason_for(one, player)
        if entry is None:
            verdict.differences.append(one)
        else:
            verdict.allowed[entry.name] += 1
            if entry.ends:
                verdict.ended_early = entry.name
    if verdict.ended_early:
        verdict.differences = []
    return bool(verdict.differences or verdict.ended_early)
