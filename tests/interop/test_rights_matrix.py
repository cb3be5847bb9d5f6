"""Requests × access rules, over the wire: Kafka 4.3.1 as recorded, and ours as Kafka, row by row.

`make security` plays all rows; the interop suite a sample with each request and each kind of rule set.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.sampled import FULL, in_full

from .conftest import require
from .rights.allowed import ALLOWED
from .rights.on_kafka import play_on_kafka
from .rights.on_kgroup import play_on_kgroup
from .rights.recorded import read
from .rights.rows import rows, sample

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1200)]
CHOSEN = list(rows()) if FULL else sample()
ROUNDS = 5


@in_full("the record is compared with ours in CI, and Kafka alone has no part of kgroup")
def test_kafka_answers_as_recorded(tmp_path_factory: pytest.TempPathFactory) -> None:
    require("java", "mvn")
    recorded = read()
    assert recorded.keys() == {row.name for row in rows()}
    differ = {row.name for row in CHOSEN}
    # The controller, which decides about topics, hears of a rule a moment after the broker that reports it.
    for _ in range(ROUNDS):
        played = [row for row in CHOSEN if row.name in differ]
        seen = play_on_kafka(tmp_path_factory.mktemp("kafka"), played)
        assert seen.keys() == differ
        differ = {name for name in seen if seen[name] != recorded[name]}
        if not differ:
            break
    assert differ == set()


def test_ours_answers_as_kafka_to_who_came_by_sasl(tmp_path: Path) -> None:
    seen, recorded = json.loads(json.dumps(play_on_kgroup(tmp_path, CHOSEN))), read()
    assert seen.keys() == {row.name for row in CHOSEN}
    assert {name for name in seen if seen[name] != recorded[name]} == set(ALLOWED)
