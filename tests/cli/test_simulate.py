"""`kgroup simulate --like GROUP`: the plan of a group as large, and with the timeouts, of a live one."""

import jsonschema
import pytest

from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.schemas import schema_for

KIND = ("--protocol", "classic", "--static", "--scenario", "az-loss", "-o", "json")


def planned(ran):
    assert ran.code == ExitCode.OK, ran.err
    jsonschema.validate(ran.document, schema_for("simulate"))
    (result,) = ran.document["data"]["results"]
    return result


@pytest.fixture
def alone(kgroup):
    """A plan of a size given by hand: nothing is asked of a cluster."""

    def call(members, partitions, session):
        size = ("--members", str(members), "--partitions", str(partitions), "--session-timeout", session)
        return planned(kgroup("simulate", *KIND, *size))

    return call


def test_like_a_classic_group(cluster, on_cluster, alone):
    """Its members brought a session timeout of half an hour."""
    cluster.classic_group("like-classic", "orders", {"a": [0, 1], "b": [2, 3], "c": [4, 5]})
    told = planned(on_cluster("simulate", "--like", "like-classic", *KIND))
    assert told == alone(3, 6, "30m") != alone(3, 6, "45s")


def test_like_a_consumer_group(cluster, on_cluster, alone):
    """Its session timeout is a setting of the group."""
    setting = "consumer.session.timeout.ms=55000"
    assert on_cluster("config", "set", "like-consumer", setting, "--execute").code == ExitCode.OK
    cluster.consumer_member("like-consumer", "orders", "only")
    told = planned(on_cluster("simulate", "--like", "like-consumer", "--members", "3", *KIND))
    assert told == alone(3, 6, "55s") != alone(3, 6, "45s")


def test_the_heartbeat_interval_of_a_consumer_group_is_its_own(cluster, on_cluster):
    kind = ("--protocol", "consumer", "--dynamic", "-o", "json")
    cluster.consumer_member("like-beats", "orders", "only")
    often, seldom = (planned(_with_interval(on_cluster, ms, *kind)) for ms in (5_000, 15_000))
    assert often["unowned_partition_ms"] < seldom["unowned_partition_ms"]


def _with_interval(on_cluster, ms, *kind):
    setting = f"consumer.heartbeat.interval.ms={ms}"
    assert on_cluster("config", "set", "like-beats", setting, "--execute").code == ExitCode.OK
    return on_cluster("simulate", "--like", "like-beats", "--members", "4", *kind)


def test_options_go_before_the_live_group(cluster, on_cluster, alone):
    cluster.classic_group("like-but", "orders", {"a": [0, 1, 2, 3, 4, 5]})
    ran = on_cluster("simulate", "--like", "like-but", "--members", "3", "--session-timeout", "30s", *KIND)
    assert planned(ran) == alone(3, 6, "30s")


def test_a_group_without_members_is_nothing_to_be_like(cluster, on_cluster):
    cluster.commit("like-nobody", "orders", {0: 1})
    ran = on_cluster("simulate", "--like", "like-nobody")
    assert ran.code == ExitCode.USAGE
    assert "no members to be like" in ran.err


@pytest.mark.parametrize("given", [("--scenario", "az-loss"), ("--members", "3"), ("--dynamic",)])
def test_a_seed_plays_nothing_but_its_own_run(kgroup, given):
    """A random run heeds no scenario and no size; it played something else without a word."""
    ran = kgroup("simulate", "--seed", "7", *given)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert "--seed replays a random run" in ran.err


@pytest.mark.parametrize("size", ["--members", "--partitions"])
def test_a_size_that_would_never_end_is_a_usage_error(kgroup, size):
    ran = kgroup("simulate", size, "1000000000")
    assert ran.code == ExitCode.USAGE and "is not in the range" in ran.err


def test_a_size_of_a_file_is_bounded_too(kgroup, tmp_path):
    plan = tmp_path / "plan.yaml"
    plan.write_text("members: 1000000000\nsteps: [wait: 1s]\n")
    ran = kgroup("simulate", "--scenario", str(plan))
    assert ran.code == ExitCode.USAGE and "is not a number from 1 to" in ran.err


@pytest.mark.parametrize(
    "wrong",
    [
        ("--port", "70000"),
        ("--metrics", "99999"),
        ("--brokers", "5000000"),
        ("--partitions", "0"),
        ("--partitions", "100000000000"),
    ],
)
def test_serve_bounds_its_numbers(kgroup, wrong):
    """--partitions 100000000000 ended with MemoryError, --brokers 5000000 not at all."""
    ran = kgroup("serve", "--memory", *wrong)
    assert ran.code == ExitCode.USAGE and "is not in the range" in ran.err


def test_faults_of_a_simulation_say_that_they_are_simulated(kgroup):
    """Its brokers' disks fail on purpose: on stderr that looked like a failure of this machine."""
    ran = kgroup("simulate", "--seed", "3", "-o", "json")
    assert ran.code == ExitCode.OK
    assert ran.err.startswith("simulated: __consumer_offsets-0: nothing can be appended")
