"""Made-up programs on Kafka's share partition and share coordinator, and on ours, end alike."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.interop.conftest import require
from tests.sampled import FULL

from . import groups
from .__main__ import of_groups, verdicts
from .programs import Program

SEEDS = range(1, 101)
PLAYED = SEEDS if FULL else SEEDS[:40]
LENGTH = 60


@pytest.mark.interop
@pytest.mark.timeout(1200)
@pytest.mark.xdist_group("differential")
def test_our_share_partition_does_what_kafkas_does() -> None:
    """Answers, what is in flight, records, dead letters; `make differential-share` plays 5,000."""
    require("java", "javac", "mvn")
    judged = list(verdicts(PLAYED, LENGTH, jobs=2))
    assert [line for verdict in judged for line in verdict.differences] == []
    assert sum(verdict.at for verdict in judged) > len(PLAYED) * LENGTH * 0.8


def test_a_share_coordinator_that_reads_its_log_anew_is_the_same() -> None:
    for seed in SEEDS:
        ours = Program.of(seed, LENGTH).ours
        again = ours.reloaded()
        assert again.states == ours.coordinator.states
        assert again.redundant_offset == ours.coordinator.redundant_offset


def test_the_programs_see_much() -> None:
    """Every operation, each kind of answer, full partitions, dead letters, gaps."""
    programs = [Program.of(seed, LENGTH) for seed in SEEDS]
    done = Counter(op["op"] for program in programs for op in program.ops)
    assert done.keys() >= {"acquire", "acknowledge", "release", "wait", "load", "write", "cold", "redundant"}
    told = [told for program in programs for told in program.told]
    assert sum(len(each["letters"]) for each in told) > 20
    assert sum(bool(each.get("acquired")) for each in told) > 500
    assert len({each["error"] for each in told if each.get("error")}) >= 5


@pytest.mark.interop
@pytest.mark.timeout(1200)
@pytest.mark.xdist_group("differential")
def test_share_groups_in_our_coordinator_are_kafkas() -> None:
    """Answers, records, what the share coordinator is asked for, sessions, reloads."""
    require("java", "javac", "mvn")
    assert list(of_groups(PLAYED, jobs=2)) == []


def test_the_programs_on_groups_see_much() -> None:
    """Every operation, members with several partitions, refusals of each kind, state begun and deleted."""
    programs = [groups.Program.of(seed, groups.LENGTH) for seed in SEEDS]
    done = Counter(op["op"] for program in programs for op in program.ops)
    assert done.keys() >= {
        "heartbeat",
        "initialized",
        "failed",
        "alter",
        "begin_delete",
        "end_delete",
        "load",
    }
    assert done.keys() >= {"begin_delete_group", "delete_group", "describe", "topic", "settings", "wait"}
    told = [told for program in programs for told in program.told]
    refused = {each["error"] for each in told if "error" in each}
    assert refused >= {"FENCED_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID", "GROUP_ID_NOT_FOUND", "NON_EMPTY_GROUP"}
    assert sum("initialize" in each for each in told) > 50
    assert sum("delete" in each for each in told) > 10
