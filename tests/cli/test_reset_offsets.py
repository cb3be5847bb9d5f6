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

from kgroup.admin.change.journal import Journal
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
        assert {item["result"] for item in data["items"]} == {"done"}
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
            (group, "done"),
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
        from kgroup.admin.admin import Admin
        from kgroup.admin.change.remove_members import Selection
        from kgroup.client.transport import SocketTransport

        def leave():
            admin = Admin(SocketTransport(cluster.transport.settings))
            admin.execute(admin.plan_remove_members(group, Selection(all=True)))
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
        ran = on_cluster("reset-offsets", f"{group}-c", *argv, "--remove-static")
        assert ran.code == ExitCode.OK, ran.err
        assert "removed s-0" in ran.out
        assert offsets(cluster, f"{group}-c") == {(group, 0): 10, (group, 1): 0}

    def test_a_group_that_does_not_exist_gets_offsets(self, on_cluster, cluster, group):
        ran = on_cluster("reset-offsets", f"{group}-new", "--topic", group, "--to-latest", "--execute")
        assert ran.code == ExitCode.OK, ran.err
        assert offsets(cluster, f"{group}-new") == {(group, 0): 10, (group, 1): 0}

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
        assert {i["error_code"] for i in document(ran, ExitCode.REFUSED)["items"]} == {"PLAN_STALE"}
        assert offsets(cluster, group)[group, 0] == 5


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

    def test_last_goes_back_one_change_at_a_time(self, on_cluster, cluster, group):
        for n in ("1", "2", "3"):
            self.reset(on_cluster, group, "--to-offset", n)
        seen = []
        for _ in range(3):
            assert on_cluster("reset-offsets", "--undo", "LAST", "--execute").code == ExitCode.OK
            seen.append(offsets(cluster, group)[group, 0])
        assert seen == [2, 1, 4]
        assert on_cluster("reset-offsets", "--undo", "LAST").code == ExitCode.REFUSED
        ran = on_cluster("reset-offsets", "--undo", "j-0001")
        assert "already been undone, by j-0006" in ran.err

    def test_entries_that_are_not_there(self, on_cluster, group):
        assert on_cluster("reset-offsets", "--undo", "j-9999").code == ExitCode.NOT_FOUND
        assert on_cluster("reset-offsets", "--undo", "LAST").code == ExitCode.REFUSED

    def test_last_passes_over_changes_that_changed_nothing(self, on_cluster, cluster, group):
        before = committed(cluster, group)
        self.reset(on_cluster, group, "--to-latest")
        cluster.classic_group(f"{group}-busy", group, {"i-0": [0]})
        cluster.admin.delete_groups([f"{group}-busy"])
        assert on_cluster("reset-offsets", "--undo", "LAST", "--execute").code == ExitCode.OK
        assert committed(cluster, group) == before

    def test_a_change_cut_off_before_its_end_can_be_undone(self, on_cluster, cluster, group):
        before = committed(cluster, group)
        self.reset(on_cluster, group, "--to-latest")
        journal = Journal.default()
        lines = journal.path.read_text().splitlines()
        assert json.loads(lines[-1])["phase"] == "end"
        journal.path.write_text(lines[0] + "\n")
        assert on_cluster("reset-offsets", "--undo", "LAST", "--execute").code == ExitCode.OK
        assert committed(cluster, group) == before
