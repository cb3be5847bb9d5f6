"""A program in the notation of tests/scenarios says there what Kafka did."""

from __future__ import annotations

import pytest

from tests.scenarios.hosts import BareMachine
from tests.scenarios.language import parse
from tests.scenarios.runner import play

from .kafka import Kafka
from .scenario import as_scenario

pytestmark = [pytest.mark.interop, pytest.mark.xdist_group("differential")]

SETUP = {"topics": {"foo": 2}, "config": {"group.initial.rebalance.delay.ms": "500"}}
JOIN = {
    "do": "join",
    "as": "c0",
    "group": "g",
    "version": 9,
    "member": "own",
    "instance": None,
    "type": "consumer",
    "session": 10_000,
    "rebalance": 20_000,
    "protocols": [{"name": "range", "topics": ["foo"], "version": 3, "owned": False}],
}
SYNC = {
    "do": "sync",
    "as": "c0",
    "group": "g",
    "version": 4,
    "member": "own",
    "instance": None,
    "epoch": 0,
    "type": "consumer",
    "protocol": "own",
}
BEAT = {
    "do": "heartbeat",
    "as": "c0",
    "group": "g",
    "version": 4,
    "member": "own",
    "instance": None,
    "epoch": 0,
}
OPS = [JOIN, JOIN, {"do": "advance", "ms": 500}, SYNC, BEAT, {"do": "advance", "ms": 10_000}, BEAT]


def test_what_kafka_did_is_a_scenario_that_ours_passes(kafka: Kafka) -> None:
    text = as_scenario(kafka.play({"seed": 1, "setup": SETUP, "ops": OPS}), "A member's session ends")
    assert text is not None
    assert "c0: MEMBER_ID_REQUIRED m1" in text
    assert "c0: UNKNOWN_MEMBER_ID" in text
    (scenario,) = parse(text)
    play(scenario, BareMachine(scenario.config))


def test_what_the_notation_cannot_say_is_no_scenario(kafka: Kafka) -> None:
    offsets = {"do": "offset_delete", "group": "g", "parts": []}
    assert as_scenario(kafka.play({"seed": 1, "setup": SETUP, "ops": [offsets]}), "Offsets") is None
