"""Kafka and ours know the same settings of groups, with the same defaults, and refuse the same values."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kgroup.coordinator.config import GroupConfig
from kgroup.protocol.releases import Release
from tests.sampled import FULL

from .kafka import NEWEST, OLDEST, Jvm
from .settings import ELSEWHERE, NOT_BUILT, Case

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1200), pytest.mark.xdist_group("differential")]
CASES = range(1, 20_001 if FULL else 4_001)


@pytest.fixture(scope="module", params=[OLDEST, NEWEST])
def judge(request: pytest.FixtureRequest) -> Iterator[tuple[Jvm, GroupConfig]]:
    with Jvm("kgroup.differential.Settings", request.param) as running:
        yield running, GroupConfig(kafka=Release.of(request.param.rpartition(".")[0]))


def test_settings_and_their_defaults_are_kafkas(judge: tuple[Jvm, GroupConfig]) -> None:
    """Every one of Kafka's is here or named as one that is not."""
    kafka, config = judge
    theirs = kafka.ask({})
    ours = {n: v for n, v in config.as_text().items() if not n.startswith("kgroup.")}
    assert theirs["broker"].keys() - ours.keys() - NOT_BUILT == ELSEWHERE
    assert ours == {name: theirs["broker"].get(name) for name in ours}
    # A group that chooses no assignor has the broker's first: Kafka's classes have no default there.
    groups = {
        name: row.default_text if "assignor" not in name else None for name, row in config.of_groups().items()
    }
    assert groups == {name: text for name, text in theirs["group"].items() if name not in NOT_BUILT}


def test_settings_are_refused_where_kafka_refuses_them(judge: tuple[Jvm, GroupConfig]) -> None:
    kafka, config = judge
    names = list(config.of_groups())
    differ, refused = [], 0
    for seed in CASES:
        case = Case.of(seed, names, config.kafka)
        theirs, ours = kafka.ask(case.asked()).get("refused"), case.refused_by_us()
        refused += theirs is not None
        if (theirs is None) != (ours is None):
            differ.append((case, f"Kafka: {theirs}", f"ours: {ours}"))
    assert differ[:5] == [], f"{len(differ)} of {len(CASES)} differ"
    assert len(CASES) // 4 < refused < len(CASES) * 3 // 4
