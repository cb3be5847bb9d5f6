"""`kgroup reset-offsets`: every spec, nothing without --execute, refusals, and the way back."""

import io
import itertools
import json
import sys
import threading
import time
from base64 import b64encode

import jsonschema
import pytest

from kgroup.admin.change.delete import delete_groups
from kgroup.admin.change.remove_members import execute_removal, plan_removal
from kgroup.admin.discovery import ClusterView
from kgroup.admin.journal import Journal
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.schemas import schema_for
from kgroup.history.fold.marks import MARK_LIMIT, mark_in
from tests.cli.committed import commit_fully, committed, offsets
from tests.cli.logs import append

_numbers = itertools.count()
STEP_MS = 24 * 3_600_000
"""Between two records: no run of the tests takes as long as half of it."""
NOW_MS = int(time.time() * 1000)


@pytest.fixture
def group(cluster):
    """An empty group at 4 of 10 records in partition 0, at 0 of 0 in partition 1 of the topic of its name."""
    name = f"reset-{next(_numbers)}"
    cluster.create_topic(name, 2)
    times = [NOW_MS - STEP_MS * (10 - n) for n in range(10)]
    for when in times:
        append(cluster, name, 0, ["x"], [when])
    commit_fully(cluster, name, name, {0: (4, 0, "mine"), 1: (0, -1, "")})
    return name


def document(ran, code=ExitCode.OK):
    assert ran.code == code, ran.err
    jsonschema.validate(ran.document, schema_for("reset-offsets"))
    assert ran.document["exit_code"] == code
    return ran.document["data"]


def target(data):
    return {(item["topic"], item["partition"]): item["new_offset"] for item in data["items"]}


@pytest.mark.parametrize("execute", [[], ["--execute"]], ids=["plan", "done"])
def test_state_stores_of_a_streams_application_are_not_reset(on_cluster, cluster, group, execute):
    """Streams writes its times into the metadata of commits, which proves whose they are."""
    argv = ("reset-offsets", group, "--topic", group, "--to-earliest", *execute)
    assert "Streams" not in on_cluster(*argv[:5]).out
    commit_fully(cluster, group, group, {0: (4, 0, b64encode(b"\1" + bytes(8)).decode())})
    ran = on_cluster(*argv)
    assert ran.code == 0, ran.err
    (line,) = [line for line in ran.out.splitlines() if line.startswith(f"! {group} is a Kafka Streams")]
    assert "state stores, changelog and repartition topics keep what they have" in line
    assert f"kafka-streams-application-reset.sh --application-id {group}" in line
    (planned,) = document(on_cluster(*argv[:5], "-o", "json"))["groups"]
    assert execute or planned["caution"] == line[2:]


class TestPlan:
    @pytest.mark.parametrize(
        ("spec", "first"),
        [
            (["--to-earliest"], 0),
            (["--to-latest"], 10),
            (["--to-current"], 4),
            (["--to-offset", "7"], 7),
            (["--to-offset", "70"], 10),
            (["--to-offset", "-1"], 0),
            (["--shift-by", "3"], 7),
            (["--shift-by", "-3"], 1),
            (["--shift-by", "-30"], 0),
            (["--shift-by", "30"], 10),
            (["--by-duration", "P2DT12H"], 8),
            (["--by-duration", "3600m"], 8),
            (["--by-duration", "P30D"], 0),
            (["--by-duration", "PT1M"], 10),
        ],
    )
    def test_specs(self, on_cluster, group, spec, first):
        data = document(on_cluster("reset-offsets", group, "--topic", group, *spec, "-o", "json"))
        assert target(data) == {(group, 0): first, (group, 1): 0}
        assert not data["executed"]

    def test_datetime_is_utc(self, on_cluster, group):
        moment = time.strftime("%Y-%m-%dT%H:%M:%S.000", time.gmtime((NOW_MS - STEP_MS * 3 - 5000) / 1000))
        for text in (moment, moment + "Z", moment + "+00:00"):
            data = document(
                on_cluster("reset-offsets", group, "--topic", group, "--to-datetime", text, "-o", "json")
            )
            assert target(data)[group, 0] == 7

    def test_without_execute_nothing_changes(self, on_cluster, cluster, group):
        before = committed(cluster, group)
        out = on_cluster("reset-offsets", group, "--all-topics", "--to-earliest").out
        assert out.partition("\n")[2].startswith(f"PLAN  to-earliest: {group} (classic, Empty)   plan ")
        assert out.endswith("Nothing changed. Add --execute.\n")
        assert committed(cluster, group) == before
        assert Journal.default().entries() == ()

    def test_some_partitions(self, on_cluster, group):
        data = document(
            on_cluster("reset-offsets", group, "--topic", f"{group}:0", "--to-earliest", "-o", "json")
        )
        assert target(data) == {(group, 0): 0}

    def test_csv_is_kafkas(self, on_cluster, group):
        argv = ("--all-topics", "--to-latest", "-o", "csv", "--no-headers")
        assert on_cluster("reset-offsets", group, *argv).out == f"{group},0,10\n{group},1,0\n"

    def test_several_groups_by_glob(self, on_cluster, cluster, group):
        cluster.commit(f"{group}-too", group, {0: 1})
        argv = ("--all-topics", "--to-latest", "-o", "csv", "--no-headers")
        out = on_cluster("reset-offsets", f"{group}*", *argv).out
        assert out == f"{group},{group},0,10\n{group},{group},1,0\n{group}-too,{group},0,10\n"
        out = on_cluster("reset-offsets", group, "never-was", *argv).out
        assert out == f"{group},{group},0,10\n{group},{group},1,0\n"

    def test_shift_needs_a_committed_offset(self, on_cluster, cluster, group):
        cluster.commit(f"{group}-b", group, {0: 1})
        ran = on_cluster("reset-offsets", f"{group}-b", "--topic", group, "--shift-by", "1", "-o", "json")
        data = document(ran, ExitCode.PARTIAL)
        assert [(i["result"], i["error_code"]) for i in data["items"]] == [
            ("planned", None),
            ("failed", "NO_COMMITTED_OFFSET"),
        ]

    def test_where_another_group_is(self, on_cluster, cluster, group):
        cluster.commit(f"{group}-b", group, {0: 9})
        data = document(on_cluster("reset-offsets", group, "--to-group", f"{group}-b", "-o", "json"))
        assert target(data) == {(group, 0): 9}

    def test_unknown_topic_and_group(self, on_cluster, group):
        assert on_cluster("reset-offsets", group, "--topic", "no", "--to-latest").code == ExitCode.NOT_FOUND
        assert on_cluster("reset-offsets", "no", "--all-topics", "--to-latest").code == ExitCode.NOT_FOUND

    def test_a_partition_that_does_not_exist_is_one_failed_item(self, on_cluster, group):
        ran = on_cluster("reset-offsets", group, "--topic", f"{group}:0,9", "--to-latest", "-o", "json")
        assert [i["result"] for i in document(ran, ExitCode.PARTIAL)["items"]] == ["planned", "failed"]

    @pytest.mark.parametrize(
        "argv",
        [
            ["g"],
            ["g", "--to-latest"],
            ["--to-latest", "--all-topics"],
            ["g", "--to-latest", "--to-earliest", "--all-topics"],
            ["g", "--to-latest", "--topic", "t:x"],
            ["g", "--to-latest", "--topic", "t", "--all-topics"],
            ["g", "--by-duration", "P1M", "--all-topics"],
            ["g", "--by-duration", "PT", "--all-topics"],
            ["g", "--by-duration", "7", "--all-topics"],
            ["g", "--to-latest", "--all-topics", "--dry-run", "--execute"],
            ["--undo", "LAST", "--all-topics"],
            ["g", "--from-file", "no/such/file"],
        ],
    )
    def test_wrong_usage(self, on_cluster, argv):
        assert on_cluster("reset-offsets", *argv).code == ExitCode.USAGE


class TestExecute:
    def test_moves_offsets_and_says_by_whom(self, on_cluster, cluster, group):
        ran = on_cluster(
            *("reset-offsets", group, "--all-topics", "--to-offset", "2", "--execute"),
            *("--reason", "replay after  INC-1", "-o", "json"),
        )
        data = document(ran)
        assert data["executed"]
        assert [item["result"] for item in data["items"]] == ["done", "unchanged"]
        assert offsets(cluster, group) == {(group, 0): 2, (group, 1): 0}
        mark = mark_in(committed(cluster, group)[group, 0][2])
        assert (mark.plan_id, mark.reason) == (data["plan"]["id"], "replay after INC-1")
        assert mark.actor == data["plan"]["actor"]
        entry = Journal.default().find("LAST")
        assert (entry.id, entry.command) == (data["journal_id"], "reset-offsets")
        assert [group, 0, 4, 0, "mine"] in entry.before["offsets"][group]

    def test_history_names_the_actor(self, on_cluster, group):
        argv = ("--all-topics", "--to-offset", "2", "--execute", "--reason", "INC-9", "-o", "json")
        plan = document(on_cluster("reset-offsets", group, *argv))["plan"]
        events = on_cluster("replay-log", group, "-o", "json").document["data"]["events"]
        causes = [event["cause"] for event in events if event["event"].startswith("committed")]
        assert f"kgroup, by {plan['actor']}, plan {plan['id']}: INC-9" in causes

    def test_a_long_reason_stays_short_in_the_metadata(self, on_cluster, cluster, group):
        argv = ("--all-topics", "--to-latest", "--execute", "--reason", "x" * 5000)
        assert on_cluster("reset-offsets", group, *argv).code == ExitCode.OK
        assert len(committed(cluster, group)[group, 0][2]) == MARK_LIMIT

    def test_active_group_is_refused_with_the_reason(self, on_cluster, cluster, group):
        cluster.classic_group(group, group, {"i-0": [0, 1]})
        before = committed(cluster, group)
        for extra in ((), ("--execute",)):
            ran = on_cluster("reset-offsets", group, "--all-topics", "--to-latest", *extra, "-o", "json")
            document(ran, ExitCode.REFUSED)
            assert ran.document["errors"][0]["code"] == "NON_EMPTY_GROUP"
            assert "is Stable with 1 member" in ran.err
        assert committed(cluster, group) == before
        assert Journal.default().entries() == ()

    def test_of_several_groups_only_the_active_one_is_refused(self, on_cluster, cluster, group):
        cluster.commit(f"{group}-busy", group, {0: 1})
        cluster.classic_group(f"{group}-busy", group, {"i-0": [0, 1]})
        argv = ("--all-topics", "--to-latest", "--execute", "-o", "json")
        data = document(on_cluster("reset-offsets", f"{group}*", *argv), ExitCode.PARTIAL)
        assert [(i["group_id"], i["result"]) for i in data["items"]] == [
            (group, "done"),
            (group, "unchanged"),
            (f"{group}-busy", "refused"),
        ]

    def test_wait_empty_gives_up_in_time(self, on_cluster, cluster, group):
        cluster.classic_group(group, group, {"i-0": [0, 1]})
        argv = ("--all-topics", "--to-latest", "--execute", "--wait-empty", "--timeout", "3s")
        ran = on_cluster("reset-offsets", group, *argv)
        assert ran.code == ExitCode.UNREACHABLE
        assert "still Stable" in ran.err

    def test_wait_empty_waits(self, on_cluster, cluster, group):
        members = cluster.classic_group(group, group, {"i-0": [0, 1]})
        assert members
        from kgroup.admin.change.remove_members import Selection
        from kgroup.admin.discovery import ClusterView
        from kgroup.client.transport import SocketTransport

        def leave():
            admin = ClusterView(SocketTransport(cluster.transport.settings))
            execute_removal(admin, plan_removal(admin, group, Selection(all=True)))
            admin.transport.close()

        thread = threading.Timer(0.2, leave)
        thread.start()
        ran = on_cluster("reset-offsets", group, "--all-topics", "--to-latest", "--execute", "--wait-empty")
        thread.join()
        assert ran.code == ExitCode.OK, ran.err
        assert offsets(cluster, group)[group, 0] == 10

    def test_static_members_that_are_away_can_be_removed_first(self, on_cluster, cluster, group):
        member = cluster.consumer_member(f"{group}-c", group, "s-0")
        cluster.leave_for_now(f"{group}-c", member, "s-0")
        argv = ("--topic", group, "--to-latest", "--execute")
        ran = on_cluster("reset-offsets", f"{group}-c", *argv)
        assert ran.code == ExitCode.REFUSED
        assert "--remove-static" in ran.err
        refused = on_cluster("reset-offsets", f"{group}-c", *argv, "--remove-static")
        assert (refused.code, "cannot be undone" in refused.err) == (ExitCode.REFUSED, True)
        ran = on_cluster("reset-offsets", f"{group}-c", *argv, "--remove-static", "--yes")
        assert ran.code == ExitCode.OK, ran.err
        assert "removed s-0" in ran.out
        assert offsets(cluster, f"{group}-c") == {(group, 0): 10, (group, 1): 0}

    @pytest.mark.parametrize("execute", [[], ["--execute", "--yes"]], ids=["plan", "done"])
    def test_a_group_that_does_not_exist_is_made_on_request(
        self, on_cluster, cluster, group, execute, tmp_path
    ):
        argv = ("--topic", group, "--to-latest", *execute)
        for more in ((), ("--share",), ("--topic", "orders")):
            ran = on_cluster("reset-offsets", f"{group}x", *argv, *more, "-o", "json")
            data = document(ran, ExitCode.NOT_FOUND)
            assert (data["items"], Journal.default().entries()) == ([], ())
            assert f"group {group}x does not exist" in ran.err
            assert f"hint: did you mean {group} or " in ran.err
            assert ran.err.endswith("? --create makes a group of this name\n")
        assert "Nothing to do" not in on_cluster("reset-offsets", f"{group}x", *argv).out
        file = tmp_path / "rows.csv"
        file.write_text(f"{group}x,{group},0,1\n")
        from_file = on_cluster("reset-offsets", "--from-file", str(file), *execute)
        assert from_file.code == ExitCode.NOT_FOUND
        file.write_text(f"{group},0,1\n")
        imported = on_cluster("offsets", "import", str(file), "--to", f"{group}x", *execute)
        assert imported.code == ExitCode.NOT_FOUND
        assert "--create makes a group" in imported.err
        assert offsets(cluster, f"{group}x") == {}
        both = on_cluster("reset-offsets", f"{group}x", group, *argv, "-o", "json")
        assert {item["group_id"] for item in document(both, ExitCode.PARTIAL)["items"]} == {group}
        ran = on_cluster("reset-offsets", f"{group}x", *argv, "--create")
        assert ran.code == ExitCode.OK, ran.err
        assert offsets(cluster, f"{group}x") == ({(group, 0): 10, (group, 1): 0} if execute else {})

    def test_an_import_makes_what_its_file_names_or_is_created(self, on_cluster, cluster, group, tmp_path):
        file = tmp_path / "rows.csv"
        file.write_text(f"{group}-a,{group},0,1\n")
        assert on_cluster("offsets", "import", str(file), "--execute").code == ExitCode.OK
        file.write_text(f"{group},0,1\n")
        argv = ("offsets", "import", str(file), "--to", f"{group}-b", "--create", "--execute")
        assert on_cluster(*argv).code == ExitCode.OK
        assert offsets(cluster, f"{group}-a") == offsets(cluster, f"{group}-b") == {(group, 0): 1}

    def test_a_model_that_does_not_exist_is_no_empty_one(self, on_cluster, group):
        ran = on_cluster("reset-offsets", group, "--to-group", f"{group}x")
        assert (ran.code, f"group {group}x" in ran.err) == (ExitCode.NOT_FOUND, True)

    def test_the_same_change_again_is_unchanged(self, on_cluster, cluster, group):
        """No commit, no journal entry; a client's own metadata and leader epoch are no reason to commit."""
        argv = ("reset-offsets", group, "--all-topics", "--to-offset", "4", "--execute")
        data = document(on_cluster(*argv, "-o", "json"))
        before = committed(cluster, group)
        assert (data["executed"], data["journal_id"]) == (False, None)
        assert [item["result"] for item in data["items"]] == ["unchanged", "unchanged"]
        assert before[group, 0] == (4, 0, "mine")
        assert document(
            on_cluster("reset-offsets", group, "--all-topics", "--to-latest", "--execute", "-o", "json")
        )
        before = committed(cluster, group)
        told = on_cluster("reset-offsets", group, "--all-topics", "--to-latest", "--execute")
        assert told.out.splitlines()[-1] == "2 unchanged"
        assert told.out.count("unchanged") == 3
        assert (committed(cluster, group), len(Journal.default().entries())) == (before, 1)
        data = document(
            on_cluster("reset-offsets", group, "--all-topics", "--to-current", "--execute", "-o", "json")
        )
        assert {item["result"] for item in data["items"]} == {"done"}, "it restarts the retention"

    def test_plan_and_execution_of_one_refusal_end_alike(self, on_cluster, cluster, group):
        """Also where some of the offsets of the group that is refused are as wanted."""
        cluster.classic_group(group, group, {"i-0": [0, 1]})
        argv = ("reset-offsets", group, "--all-topics", "--to-latest")
        for more in ((), ("--execute",), ("--execute", "--yes")):
            told = on_cluster(*argv, *more)
            assert told.code == ExitCode.REFUSED
            assert "Nothing to do" not in told.out

    @pytest.mark.parametrize("text", ["1969-12-31T23:59:59.999Z", "1970-01-01T00:00+02:00"])
    def test_a_time_before_1970_is_refused_in_words(self, on_cluster, group, text):
        """Negative times are names of places to brokers: -1 is the end of the log."""
        ran = on_cluster("reset-offsets", group, "--topic", group, "--to-datetime", text)
        assert (ran.code, "before 1970" in ran.err) == (ExitCode.USAGE, True)

    def test_csv_round_trip(self, on_cluster, cluster, group, tmp_path, monkeypatch):
        plan = on_cluster("reset-offsets", group, "--all-topics", "--shift-by", "-1", "-o", "csv").out
        file = tmp_path / "plan.csv"
        file.write_text(plan)
        assert on_cluster("reset-offsets", group, "--from-file", str(file), "--execute").code == ExitCode.OK
        assert offsets(cluster, group) == {(group, 0): 3, (group, 1): 0}
        monkeypatch.setattr(sys, "stdin", io.StringIO(f'"{group}","{group}",0,99\n'))
        data = document(on_cluster("reset-offsets", "--from-file", "-", "--execute", "-o", "json"))
        assert target(data) == {(group, 0): 10}

    def test_a_stored_plan_is_refused_once_somebody_has_committed(self, on_cluster, cluster, group, tmp_path):
        file = str(tmp_path / "plan.json")
        argv = ("--all-topics", "--to-latest", "--plan-out", file)
        assert on_cluster("reset-offsets", group, *argv).code == ExitCode.OK
        commit_fully(cluster, group, group, {0: (5, 0, "new")})
        ran = on_cluster("reset-offsets", "--plan", file, "--execute", "-o", "json")
        items = document(ran, ExitCode.REFUSED)["items"]
        assert [(i["result"], i["error_code"]) for i in items] == [
            ("refused", "PLAN_STALE"),
            ("unchanged", None),
        ]
        assert offsets(cluster, group)[group, 0] == 5

    def test_a_stored_plan_of_what_was_as_wanted_is_stale_too(self, on_cluster, cluster, group, tmp_path):
        file = str(tmp_path / "plan.json")
        assert (
            on_cluster("reset-offsets", group, "--all-topics", "--to-offset", "4", "--plan-out", file).code
            == 0
        )
        commit_fully(cluster, group, group, {0: (5, 0, "new")})
        ran = on_cluster("reset-offsets", "--plan", file, "--execute")
        assert (ran.code, "PLAN_STALE" in ran.err) == (ExitCode.REFUSED, True)


class TestUndo:
    def reset(self, on_cluster, group, *spec):
        ran = on_cluster("reset-offsets", group, "--topic", group, *spec, "--execute", "-o", "json")
        return document(ran)["journal_id"]

    def test_gives_back_offsets_metadata_and_leader_epochs(self, on_cluster, cluster, group):
        before = committed(cluster, group)
        self.reset(on_cluster, group, "--to-latest")
        plan = document(on_cluster("reset-offsets", "--undo", "LAST", "-o", "json"))
        assert not plan["executed"]
        assert committed(cluster, group) != before
        data = document(on_cluster("reset-offsets", "--undo", "LAST", "--execute", "-o", "json"))
        assert data["plan"]["undoes"] == "j-0001"
        assert committed(cluster, group) == before

    def test_offsets_that_were_not_there_are_taken_away(self, on_cluster, cluster, group):
        cluster.commit(f"{group}-n", group, {0: 3})
        ran = on_cluster("reset-offsets", f"{group}-n", "--topic", group, "--to-latest", "--execute")
        assert ran.code == ExitCode.OK
        assert on_cluster("reset-offsets", f"{group}-n", "--undo", "LAST", "--execute").code == ExitCode.OK
        assert committed(cluster, f"{group}-n") == {(group, 0): (3, -1, "")}

    def test_refused_when_somebody_has_committed_since(self, on_cluster, cluster, group):
        entry = self.reset(on_cluster, group, "--to-latest")
        cluster.commit(group, group, {0: 10})
        ran = on_cluster("reset-offsets", "--undo", entry, "--execute")
        assert ran.code == ExitCode.REFUSED
        assert "a commit came after j-0001" in ran.err
        assert offsets(cluster, group)[group, 0] == 10

    def test_last_is_the_newest_change_and_an_undo_is_not_undone_by_it(self, on_cluster, cluster, group):
        for n in ("1", "2"):
            self.reset(on_cluster, group, "--to-offset", n)
        assert on_cluster("reset-offsets", "--undo", "LAST", "--execute").code == ExitCode.OK
        again = on_cluster("reset-offsets", "--undo", "LAST", "--execute")
        assert (again.code, offsets(cluster, group)[group, 0]) == (ExitCode.REFUSED, 1)
        assert "the newest change, j-0003 (undo by " in again.err
        assert again.err.splitlines()[0].endswith(" is the undo of j-0002")
        assert on_cluster("reset-offsets", "--undo", "j-0001", "--execute").code == ExitCode.OK
        assert offsets(cluster, group)[group, 0] == 4
        ran = on_cluster("reset-offsets", "--undo", "j-0001")
        assert "already been undone, by j-0004" in ran.err

    def test_last_says_whose_change_it_was(self, on_cluster, group):
        actor = document(
            on_cluster("reset-offsets", group, "--topic", group, "--to-latest", "--execute", "-o", "json")
        )["plan"]["actor"]
        ran = on_cluster("reset-offsets", "--undo", "LAST", "--execute", "--yes")
        assert ran.err.startswith(f"LAST: undo j-0001 (reset-offsets by {actor} at 20")

    def test_last_takes_no_older_change_of_the_group_that_is_named(self, on_cluster, cluster, group):
        """The newest change is another's, of another group: an older one is undone by its id alone."""
        self.reset(on_cluster, group, "--to-latest")
        cluster.commit(f"{group}-b", group, {0: 3})
        on_cluster("reset-offsets", f"{group}-b", "--topic", f"{group}:0", "--to-latest", "--execute")
        for name in (group, f"{group}?c"):
            ran = on_cluster("reset-offsets", name, "--undo", "LAST", "--execute")
            assert ran.code == ExitCode.REFUSED
            assert f"is not about {name}" in ran.err
        assert offsets(cluster, group)[group, 0] == 10
        ran = on_cluster("reset-offsets", f"{group}*", "--undo", "LAST", "--execute")
        assert (ran.code, offsets(cluster, f"{group}-b")) == (ExitCode.OK, {(group, 0): 3})
        assert offsets(cluster, group)[group, 0] == 10

    def test_groups_of_one_change_are_undone_one_by_one(self, on_cluster, cluster, group):
        cluster.commit(f"{group}-b", group, {0: 3})
        on_cluster("reset-offsets", f"{group}*", "--topic", f"{group}:0", "--to-latest", "--execute")
        for name in (group, f"{group}-b"):
            assert on_cluster("reset-offsets", name, "--undo", "j-0001", "--execute").code == ExitCode.OK
        assert offsets(cluster, group)[group, 0] == 4
        assert offsets(cluster, f"{group}-b")[group, 0] == 3
        assert "undone, by j-0002, j-0003" in on_cluster("reset-offsets", "--undo", "j-0001").err

    def test_entries_that_are_not_there(self, on_cluster, group):
        assert on_cluster("reset-offsets", "--undo", "j-9999").code == ExitCode.NOT_FOUND
        assert on_cluster("reset-offsets", "--undo", "LAST").code == ExitCode.REFUSED

    @pytest.mark.parametrize("newest", ["refused deletion", "removal of members", "of another cluster"])
    def test_last_passes_over_nothing(self, on_cluster, cluster, group, newest):
        """The newest change has no undo: an older one is not undone in its place."""
        self.reset(on_cluster, group, "--to-latest")
        after = committed(cluster, group)
        busy = f"{group}-busy"
        cluster.classic_group(busy, group, {"i-0": [0]})
        if newest == "refused deletion":
            delete_groups(ClusterView(cluster.admin.transport), [busy])
        elif newest == "removal of members":
            on_cluster("remove-members", busy, "--all", "--execute", "--yes")
        else:
            Journal.default().begin("reset-offsets", "another", {"items": []}, {"offsets": {}})
        ran = on_cluster("reset-offsets", "--undo", "LAST", "--execute", "--yes")
        assert (ran.code, committed(cluster, group)) == (ExitCode.REFUSED, after)
        assert "the newest change, j-0002 (" in ran.err
        assert on_cluster("reset-offsets", group, "--undo", "LAST", "--execute").code == ExitCode.REFUSED
        assert committed(cluster, group) == after

    def test_a_change_cut_off_before_its_end_can_be_undone(self, on_cluster, cluster, group):
        before = committed(cluster, group)
        self.reset(on_cluster, group, "--to-latest")
        journal = Journal.default()
        lines = journal.path.read_text().splitlines()
        assert json.loads(lines[-1])["phase"] == "end"
        journal.path.write_text(lines[0] + "\n")
        assert on_cluster("reset-offsets", "--undo", "LAST", "--execute").code == ExitCode.OK
        assert committed(cluster, group) == before


def test_the_journal_names_a_few_of_many_groups_and_json_all(on_cluster, cluster):
    """Three hundred names in one line hid the others."""
    names = [f"journal-many-{number}" for number in range(5)]
    for name in names:
        cluster.commit(name, "orders", {0: 1})
    assert (
        on_cluster("reset-offsets", *names, "--topic", "orders:0", "--to-offset", "0", "--execute").code == 0
    )
    text = on_cluster("journal", "list", "journal-many-4").out
    assert f"{', '.join(names[:3])} and 2 more" in text and names[4] not in text
    (entry,) = on_cluster("journal", "list", "journal-many-4", "-o", "json").document["data"]["entries"]
    assert entry["groups"] == names
