"""docs/states.md draws what a group can do, no more and no less."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from kgroup.coordinator.classic.group import ClassicGroup
from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.coordinator import Coordinator
from kgroup.runtime.shard import Shard
from kgroup.simulation.play.chaos import run
from tests.sampled import FULL
from tests.scenarios.hosts import BareMachine
from tests.scenarios.runner import play
from tests.scenarios.test_scenarios import SCENARIOS

FIGURE = Path(__file__).parents[2] / "docs" / "states.md"
NOWHERE = "[*]"
RARE = (12, 14, 40, 116)
"""Nights with arrows that few others take."""
NIGHTS = (*RARE, *sorted({*range(60)} - {*RARE}))
ENOUGH = len(NIGHTS) if FULL else 10
"""After so many nights the test ends as soon as all arrows are taken."""
Arrow = tuple[str, str]


def drawn() -> set[Arrow]:
    text = FIGURE.read_text()
    names = {short: name for name, short in re.findall(r'state "([^"]+)" as (\w)', text)}
    ends = re.findall(r"^ +(\S+) --> (\S+):", text, re.M)
    return {(names.get(one, one), names.get(other, other)) for one, other in ends}


def states_of(coordinator: Coordinator) -> dict[str, str]:
    """Groups of Kafka Streams are not drawn: they are converted into neither."""
    return {
        group.group_id: f"{'classic' if isinstance(group, ClassicGroup) else 'consumer'}: {group.state}"
        for group in coordinator.state.groups.values()
        if isinstance(group, ClassicGroup | ConsumerGroup)
    }


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> set[Arrow]:
    """The arrows that groups of any shard take from here on; what a restart does is none."""
    found: set[Arrow] = set()

    def noting(right: Callable[..., Any]) -> Callable[..., Any]:
        def settled(shard: Shard, *args: Any) -> Any:
            coordinator = shard.coordinator
            before = known.get(coordinator)
            result = right(shard, *args)
            if shard.coordinator is coordinator:
                after = known[coordinator] = states_of(coordinator)
                found.update(() if before is None else _differences(before, after))
            return result

        return settled

    known: dict[Coordinator, dict[str, str]] = {}
    # A request that writes nothing and has its own answer alone is not settled.
    for name in ("submit", "_settle"):
        monkeypatch.setattr(Shard, name, noting(getattr(Shard, name)))
    return found


def _differences(before: dict[str, str], after: dict[str, str]) -> Iterable[Arrow]:
    for group_id in before.keys() | after.keys():
        one, other = before.get(group_id, NOWHERE), after.get(group_id, NOWHERE)
        if one != other:
            yield one, other


@pytest.mark.timeout(900)
def test_the_figure_has_every_arrow_that_is_taken_and_no_other(seen: set[Arrow]) -> None:
    for scenario in SCENARIOS:
        # The figure is of groups as Kafka knows them: one that expects members begins elsewhere.
        expects = any("kgroup." in row.text for row in scenario.rows)
        if "bare" in scenario.hosts and not expects:
            host = BareMachine(scenario.config)
            try:
                play(scenario, host)
            finally:
                host.close()
    for number, seed in enumerate(NIGHTS):
        if number >= ENOUGH and drawn() <= seen:
            break
        run(seed)
    assert seen - drawn() == set()
    assert drawn() - seen == set()
