"""KG310: a member that commits nothing while records wait for it, though the group is Stable."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from types import FrameType

import pytest

from kgroup.admin.diagnose.doctor import Checkup
from kgroup.protocol.messages import list_offsets as lo
from tests.unit.admin.doctor_logs import (
    Held,
    Record,
    commits,
    commits_up_to,
    described,
    generation,
    remembering,
    written,
)
from tests.unit.admin.test_doctor_checks import codes, examine

Lot = tuple[int, list[Record]]
A, B = Held("a", "orders:0"), Held("b", "orders:1")
SECONDS: Mapping[int, list[int]] = {0: [1, 2, 3, 205], 1: [1, 2, 3, 4]}
"""When the records of each partition were written."""


def both_until(stopped_s: int, ended_s: int, every_s: int = 5) -> list[tuple[int, list[Record]]]:
    """Commits of both members, of the second no longer than to `stopped_s`."""
    return commits_up_to(range(every_s, ended_s + 1, every_s), {0: (4, ended_s), 1: (2, stopped_s)})


def found(*lots: tuple[int, list[Record]], now_s: int = 205, at: int = 2) -> Checkup:
    fake = remembering(described(A, B), {"orders:0": 4, "orders:1": at}, (0, [generation(1, (A, B))]), *lots)
    return examine(written(fake, SECONDS).cluster(), "g", now_ms=now_s * 1000)


def test_a_member_killed_within_its_session_is_named_while_another_goes_on() -> None:
    """Two of six partitions unread, the lag growing for four minutes: it was healthy."""
    checkup = found(*both_until(60, 200))
    assert checkup.verdict == "sick"
    (told,) = [each for each in checkup.findings if each.code == "KG310"]
    assert told.message == (
        "b has committed nothing for 2m 25s while others go on: 2 records wait in partition orders-1"
    )
    assert told.hint is not None and told.hint.endswith("kgroup remove-members g --instance-id b")
    (evidence,) = told.evidence
    assert evidence == (
        "b (client client-b) on 10.0.0.1: last sign at 1970-01-01T00:01:00Z, 2m 25s ago "
        "(session 2m 00s, rebalance timeout 5m 00s)"
    )


@pytest.mark.parametrize("last_s", [60, 95], ids=["before it got the partition", "since then"])
def test_a_member_of_kafka_streams_may_restore_state_until_its_first_commit(last_s: int) -> None:
    """Stores of a lost disk took minutes to restore: its thread was told to be dead."""
    lots = (0, [generation(1, (A, B))]), (90, [generation(2, (A, B))]), *both_until(last_s, 200)
    ends = {"orders:0": 4, "orders:1": 2}
    fake = remembering(replace(described(A, B), protocol_data="stream"), ends, *lots)
    checkup = examine(written(fake, SECONDS).cluster(), "g", now_ms=205_000)
    (orders_1,) = [each for each in checkup.statuses if "orders-1" in each.partitions]
    assert orders_1.status == ("unknown" if last_s < 90 else "stalled")


@pytest.mark.parametrize(
    ("stopped_s", "ended_s", "every_s", "read_s"),
    [(190, 200, 5, 199), (120, 200, 40, 160)],
    ids=["not for long", "not for long as the group commits"],
)
def test_one_that_is_silent_for_a_moment_is_none(
    stopped_s: int, ended_s: int, every_s: int, read_s: int
) -> None:
    """The record that the other member read last came at `read_s`."""
    fake = remembering(
        described(A, B),
        {"orders:0": 4, "orders:1": 2},
        (0, [generation(1, (A, B))]),
        *both_until(stopped_s, ended_s, every_s),
    )
    times = {0: [1, 2, 3, read_s], 1: [1, 2, 3, 4]}
    assert "KG310" not in codes(examine(written(fake, times).cluster(), "g", now_ms=205_000))


@pytest.mark.parametrize(
    ("after", "stopped"),
    [((), False), ((commits(80, {1: 2}),), True)],
    ids=["and it reads on where it was", "and it read that again"],
)
def test_one_whose_offsets_were_set_back_has_nothing_to_commit(after: tuple[Lot, ...], stopped: bool) -> None:
    """A script committed lower offsets for an active group: its reader was told to be dead."""
    lots = [commits(55, {1: 2}), commits(60, {1: 3}), commits(70, {1: 1}), *after]
    others = commits_up_to(range(85, 201, 5), {0: (4, 200)})
    assert ("KG310" in codes(found(*lots, *others, at=2 if after else 1))) == stopped


def test_one_that_commits_where_it_stands_does_not_go_on() -> None:
    """Java's clients commit all positions every five seconds: paused, and at a record that fails, too."""
    repeated = [commits(s, {1: 2}) for s in range(65, 205, 5)]
    checkup = found(*sorted([*both_until(60, 200), *repeated], key=lambda lot: lot[0]))
    (told,) = [each for each in checkup.findings if each.code == "KG310"]
    assert told.severity == "error" and told.message == (
        "b has committed the same offsets again and again for 2m 25s while others go on: 2 records wait in "
        "partition orders-1"
    )


def test_one_with_nothing_to_read_or_with_records_that_just_came_is_none() -> None:
    assert "KG310" not in codes(found(*both_until(60, 200), at=4))
    fresh = {1: [1, 2, 204, 204]}
    fake = remembering(
        described(A, B), {"orders:0": 4, "orders:1": 2}, (0, [generation(1, (A, B))]), *both_until(60, 200)
    )
    assert "KG310" not in codes(examine(written(fake, fresh).cluster(), "g", now_ms=205_000))


def test_records_from_the_future_do_not_hide_it() -> None:
    """The producer's clock is an hour ahead: no record looked old, and nothing was found."""
    fake = remembering(
        described(A, B), {"orders:0": 4, "orders:1": 2}, (0, [generation(1, (A, B))]), *both_until(60, 200)
    )
    ahead = {1: [3600, 3601, 3602, 3603]}
    checkup = examine(written(fake, ahead).cluster(), "g", now_ms=205_000)
    assert (checkup.verdict, [each.code for each in checkup.unseen]) == ("unknown", ["FUTURE"])


@pytest.mark.parametrize(
    ("stopped_s", "now_s", "verdict"),
    [(1_060, 1_110, "unknown"), (1_060, 1_400, "sick"), (1_105, 1_110, "healthy")],
    ids=["late, or read late: unknown", "dead in both ways", "read in both ways"],
)
def test_records_that_are_stamped_late_do_not_decide(stopped_s: int, now_s: int, verdict: str) -> None:
    """Producers of old events made a usual delay of ten minutes, ten of which a dead member had."""
    ended_s = now_s - 5
    lots = commits_up_to(range(1_005, ended_s + 1, 5), {0: (4, ended_s), 1: (2, stopped_s)})
    fake = remembering(
        described(A, B), {"orders:0": 4, "orders:1": 2}, (1_000, [generation(1, (A, B))]), *lots
    )
    late = {0: [400, 401, 402, ended_s - 601], 1: [400, stopped_s - 601, stopped_s - 598, stopped_s - 597]}
    checkup = examine(written(fake, late).cluster(), "g", now_ms=now_s * 1000)
    assert (checkup.verdict, [each.code for each in checkup.unseen]) == (
        verdict,
        ["STAMPED_LATE"] if verdict == "unknown" else [],
    )


@pytest.mark.parametrize(("now_s", "severity"), [(85, None), (110, "warn"), (125, "error"), (205, "error")])
def test_a_group_in_which_nobody_commits_any_more(now_s: int, severity: str | None) -> None:
    """Suspected after half a minute, certain after as long again."""
    lots = commits_up_to(range(5, 61, 5), {0: (4, 60), 1: (2, 60)})
    both = Held("b", "orders:0,1")
    fake = remembering(described(both), {"orders:0": 4, "orders:1": 2}, (0, [generation(1, (both,))]), *lots)
    times = {0: [1, 2, 3, 58], 1: [1, 2, 3, 4]}
    checkup = examine(written(fake, times).cluster(), "g", now_ms=now_s * 1000)
    assert [each.severity for each in checkup.findings if each.code == "KG310"] == [severity] * bool(severity)


def test_many_on_one_host() -> None:
    many = [Held(f"m{n}", f"orders:{n}", host="/10.0.0.7") for n in range(2)] + [Held("c", "orders:2")]
    fake = remembering(
        described(*many),
        {"orders:0": 2, "orders:1": 2, "orders:2": 2},
        (0, [generation(1, many)]),
        *commits_up_to(range(5, 201, 5), {0: (2, 60), 1: (2, 60), 2: (2, 200)}),
    )
    fake.topics["orders"] = 3
    times = {number: [1, 59, 61, 62] for number in range(3)}
    checkup = examine(written(fake, times).cluster(), "g", now_ms=205_000)
    (told,) = [each for each in checkup.findings if each.code == "KG310"]
    assert told.message == (
        "2 of 3 members have committed nothing for 2m 25s and more while others go on, all on host 10.0.0.7: "
        "4 records wait in partitions orders-0 orders-1"
    )


@pytest.mark.parametrize(("stopped_s", "named"), [(150, True), (190, False)])
def test_one_partition_of_several_that_stands_still(stopped_s: int, named: bool) -> None:
    """A record that cannot be processed: the member's other partition goes on."""
    both = Held("a", "orders:0,1")
    lots = commits_up_to(range(1, 201), {0: (4, 200), 1: (2, stopped_s)})
    fake = remembering(described(both), {"orders:0": 4, "orders:1": 2}, (0, [generation(1, [both])]), *lots)
    checkup = examine(written(fake, SECONDS).cluster(), "g", now_ms=200_000)
    assert ("KG310" in codes(checkup)) == named
    if named:
        (told,) = [each for each in checkup.findings if each.code == "KG310"]
        assert told.message == "partition orders-1 stands still for 50 s while the member's others go on"
        (evidence,) = told.evidence
        assert evidence == (
            "orders-1 stands at offset 2 of 4, last committed at 1970-01-01T00:02:30Z, read by "
            "a (client client-a) on 10.0.0.1"
        )


def test_the_age_of_records_costs_one_request_a_leader() -> None:
    """And one more to look for earlier commits, where a reader goes on with old records."""
    quiet = remembering(
        described(A, B), {"orders:0": 4, "orders:1": 2}, (0, [generation(1, (A, B))]), *both_until(60, 200)
    )
    live = remembering(
        described(A, B), {"orders:0": 4, "orders:1": 2}, (0, [generation(1, (A, B))]), *both_until(200, 200)
    )
    by_time = []
    for fake in (quiet, live):
        examine(written(fake, SECONDS).cluster(), "g", now_ms=205_000)
        asked = fake.requests(lo.ListOffsetsRequest)
        by_time.append(sum(request.topics[0].partitions[0].timestamp > 0 for request in asked))
    assert by_time == [1, 2]


def lines_run(partitions: int) -> int:
    """Lines of the judgement of readers that ran for one member that stopped, with so many partitions."""
    numbers = range(partitions)
    member = Held("b", "orders:" + ",".join(map(str, numbers)))
    fake = remembering(
        described(member),
        {f"orders:{number}": 2 for number in numbers},
        (0, [generation(1, [member])]),
        commits(5, dict.fromkeys(numbers, 2)),
    )
    fake.topics["orders"] = partitions
    cluster = written(fake, {number: [1, 2, 3, 4] for number in numbers}).cluster()
    count = 0

    def traced(frame: FrameType, event: str, _: object) -> object:
        nonlocal count
        if not frame.f_code.co_filename.endswith("diagnose/reading.py"):
            return None
        count += event == "line"
        return traced

    before = sys.gettrace()
    sys.settrace(traced)
    try:
        checkup = examine(cluster, "g", now_ms=205_000)
    finally:
        sys.settrace(before)
    assert "KG310" in codes(checkup)
    return count


def test_the_work_for_a_partition_does_not_grow_with_their_number() -> None:
    """Of 2,000 partitions that one cause had stopped, each was compared with each: 18 s."""
    few, many = lines_run(20), lines_run(200)
    assert many < 10 * few
