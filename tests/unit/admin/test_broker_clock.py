"""Ages are measured by what brokers wrote; this machine's clock counts where nothing speaks against it."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from kgroup.admin.discovery import ClusterView
from kgroup.admin.read.broker_clock import Clock, clock_of, clocks_of
from kgroup.admin.read.lag_report import _age
from kgroup.admin.read.offsets import MAX_TIMESTAMP
from kgroup.admin.read.record_times import Untimed
from kgroup.admin.read.staleness import stale
from kgroup.domain import OFFSETS_TOPIC, TopicPartition
from kgroup.protocol.messages import describe_quorum as dq
from kgroup.protocol.messages import list_offsets as lo
from tests.unit.admin.doctor_logs import Held, commits, described, remembering
from tests.unit.admin.fake_cluster import FakeCluster
from tests.unit.admin.test_doctor_checks import READ, _held, examine


@pytest.mark.parametrize(
    ("newest_ms", "age_ms", "words"),
    [
        (None, 312_000, None),
        (400_000, 312_000, None),
        (100_000, 12_000, "may be"),
        (700_000, 600_000, "288 s behind"),
    ],
    ids=["not known", "they agree", "ahead, or nothing is committed", "behind"],
)
def test_how_old_a_record_is(newest_ms: int | None, age_ms: int, words: str | None) -> None:
    """Five minutes between the clocks made 312 s of 12."""
    clock = Clock(412_000, newest_ms)
    assert clock.age_ms(88_000 if newest_ms == 100_000 else 100_000) == age_ms
    if words == "may be":
        assert not clock.sure and "ahead of the brokers" in (clock.words or "")
    else:
        assert (
            clock.sure and (words is None) == (clock.words is None) and (words or "") in (clock.words or "")
        )


def stamped(fake: FakeCluster, newest_ms: int) -> FakeCluster:
    """Let the newest record of the offsets topic be of this time."""
    plain = fake.handlers[lo.ListOffsetsRequest]

    def answer(node: int, request: lo.ListOffsetsRequest) -> object:
        told = plain(node, request)
        assert isinstance(told, lo.ListOffsetsResponse)
        if request.topics[0].partitions[0].timestamp != MAX_TIMESTAMP:
            return told
        assert request.topics[0].name == OFFSETS_TOPIC
        parts = tuple(replace(each, offset=1, timestamp=newest_ms) for each in told.topics[0].partitions)
        return replace(told, topics=(replace(told.topics[0], partitions=parts),))

    return fake.on(lo.ListOffsetsRequest, answer)  # type: ignore[arg-type]


def silent(written_s: int, newest_s: int, limit_s: int) -> tuple[dict[str, int | None], list[str]]:
    """Which groups count as stale, and of which it is not known; seconds ago by this machine's clock."""
    here_s = time.time_ns() // 1_000_000_000
    fake = remembering(described(Held("a", "orders:0,1")), READ, commits(here_s - written_s, {0: 4}))
    found, unsure, _ = stale(ClusterView(stamped(fake, (here_s - newest_s) * 1000)), ["g"], limit_s * 1000)
    return found, [each.code for each in unsure]


def test_a_group_that_committed_a_second_ago_is_not_stale_for_a_clock_that_is_ahead() -> None:
    """delete --stale-for 3m planned it, five minutes between the operator and the brokers."""
    assert silent(written_s=301, newest_s=300, limit_s=180) == ({}, ["CLOCK_UNSURE"])


def test_a_group_that_committed_minutes_ago_is_not_stale_for_one_broker_that_is_hours_ahead() -> None:
    """delete --stale-for 1h planned it, where the controller's time may not be asked for."""
    assert silent(written_s=300, newest_s=-7_200, limit_s=3_600) == ({}, ["CLOCK_UNSURE"])


def test_what_the_brokers_records_prove_is_stale_whatever_the_clock() -> None:
    found, unsure = silent(written_s=900, newest_s=300, limit_s=180)
    assert (found, unsure) == ({"g": 600_000}, [])
    found, unsure = silent(written_s=301, newest_s=5, limit_s=180)
    assert (list(found), unsure) == (["g"], [])
    assert silent(written_s=10, newest_s=5, limit_s=180) == ({}, [])


def test_an_open_transaction_is_as_old_as_the_brokers_say() -> None:
    fake = stamped(
        _held(remembering(described(Held("a", "orders:0,1")), READ, commits(1, {0: 4})), 99), 5_000
    )
    checkup = examine(fake.cluster(), "g", now_ms=305_000, patience_s=11)
    (held,) = [each for each in checkup.findings if each.code == "KG309"]
    assert held.message.endswith("for at least 11 s")
    assert any("ahead of the brokers" in each for each in held.evidence)


def test_brokers_that_answer_late_are_not_ahead() -> None:
    """What they wrote during the three seconds of their answer was ahead of this machine's clock."""
    at = 412_000

    def late(node: int, request: lo.ListOffsetsRequest) -> object:
        nonlocal at
        at += 3_000
        return listed(node, request)

    fake = remembering(described(Held("a", "orders:0,1")), READ, commits(1, {0: 4}))
    listed = stamped(fake, at + 2_900).handlers[lo.ListOffsetsRequest]
    view = fake.on(lo.ListOffsetsRequest, late).cluster()  # type: ignore[arg-type]
    view.now_ms = lambda: at
    clock = clock_of(view, at)
    assert clock.newest_ms == 414_900 and clock.words is None


def test_a_record_from_the_future_has_no_age() -> None:
    """It was a time lag of 0 s."""
    clock = Clock(100_000)
    assert (_age(clock, 40_000), _age(clock, 104_000)) == (60_000, 0)
    ahead = _age(clock, 400_000)
    assert isinstance(ahead, Untimed) and ahead.why.startswith(
        "the record there is stamped 300 s in the future"
    )


def test_records_of_a_time_to_come_make_the_clock_unsure_where_the_offsets_topic_is_hidden() -> None:
    """Without that right nothing else shows that this machine's clock is behind: records looked young."""
    stamps = {0: 90_000, 1: 50_000}

    def answer(node: int, request: lo.ListOffsetsRequest) -> lo.ListOffsetsResponse:
        parts = tuple(
            lo.ListOffsetsPartitionResponse(partition_index=n, offset=1, timestamp=stamps[n])
            for n in (part.partition_index for part in request.topics[0].partitions)
        )
        return lo.ListOffsetsResponse(topics=(lo.ListOffsetsTopicResponse(name="orders", partitions=parts),))

    fake = FakeCluster(topics={"orders": 2}).on(lo.ListOffsetsRequest, answer)  # type: ignore[arg-type]
    places = [TopicPartition("orders", number) for number in stamps]
    clock = clock_of(fake.cluster(), 60_000, places)
    assert [clock.may_be_behind(place) for place in places] == [True, False]
    assert (clock.words, clock.newest_ms) == (None, None)
    assert "is stamped later than it is" in (clock.doubt or "")


def telling(fake: FakeCluster, ahead_s: int) -> FakeCluster:
    """Let the controller tell its time, this machine's being so far ahead of it."""

    def answer(_: int, request: dq.DescribeQuorumRequest) -> dq.DescribeQuorumResponse:
        assert [topic.topic_name for topic in request.topics] == ["__cluster_metadata"]
        now_ms = time.time_ns() // 1_000_000 - ahead_s * 1000
        follower = dq.QuorumReplica(replica_id=1, last_caught_up_timestamp=now_ms - 5_000)
        leader = dq.QuorumReplica(replica_id=3, last_caught_up_timestamp=now_ms)
        part = dq.QuorumPartition(leader_id=3, current_voters=(follower, leader))
        topic = dq.QuorumTopic(topic_name="__cluster_metadata", partitions=(part,))
        return dq.DescribeQuorumResponse(topics=(topic,))

    return fake.on(dq.DescribeQuorumRequest, answer)  # type: ignore[arg-type]


@pytest.mark.parametrize(("ahead_s", "off"), [(0, None), (300, "300 s ahead of"), (-300, "300 s behind")])
def test_the_controller_tells_the_time_where_nothing_is_committed_any_more(
    ahead_s: int, off: str | None
) -> None:
    """Where the whole cluster stood, each of its groups was of unknown status."""
    here_ms = time.time_ns() // 1_000_000
    fake = remembering(described(Held("a", "orders:0,1")), READ, commits(here_ms // 1000, {0: 4}))
    fake = telling(stamped(fake, here_ms - ahead_s * 1000 - 900_000), ahead_s)
    clock = clock_of(ClusterView(fake), here_ms)
    assert clock.sure and not clock.is_behind and clock.words is None
    assert (off is None) == (clock.off is None) and (off or "") in (clock.off or "")
    assert clock.age_ms(here_ms - ahead_s * 1000 - 900_000) // 60_000 == 15


def test_the_controller_is_not_asked_where_somebody_has_just_committed() -> None:
    here_ms = time.time_ns() // 1_000_000
    fake = remembering(described(Held("a", "orders:0,1")), READ, commits(here_ms // 1000, {0: 4}))
    clock = clock_of(ClusterView(telling(stamped(fake, here_ms - 1_000), 0)), here_ms)
    assert clock.sure and clock.off_ms is None and not fake.requests(dq.DescribeQuorumRequest)


@pytest.mark.parametrize(
    ("broker", "words"), [(1, "at least 300 s ahead of the controller's"), (7, None), (None, None)]
)
def test_a_broker_whose_clock_is_ahead_decides_nothing_of_the_groups_of_others(
    broker: int | None, words: str | None
) -> None:
    """Readers of sound groups of the other brokers were told to be dead for five minutes."""
    here_ms = time.time_ns() // 1_000_000
    fake = remembering(described(Held("a", "orders:0,1")), READ, commits(here_ms // 1000, {0: 4}))
    fake.topics[OFFSETS_TOPIC], fake.leaders[OFFSETS_TOPIC] = 1, {0: 1}
    clock = clocks_of(ClusterView(telling(stamped(fake, here_ms + 300_000), 0)), here_ms, ())((), broker)
    assert clock.is_behind == (words is not None) and (words or "") in (clock.words or "")
    assert (clock.age_ms(here_ms) > 60_000) == clock.is_behind
