"""Kafka's sticky task assignor and ours put every task of made-up groups in the same place."""

from __future__ import annotations

from random import Random

import pytest

from tests.interop.conftest import require

from .kafka import NEWEST, OLDEST
from .tasks import MadeUp, cases, ours

CASES = range(1, 61)


@pytest.mark.interop
@pytest.mark.timeout(1200)
@pytest.mark.xdist_group("differential")
@pytest.mark.parametrize("kafka", [OLDEST, NEWEST])
def test_the_tasks_of_made_up_groups_are_where_kafka_has_them(kafka: str) -> None:
    """AE-32; `make differential-tasks` plays ten thousand."""
    require("java", "javac", "mvn")
    played = cases(CASES, 5, kafka)
    assert [case.difference for case in played if case.difference] == []
    assert sum(case.moved for case in played) > len(played)


def test_made_up_groups_are_of_many_kinds() -> None:
    """Shared processes, standbys, several parts, and tasks that nobody should have had."""
    groups = [MadeUp.of(seed) for seed in CASES]
    assert any(len(set(g.threads.values())) < len(g.threads) for g in groups)
    assert {g.standbys for g in groups} >= {0, 1, 2} and {len(g.parts) for g in groups} >= {1, 3, 12}
    before: dict[str, dict[str, dict[str, list[int]]]] = {}
    group = groups[0]
    group.rng = Random(1)
    asked = group.asked(before)
    given = ours(asked, NEWEST)
    placed = [n for told in given.values() for numbers in told["active"].values() for n in numbers]
    assert len(placed) == sum(part["tasks"] for part in asked["subtopologies"])
