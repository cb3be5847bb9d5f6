"""`kgroup member run`: a synthetic member joins, tells, and leaves."""

import json

import pytest

from kgroup.admin.read.describe import describe
from kgroup.cli.exit_codes import ExitCode


def joined(on_cluster, *argv):
    """A run that came to its assignment: a busy machine needs more than the second that others do."""
    for seconds in (1, 10, 100):
        ran = on_cluster(
            "member", "run", *argv, "--topic", "orders", "--stop-after", f"{seconds}s", "-o", "ndjson"
        )
        assert ran.code == 0, ran.err
        if '"assigned"' in ran.out:
            return ran
    raise AssertionError(ran.out)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_joins_tells_and_leaves(on_cluster, cluster, protocol):
    name = f"member-{protocol}"
    ran = joined(on_cluster, name, "--protocol", protocol, "--leave")
    events = [json.loads(line) for line in ran.out.splitlines()]
    assert events[0]["event"] == "assigned"
    assert [p["partition"] for p in events[0]["partitions"]] == [0, 1, 2, 3, 4, 5]
    assert events[-1]["event"] == "left"
    assert cluster.state(name) == "Empty"


def test_a_static_member_keeps_its_place(on_cluster, cluster):
    """SM-47: going away without leaving for good."""
    joined(on_cluster, "kept", "--instance-id", "k-0")
    (group,) = describe(cluster.admin, ["kept"], offsets=False).groups
    assert [m.instance_id for m in group.members] == ["k-0"]


@pytest.mark.parametrize("argv", [["--protocol", "old"], ["--assignor", "best"], ["--for", "soon"]])
def test_wrong_usage(on_cluster, argv):
    assert on_cluster("member", "run", "g", "--topic", "orders", *argv).code == ExitCode.USAGE


def test_needs_a_cluster_that_runs_on_its_own(kgroup):
    assert kgroup("member", "run", "g", "--topic", "orders").code == ExitCode.USAGE
