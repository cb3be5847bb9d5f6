"""Connect's and Streams' bytes as Kafka's own classes wrote them, every version."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.embedded_bytes import Line, compare

LINES: list[Line] = [
    json.loads(line)
    for line in (Path(__file__).parents[3] / "data" / "embedded-bytes.jsonl").read_text().splitlines()
]


@pytest.mark.parametrize("kind", sorted({line["kind"] for line in LINES}))
def test_what_kafka_wrote_is_read(kind: str) -> None:
    lines = [line for line in LINES if line["kind"] == kind]
    for line in lines:
        compare(line)
    oldest, newest = (0, 2) if kind.startswith("connect") else (1, 11)
    assert {line["version"] for line in lines} == set(range(oldest, newest + 1))
