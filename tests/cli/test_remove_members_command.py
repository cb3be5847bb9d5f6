"""`kgroup remove-members`: nothing without --execute, a result for each member, stale plans refused."""

import io
import itertools
import json
import sys
import threading
import time

import jsonschema
import pytest

from kgroup.admin.journal import Journal
from kgroup.admin.read.describe import describe
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.schemas import schema_for
from tests.ran import at_a_terminal

_numbers = itertools.count()


@pytest.fixture
def group(cluster):
    """A stable group of its own: static members m-0 and m-1."""
    name = f"remove-{next(_numbers)}"
    cluster.classic_group(name, "orders", {"m-0": [0, 1, 2], "m-1": [3, 4, 5]})
    return name


def document(ran, code=ExitCode.OK):
    assert ran.code == code, ran.err
    jsonschema.validate(ran.document, schema_for("remove-members"))
    assert ran.document["exit_code"] == code
    return ran.document


def instances(cluster, group):
    (described,) = describe(cluster.admin, [group], offsets=False).groups
    return {member.instance_id for member in described.members}


def results(found):
    return {item["instance_id"]: item["result"] for item in found["data"]["items"]}


class TestPlan:
    def test_without_execute_nothing_changes(self, on_cluster, cluster, group):
        found = document(on_cluster("remove-members", group, "--instance-id", "m-0", "-o", "json"))
        assert not found["data"]["executed"]
        assert results(found) == {"m-0": "planned"}
        assert instances(cluster, group) == {"m-0", "m-1"}
        assert Journal.default().entries() == ()

    def test_text_says_who_what_and_how_to_go_on(self, on_cluster, group):
        out = on_cluster("remove-members", group, "--instance-id", "m-0").out
        assert out.partition("\n")[2].startswith(f"PLAN  {group} (classic, Stable, 2 members)   plan ")
        assert "orders:0-2" in out
        assert out.endswith("after: 1 of 2 members.   Nothing changed. Add --execute.\n")

    @pytest.mark.parametrize(
        ("argv", "planned"),
        [
            (["--instance-id", "m-0,m-1"], {"m-0", "m-1"}),
            (["--instance", "m-0", "--instance", "m-1"], {"m-0", "m-1"}),
            (["--all"], {"m-0", "m-1"}),
            (["--host", "127.0.*"], {"m-0", "m-1"}),
            (["--host", "10.*"], set()),
            (["--left-only"], set()),
        ],
    )
    def test_selection(self, on_cluster, group, argv, planned):
        assert set(on_cluster("remove-members", group, *argv, "-o", "name").out.split()) == planned

    def test_member_ids(self, on_cluster, cluster, group):
        (described,) = describe(cluster.admin, [group], offsets=False).groups
        wanted = described.members[1]
        ran = on_cluster("remove-members", group, "--member-id", wanted.member_id, "-o", "name")
        assert ran.out.split() == [wanted.instance_id]

    def test_ids_from_stdin(self, on_cluster, group, monkeypatch):
        monkeypatch.setattr(sys, "stdin", io.StringIO("m-0\n\nm-1\n"))
        ran = on_cluster("remove-members", group, "--from-file", "-", "-o", "name")
        assert ran.out.split() == ["m-0", "m-1"]

    @pytest.mark.parametrize(
        "argv",
        [
            [],
            ["g"],
            ["g", "--group-id", "h", "--all"],
            ["g", "--all", "--wait", "empty"],
            ["g", "--from-file", "no/such/file"],
            ["--plan", "no/such/file"],
            ["--plan", "p", "--all"],
        ],
    )
    def test_wrong_usage(self, on_cluster, argv):
        assert on_cluster("remove-members", *argv).code == ExitCode.USAGE


class TestExecute:
    def test_spelling_of_the_kip(self, on_cluster, cluster, group):
        """SM-66: --group-id, a comma list of --group-instance-ids; the old script's options are ignored."""
        before = describe(cluster.admin, [group], offsets=False).groups[0]
        assert before.state == "Stable"
        ran = on_cluster(
            *("remove-members", "--group-id", group, "--group-instance-ids", "m-0,m-1"),
            *("--zookeeper", "localhost:2181", "--broker", "1", "--execute", "--yes", "-o", "json"),
        )
        assert results(document(ran)) == {"m-0": "removed", "m-1": "removed"}
        assert "--zookeeper and --broker are ignored" in ran.err
        assert cluster.state(group) == "Empty"

    def test_removal_starts_the_rebalance_at_once(self, on_cluster, cluster, group):
        """SM-65: no waiting for the session of the removed member."""
        document(
            on_cluster("remove-members", group, "--instance-id", "m-0", "--execute", "--yes", "-o", "json")
        )
        assert cluster.state(group) == "PreparingRebalance"
        assert instances(cluster, group) == {"m-1"}

    def test_every_member_has_a_result_and_a_journal_entry(self, on_cluster, group):
        ran = on_cluster(
            *("remove-members", group, "--instance-id", "m-0,gone"),
            *("--execute", "--yes", "--reason", "drain", "-o", "json"),
        )
        found = document(ran, ExitCode.PARTIAL)
        assert found["status"] == "partial"
        assert results(found) == {"m-0": "removed", "gone": "not_found"}
        assert [e["item"] for e in found["errors"]] == ["gone"]
        (entry,) = Journal.default().entries()
        assert entry.id == found["data"]["journal_id"]
        assert entry.plan["reason"] == "drain"

    def test_blame_names_what_was_removed_from_here(self, on_cluster, group):
        """In the records a removal looks like a member that left by itself."""

        def journalled(about):
            ran = on_cluster("blame", group, "-o", "json")
            jsonschema.validate(ran.document, schema_for("blame"))
            (blamed,) = [b for b in ran.group(group)["blames"] if b["about"] == about]
            return [(entry["command"], entry["reason"]) for entry in blamed["journal"]]

        on_cluster("remove-members", group, "--all", "--execute", "--yes", "--reason", "drain INC-7")
        assert journalled("rebalance") == [("remove-members", "drain INC-7")]
        assert on_cluster("delete", group, "--execute", "--yes", "--reason", "retired").code == ExitCode.OK
        assert journalled("deletion") == [("delete", "retired")]
        entry = Journal.default().entries()[0]
        line = f" by {entry.plan['actor']} with kgroup remove-members: drain INC-7"
        out = on_cluster("blame", group).out
        assert f"done from this machine: journal {entry.id}, " in out and line in out

    def test_blame_names_offsets_deleted_from_here(self, on_cluster, cluster):
        cluster.commit("forgotten", "orders", {0: 5, 1: 6})
        words = ("offsets", "delete", "forgotten", "--topic", "orders:1", "--reason", "INC-8", "--execute")
        assert on_cluster(*words).code == ExitCode.OK
        ran = on_cluster("blame", "forgotten", "-o", "json")
        (blamed,) = [b for b in ran.group("forgotten")["blames"] if b["about"] == "deletion"]
        assert [(e["command"], e["reason"]) for e in blamed["journal"]] == [("offsets delete", "INC-8")]

    def test_blame_says_that_a_rebalance_has_no_record_yet(self, on_cluster, cluster, group):
        """The last rebalance on record was told as the one that is stuck."""
        assert "now: " not in on_cluster("blame", group).out
        on_cluster("remove-members", group, "--instance-id", "m-0", "--execute", "--yes")
        ran = on_cluster("blame", group, "-o", "json")
        jsonschema.validate(ran.document, schema_for("blame"))
        assert ran.group(group)["state"] == "PreparingRebalance"
        out = on_cluster("blame", group).out
        assert "now: PreparingRebalance; a rebalance has no record before it completes" in out
        assert f"kgroup doctor {group} names the members it waits for" in out

    def test_nobody_found_is_3_and_changes_nothing(self, on_cluster, cluster, group):
        ran = on_cluster("remove-members", group, "--instance-id", "gone", "--execute", "--yes", "-o", "json")
        found = document(ran, ExitCode.NOT_FOUND)
        assert not found["data"]["executed"]
        assert instances(cluster, group) == {"m-0", "m-1"}

    def test_unknown_group_is_3(self, on_cluster):
        """SM-63, OC-03: a group that does not exist is told apart from a member that is not in it."""
        ran = on_cluster("remove-members", "no-such-group", "--all", "--execute", "--yes", "-o", "json")
        assert document(ran, ExitCode.NOT_FOUND)["errors"][0]["code"] == "GROUP_ID_NOT_FOUND"

    def test_wait_tells_how_the_group_ended(self, on_cluster, group):
        argv = ("--all", "--execute", "--yes", "--wait", "stable", "--timeout", "3s")
        ran = on_cluster("remove-members", group, *argv)
        assert ran.code == 0
        assert f"{group} is Empty after " in ran.out
        assert "no member has rejoined" in ran.out

    def test_wait_waits_also_where_nothing_is_left_to_remove(self, on_cluster, group):
        """A script that runs a second time relies on the group being stable, too."""
        argv = ("remove-members", group, "--instance-id", "m-9", "--wait", "stable")
        ran = on_cluster(*argv, "--execute")
        assert (ran.code, f"{group} is Stable after " in ran.out) == (ExitCode.NOT_FOUND, True)
        assert " is Stable after " not in on_cluster(*argv).out

    def test_members_that_come_back_are_waited_for(self, on_cluster, cluster, group):
        """Empty right after the removal is not what one waits for."""

        def come_back() -> None:
            while instances(cluster, group):
                time.sleep(0.01)
            cluster.classic_group(group, "orders", {"m-0": [0]})

        member = threading.Thread(target=come_back)
        member.start()
        ran = on_cluster("remove-members", group, "--all", "--execute", "--yes", "--wait", "stable")
        member.join()
        assert ran.code == 0
        assert f"{group} is Stable after " in ran.out

    def test_wait_gives_up_with_7(self, on_cluster, group):
        ran = on_cluster(
            *("remove-members", group, "--instance-id", "m-0", "--execute", "--yes"),
            *("--wait", "stable", "--timeout", "3s", "-o", "json"),
        )
        found = document(ran, ExitCode.UNREACHABLE)
        assert results(found) == {"m-0": "removed"}
        assert found["errors"][0]["code"] == "TIMED_OUT"


class TestPlanFile:
    def test_made_now_executed_later(self, on_cluster, cluster, group, tmp_path):
        file = str(tmp_path / "plan.json")
        planned = document(
            on_cluster("remove-members", group, "--instance-id", "m-1", "--plan-out", file, "-o", "json")
        )
        done = document(on_cluster("remove-members", "--plan", file, "--execute", "--yes", "-o", "json"))
        assert done["data"]["plan"] == planned["data"]["plan"]
        assert instances(cluster, group) == {"m-0"}

    def test_stale_plan_is_refused_with_4(self, on_cluster, cluster, group, tmp_path):
        file = str(tmp_path / "plan.json")
        on_cluster("remove-members", group, "--instance-id", "m-1", "--plan-out", file)
        on_cluster("remove-members", group, "--instance-id", "m-0", "--execute", "--yes")
        ran = on_cluster("remove-members", "--plan", file, "--execute", "--yes", "-o", "json")
        found = document(ran, ExitCode.REFUSED)
        assert "is stale" in found["errors"][0]["message"]
        assert instances(cluster, group) == {"m-1"}

    @pytest.mark.parametrize("text", ["{", "[]", "{}", json.dumps({"items": [], "nope": 1})])
    def test_what_is_no_plan(self, on_cluster, tmp_path, text):
        file = tmp_path / "plan.json"
        file.write_text(text)
        assert on_cluster("remove-members", "--plan", str(file), "--execute", "--yes").code == ExitCode.USAGE


class TestQuestion:
    """A terminal is asked once; a pipe never."""

    def test_no_changes_nothing(self, on_cluster, cluster, group, monkeypatch):
        at_a_terminal(monkeypatch, "\n")
        ran = on_cluster("remove-members", group, "--all", "--execute")
        assert ran.code == ExitCode.REFUSED
        assert f"remove 2 members of {group}? [y/N]" in ran.err
        assert all(f"\n{name} " in ran.err for name in ("m-0", "m-1"))
        assert (ran.out, "Add --execute" in ran.err) == ("", False)
        assert instances(cluster, group) == {"m-0", "m-1"}

    def test_yes_goes_on(self, on_cluster, cluster, group, monkeypatch):
        at_a_terminal(monkeypatch, "y\n")
        assert on_cluster("remove-members", group, "--all", "--execute").code == 0
        assert instances(cluster, group) == set()

    def test_a_question_that_cannot_be_seen(self, on_cluster, cluster, group, monkeypatch):
        """As with `2> log`: nothing is taken for a yes."""
        at_a_terminal(monkeypatch, "y\n")
        monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
        ran = on_cluster("remove-members", group, "--all", "--execute")
        assert (ran.code, "add --yes" in ran.err) == (ExitCode.REFUSED, True)
        assert instances(cluster, group) == {"m-0", "m-1"}

    @pytest.mark.parametrize("typed", ["", "y\n", "n\n"])
    def test_without_a_terminal_what_has_no_undo_demands_yes(
        self, on_cluster, cluster, group, monkeypatch, typed
    ):
        """No answer is read from a pipe: neither is a no overheard, nor is a yes taken from somewhere."""
        monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
        cluster.commit(f"{group}-e", "orders", {0: 1})
        for argv in (("remove-members", group, "--all"), ("delete", f"{group}-e")):
            ran = on_cluster(*argv, "--execute")
            assert (ran.code, "hint: --yes confirms it" in ran.err) == (ExitCode.REFUSED, True)
            assert "stdin is not a terminal" in ran.err
        assert instances(cluster, group) == {"m-0", "m-1"}
        assert cluster.state(f"{group}-e") == "Empty"
        assert on_cluster("remove-members", group, "--all", "--execute", "--yes").code == 0
        assert instances(cluster, group) == set()

    def test_without_a_terminal_execute_is_the_consent_to_what_has_an_undo(self, on_cluster, cluster, group):
        cluster.commit(f"{group}-e", "orders", {0: 1})
        argv = ("offsets", "delete", f"{group}-e", "--all-topics", "--execute")
        assert on_cluster(*argv).code == ExitCode.OK

    def test_yes_option_skips_it(self, on_cluster, group, monkeypatch):
        at_a_terminal(monkeypatch, "")
        ran = on_cluster("remove-members", group, "--all", "--execute", "--yes")
        assert (ran.code, "[y/N]" in ran.err) == (0, False)


@pytest.mark.parametrize("way", ["option", "file"])
def test_an_instance_id_with_a_comma(on_cluster, cluster, tmp_path, way):
    """librdkafka lets one be configured; `a,b` stays two ids (KIP-345's spelling)."""
    group = f"comma-{way}"
    cluster.classic_group(group, "orders", {"rack,1": [0, 1, 2], "rack": [3, 4, 5]})
    ids = tmp_path / "ids"
    ids.write_text("rack,1\n")
    told = ("--instance-id", "rack\\,1") if way == "option" else ("--from-file", str(ids))
    ran = on_cluster("remove-members", group, *told, "-o", "json")
    assert [(i["instance_id"], i["result"]) for i in ran.document["data"]["items"]] == [("rack,1", "planned")]
    both = on_cluster("remove-members", group, "--instance-id", "rack,1", "-o", "json").document["data"][
        "items"
    ]
    assert {(i["instance_id"], i["result"]) for i in both} == {("rack", "planned"), ("1", "not_found")}
