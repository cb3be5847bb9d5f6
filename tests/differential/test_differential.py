"""Made-up programs on Kafka's own coordinator and on ours end alike, operation for operation."""

from __future__ import annotations

import pytest

from tests.sampled import FULL

from .__main__ import told, verdicts
from .kafka import Kafka
from .shrink import shrunk
from .verdict import Verdict

PROGRAMS = range(1, 301 if FULL else 121)
STREAMS_PROGRAMS = range(1, 101 if FULL else 41)
"""`make differential` plays thousands."""
LENGTH = 60

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1200), pytest.mark.xdist_group("differential")]


@pytest.fixture(scope="module")
def judged() -> list[Verdict]:
    """The verdicts on all programs."""
    return list(verdicts(PROGRAMS, LENGTH, jobs=2))


def test_our_coordinator_does_what_kafkas_does(kafka: Kafka, judged: list[Verdict]) -> None:
    failures = [verdict for verdict in judged if verdict.differences]
    shown = [told(shrunk(kafka, verdict)) for verdict in failures[:3]]
    assert not failures, "\n\n".join(shown)


def test_our_coordinator_hosts_streams_groups_as_kafkas_does() -> None:
    """AE-32: task by task, epoch by epoch, record by record."""
    judged = list(verdicts(STREAMS_PROGRAMS, LENGTH, jobs=2, streams=True))
    failures = [verdict for verdict in judged if verdict.differences]
    assert not failures, "\n\n".join(told(verdict) for verdict in failures[:3])
    assert sum(verdict.operations for verdict in judged) > len(judged) * LENGTH * 0.6


def test_programs_are_seen_to_their_ends(judged: list[Verdict]) -> None:
    """Few programs end at an allowed difference, so that agreement says something."""
    operations = sum(verdict.operations for verdict in judged)
    assert len(judged) == len(PROGRAMS)
    assert operations > len(judged) * LENGTH
    assert sum(verdict.ended_early is not None for verdict in judged) < len(judged) * 0.05
