"""Requests × access rules on a real Kafka 4.3.1, whose answers are those that kgroup is held to."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import require
from .rights.on_kafka import play_on_kafka
from .rights.recorded import read
from .rights.rows import rows

pytestmark = pytest.mark.interop


def test_kafka_answers_as_recorded(tmp_path: Path) -> None:
    require("java", "mvn")
    seen, recorded = play_on_kafka(tmp_path), read()
    assert seen.keys() == recorded.keys() == {row.name for row in rows()}
    assert {name for name in seen if seen[name] != recorded[name]} == set()
