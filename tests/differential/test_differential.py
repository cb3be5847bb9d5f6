"""Made-up programs on Kafka's own coordinator and on ours end alike, operation for operation."""

from __future__ import annotations

import pytest

from .__main__ import told, verdicts
from .kafka import Kafka
from .shrink import shrunk

PROGRAMS = range(1, 301)
LENGTH = 60

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]


def test_our_coordinator_does_what_kafkas_does() -> None:
    failures = []
    with Kafka() as kafka:
        failures = [v for v in verdicts(kafka, PROGRAMS, LENGTH, jobs=2) if v.differences]
        shown = [told(shrunk(kafka, verdict)) for verdict in failures[:3]]
    assert not failures, "\n\n".join(shown)


def test_programs_reach_far() -> None:
    """Few programs end at an allowed difference, so that agreement says something."""
    with Kafka() as kafka:
        judged = list(verdicts(kafka, PROGRAMS[:100], LENGTH, jobs=0))
    operations = sum(verdict.operations for verdict in judged)
    assert operations > len(judged) * LENGTH * 0.6
