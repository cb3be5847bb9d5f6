"""Kafka and ours know the same settings of groups, with the same defaults, and refuse the same values."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kgroup.coordinator.config import GroupConfig
from kgroup.coordinator.group_settings import WORDS, bounds

from .kafka import Jvm
from .settings import ELSEWHERE, Case

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1200), pytest.mark.xdist_group("differential")]
CASES = range(1, 20_001)


@pytest.fixture(scope="module")
def judge() -> Iterator[Jvm]:
    with Jvm("kgroup.differential.Settings") as running:
        yield running


def test_settings_and_their_defaults_are_kafkas(judge: Jvm) -> None:
    """Every one of Kafka's is here or named as one that is not."""
    told = judge.ask({})
    theirs = told["broker"]
    ours = {n: v for n, v in GroupConfig().as_settings().items() if not n.startswith("kgroup.")}
    assert theirs.keys() == ours.keys() | ELSEWHERE
    assert ours == {name: theirs[name] for name in ours}
    numbers = {name: str(bound.default) for name, bound in bounds(GroupConfig()).items()}
    assert numbers | {name: word.default for name, word in WORDS.items()} == told["group"]


def test_settings_are_refused_where_kafka_refuses_them(judge: Jvm) -> None:
    names = [*bounds(GroupConfig()), *WORDS]
    differ, refused = [], 0
    for seed in CASES:
        case = Case.of(seed, names)
        theirs, ours = judge.ask(case.asked()).get("refused"), case.refused_by_us()
        refused += theirs is not None
        if (theirs is None) != (ours is None):
            differ.append((case, f"Kafka: {theirs}", f"ours: {ours}"))
    assert differ[:5] == [], f"{len(differ)} of {len(CASES)} differ"
    assert len(CASES) // 4 < refused < len(CASES) * 3 // 4
