"""Verdicts of a principal that may see little, on a Kafka with StandardAuthorizer: unknown, not good."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.own_home import environment

from .conftest import require
from .kafka import AUTHORIZED, USERS, RealKafka
from .waiting import eventually

pytestmark = pytest.mark.interop
GROUP, TOPIC = "orders-app", "orders"
AUTHORIZER = {**AUTHORIZED, "super.users": "User:ANONYMOUS"}
Ask = Callable[..., Any]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKafka]:
    """alice may DESCRIBE the group and nothing else, bob all that the commands look at; a live group."""
    from confluent_kafka import Consumer

    require("java", "mvn")
    with RealKafka(AUTHORIZER, ["SASL_PLAINTEXT"], base=tmp_path_factory.mktemp("rights")) as running:
        running.tool("kafka-topics", "--create", "--topic", TOPIC, "--partitions", "4")
        allow = ("--add", "--force", "--allow-principal")
        running.tool("kafka-acls", *allow, "User:alice", "--operation", "Describe", "--group", GROUP)
        running.tool("kafka-acls", *allow, "User:bob", "--operation", "Describe", "--group", "*")
        for topic in (TOPIC, "__consumer_offsets", "*"):
            operation = "Describe" if topic == "*" else "Read"
            running.tool("kafka-acls", *allow, "User:bob", "--operation", operation, "--topic", topic)
        for operation in ("Describe", "DescribeConfigs"):
            running.tool("kafka-acls", *allow, "User:bob", "--operation", operation, "--cluster")
        member = Consumer(
            {"bootstrap.servers": running.bootstrap, "group.id": GROUP, "auto.offset.reset": "earliest"}
        )
        member.subscribe([TOPIC])
        eventually(lambda: member.poll(0.2) is None and len(member.assignment()) == 4, what="it reads all")
        yield running
        member.close()


@pytest.fixture
def as_(kafka: RealKafka, tmp_path: Path) -> Ask:
    """Runs kgroup as one of the users; its exit code and JSON document."""

    def call(user: str, *argv: str) -> tuple[int, Any, str]:
        config = tmp_path / f"{user}.properties"
        module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
        config.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
            f'sasl.jaas.config={module} username="{user}" password="{USERS[user]}";\n'
        )
        where = ("-b", kafka.address("SASL_PLAINTEXT"), "--command-config", str(config), "-o", "json")
        command = [sys.executable, "-m", "kgroup", *argv, *where]
        done = subprocess.run(
            command, env=environment(tmp_path), capture_output=True, text=True, timeout=90, check=False
        )
        return done.returncode, json.loads(done.stdout or "{}"), done.stderr

    return call


def test_doctor(as_: Ask) -> None:
    """With DESCRIBE on the group alone it was healthy, exit code 0."""
    code, document, said = as_("alice", "doctor", GROUP)
    (group,) = document["data"]["groups"]
    assert (code, group["verdict"], group["healthy"]) == (6, "unknown", None), said
    assert any(line.startswith("history: ") for line in group["skipped"])
    code, document, said = as_("bob", "doctor", GROUP)
    assert (code, document["data"]["groups"][0]["verdict"]) == (0, "healthy"), said


def test_upgrade_plan(as_: Ask) -> None:
    """Policy and size were unknown, and the verdict was READY."""
    code, document, said = as_("alice", "upgrade", "plan", GROUP)
    assert (code, document["data"]["verdict"]) == (6, "unknown"), said
    unknown = {c["code"]: c["reason"] for c in document["data"]["checks"] if c["status"] == "unknown"}
    assert unknown == dict.fromkeys(("migration_policy", "size"), "CLUSTER_AUTHORIZATION_FAILED")
    code, document, said = as_("bob", "upgrade", "plan", GROUP)
    assert (code, document["data"]["verdict"]) == (0, "ready"), said


def test_the_plan_of_a_fleet(as_: Ask) -> None:
    """alice is shown the one group she may see, as unknown; that she may not see others is said."""
    for chosen in ("--all-groups", "orders-*"):
        code, document, said = as_("alice", "upgrade", "plan", chosen)
        (row,) = document["data"]["groups"]
        assert (code, row["verdict"], row["effort"]) == (6, "unknown", "unknown"), said
        assert {each["code"] for each in row["unknown"]} == {"migration_policy", "size"}
    code, document, said = as_("alice", "upgrade", "plan", GROUP, "another")
    assert (code, [error["item"] for error in document["errors"]][0]) == (6, "another"), said
    code, document, said = as_("alice", "doctor", "--kafka", "5")
    assert (code, document["data"]["verdict"]) == (6, "unknown"), said
    for argv in (("upgrade", "plan", "--all-groups"), ("doctor", "--kafka", "5")):
        code, document, said = as_("bob", *argv)
        assert code == 0, said
    assert document["data"]["verdict"] == "ready"


def test_upgrade_rehearse(as_: Ask) -> None:
    """It rolled a group without partitions, and said converted."""
    assert as_("alice", "upgrade", "rehearse", GROUP)[0] == 6
    code, document, said = as_("bob", "upgrade", "rehearse", GROUP)
    assert (code, document["data"]["upgrade"]) == (0, "converted"), said


def test_a_group_that_may_not_be_seen(as_: Ask) -> None:
    assert as_("alice", "doctor", "another")[0] == as_("alice", "upgrade", "plan", "another")[0] == 6
