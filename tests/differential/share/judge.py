"""Compares what ours and Kafka say to a program, and makes one that differs small."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..kafka import Jvm
from .ours import Op, Ours, Told
from .programs import Program

JAVA = Path(__file__).resolve().parent / "java"


def kafka() -> Jvm:
    """Kafka's classes, to be used in a `with`."""
    return Jvm("kafka.server.share.Player", None, JAVA)


@dataclass(frozen=True)
class Verdict:
    """How far a program is played alike, and what differs then."""

    seed: int
    setup: Told
    ops: list[Op]
    at: int
    differences: tuple[str, ...]
    signature: str
    crash: str = ""
    """Why the program ended early: an exception of Kafka's own, behind which its state is undefined."""


def judge(running: Jvm, seed: int, length: int) -> Verdict:
    """Make a program up, and compare."""
    program = Program.of(seed, length)
    return _compared(running, seed, program.setup, program.ops, program.told, program.ours)


def _compared(running: Jvm, seed: int, setup: Told, ops: list[Op], told: list[Told], ours: Ours) -> Verdict:
    theirs: list[Told] = running.ask({"setup": setup, "ops": ops})  # type: ignore[assignment]
    for at, (mine, kafkas) in enumerate(zip(told, theirs, strict=False)):
        if "crash" in kafkas:
            return Verdict(seed, setup, ops, at, (), "", f"{ops[at]['op']}: {kafkas['crash']}")
        found = list(_differences(kafkas, mine))
        if found:
            lines = tuple(
                f"#{at} {ops[at]['op']} {where}: {one!r}, ours {other!r}" for where, one, other in found
            )
            return Verdict(seed, setup, ops, at, lines, f"{ops[at]['op']} {found[0][0]}")
    fresh = ours.reloaded()
    if fresh.states != ours.coordinator.states or fresh.redundant_offset != ours.coordinator.redundant_offset:
        return Verdict(seed, setup, ops, len(ops), ("another state after a restart",), "restart")
    return Verdict(seed, setup, ops, len(ops), (), "")


def _differences(kafkas: Told, mine: Told) -> Iterator[tuple[str, Any, Any]]:
    if "message" in kafkas:  # our partition does not know what it is called
        kafkas["message"] = kafkas["message"].split(" g-")[0]
    for name in sorted({*kafkas, *mine}):
        one, other = kafkas.get(name), mine.get(name)
        if name == "state" and one and other:
            for part in one:
                if one[part] != other[part]:
                    yield f"state.{part}", one[part], other[part]
        elif one != other:
            yield name, one, other


def shrunk(running: Jvm, verdict: Verdict) -> Verdict:
    """The smallest program found that differs in the same way."""
    best = _tried(running, verdict, verdict.ops[: verdict.at + 1]) or verdict
    size = max(1, len(best.ops) // 2)
    while size:
        for start in reversed(range(0, len(best.ops), size)):
            fewer = best.ops[:start] + best.ops[start + size :]
            best = _tried(running, best, fewer) or best
        size //= 2
    return best


def _tried(running: Jvm, verdict: Verdict, ops: list[Op]) -> Verdict | None:
    ours = Ours(verdict.setup)
    try:
        told = [ours.play(op) for op in ops]
        found = _compared(running, verdict.seed, verdict.setup, ops, told, ours)
    except AssertionError:  # of a partition that is not loaded
        return None
    return found if found.signature == verdict.signature else None
