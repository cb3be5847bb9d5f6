"""The logs the scenarios leave behind: the same bytes every time, and every prefix of them loads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kgroup.runtime.shard import Shard
from tests.scenarios.hard_state import copy_of, hard_state
from tests.scenarios.hosts import START_MS, BareMachine
from tests.scenarios.language import Scenario, load
from tests.scenarios.runner import Player

FOLDER = Path(__file__).parents[2] / "scenarios"
SCENARIOS = [
    pytest.param(scenario, id=scenario.title)
    for path in sorted(FOLDER.glob("*/*.scenario"))
    for scenario in load(path)
    if "bare" in scenario.hosts
]


class Recording(BareMachine):
    """The bare machine; instead of checks it notes the hard state by the number of batches in the log."""

    def __init__(self, config: dict[str, str], seed: int = 7) -> None:
        self.states: dict[int, dict[str, Any]] = {}
        super().__init__(config, seed)

    def check(self) -> None:
        count = sum(1 for _ in self.log.batches())
        self.states[count] = hard_state(self.shard.coordinator)

    def raw(self) -> list[bytes]:
        return [batch.raw for batch in self.log.batches()]


def recorded(scenario: Scenario, seed: int = 7) -> Recording:
    """The host after the whole scenario."""
    host = Recording(scenario.config, seed)
    player = Player(scenario, host)
    for row in scenario.rows:
        player.play(row)
    return host


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_same_scenario_leaves_the_same_bytes_and_every_prefix_of_them_loads(scenario: Scenario) -> None:
    host = recorded(scenario)
    batches = host.raw()
    assert recorded(scenario).raw() == batches
    for count in range(len(batches) + 1):
        log = copy_of(host.log, count)
        shard = Shard(0, log, host.shard.coordinator.state.config, 1, host.shard.coordinator.state.image)
        shard.load(START_MS)
        if count in host.states:
            assert _without_shown(hard_state(shard.coordinator)) == _without_shown(host.states[count])


def test_another_seed_makes_other_ids_and_the_same_number_of_records() -> None:
    scenario = SCENARIOS[0].values[0]
    assert isinstance(scenario, Scenario)
    one, other = recorded(scenario, 1), recorded(scenario, 2)
    assert one.log.end_offset == other.log.end_offset
    assert one.raw() != other.raw()


def _without_shown(state: dict[str, Any]) -> dict[str, Any]:
    """What a forming rebalance hides is compared elsewhere (hard_state.same_hard_state)."""
    groups = {
        name: {k: v for k, v in group.items() if k != "shown"} for name, group in state["groups"].items()
    }
    return {**state, "groups": groups}
