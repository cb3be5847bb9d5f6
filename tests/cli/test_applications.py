"""Groups of Connect, Streams, ksqlDB and Schema Registry: what they do, and what is not for them."""

from __future__ import annotations

import pytest

from kgroup.cli.exit_codes import ExitCode
from tests.cli import embedded_groups
from tests.ran import document

CONNECT, STREAMS, KSQL, REGISTRY = (
    "connect-cluster",
    "words",
    "_confluent-ksql-default_query_CTAS_X_5",
    "schemas",
)


@pytest.fixture(scope="module")
def members(cluster):
    """A group of each kind, with its one member's id."""
    return {
        CONNECT: embedded_groups.connect_worker(cluster, CONNECT),
        STREAMS: embedded_groups.streams_thread(cluster, STREAMS),
        KSQL: embedded_groups.streams_thread(cluster, KSQL),
        REGISTRY: embedded_groups.registry(cluster, REGISTRY),
    }


@pytest.fixture
def run(on_cluster, members):
    return on_cluster


def test_describe_of_connect_names_what_the_worker_runs(run, members):
    (group,) = document(run("describe", CONNECT, "-o", "json"), "describe")["groups"]
    assert group["application"] == {"kind": "connect", "service_id": None, "query_id": None}
    (member,) = group["members"]
    assert member["connect"]["running"] == {
        "connectors": ["orders-sink"],
        "tasks": [{"connector": "orders-sink", "tasks": [0, 1]}],
    }
    assert (member["is_leader"], member["connect"]["assignment"]["leader"]) == (True, members[CONNECT])
    assert (group["offsets"], group["total_lag"], member["undecoded"]) == ([], None, [])
    assert "connect-<connector>" in group["no_offsets"]


def test_describe_of_connect_as_text(run):
    lines = run("describe", CONNECT).out.splitlines()
    assert lines[1] == (
        "Kafka Connect · protocol version 2 · leader 10.0.0.1:8083 · config offset 12 · "
        "the leader waits 1m 00s for lost workers"
    )
    assert lines[2].startswith("members 1 · no committed offsets: Connect workers commit nothing")
    assert lines[4].split() == [
        *("WORKER", "LEADER", "MEMBER", "HOST", "STATE", "CONFIG", "CONNECTORS", "TASKS")
    ]
    row = lines[5].split()
    assert (row[0], row[1], *row[-3:]) == ("10.0.0.1:8083", "yes", "12", "orders-sink", "orders-sink:0-1")


def test_describe_of_streams_names_tasks_threads_and_processes(run):
    (group,) = document(run("describe", STREAMS, "-o", "json"), "describe")["groups"]
    thread = group["members"][0]["streams"]
    assert (thread["thread"], thread["assignment"]["active"]) == ("app-StreamThread-1", ["0_0", "0_1"])
    assert (thread["assignment"]["standby"], thread["subscription"]["previous"]) == (
        ["1_0"],
        [
            {"task": "0_0", "role": "active", "offset_sum": None},
            {"task": "1_0", "role": "standby", "offset_sum": 41},
        ],
    )
    assert thread["subscription"]["process_id"] == "01234567-89ab-cdef-0123-456789abcdef"
    assert group["no_offsets"] is None
    lines = run("describe", STREAMS).out.splitlines()
    assert lines[1] == "Kafka Streams · 1 process, 1 thread · user data version 11"
    assert lines[4].split() == [
        *("THREAD", "PROCESS", "MEMBER", "HOST", "STATE", "ACTIVE", "STANDBY", "PARTS", "LAG")
    ]
    row = lines[5].split()
    assert (*row[:2], *row[-4:-1]) == (
        "app-StreamThread-1",
        "01234567-89ab-cdef-0123-456789abcdef",
        "0_0,0_1",
        "1_0",
        "2",
    )
    wide = run("describe", STREAMS, "-o", "csv", "--columns", "previous_tasks,client_id").out.splitlines()
    assert wide[1] == '"0_0,(1_0)",app-StreamThread-1-consumer'


def test_a_ksqldb_query_is_named(run):
    (group,) = document(run("describe", KSQL, "-o", "json"), "describe")["groups"]
    assert group["application"] == {"kind": "ksqldb", "service_id": "default_", "query_id": "CTAS_X_5"}
    text = run("describe", KSQL).out.splitlines()[1]
    assert text == (
        "ksqlDB (Kafka Streams) · service default_ · query CTAS_X_5 · 1 process, 1 thread · "
        "user data version 11"
    )


def test_describe_of_schema_registry_tells_the_election(run):
    (group,) = document(run("describe", REGISTRY, "-o", "json"), "describe")["groups"]
    (member,) = group["members"]
    assert member["schema_registry"]["identity"]["leader_eligible"] is True
    assert (member["is_leader"], group["total_lag"]) == (True, None)
    lines = run("describe", REGISTRY).out.splitlines()
    assert lines[1] == "Schema Registry · leader https://sr-1:8081"
    assert lines[5].split()[:3] == ["https://sr-1:8081", "yes", "yes"]


def test_all_kinds_as_csv_have_the_columns_of_all(run):
    table = run("describe", CONNECT, STREAMS, "-o", "csv").out.splitlines()
    header = table[0].split(",")
    assert {"worker", "connect_tasks", "thread", "active_tasks", "lag"} <= set(header)
    assert len(table) == 3


def test_bytes_from_the_future_are_told_and_end_with_5(on_cluster, cluster):
    embedded_groups.from_the_future(cluster, "connect-next")
    told = on_cluster("describe", "connect-next", "-o", "json")
    (group,) = document(told, "describe", ExitCode.PARTIAL)["groups"]
    (member,) = group["members"]
    assert [part["part"] for part in member["undecoded"]] == ["metadata", "assignment"]
    assert (member["connect"], bool(member["raw_assignment"])) == (None, True)
    assert {error["code"] for error in told.errors} == {"NOT_DECODED"}
    assert "assignment undecoded, 9 bytes, version 3: newer than 2" in told.errors[1]["message"]
    columns = "worker,connectors,connect_tasks,config_offset,leader"
    row = on_cluster("describe", "connect-next", "-o", "csv", "--columns", columns).out.splitlines()
    assert row[-1] == "?,?,?,?,?"


def test_lag_says_that_there_is_none(run):
    for name, says in ((CONNECT, "connect-<connector>"), (REGISTRY, "elect their leader")):
        told = run("lag", name)
        assert (told.code, told.out.strip()) == (0, f"{name}   Stable   no committed offsets, no lag")
        assert says in told.err
    found = document(run("lag", CONNECT, STREAMS, "--fail-above", "10", "-o", "json"), "lag")
    assert (found["verdict"]["over"], found["verdict"]["unknown"]) == ([], [])
    assert {group["group_id"]: bool(group["no_offsets"]) for group in found["groups"]} == {
        CONNECT: True,
        STREAMS: False,
    }


def test_offsets_export_says_that_there_are_none(run):
    told = run("offsets", "export", CONNECT, REGISTRY, "-o", "json")
    groups = document(told, "offsets export")["groups"]
    assert [(group["offsets"], bool(group["no_offsets"])) for group in groups] == [([], True), ([], True)]
    assert f"{CONNECT} has no committed offsets: Connect workers commit nothing" in told.err


@pytest.mark.parametrize("command", [("--all-topics",), ("--topic", "orders")])
def test_reset_offsets_is_refused_with_the_reason(run, command):
    told = run("reset-offsets", CONNECT, *command, "--to-earliest", "-o", "json")
    (group,) = document(told, "reset-offsets", ExitCode.REFUSED)["groups"]
    assert group["refusal"].startswith(f"{CONNECT} is no group to commit in: Connect workers")


def test_reset_offsets_is_refused_of_an_empty_group_too(on_cluster, cluster):
    member_id = embedded_groups.connect_worker(cluster, "connect-empty")
    embedded_groups.leave(cluster, "connect-empty", member_id)
    told = on_cluster(
        "reset-offsets", "connect-empty", "--topic", "orders", "--to-latest", "--execute", "--yes"
    )
    assert told.code == ExitCode.REFUSED
    assert "connect-empty is no group to commit in" in told.out + told.err


@pytest.mark.parametrize(
    ("group", "says"),
    [
        (CONNECT, "the protocol type is 'connect', not consumer: workers of Kafka Connect share this group"),
        (REGISTRY, "the protocol type is 'sr', not consumer: instances of Schema Registry share this group"),
        (KSQL, "this is a group of Kafka Streams, of the ksqlDB query CTAS_X_5"),
    ],
)
def test_upgrade_plan_refuses_with_the_reason(run, group, says):
    plan = document(run("upgrade", "plan", group, "-o", "json"), "upgrade plan", ExitCode.REFUSED)
    assert plan["verdict"] == "blocked"
    assert any(check["message"].startswith(says) for check in plan["checks"] if check["status"] == "block")


def test_doctor_knows_what_workers_run(run):
    found = document(run("doctor", CONNECT, REGISTRY, "-o", "json"), "doctor")["groups"]
    assert [(group["verdict"], group["skipped"]) for group in found] == [("healthy", [])] * 2


def test_the_log_tells_the_same(run):
    for name in (CONNECT, STREAMS, REGISTRY):
        described = run("describe", name, "-o", "json").group(name)["members"][0]
        replayed = run("replay-log", name, "--at", "2099-01-01", "-o", "json").group(name)["members"][0]
        for part in ("connect", "streams", "schema_registry", "undecoded", "is_leader"):
            if part != "is_leader" or name != STREAMS:
                assert replayed[part] == described[part]


def test_removing_a_worker_names_its_work(on_cluster, cluster):
    member_id = embedded_groups.connect_worker(cluster, "connect-removed")
    told = on_cluster("remove-members", "connect-removed", "--member-id", member_id, "-o", "json")
    (item,) = told.data["items"]
    assert item["effect"].startswith(
        "removed now, no member is left to run its work; if still running it rejoins"
    )
