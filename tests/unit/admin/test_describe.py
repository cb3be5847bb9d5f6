"""Groups of each type in one view: members, offsets, and the type found out."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest

from kgroup.admin.discovery import ClusterView
from kgroup.admin.models import TopicAssignment
from kgroup.admin.read.conditions import Condition
from kgroup.admin.read.describe import describe, groups_only
from kgroup.admin.read.lag_report import measure
from kgroup.admin.read.listing import list_groups
from kgroup.domain import TopicPartition, offsets_partition_of
from kgroup.errors import BrokerRefused, ErrorCode, Unreachable
from kgroup.protocol import topology_description as wire
from kgroup.protocol.messages import consumer_group_describe as cgd
from kgroup.protocol.messages import describe_groups as dg
from kgroup.protocol.messages import fetch as f
from kgroup.protocol.messages import list_groups as lg
from kgroup.protocol.messages import list_offsets as lo
from kgroup.protocol.messages import offset_fetch as of
from kgroup.protocol.messages import share_group_describe as sgd
from kgroup.protocol.messages import streams_group_describe as stg
from kgroup.protocol.subscription import Assignment
from tests.unit.admin.fake_cluster import FakeCluster
from tests.unit.admin.groups import Groups, classic_group, classic_member, consumer_group, consumer_member

CONSUMER_GROUP_DESCRIBE, LIST_GROUPS, LIST_OFFSETS, OFFSET_FETCH = 69, 16, 2, 9


@pytest.fixture
def fake() -> FakeCluster:
    return FakeCluster(topics={"orders": 4, "__consumer_offsets": 50}, coordinator_of={"co": 2})


@pytest.fixture
def groups(fake: FakeCluster) -> Groups:
    return Groups(fake)


@pytest.fixture
def admin(fake: FakeCluster) -> ClusterView:
    return ClusterView(fake, retry=fake.retry())


def test_a_group_is_there_that_another_offsets_partition_does_not_have(
    fake: FakeCluster, groups: Groups, admin: ClusterView
) -> None:
    """Kafka 3.9 looks for each group of a batch in the partitions of all: one of two did not exist."""
    groups.add(consumer_group("a"), consumer_group("b"))
    loads = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    def both_in_each(node: int, request: cgd.ConsumerGroupDescribeRequest) -> object:
        told = []
        for here in request.group_ids:
            for name in request.group_ids:
                missing = cgd.DescribedGroup(group_id=name, error_code=ErrorCode.GROUP_ID_NOT_FOUND)
                found = groups.consumer.get(name) or replace(missing, error_code=loads)
                told.append(found if name == here else missing)
        return cgd.ConsumerGroupDescribeResponse(groups=tuple(told))

    fake.on(cgd.ConsumerGroupDescribeRequest, both_in_each)
    known = groups_only(admin, ["a", "b", "c"])
    assert [getattr(group, "group_id", None) for group in known.values()] == ["a", "b", None]
    assert isinstance(known["c"], BrokerRefused) and known["c"].code == loads


def test_how_long_a_slow_broker_takes_is_no_part_of_a_records_age(fake: FakeCluster, groups: Groups) -> None:
    """`lag --fail-above 10s` failed for a reader a second behind, while a broker took 8 s for each answer."""
    groups.add(classic_group("cl", classic_member("m1", "orders:0,1,2,3")))
    groups.committed["cl"] = {f"orders:{number}": 1 for number in range(4)}
    groups.ends = {f"orders:{number}": 2 for number in range(4)}
    groups.times = {f"orders:{number}": (90, 100) for number in range(4)}
    fake.slow = {2: 8.0}
    admin = ClusterView(fake, fake.retry(300))
    admin.now_ms = lambda: int(1000 * (101 + fake.time.now))
    (group,) = measure(admin, ["cl"], times=True).groups
    assert group.max_time_lag_ms == 1000


def test_classic_and_consumer_groups_come_out_alike(admin: ClusterView, groups: Groups) -> None:
    groups.add(
        classic_group("cl", classic_member("m1", "orders:0,1", "a"), classic_member("m2", "orders:2,3")),
        consumer_group("co", consumer_member("m3", "orders:0,1,2,3", instance="x")),
    )
    found = describe(admin, ["cl", "co"])
    classic, consumer = found.groups
    assert found.errors == ()
    assert (classic.type, classic.assignor, classic.group_epoch, classic.coordinator.id) == (  # type: ignore[union-attr]
        "classic",
        "range",
        None,
        1,
    )
    assert (consumer.type, consumer.assignor, consumer.group_epoch, consumer.coordinator.id) == (  # type: ignore[union-attr]
        "consumer",
        "uniform",
        5,
        2,
    )
    assert classic.offsets_partition == offsets_partition_of("cl", 50)
    first = classic.members[0]
    assert (first.instance_id, first.host, first.rack_id) == ("a", "10.0.0.1", "r1")
    assert first.assignment == (TopicAssignment("orders", (0, 1)),)
    assert first.subscribed_topics == ("orders",)
    json.dumps(asdict(found))


def test_sm_22_the_instance_id_stands_beside_the_member_and_each_partition(
    admin: ClusterView, groups: Groups
) -> None:
    """SM-22: a member's description has its group instance id; here every offset row has it too."""
    groups.add(classic_group("cl", classic_member("m1", "orders:0,1", "a"), classic_member("m2", "orders:2")))
    groups.committed["cl"] = {"orders:0": 7, "orders:2": 1, "orders:3": 3}
    groups.ends |= {"orders:0": 10, "orders:1": 5, "orders:2": 1, "orders:3": 9}
    groups.starts = {"orders:1": 2}
    (group,) = describe(admin, ["cl"]).groups
    assert [
        (r.partition, r.committed_offset, r.log_end_offset, r.lag, r.instance_id) for r in group.offsets
    ] == [
        (0, 7, 10, 3, "a"),
        (1, None, 5, None, "a"),
        (2, 1, 1, 0, None),
        (3, 3, 9, 6, None),
    ]
    assert group.offsets[2].member_id == "m2"
    assert (group.total_lag, group.lag_at_least, group.unknown_partitions) == (None, 9, 1)
    assert "earliest would read 3 records (2 to 5), latest none" in (group.offsets[1].reason or "")


def test_a_deleted_topic_is_said_and_does_not_fail_the_rest(admin: ClusterView, groups: Groups) -> None:
    groups.add(classic_group("cl", state="Empty"))
    groups.committed["cl"] = {"orders:0": 7, "gone:0": 5, "orders:9": 1}
    groups.ends["orders:0"] = 7
    (group,) = describe(admin, ["cl"]).groups
    errors = {f"{row.topic}:{row.partition}": row.error for row in group.offsets}
    assert errors["orders:0"] is None
    assert errors["gone:0"] == "the topic does not exist (deleted?)"
    assert errors["orders:9"] == "the topic has only 4 partitions"
    assert group.total_lag == 0
    assert "KG302" in {finding.code for finding in group.findings}


def test_unknown_groups_are_errors_beside_the_known_ones(admin: ClusterView, groups: Groups) -> None:
    groups.add(classic_group("cl", classic_member("m1")))
    found = describe(admin, ["cl", "nope"])
    assert [group.group_id for group in found.groups] == ["cl"]
    assert [(error.item, error.code) for error in found.errors] == [("nope", "GROUP_ID_NOT_FOUND")]


def test_brokers_without_consumer_groups_are_asked_the_classic_way(
    fake: FakeCluster, admin: ClusterView, groups: Groups
) -> None:
    """Before version 6 an unknown group is a group in state Dead."""
    fake.served |= {
        CONSUMER_GROUP_DESCRIBE: None,
        dg.DescribeGroupsRequest.API: range(5),
        LIST_GROUPS: range(4),
        OFFSET_FETCH: range(8),
    }
    groups.add(classic_group("old", classic_member("m1", "orders:0")), classic_group("dead", state="Dead"))
    groups.committed["old"] = {"orders:0": 2}
    found = describe(admin, ["old", "dead"])
    assert [(group.group_id, group.offsets[0].committed_offset) for group in found.groups] == [("old", 2)]
    assert [(error.item, error.code) for error in found.errors] == [("dead", "GROUP_ID_NOT_FOUND")]
    assert [r.group_id for r in fake.requests(of.OffsetFetchRequest)] == ["old"]
    assert fake.requests(cgd.ConsumerGroupDescribeRequest) == []


def test_other_protocol_types_are_shown_raw(admin: ClusterView, groups: Groups) -> None:
    worker = dg.DescribedGroupMember(
        member_id="w1", client_id="c", client_host="/h", member_metadata=b"\1\2", member_assignment=b"\3"
    )
    groups.add(classic_group("connect", worker, protocol_type="connect"))
    (group,) = describe(admin, ["connect"]).groups
    assert (group.protocol_type, group.members[0].raw_metadata, group.members[0].raw_assignment) == (
        "connect",
        "AQI=",
        "Aw==",
    )
    assert group.members[0].assignment is None
    assert group.members[0].partition_count is None
    assert group.findings == ()  # nobody knows that it is idle


def test_kafka_2_3_tells_neither_instance_ids_nor_subscriptions(
    fake: FakeCluster, admin: ClusterView, groups: Groups
) -> None:
    """Its DescribeGroups has the assignment where the metadata belongs, as seen on 2.3.1."""
    fake.served |= {15: range(4), 69: None}
    assigned = Assignment((TopicPartition("orders", 0),)).encode(0)
    both = dg.DescribedGroupMember(member_id="m", member_metadata=assigned, member_assignment=assigned)
    groups.add(classic_group("old", both))
    (group,) = describe(admin, ["old"]).groups
    (member,) = group.known_members
    assert (member.subscribed_topics, member.raw_metadata, member.instance_id_known) == (None, None, False)
    assert member.assignment == (TopicAssignment("orders", (0,)),)
    assert group.has_static_members is None
    assert Condition.parse("member=m").holds(group)
    with pytest.raises(BrokerRefused, match="i1 may be in old"):
        Condition.parse("member=i1").holds(group)


def test_a_rebalancing_group_does_not_tell_who_owns_what(admin: ClusterView, groups: Groups) -> None:
    silent = dg.DescribedGroupMember(member_id="m")
    groups.add(classic_group("re", silent, state="PreparingRebalance"), classic_group("st", silent))
    rebalancing, stable = describe(admin, ["re", "st"]).groups
    assert (rebalancing.known_members[0].assignment, stable.known_members[0].assignment) == (None, ())


def test_bytes_that_are_no_assignment_are_shown_raw(admin: ClusterView, groups: Groups) -> None:
    member = dg.DescribedGroupMember(member_id="m", member_metadata=b"\0", member_assignment=b"\0\1\xff")
    groups.add(classic_group("odd", member))
    (group,) = describe(admin, ["odd"]).groups
    assert (group.members[0].raw_metadata, group.members[0].raw_assignment) == ("AA==", "AAH/")


def test_share_and_streams_groups_are_described_as_what_they_are(
    fake: FakeCluster, admin: ClusterView, groups: Groups
) -> None:
    groups.listed |= {"sh": "Share", "st": "Streams"}

    def describe_share(node: int, request: sgd.ShareGroupDescribeRequest) -> sgd.ShareGroupDescribeResponse:
        member = sgd.Member(
            member_id="s1",
            client_id="c",
            client_host="/h",
            member_epoch=3,
            subscribed_topic_names=("orders",),
        )
        told = sgd.DescribedGroup(group_id="sh", group_state="Stable", group_epoch=3, members=(member,))
        return sgd.ShareGroupDescribeResponse(groups=(told,))

    fake.on(sgd.ShareGroupDescribeRequest, describe_share)
    fake.served[89] = None
    share, streams = describe(admin, ["sh", "st"]).groups
    assert (share.type, share.group_epoch, [m.member_id for m in share.members]) == ("share", 3, ["s1"])
    # No partition has an owner, so no member is idle.
    assert [finding.code for finding in share.findings] == ["KG118"]
    assert [(row.member_id, row.committed_offset) for row in share.offsets] == [(None, None)] * 4
    assert (streams.type, streams.state, streams.errors[0].item) == ("streams", "Stable", "members")
    assert streams.members is None
    (listed,) = [g for g in list_groups(admin, count_members=True).groups if g.group_id == "st"]
    assert listed.members is None
    assert not Condition.parse("members=0").holds(streams)
    assert streams.has_static_members is None


def test_groups_of_one_type_are_described_in_one_request(
    fake: FakeCluster, admin: ClusterView, groups: Groups
) -> None:
    """A request a group made minutes of a cluster with thousands of them."""
    names = [f"sh{n}" for n in range(50)]
    groups.listed |= dict.fromkeys(names, "Share")
    missing = ErrorCode.GROUP_ID_NOT_FOUND

    def answer(node: int, request: sgd.ShareGroupDescribeRequest) -> sgd.ShareGroupDescribeResponse:
        codes = {name: missing if name == "sh7" else ErrorCode.NONE for name in request.group_ids}
        return sgd.ShareGroupDescribeResponse(
            groups=tuple(sgd.DescribedGroup(group_id=name, error_code=code) for name, code in codes.items())
        )

    fake.on(sgd.ShareGroupDescribeRequest, answer)
    told = describe(admin, names, offsets=False)
    assert [group.group_id for group in told.groups] == [name for name in names if name != "sh7"]
    assert [(error.item, error.code) for error in told.errors] == [("sh7", "GROUP_ID_NOT_FOUND")]
    assert len(fake.requests(sgd.ShareGroupDescribeRequest)) == 1


def _tasks(**numbers: tuple[int, ...]) -> stg.Assignment:
    return stg.Assignment(
        **{
            f"{role}_tasks": (stg.TaskIds(subtopology_id="0", partitions=told),)
            for role, told in numbers.items()
        }
    )


def _streams(*members: stg.Member, topics: tuple[str, ...] = ("orders",)) -> stg.StreamsGroupDescribeResponse:
    subtopology = stg.Subtopology(subtopology_id="0", source_topics=topics)
    told = stg.DescribedGroup(
        group_id="st",
        group_state="Reconciling",
        group_epoch=4,
        assignment_epoch=3,
        topology=stg.Topology(subtopologies=(subtopology,)),
        members=members,
    )
    return stg.StreamsGroupDescribeResponse(groups=(told,))


def test_members_of_streams_groups_with_their_tasks(
    fake: FakeCluster, admin: ClusterView, groups: Groups
) -> None:
    """KIP-1071: active tasks as the partitions they read, standby and warm-up replicas told apart."""
    groups.listed["st"] = "Streams"
    has = _tasks(active=(0, 2), standby=(1,), warmup=(3,))
    one = stg.Member(member_id="a", member_epoch=3, assignment=has, target_assignment=_tasks(active=(0,)))
    fake.on(stg.StreamsGroupDescribeRequest, lambda node, request: _streams(one))
    told = describe(admin, ["st"])
    (group,) = told.groups
    (member,) = group.known_members
    assert (told.errors, group.errors) == ((), ())
    assert (group.type, group.group_epoch, group.assignment_epoch) == ("streams", 4, 3)
    assert (member.protocol, member.member_epoch, member.state) == ("streams", 3, "revoking")
    assert member.assignment == (TopicAssignment("orders", (0, 2)),)
    assert member.tasks is not None
    assert [member.tasks.standby[0].partitions, member.tasks.warmup[0].partitions] == [(1,), (3,)]
    assert [(row.partition, row.member_id) for row in group.offsets] == [
        (0, "a"),
        (1, None),
        (2, "a"),
        (3, None),
    ]


NODES = wire.DescribedSubtopology(
    subtopology_id="0",
    nodes=(
        wire.Node(name="in", node_type=1, source_topics=("orders",), successors=("count",)),
        wire.Node(name="count", node_type=2, stores=("counts",), successors=("out",)),
        wire.Node(name="out", node_type=3, sink_topic="totals"),
        wire.Node(name="later", node_type=9),
    ),
)
GLOBAL = wire.GlobalStore(
    source=wire.Node(name="all", node_type=1, source_topics=("rates",)),
    processor=wire.Node(name="fill", node_type=2, stores=("rates",)),
)


def _described_by(
    status: int, described: wire.TopologyDescription | None
) -> stg.StreamsGroupDescribeResponse:
    (told,) = _streams(stg.Member(member_id="a", instance_id="i", member_epoch=3)).groups
    more = {"topology_description": described, "topology_description_status": status}
    return stg.StreamsGroupDescribeResponse(groups=(replace(told, assignor_name="sticky", **more),))


def test_what_an_application_says_of_its_topology(
    fake: FakeCluster, admin: ClusterView, groups: Groups
) -> None:
    """KIP-1331, KIP-1357: nodes as they came, of a later kind too; the assignor; a static member's id."""
    groups.listed["st"] = "Streams"
    told = wire.TopologyDescription(subtopologies=(NODES,), global_stores=(GLOBAL,))
    asked: list[bool] = []

    def answer(node: int, request: stg.StreamsGroupDescribeRequest) -> stg.StreamsGroupDescribeResponse:
        asked.append(request.include_topology_description)
        return _described_by(3, told)

    fake.on(stg.StreamsGroupDescribeRequest, answer)
    (group,) = describe(admin, ["st"]).groups
    assert (group.assignor, group.errors, asked) == ("sticky", (), [True])
    assert (group.known_members[0].instance_id, group.has_static_members) == ("i", True)
    assert group.topology is not None and group.topology.described == "available"
    assert group.topology.description is not None
    (part,), (store,) = group.topology.description.subtopologies, group.topology.description.global_stores
    assert [(node.name, node.type) for node in part.nodes] == [
        ("in", "source"),
        ("count", "processor"),
        ("out", "sink"),
        ("later", "9"),
    ]
    first, second, third, _ = part.nodes
    assert (first.source_topics, first.successors, second.stores) == (("orders",), ("count",), ("counts",))
    assert (third.sink_topic, first.sink_topic) == ("totals", None)
    assert (store.source.source_topics, store.processor.stores) == (("rates",), ("rates",))


@pytest.mark.parametrize(
    ("status", "described", "errors"),
    [(0, "unknown", []), (1, "not_stored", []), (2, "error", ["topology"]), (3, "error", ["topology"])],
)
def test_a_description_that_did_not_come_is_not_shown_as_an_empty_one(
    fake: FakeCluster, admin: ClusterView, groups: Groups, status: int, described: str, errors: list[str]
) -> None:
    """One that the broker failed to read is a part that could not be read, so the exit code says so."""
    groups.listed["st"] = "Streams"
    fake.on(stg.StreamsGroupDescribeRequest, lambda node, request: _described_by(status, None))
    (group,) = describe(admin, ["st"]).groups
    assert group.topology is not None
    assert (group.topology.described, group.topology.description) == (described, None)
    assert [error.item for error in group.errors] == errors


def test_what_a_broker_before_4_4_does_not_report_is_unknown(
    fake: FakeCluster, admin: ClusterView, groups: Groups
) -> None:
    groups.listed["st"] = "Streams"
    fake.served[stg.StreamsGroupDescribeRequest.API] = range(1)
    asked: list[bool] = []

    def answer(node: int, request: stg.StreamsGroupDescribeRequest) -> stg.StreamsGroupDescribeResponse:
        asked.append(request.include_topology_description)
        return _streams(stg.Member(member_id="a", member_epoch=3))

    fake.on(stg.StreamsGroupDescribeRequest, answer)
    (group,) = describe(admin, ["st"]).groups
    assert group.topology is not None
    assert (group.assignor, group.topology.described, asked) == (None, "unknown", [False])


def test_a_static_streams_member_that_left_for_now(
    fake: FakeCluster, admin: ClusterView, groups: Groups
) -> None:
    """No request removes it: what is advised is to wait, and not remove-members, which would refuse."""
    groups.listed["st"] = "Streams"
    away = stg.Member(
        member_id="a", instance_id="i", member_epoch=-2, assignment=_tasks(active=(0,)), process_id="p"
    )
    fake.on(stg.StreamsGroupDescribeRequest, lambda node, request: _streams(away))
    (group,) = describe(admin, ["st"]).groups
    (finding,) = (found for found in group.findings if found.code == "KG103")
    assert finding.message == "i shut down without leaving for good: partition orders-0 waits for it"
    assert finding.hint == "bring it back, or: wait for its session to end"


@pytest.mark.parametrize(
    ("hides", "says"),
    [
        (
            False,
            "these topics are missing: source absent (subtopology 0), changelog gone (subtopology 1)",
        ),
        # One that may not be seen is not called missing.
        (True, "these topics are missing: source absent (subtopology 0)"),
    ],
)
def test_a_streams_group_that_is_not_ready_tells_what_it_lacks(
    fake: FakeCluster, admin: ClusterView, groups: Groups, hides: bool, says: str
) -> None:
    """AE-32, KIP-1071: no task is assigned before all topics of the topology are there."""
    fake.allowed_topics = {*fake.topics, "absent"} if hides else None
    groups.listed["st"] = "Streams"
    parts = (
        stg.Subtopology(subtopology_id="0", source_topics=("orders", "absent")),
        stg.Subtopology(subtopology_id="1", state_changelog_topics=(stg.TopicInfo(name="gone"),)),
    )
    (described,) = _streams(stg.Member(member_id="a", member_epoch=3)).groups
    told = replace(described, group_state="NotReady", topology=stg.Topology(subtopologies=parts))
    fake.on(
        stg.StreamsGroupDescribeRequest,
        lambda node, request: stg.StreamsGroupDescribeResponse(groups=(told,)),
    )
    (group,) = describe(admin, ["st"]).groups
    by_code = {finding.code: finding for finding in group.findings}
    assert by_code["KG108"].message == f"no task is assigned, {says}"
    assert by_code["KG108"].severity == "error"
    assert "KG303" not in by_code


@pytest.mark.parametrize("has_topology", [True, False])
def test_a_streams_group_that_is_not_ready_with_all_its_topics(
    fake: FakeCluster, admin: ClusterView, groups: Groups, has_topology: bool
) -> None:
    """Which of them are wrongly partitioned is told in heartbeats alone; nor is a topology always told."""
    groups.listed["st"] = "Streams"
    (described,) = _streams(stg.Member(member_id="a", member_epoch=3)).groups
    told = replace(described, group_state="NotReady", **({} if has_topology else {"topology": None}))
    fake.on(
        stg.StreamsGroupDescribeRequest,
        lambda node, request: stg.StreamsGroupDescribeResponse(groups=(told,)),
    )
    (group,) = describe(admin, ["st"]).groups
    (finding,) = (found for found in group.findings if found.code == "KG108")
    assert "no topic of the topology is known to be missing" in finding.message
    assert finding.hint is not None and "members' logs" in finding.hint


@pytest.mark.parametrize(("second", "owned"), [("audit", (0,)), ("not-to-be-seen", None)])
def test_a_task_reads_the_partitions_that_there_are(
    fake: FakeCluster, admin: ClusterView, groups: Groups, second: str, owned: tuple[int, ...] | None
) -> None:
    """Of several topics each has the partitions it has; where one cannot be seen, nobody knows."""
    fake.topics["audit"] = 1
    groups.listed["st"] = "Streams"
    one = stg.Member(member_id="a", assignment=_tasks(active=(0, 1)), target_assignment=_tasks(active=(0, 1)))
    answer = _streams(one, topics=("orders", second))
    fake.on(stg.StreamsGroupDescribeRequest, lambda node, request: answer)
    (member,) = describe(admin, ["st"], offsets=False).groups[0].known_members
    if owned is None:
        assert member.assignment is None
    else:
        assert member.assignment == (TopicAssignment(second, owned), TopicAssignment("orders", (0, 1)))


def test_offsets_that_may_not_be_read_leave_the_members(
    fake: FakeCluster, admin: ClusterView, groups: Groups
) -> None:
    groups.add(classic_group("cl", classic_member("m1", "orders:0")))

    def deny(node: int, request: of.OffsetFetchRequest) -> of.OffsetFetchResponse:
        denied = of.OffsetFetchResponseGroup(group_id="cl", error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
        return of.OffsetFetchResponse(groups=(denied,))

    fake.on(of.OffsetFetchRequest, deny)
    (group,) = describe(admin, ["cl"]).groups
    assert len(group.members) == 1
    assert [(error.item, error.code) for error in group.errors] == [("offsets", "GROUP_AUTHORIZATION_FAILED")]
    assert [error.code for error in measure(admin, ["cl"]).errors] == ["GROUP_AUTHORIZATION_FAILED"]


@pytest.mark.parametrize(
    ("member", "phase"),
    [
        (consumer_member("m", "orders:0"), "stable"),
        (consumer_member("m", "orders:0,1", "orders:0", epoch=4), "revoking"),
        (consumer_member("m", "orders:0", "orders:0,1"), "waiting"),
        (consumer_member("m", "orders:0", epoch=4), "behind"),
        (consumer_member("m", "orders:0", epoch=-2, instance="a"), "left"),
    ],
)
def test_how_far_a_member_is(admin: ClusterView, groups: Groups, member: cgd.Member, phase: str) -> None:
    groups.add(consumer_group("co", member))
    assert describe(admin, ["co"], offsets=False).groups[0].members[0].state == phase


def test_listing_asks_every_broker_and_counts_members(
    fake: FakeCluster, admin: ClusterView, groups: Groups
) -> None:
    groups.add(classic_group("a", classic_member("m1"), classic_member("m2")))
    groups.listed = {"b": "consumer", "a": "Classic"}
    found = list_groups(admin, count_members=True)
    assert [(g.group_id, g.type, g.members) for g in found.groups] == [
        ("a", "classic", 2),
        ("b", "consumer", None),
    ]
    assert [g.group_id for g in list_groups(admin, types=["CONSUMER"]).groups] == ["b"]
    assert list_groups(admin, states=["empty"]).groups == ()
    assert {node for node, m, _ in fake.sent if isinstance(m, lg.ListGroupsRequest)} == {1, 2}


def test_a_broker_that_is_down_is_named_and_the_others_are_shown(
    fake: FakeCluster, admin: ClusterView
) -> None:
    def answer(node: int, request: lg.ListGroupsRequest) -> lg.ListGroupsResponse:
        if node == 2:
            raise Unreachable("b2:9092: connection refused")
        return lg.ListGroupsResponse(groups=(lg.ListedGroup(group_id="g"),))

    fake.on(lg.ListGroupsRequest, answer)
    found = list_groups(admin)
    assert [group.group_id for group in found.groups] == ["g"]
    assert [(error.item, error.code) for error in found.errors] == [("broker 2", "UNREACHABLE")]
    fake.brokers = (2,)
    with pytest.raises(Unreachable):
        list_groups(admin)


def test_a_broker_that_is_loading_is_asked_again(fake: FakeCluster, admin: ClusterView) -> None:
    codes = iter([ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NONE, ErrorCode.NONE])
    fake.on(lg.ListGroupsRequest, lambda *_: lg.ListGroupsResponse(error_code=next(codes)))
    assert list_groups(admin).errors == ()


def test_a_last_stable_offset_that_cannot_be_read_is_unknown(fake: FakeCluster, groups: Groups) -> None:
    groups.add(classic_group("g", classic_member("m", "orders:0", "a")))
    groups.committed = {"g": {"orders:0": 2}}
    groups.ends = {"orders:0": 4}
    answer = groups._list_offsets

    def refuse(node: int, request: lo.ListOffsetsRequest) -> object:
        if not request.isolation_level:
            return answer(node, request)
        part = lo.ListOffsetsPartitionResponse(
            partition_index=0, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED
        )
        return lo.ListOffsetsResponse(
            topics=(lo.ListOffsetsTopicResponse(name="orders", partitions=(part,)),)
        )

    def unread(node: int, request: f.FetchRequest) -> object:
        part = f.PartitionData(partition_index=0, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        return f.FetchResponse(responses=(f.FetchableTopicResponse(topic="orders", partitions=(part,)),))

    fake.on(lo.ListOffsetsRequest, refuse).on(f.FetchRequest, unread)
    (group,) = describe(ClusterView(fake, retry=fake.retry()), ["g"]).groups
    row = group.offsets[0]
    assert (row.lag, row.last_stable_offset, row.held_open_by) == (2, None, None)
    assert row.status is not None and row.status.unseen is not None
    assert (row.status.name, row.status.unseen.code) == ("unknown", "TOPIC_AUTHORIZATION_FAILED")


@pytest.mark.parametrize(
    ("count", "named"), [(1, "orders-0"), (2, "orders-0 and 1 more"), (3, "orders-0 and 2 more")]
)
def test_ends_that_cannot_be_read_are_one_error_that_counts_them(
    fake: FakeCluster, groups: Groups, count: int, named: str
) -> None:
    fake.topics["orders"] = count
    groups.add(classic_group("g", classic_member("m", "orders:0", "a")))
    groups.committed = {"g": {"orders:0": 2}}

    def refuse(node: int, request: lo.ListOffsetsRequest) -> object:
        parts = tuple(
            lo.ListOffsetsPartitionResponse(
                partition_index=part.partition_index, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED
            )
            for topic in request.topics
            for part in topic.partitions
        )
        return lo.ListOffsetsResponse(topics=(lo.ListOffsetsTopicResponse(name="orders", partitions=parts),))

    fake.on(lo.ListOffsetsRequest, refuse)
    (group,) = describe(ClusterView(fake, retry=fake.retry()), ["g"]).groups
    (error,) = group.errors
    assert error.message.startswith(f"g: the end of {named} is not known: ")


def test_brokers_before_transactions_have_nothing_unstable(fake: FakeCluster, groups: Groups) -> None:
    groups.add(classic_group("g", classic_member("m", "orders:0", "a")))
    groups.committed, groups.ends = {"g": {"orders:0": 2}}, {"orders:0": 4}
    fake.served[LIST_OFFSETS] = range(2)
    (group,) = describe(ClusterView(fake, retry=fake.retry()), ["g"]).groups
    assert (group.offsets[0].last_stable_offset, group.errors) == (4, ())


@pytest.mark.parametrize("hidden", [False, True])
def test_a_pattern_that_nobody_resolves_now_is_read_over_the_topics_that_are_seen(hidden: bool) -> None:
    """Its only member left for now: a topic that came meanwhile waits; more may, where some are hidden."""
    fake = FakeCluster(topics={"orders": 1, "orders-new": 1, "pay": 1})
    fake.allowed_topics = {"orders", "orders-new"} if hidden else None
    away = consumer_member("a", "orders:0", "orders:0", "a", epoch=-2, regex="orders.*")
    groups = Groups(fake).add(consumer_group("g", away))
    groups.committed["g"] = {"orders:0": 5}
    groups.ends = {"orders:0": 5, "orders-new:0": 3}
    groups.starts = {"orders-new:0": 0}
    (group,) = describe(fake.cluster(), ["g"]).groups
    assert [(row.topic, row.status.name) for row in group.offsets if row.status] == [
        ("orders", "idle"),
        ("orders-new", "unread"),
    ]
    assert bool(group.errors) == hidden


@pytest.mark.parametrize(
    ("age_s", "start", "status"),
    [(5, 0, ("moving", "info")), (40, 0, ("unknown", "unknown")), (90, 0, None), (40, 1, None)],
)
def test_a_new_topic_that_a_pattern_matches_is_the_groups_until_it_must_have_been_assigned(
    age_s: int, start: int, status: tuple[str, str] | None
) -> None:
    """Afterwards it is one that the members may not describe; so is one with records deleted already."""
    fake = FakeCluster(topics={"orders": 1, "orders-new": 1, "pay": 1})
    member = consumer_member("a", "orders:0", "orders:0", "a", regex="orders.*")
    groups = Groups(fake).add(consumer_group("g", member))
    groups.committed["g"] = {"orders:0": 5}
    groups.ends, groups.starts = {"orders:0": 5, "orders-new:0": 3}, {"orders-new:0": start}
    cluster = fake.cluster()
    now_s = cluster.now_ms() // 1000
    groups.times["orders-new:0"] = [now_s - age_s, now_s - 1, now_s]
    (group,) = describe(cluster, ["g"]).groups
    found = {row.topic: (row.status.name, row.status.weight) for row in group.offsets if row.status}
    assert found.pop("orders") == ("idle", "ok")
    assert found == ({} if status is None else {"orders-new": status})
