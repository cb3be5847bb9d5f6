"""`kgroup upgrade` and `kgroup downgrade` on a cluster of ours over TCP."""

import itertools

import jsonschema
import pytest

from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.schemas import schema_for

_numbers = itertools.count()


@pytest.fixture
def classic(cluster):
    """A stable classic group of its own: static members m-0 and m-1."""
    name = f"upgrade-{next(_numbers)}"
    cluster.classic_group(name, "orders", {"m-0": [0, 1, 2], "m-1": [3, 4, 5]})
    return name


def document(ran, command, code=ExitCode.OK):
    assert ran.code == code, ran.err
    jsonschema.validate(ran.document, schema_for(command))
    assert ran.document["exit_code"] == code
    return ran.document["data"]


class TestPlan:
    def test_a_classic_group_is_ready(self, on_cluster, classic):
        data = document(on_cluster("upgrade", "plan", classic, "-o", "json"), "upgrade plan")
        assert data["verdict"] == "ready"
        assert {check["code"] for check in data["checks"]} >= {"migration_policy", "assignment_user_data"}

    def test_text_names_the_verdict_and_each_check(self, on_cluster, classic):
        out = on_cluster("upgrade", "plan", classic).out
        assert f"{classic}   classic → consumer   classic, Stable      VERDICT  READY" in out
        assert "group.consumer.migration.policy=bidirectional" in out

    def test_session_timeouts_come_out_of_the_log(self, on_cluster, classic):
        data = document(on_cluster("upgrade", "plan", classic, "--read-log", "-o", "json"), "upgrade plan")
        (check,) = [check for check in data["checks"] if check["code"] == "session_timeout"]
        assert (check["status"], check["evidence"]["clients_ms"]) == ("warn", [60_000])

    def test_a_pattern_re2_refuses_blocks(self, on_cluster, classic):
        ran = on_cluster("upgrade", "plan", classic, "--pattern", "(?!x).*", "-o", "json")
        data = document(ran, "upgrade plan", ExitCode.REFUSED)
        assert data["verdict"] == "blocked"

    def test_downgrade_of_a_consumer_group(self, on_cluster, cluster):
        name = f"upgrade-{next(_numbers)}"
        cluster.consumer_member(name, "orders", "s-0")
        data = document(on_cluster("downgrade", "plan", name, "-o", "json"), "downgrade plan")
        assert data["verdict"] == "ready"
        assert (
            document(on_cluster("upgrade", "plan", name, "-o", "json"), "upgrade plan")["verdict"]
            == "already"
        )

    def test_no_such_group(self, on_cluster):
        assert on_cluster("upgrade", "plan", "nobody-here").code == ExitCode.NOT_FOUND
