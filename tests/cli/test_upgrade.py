"""`kgroup upgrade` and `kgroup downgrade` on a cluster of ours over TCP."""

import itertools
import json
from dataclasses import replace
from pathlib import Path

import pytest

from kgroup.admin.discovery import ClusterView
from kgroup.admin.journal import Journal
from kgroup.admin.migrate.execute import convert_empty
from kgroup.admin.migrate.plan import plan_migration
from kgroup.admin.migrate.rehearsal_shard import copies_of
from kgroup.admin.migrate.rehearse import rehearse
from kgroup.admin.migrate.rehearse_groups import _of_cluster
from kgroup.admin.read.describe import describe
from kgroup.admin.read.source import Source
from kgroup.cli.exit_codes import ExitCode
from kgroup.domain import OFFSETS_TOPIC, offsets_partition_of
from kgroup.errors import BrokerRefused, ErrorCode, KgroupError, SafetyRefused
from kgroup.history.sources.live import LiveLog, LiveTopic
from kgroup.protocol.messages.metadata import MetadataResponse
from tests.cli.committed import commit_fully
from tests.cli.damage import NAME, RECORDED, batches_of
from tests.ran import document

_numbers = itertools.count()
INCIDENTS = Path(__file__).parents[1] / "data" / "incidents"


@pytest.fixture
def classic(cluster):
    """A stable classic group of its own: static members m-0 and m-1."""
    name = f"upgrade-{next(_numbers)}"
    cluster.classic_group(name, "orders", {"m-0": [0, 1, 2], "m-1": [3, 4, 5]})
    return name


class Plain:
    """A transport that answers as the cluster's, but for `told`."""

    def __init__(self, transport):
        self.transport = transport

    def __getattr__(self, name):
        return getattr(self.transport, name)

    def request(self, node, message, **options):
        answer = self.transport.request(node, message, **options)
        return self.told(message, answer) if isinstance(answer, MetadataResponse) else answer

    def told(self, asked, answer):
        return answer


class WithoutIds(Plain):
    def told(self, asked, answer):
        return replace(answer, topics=tuple(replace(t, topic_id=bytes(16)) for t in answer.topics))


class WithoutRights(Plain):
    """DESCRIBE on the offsets topic alone: others are left out of all, and refused by name."""

    def told(self, asked, answer):
        if asked.topics is None:
            kept = tuple(t for t in answer.topics if t.name == OFFSETS_TOPIC)
        else:
            denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            kept = tuple(
                t if t.name == OFFSETS_TOPIC else replace(t, error_code=denied, partitions=())
                for t in answer.topics
            )
        return replace(answer, topics=kept)


def _rehearsed(cluster, group, transport):
    """How many records the rehearsal led to."""
    admin = ClusterView(transport(cluster.transport))
    topic = LiveTopic(admin.transport)
    log = LiveLog(topic, offsets_partition_of(group, len(topic.partitions)))
    source = Source([log], dict(topic.topic_names), admin)
    known, counts = _of_cluster(source, [group])
    settings = known[group]
    if isinstance(settings, KgroupError):
        raise settings
    copy = copies_of(log, [group])[group]
    done = rehearse(copy, group, settings=settings, topic_names=source.topic_names, partition_counts=counts)
    assert (done.upgrade, done.downgrade) == ("converted", "converted")
    return sum(len(step.records) for step in done.steps)


class TestPlan:
    def test_a_classic_group_is_ready(self, on_cluster, classic):
        data = document(on_cluster("upgrade", "plan", classic, "-o", "json"), "upgrade plan")
        assert data["verdict"] == "ready"
        assert {check["code"] for check in data["checks"]} >= {"migration_policy", "assignment_user_data"}

    def test_text_names_the_verdict_and_each_check(self, on_cluster, classic):
        """CP-66: what keeps a group from the consumer protocol, or that nothing does."""
        out = on_cluster("upgrade", "plan", classic).out
        assert f"{classic}   classic → consumer   classic, Stable      VERDICT  READY" in out
        assert "group.consumer.migration.policy=bidirectional" in out

    def test_session_timeouts_come_out_of_the_log(self, on_cluster, classic):
        data = document(on_cluster("upgrade", "plan", classic, "--read-log", "-o", "json"), "upgrade plan")
        (check,) = [check for check in data["checks"] if check["code"] == "session_timeout"]
        assert (check["status"], check["evidence"]["clients_ms"]) == ("warn", [1_800_000])

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


class TestExecute:
    def test_an_empty_group_goes_there_and_back_with_its_offsets(self, on_cluster, cluster):
        name = f"upgrade-{next(_numbers)}"
        cluster.commit(name, "orders", {0: 5, 3: 7})
        for command, kind in (("upgrade", "consumer"), ("downgrade", "classic")):
            data = document(on_cluster(command, "execute", name, "--yes", "-o", "json"), f"{command} execute")
            assert (data["action"], data["offsets"]) == ("converted", {"committed": 2, "changed": []})
            (group,) = describe(cluster.admin, [name]).groups
            assert (group.type, group.state) == (kind, "Empty")
            assert {row.partition: row.committed_offset for row in group.offsets} == {0: 5, 3: 7}
            entry = Journal.default().find("LAST")
            assert [row[:3] for row in entry.before["offsets"]] == [["orders", 0, 5], ["orders", 3, 7]]
            assert entry.results[0]["result"] == "converted"

    def test_a_group_of_kafka_streams_stays_what_it_is(self, on_cluster, cluster):
        """Converted, "is not a streams group" kept the application out; the plan said READY."""
        name = f"upgrade-{next(_numbers)}"
        commit_fully(cluster, name, "orders", {0: (5, -1, "Af//////////")})
        data = document(on_cluster("upgrade", "plan", name, "-o", "json"), "upgrade plan", ExitCode.REFUSED)
        assert [c["code"] for c in data["checks"] if c["status"] == "block"] == ["kafka_streams"]
        ran = on_cluster("upgrade", "execute", name, "--yes", "--accept-unknown", "-o", "json")
        assert document(ran, "upgrade execute", ExitCode.REFUSED)["action"] == "none"
        assert describe(cluster.admin, [name]).groups[0].type == "classic"

    def test_an_empty_group_without_a_trace_needs_a_word_more(self, on_cluster, cluster):
        name = f"upgrade-{next(_numbers)}"
        cluster.consumer_member(name, "orders", "s-0")
        removed = on_cluster("remove-members", name, "--all", "--execute", "--yes")
        assert removed.code == ExitCode.OK
        assert on_cluster("downgrade", "execute", name, "--yes").code == ExitCode.OK
        told = on_cluster("upgrade", "execute", name, "--yes", "-o", "json")
        data = document(told, "upgrade execute", ExitCode.PARTIAL)
        assert (data["verdict"], data["action"]) == ("unknown", "none")
        told = on_cluster("upgrade", "execute", name, "--yes", "--accept-unknown", "-o", "json")
        assert document(told, "upgrade execute")["action"] == "converted"

    def test_done_already(self, on_cluster, cluster):
        name = f"upgrade-{next(_numbers)}"
        cluster.commit(name, "orders", {0: 5})
        ran = on_cluster("downgrade", "execute", name, "--yes", "-o", "json")
        assert document(ran, "downgrade execute")["verdict"] == "already"
        assert Journal.default().entries() == ()

    def test_a_live_group_is_told_the_order_and_not_touched(self, on_cluster, cluster, classic):
        ran = on_cluster("upgrade", "execute", classic, "--read-log", "-o", "json")
        data = document(ran, "upgrade execute")
        assert data["action"] == "roll"
        assert {step["instance_id"] for step in data["order"]} == {"m-0", "m-1"}
        assert [step["is_leader"] for step in data["order"]] == [False, True]
        assert describe(cluster.admin, [classic]).groups[0].type == "classic"
        out = on_cluster("upgrade", "execute", classic, "--no-watch").out
        assert "no request converts it" in out and "which member leads is unknown" in out


class TestWatch:
    def test_stuck_with_its_cause(self, on_cluster, classic):
        """Nobody is restarted: exit code 8, and who remains."""
        argv = ("upgrade", "watch", classic, "--interval", "10ms", "--stuck-after", "60ms")
        data = document(on_cluster(*argv, "-o", "json"), "upgrade watch", ExitCode.BAD_VERDICT)
        assert (data["status"], data["moved"], data["members"]) == ("stuck", 0, 2)
        assert data["remaining"] == ["m-0", "m-1"]
        assert [wait["code"] for wait in data["waits"]] == ["not_rolled"]

    def test_follows_a_roll_of_static_members_to_its_end(self, on_cluster, cluster, classic):
        """Both successors join under their predecessors' ids; the offsets topic agrees on who had nothing."""
        successors = [cluster.consumer_member(classic, "orders", name) for name in ("m-0", "m-1")]
        assert len(set(successors)) == 2
        ran = on_cluster("upgrade", "watch", classic, "--interval", "10ms", "-o", "ndjson")
        looks = [json.loads(line) for line in ran.out.splitlines()]
        assert ran.code == ExitCode.OK
        assert (looks[-1]["status"], looks[-1]["moved"], looks[-1]["remaining"]) == ("done", 2, [])

    def test_lines_off_a_terminal(self, on_cluster, classic):
        ran = on_cluster("upgrade", "watch", classic, "--interval", "10ms", "--stuck-after", "40ms")
        assert "0 of 2 moved  classic Stable" in ran.out and "STUCK" in ran.out
        assert ran.code == ExitCode.BAD_VERDICT


class TestRehearse:
    def test_static_members_there_and_back_without_a_rebalance(self, on_cluster, cluster, classic):
        before = describe(cluster.admin, [classic]).groups
        data = document(on_cluster("upgrade", "rehearse", classic, "-o", "json"), "upgrade rehearse")
        assert (data["upgrade"], data["downgrade"], data["offsets_kept"]) == ("converted", "converted", True)
        joins = [step for step in data["steps"] if "joins" in step["action"]]
        assert [step["type"] for step in joins] == ["consumer", "consumer", "consumer", "classic"]
        assert {step["epoch"] for step in joins} == {2}
        first = joins[0]["records"]
        assert (first[0]["type_name"], first[0]["value"]) == ("GroupMetadata", None)
        assert describe(cluster.admin, [classic]).groups == before

    def test_an_empty_group_keeps_its_offsets(self, on_cluster, cluster):
        name = f"upgrade-{next(_numbers)}"
        cluster.commit(name, "orders", {0: 5, 3: 7})
        data = document(on_cluster("upgrade", "rehearse", name, "-o", "json"), "upgrade rehearse")
        assert (data["upgrade"], data["downgrade"], data["offsets_kept"]) == ("converted", "converted", True)

    def test_another_policy_is_refused_in_the_copy_only(self, on_cluster, classic):
        setting = "group.consumer.migration.policy=disabled"
        ran = on_cluster("upgrade", "rehearse", classic, "--set", setting, "-o", "json")
        data = document(ran, "upgrade rehearse", ExitCode.REFUSED)
        assert data["upgrade"] == "refused"
        last = data["steps"][-1]
        assert last["error_code"] == "GROUP_ID_NOT_FOUND" and "online upgrade is disabled" in last["message"]

    @pytest.mark.parametrize(
        "text", ["group.consumer.migration.polcy=disabled", "group.consumer.max.size", "x="]
    )
    def test_a_setting_that_is_none_is_usage(self, on_cluster, classic, text):
        assert on_cluster("upgrade", "rehearse", classic, "--set", text).code == ExitCode.USAGE

    def test_on_a_broker_without_topic_ids(self, cluster, classic):
        """Kafka before 2.8: it ran without a partition, and said converted."""
        records = [_rehearsed(cluster, classic, transport) for transport in (Plain, WithoutIds)]
        assert records[0] == records[1]
        assert records[0] > 10

    def test_topics_that_may_not_be_seen_end_it(self, cluster, classic):
        with pytest.raises(BrokerRefused, match="no rehearsal without the partitions of orders"):
            _rehearsed(cluster, classic, WithoutRights)

    @pytest.mark.parametrize(
        ("incident", "upgrade", "downgrade"),
        [
            ("rolling-static-bounce", "converted", "converted"),
            ("upgrade-and-back", "converted", "converted"),
            ("consumer-group-life", "not-needed", "converted"),
            ("transactions", "converted", "converted"),
        ],
    )
    def test_from_segments_of_a_real_kafka(self, kgroup, incident, upgrade, downgrade):
        folder = INCIDENTS / incident
        group = json.loads((folder / "incident.json").read_text())["group"]
        ran = kgroup("upgrade", "rehearse", group, "--files", str(folder), "-o", "json")
        data = document(ran, "upgrade rehearse", ExitCode(ran.code))
        assert (data["upgrade"], data["downgrade"], data["offsets_kept"]) == (upgrade, downgrade, True), (
            ran.out
        )

    def test_a_damaged_range_of_the_source_is_said(self, kgroup, tmp_path):
        """What a copy lacks made the rehearsal of another group, and nobody said so."""
        batches = batches_of(RECORDED["rolling-static-bounce"])
        batches[-1] = batches[-1][:-1] + bytes([batches[-1][-1] ^ 1])
        folder = tmp_path / "__consumer_offsets-1"
        folder.mkdir()
        (folder / NAME).write_bytes(b"".join(batches))
        group = json.loads((INCIDENTS / "rolling-static-bounce" / "incident.json").read_text())["group"]
        ran = kgroup("upgrade", "rehearse", group, "--files", str(tmp_path), "-o", "json")
        document(ran, "upgrade rehearse", ExitCode.PARTIAL)
        (error,) = ran.document["errors"]
        assert error["code"] == "CORRUPT_MESSAGE" and "the copy lacks" in error["hint"]

    def test_many_groups_one_row_each(self, on_cluster, cluster, classic):
        cluster.commit(f"{classic}-idle", "orders", {0: 5})
        cluster.classic_group(f"{classic}-full", "orders", {None: [0, 1, 2, 3, 4, 5]})
        data = document(on_cluster("upgrade", "rehearse", f"{classic}*", "-o", "json"), "upgrade rehearse")
        told = {row["group_id"]: row for row in data["groups"]}
        assert told.keys() == {classic, f"{classic}-idle", f"{classic}-full"}
        assert {(r["verdict"], r["upgrade"], r["offsets_kept"]) for r in told.values()} == {
            ("ready", "converted", True)
        }
        one = document(on_cluster("upgrade", "rehearse", classic, "-o", "json"), "upgrade rehearse")
        assert (told[classic]["copied"], told[classic]["downgrade"]) == (one["copied"], one["downgrade"])

    def test_many_groups_that_the_copy_refuses_or_has_not(self, on_cluster, classic):
        argv = ("upgrade", "rehearse", classic, "absent", "-o", "json")
        ran = on_cluster(*argv)
        assert document(ran, "upgrade rehearse", ExitCode.PARTIAL)["groups"][0]["group_id"] == classic
        assert [(e["item"], e["code"]) for e in ran.errors] == [("absent", "GROUP_ID_NOT_FOUND")]
        ran = on_cluster(*argv, "--set", "group.consumer.migration.policy=disabled")
        (row,) = document(ran, "upgrade rehearse", ExitCode.REFUSED)["groups"]
        assert (row["verdict"], row["upgrade"], row["error_code"]) == (
            "ready",
            "refused",
            "GROUP_ID_NOT_FOUND",
        )
        assert on_cluster("upgrade", "rehearse").code == ExitCode.USAGE
        assert on_cluster("upgrade", "rehearse", classic, "--all-groups").code == ExitCode.USAGE

    def test_many_groups_from_segments(self, kgroup):
        folder = INCIDENTS / "upgrade-and-back"
        group = json.loads((folder / "incident.json").read_text())["group"]
        ran = kgroup("upgrade", "rehearse", "--all-groups", "--files", str(folder), "-o", "json")
        (row,) = document(ran, "upgrade rehearse")["groups"]
        assert (row["group_id"], row["verdict"], row["upgrade"]) == (group, None, "converted")

    def test_text_begins_with_the_verdict_and_shows_records_when_asked(self, on_cluster, classic):
        out = on_cluster("upgrade", "rehearse", classic).out
        whole = on_cluster("upgrade", "rehearse", classic, "--verbose").out
        for text in (out, whole):
            assert text.startswith("upgrade converted · downgrade converted · committed offsets the same\n")
            assert "m-0 joins with the consumer protocol   → consumer Stable, epoch 2 (assignment 2)" in text
        assert "GroupMetadata  tombstone" in whole
        assert "tombstone" not in out and out.endswith(" records; --verbose shows them\n")


def test_a_group_that_is_not_empty_any_more_is_left_alone(cluster, classic, tmp_path):
    """Between plan and execution somebody joined: the live group must not be converted by kgroup's member."""
    made = replace(plan_migration(cluster.admin, classic, "upgrade"), state="Empty")
    with pytest.raises(SafetyRefused, match="only empty groups convert"):
        convert_empty(ClusterView(cluster.transport, journal=Journal(tmp_path / "journal.jsonl")), made)
    assert not (tmp_path / "journal.jsonl").exists()


def write_contexts(home, text):
    config = home / "config" / "kgroup" / "config.yaml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(text)


class TestFleet:
    @pytest.fixture
    def three(self, cluster):
        """Two classic groups and one that has moved already, by a prefix of their own."""
        prefix = f"fleet-{next(_numbers)}"
        for name in ("a", "b"):
            cluster.classic_group(f"{prefix}-{name}", "orders", {"m-0": [0, 1, 2, 3, 4, 5]})
        cluster.consumer_member(f"{prefix}-c", "orders", f"{prefix}-s")
        return prefix

    def test_a_row_for_each_group(self, on_cluster, three):
        data = document(on_cluster("upgrade", "plan", f"{three}-*", "-o", "json"), "upgrade plan")
        told = [(row["group_id"], row["verdict"], row["effort"]) for row in data["groups"]]
        assert told == [
            (f"{three}-c", "already", "none"),
            (f"{three}-a", "ready", "roll"),
            (f"{three}-b", "ready", "roll"),
        ]
        out = on_cluster("upgrade", "plan", f"{three}-*").out
        assert "3 groups   classic → consumer   2 ready, 0 blocked, 0 unknown, 1 already" in out

    def test_session_timeouts_of_all_at_once(self, on_cluster, three):
        ran = on_cluster("upgrade", "plan", f"{three}-*", "--read-log", "-o", "json")
        rows = {row["group_id"]: row for row in document(ran, "upgrade plan")["groups"]}
        assert {"session_timeout", "client_settings"} <= set(rows[f"{three}-a"]["warnings"])

    def test_one_that_is_missing_is_said(self, on_cluster, three):
        ran = on_cluster("upgrade", "plan", f"{three}-a", f"{three}-x", "-o", "json")
        data = document(ran, "upgrade plan", ExitCode.PARTIAL)
        assert [row["group_id"] for row in data["groups"]] == [f"{three}-a"]
        assert [error["item"] for error in ran.document["errors"]] == [f"{three}-x"]
        assert on_cluster("upgrade", "plan", f"{three}-x", f"{three}-y").code == ExitCode.NOT_FOUND

    def test_by_topic(self, on_cluster, cluster, three):
        cluster.create_topic(f"{three}-pay", 1)
        cluster.classic_group(f"{three}-pays", f"{three}-pay", {"m-0": [0]})
        ran = on_cluster("upgrade", "plan", f"{three}-*", "--topic", f"{three}-pay", "-o", "json")
        assert [row["group_id"] for row in ran.document["data"]["groups"]] == [f"{three}-pays"]
        both = ("upgrade", "plan", f"{three}-pays", f"{three}-x", "--topic", f"{three}-pay")
        ran = on_cluster(*both, "-o", "json")
        assert ran.code == ExitCode.PARTIAL
        assert [error["item"] for error in ran.document["errors"]] == [f"{three}-x"]
        assert "1 ready, 0 blocked, 0 unknown, 0 already; not all were seen" in on_cluster(*both).out
        nothing = on_cluster("upgrade", "plan", f"{three}-x", "--topic", f"{three}-pay")
        assert nothing.code == ExitCode.NOT_FOUND and "no group was seen" in nothing.out
        assert on_cluster(*both[:2], f"{three}-x*", *both[-2:]).code == ExitCode.NOT_FOUND

    def test_the_page_holds_what_the_table_shows(self, on_cluster, three, tmp_path):
        page = tmp_path / "plan.html"
        ran = on_cluster("upgrade", "plan", f"{three}-*", "--html", str(page), "-o", "json")
        text = page.read_text(encoding="utf-8")
        held = json.loads(text.partition('type="application/json">')[2].partition("</script>")[0])
        assert held["groups"] == ran.document["data"]["groups"]
        assert "http" not in text.replace("http://www.w3.org", "")
        missing = on_cluster("upgrade", "plan", f"{three}-a", "--html", str(tmp_path / "no" / "plan.html"))
        assert missing.code == ExitCode.FAILED and "cannot write" in missing.err

    def test_several_clusters(self, kgroup, cluster, three, tmp_path):
        write_contexts(
            tmp_path,
            f"contexts: {{eu: {{bootstrap-servers: '{cluster.bootstrap}'}},"
            " us: {bootstrap-servers: '127.0.0.1:1'}}\n",
        )
        both = ("upgrade", "plan", f"{three}-*", "--contexts", "eu,us", "--timeout", "2s", "-o", "json")
        ran = kgroup(*both)
        assert ran.code == ExitCode.PARTIAL, ran.err
        assert {row["context"] for row in ran.document["data"]["groups"]} == {"eu"}
        assert [error["item"] for error in ran.document["errors"]] == ["us"]
        assert kgroup(*both, "-C", "eu").code == ExitCode.USAGE
        nothing = kgroup("upgrade", "plan", "--all-groups", "--contexts", ",")
        assert nothing.code == ExitCode.USAGE and "names no context" in nothing.err

    def test_what_one_cluster_has_not_is_said_with_its_name(self, kgroup, cluster, three, tmp_path):
        """A glob without a match in one context ended the whole report, and no error named a context."""
        write_contexts(
            tmp_path,
            f"contexts: {{eu: {{bootstrap-servers: '{cluster.bootstrap}'}},"
            f" us: {{local: {tmp_path / 'us'}}}}}\n",
        )
        assert kgroup("cluster", "create-topic", "t", "--local", str(tmp_path / "us")).code == ExitCode.OK
        ran = kgroup("upgrade", "plan", f"{three}-*", "--contexts", "eu,us", "-o", "json")
        assert ran.code == ExitCode.PARTIAL, ran.err
        assert len(ran.document["data"]["groups"]) == 3
        assert [error["message"] for error in ran.document["errors"]] == [
            f"context us: no group matches '{three}-*'"
        ]
        ran = kgroup("upgrade", "plan", f"{three}-a", "--contexts", "eu,us")
        assert ran.code == ExitCode.PARTIAL
        assert f"context us: group {three}-a: GROUP_ID_NOT_FOUND" in ran.err

    def test_what_stands_against_kafka_5(self, on_cluster, three):
        data = document(on_cluster("doctor", "--kafka", "5", f"{three}-*", "-o", "json"), "doctor")
        assert data["verdict"] == "ready"
        assert {"groups_ready", "groups_moved"} <= {check["code"] for check in data["checks"]}
        out = on_cluster("doctor", "--kafka", "5", f"{three}-*").out
        assert "Kafka 5.0   READY" in out and "2 groups will be converted" in out
        assert on_cluster("doctor", "--kafka", "6").code == ExitCode.USAGE

    def test_from_dynamic_to_static(self, on_cluster, cluster, three):
        cluster.classic_group(f"{three}-d", "orders", {None: [0, 1, 2, 3, 4, 5]})
        ran = on_cluster("upgrade", "plan", f"{three}-d", "--static", "--read-log", "-o", "json")
        data = document(ran, "upgrade plan")
        told = {check["code"]: check for check in data["checks"]}
        assert (data["verdict"], len(told["static_ids"]["evidence"]["dynamic"])) == ("ready", 1)
        assert told["session_timeout"]["evidence"]["restarts_ms"] == []
        assert "dynamic → static members" in on_cluster("upgrade", "plan", f"{three}-d", "--static").out
        assert on_cluster("wait", f"{three}-a", "--for", "static").code == ExitCode.OK
        late = on_cluster("wait", f"{three}-d", "--for", "static", "--stop-after", "200ms")
        assert late.code == ExitCode.UNREACHABLE
        assert on_cluster("upgrade", "plan", f"{three}-*", "--static").code == ExitCode.USAGE

    def test_what_makes_no_sense_is_refused(self, on_cluster, three):
        assert on_cluster("upgrade", "plan").code == ExitCode.USAGE
        assert on_cluster("upgrade", "plan", f"{three}-a", "--all-groups").code == ExitCode.USAGE
        assert on_cluster("upgrade", "plan", f"{three}-*", "--static").code == ExitCode.USAGE

    def test_a_pattern_of_all_clients(self, on_cluster, three):
        ran = on_cluster("upgrade", "plan", f"{three}-[ab]", "--pattern", "(?!x).*", "-o", "json")
        rows = document(ran, "upgrade plan", ExitCode.REFUSED)["groups"]
        assert {(row["verdict"], *row["change"]) for row in rows} == {("blocked", "pattern")}
        out = on_cluster("upgrade", "plan", f"{three}-[ab]", "--pattern", "(?!x).*").out
        assert "blocked by patterns: 2 groups, to change in: pattern" in out
        assert "→ write it in RE2: no look-around, no backreferences" in out
        assert on_cluster("upgrade", "plan", f"{three}-[ab]", "--pattern", "orders").code == ExitCode.OK
