"""`kgroup config get|set GROUP`: the dynamic settings of a group, on the broker."""

import itertools

import pytest

from kgroup.admin.journal import Journal
from kgroup.cli.exit_codes import ExitCode
from tests.ran import document

_numbers = itertools.count()
SESSION = "consumer.session.timeout.ms"


@pytest.fixture
def group():
    return f"settings-{next(_numbers)}"


def session(on_cluster, group):
    data = document(on_cluster("config", "get", group, SESSION, "-o", "json"), "config get")
    (setting,) = data["settings"]
    return setting["value"], setting["origin"]


def test_set_get_and_unset(on_cluster, group):
    default = session(on_cluster, group)
    assert default[1] != "group"
    plan = document(on_cluster("config", "set", group, f"{SESSION}=60000", "-o", "json"), "config set")
    assert (plan["executed"], plan["settings"][0]["after"]) == (False, "60000")
    assert session(on_cluster, group) == default
    argv = (f"{SESSION}=60000", "--execute", "--reason", "slow start")
    done = document(on_cluster("config", "set", group, *argv, "-o", "json"), "config set")
    assert session(on_cluster, group) == ("60000", "group")
    entry = Journal.default().find(done["journal_id"])
    assert (entry.plan["reason"], entry.before["settings"][0]["value"]) == ("slow start", default[0])
    assert on_cluster("config", "set", group, "--unset", SESSION, "--execute").code == ExitCode.OK
    assert session(on_cluster, group) == default


def test_the_same_change_again_is_unchanged(on_cluster, group):
    beat = "consumer.heartbeat.interval.ms"
    argv = ("config", "set", group, f"{SESSION}=60000", "--execute")
    assert on_cluster(*argv).code == ExitCode.OK
    again = document(on_cluster(*argv, "-o", "json"), "config set")
    assert (again["executed"], again["journal_id"]) == (False, None)
    assert [row["result"] for row in again["settings"]] == ["unchanged"]
    told = on_cluster(*argv)
    assert (told.code, told.out.splitlines()[-1]) == (ExitCode.OK, "Nothing to do.")
    assert len(Journal.default().entries()) == 1
    both = document(on_cluster(*argv, f"{beat}=6000", "-o", "json"), "config set")
    assert [(row["setting"], row["result"]) for row in both["settings"]] == [
        (SESSION, "unchanged"),
        (beat, "done"),
    ]
    assert list(Journal.default().find("LAST").plan["settings"]) == [beat]
    unset = ("config", "set", f"{group}-b", "--unset", SESSION, "--execute", "-o", "json")
    assert document(on_cluster(*unset), "config set")["journal_id"] is None


def test_the_other_order_of_words(on_cluster, group):
    assert on_cluster("config", group, "get").out == on_cluster("config", "get", group).out
    assert on_cluster("config", group, "set", f"{SESSION}=50000", "--execute").code == ExitCode.OK
    assert session(on_cluster, group) == ("50000", "group")


@pytest.mark.parametrize("change", [f"{SESSION}=1", f"{SESSION}=often", "no.such.setting=1"])
def test_what_the_broker_would_not_take_is_said_before_anything_changes(on_cluster, group, change):
    for extra in ((), ("--execute",)):
        ran = on_cluster("config", "set", group, change, *extra)
        assert ran.code == ExitCode.FAILED
        assert "INVALID_CONFIG" in ran.err
    assert Journal.default().entries() == ()


@pytest.mark.parametrize(
    "argv", [["set", "g"], ["set", "g", "x"], ["set", "g", "=1"], ["get", "g", "no.such"]]
)
def test_wrong_usage(on_cluster, argv):
    assert on_cluster("config", *argv).code == ExitCode.USAGE
