"""Requests × access rules in process: codes and names as Kafka 4.3.1 gave them, row by row."""

from __future__ import annotations

import json

import pytest

from kgroup.runtime.cluster import Cluster
from tests.interop.rights.allowed import ALLOWED
from tests.interop.rights.on_kafka import SETTINGS
from tests.interop.rights.recorded import read
from tests.interop.rights.rows import CASES, Row, play, rows, sample
from tests.interop.rights.visible import Seen
from tests.interop.rights.world import in_process

ROWS = list(rows())


@pytest.fixture(scope="module")
def seen() -> dict[str, Seen]:
    settings = {"offsets.topic.num.partitions": "4", "transaction.state.log.num.partitions": "2"}
    return play(in_process(Cluster(None, config={**settings, **SETTINGS})))


@pytest.fixture(scope="module")
def recorded() -> dict[str, Seen]:
    return read()


def test_every_row_was_played_on_kafka(recorded: dict[str, Seen]) -> None:
    assert recorded.keys() == {row.name for row in ROWS}
    assert len(recorded) == len(ROWS) > 700
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_as_on_kafka(row: Row, seen: dict[str, Seen], recorded: dict[str, Seen]) -> None:
    ours = json.loads(json.dumps(seen[row.name]))
    if row.name in ALLOWED:
        assert ours != recorded[row.name], "no difference any more: take it from ALLOWED"
    else:
        assert ours == recorded[row.name]


def test_the_sample_has_each_request_and_each_kind_of_rules() -> None:
    """What the interop suite plays; `make security` plays every row on both brokers."""
    chosen = sample()
    assert {row.case.name for row in chosen} == {case.name for case in CASES}
    kinds = {row.grant.name.partition(",")[0].rstrip(" 0123456789") for row in ROWS}
    assert {row.grant.name.partition(",")[0].rstrip(" 0123456789") for row in chosen} == kinds
    assert len(chosen) < len(ROWS) / 2
