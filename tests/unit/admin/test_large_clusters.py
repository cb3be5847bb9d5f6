"""Many groups at once: how many requests it takes, and what of a batch is told when part of it fails."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from kgroup.admin.change.committing import store
from kgroup.admin.discovery import ClusterView
from kgroup.admin.models import Description
from kgroup.admin.parallel import together
from kgroup.admin.read import describe as describing
from kgroup.admin.read.describe import describe, describe_each
from kgroup.admin.read.lag_report import measure, measure_each
from kgroup.admin.read.listing import list_groups, with_members
from kgroup.admin.topics import create_topic
from kgroup.broker.embedded import EmbeddedTransport
from kgroup.domain import OffsetAndMetadata, TopicPartition, offsets_partition_of
from kgroup.errors import ErrorCode, Unreachable
from kgroup.protocol.codec import Message
from kgroup.protocol.messages import consumer_group_describe as cgd
from kgroup.protocol.messages import describe_groups as dg
from kgroup.protocol.messages import list_groups as lg
from kgroup.protocol.messages import offset_fetch as of
from kgroup.protocol.messages.describe_configs import DescribeConfigsRequest
from kgroup.protocol.messages.fetch import FetchRequest
from kgroup.protocol.messages.find_coordinator import FindCoordinatorRequest
from kgroup.protocol.messages.list_offsets import ListOffsetsRequest
from kgroup.protocol.messages.metadata import MetadataRequest
from kgroup.runtime.clock import ManualClock
from kgroup.runtime.cluster import Cluster
from tests.unit.admin.fake_cluster import FakeCluster
from tests.unit.admin.groups import Groups, classic_group

COUNT, PARTITIONS = 60, 4
OFFSET_FETCH, FIND_COORDINATOR, CONSUMER_GROUP_DESCRIBE = 9, 10, 69
NAMES = tuple(f"g{number:02}" for number in range(COUNT))


ENDS = 1
"""Requests to a leader for the ends of its logs. One more asks what is left to read behind the offsets."""


@pytest.fixture
def fake() -> FakeCluster:
    homes = {name: 1 + offsets_partition_of(name, 50) % 2 for name in NAMES}
    return FakeCluster(topics={"orders": PARTITIONS, "__consumer_offsets": 50}, coordinator_of=homes)


@pytest.fixture
def groups(fake: FakeCluster) -> Groups:
    known = Groups(fake)
    for name in NAMES:
        known.add(classic_group(name, state="Empty"))
        known.committed[name] = {f"orders:{number}": 7 for number in range(PARTITIONS)}
        known.listed[name] = "classic"
    known.ends = {f"orders:{number}": 10 for number in range(PARTITIONS)}
    fake.on(lg.ListGroupsRequest, lambda node, request: _listed(known, node))
    return known


def _listed(known: Groups, node: int) -> lg.ListGroupsResponse:
    mine = [name for name in known.listed if known.fake.coordinator_of[name] == node]
    return lg.ListGroupsResponse(
        groups=tuple(lg.ListedGroup(group_id=g, group_state="Empty", group_type="classic") for g in mine)
    )


@pytest.fixture
def admin(fake: FakeCluster, groups: Groups) -> ClusterView:
    return ClusterView(fake, retry=fake.retry())


@pytest.fixture
def small_rounds(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(describing, "FIRST", 10)
    monkeypatch.setattr(describing, "ROWS", 25 * PARTITIONS)
    yield


def sent(fake: FakeCluster) -> Counter[type]:
    return Counter(type(message) for _, message, _ in fake.sent)


def told(parts: Iterator[Description]) -> Description:
    both = list(parts)
    return Description(
        tuple(group for part in both for group in part.groups),
        tuple(error for part in both for error in part.errors),
    )


def test_groups_of_one_round_take_one_request_a_coordinator_and_one_a_leader(
    fake: FakeCluster, admin: ClusterView
) -> None:
    """And one about the settings of all of them, which any broker answers."""
    listed = list_groups(admin)
    fake.sent.clear()
    found = told(describe_each(admin, (group.group_id for group in listed.groups)))
    assert [group.total_lag for group in found.groups] == [3 * PARTITIONS] * COUNT
    assert sent(fake) == {
        dg.DescribeGroupsRequest: 2,
        of.OffsetFetchRequest: 2,
        ListOffsetsRequest: ENDS * 2,
        FetchRequest: 2,
        MetadataRequest: 1,
        DescribeConfigsRequest: 1,
    }


@pytest.mark.usefixtures("small_rounds")
def test_a_round_is_as_many_groups_as_have_so_many_offsets_and_topics_are_asked_about_once(
    fake: FakeCluster, admin: ClusterView
) -> None:
    parts = list(describe_each(admin, (group.group_id for group in list_groups(admin).groups)))
    assert [len(part.groups) for part in parts] == [10, 25, 25]
    assert told(iter(parts)) == describe(admin, NAMES)
    fake.sent.clear()
    parts = list(describe_each(admin, NAMES))
    requests = sent(fake)
    assert requests[of.OffsetFetchRequest] == 2 * len(parts)
    assert requests[ListOffsetsRequest] + requests[FetchRequest] == 2 * 2 * len(parts)
    assert requests[MetadataRequest] == 1


def test_counting_members_takes_one_request_a_coordinator(fake: FakeCluster, admin: ClusterView) -> None:
    listing = list_groups(admin)
    fake.sent.clear()
    assert {group.members for group in with_members(admin, listing).groups} == {0}
    assert sent(fake) == {dg.DescribeGroupsRequest: 2}


def test_groups_that_are_not_listed_are_looked_up_in_one_request(
    fake: FakeCluster, admin: ClusterView
) -> None:
    assert not told(describe_each(admin, NAMES)).errors
    assert sent(fake)[FindCoordinatorRequest] == 1
    assert sent(fake)[cgd.ConsumerGroupDescribeRequest] == 2  # of unknown type: asked as both


def test_a_group_that_changed_its_type_since_it_was_listed_is_described_as_what_it_is(
    fake: FakeCluster, admin: ClusterView, groups: Groups
) -> None:
    list_groups(admin)
    del groups.classic["g00"]
    groups.consumer["g00"] = cgd.DescribedGroup(group_id="g00", group_state="Empty")
    found = told(describe_each(admin, NAMES))
    assert found.groups[0].type == "consumer"
    assert {group.type for group in found.groups[1:]} == {"classic"}


def test_brokers_that_know_no_batches_are_asked_group_by_group(fake: FakeCluster, admin: ClusterView) -> None:
    fake.served = {OFFSET_FETCH: range(8), FIND_COORDINATOR: range(4), CONSUMER_GROUP_DESCRIBE: None}
    found = told(describe_each(admin, NAMES))
    assert [group.total_lag for group in found.groups] == [3 * PARTITIONS] * COUNT
    requests = sent(fake)
    assert requests[of.OffsetFetchRequest] == requests[FindCoordinatorRequest] == COUNT
    assert requests[dg.DescribeGroupsRequest] == 2
    assert requests[ListOffsetsRequest] == ENDS * 2


def test_one_bad_group_does_not_spoil_its_batch(
    fake: FakeCluster, admin: ClusterView, groups: Groups
) -> None:
    groups.classic["g03"] = dg.DescribedGroup(
        group_id="g03", error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED, group_state="Dead"
    )
    answer = fake.handlers[of.OffsetFetchRequest]

    def fetch(node: int, request: of.OffsetFetchRequest) -> of.OffsetFetchResponse:
        good = answer(node, request)
        assert isinstance(good, of.OffsetFetchResponse)
        refused = ErrorCode.GROUP_AUTHORIZATION_FAILED
        return of.OffsetFetchResponse(
            groups=tuple(
                of.OffsetFetchResponseGroup(group_id="g05", error_code=refused) if g.group_id == "g05" else g
                for g in good.groups
            )
        )

    fake.on(of.OffsetFetchRequest, fetch)
    found = told(describe_each(admin, NAMES))
    assert [error.item for error in found.errors] == ["g03"]
    unknown = {group.group_id: group.errors[0].code for group in found.groups if group.total_lag is None}
    assert unknown == {"g05": "GROUP_AUTHORIZATION_FAILED"}
    assert len(found.groups) == COUNT - 1


def test_groups_of_a_coordinator_that_is_down_are_unknown_and_the_others_are_not(
    fake: FakeCluster, admin: ClusterView
) -> None:
    fake.down.add(2)
    found = told(describe_each(admin, NAMES))
    away = {name for name in NAMES if fake.coordinator_of[name] == 2}
    assert {error.item for error in found.errors} == away
    assert {error.code for error in found.errors} == {"UNREACHABLE"}
    assert {group.group_id for group in found.groups} == set(NAMES) - away
    # Broker 2 led half of the partitions, too.
    assert {(group.total_lag, group.unknown_partitions) for group in found.groups} == {(None, 2)}


@pytest.mark.usefixtures("small_rounds")
def test_when_the_cluster_goes_away_each_group_that_is_left_is_told(
    fake: FakeCluster, admin: ClusterView
) -> None:
    parts = describe_each(admin, NAMES)
    first = next(parts)
    fake.down |= {1, 2}
    rest = told(parts)
    assert len(first.groups) == 10
    assert [error.item for error in rest.errors] == list(NAMES[10:])
    assert {error.code for error in rest.errors} == {"UNREACHABLE"}


@pytest.mark.usefixtures("small_rounds")
def test_lag_of_rounds_is_the_lag_of_all(fake: FakeCluster, admin: ClusterView) -> None:
    reports = list(measure_each(admin, NAMES))
    assert len(reports) == 3
    assert [group for report in reports for group in report.groups] == list(measure(admin, NAMES).groups)


class Counted(EmbeddedTransport):
    """The embedded cluster, which notes what it is asked."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.asked: Counter[type] = Counter()

    def request(self, node: int | None, message: Message, **limits: Any) -> Message:
        self.asked[type(message)] += 1
        return super().request(node, message, **limits)


@pytest.mark.usefixtures("small_rounds")
def test_the_embedded_cluster_is_asked_no_more_often() -> None:
    transport = Counted(Cluster(None, brokers=3, offsets_partitions=50, clock=ManualClock()))
    admin = ClusterView(transport)
    create_topic(admin, "orders", PARTITIONS)
    offsets = {TopicPartition("orders", number): OffsetAndMetadata(0) for number in range(PARTITIONS)}
    for name in NAMES:
        assert store(ClusterView(transport), name, offsets)[1] is None
    listed = with_members(admin, list_groups(admin))
    assert {group.members for group in listed.groups} == {0}
    transport.asked.clear()
    parts = list(describe_each(admin, (group.group_id for group in listed.groups)))
    assert [group.total_lag for group in told(iter(parts)).groups] == [0] * COUNT
    # One of each for each broker and round, settings of all groups of a round, metadata of all topics once.
    assert transport.asked == {
        dg.DescribeGroupsRequest: 3 * len(parts),
        of.OffsetFetchRequest: 3 * len(parts),
        ListOffsetsRequest: 3 * len(parts),
        DescribeConfigsRequest: len(parts),
        MetadataRequest: 1,
    }
    transport.close()


class TestTogether:
    def test_works_run_side_by_side(self) -> None:
        meeting = threading.Barrier(3)
        told = together({n: lambda: meeting.wait(timeout=60) for n in range(3)}, concurrent=True)
        assert sorted(told.values()) == [0, 1, 2]  # type: ignore[type-var]

    def test_or_one_after_the_other(self) -> None:
        me = threading.get_ident()
        assert together(dict.fromkeys(range(3), threading.get_ident), concurrent=False) == dict.fromkeys(
            range(3), me
        )

    @pytest.mark.parametrize("concurrent", [True, False])
    def test_one_failure_is_the_answer_of_one(self, concurrent: bool) -> None:
        gone = Unreachable("gone")

        def fail() -> int:
            raise gone

        assert together({"a": lambda: 1, "b": fail, "c": lambda: 3}, concurrent=concurrent) == {
            "a": 1,
            "b": gone,
            "c": 3,
        }

    @pytest.mark.parametrize("concurrent", [True, False])
    def test_what_nobody_planned_for_is_raised(self, concurrent: bool) -> None:
        def fail() -> int:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            together({"a": fail, "b": lambda: 1}, concurrent=concurrent)
