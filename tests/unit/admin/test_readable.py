"""What is left to read of a log, for groups at different offsets, look by look."""

from __future__ import annotations

from kgroup.admin.read.offsets import ListedOffset
from kgroup.admin.read.readable import LOOK, Logs, first_read
from kgroup.admin.statuses import Unseen
from kgroup.domain import TopicPartition
from kgroup.errors import ErrorCode
from kgroup.protocol.messages import fetch as f
from tests.unit.admin.fake_cluster import FakeCluster
from tests.unit.admin.groups import Groups

PLACE = TopicPartition("orders", 0)


def logs(end: int, *, records: int, start: int = 0) -> tuple[Logs, Groups, FakeCluster]:
    """A log that ends at `end`, whose last record is the one before `records`: markers follow it."""
    fake = FakeCluster(topics={"orders": 1})
    groups = Groups(fake)
    groups.ends, groups.starts = {"orders:0": end}, {"orders:0": start}
    groups.last_record = {"orders:0": records}
    return Logs(fake.cluster()), groups, fake


def test_groups_at_different_offsets_are_told_apart() -> None:
    """Two that have read everything, one that has not: the farthest is asked for first."""
    found, _, _ = logs(10, records=6)
    found.look({PLACE: {3, 6, 8}}, found.cluster.topics(["orders"]))
    view = found.views[PLACE]
    assert [view.readable(at) for at in (3, 6, 8, 10)] == [True, False, False, False]
    assert (view.start, view.stable) == (0, 10)


def test_a_second_look_sees_what_came_since() -> None:
    found, groups, fake = logs(10, records=6)
    topics = found.cluster.topics(["orders"])
    found.look({PLACE: {6, 8}}, topics)
    assert found.views[PLACE].readable(6) is False
    groups.ends["orders:0"] = groups.last_record["orders:0"] = 12
    found.look({PLACE: {6, 8}}, topics)
    assert [found.views[PLACE].readable(at) for at in (6, 8)] == [True, True]
    before = len(fake.requests(f.FetchRequest))
    found.look({PLACE: {6}}, topics)
    assert len(fake.requests(f.FetchRequest)) == before  # what had a record behind it still has


def test_an_offset_before_the_log_counts_from_its_start() -> None:
    found, _, _ = logs(10, records=6, start=5)
    found.look({PLACE: {2}}, found.cluster.topics(["orders"]))
    assert (found.views[PLACE].start, found.views[PLACE].readable(2)) == (5, True)
    emptied, _, _ = logs(10, records=6, start=10)
    emptied.look({PLACE: {2, 6}}, emptied.cluster.topics(["orders"]))
    assert (emptied.views[PLACE].start, emptied.views[PLACE].readable(2)) == (10, False)


def test_a_log_that_may_not_be_read_is_unknown_and_its_bounds_are_not() -> None:
    found, _, fake = logs(10, records=6)
    part = f.PartitionData(partition_index=0, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    denied = f.FetchResponse(responses=(f.FetchableTopicResponse(topic="orders", partitions=(part,)),))
    fake.on(f.FetchRequest, lambda node, request: denied)
    found.look({PLACE: {6}}, found.cluster.topics(["orders"]))
    view = found.views[PLACE]
    unseen = view.readable(6)
    assert isinstance(unseen, Unseen) and (unseen.look, unseen.code) == (LOOK, "TOPIC_AUTHORIZATION_FAILED")
    assert (view.start, view.stable) == (0, 10)


def test_a_damaged_batch_stops_only_who_reaches_it() -> None:
    """The farthest group is asked about first; one further behind has records before the damage."""
    found, groups, _ = logs(10, records=10)
    groups.damaged["orders:0"] = 6
    found.look({PLACE: {3, 6}}, found.cluster.topics(["orders"]))
    view = found.views[PLACE]
    assert [view.damaged(at) for at in (3, 6, 7)] == [None, 6, None]
    assert [view.readable(at) for at in (3, 6)] == [True, True]


def test_the_first_record_that_is_read_may_come_later_than_the_first_listed() -> None:
    """What is listed may be a marker, or aborted, and nobody commits that."""
    _, groups, fake = logs(10, records=8, start=5)
    groups.times["orders:0"] = [*range(100, 110)]
    first = [dict(first_read(fake.cluster(), {PLACE: at})) for at in (2, 6, 9)]
    assert first == [{PLACE: ListedOffset(5, 105_000, -1)}, {}, {PLACE: ListedOffset(-1, -1, -1)}]
