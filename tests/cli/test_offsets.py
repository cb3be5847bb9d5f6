"""`kgroup offsets`, `delete` and `journal`: nothing is lost on the way out and back in."""

import io
import itertools
import json
import sys
import time

import pytest

from kgroup.admin.journal import Journal
from kgroup.cli.exit_codes import ExitCode
from tests.cli.committed import commit_fully, committed, offsets
from tests.cli.logs import append
from tests.ran import document

_numbers = itertools.count()


@pytest.fixture
def group(cluster):
    """An empty group with offsets, metadata and a leader epoch in the topic of its name."""
    name = f"offsets-{next(_numbers)}"
    cluster.create_topic(name, 3)
    append(cluster, name, 0, ["x"] * 10)
    commit_fully(cluster, name, name, {0: (4, 0, "mine, 'quoted'"), 1: (77, -1, "ä\n")})
    return name


def results(data):
    return [(item["group_id"], item["result"]) for item in data["items"]]


class TestExportAndImport:
    @pytest.mark.parametrize("format_", ["json", "ndjson"])
    def test_round_trip_to_the_bit(self, on_cluster, cluster, group, tmp_path, format_):
        before = committed(cluster, group)
        file = tmp_path / "export"
        file.write_text(on_cluster("offsets", "export", group, "-o", format_).out)
        commit_fully(cluster, group, group, {0: (1, -1, ""), 1: (2, -1, "")})
        plan = document(on_cluster("offsets", "import", str(file), "-o", "json"), "offsets import")
        assert results(plan) == [(group, "planned")] * 2
        assert committed(cluster, group) != before
        assert on_cluster("offsets", "import", str(file), "--execute").code == ExitCode.OK
        assert committed(cluster, group) == before
        again = document(
            on_cluster("offsets", "import", str(file), "--execute", "-o", "json"), "offsets import"
        )
        assert results(again) == [(group, "unchanged")] * 2
        assert not again["executed"]

    @pytest.mark.parametrize(("epoch", "cluster_id"), [(9, None), (0, "of-another-cluster")])
    def test_a_leader_epoch_of_another_log_is_left_out(
        self, on_cluster, cluster, group, tmp_path, epoch, cluster_id
    ):
        """With one that no leader has reached, Java clients read nothing."""
        export = json.loads(on_cluster("offsets", "export", group, "-o", "json").out)
        rows = export["data"]["groups"][0]["offsets"]
        rows[0] |= {"leader_epoch": epoch, "committed_offset": 5}
        export["cluster"]["id"] = cluster_id or export["cluster"]["id"]
        file = tmp_path / "export.json"
        file.write_text(json.dumps(export))
        plan = document(on_cluster("offsets", "import", str(file), "-o", "json"), "offsets import")
        assert plan["items"][0]["effect"] == f"without leader epoch {epoch}, of another log"
        assert on_cluster("offsets", "import", str(file), "--execute").code == ExitCode.OK
        assert committed(cluster, group)[group, 0] == (5, -1, "mine, 'quoted'")

    def test_csv_is_kafkas(self, on_cluster, cluster, group):
        document(on_cluster("offsets", "export", group, "-o", "json"), "offsets export")
        ran = on_cluster("offsets", "export", group, "--topic", f"{group}:0", "-o", "csv", "--no-headers")
        assert ran.out == f"{group},0,4\n"
        cluster.commit(f"{group}-b", group, {2: 0})
        ran = on_cluster("offsets", "export", f"{group}*", "-o", "csv", "--no-headers")
        assert ran.out.splitlines()[-1] == f"{group}-b,{group},2,0"

    def test_csv_into_a_group_named_here(self, on_cluster, cluster, group, monkeypatch):
        monkeypatch.setattr(sys, "stdin", io.StringIO(f"topic,partition,offset\n{group},0,9\n"))
        argv = ("offsets", "import", "-", "--to", f"{group}-n", "--create", "--execute")
        assert on_cluster(*argv).code == ExitCode.OK
        assert offsets(cluster, f"{group}-n") == {(group, 0): 9}

    def test_a_file_that_names_no_group_says_how_to_name_it(self, on_cluster, tmp_path):
        file = tmp_path / "plan.csv"
        file.write_text("orders,0,1\n")
        ran = on_cluster("offsets", "import", str(file))
        assert (ran.code, "--to GROUP names it" in ran.err) == (ExitCode.USAGE, True), ran.err

    def test_what_does_not_exist_is_named_before_anything_is_done(self, on_cluster, cluster, group, tmp_path):
        file = tmp_path / "plan.csv"
        file.write_text(f"{group},2,0\n{group},7,5\nno-such-topic,0,5\n")
        argv = ("offsets", "import", str(file), "--to", f"{group}-x", "--create")
        data = document(on_cluster(*argv, "-o", "json"), "offsets import", ExitCode.PARTIAL)
        told = {(i["topic"], i["partition"]): (i["result"], i["error_code"]) for i in data["items"]}
        assert told == {
            (group, 2): ("planned", None),
            (group, 7): ("failed", "UNKNOWN_TOPIC_OR_PARTITION"),
            ("no-such-topic", 0): ("failed", "UNKNOWN_TOPIC_OR_PARTITION"),
        }
        assert "the topic has only 3 partitions" in on_cluster(*argv).err
        assert offsets(cluster, f"{group}-x") == {}
        assert on_cluster(*argv, "--execute").code == ExitCode.PARTIAL
        assert offsets(cluster, f"{group}-x") == {(group, 2): 0}

    @pytest.mark.parametrize("number", ["1.9", '"1"', "true", "1e400", str(2**63)])
    @pytest.mark.parametrize("field", ["partition", "committed_offset"])
    def test_numbers_that_are_none(self, on_cluster, tmp_path, field, number):
        row = {"topic": '"t"', "partition": "0", "committed_offset": "1"} | {field: number}
        text = ", ".join(f'"{name}": {value}' for name, value in row.items())
        file = tmp_path / "f"
        file.write_text(f'{{"groups": [{{"group_id": "g", "offsets": [{{{text}}}]}}]}}')
        told = on_cluster("offsets", "import", str(file))
        assert (told.code, "is not a committed offset" in told.err) == (ExitCode.USAGE, True)

    @pytest.mark.parametrize("text", ["", "a,b\n", "t,x,1\n", "{}", '{"data": {"groups": [{}]}}', "t,0,1\n"])
    def test_files_that_are_no_export(self, on_cluster, tmp_path, text):
        file = tmp_path / "f"
        file.write_text(text)
        assert on_cluster("offsets", "import", str(file)).code == ExitCode.USAGE

    def test_unknown_groups(self, on_cluster, group):
        assert on_cluster("offsets", "export", "never-was").code == ExitCode.NOT_FOUND
        assert on_cluster("offsets", "export", group, "never-was").code == ExitCode.PARTIAL


class TestDelete:
    def test_forgets_one_topic_and_undo_brings_it_back(self, on_cluster, cluster, group):
        before = committed(cluster, group)
        argv = ("offsets", "delete", group, "--topic", f"{group}:1")
        data = document(on_cluster(*argv, "-o", "json"), "offsets delete")
        assert [(i["partition"], i["new_offset"], i["result"]) for i in data["items"]] == [
            (1, None, "planned")
        ]
        assert on_cluster(*argv, "--execute").code == ExitCode.OK
        assert offsets(cluster, group) == {(group, 0): 4}
        assert on_cluster("reset-offsets", "--undo", "LAST", "--execute").code == ExitCode.OK
        assert committed(cluster, group) == before

    def test_subscribed_topics_are_refused_one_by_one(self, on_cluster, cluster, group):
        cluster.create_topic(f"{group}-old", 1)
        cluster.commit(group, f"{group}-old", {0: 0})
        cluster.classic_group(group, group, {"i-0": [0, 1, 2]})
        ran = on_cluster("offsets", "delete", group, "--all-topics", "--execute", "-o", "json")
        data = document(ran, "offsets delete", ExitCode.PARTIAL)
        told = {i["topic"]: (i["result"], i["error_code"]) for i in data["items"]}
        assert told == {
            group: ("refused", "GROUP_SUBSCRIBED_TO_TOPIC"),
            f"{group}-old": ("done", None),
        }

    def test_wrong_usage(self, on_cluster, group):
        assert on_cluster("offsets", "delete", group).code == ExitCode.USAGE


class TestClone:
    def test_a_second_group_at_the_same_place(self, on_cluster, cluster, group):
        ran = on_cluster("offsets", "clone", group, f"{group}-v2", "--execute", "-o", "json")
        document(ran, "offsets clone")
        assert committed(cluster, f"{group}-v2") == committed(cluster, group)
        assert on_cluster("reset-offsets", "--undo", "LAST", "--execute").code == ExitCode.OK
        assert committed(cluster, f"{group}-v2") == {}

    def test_the_source_may_be_active_the_target_not(self, on_cluster, cluster, group):
        cluster.classic_group(f"{group}-a", group, {"i-0": [0, 1, 2]})
        assert on_cluster("offsets", "clone", f"{group}-a", group).code == ExitCode.OK
        assert on_cluster("offsets", "clone", group, f"{group}-a").code == ExitCode.REFUSED

    def test_from_nowhere_and_to_itself(self, on_cluster, group):
        assert on_cluster("offsets", "clone", "never-was", group).code == ExitCode.NOT_FOUND
        assert on_cluster("offsets", "clone", group, group).code == ExitCode.USAGE


class TestDeleteGroups:
    def test_plan_export_delete_and_both_ways_back(self, on_cluster, cluster, group, tmp_path):
        before = committed(cluster, group)
        file = str(tmp_path / "kept.json")
        plan = document(on_cluster("delete", group, "-o", "json"), "delete")
        assert (results(plan), plan["executed"]) == ([(group, "planned")], False)
        assert committed(cluster, group) == before
        ran = on_cluster("delete", group, "--export", file, "--execute", "--yes", "-o", "json")
        data = document(ran, "delete")
        assert (results(data), data["export"]) == ([(group, "deleted")], file)
        assert committed(cluster, group) == {}
        assert document(on_cluster("delete", "--restore", file, "-o", "json"), "delete")["items"]
        assert on_cluster("delete", "--restore", file, "--execute").code == ExitCode.OK
        assert committed(cluster, group) == before
        assert on_cluster("delete", group, "--execute", "--yes", "-q").code == ExitCode.OK
        assert on_cluster("reset-offsets", "--undo", "LAST", "--execute").code == ExitCode.OK
        assert committed(cluster, group) == before

    def test_an_export_that_is_there_is_not_overwritten(self, on_cluster, cluster, group, tmp_path):
        """It may be all that is left of another deletion."""
        (tmp_path / "kept.json").write_text("the only copy")
        before = committed(cluster, group)
        ran = on_cluster("delete", group, "--export", str(tmp_path / "kept.json"), "--execute", "--yes")
        assert ran.code == ExitCode.USAGE
        assert "kept.json exists, and a deletion overwrites no export" in ran.err
        assert (tmp_path / "kept.json").read_text() == "the only copy"
        assert committed(cluster, group) == before

    def test_a_state_folder_that_cannot_be_made_refuses_the_deletion(
        self, on_cluster, cluster, group, tmp_path, monkeypatch
    ):
        (tmp_path / "taken").write_text("a file")
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "taken"))
        before = committed(cluster, group)
        ran = on_cluster("delete", group, "--execute", "--yes")
        assert (ran.code, ran.out) == (ExitCode.USAGE, "")
        assert f"cannot make {tmp_path / 'taken'}" in ran.err and "--export" in ran.err
        assert committed(cluster, group) == before

    def test_item_by_item(self, on_cluster, cluster, group):
        cluster.classic_group(f"{group}-busy", group, {"i-0": [0]})
        ran = on_cluster("delete", group, f"{group}-busy", "never-was", "--execute", "--yes", "-o", "json")
        data = document(ran, "delete", ExitCode.PARTIAL)
        assert results(data) == [
            (group, "deleted"),
            (f"{group}-busy", "failed"),
            ("never-was", "not_found"),
        ]
        assert {e["code"] for e in ran.document["errors"]} == {"NON_EMPTY_GROUP", "GROUP_ID_NOT_FOUND"}
        assert on_cluster("delete", f"{group}-busy", "--execute", "--yes").code == ExitCode.REFUSED
        assert on_cluster("delete", "never-was", "--execute", "--yes").code == ExitCode.NOT_FOUND

    def test_by_glob_and_age(self, on_cluster, cluster, group):
        cluster.commit(f"{group}-b", group, {0: 1})
        names = on_cluster("delete", f"{group}*", "-o", "name").out.split()
        assert names == [group, f"{group}-b"]
        assert on_cluster("delete", f"{group}*", "--stale-for", "7d", "-o", "name").out == ""
        time.sleep(0.002)
        data = document(on_cluster("delete", f"{group}*", "--stale-for", "1ms", "-o", "json"), "delete")
        assert [item["stale_ms"] >= 1 for item in data["items"]] == [True, True]

    def test_wrong_usage(self, on_cluster):
        assert on_cluster("delete").code == ExitCode.USAGE
        assert on_cluster("delete", "g", "--restore", "f", "--stale-for", "7d").code == ExitCode.USAGE


class TestJournal:
    def test_list_and_show(self, on_cluster, kgroup, group):
        ran = on_cluster(
            "reset-offsets", group, "--topic", group, "--to-latest", "--execute", "--reason", "INC-7"
        )
        assert ran.code == ExitCode.OK
        assert on_cluster("reset-offsets", "--undo", "LAST", "--execute").code == ExitCode.OK
        entries = document(kgroup("journal", "list", "-o", "json"), "journal list")["entries"]
        assert [(e["id"], e["command"], e["undone_by"]) for e in entries] == [
            ("j-0002", "undo", None),
            ("j-0001", "reset-offsets", "j-0002"),
        ]
        assert (entries[1]["groups"], entries[1]["reason"]) == ([group], "INC-7")
        assert entries[1]["results"] == {"done": 3}
        entry = document(kgroup("journal", "show", "j-0001", "-o", "json"), "journal show")["entry"]
        assert entry["before"]["offsets"][group][0] == [group, 0, 4, 0, "mine, 'quoted'"]
        assert "3 done" in kgroup("journal", "list").out
        assert kgroup("journal", "list", "other-*", "-o", "name").out == ""

    def test_entries_of_other_commands(self, on_cluster, kgroup, cluster, group):
        cluster.classic_group(f"{group}-m", group, {"i-0": [0]})
        on_cluster("remove-members", f"{group}-m", "--all", "--execute", "--yes")
        on_cluster("delete", group, "--execute", "--yes")
        entries = document(kgroup("journal", "list", "-o", "json"), "journal list")["entries"]
        assert [(e["command"], e["groups"]) for e in entries] == [
            ("delete", [group]),
            ("remove-members", [f"{group}-m"]),
        ]
        assert kgroup("journal", "show", "LAST").code == ExitCode.OK

    def test_an_entry_cut_off_says_so(self, on_cluster, kgroup, group):
        on_cluster("reset-offsets", group, "--topic", group, "--to-latest", "--execute")
        path = Journal.default().path
        path.write_text(path.read_text().splitlines()[0] + "\n")
        assert "cut off: not known" in kgroup("journal", "list").out
        assert (
            json.loads(kgroup("journal", "show", "LAST", "-o", "json").out)["data"]["entry"]["results"]
            is None
        )

    def test_unknown_entry(self, kgroup):
        assert kgroup("journal", "show", "j-0001").code == ExitCode.NOT_FOUND
