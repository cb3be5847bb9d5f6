"""Kafka's tools that change topics, brokers and features, against both server kinds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Case
from .peer import Peer
from .tables import rows
from .waiting import eventually

pytestmark = pytest.mark.interop


@pytest.fixture
def node(case: Case) -> int:
    """The id of the server's broker."""
    peer = Peer(case.server)
    peer.close()
    return peer.node


def written(folder: Path, content: object) -> str:
    path = folder / "input.json"
    path.write_text(json.dumps(content))
    return str(path)


def test_records_are_deleted_and_a_commit_below_the_start_is_seen(case: Case, tmp_path: Path) -> None:
    """A consumer whose position is gone starts over where its policy says."""
    topic = case.topic(1)
    case.produce(topic, ["a", "b", "c", "d"])
    consume = ("--topic", topic, "--group", case.group, "--timeout-ms", "20000")
    first = case.server.tool("kafka-console-consumer", *consume, "--from-beginning", "--max-messages", "1")
    assert first.stdout.split() == ["a"]
    partitions = [{"topic": topic, "partition": 0, "offset": 3}]
    wanted = written(tmp_path, {"partitions": partitions, "version": 1})
    told = case.server.tool("kafka-delete-records", "--offset-json-file", wanted).stdout
    assert "low_watermark: 3" in told
    earliest = case.server.tool("kafka-get-offsets", "--topic", topic, "--time", "earliest").stdout
    assert earliest.split() == [f"{topic}:0:3"]
    (lag,) = rows(case.server.tool("kafka-consumer-groups", "--describe", "--group", case.group).stdout)
    assert (lag["CURRENT-OFFSET"], lag["LOG-END-OFFSET"]) == ("1", "4")
    policy = ("--command-property", "auto.offset.reset=earliest")
    again = case.server.tool("kafka-console-consumer", *consume, *policy, "--max-messages", "1")
    assert again.stdout.split() == ["d"]
    refused = case.server.tool(
        "kafka-delete-records",
        "--offset-json-file",
        written(tmp_path, {"partitions": [{**partitions[0], "offset": 99}], "version": 1}),
        check=False,
    )
    assert "OffsetOutOfRangeException" in refused.stdout + refused.stderr


def test_partitions_are_placed_and_their_leaders_elected(case: Case, node: int) -> None:
    topic = f"{case.group}-placed"
    placed = ("--create", "--topic", topic, "--replica-assignment", f"{node},{node}")
    case.server.tool("kafka-topics", *placed)

    def led() -> bool:
        told = case.server.tool("kafka-topics", "--describe", "--topic", topic, check=False).stdout
        return told.count(f"Leader: {node}\tReplicas: {node}\tIsr: {node}") == 2

    eventually(led)
    wrong = case.server.tool(
        "kafka-topics", "--create", "--topic", f"{topic}2", "--replica-assignment", "77", check=False
    )
    assert "InvalidReplicaAssignmentException" in wrong.stdout + wrong.stderr
    needless = ("--election-type", "preferred", "--topic", topic, "--partition", "0")
    elected = case.server.tool("kafka-leader-election", *needless).stdout
    assert "Valid replica already elected for partitions" in elected


def test_settings_of_topics_and_brokers_change(case: Case, node: int) -> None:
    topic = case.topic(1)
    of_topic = ("--entity-type", "topics", "--entity-name", topic)
    case.server.tool("kafka-configs", "--alter", *of_topic, "--add-config", "cleanup.policy=[compact,delete]")

    def changed() -> bool:
        told = case.server.tool("kafka-configs", "--describe", *of_topic).stdout
        return "cleanup.policy=compact,delete" in told

    eventually(changed)
    of_broker = ("--entity-type", "brokers", "--entity-name", str(node))
    case.server.tool("kafka-configs", "--alter", *of_broker, "--add-config", "message.max.bytes=123456")

    def in_force() -> bool:
        told = case.server.tool("kafka-configs", "--describe", *of_broker).stdout
        return "synonyms={DYNAMIC_BROKER_CONFIG:message.max.bytes=123456" in told

    eventually(in_force)
    case.server.tool("kafka-configs", "--alter", *of_broker, "--delete-config", "message.max.bytes")
    eventually(lambda: not in_force())
    refused = case.server.tool(
        "kafka-configs", "--alter", *of_broker, "--add-config", "log.dirs=elsewhere", check=False
    )
    assert "Cannot update these configs dynamically" in refused.stdout + refused.stderr


def test_features_go_down_and_up(case: Case) -> None:
    told = case.server.tool("kafka-features", "describe").stdout
    supported = "Feature: transaction.version SupportedMinVersion: 0 SupportedMaxVersion: 2"
    assert supported in " ".join(told.split())
    down = case.server.tool("kafka-features", "downgrade", "--feature", "transaction.version=1").stdout
    assert "transaction.version was downgraded to 1." in down
    refused = case.server.tool("kafka-features", "upgrade", "--feature", "transaction.version=3", check=False)
    assert "only supports versions 0-2" in refused.stdout + refused.stderr
    up = case.server.tool("kafka-features", "upgrade", "--feature", "transaction.version=2").stdout
    assert "transaction.version was upgraded to 2." in up


def test_there_are_no_rules_where_nothing_looks_at_them(case: Case) -> None:
    for asked in (
        ("--list",),
        ("--add", "--allow-principal", "User:a", "--operation", "Read", "--topic", "t"),
    ):
        told = case.server.tool("kafka-acls", *asked, check=False)
        assert "SecurityDisabledException: No Authorizer is configured" in told.stdout + told.stderr
