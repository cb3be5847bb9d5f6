"""Makes a program that shows a difference as small as it gets: fewer operations first, then plainer ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .kafka import Kafka
from .verdict import Verdict, judge

Program = dict[str, Any]
PLAINER: dict[str, Any] = {
    "instance": None,
    "reason": None,
    "rack": None,
    "assignor": None,
    "states": [],
    "types": [],
    "epoch": {"own": 0},
    "type": "consumer",
    "session": 10_000,
    "rebalance": 20_000,
}


def shrunk(kafka: Kafka, verdict: Verdict) -> Verdict:
    """The smallest program found that differs in the same way."""
    best = _cut_after(kafka, verdict)
    best = _fewer(kafka, best)
    best = _plainer(kafka, best)
    return _fewer(kafka, best)


def _same(kafka: Kafka, program: Program, signature: str) -> Verdict | None:
    tried = judge(kafka.play(program), kafka.play)
    return tried if tried.signature == signature else None


def _cut_after(kafka: Kafka, verdict: Verdict) -> Verdict:
    """What follows the operation that differs goes, unless the difference is in the reloads at the end."""
    best = verdict
    ops = verdict.program["ops"]
    low, high = 0, len(ops)
    while low < high:
        middle = (low + high) // 2
        tried = _same(kafka, {**verdict.program, "ops": ops[:middle]}, verdict.signature)
        if tried is None:
            low = middle + 1
        else:
            best, high = tried, middle
    return best


def _fewer(kafka: Kafka, verdict: Verdict) -> Verdict:
    best = verdict
    size = max(1, len(best.program["ops"]) // 2)
    while True:
        removed = _without_a_piece(kafka, best, size)
        if removed is not None:
            best = removed
        elif size == 1:
            return best
        else:
            size = max(1, size // 2)


def _without_a_piece(kafka: Kafka, verdict: Verdict, size: int) -> Verdict | None:
    ops = verdict.program["ops"]
    for start in reversed(range(0, len(ops), size)):
        fewer = ops[:start] + ops[start + size :]
        if tried := _same(kafka, {**verdict.program, "ops": fewer}, verdict.signature):
            return tried
    return None


def _plainer(kafka: Kafka, verdict: Verdict) -> Verdict:
    """Settings and fields left out or at their plainest, one at a time."""
    best = verdict
    for change in _changes(verdict.program):
        program = change(best.program)
        if program != best.program and (tried := _same(kafka, program, verdict.signature)):
            best = tried
    return best


def _changes(program: Program) -> Iterator[Callable[[Program], Program]]:
    for name in program["setup"]["config"]:
        yield lambda p, name=name: _without_setting(p, name)
    yield lambda p: {**p, "setup": {**p["setup"], "racks": False}}
    for index, op in enumerate(program["ops"]):
        for field in op:
            if field in PLAINER:
                yield lambda p, i=index, f=field: _with_plain(p, i, f)


def _without_setting(program: Program, name: str) -> Program:
    config = {key: value for key, value in program["setup"]["config"].items() if key != name}
    return {**program, "setup": {**program["setup"], "config": config}}


def _with_plain(program: Program, index: int, field: str) -> Program:
    ops = list(program["ops"])
    ops[index] = {**ops[index], field: PLAINER[field]}
    return {**program, "ops": ops}
