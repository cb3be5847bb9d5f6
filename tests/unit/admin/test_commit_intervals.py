"""Readers that commit at intervals: how long they take is read from their commits."""

from __future__ import annotations

from typing import Any

import pytest

from kgroup.admin.diagnose.commits import Step
from kgroup.admin.diagnose.doctor import Checkup, examine_all
from kgroup.admin.read.offsets import EARLIEST, LATEST, MAX_TIMESTAMP
from kgroup.admin.recording.growing_past import GrowingPast
from kgroup.domain import OFFSETS_TOPIC, TopicPartition
from kgroup.errors import Unreachable
from kgroup.protocol.messages import fetch as f
from kgroup.protocol.messages import list_offsets as lo
from tests.unit.admin.doctor_logs import Held, commits, described, generation, remembering, written
from tests.unit.admin.fake_cluster import FakeCluster
from tests.unit.admin.test_doctor_checks import examine, groups_of

MEMBER = Held("a", "orders:0,1")
PLACE = TopicPartition("orders", 0)
EVERY_S = 60
BOUNDS = (EARLIEST, LATEST, MAX_TIMESTAMP)


def reader(every_s: int = EVERY_S, now_s: int = 405, until_s: int = 300) -> FakeCluster:
    """A member that gets a record each ten seconds, and commits all that there is now and then."""
    records = range(1, now_s, 10)
    lots = [(1, [generation(1, [MEMBER])])]
    lots += [commits(at, {0: at // 10}) for at in range(every_s, until_s + 1, every_s)]
    fake = remembering(described(MEMBER), {"orders:0": until_s // 10}, *lots)
    groups = groups_of(fake)
    groups.starts = {"orders:0": 0, "orders:1": 0}
    groups.ends |= {"orders:0": len(records), "orders:1": 0}
    return written(fake, {0: records})


def statuses(checkup: Checkup) -> dict[str, str]:
    return {partition: each.status.value for each in checkup.statuses for partition in each.partitions}


def checked(fake: FakeCluster, at_s: int) -> Checkup:
    return examine(fake.cluster(), "g", now_ms=at_s * 1000, patience_s=0)


@pytest.mark.parametrize(
    ("every_s", "at_s", "said"),
    [
        (60, 405, "reading"),
        (60, 415, "reading"),
        (60, 430, "stalled"),
        (10, 415, "stalled"),
        (150, 560, "reading"),
    ],
)
def test_silence_is_compared_with_the_last_commits(every_s: int, at_s: int, said: str) -> None:
    """A reader that commits once a minute was called stalled after half of it."""
    assert statuses(checked(reader(every_s, at_s), at_s))["orders-0"] == said


@pytest.mark.parametrize(
    ("written_ms", "late_ms", "waited_ms"),
    [
        (10_000, 0, 60_000),
        (40_000, 0, 30_000),
        (40_000, 20_000, 10_000),
        (99_000, 0, 60_000),
        (None, 0, 60_000),
        (Unreachable("down", ""), 0, 60_000),
    ],
    ids=["came before", "came later", "stamped late", "stamped ahead", "no time", "not read"],
)
def test_a_commit_waits_from_the_one_before_or_from_its_first_record(
    written_ms: Any, late_ms: int, waited_ms: int
) -> None:
    assert Step(PLACE, 10_000, 70_000, written_ms).waited_ms(late_ms) == waited_ms


def test_commits_that_cannot_be_read_again_leave_it_unknown() -> None:
    fake = reader()
    listed = fake.handlers[lo.ListOffsetsRequest]

    def refuse(node: int, request: lo.ListOffsetsRequest) -> object:
        topic = request.topics[0]
        if topic.name == OFFSETS_TOPIC and topic.partitions[0].timestamp not in BOUNDS:
            part = lo.ListOffsetsPartitionResponse(
                partition_index=topic.partitions[0].partition_index, error_code=29
            )
            named = lo.ListOffsetsTopicResponse(name=OFFSETS_TOPIC, partitions=(part,))
            return lo.ListOffsetsResponse(topics=(named,))
        return listed(node, request)

    fake.on(lo.ListOffsetsRequest, refuse)  # type: ignore[arg-type]
    checkup = checked(fake, 405)
    assert checkup.verdict == "unknown"
    assert any("how often its group commits" in unseen.message for unseen in checkup.unseen)


def test_a_recorder_reads_them_again_only_after_a_commit() -> None:
    fake = reader()
    cluster = fake.cluster()
    past = GrowingPast(cluster)
    fetch, fetched = fake.handlers[f.FetchRequest], list[int]()

    def counted(node: int, request: f.FetchRequest) -> object:
        if request.topics[0].topic == OFFSETS_TOPIC:
            fetched.append(request.topics[0].partitions[0].fetch_offset)
        return fetch(node, request)

    fake.on(f.FetchRequest, counted)  # type: ignore[arg-type]
    begun = []
    for at_s in (405, 410, 415):
        past.look_for(["g"], 0)
        fetched.clear()
        (checkup,) = examine_all(cluster, ["g"], now_ms=at_s * 1000, patience_s=0, past=past).checkups
        assert statuses(checkup)["orders-0"] == "reading"
        begun.append(len(fetched))
    assert begun[0] > begun[1] == begun[2]
