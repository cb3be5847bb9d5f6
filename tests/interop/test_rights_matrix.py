"""Requests × access rules, over the wire: Kafka 4.3.1 as recorded, and ours as Kafka, row by row."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import require
from .rights.allowed import ALLOWED
from .rights.on_kafka import play_on_kafka
from .rights.on_kgroup import play_on_kgroup
from .rights.recorded import read
from .rights.rows import rows

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]


def test_kafka_answers_as_recorded(tmp_path_factory: pytest.TempPathFactory) -> None:
    require("java", "mvn")
    seen, recorded = play_on_kafka(tmp_path_factory.mktemp("kafka")), read()
    assert seen.keys() == recorded.keys() == {row.name for row in rows()}
    differ = {name for name in seen if seen[name] != recorded[name]}
    # The controller, which decides about topics, hears of a rule a moment after the broker that tells it.
    if differ:
        again = play_on_kafka(tmp_path_factory.mktemp("kafka"))
        differ = {name for name in differ if again[name] != recorded[name]}
    assert differ == set()


def test_ours_answers_as_kafka_to_who_came_by_sasl(tmp_path: Path) -> None:
    seen, recorded = json.loads(json.dumps(play_on_kgroup(tmp_path))), read()
    assert seen.keys() == recorded.keys()
    assert {name for name in seen if seen[name] != recorded[name]} == set(ALLOWED)
