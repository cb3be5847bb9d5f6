"""`wait` and `watch` live through outages; at the end they tell time that was up from never having seen."""

import json

import pytest

from kgroup.admin.read.conditions import Condition, wait_for
from kgroup.errors import ErrorCode
from kgroup.protocol.messages.delete_groups import DeleteGroupsRequest
from kgroup.protocol.messages.describe_groups import DescribeGroupsRequest
from kgroup.protocol.messages.list_groups import ListGroupsRequest
from tests.walk.world import IDLE, OTHER, READER, SCENES, healthy

PARTIAL, RIGHTS, LATE = 5, 6, 7


def restarting(world, group, until_s):
    """The group's broker is down until then, by the world's clock."""
    home = world.home(group)
    world.fake.down.add(home)
    sleep = world.fake.time.sleep

    def pass_time(seconds):
        sleep(seconds)
        if world.fake.time.now >= until_s:
            world.fake.down.discard(home)

    world.fake.time.sleep = pass_time
    return world


@pytest.mark.parametrize("name", [IDLE, "g-i*"])
def test_wait_lives_through_a_restart(ask, name):
    world = restarting(healthy(), IDLE, 20)
    told = ask(world, "wait", name, "--for", "empty", "--stop-after", "60s")
    assert told.code == 0
    assert told.groups[IDLE]["held"] is True
    assert "not all can be seen now: broker" in told.err
    assert 20 <= told.groups[IDLE]["waited_s"] < 31


def test_wait_that_never_saw_the_group_is_not_time_up(ask):
    world = healthy()
    world.fake.down.add(world.home(IDLE))
    told = ask(world, "wait", IDLE, "--for", "empty", "--stop-after", "30s")
    assert told.code == PARTIAL
    assert (told.groups[IDLE]["state"], told.groups[IDLE]["members"]) == (None, None)
    assert "NOT_SEEN" in {error["code"] for error in told.document["errors"]}
    assert world.fake.time.now == pytest.approx(30, abs=2)


def test_wait_that_saw_the_group_says_that_time_is_up(ask):
    told = ask(healthy(), "wait", READER, "--for", "empty", "--stop-after", "30s")
    assert told.code == LATE
    assert told.groups[READER]["state"] == "Stable"


@pytest.mark.parametrize(
    "argv",
    [
        ("wait", READER, "--for", "empty", "--stop-after", "30s"),
        ("watch", READER, "--until", "empty", "--stop-after", "30s"),
        ("delete", READER, "--execute", "--yes", "--wait-empty"),
        ("reset-offsets", READER, "--all-topics", "--to-latest", "--execute", "--wait-empty"),
    ],
)
def test_time_that_is_up_is_the_same_whatever_was_waited_for(ask, argv):
    """--wait-empty ended with 4, which is a refusal; the others with 7."""
    world = healthy()
    told = ask(world, *argv)
    assert (told.code, [error["code"] for error in told.document["errors"]]) == (LATE, ["TIMED_OUT"])
    assert world.fake.time.now == pytest.approx(30, abs=1)
    assert not world.fake.requests(DeleteGroupsRequest)


def test_an_outage_at_the_end_does_not_hide_what_was_seen(ask):
    world = healthy()
    sleep, home = world.fake.time.sleep, world.home(READER)

    def pass_time(seconds):
        sleep(seconds)
        world.fake.down.add(home)

    world.fake.time.sleep = pass_time
    told = ask(world, "wait", READER, "--for", "empty", "--stop-after", "10s")
    assert told.code == LATE
    assert "was last seen Stable" in told.err and "cannot be seen now" in told.err


def test_missing_rights_do_not_pass_and_end_the_wait_at_once(ask):
    world = healthy()
    world.fake.allowed_groups = {OTHER}
    told = ask(world, "wait", READER, "--for", "empty", "--stop-after", "30s")
    assert (told.code, world.fake.time.now) == (RIGHTS, 0)


def test_members_that_are_not_told_are_not_zero_members(ask):
    world = SCENES["members_not_told"]()
    told = ask(world, "wait", "g-streams", "--for", "members=0", "--stop-after", "1s")
    assert told.code == LATE
    assert told.groups["g-streams"]["members"] is None


def test_watch_says_what_it_lost_and_what_it_sees_again(ask):
    world = restarting(healthy(), IDLE, 20)
    told = ask(world, "watch", IDLE, "--events", "--until", "empty", "--stop-after", "60s", "-o", "table")
    events = [json.loads(line) for line in told.out.splitlines()]
    assert [event["event"] for event in events] == ["not_seen", "seen_again"]
    assert "down" in events[0]["detail"]["reason"]
    assert told.code == 0


@pytest.mark.parametrize("until", [(), ("--until", "empty")])
def test_watch_that_never_saw_the_group_says_so_at_the_end(ask, until):
    world = healthy()
    world.fake.down.add(world.home(IDLE))
    told = ask(world, "watch", IDLE, *until, "--stop-after", "30s")
    assert told.code == PARTIAL
    assert told.document["data"]["groups"] == [{"group_id": IDLE, "state": "not seen"}]


def test_a_coordinator_that_loads_is_waited_for():
    world = healthy()
    answer, codes = (
        world.fake.handlers[DescribeGroupsRequest],
        iter([ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 40),
    )

    def load(node, request):
        told = answer(node, request)
        code = next(codes, ErrorCode.NONE)
        return type(told)(
            groups=tuple(type(g)(group_id=g.group_id, error_code=code) if code else g for g in told.groups)
        )

    world.fake.on(DescribeGroupsRequest, load)
    (waited,), unseen = wait_for(world.fake.cluster(2), [IDLE], Condition("empty"), 120)
    assert waited.held and not unseen


@pytest.mark.parametrize("argv", [("wait", "g-*", "--for", "gone"), ("watch", "g-*", "--until", "gone")])
def test_rights_that_are_missing_are_not_looked_for_at_each_look(ask, argv):
    """Every look listed the groups of every broker once more, as if rights came by waiting."""
    world = SCENES["no_right_to_list"]()
    told = ask(world, *argv, "--stop-after", "10s")
    assert told.code == LATE
    assert len(world.fake.requests(ListGroupsRequest)) == 2, "once of each broker"
    assert len(world.fake.requests(DescribeGroupsRequest)) > 10
