"""Groups of Kafka 0.8 to 1.1 as their nodes have them, and what brokers of that age tell about their logs."""

from __future__ import annotations

import json

import pytest

from kgroup.errors import BrokerRefused, ConfigError, ErrorCode, Unreachable
from kgroup.protocol.messages.list_offsets_0 import ListOffsets0Request
from kgroup.protocol.messages.metadata import MetadataRequest
from kgroup.protocol.messages.offset_fetch import OffsetFetchRequest
from kgroup.zookeeper.groups import nodes
from kgroup.zookeeper.groups.records import broker_of, consumer_of, host_of, registration_of
from tests.unit.zookeeper.old_tree import OldBroker, OldTree

ENDS = {("t1", 0): 10, ("t1", 1): 12}


@pytest.fixture
def old() -> OldTree:
    """Group og: one live consumer that owns both partitions of t1 and committed them."""
    tree = OldTree()
    tree.broker()
    tree.topic("t1", 2)
    name = tree.consumer("og", "host-1795303999791-a1b2c3d4", {"t1": 1})
    for partition, offset in enumerate((7, 12)):
        tree.owner("og", "t1", partition, name)
        tree.offset("og", "t1", partition, offset)
    return tree


@pytest.fixture
def broker() -> OldBroker:
    return OldBroker(ENDS)


def described(old: OldTree, broker: OldBroker, group: str = "og"):
    told = broker.groups(old).describe([group])
    assert not [error for error in told.errors if error.item == group]
    return told.groups[0]


def rows(group) -> dict:
    return {(row.topic, row.partition): row for row in group.offsets}


def codes(group) -> list[str]:
    return [finding.code for finding in group.findings]


def test_a_live_group_in_full(old, broker):
    group = described(old, broker)
    (member,) = group.members
    assert (group.type, group.protocol_type, group.state) == ("zookeeper", "consumer", "Stable")
    assert (member.member_id, member.host) == ("og_host-1795303999791-a1b2c3d4", "host")
    assert [(entry.topic, entry.partitions) for entry in member.assignment] == [("t1", (0, 1))]
    found = {
        key: (r.committed_offset, r.log_end_offset, r.lag, r.member_id) for key, r in rows(group).items()
    }
    assert found == {
        ("t1", 0): (7, 10, 3, member.member_id),
        ("t1", 1): (12, 12, 0, member.member_id),
    }
    assert (group.total_lag, group.errors) == (3, ())


def test_what_the_tree_does_not_tell_is_null(old, broker):
    group = described(old, broker)
    assert (group.coordinator, group.generation, group.assignor, group.group_epoch) == (None,) * 4
    assert (group.members[0].client_id, group.members[0].is_leader) == (None, None)


def test_a_consumer_with_an_id_of_its_own_names_no_host(old, broker):
    old.consumer("og", "my-consumer", {"t1": 1})
    hosts = {member.member_id: member.host for member in described(old, broker).members}
    assert hosts["og_my-consumer"] is None


def test_without_consumers_a_group_is_empty_and_its_lag_known(broker):
    old = OldTree()
    old.broker()
    old.topic("t1", 2)
    old.offset("og", "t1", 0, 4)
    group = described(old, broker)
    assert (group.state, group.members, group.total_lag) == ("Empty", (), 6)


def test_a_partition_without_an_owner_is_told_and_counted(old, broker):
    old.topic("t1", 3)
    broker.ends["t1", 2] = 5
    group = described(old, broker)
    assert group.state == "Unsettled" and "KG402" in codes(group)
    assert rows(group)["t1", 2].lag is None and "never committed" in rows(group)["t1", 2].reason
    assert (group.total_lag, group.lag_at_least, group.unknown_partitions) == (None, 3, 1)


def test_an_owner_that_is_not_registered_unsettles_a_group(old, broker):
    old.owner("og", "t1", 1, "og_gone")
    group = described(old, broker)
    assert group.state == "Unsettled"
    assert "t1-1 with an owner that is not registered" in next(
        f.message for f in group.findings if f.code == "KG402"
    )
    assert [member.member_id for member in group.members] == ["og_host-1795303999791-a1b2c3d4"]


def test_owners_without_registrations_leave_the_members_unknown(broker):
    """LC-16: the coordinator of the 0.9 draft makes owners that last, and no registrations."""
    old = OldTree()
    old.broker()
    old.topic("t1", 2)
    old.owner("og", "t1", 0, "og_c1", lasting=True)
    group = described(old, broker)
    assert (group.state, group.members, group.total_lag) == ("Unknown", None, None)
    (listed,) = broker.groups(old).list_groups().groups
    assert (listed.state, listed.members) == ("Unknown", None)


def test_a_white_list_subscribes_to_what_it_matches(broker):
    old = OldTree()
    old.broker()
    old.topic("t1", 2)
    old.topic("other", 1)
    name = old.consumer("wl", "c", {"t.*": 1}, "white_list")
    for partition in (0, 1):
        old.owner("wl", "t1", partition, name)
        old.offset("wl", "t1", partition, 10)
    group = described(old, broker, "wl")
    assert (group.state, group.members[0].subscribed_topics, group.members[0].subscribed_regex) == (
        "Stable",
        None,
        "t.*",
    )


def test_a_black_list_subscribes_to_all_others(broker):
    registration = registration_of(b'{"version":1,"subscription":{"a,b":1},"pattern":"black_list"}')
    assert registration.wanted(["a", "b", "c", "__consumer_offsets"]) == {"c"}


def test_a_pattern_that_only_java_reads_leaves_open_whether_all_is_owned(broker):
    old = OldTree()
    old.broker()
    old.topic("t1", 2)
    old.owner("wl", "t1", 0, old.consumer("wl", "c", {r"t(?!2).*": 1}, "white_list"))
    group = described(old, broker, "wl")
    assert (group.state, group.total_lag) == ("Live", None)
    assert "what wl_c subscribes to is unknown: invalid perl operator: (?!" in group.errors[0].message


def test_offsets_kept_in_kafka_are_told_as_such(old, broker):
    old.topic("__consumer_offsets", 2)
    old.owner("kg", "t1", 0, old.consumer("kg", "c", {"t1": 1}))
    old.owner("kg", "t1", 1, "kg_c")
    broker.kafka = {("kg", "t1", 0): 9, ("kg", "t1", 1): 12}
    group = described(old, broker, "kg")
    assert [row.committed_offset for row in group.offsets] == [9, 12]
    assert (group.total_lag, codes(group)) == (1, ["KG401"])


def test_kafka_is_not_asked_where_it_keeps_no_offsets(old, broker):
    """Looking for the coordinator would have the broker make __consumer_offsets."""
    described(old, broker)
    assert not [asked for asked in broker.asked if isinstance(asked, OffsetFetchRequest)]
    assert {type(asked) for asked in broker.asked} == {MetadataRequest, ListOffsets0Request}


def test_two_offsets_that_differ_are_both_told(old, broker):
    old.topic("__consumer_offsets", 2)
    broker.kafka = {("og", "t1", 0): 9}
    group = described(old, broker)
    assert rows(group)["t1", 0].committed_offset == 9
    assert "t1-0 7 in ZooKeeper" in next(f.message for f in group.findings if f.code == "KG403")


def test_where_kafka_does_not_tell_nothing_is_called_never_committed(old, broker):
    old.topic("__consumer_offsets", 2)
    old.owner("kg", "t1", 0, old.consumer("kg", "c", {"t1": 1}))
    broker.failure[OffsetFetchRequest] = Unreachable("b1:9092 timed out")
    group = described(old, broker, "kg")
    assert rows(group)["t1", 0].lag is None and "b1:9092 timed out" in rows(group)["t1", 0].reason
    # One in Kafka would hold in the place of the one in ZooKeeper, and may be nearer to the end.
    beside = described(old, broker)
    assert rows(beside)["t1", 0].committed_offset == 7
    assert (beside.total_lag, beside.lag_at_least, beside.unknown_partitions) == (None, None, 2)
    assert [error.code for error in group.errors] == ["UNREACHABLE"]
    assert group.total_lag is None and "KG404" not in codes(group)


def test_a_number_that_is_none_is_an_error_and_no_zero(old, broker):
    old.offset("og", "t1", 0, "x1f")
    group = described(old, broker)
    row = rows(group)["t1", 0]
    assert (row.committed_offset, row.lag) == (None, None) and "'x1f'" in row.reason
    assert (group.total_lag, group.lag_at_least) == (None, 0)
    assert "/consumers/og/offsets/t1/0" in group.errors[0].message


@pytest.mark.parametrize("data", ["", "-1", "1.5", "9223372036854775808", "٣"])
def test_what_is_no_offset(old, broker, data):
    old.offset("og", "t1", 0, data)
    assert rows(described(old, broker))["t1", 0].committed_offset is None


def test_partitions_of_kafka_0_7_are_said_and_not_guessed(old, broker):
    old.put("/consumers/og/offsets/t1/0-1", "5")
    group = described(old, broker)
    assert set(rows(group)) == set(ENDS)
    assert "'0-1' is not a partition" in group.errors[0].message and group.total_lag is None


def test_without_live_brokers_offsets_are_told_and_ends_are_not(old, broker):
    tree = OldTree()
    tree.topic("t1", 1)
    tree.offset("og", "t1", 0, 4)
    group = described(tree, broker)
    assert (group.offsets[0].committed_offset, group.offsets[0].log_end_offset) == (4, None)
    assert group.total_lag is None and "no broker is registered" in group.errors[0].message


def test_a_deleted_topic_is_gone_and_hides_nothing(old, broker):
    old.offset("og", "gone", 0, 4)
    group = described(old, broker)
    assert rows(group)["gone", 0].gone and group.total_lag == 3 and not group.errors
    assert "KG302" in codes(group)


def test_hints_name_no_command_that_does_not_reach_zookeeper(old, broker):
    old.offset("og", "gone", 0, 4)
    old.offset("og", "t1", 0, 99)
    assert {"KG301", "KG302"} <= set(codes(described(old, broker)))
    assert [finding.hint for finding in described(old, broker).findings if finding.hint] == []


@pytest.mark.parametrize("part", ["ids", "owners", "offsets", "offsets/t1", "offsets/t1/0"])
def test_parts_that_may_not_be_read_are_errors(old, broker, part):
    old.deny(f"/consumers/og/{part}")
    group = described(old, broker)
    assert {error.code for error in group.errors} == {"GROUP_AUTHORIZATION_FAILED"}
    assert group.total_lag is None
    listing = broker.groups(old).list_groups()
    assert {error.code for error in listing.errors} == {"GROUP_AUTHORIZATION_FAILED"}


def test_registrations_that_may_not_be_read_are_no_empty_group(old, broker):
    old.deny("/consumers/og/ids")
    (listed,) = broker.groups(old).list_groups().groups
    assert (listed.state, listed.members) == ("Unknown", None)


def test_rights_that_hide_all_groups_end_a_listing(old, broker):
    old.deny("/consumers")
    with pytest.raises(BrokerRefused) as refused:
        broker.groups(old).list_groups()
    assert refused.value.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_a_group_that_is_not_there(old, broker):
    told = broker.groups(old).describe(["nope", "a/b", ".."])
    assert [(error.item, error.code) for error in told.errors] == [
        (name, "GROUP_ID_NOT_FOUND") for name in ("nope", "a/b", "..")
    ]


def test_a_tree_that_is_no_kafkas_names_the_chroot_that_is(broker):
    old = OldTree()
    old.put("/zookeeper/quota")
    old.put("/prod/brokers/ids/1", "{}")
    for asked in (lambda g: g.list_groups(), lambda g: g.describe(["og"])):
        with pytest.raises(ConfigError) as refused:
            asked(broker.groups(old))
        assert refused.value.hint == "did you mean the chroot /prod?"


def test_below_a_chroot_everything_is_the_same(broker):
    old = OldTree("/kafka")
    old.broker()
    old.topic("t1", 2)
    old.offset("og", "t1", 0, 4)
    assert described(old, broker).total_lag == 6


def test_the_coordinator_of_the_0_9_draft_is_no_group(old, broker):
    """LC-15: its node lies where groups are."""
    old.put("/consumers/coordinator", "1", ephemeral=True)
    assert [g.group_id for g in broker.groups(old).list_groups().groups] == ["og"]
    assert broker.groups(old).describe(["coordinator"]).errors[0].code == "GROUP_ID_NOT_FOUND"


def test_a_group_may_be_called_coordinator(old, broker):
    old.offset("coordinator", "t1", 0, 4)
    assert [g.group_id for g in broker.groups(old).list_groups().groups] == ["coordinator", "og"]


def test_groups_of_a_topic_subscribe_own_or_committed(old, broker):
    old.topic("t2", 1)
    old.offset("committed", "t2", 0, 1)
    old.consumer("subscribed", "c", {"t2": 1})
    old.owner("owned", "t2", 0, "owned_c")
    listed = broker.groups(old).list_groups("t2").groups
    assert [g.group_id for g in listed] == ["committed", "owned", "subscribed"]


class Vanishing:
    """Asks a tree, and lets one node go before a round of questions."""

    def __init__(self, old: OldTree, path: str, round_: int) -> None:
        self.old, self.path, self.left = old, path, round_

    def __call__(self, *ops):
        self.left -= 1
        if self.left == 0:
            self.old.remove(self.path)
        return self.old.ask(*ops)


@pytest.mark.parametrize("round_", range(1, 12))
@pytest.mark.parametrize("path", ["", "/ids", "/offsets", "/offsets/t1", "/offsets/t1/0", "/owners/t1/1"])
def test_nodes_that_vanish_while_they_are_read(old, path, round_):
    """What goes away is not there: never an exception, never an error of something that is no fault."""
    ask = Vanishing(old, f"/consumers/og{path}", round_)
    found = nodes.groups(ask, ["og"])["og"]
    if isinstance(found, nodes.GroupNodes):
        assert found.errors == [] and found.unread == set()
    else:
        assert path == "" and found.code == ErrorCode.GROUP_ID_NOT_FOUND


V1 = {"version": 1, "host": "h", "port": 9092, "jmx_port": -1, "timestamp": "1"}
V2 = {**V1, "version": 2, "endpoints": ["PLAINTEXT://h2:9092", "SSL://h2:9093"]}
V3 = {**V2, "version": 3, "rack": "r"}
V4 = {
    "version": 4,
    "host": None,
    "port": -1,
    "endpoints": ["INSIDE://h4:1", "OUTSIDE://[::1]:2"],
    "listener_security_protocol_map": {"INSIDE": "PLAINTEXT", "OUTSIDE": "SASL_SSL"},
    "rack": "r",
}
V5 = {**V4, "version": 5, "features": {}}


@pytest.mark.parametrize(
    ("document", "listeners"),
    [
        (V1, {"PLAINTEXT": ("h", 9092)}),
        (V2, {"PLAINTEXT": ("h2", 9092), "SSL": ("h2", 9093)}),
        (V3, {"PLAINTEXT": ("h2", 9092), "SSL": ("h2", 9093)}),
        (V4, {"PLAINTEXT": ("h4", 1), "SASL_SSL": ("::1", 2)}),
        (V5, {"PLAINTEXT": ("h4", 1), "SASL_SSL": ("::1", 2)}),
    ],
)
def test_registrations_of_brokers(document, listeners):
    assert broker_of("7", json.dumps(document).encode()).listeners == listeners


def test_a_broker_that_cannot_be_read_is_said(old, broker):
    old.put("/brokers/ids/2", "what?")
    told = broker.groups(old).describe(["og"])
    assert [error.item for error in told.errors] == ["broker 2"]


def test_the_consumer_of_a_thread_may_have_dashes():
    assert consumer_of(b"og_h-1795303999791-a1b2c3d4-12") == "og_h-1795303999791-a1b2c3d4"
    assert host_of("og", "og_my-host-1795303999791-a1b2c3d4") == "my-host"


HOSTILE = {
    "9" * 5_000: "a number of more digits than Python reads",
    "0" * 5_000 + "7": "a number with zeros in front",
    "-1": "a negative number",
    "٧": "a digit that is not ASCII",
    "\x1b[2J": "an escape sequence",
    "{": "broken JSON",
    "[" * 100_000: "deep JSON",
    '{"a":' * 50_000: "deep JSON of objects",
    "[]": "JSON of another shape",
    '{"version":' + "9" * 5_000 + "}": "JSON with a huge number",
    '{"subscription":{"(a*)*' + "(a*)*" * 499 + '":1},"pattern":"white_list"}': "a pattern Python never ends",
    '{"subscription":{"((a{1000}){1000}){1000}":1},"pattern":"black_list"}': "a pattern too large",
    '{"subscription":{"(?<=t)1":1},"pattern":"white_list"}': "a pattern for Java only",
    '{"subscription":[],"pattern":[]}': "a registration of other types",
    '{"partitions":{"' + "9" * 5_000 + '":[1]}}': "a partition with a huge number",
    '{"host":"b2","port":' + "9" * 4_000 + "}": "a huge port",
    '{"endpoints":7,"listener_security_protocol_map":[1]}': "endpoints of other types",
    '{"endpoints":["PLAINTEXT://b2:' + "9" * 5_000 + '"]}': "an endpoint with a huge port",
}
"""What a stranger may write into a node."""
PLACES = (
    "/consumers/bad/ids/bad_c",
    "/consumers/bad/owners",
    "/consumers/bad/owners/t1/0",
    "/consumers/bad/offsets/t1/0",
    "/consumers/coordinator",
    "/coordinator_epoch",
    "/brokers/ids/2",
    "/brokers/topics/t2",
    "/cluster/id",
)


@pytest.mark.parametrize("data", HOSTILE, ids=HOSTILE.values())
@pytest.mark.parametrize("place", PLACES)
def test_no_content_of_a_node_hides_other_groups(broker, place, data):
    """Of a hostile group at most its own is unknown; nobody waits, nothing raises."""
    old = OldTree()
    old.broker()
    old.topic("t1", 2)
    old.topic("a" * 40, 1)
    old.offset("good", "t1", 0, 7)
    old.owner("good", "t1", 0, old.consumer("good", "c", {"t1": 1}))
    old.offset("bad", "t1", 1, 5)
    old.put(place, data, ephemeral=place.endswith("coordinator"))
    groups = broker.groups(old)
    good, bad = groups.describe(["good", "bad"]).groups
    assert [
        (row.partition, row.committed_offset) for row in good.offsets if row.committed_offset is not None
    ] == [(0, 7)]
    if place.endswith("offsets/t1/0") and data.strip("0") != "7":
        assert bad.total_lag is None and any("is not an offset" in error.message for error in bad.errors)
    assert {listing.group_id for listing in groups.list_groups().groups} >= {"good", "bad"}
    groups.cluster_id()


@pytest.mark.parametrize("name", ["9" * 5_000, "0" * 5_000, "٧", "-1"])
def test_no_name_of_a_node_hides_other_groups(broker, name):
    old = OldTree()
    old.broker()
    old.topic("t1", 1)
    old.offset("good", "t1", 0, 7)
    old.put(f"/consumers/bad/offsets/t1/{name}", "1")
    old.put(f"/brokers/ids/{name}", "{}", ephemeral=True)
    good, _ = broker.groups(old).describe(["good", "bad"]).groups
    assert [row.committed_offset for row in good.offsets] == [7]
