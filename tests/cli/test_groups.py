"""`list`, `describe`, `coordinator`, `cluster` against a cluster of ours over TCP."""

import json

import jsonschema
import pytest

from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.schemas import schema_for


@pytest.fixture(scope="session")
def groups(cluster):
    """`shop`: two static members and a dynamic one; `idle`: offsets only. Member ids by instance id."""
    members = cluster.classic_group("shop", "orders", {"shop-0": [0, 1, 2], "shop-1": [3, 4], None: [5]})
    cluster.commit("idle", "orders", {0: 0, 3: 0})
    return members


@pytest.fixture(scope="session")
def left(cluster):
    """`pay`: static consumer-protocol member p-0 owns everything and has left for now; its member id."""
    member_id = cluster.consumer_member("pay", "orders", "p-0")
    cluster.leave_for_now("pay", member_id, "p-0")
    return member_id


@pytest.fixture
def run(on_cluster, groups):
    return on_cluster


def document(ran, command, code=ExitCode.OK):
    assert ran.code == code, ran.err
    jsonschema.validate(ran.document, schema_for(command))
    assert ran.document["exit_code"] == code
    return ran.document


class TestList:
    def test_table(self, run):
        assert run("list", "shop", "idle", "--columns", "group,type,state,members").out.splitlines() == [
            "GROUP  TYPE     STATE   MEMBERS",
            "idle   classic  Empty         0",
            "shop   classic  Stable        3",
        ]

    def test_json(self, run, cluster):
        found = document(run("list", "shop", "-o", "json"), "list")
        (group,) = found["data"]["groups"]
        assert group | {"coordinator": None} == {
            "group_id": "shop",
            "type": "classic",
            "protocol_type": "consumer",
            "state": "Stable",
            "members": 3,
            "coordinator": None,
        }
        assert group["coordinator"].keys() == {"id", "host", "port"}
        assert found["cluster"]["bootstrap"] == cluster.bootstrap
        assert found["cluster"]["id"]

    @pytest.mark.parametrize(
        ("argv", "names"),
        [
            (["sh*", "id*"], ["idle", "shop"]),
            (["--regex", "^sh[aeiou]p$"], ["shop"]),
            (["shop", "idle", "--state", "stable,dead"], ["shop"]),
            (["shop", "idle", "--type", "consumer"], []),
            (["shop", "idle", "--protocol-type", "consumer"], ["shop"]),
            (["shop", "idle", "--topic", "orders"], ["idle", "shop"]),
            (["shop", "idle", "--static-only"], ["shop"]),
            (["shop", "idle", "--sort=-members"], ["shop", "idle"]),
            (["shop", "idle", "--sort", "members", "--no-members"], ["idle", "shop"]),
            (["nothing-like-*"], []),
        ],
    )
    def test_filters_and_order(self, run, argv, names):
        ran = run("list", *argv, "-o", "name")
        assert (ran.code, ran.out.split()) == (0, names)

    def test_a_name_that_is_no_group_is_an_error_and_a_pattern_none(self, run):
        assert run("list", "nothing-like-it").code == ExitCode.NOT_FOUND
        ran = run("list", "shop", "nothing-like-it", "-o", "json")
        assert (ran.code, [error["item"] for error in ran.errors]) == (ExitCode.PARTIAL, ["nothing-like-it"])
        assert run("list", "idle", "--state", "stable").code == ExitCode.OK
        assert run("cluster", "topics", "nope").code == ExitCode.NOT_FOUND
        assert run("cluster", "topics", "nope*").code == ExitCode.OK

    @pytest.mark.parametrize("argv", [["--sort", "size"], ["--type", "simple"], ["--regex", "("]])
    def test_wrong_usage(self, run, argv):
        assert run("list", *argv).code == ExitCode.USAGE


class TestDescribe:
    def test_instance_id_stands_beside_each_member(self, run, groups):
        """SM-16"""
        out = run("describe", "shop").out
        assert out.startswith(
            "shop   classic   Stable   assignor range   coordinator 0 · __consumer_offsets-"
        )
        assert "members 3 (2 static) · partitions 6 · lag " in out
        rows = [line.split() for line in out.splitlines() if groups[None] in line or line.startswith("shop-")]
        assert [row[0] for row in rows[:3]] == ["shop-0", "shop-1", "-"]
        assert [row[1] for row in rows[:3]] == [groups["shop-0"], groups["shop-1"], groups[None]]
        assert "orders:0-2" in rows[0] and "orders:3-4" in rows[1] and "orders:5" in rows[2]

    def test_json_has_every_section_under_its_fixed_name(self, run, groups):
        (group,) = document(run("describe", "shop", "-o", "json"), "describe")["data"]["groups"]
        (first,) = (m for m in group["members"] if m["instance_id"] == "shop-0")
        assert first["member_id"] == groups["shop-0"]
        assert first["assignment"] == [{"topic": "orders", "partitions": [0, 1, 2]}]
        assert first["subscribed_topics"] == ["orders"]
        assert [row["instance_id"] for row in group["offsets"]] == ["shop-0"] * 3 + ["shop-1"] * 2 + [None]

    def test_offsets_by_topic_as_csv(self, run):
        rows = run("describe", "shop", "--by", "topic", "-o", "csv").out.splitlines()
        names = "group_id topic partition committed_offset log_end_offset last_stable_offset lag status"
        columns = names.replace(" ", ",")
        assert rows[0].startswith(columns)
        assert sorted(row.split(",")[2] for row in rows[1:]) == ["0", "1", "2", "3", "4", "5"]

    def test_several_groups_and_ndjson(self, run):
        lines = run("describe", "shop", "idle", "-o", "ndjson").out.splitlines()
        assert [json.loads(line)["group_id"] for line in lines] == ["shop", "idle"]
        assert {json.loads(line)["schema"] for line in lines} == {"kgroup/describe@2"}

    def test_all_groups(self, run):
        assert {"shop", "idle"} <= set(run("describe", "--all-groups", "-o", "name").out.split())

    def test_sections(self, run):
        out = run("describe", "shop", "--section", "summary").out
        assert len(out.splitlines()) == 2
        assert "COMMITTED" in run("describe", "idle", "--section", "offsets").out
        assert run("describe", "idle", "--section", "members").out == "idle: no members\n"

    def test_empty_group_keeps_its_offsets_and_a_finding(self, run):
        (group,) = document(run("describe", "idle", "-o", "json"), "describe")["data"]["groups"]
        assert (group["state"], group["total_lag"]) == ("Empty", 0)
        assert "KG304" in {finding["code"] for finding in group["findings"]}

    def test_unknown_group_ends_with_3(self, run):
        ran = run("describe", "nope", "-o", "json")
        found = document(ran, "describe", ExitCode.NOT_FOUND)
        assert found["status"] == "failed"
        assert found["errors"][0] | {"message": "", "hint": ""} == {
            "code": "GROUP_ID_NOT_FOUND",
            "item": "nope",
            "message": "",
            "hint": "",
        }
        assert "error: group nope: GROUP_ID_NOT_FOUND" in ran.err

    def test_one_of_two_unknown_ends_with_5(self, run):
        ran = run("describe", "shop", "nope", "-o", "json")
        found = document(ran, "describe", ExitCode.PARTIAL)
        assert (found["status"], len(found["data"]["groups"])) == ("partial", 1)

    @pytest.mark.parametrize(
        "argv", [[], ["shop", "--all-groups"], ["shop", "--by", "size"], ["shop", "--section", "x"]]
    )
    def test_wrong_usage(self, run, argv):
        assert run("describe", *argv).code == ExitCode.USAGE


class TestConsumerProtocol:
    """The same commands for a KIP-848 group: nobody has to say which protocol it speaks."""

    def test_list_tells_the_type(self, run, left):
        """CP-66: which groups are still classic."""
        assert run("list", "pay", "--no-headers", "--columns", "group,type,members").out.split() == [
            *("pay", "consumer", "1")
        ]

    def test_describe_shows_epochs_and_who_left(self, run, left):
        (group,) = document(run("describe", "pay", "-o", "json"), "describe")["data"]["groups"]
        (member,) = group["members"]
        assert group["group_epoch"] >= group["assignment_epoch"] > 0
        assert (member["member_id"], member["member_epoch"], member["state"]) == (left, -2, "left")
        assert sum(len(a["partitions"]) for a in member["assignment"]) == 6
        assert "KG103" in {finding["code"] for finding in group["findings"]}

    def test_text_points_to_the_way_out(self, run, left):
        out = run("describe", "pay").out
        assert out.startswith("pay   consumer (KIP-848)   ")
        assert "! KG103 " in out

    def test_those_that_left_can_be_removed(self, run, cluster):
        gone = cluster.consumer_member("pay-2", "orders", "q-0")
        cluster.consumer_member("pay-2", "orders", "q-1")
        cluster.leave_for_now("pay-2", gone, "q-0")
        ran = run("remove-members", "pay-2", "--left-only", "--execute", "--yes", "-o", "json")
        found = document(ran, "remove-members")
        assert [(i["instance_id"], i["result"]) for i in found["data"]["items"]] == [("q-0", "removed")]
        assert found["data"]["plan"]["valid_while"].keys() == {"group_epoch"}


class TestCoordinator:
    def test_online_agrees_with_offline(self, run):
        (online,) = document(run("coordinator", "shop", "-o", "json"), "coordinator")["data"]["groups"]
        (offline,) = run("coordinator", "shop", "--partitions", "4", "-o", "json").document["data"]["groups"]
        assert online["offsets_partition"] == offline["offsets_partition"]
        assert online["coordinator"]["host"] == "127.0.0.1"


class TestCluster:
    def test_status(self, run):
        found = document(run("cluster", "status", "-o", "json"), "cluster status")
        assert found["data"]["cluster_id"] == found["cluster"]["id"]
        assert len(found["data"]["brokers"]) == 1
        assert found["data"]["metrics"] is None and "JMX" in found["data"]["metrics_note"]

    def test_topics(self, run):
        assert run("cluster", "topics", "ord*", "--no-headers").out.split() == ["orders", "6", "1", "0"]
        found = document(run("cluster", "topics", "--internal", "-o", "json"), "cluster topics")
        assert {t["name"] for t in found["data"]["topics"]} >= {"orders", "__consumer_offsets"}

    def test_a_topic_that_is_there_is_refused(self, run):
        assert run("cluster", "create-topic", "orders").code == ExitCode.REFUSED


def test_unreachable_cluster_ends_with_7_and_no_traceback(kgroup):
    ran = kgroup("list", "-b", "127.0.0.1:1", "--timeout", "500ms", "-o", "json")
    assert ran.code == ExitCode.UNREACHABLE
    assert ran.document["errors"][0]["code"] == "UNREACHABLE"
    assert "Traceback" not in ran.err


class TestLocal:
    def test_a_topic_survives_from_command_to_command(self, kgroup, tmp_path):
        where = ("--local", str(tmp_path / "c"))
        created = document(
            kgroup("cluster", "create-topic", "pay", "--partitions", "3", *where, "-o", "json"),
            "cluster create-topic",
        )
        assert len(created["data"]["topic"]["partitions"]) == 3
        listed = document(kgroup("cluster", "topics", *where, "-o", "json"), "cluster topics")
        assert [t["name"] for t in listed["data"]["topics"]] == ["pay"]
        assert listed["cluster"] == {"id": created["cluster"]["id"], "bootstrap": None}

    def test_default_is_the_data_folder(self, kgroup, tmp_path):
        assert kgroup("cluster", "create-topic", "pay", "--local").code == 0
        assert (tmp_path / "data" / "kgroup" / "cluster").is_dir()
        ran = kgroup("list")
        assert ran.code == 0
        assert "no cluster is named" in ran.err and "no Kafka is asked" in ran.err

    @pytest.mark.parametrize(
        "argv",
        [
            ("list",),
            ("describe", "orders"),
            ("lag", "orders"),
            ("wait", "orders", "--for", "empty"),
            ("watch", "orders", "--until", "empty"),
            ("coordinator", "orders"),
            ("cluster", "status"),
            ("cluster", "topics"),
            ("offsets", "export", "orders"),
            ("delete", "orders"),
            ("reset-offsets", "orders", "--all-topics", "--to-earliest"),
            ("remove-members", "orders", "--all"),
            ("doctor", "orders"),
            ("upgrade", "plan", "orders"),
            ("replay-log", "orders"),
        ],
        ids=" ".join,
    )
    def test_nothing_is_made_up_where_no_cluster_is_named(self, kgroup, tmp_path, argv):
        ran = kgroup(*argv)
        assert ran.code == ExitCode.USAGE
        assert "no cluster is named" in ran.err and "-b HOST:PORT" in ran.err
        assert not (tmp_path / "data" / "kgroup" / "cluster").exists()


def test_a_state_that_no_group_has_is_no_filter(on_cluster):
    ran = on_cluster("list", "--state", "Stabel")
    assert ran.code == ExitCode.USAGE and ran.out == ""
    assert "--state 'Stabel' is unknown" in ran.err and "Stable" in ran.err
    assert on_cluster("list", "--state", "stable,EMPTY").code == ExitCode.OK


def test_a_topic_that_is_not_there_is_not_one_that_nobody_reads(on_cluster, cluster):
    ran = on_cluster("list", "--topic", "no-such-topic")
    assert ran.code == ExitCode.NOT_FOUND and "there is no topic no-such-topic" in ran.err
    cluster.create_topic("unread-by-all", 1)
    ran = on_cluster("list", "unread-*", "--topic", "unread-by-all", "-o", "name")
    assert (ran.code, ran.out) == (ExitCode.OK, "")


def test_a_name_that_is_not_utf_8_is_told_in_words(on_cluster):
    """Python keeps such bytes of an argument as lone surrogates."""
    ran = on_cluster("lag", "\udcff\udcfe")
    assert ran.code == ExitCode.USAGE
    assert "is not UTF-8" in ran.err and "does not know how" not in ran.err
