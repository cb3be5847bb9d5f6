"""Causes that several groups share: named only where every sign of life agrees."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kgroup.admin.diagnose.checks import Diagnosis
from kgroup.admin.diagnose.doctor import Checkup
from kgroup.admin.diagnose.facts import Facts
from kgroup.admin.diagnose.group_records import Recorded
from kgroup.admin.models import GroupDescription, Member, OffsetRow
from kgroup.admin.recording.causes import bad_of
from kgroup.admin.recording.look import Look
from kgroup.admin.statuses import PartitionStatus, Status
from kgroup.domain import MemberStatus, TopicPartition

HOST, OTHER = "10.0.0.7", "10.0.0.8"
STALLED, IDLE = PartitionStatus.STALLED, PartitionStatus.IDLE
SILENT = Diagnosis("KG310", "error", "it has committed nothing for 60 s", None)


def group(
    name: str, status: PartitionStatus, committed_s: int, host: str | None = HOST
) -> tuple[Facts, Checkup]:
    """A group of one member with one partition, which was committed last at this time."""
    member = Member("m-0", None, "app", host, None, "classic", None, MemberStatus.STABLE)
    row = OffsetRow(name, 0, 5, 9, 4, None, None, "m-0", None, status=Status(status, "ok"))
    told = GroupDescription(name, "classic", "consumer", "Stable", members=(member,), offsets=(row,))
    committed = {TopicPartition(name, 0): committed_s * 1000}
    facts = Facts(told, 100_000, 0, 0.0, recorded=Recorded(committed_ms=committed))
    return facts, Checkup(told, (SILENT,) if status is STALLED else (), ())


def keys(*groups: tuple[Facts, Checkup]) -> set[str]:
    names = [facts.group.group_id for facts, _ in groups]
    checkups = dict(zip(names, [checkup for _, checkup in groups], strict=True))
    found = Look(100_000, checkups, dict(zip(names, [facts for facts, _ in groups], strict=True)))
    return {bad.key for bad in bad_of(found, {})}


SICK = (group("a", STALLED, 40), group("b", STALLED, 42))


@pytest.mark.parametrize(
    "others",
    [
        (),
        (group("c", IDLE, 41),),
        (group("c", IDLE, 99, OTHER),),
    ],
    ids=["alone", "no sign since", "on another host"],
)
def test_silent_members_of_one_host_are_one_incident(others: tuple[tuple[Facts, Checkup], ...]) -> None:
    assert keys(*SICK, *others) == {f"host {HOST}"}


@pytest.mark.parametrize("status", [IDLE, PartitionStatus.READING])
def test_a_host_on_which_another_member_commits_is_no_cause(status: PartitionStatus) -> None:
    """Two members hung by chance on a host where others went on, having read everything."""
    assert keys(*SICK, group("c", status, 99)) == {"group a", "group b"}


def test_members_whose_hosts_are_unknown_are_not_of_one_host() -> None:
    assert keys(group("a", STALLED, 40, None), group("b", STALLED, 42, None)) == {"group a", "group b"}


@pytest.mark.parametrize("code", ["KG123", "KG124"])
def test_a_coordinator_that_can_store_nothing_is_one_cause(code: str) -> None:
    """Its groups look as if all of their members were dead."""
    unstored = Diagnosis(code, "error", "its topic has 1 of 3 replicas in sync", None)
    both = [(facts, replace(checkup, findings=(*checkup.findings, unstored))) for facts, checkup in SICK]
    assert keys(*both, group("c", STALLED, 40, OTHER)) == {"brokers", "group c"}


def test_a_damaged_log_is_one_cause_for_all_who_stand_there() -> None:
    facts, checkup = group("a", PartitionStatus.DAMAGED, 40)
    damaged = Diagnosis("KG321", "error", "the log is damaged where its reader goes on", None)
    told = facts, replace(checkup, findings=(damaged,))
    row = replace(facts.group.offsets[0])
    other = Facts(replace(facts.group, group_id="b", offsets=(row,)), 100_000, 0, 0.0)
    assert keys(told, (other, replace(told[1], group=other.group))) == {"topic a"}
