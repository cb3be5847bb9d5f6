"""Kafka's own command line tools against both server kinds; a tool costs a JVM, so each test is rich."""

from __future__ import annotations

import pytest

from .conftest import Case
from .driver import Client, settle
from .tables import dumped_records, invalid_batches, rows
from .waiting import eventually

pytestmark = [pytest.mark.interop, pytest.mark.newest]


def test_consumer_groups_tool(case: Case, java_client: Client) -> None:
    """List; describe members, state, offsets; delete refused and done."""
    server, group = case.server, case.group
    topic = case.topic()
    static = case.join(java_client, topic, instance="static-1", session_ms=30_000)
    dynamic = case.join(java_client, topic)
    states = settle([static, dynamic], case.partitions(topic), each=2)
    case.produce(topic, ["a", "b", "c"], partition=1)
    static.commit({(topic, 1): 2})

    listed = rows(server.tool("kafka-consumer-groups", "--list", "--state").stdout)
    assert {"GROUP": group, "STATE": "Stable"} in listed

    of_group = ("--describe", "--group", group)
    members = rows(server.tool("kafka-consumer-groups", *of_group, "--members", "--verbose").stdout)
    assert {(row["CONSUMER-ID"], row["GROUP-INSTANCE-ID"], row["HOST"]) for row in members} == {
        (states[0].member_id, "static-1", "/127.0.0.1"),
        (states[1].member_id, "", "/127.0.0.1"),
    }
    assert {row["CURRENT-ASSIGNMENT"] for row in members} == {f"{topic}:0,1", f"{topic}:2,3"}

    (state,) = rows(server.tool("kafka-consumer-groups", *of_group, "--state").stdout)
    assert (state["ASSIGNMENT-STRATEGY"], state["STATE"], state["#MEMBERS"]) == ("range", "Stable", "2")

    offsets = rows(server.tool("kafka-consumer-groups", *of_group, "--offsets").stdout)
    columns = ("PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG")
    lags = {tuple(row[name] for name in columns) for row in offsets}
    assert lags == {("0", "-", "0", "-"), ("1", "2", "3", "1"), ("2", "-", "0", "-"), ("3", "-", "0", "-")}

    refused = server.tool("kafka-consumer-groups", "--delete", "--group", group).stdout
    assert "GroupNotEmptyException: The group is not empty." in refused
    case.close(static, leave=True)
    case.close(dynamic)
    eventually(lambda: case.describe()["state"] == "Empty")
    done = server.tool("kafka-consumer-groups", "--delete", "--group", group).stdout
    assert "was successful" in done
    missing = server.tool("kafka-consumer-groups", *of_group, check=False).stdout
    assert f"Group {group} not found." in missing


def test_groups_tool_tells_types(case: Case, java_client: Client) -> None:
    topic = case.topic(2)
    member = case.join(java_client, topic, protocol="consumer")
    settle([member], case.partitions(topic, 2))
    listed = rows(case.server.tool("kafka-groups", "--list").stdout)
    assert {"GROUP": case.group, "TYPE": "Consumer", "PROTOCOL": "consumer"} in listed
    of_group = ("--describe", "--group", case.group)
    eventually(lambda: case.describe()["state"] == "Stable")
    members = rows(case.server.tool("kafka-consumer-groups", *of_group, "--members", "--verbose").stdout)
    (row,) = members
    assert row["CURRENT-ASSIGNMENT"] == row["TARGET-ASSIGNMENT"] == f"{topic}:0,1"
    assert row["CURRENT-EPOCH"] == row["TARGET-EPOCH"] == str(member.state().generation)


def test_console_producer_and_consumer(case: Case) -> None:
    """The consumer commits at its end; a second run in the same group goes on from there."""
    topic = case.topic(1)
    case.server.tool("kafka-console-producer", "--topic", topic, stdin="one\ntwo\n")
    consume = ("--topic", topic, "--group", case.group, "--from-beginning", "--timeout-ms", "20000")
    first = case.server.tool("kafka-console-consumer", *consume, "--max-messages", "2").stdout
    assert first.split() == ["one", "two"]
    assert case.call("offsets", group=case.group) == [[topic, 0, 2]]
    case.server.tool("kafka-console-producer", "--topic", topic, stdin="three\n")
    second = case.server.tool("kafka-console-consumer", *consume, "--max-messages", "1").stdout
    assert second.split() == ["three"]


def test_offsets_tools_change_a_group(case: Case, java_client: Client) -> None:
    """Reset and delete-offsets on an empty group."""
    topic = case.topic(1)
    case.produce(topic, ["a", "b", "c"])
    member = case.join(java_client, topic)
    settle([member], case.partitions(topic, 1))
    member.commit({(topic, 0): 1})
    case.close(member)
    eventually(lambda: case.describe()["state"] == "Empty")
    at = ("--group", case.group, "--topic", topic)
    case.server.tool("kafka-consumer-groups", "--reset-offsets", *at, "--to-latest", "--execute")
    assert case.call("offsets", group=case.group) == [[topic, 0, 3]]
    deleted = case.server.tool("kafka-consumer-groups", "--delete-offsets", *at).stdout
    assert "Successful" in deleted
    assert case.call("offsets", group=case.group) == []


def test_dump_log_reads_the_segments(case: Case, java_client: Client) -> None:
    """Kafka's dump tool decodes group metadata, offsets and consumer-group records, every batch valid."""
    topic = case.topic(2)
    classic = case.join(java_client, topic, instance="static-1", session_ms=30_000)
    settle([classic], case.partitions(topic, 2))
    classic.commit({(topic, 0): 11})
    case.close(classic, leave=True)
    eventually(lambda: case.describe()["state"] == "Empty")
    newer = case.join(java_client, topic, protocol="consumer")
    settle([newer], case.partitions(topic, 2))

    files = ",".join(str(path) for path in case.server.segments())
    dumped = case.server.tool(
        "kafka-dump-log", "--offsets-decoder", "--print-data-log", "--files", files
    ).stdout
    assert invalid_batches(dumped) == []
    ours = [(key, value) for key, value in dumped_records(dumped) if _group_of(key) == case.group]
    commits = [value for key, value in ours if key["type"] in ("0", "1")]
    assert [value["data"]["offset"] for value in commits if value] == [11]
    kept = [value["data"] for key, value in ours if key["type"] == "2" and value]
    members = [each for group in kept for each in group["members"]]
    assert {(each["groupInstanceId"], each["sessionTimeout"]) for each in members} == {("static-1", 30_000)}
    assert members[-1]["assignment"]["assignedPartitions"] == [{"topic": topic, "partitions": [0, 1]}]
    assert {key["type"] for key, value in ours if value} >= {"3", "5", "6", "7", "8"}


def _group_of(key: dict) -> str:  # type: ignore[type-arg]
    data = key["data"]
    return str(data.get("group", data.get("groupId")))
