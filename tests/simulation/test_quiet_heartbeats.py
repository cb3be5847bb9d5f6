"""The short cut for heartbeats that change nothing: with and without it the same runs, byte for byte."""

from __future__ import annotations

import pytest

from kgroup.coordinator.consumer import quiet
from kgroup.coordinator.migration import consumer_members
from kgroup.simulation.play.chaos import run

SEEDS = range(40, 46)


def test_the_same_seeds_play_the_same_without_the_short_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = 0

    def counted(*given: object) -> object:
        nonlocal taken
        found = quiet.said_before(*given)  # type: ignore[arg-type]
        taken += found is not None
        return found

    monkeypatch.setattr(consumer_members, "said_before", counted)
    short = [run(seed) for seed in SEEDS]
    assert taken > 20
    monkeypatch.setattr(consumer_members, "said_before", lambda *given: None)
    whole = [run(seed) for seed in SEEDS]
    assert [each.fingerprint for each in short] == [each.fingerprint for each in whole]
    assert [each.steps for each in short] == [each.steps for each in whole]
