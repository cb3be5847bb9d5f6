"""The harness goes on where it can, and never takes silence for agreement."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kgroup.coordinator.timer_kinds import TimerKind
from kgroup.timers import TimerKey

from .kafka import Kafka
from .player import Player
from .verdict import RESTART, judge

pytestmark = [pytest.mark.interop, pytest.mark.xdist_group("differential")]
SETUP: dict[str, Any] = {"topics": {"foo": 2}, "config": {}}
LATE = {"do": "advance", "ms": 1000}
COMMIT = {
    "do": "commit",
    "version": 9,
    "as": "c0",
    "group": "g",
    "epoch": {"set": -1},
    "member": "none",
    "instance": None,
    "parts": [["foo", 0, 5, 0, "m"]],
}
TOO_LONG = {**COMMIT, "parts": [["foo", 0, 5, 0, "m" * 5000]]}


def program(*ops: dict[str, Any]) -> dict[str, Any]:
    return {"seed": 1, "setup": SETUP, "ops": list(ops)}


@pytest.mark.parametrize("streams", [False, True])
def test_a_program_says_all_that_its_clients_did(kafka: Kafka, streams: bool) -> None:
    """Played again, a made-up program goes the same way."""
    for seed in range(1, 21):
        trace = kafka.invent(seed, 60, streams=streams)
        assert kafka.play(json.loads(trace.splitlines()[0])) == trace, seed


def test_behind_an_allowed_difference_both_begin_again(kafka: Kafka) -> None:
    """A refused commit leaves a group in Kafka's memory: a restart is put behind it, and the rest is seen."""
    verdict = judge(kafka.play(program(TOO_LONG, LATE, COMMIT)), kafka.play)
    assert (verdict.differences, verdict.restarts, verdict.ended_early) == ([], 1, None)
    assert verdict.program["ops"] == [TOO_LONG, RESTART, LATE, COMMIT]
    assert verdict.operations == 4


def test_after_a_restart_ours_has_read_what_kafka_wrote(kafka: Kafka) -> None:
    lines = kafka.play(program(COMMIT, RESTART)).splitlines()
    player = Player(json.loads(lines[1]))
    player.hear(json.loads(lines[2]))
    player.take_over()
    assert player.play(json.loads(lines[3])) == []
    assert player.coordinator.state.offsets.get("g", "foo", 0) is not None


@pytest.mark.parametrize(
    ("op", "differs", "ended"), [(LATE, 1, None), (RESTART, 0, "a log that Kafka cannot load")]
)
def test_a_failure_of_kafkas_machine_ends_the_program_alone(
    kafka: Kafka, op: dict[str, Any], differs: int, ended: str | None
) -> None:
    broken = json.dumps({"kind": "broken", "said": "IllegalStateException: x", "op": op}).encode()
    verdict = judge(kafka.play(program(COMMIT)) + broken, kafka.play)
    assert (len(verdict.differences), verdict.ended_early) == (differs, ended)


def test_a_timer_that_only_ours_has_is_a_difference(kafka: Kafka) -> None:
    lines = kafka.play(program(LATE)).splitlines()
    player = Player(json.loads(lines[1]))
    key = TimerKey(TimerKind.CLASSIC_JOIN, "g")
    player.timers.arm(key, player.event["now"] + 1)
    assert player.play(json.loads(lines[2])) == []
    assert key not in player.timers
