"""5,000 groups take a few requests: a listing tells coordinators and types, the rest is a round or two."""

from collections import Counter

import pytest

from kgroup.admin.read.offsets import MAX_TIMESTAMP
from kgroup.protocol.messages.describe_quorum import DescribeQuorumRequest
from kgroup.protocol.messages.list_offsets import ListOffsetsRequest
from tests.unit.admin.groups import classic_group, classic_member
from tests.walk.world import healthy

MANY = 5_000
A_BROKER = {
    "ListGroupsRequest": 2,
    "ConsumerGroupDescribeRequest": 1,
    "DescribeGroupsRequest": 4,  # first for a group of each partition that the broker is to have loaded
    "OffsetFetchRequest": 2,
}


@pytest.fixture(scope="module")
def crowded():
    """The healthy world with 5,000 classic groups more, each with a reader that has committed."""
    world = healthy()
    for number in range(MANY):
        name = f"many-{number:04}"
        world.groups.add(classic_group(name, classic_member(f"m-{number}", "orders:0")))
        world.groups.committed[name] = {"orders:0": 100}
    return world


def requests(world):
    """How often each request was sent, and to how many brokers."""
    sent = Counter(type(message).__name__ for _, message, _ in world.fake.sent)
    world.fake.sent.clear()
    return sent


def test_lag_of_all(ask, crowded):
    told = ask(crowded, "lag", "*", "-o", "name")
    assert (told.code, len(told.out.split())) == (0, MANY + 3)
    sent = requests(crowded)
    assert (
        sent.pop("MetadataRequest") == 3
    )  # the offsets topic, twice; the topics read, and whether all are seen
    assert sent.pop("DescribeClusterRequest") == 1
    assert sent.pop("DescribeQuorumRequest") == 1  # the time, as nobody has committed of late
    assert sent == {
        "ListGroupsRequest": 2,
        "ConsumerGroupDescribeRequest": 1,  # to the one broker that listed a group as a consumer group
        # What is loaded, and two rounds, of two brokers each; ends, last stable offsets, and where logs begin
        # that are subscribed and never committed.
        "DescribeGroupsRequest": 6,
        "OffsetFetchRequest": 4,
        "FetchRequest": 2,
        "ListOffsetsRequest": 14,
    }


def test_list_with_members(ask, crowded):
    told = ask(crowded, "list", "-o", "name")
    assert len(told.out.split()) == MANY + 3
    sent = requests(crowded)
    assert sent == {
        "ListGroupsRequest": 2,
        "ConsumerGroupDescribeRequest": 1,
        "DescribeGroupsRequest": 4,
        "MetadataRequest": 2,
        "DescribeClusterRequest": 1,
    }


def test_list_without_members(ask, crowded):
    ask(crowded, "list", "--no-members", "-o", "name")
    assert requests(crowded) == {
        "ListGroupsRequest": 2,
        "DescribeGroupsRequest": 2,
        "MetadataRequest": 2,
        "DescribeClusterRequest": 1,
    }


def test_list_of_a_topic_describes_once(ask, crowded):
    """The filter described all groups, and counting members described them once more."""
    ask(crowded, "list", "--topic", "orders", "-o", "name")
    sent = requests(crowded)
    assert {name: sent[name] for name in A_BROKER} == A_BROKER


def test_the_time_is_asked_for_once_however_many_groups_wait(ask):
    """doctor asked for the newest commit of the cluster for each group with unread records."""
    few, many = (_asked_for_the_time(ask, count) for count in (2, 20))
    assert few == many and few["DescribeQuorumRequest"] > 0


def _asked_for_the_time(ask, count):
    world = healthy()
    names = [f"waits-{number}" for number in range(count)]
    for number, name in enumerate(names):
        world.groups.add(classic_group(name, classic_member(f"m-{number}", "orders:0")))
        world.groups.committed[name] = {"orders:0": 10}
    ask(world, "doctor", *names)
    return Counter(
        type(message).__name__
        for _, message, _ in world.fake.sent
        if isinstance(message, DescribeQuorumRequest)
        or (isinstance(message, ListOffsetsRequest) and _asks_for_the_newest(message))
    )


def _asks_for_the_newest(request):
    return any(p.timestamp == MAX_TIMESTAMP for topic in request.topics for p in topic.partitions)
