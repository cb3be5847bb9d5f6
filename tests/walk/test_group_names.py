"""Patterns and the groups they mean: what is not all seen is said, what could mean two things is refused."""

import pytest

from tests.unit.admin.groups import classic_group
from tests.walk.world import IDLE, READER, SCENES, healthy

REFUSED, PARTIAL, NOT_FOUND = 4, 5, 3


@pytest.fixture
def star():
    """A world with a group called *."""
    world = healthy()
    world.groups.add(classic_group("*", state="Empty"))
    world.groups.committed["*"] = {"pay:0": 1}
    return world


def test_reading_a_pattern_means_all_that_match_and_the_group_of_that_name(ask, star):
    assert len(ask(star, "lag", "*").groups) == 4
    assert set(ask(star, "lag", "[*]").groups) == {"*"}


@pytest.mark.parametrize(
    "argv",
    [
        ("delete", "*", "--execute", "--yes"),
        ("offsets", "delete", "*", "--all-topics", "--execute", "--yes"),
        ("reset-offsets", "*", "--all-topics", "--to-earliest", "--execute", "--yes"),
    ],
    ids=lambda argv: argv[0],
)
def test_a_change_does_not_choose_between_the_group_called_star_and_all(ask, star, argv):
    told = ask(star, *argv)
    assert told.code == REFUSED
    assert "'[*]'" in told.err and "'**'" in told.err
    assert not [m for _, m, _ in star.fake.sent if type(m).__name__ == "DeleteGroupsRequest"]


def test_both_can_be_named(ask, star):
    assert [i["group_id"] for i in ask(star, "delete", "[*]").document["data"]["items"]] == ["*"]
    assert len(ask(star, "delete", "**").document["data"]["items"]) == 4


def test_a_pattern_that_only_its_own_group_matches_leaves_nothing_open(ask):
    world = healthy()
    world.groups.add(classic_group("tmp?", state="Empty"))
    assert [i["group_id"] for i in ask(world, "delete", "tmp?").document["data"]["items"]] == ["tmp?"]


@pytest.mark.parametrize("command", ["describe", "list", "lag"])
def test_a_group_whose_id_is_the_pattern_is_meant_by_every_command(ask, command):
    world = healthy()
    for name in ("tmp[1]", "tmp1"):
        world.groups.add(classic_group(name, state="Empty"))
        world.groups.committed[name] = {"pay:0": 1}
    assert set(ask(world, command, "tmp[1]").groups) == {"tmp[1]", "tmp1"}


def test_describe_takes_patterns(ask):
    assert set(ask(healthy(), "describe", "g-[ir]*").groups) == {IDLE, READER}
    assert ask(healthy(), "describe", "h-*").code == NOT_FOUND


def test_no_match_among_those_seen_is_not_no_match(ask):
    told = ask(SCENES["a_broker_down"](), "describe", "g-i*")
    assert told.code == PARTIAL
    assert "not all can be seen: broker" in told.err
