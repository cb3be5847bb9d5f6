"""Members that come and go without getting beyond a record, and of whom none is there at the look."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kgroup.admin.diagnose.doctor import Checkup
from kgroup.admin.diagnose.facts import Facts
from kgroup.admin.diagnose.generations import read_of_late
from kgroup.admin.diagnose.group_records import Recorded
from kgroup.admin.diagnose.rebalances import outside
from kgroup.admin.models import GroupDescription
from kgroup.admin.read.describe import groups_only
from kgroup.admin.read.offsets import MAX_TIMESTAMP
from kgroup.domain import TRANSACTION_TOPIC, ZERO_UUID, TopicPartition
from kgroup.history.fold.events import Event, Kind
from kgroup.history.fold.state import GroupState
from kgroup.history.log_items import Committed
from kgroup.protocol.messages import describe_groups as dg
from kgroup.protocol.messages import list_offsets as lo
from tests.unit.admin.doctor_logs import (
    Held,
    Record,
    commits,
    generation,
    in_transactions,
    remembering,
    written,
)
from tests.unit.admin.groups import classic_group, classic_member
from tests.unit.admin.test_doctor_checks import cluster, codes, examine
from tests.unit.history.events import event

A = Held("a", "orders:0")
LOOP: list[tuple[int, list[Record]]] = [
    (at, [generation(number, members)])
    for number, (at, members) in enumerate(
        [(10, (A,)), (20, ()), (40, (A,)), (50, ()), (70, (A,)), (80, ()), (110, (A,)), (120, ())], 1
    )
]
"""Four generations of a member, each for ten seconds."""
SETTING = "offsets.retention.minutes"
"""What this cluster does not say of any group."""


def seen(
    *lots: tuple[int, list[Record]],
    committed: int | None,
    times: list[int],
    group: dg.DescribedGroup | None = None,
) -> Checkup:
    stored = {} if committed is None else {"orders:0": committed}
    ordered = sorted([*LOOP, *lots], key=lambda lot: lot[0])
    fake = remembering(group or classic_group("g", state="Empty"), stored, *ordered)
    fake.topics[TRANSACTION_TOPIC] = 1
    return examine(written(fake, {0: times}).cluster(), "g", now_ms=150_000)


@pytest.mark.parametrize(
    "lots", [[commits(5, {0: 2})], in_transactions(commits(5, {0: 2}))], ids=["plainly", "in a transaction"]
)
def test_each_generation_ended_at_the_same_record(lots: list[tuple[int, list[Record]]]) -> None:
    checkup = seen(*lots, committed=2, times=[1, 2, 15, 16])
    assert checkup.verdict == "sick"
    (told,) = [each for each in checkup.findings if each.code == "KG310"]
    assert (
        told.message == "partition orders-0: members came and went, and committed nothing of what waits there"
    )
    assert told.evidence == (
        "orders-0 stands at offset 2 of 4: 4 generations ended at this record: no member gets beyond it",
    )


def test_the_one_that_is_there_has_not_been_silent_for_long() -> None:
    """It had "committed nothing for 2 s", an error, and was called dead, hung or paused."""
    there = classic_group("g", classic_member("a", "orders:0"))
    lots = [commits(5, {0: 2}), (148, [generation(9, (A,))])]
    checkup = seen(*lots, committed=2, times=[1, 2, 15, 16], group=there)
    (told,) = [each for each in checkup.findings if each.code == "KG310"]
    assert (
        told.message == "partition orders-0: members came and went, and committed nothing of what waits there"
    )
    assert told.evidence == (
        "orders-0 stands at offset 2 of 4: 4 generations ended at this record: a fails on it",
    )


@pytest.mark.parametrize(
    ("lots", "times"),
    [
        ([commits(115, {0: 2})], [1, 2, 15, 16]),
        (in_transactions(commits(115, {0: 2})), [1, 2, 15, 16]),
        ([commits(5, {0: 2})], [1, 2, 100, 101]),
    ],
    ids=["the last one committed", "it did in a transaction", "the record came after most of them"],
)
def test_those_that_got_on_are_none(lots: list[tuple[int, list[Record]]], times: list[int]) -> None:
    checkup = seen(*lots, committed=2, times=times)
    assert ([each.look for each in checkup.unseen], codes(checkup) & {"KG310", "KG306"}) == ([SETTING], set())


def test_members_that_stop_one_after_the_other_end_in_no_loop() -> None:
    """Each had for a moment what the one before had: an error until they were started again."""
    left = [
        [Held(name, "" if number else "orders:0") for number, name in enumerate("abcde"[gone:])]
        for gone in range(6)
    ]
    stops = [(60 + gone, [generation(1 + gone, left[gone])]) for gone in range(1, 6)]
    lots = [(10, [generation(1, left[0])]), commits(20, {0: 2}), *stops]
    fake = remembering(classic_group("g", state="Empty"), {"orders:0": 2}, *lots)
    checkup = examine(written(fake, {0: [1, 2, 55, 56]}).cluster(), "g", now_ms=150_000)
    assert "KG119" in codes(checkup)
    assert "KG310" not in codes(checkup)


def test_where_the_record_has_no_time_it_is_unknown() -> None:
    """It was healthy: nothing was said of a record whose age decides."""
    checkup = seen(commits(5, {0: 2}), committed=2, times=[1, 2, -1, -1])
    assert (checkup.verdict, [each.look for each in checkup.unseen]) == ("unknown", [SETTING, "lag"])


def test_nothing_was_ever_committed() -> None:
    checkup = seen(committed=None, times=[1, 2, 25, 26])
    assert checkup.verdict == "sick"
    (told,) = [each for each in checkup.findings if each.code == "KG306"]
    assert told.evidence == ("orders-0: 3 generations ended while records waited",)


def test_what_was_read_all_day_was_read_of_late() -> None:
    """What members commit while the group stays as it is, is one event: it began before the window."""
    place = TopicPartition("orders", 0)
    event = Event(
        log_partition=0,
        offset=1,
        timestamp_ms=0,
        end_timestamp_ms=9_000_000,
        group="g",
        kind=Kind.COMMITTED,
        protocol="classic",
        detail="",
        partitions=(place,),
    )
    (group,) = groups_only(cluster().cluster(), ["g"]).values()
    assert isinstance(group, GroupDescription)
    facts = Facts(group, 9_500_000, 8_000_000, 0, recorded=Recorded([event]))
    assert read_of_late(facts) == {place: 9_000_000}


@pytest.mark.parametrize("pending", [(), (7,)], ids=["no transaction", "one that is open"])
def test_a_group_of_which_only_offsets_are_on_record_never_had_a_member(pending: tuple[int, ...]) -> None:
    """While a transaction was open, it counted as a group that may have had some."""
    place = TopicPartition("orders", 0)
    at = Committed(7, -1, "", 9_000_000, -1, ZERO_UUID, 3, 1, 9_000_000)
    state = GroupState("g", offsets={place: at}, pending={producer: {place: at} for producer in pending})
    commit = replace(event(Kind.COMMITTED, timestamp_ms=8_500_000), end_timestamp_ms=9_000_000)
    (group,) = groups_only(cluster(group=classic_group("g", state="Empty")).cluster(), ["g"]).values()
    assert isinstance(group, GroupDescription)
    facts = Facts(group, 9_500_000, 8_000_000, 0, recorded=Recorded([commit], state.view(), state.pending))
    assert len([*outside(facts)]) == 1


def test_records_stamped_1970_are_asked_for_from_the_first_on() -> None:
    """The time asked for was before 1970, and a negative one is a question of another kind."""
    both = Held("a", "orders:0,1")
    lots: list[tuple[int, list[Record]]] = [
        (1_000 + at, [generation(number, members)])
        for number, (at, members) in enumerate(
            [(10, (both,)), (20, ()), (40, (both,)), (50, ()), (70, (both,)), (80, ())], 1
        )
    ]
    lots.insert(5, commits(1_075, {0: 2}))
    fake = remembering(classic_group("g", state="Empty"), {"orders:0": 2}, *lots)
    examine(written(fake, {0: [0, 0], 1: [0, 0]}).cluster(), "g", now_ms=1_150_000)
    asked = [
        part.timestamp
        for request in fake.requests(lo.ListOffsetsRequest)
        for topic in request.topics
        for part in topic.partitions
    ]
    assert min(asked) >= MAX_TIMESTAMP
