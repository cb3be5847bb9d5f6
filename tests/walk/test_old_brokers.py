"""Brokers that list no states (before 2.6) or no types (before 3.8): found out, or said not to be known."""

import pytest

from kgroup.protocol.messages.describe_groups import DescribeGroupsRequest
from tests.walk.world import IDLE, OTHER, READER, healthy

LIST_GROUPS, CONSUMER_GROUP_DESCRIBE, DESCRIBE_CLUSTER = 16, 69, 60


@pytest.fixture(params=[4, 5], ids=["2.4", "2.8"])
def old(request):
    """A world whose brokers serve ListGroups below this version, and know classic groups alone."""
    world = healthy()
    world.groups.consumer.clear()
    world.fake.served = {
        LIST_GROUPS: range(request.param),
        CONSUMER_GROUP_DESCRIBE: None,
        DESCRIBE_CLUSTER: None,
    }
    world.fake.served[DescribeGroupsRequest.API] = range(5)
    return world


@pytest.mark.parametrize(
    ("argv", "names"),
    [
        (("--state", "Empty"), {IDLE}),
        (("--state", "stable"), {READER}),
        (("--type", "classic"), {IDLE, READER}),
        (("--type", "consumer"), set()),
        (("--state", "Empty", "--no-members"), {IDLE}),
    ],
    ids=lambda value: " ".join(sorted(value) if isinstance(value, set) else value),
)
def test_filters_look_at_what_describe_knows(ask, old, argv, names):
    told = ask(old, "list", *argv)
    assert (told.code, set(told.groups)) == (0, names)


def test_what_was_not_listed_is_filled_in(ask, old):
    told = ask(old, "list").groups
    assert {(g["type"], g["state"]) for g in told.values()} == {("classic", "Stable"), ("classic", "Empty")}


def test_what_cannot_be_found_out_is_null_and_said(ask, old):
    old.fake.allowed_groups = set()
    told = ask(old, "list", "--type", "classic")
    assert told.code != 0
    assert set(told.groups) == set()
    assert "GROUP_AUTHORIZATION_FAILED" in told.err
    assert {g["type"] for g in ask(old, "list", "--no-members").groups.values()} == {None}


def test_a_group_of_another_type_is_not_taken_for_classic(ask):
    told = ask(healthy(), "list", "--type", "consumer")
    assert set(told.groups) == {OTHER}
