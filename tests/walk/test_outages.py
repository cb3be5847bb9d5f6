"""`wait` and `watch` live through outages; at the end they tell time that was up from never having seen."""

import json

import pytest

from kgroup.admin.read.conditions import Condition, wait_for
from kgroup.cli.env.session import LEAST_S
from kgroup.cli.frame.lazy import walk
from kgroup.errors import BrokerRefused, ErrorCode
from kgroup.protocol.messages.delete_groups import DeleteGroupsRequest
from kgroup.protocol.messages.describe_groups import DescribeGroupsRequest
from kgroup.protocol.messages.list_groups import ListGroupsRequest
from tests.walk.test_two_rules import COMMANDS, NOT_WALKED
from tests.walk.world import IDLE, OTHER, READER, SCENES, healthy

PARTIAL, RIGHTS, LATE = 5, 6, 7
BRIEF = ("-X", "request.timeout.ms=10000")
"""A poll ends earlier than the outage."""


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
    told = ask(world, "wait", name, "--for", "empty", "--stop-after", "60s", *BRIEF)
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
    argv = ("watch", IDLE, "--events", "--until", "empty", "--stop-after", "60s", "-o", "table")
    told = ask(world, *argv, *BRIEF)
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


SILENT = float("inf")
DEADLINE_S = 4.0
RUNS_ON = {"wait", "watch"}
MORE = (
    ("blame", READER),
    ("capture", "--once", "--out", "captured"),
    ("cluster", "acl", "add", "--principal", "User:a", "--operation", "Read", "--group", "g", "--execute"),
    ("cluster", "acl", "list"),
    ("cluster", "acl", "remove", "--principal", "User:a", "--execute"),
    ("cluster", "create-topic", "made"),
    ("cluster", "user", "add", "a", "--execute"),
    ("cluster", "user", "list"),
    ("cluster", "user", "remove", "a", "--execute"),
    ("config", "get", READER),
    ("config", "set", READER, "consumer.session.timeout.ms=60000", "--execute"),
    ("delete", IDLE, "--execute", "--yes"),
    ("downgrade", "execute", OTHER, "--no-watch", "--yes"),
    ("lag", "g-*", "--time"),
    ("member", "register", READER, "--instance-id", "i-1", "--execute"),
    ("member", "unregister", READER, "--instance-id", "i-1", "--execute"),
    ("offsets", "import", IDLE, "--from-file", "rows.csv", "--execute", "--yes"),
    ("offsets-topic", "stats"),
    ("offsets-topic", "top"),
    ("regex", "check", "or.*"),
    ("remove-members", READER, "--all", "--execute", "--yes", "--wait", "stable"),
    ("replay-log", READER),
    ("reset-offsets", IDLE, "--all-topics", "--to-earliest", "--execute", "--yes"),
    ("upgrade", "execute", IDLE, "--no-watch", "--yes"),
    ("upgrade", "rehearse", IDLE),
    ("upgrade", "run", "waves.yaml"),
)
"""Commands that COMMANDS of test_two_rules.py does not walk, or not to their end."""
ENDLESS = (
    ("capture", "--out", "captured"),
    ("record", "recorded"),
    ("downgrade", "execute", OTHER),
    ("downgrade", "watch", OTHER),
    ("member", "run", READER, "--topic", "orders"),
    ("replay-log", READER, "--follow"),
    ("upgrade", "execute", READER),
    ("upgrade", "run", "waves.yaml", "--execute", "--yes"),
    ("upgrade", "watch", READER),
    ("wait", READER, "--for", "empty", "--stop-after", "60s"),
    ("watch", READER),
)
"""Commands that --timeout does not end."""
ENDS_BY_ITSELF = {"demo", "serve", "simulate", "offsets-topic decode", "mcp"}
"""Commands that ask no cluster which was there before, or by other commands."""
ROWS = [row.argv for row in COMMANDS] + [*MORE]


UNHARMED = (("upgrade", "plan", READER, "--static"),)
"""Their last question is about a feature that their answer does not need."""


class Refusing(dict):
    """Handlers of a broker that refuses all else."""

    def __missing__(self, request):
        def refuse(node, asked):
            raise BrokerRefused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, f"{request.__name__} is refused")

        return refuse


@pytest.fixture
def files(tmp_path, monkeypatch):
    """The files that the command lines name."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("pay,0,7\n")
    (tmp_path / "waves.yaml").write_text(f"waves:\n- name: first\n  groups: [{IDLE}]\n")


def within(argv):
    """The arguments that end a command by the deadline, and the seconds it may take."""
    if argv[0] in RUNS_ON:
        return (), 2.0 + LEAST_S
    more = 10.0 if "--rate" in argv else 0.0
    return ("--timeout", f"{DEADLINE_S:g}s"), DEADLINE_S + more


def test_every_command_has_a_deadline_or_is_offline():
    every = {command.path for command in walk()}
    shown = {path for path in every for argv in (*ROWS, *ENDLESS) if " ".join(argv).startswith(path)}
    offline = NOT_WALKED["offline"] | ENDS_BY_ITSELF
    pipeline = {path for path in every if path.startswith("pipeline ")}
    assert shown | offline | pipeline == every
    assert not shown & (offline | pipeline)


@pytest.mark.parametrize("argv", ROWS, ids=" ".join)
@pytest.mark.parametrize("part", [1.0, 0.1, 0.3, 0.6, None])
def test_a_command_ends_by_its_deadline(ask, files, argv, part):
    """Three questions in turn took three times as long. `part` of the deadline is what each answer takes,
    None is silence; with 1.0 one of the brokers is silent.
    """
    world = healthy()
    world.fake.handlers = Refusing(world.fake.handlers)
    options, limit_s = within(argv)
    if part == 1.0:
        world.fake.slow = {1: SILENT}
    else:
        delay = SILENT if part is None else part * limit_s
        world.fake.slow = {1: delay, 2: delay}
    told = ask(world, *argv, *options, "-o", "table")
    assert world.fake.time.now <= limit_s + 0.01
    assert "does not know how to handle" not in told.err
    if world.fake.cut and argv not in UNHARMED and argv[0] not in RUNS_ON:
        assert told.code != 0 and "error: " in told.err, "what was not answered is said"


@pytest.mark.parametrize("argv", ENDLESS, ids=" ".join)
def test_a_limit_that_would_limit_nothing_is_refused(ask, files, argv):
    """`upgrade watch --timeout 3s` ran for 6 minutes 49."""
    told = ask(healthy(), *argv, "--timeout", "3s", "-o", "table")
    assert told.code == 2
    assert "--timeout does not end kgroup" in told.err and "--stop-after" in told.err


@pytest.mark.parametrize("silent", [1, 2])
def test_a_silent_broker_leaves_time_for_the_others(ask, silent):
    world = healthy()
    world.fake.slow = {silent: SILENT}
    told = ask(world, "list", "--timeout", "4s")
    assert told.code == PARTIAL
    assert set(told.groups) == {name for name in (READER, OTHER, IDLE) if world.home(name) != silent}
    assert f"broker {silent} did not answer" in told.err


@pytest.mark.parametrize("direction", ["upgrade", "downgrade"])
def test_a_migration_is_watched_no_longer_than_asked(ask, direction):
    world = healthy()
    told = ask(world, direction, "watch", READER if direction == "upgrade" else OTHER, "--stop-after", "3s")
    assert (told.code, [error["code"] for error in told.errors]) == (LATE, ["TIMED_OUT"])
    assert world.fake.time.now == pytest.approx(3, abs=0.1)


def test_a_partition_without_a_leader_is_a_part_that_was_not_seen(ask):
    """doctor ended with 7, which its help keeps for clusters that do not answer."""
    world = healthy()
    world.fake.leaders["orders"] = {0: -1}
    told = ask(world, "doctor", READER)
    assert (told.code, {error["code"] for error in told.errors}) == (PARTIAL, {"LEADER_NOT_AVAILABLE"})
