"""Scenarios: what they cost each kind of group, where the files for them are wrong, and the command."""

import json
from pathlib import Path

import jsonschema
import pytest

from kgroup.cli.frame.tree import run as kgroup
from kgroup.cli.schemas import schema_for
from kgroup.errors import ConfigError
from kgroup.simulation.play.picture import page
from kgroup.simulation.play.planning import EXPECTS_NOTHING, Expecting, Size, compare, expectation, play
from kgroup.simulation.play.scenario import NAMED, Scenario, ScenarioStep, find, milliseconds, read
from kgroup.zookeeper.entry.simulate import PushStage

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = Size(members=6, partitions=12)
PUSH = (PushStage, False)
EVERY_KIND = [("classic", False), ("classic", True), ("consumer", False), ("consumer", True)]


def test_rolling_bounce_of_static_members_costs_no_rebalance():
    """SM-52: bounced one by one, each back in time: 0 rebalances, nothing moves; a dynamic one needs one."""
    size = Size(members=50, partitions=100)
    dynamic, static = (play(NAMED["rolling-bounce"], size, "classic", static=s) for s in (False, True))
    assert (static.rebalances, static.partitions_moved, static.duplicates) == (0, 0, 0)
    assert dynamic.rebalances >= 50
    assert dynamic.partitions_moved > 0


@pytest.mark.parametrize("static", [False, True])
def test_static_members_of_either_protocol_move_nothing(static):
    result = play(NAMED["rolling-bounce"], SMALL, "consumer", static=static)
    assert (result.rebalances == 0) == static
    assert (result.partitions_moved == 0) == static


def test_a_bounce_longer_than_the_session_moves_even_static_members():
    size = Size(members=4, partitions=8, session_timeout_ms=6_000)
    scenario = find(str(EXAMPLES / "simulate-friday.yaml"))
    assert play(scenario, size, "classic", static=True).rebalances > 0


def test_static_members_leave_their_partitions_unread_while_they_are_away():
    result = play(NAMED["rolling-bounce"], SMALL, "classic", static=True)
    each_away_ms = 5_000 * SMALL.partitions
    assert each_away_ms <= result.unowned_partition_ms < 1.1 * each_away_ms


def test_killed_members_repeat_work_but_those_that_stop_do_not():
    assert play(NAMED["az-loss"], SMALL, "classic", static=False).duplicates > 0
    assert play(NAMED["scale-in"], SMALL, "classic", static=False).duplicates == 0


def test_scaling_and_upgrading_end_with_everything_read():
    for name in ("scale-out", "scale-in", "deploy-canary", "failover", "upgrade"):
        for protocol, static in [*EVERY_KIND, PUSH]:
            assert play(NAMED[name], SMALL, protocol, static=static).history[-1][1] == SMALL.partitions


def test_upgrade_of_static_members_moves_nothing():
    """SM-73: the members restart with the consumer protocol, one by one."""
    result = play(NAMED["upgrade"], SMALL, "classic", static=True)
    assert result.partitions_moved == 0


def test_the_same_seed_gives_the_same_result():
    kinds = [*EVERY_KIND, PUSH]
    first, second = (compare(NAMED["az-loss"], SMALL, kinds, seed=3) for _ in range(2))
    assert first == second


def test_a_failover_costs_a_pushing_coordinator_a_rebalance_and_the_others_none():
    """LC-08, LC-76, LC-87: a log is read again; registries are made again, by members that register anew."""
    results = {kind: play(NAMED["failover"], SMALL, kind[0], static=kind[1]) for kind in [*EVERY_KIND, PUSH]}
    assert {kind: result.rebalances for kind, result in results.items()} == {
        **dict.fromkeys(EVERY_KIND, 0),
        PUSH: 1,
    }
    pushed = results[PUSH]
    assert pushed.partitions_moved == 0
    # Nobody delivers from the end of the old coordinator's leases to the new one's Starts.
    assert pushed.unowned_partition_ms > 0
    assert all(results[kind].unowned_partition_ms == 0 for kind in EVERY_KIND)


def test_leaving_a_pushing_coordinator_loses_nothing_but_dying_does():
    """LC-78, LC-61: positions go with the leave; those since the newest answered ping die with a zone."""
    names = ("rolling-bounce", "az-loss")
    rolled, lost = (play(NAMED[name], SMALL, PushStage, static=False) for name in names)
    assert (rolled.duplicates, rolled.rebalances >= SMALL.members) == (0, True)
    assert lost.duplicates > 0


def test_a_member_answers_a_ping_three_times_a_session():
    """LC-52: a request and an answer each third of a session, and nothing else, while nothing happens."""
    quiet = Scenario("quiet", (ScenarioStep("wait", wait_ms=600_000),))
    result = play(quiet, Size(members=4, partitions=8, session_timeout_ms=30_000), PushStage, static=False)
    assert (result.rebalances, result.unowned_partition_ms) == (0, 0)
    assert result.messages_per_member_minute == pytest.approx(12, abs=0.5)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("simulate*.yaml")), ids=lambda path: path.name)
def test_examples_play(path):
    scenario = read(path)
    assert scenario.summary
    assert play(scenario, SMALL, "consumer", static=False).simulated_ms > 0


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("steps: 3", "no list of steps"),
        ("steps: [{explode: {}}]", "the step 'explode' is unknown"),
        ("steps: [{restart: {speed: 3}}]", "no 'speed'"),
        ("steps: [{restart: {share: lots}}]", "not a share"),
        ("steps: [{restart: {batch: 0}}]", "0 is not a number from 1 to 100000"),
        ("steps: [{wait: soon}]", "not a duration"),
        ("steps: []\nmembres: 3", "the key 'membres' is unknown"),
        ("steps: [", "not valid YAML"),
    ],
)
def test_wrong_files_are_refused(tmp_path, text, told):
    (tmp_path / "s.yaml").write_text(text)
    with pytest.raises(ConfigError, match=told):
        read(tmp_path / "s.yaml")


def test_unknown_scenarios_are_refused_with_the_names_there_are():
    with pytest.raises(ConfigError) as caught:
        find("black-hole")
    assert "rolling-bounce" in (caught.value.hint or "")
    assert milliseconds("1.5m") == 90_000


def test_page_shows_every_kind():
    text = page("<plan>", "what happens", compare(NAMED["scale-out"], SMALL, EVERY_KIND))
    assert text.count("<svg") == 4
    assert "&lt;plan&gt;" in text


def run(capsys, *arguments):
    code = kgroup(["simulate", *arguments])
    return code, capsys.readouterr().out


def test_command_prints_a_result_for_each_kind(capsys, tmp_path):
    from jsonschema import validate

    from kgroup.cli.schemas import schema_for

    page_file = tmp_path / "plan.html"
    arguments = ("--members", "4", "--partitions", "8", "--html", str(page_file), "-o", "json")
    code, out = run(capsys, *arguments)
    document = json.loads(out)
    validate(document, schema_for("simulate"))
    assert code == 0
    kinds = [(r["protocol"], r["static"]) for r in document["data"]["results"]]
    assert kinds == [*EVERY_KIND, ("push", False)]
    assert page_file.read_text().startswith("<!doctype html>")


def test_command_replays_a_seed_byte_for_byte(capsys):
    first, second = (run(capsys, "--seed", "4") for _ in range(2))
    assert first == second
    assert first[0] == 0
    assert "every invariant held" in first[1]


class TestExpecting:
    """SM-80 to SM-85: groups that are told of their members before they come, beside groups that are not."""

    @pytest.mark.parametrize("protocol", ["classic", "consumer"])
    def test_ten_more_members_cost_one_assignment_if_their_ids_are_registered(self, protocol):
        told, untold = Expecting(registered=True), EXPECTS_NOTHING
        size = Size()
        one, many = (self.played("scale-out-10", size, protocol, True, e) for e in (told, untold))
        assert (one.assignments, many.assignments) == (1, 10)
        assert one.partitions_moved < many.partitions_moved
        assert one.unowned_partition_ms < many.unowned_partition_ms

    @pytest.mark.parametrize("static", [False, True])
    @pytest.mark.parametrize("protocol", ["classic", "consumer"])
    def test_standbys_take_a_lost_zone_over_and_nobody_else_is_disturbed(self, protocol, static):
        size = Size(members=6, partitions=24)
        told, untold = Expecting(target_size=6), EXPECTS_NOTHING
        swapped, spread = (self.played("zone-loss", size, protocol, static, e) for e in (told, untold))
        lost_with_the_zone = 2 * 4
        assert (swapped.partitions_moved, swapped.stop_the_world_ms) == (lost_with_the_zone, 0)
        assert spread.partitions_moved > lost_with_the_zone
        if protocol == "classic":
            assert (swapped.rebalances, spread.rebalances) == (0, 2)

    @pytest.mark.parametrize("static", [False, True])
    @pytest.mark.parametrize("protocol", ["classic", "consumer"])
    def test_a_group_that_waits_for_all_of_its_members_moves_nothing_and_reads_late(self, protocol, static):
        size = Size(members=20, partitions=40)
        expecting = expectation(NAMED["rolling-start"], size, protocol, static=static)
        assert expecting == (Expecting(registered=True) if static else Expecting(target_size=20))
        waiting, eager = (
            self.played("rolling-start", size, protocol, static, each)
            for each in (expecting, EXPECTS_NOTHING)
        )
        assert (waiting.assignments, waiting.partitions_moved) == (1, 0)
        assert eager.assignments > 1
        assert eager.partitions_moved > 0
        assert waiting.unowned_partition_ms > eager.unowned_partition_ms

    def test_ids_that_are_taken_off_the_list_leave_in_one_rebalance(self):
        step = ScenarioStep("stop", share=0.5)
        result = play(Scenario("fewer", (step,)), SMALL, "classic", static=True, expecting=Expecting(True))
        assert result.rebalances == 1

    def test_each_kind_is_played_twice_where_there_is_something_to_tell(self):
        results = compare(NAMED["scale-out-10"], SMALL, [*EVERY_KIND, PUSH], expecting=True)
        told = [(r.protocol, r.static, r.registered, r.target_size) for r in results]
        assert told == [
            ("classic", False, False, None),
            ("classic", True, False, None),
            ("classic", True, True, None),
            ("consumer", False, False, None),
            ("consumer", True, False, None),
            ("consumer", True, True, None),
            ("push", False, False, None),
        ]

    def test_the_same_seed_gives_the_same_result(self):
        first, second = (
            compare(NAMED["zone-loss"], SMALL, EVERY_KIND, seed=5, expecting=True) for _ in range(2)
        )
        assert first == second

    def test_on_the_command_line(self, capsys):
        argv = ["simulate", "--scenario", "zone-loss", "--members", "6", "--protocol", "classic", "--static"]
        assert kgroup([*argv, "--expecting", "-o", "json"]) == 0
        data = json.loads(capsys.readouterr().out)
        jsonschema.validate(data, schema_for("simulate"))
        assert [row["target_size"] for row in data["data"]["results"]] == [None, 6]
        assert kgroup([*argv, "--expecting"]) == 0
        assert "size 6" in capsys.readouterr().out
        assert kgroup(argv) == 0
        assert "EXPECTS" not in capsys.readouterr().out

    def test_in_a_file(self, tmp_path):
        path = tmp_path / "own.yaml"
        steps = "steps: [{roll-out: {count: 2, batch: 2, pause: 1s}}, {kill: {share: 0.5, spread: true}}]"
        path.write_text(f"standbys: 50%\n{steps}\n")
        scenario = read(path)
        assert (scenario.standbys, scenario.from_nothing) == (0.5, False)
        assert scenario.steps[0] == ScenarioStep("roll-out", count=2, batch=2, pause_ms=1_000)
        assert scenario.steps[1].spread
        path.write_text("from_nothing: maybe\nsteps: []\n")
        with pytest.raises(ConfigError, match="neither true nor false"):
            read(path)

    @staticmethod
    def played(name, size, protocol, static, expecting):
        return play(NAMED[name], size, protocol, static=static, expecting=expecting)
